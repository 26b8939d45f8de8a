"""The two phases between the beginning of a payment and its acquirer: screen and authenticate.

Each may halt the payment: with a code that declines it, or with a deadline until which its shopper is waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gateway.connectors.port import Redirect
from gateway.models import Payment
from gateway.payments.request import PaymentRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The payment goes no further now. Without a ``deadline`` it is declined with ``code``; with one (the merchant's
    clock) it waits for its shopper, who is sent to ``redirect``. ``facts`` go into the answer."""

    code: str = ""
    deadline: datetime | None = None
    redirect: Redirect | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def screen(payment: Payment, request: PaymentRequest) -> Halt | None:
    """The verdict of risk checks; None lets the payment go on."""
    return None


def authenticate(payment: Payment, request: PaymentRequest) -> Halt | Mapping[str, str]:
    """The proof of an authentication, as ``threeDSecure.*`` parameters by full name (empty: none is needed)."""
    return {}
