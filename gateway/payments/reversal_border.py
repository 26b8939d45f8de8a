"""Until when a debit can be reversed: before its settlement, refunded after it.

A payment is beyond it when a settlement record tells of it, when its capture was sent in a batch, when it is older
than the channel's ``reversal_hours``: its acquirer has cleared the day; and a payout to a card is from its approval on.
Source: rulings, section 4 (RV before settlement); docs/decisions/0069, 0147.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from gateway.connectors.capabilities import PAYOUT_TRANSFER
from gateway.connectors.means import Card, TokenAccount
from gateway.models import BatchedCapture, Payment, Status
from gateway.payments.chain_amounts import Chain
from gateway.payments.points_of_service import find_point_of_service
from gateway.payments.settlement_check import find_settled_payments

CARD_NETWORK_CONNECTORS: Final = frozenset({"iso8583", "stripe"})
"""Connectors whose payouts a card network passes on. The simulator takes back what it paid out: Part A, Basic payment
(an RV may follow a CD)."""


def is_beyond_reversal(payment: Payment, at: datetime) -> bool:
    """Whether an approved debit, capture, rebill or credit can no longer be reversed at ``at``, the merchant's clock.
    Never for an authorization, nor for what waits here to be sent."""
    return payment.id in find_beyond_reversal([payment], at)


def find_beyond_reversal(payments: Iterable[Payment], at: datetime) -> frozenset[UUID]:
    """The payments among ``payments`` for which :func:`is_beyond_reversal` holds. They come with their channel."""
    debits = [one for one in payments if one.payment_type != "PA" and one.status == Status.APPROVED]
    beyond = {one.id for one in debits if _is_too_old(one, at) or is_card_payout(one)}
    captures = {one.id for one in debits if one.payment_type == "CP" and one.connector == "iso8583"} - beyond
    if captures:
        # Their acquirer compares the sums of the batch: a reversal would change them.
        beyond |= set(BatchedCapture.objects.filter(pk__in=captures, batch__isnull=False).values_list("pk", flat=True))
    left = {one.id for one in debits} - beyond
    return frozenset(beyond | (find_settled_payments(left) if left else set()))


def _is_too_old(payment: Payment, at: datetime) -> bool:
    hours = payment.channel.reversal_hours
    return bool(hours) and at - (payment.completed_at or payment.created_at) > timedelta(hours=hours)


def is_card_payout(payment: Payment) -> bool:
    """Whether a credit pushed money to a card by way of a card network, which has no reversal of that. Source:
    Cybersource, Reporting User Guide, "Original Credit Transaction Reports for Acquirers" (none that an acquirer can
    originate); https://developers.tabapay.com/docs/exceptions-handling-for-push-payments (Mastercard: under no
    circumstances)."""
    is_of_network = payment.connector in CARD_NETWORK_CONNECTORS and payment.means in (Card.kind, TokenAccount.kind)
    if payment.payment_type != "CD" or not is_of_network:
        return False
    return find_point_of_service(Chain([payment]), payment).transfer == PAYOUT_TRANSFER


def is_never_taken_back(payment: Payment) -> bool:
    """Whether no message takes the payment back once it was made: a payout to a card, or itself a reversal. Its
    approval counts whenever it comes."""
    is_reversal = payment.payment_type == "RV" and payment.connector in CARD_NETWORK_CONNECTORS
    return is_reversal or is_card_payout(payment)
