"""Refunds and credits in doubt that their acquirer does not take back, so that a person has to ask what became of them.

A host may know no reversal of money that is given. It is asked often at first, as of any payment without an outcome;
once it has refused MANY_REFUSALS times seldom, and whoever has asked the acquirer may enter the outcome, as of a payout
to a card (payout_decisions.py). Source: docs/decisions/0138.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from gateway.models import AcquirerExchange, Payment
from gateway.models.payments import GIVING_TYPES, MANY_REFUSALS, UNDECIDED
from gateway.payments.reversal_border import is_card_payout

MANY_HOURLY_REFUSALS: Final = MANY_REFUSALS + 24
"""Refusals from which the host is asked once a day; before, once an hour."""


def is_for_person(payment: Payment) -> bool:
    """Whether a person has to ask what became of it while it is in doubt: of a payout to a card always, of a refund or
    credit where its acquirer has refused often enough to take it back."""
    if is_card_payout(payment):
        return True
    return payment.payment_type in GIVING_TYPES and count_refusals(payment) >= MANY_REFUSALS


def count_refusals(payment: Payment) -> int:
    """How often its acquirer has answered a reversal of the payment without taking it back."""
    return AcquirerExchange.count_refused_voids([payment.pk]).get(payment.pk, 0)


def get_refusal_pause(refusals: int) -> timedelta | None:
    """For how long a host is left alone that has refused so often; None: as with any payment without an outcome."""
    if refusals < MANY_REFUSALS:
        return None
    return timedelta(hours=1) if refusals < MANY_HOURLY_REFUSALS else timedelta(days=1)


def is_refusal(kind: str, received: Mapping[str, Any]) -> bool:
    """Whether an exchange of that kind is an answer to a reversal that did not take the payment back."""
    return kind == "void" and UNDECIDED in received
