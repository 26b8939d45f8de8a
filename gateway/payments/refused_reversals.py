"""Refunds, credits, captures and reversals in doubt that no answer decides, so that a person has to ask about them.

A host may know no reversal of money that is given, or no record when a capture or reversal is repeated. It is
asked often at first, as of any payment without an outcome; once it has answered so MANY_REFUSALS times seldom, and
whoever has asked the acquirer may enter the outcome, as of a payout to a card (payout_decisions.py).
Source: docs/decisions/0138, 0166.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from gateway.models import AcquirerExchange, Payment
from gateway.models.payments import ASKING_KINDS, MANY_REFUSALS, PERSON_TYPES, UNDECIDED
from gateway.payments.reversal_border import is_card_payout

MANY_HOURLY_REFUSALS: Final = MANY_REFUSALS + 24
"""Refusals from which the host is asked once a day; before, once an hour."""


def is_for_person(payment: Payment) -> bool:
    """Whether a person has to ask what became of it while it is in doubt: of a payout to a card always, of a refund or
    credit where its acquirer has refused often enough to take it back, of a capture or reversal where its repeats
    were answered as often without a verdict."""
    if is_card_payout(payment):
        return True
    return payment.payment_type in PERSON_TYPES and count_refusals(payment) >= MANY_REFUSALS


def count_refusals(payment: Payment) -> int:
    """How often its acquirer has answered without deciding it."""
    return AcquirerExchange.count_undecided([payment.pk]).get(payment.pk, 0)


def get_refusal_pause(refusals: int) -> timedelta | None:
    """For how long a host is left alone that has refused so often; None: as with any payment without an outcome."""
    if refusals < MANY_REFUSALS:
        return None
    return timedelta(hours=1) if refusals < MANY_HOURLY_REFUSALS else timedelta(days=1)


def is_refusal(kind: str, received: Mapping[str, Any]) -> bool:
    """Whether an exchange of that kind is an answer that did not take the payment back, or decide it."""
    return kind in ASKING_KINDS and UNDECIDED in received
