"""Follow-ups (capture, refund, void, rebill) that a clerk may make now, of one payment or of its chain.

Offered by the operations table that also answers the API.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from gateway.core import clock
from gateway.models import Channel, Payment
from gateway.payments.chain_amounts import ZERO_AMOUNT, Chain
from gateway.payments.follow_ups import find_follow_up_arrival
from gateway.payments.operation_table import OPERATIONS, evaluate_operation
from gateway.payments.reversal_border import find_beyond_reversal

MANUAL_FOLLOW_UPS: Final = ("CP", "RF", "RV", "RB")
"""Payment types of manual follow-ups."""
CHAIN_FOLLOW_UPS: Final = ("CP", "RF", "RV")
"""Those that are offered on every page of a chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpOffer:
    """A follow-up that is possible now. ``most``: the largest amount, None: no limit; ``target``: the payment of the
    chain that it follows."""

    code: str
    title: str
    most: Decimal | None
    target: Payment


def list_follow_up_offers(
    chain: Chain, payment: Payment, beyond: Collection[UUID] | None = None
) -> list[FollowUpOffer]:
    """Follow-ups that a clerk may make now, by the operations table that also answers the API. ``beyond``: the members
    that can no longer be reversed, where they are known."""
    found = []
    at = clock.merchant_now(payment.merchant)
    if beyond is None:
        beyond = find_beyond_reversal([payment], at)
    renews = payment.channel.expired_captures == Channel.ExpiredCaptures.RENEW
    for code in MANUAL_FOLLOW_UPS:
        operation = OPERATIONS[code]
        if payment.payment_type not in operation.follows:
            continue
        most = operation.ceiling(chain, payment) if operation.ceiling is not None else None
        asked = most if most is not None else payment.amount
        decision = evaluate_operation(
            operation,
            chain,
            payment,
            asked,
            payment.currency,
            at=None if renews else find_follow_up_arrival(operation, payment, at),
            settled=bool(operation.settled) and payment.id in beyond,
        )
        if asked > 0 and not decision.code:
            found.append(FollowUpOffer(code=code, title=_(operation.title), most=most, target=payment))
    return found


def list_chain_offers(chain: Chain, payment: Payment) -> list[FollowUpOffer]:
    """What a clerk may do from the page of ``payment``: one offer for each kind, to the payment itself where that is
    possible, else to another one of its chain (:func:`list_member_offers`). A rebill is for the payment alone."""
    beyond = find_beyond_reversal(chain.members, clock.merchant_now(payment.merchant))
    best = {
        code: offers[0] for code in CHAIN_FOLLOW_UPS if (offers := list_member_offers(chain, payment, code, beyond))
    }
    own = {offer.code: offer for offer in list_follow_up_offers(chain, payment, beyond)}
    return [found for code in MANUAL_FOLLOW_UPS if (found := own.get(code) or best.get(code)) is not None]


def list_member_offers(
    chain: Chain, payment: Payment, code: str, beyond: Collection[UUID] | None = None
) -> list[FollowUpOffer]:
    """All offers of one kind in the chain, the best first: the payment itself, then the payment that it follows, then
    the one with most left, the newest of equal ones. ``beyond``: as of :func:`list_follow_up_offers`."""
    newest = [*chain.members][::-1]
    if beyond is None:
        beyond = find_beyond_reversal(newest, clock.merchant_now(payment.merchant))
    found = [offer for member in newest for offer in list_follow_up_offers(chain, member, beyond) if offer.code == code]
    here, above = payment.pk, payment.referenced
    return sorted(
        found,
        key=lambda offer: (offer.target.pk != here, offer.target.pk != above, -(offer.most or ZERO_AMOUNT)),
    )
