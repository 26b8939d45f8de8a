"""How much a person moves by hand before a second person is asked: on one payment, and in 24 hours.

Both limits stand with a user's grants, have no currency and are counted in the payment's own. They count people: what
users that may be one person moved is one sum (gateway.backoffice.access.independence). What somebody approved for
another one counts for their 24 hours as what they did alone does. The hours are real ones and end now, so that no
midnight doubles them. Source: docs/decisions/0025, 0043 and 0053.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db import models

from gateway.access import audit_log
from gateway.access.permissions import RowOwner, find_row_owner
from gateway.backoffice.access import independence
from gateway.backoffice.access.independence import ActingPerson
from gateway.core import clock, identifiers
from gateway.db.statement import WriteStatement
from gateway.models import Approval, AuditEntry, HandCount, HandMove, Payment, Status
from gateway.payments.chain import Chain
from gateway.payments.token_limits import delete_old_token_moves

CLERK_LIMIT_WINDOW: Final = timedelta(hours=24)
"""How far back the second limit looks, real time."""
LimitScope = Approval.Over


@dataclass(frozen=True, slots=True, kw_only=True)
class Clerk:
    """Who acts. ``limit``: above it, all that they do to one payment taken together, a second person has to approve;
    ``day``: the same for all that they do in a merchant within CLERK_LIMIT_WINDOW. None: no limit."""

    user: int
    name: str
    ip: str | None
    limit: Decimal | None = None
    day: Decimal | None = None

    @property
    def actor(self) -> audit_log.Actor:
        return audit_log.Actor(name=self.name, ip=self.ip)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """One limit of somebody and what of it is used, in the payment's currency."""

    over: Approval.Over
    limit: Decimal
    moved: Decimal

    @property
    def left(self) -> Decimal:
        return max(self.limit - self.moved, Decimal(0))


class ClerkLimitExceededError(Exception):
    """Nothing was sent: with what the clerk moved before, it is above a limit of theirs."""

    def __init__(self, used: LimitUse) -> None:
        super().__init__(str(used.over))
        self.used = used


def list_limit_uses(clerk: Clerk, chain: Chain) -> list[LimitUse]:
    """The limits that speak of a payment for ``clerk``, the one with the least left first: the clerk's own, and those
    of everybody who may be acting as the clerk."""
    first = chain.first
    merchant, currency = first.merchant_id, first.currency
    found = []
    for person in list_clerk_people(clerk, find_row_owner(first)):
        if person.limit is not None:
            found.append(
                LimitUse(over=LimitScope.PAYMENT, limit=person.limit, moved=sum_unapproved_moves(person.names, chain))
            )
        if person.day is not None:
            moved = sum_recent_manual_moves(person.users, merchant, currency)
            found.append(LimitUse(over=LimitScope.DAY, limit=person.day, moved=moved))
    return sorted(found, key=lambda each: each.left)


def list_clerk_people(clerk: Clerk, place: RowOwner) -> list[ActingPerson]:
    """Everybody who may be acting as ``clerk`` and has a limit there."""
    return independence.list_acting_people(clerk.user, clerk.name, place, clerk.limit, clerk.day)


def find_exceeded_limit(clerk: Clerk, amount: Decimal, chain: Chain) -> LimitUse | None:
    """The limit that ``amount`` would go over; None: there is none."""
    return next((each for each in list_limit_uses(clerk, chain) if amount > each.left), None)


def sum_unapproved_moves(names: Collection[str], chain: Chain) -> Decimal:
    """What the users of these names moved on a payment by hand so far, with nobody else agreeing: captures, refunds,
    reversals and rebills alike, but for those that were declined. The audit trail knows who; users keep their names."""
    subjects = [str(member.id) for member in chain.members]
    sent = AuditEntry.objects.filter(subject="payment", subject_id__in=subjects, actor__in=names, after__alone=True)
    ids = {(after or {}).get("payment") for after in sent.values_list("after", flat=True)}
    moved = (member.amount for member in chain.members if member.id.hex in ids and member.status != Status.DECLINED)
    return sum(moved, Decimal(0))


def sum_recent_manual_moves(users: Collection[int], merchant: UUID, currency: str) -> Decimal:
    """What these users moved in a merchant by hand within CLERK_LIMIT_WINDOW, alone or by approving; but for what was
    declined."""
    moves = HandMove.objects.filter(
        user__in=users, merchant=merchant, currency=currency, at__gt=clock.real_now() - CLERK_LIMIT_WINDOW
    )
    declined = Payment.objects.filter(pk=models.OuterRef("payment"), status=Status.DECLINED)
    found = moves.exclude(models.Exists(declined)).aggregate(sum=models.Sum("amount"))["sum"]
    return found or Decimal(0)


# --- counting -----------------------------------------------------------------------------------------------------


def load_manual_counter(user: int, merchant: UUID) -> HandCount:
    """The row that each move of ``user``, and of every user tied to it, raises; read it before the sum that a decision
    rests on."""
    counted_as = independence.find_counter_user(user)
    HandCount.objects.bulk_create(
        [HandCount(id=identifiers.row_id(), user=counted_as, merchant_id=merchant)], ignore_conflicts=True
    )
    return HandCount.objects.get(user=counted_as, merchant=merchant)


def add_manual_move(
    write: WriteStatement, count: HandCount, user: int, payment: UUID, amount: Decimal, currency: str
) -> None:
    """Keep a move of ``user`` in the statement that begins it, if nobody of the same count moved anything since
    ``count`` was read."""
    write.update(count, {"moves": count.moves + 1}, expecting={"moves": count.moves})
    write.insert(
        HandMove,
        payment=payment,
        user=user,
        merchant_id=count.merchant_id,
        amount=amount,
        currency=currency,
        at=clock.real_now(),
    )


def record_approved_move(count: HandCount, user: int, payment: UUID, amount: Decimal, currency: str) -> None:
    """Keep what ``user`` answers for by approving, in the transaction of the decision; ``count`` is locked there."""
    HandCount.objects.filter(pk=count.pk).update(moves=models.F("moves") + 1)
    HandMove.objects.create(
        payment=payment, user=user, merchant_id=count.merchant_id, amount=amount, currency=currency, at=clock.real_now()
    )


def delete_expired_moves() -> int:
    """Moves that no limit looks back to any more; how many were there."""
    return HandMove.objects.filter(at__lt=clock.real_now() - CLERK_LIMIT_WINDOW).delete()[0] + delete_old_token_moves()
