"""Clerk limits: how much a person moves by hand without an approval, on one payment and within 24 hours.

Both limits stand in a user's grants, have no currency and are counted in the payment's own. They count people: moves of
all users that may be one person are one sum (gateway.backoffice.access.independence). A follow-up counts towards the 24
hours of the person who approved it as well. The window is 24 real hours ending now, so that midnight does not double
it. Source: docs/decisions/0025, 0043 and 0053.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import models
from django.utils.translation import gettext as _

from gateway.access import audit_log
from gateway.access.permissions import RowOwner, find_row_owner
from gateway.backoffice.access import independence
from gateway.backoffice.access.independence import ActingPerson
from gateway.backoffice.kit.formatting import format_money
from gateway.core import clock, identifiers
from gateway.db.statement import WriteStatement
from gateway.models import Approval, AuditEntry, ClerkLimitCounter, ClerkLimitUsage, Payment, Status
from gateway.payments.chain_amounts import Chain
from gateway.payments.token_limits import delete_old_token_moves

CLERK_LIMIT_WINDOW: Final = timedelta(hours=24)
"""The window of the second limit, in real time."""
LimitScope = Approval.Over


@dataclass(frozen=True, slots=True, kw_only=True)
class Clerk:
    """A user who moves money by hand, with their limits. ``limit``: on one payment, all follow-ups together; ``day``:
    in a merchant within CLERK_LIMIT_WINDOW. Above them an approval is needed. None: no limit."""

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
    """A limit and how much of it is used, in the payment's currency."""

    over: Approval.Over
    limit: Decimal
    moved: Decimal

    @property
    def left(self) -> Decimal:
        return max(self.limit - self.moved, Decimal(0))


LIMIT_BAR_UNITS: Final = 300
"""Width of the bar of a limit."""


def build_limit_bar(limit: Decimal, moved: Decimal, asked: Decimal, currency: str) -> dict[str, Any]:
    """The bar of a limit: what of it was used, what is asked for, and where it ends; and the same in words."""
    whole = max(limit, moved + asked, Decimal("0.01"))
    over = max(moved + asked - limit, Decimal(0))
    values = {"used": moved, "asked": asked, "limit": limit, "over": over}
    words = _("%(used)s used + %(asked)s asked for, of a limit of %(limit)s: %(over)s over it")
    if not over:
        words = _("%(used)s used + %(asked)s asked for, of a limit of %(limit)s")
    return {
        "label": words % {name: format_money(amount, currency) for name, amount in values.items()},
        "used": int(LIMIT_BAR_UNITS * moved / whole),
        "asked": int(LIMIT_BAR_UNITS * asked / whole),
        "limit": int(LIMIT_BAR_UNITS * limit / whole),
    }


class ClerkLimitExceededError(Exception):
    """Nothing was sent: together with earlier moves the amount exceeds a clerk limit."""

    def __init__(self, used: LimitUse) -> None:
        super().__init__(str(used.over))
        self.used = used


def list_limit_uses(clerk: Clerk, chain: Chain) -> list[LimitUse]:
    """Limits that apply to ``clerk`` on a payment, the one with the least left first: the clerk's own, and those of
    everybody who may be acting as the clerk."""
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
    """The limit that ``amount`` would exceed; None if there is none."""
    return next((each for each in list_limit_uses(clerk, chain) if amount > each.left), None)


def sum_unapproved_moves(names: Collection[str], chain: Chain) -> Decimal:
    """Sum of what these users moved on a payment by hand without an approval: captures, refunds, voids and rebills,
    without declined ones. The audit log names who; users keep their names."""
    subjects = [str(member.id) for member in chain.members]
    sent = AuditEntry.objects.filter(subject="payment", subject_id__in=subjects, actor__in=names, after__alone=True)
    ids = {(after or {}).get("payment") for after in sent.values_list("after", flat=True)}
    moved = (member.amount for member in chain.members if member.id.hex in ids and member.status != Status.DECLINED)
    return sum(moved, Decimal(0))


def sum_recent_manual_moves(users: Collection[int], merchant: UUID, currency: str) -> Decimal:
    """Sum of what these users moved in a merchant by hand within CLERK_LIMIT_WINDOW, alone or by approving, without
    declined moves."""
    moves = ClerkLimitUsage.objects.filter(
        user__in=users, merchant=merchant, currency=currency, at__gt=clock.real_now() - CLERK_LIMIT_WINDOW
    )
    declined = Payment.objects.filter(pk=models.OuterRef("payment"), status=Status.DECLINED)
    found = moves.exclude(models.Exists(declined)).aggregate(sum=models.Sum("amount"))["sum"]
    return found or Decimal(0)


# --- counting -----------------------------------------------------------------------------------------------------


def load_manual_counter(user: int, merchant: UUID) -> ClerkLimitCounter:
    """The counter row that every move of ``user`` and of the users tied to it raises. Read it before the sum that a
    decision is based on."""
    counted_as = independence.find_counter_user(user)
    ClerkLimitCounter.objects.bulk_create(
        [ClerkLimitCounter(id=identifiers.row_id(), user=counted_as, merchant_id=merchant)], ignore_conflicts=True
    )
    return ClerkLimitCounter.objects.get(user=counted_as, merchant=merchant)


def add_manual_move(
    write: WriteStatement, count: ClerkLimitCounter, user: int, payment: UUID, amount: Decimal, currency: str
) -> None:
    """Record a move of ``user`` in the statement that begins it, unless a move raised the counter since ``count`` was
    read."""
    write.update(count, {"moves": count.moves + 1}, expecting={"moves": count.moves})
    write.insert(
        ClerkLimitUsage,
        payment=payment,
        user=user,
        merchant_id=count.merchant_id,
        amount=amount,
        currency=currency,
        at=clock.real_now(),
    )


def record_approved_move(count: ClerkLimitCounter, user: int, payment: UUID, amount: Decimal, currency: str) -> None:
    """Record a move that ``user`` approved, in the transaction of the decision, which locks ``count``."""
    ClerkLimitCounter.objects.filter(pk=count.pk).update(moves=models.F("moves") + 1)
    ClerkLimitUsage.objects.create(
        payment=payment, user=user, merchant_id=count.merchant_id, amount=amount, currency=currency, at=clock.real_now()
    )


def restore_approved_move(row: Approval) -> None:
    """Count an approved move that was taken off as failed and was made nevertheless."""
    assert row.follow_up is not None
    assert row.decided_by_id is not None
    assert row.decided_at is not None
    ClerkLimitUsage.objects.get_or_create(
        payment=row.follow_up,
        defaults={
            "user": row.decided_by_id,
            "merchant_id": row.merchant_id,
            "amount": row.amount,
            "currency": row.currency,
            "at": row.decided_at,
        },
    )


def delete_expired_moves() -> int:
    """Delete moves older than CLERK_LIMIT_WINDOW; returns how many."""
    return (
        ClerkLimitUsage.objects.filter(at__lt=clock.real_now() - CLERK_LIMIT_WINDOW).delete()[0]
        + delete_old_token_moves()
    )
