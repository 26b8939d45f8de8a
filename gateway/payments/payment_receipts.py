"""The receipt of the payment page as evidence: chargebacks need it from checkout, which they do not import.

checkout registers the function when it is loaded. Source: docs/decisions/0083, docs/decisions/0090.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.core.exceptions import ImproperlyConfigured

from gateway.models import Payment


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReceipt:
    """A receipt in English. ``facts``: labels and values; ``mails``: how often the shopper had it mailed."""

    facts: tuple[tuple[str, str], ...]
    mails: int


ReceiptSource = Callable[[Payment], ShownReceipt | None]
"""The receipt of a payment; None if there was none."""

_registered: Final[list[ReceiptSource]] = []


def register_receipt_source(source: ReceiptSource) -> None:
    """Register the function of the package of checkouts, in place of the one registered before."""
    _registered[:] = [source]


def find_shown_receipt(payment: Payment) -> ShownReceipt | None:
    """The payment page's receipt of ``payment``. Raises ImproperlyConfigured without a registered function."""
    if not _registered:
        raise ImproperlyConfigured("checkout is not among INSTALLED_APPS")
    return _registered[0](payment)
