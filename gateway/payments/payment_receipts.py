"""The receipt of the payment page as evidence: chargebacks need it from checkout, which they do not import.

checkout registers the function when it is loaded. Source: docs/decisions/0083, docs/decisions/0090.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.core.hook import Hook
from gateway.models import Payment


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReceipt:
    """A receipt in English. ``facts``: labels and values; ``mails``: how often the shopper had it mailed."""

    facts: tuple[tuple[str, str], ...]
    mails: int


ReceiptSource = Callable[[Payment], ShownReceipt | None]
"""The receipt of a payment; None if there was none."""

RECEIPT_SOURCE: Final[Hook[ReceiptSource]] = Hook("checkout")


def find_shown_receipt(payment: Payment) -> ShownReceipt | None:
    """The payment page's receipt of ``payment``."""
    return RECEIPT_SOURCE.get()(payment)
