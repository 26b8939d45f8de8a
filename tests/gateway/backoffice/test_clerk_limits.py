"""What counts towards a person's limit of a day: each condition alone. Source: docs/decisions/0043."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.backoffice.follow_ups import approvals, clerk_limits, manual_follow_up
from gateway.backoffice.follow_ups.clerk_limits import Clerk
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpOrder
from gateway.core import clock, identifiers
from gateway.models import Approval, ClerkLimitUsage, Payment
from gateway.payments.chain_amounts import Chain
from tests.gateway.backoffice.test_approvals import asked, clerk
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 5, 14, 10, 2, tzinfo=UTC)
STEP = timedelta(microseconds=1)


def moved(shop: Shop, **changes: Any) -> Decimal:
    """The sum that is asked for, of one move of 7.00 EUR by the person 1, a minute ago, with ``changes``."""
    values = {
        "payment": identifiers.row_id(),
        "user": 1,
        "merchant": shop.merchant,
        "amount": Decimal(7),
        "currency": "EUR",
        "at": NOW - timedelta(minutes=1),
        **changes,
    }
    ClerkLimitUsage.objects.create(**values)
    return clerk_limits.sum_recent_manual_moves({1}, shop.merchant.pk, "EUR")


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: NOW)


def test_a_persons_own_moves_in_a_merchant_and_a_currency_count(shop: Shop, stranger: Shop) -> None:
    assert moved(shop, user=2) == 0
    assert moved(shop, merchant=stranger.merchant) == 0
    assert moved(shop, currency="USD") == 0
    assert moved(shop) == 7
    assert moved(shop, amount=Decimal("0.01")) == Decimal("7.01")


@pytest.mark.parametrize(
    ("ago", "counts"),
    [(clerk_limits.CLERK_LIMIT_WINDOW, False), (clerk_limits.CLERK_LIMIT_WINDOW - STEP, True), (STEP, True)],
)
def test_24_hours_end_now(shop: Shop, ago: timedelta, counts: bool) -> None:
    assert moved(shop, at=NOW - ago) == (7 if counts else 0)
    clerk_limits.delete_expired_moves()
    assert clerk_limits.sum_recent_manual_moves({1}, shop.merchant.pk, "EUR") == (7 if counts else 0)


@pytest.mark.parametrize("status", ["APPROVED", "DECLINED", "PENDING", "IN_DOUBT"])
def test_what_was_declined_moved_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    monkeypatch.undo()
    paid = Payment.objects.get(pk=shop.api.pay().id)
    Payment.objects.filter(pk=paid.pk).update(status=status)
    found = moved(shop, payment=paid.pk, at=clock.real_now())
    assert found == (0 if status == "DECLINED" else 7)


def test_a_move_that_was_made_after_all_counts_for_whoever_approved_it_when_they_did(shop: Shop) -> None:
    """Not for who asked, and not from when it was noticed."""
    paid = shop.api.pay()
    row = Approval(
        merchant_id=shop.merchant.pk, payment_id=paid.id, amount=Decimal(9), currency="EUR", asked_by_id=1,
        decided_by_id=2, decided_at=NOW - timedelta(hours=23), follow_up=identifiers.row_id(),
    )  # fmt: skip
    for _ in range(2):
        clerk_limits.restore_approved_move(row)
    (kept,) = ClerkLimitUsage.objects.all()
    assert (kept.user, kept.at, kept.amount, kept.payment) == (2, row.decided_at, 9, row.follow_up)


def test_what_is_exactly_left_of_a_limit_may_be_moved() -> None:
    used = clerk_limits.LimitUse(over=clerk_limits.LimitScope.DAY, limit=Decimal(10), moved=Decimal("3.50"))
    assert used.left == Decimal("6.50")
    assert clerk_limits.LimitUse(over=clerk_limits.LimitScope.DAY, limit=Decimal(10), moved=Decimal(11)).left == 0


# --- on one payment -----------------------------------------------------------------------------------------------


def chain_of(ident: Any) -> Chain:
    first = Payment.objects.get(pk=ident)
    return Chain(list(Payment.objects.filter(chain=first.chain).select_related("merchant", "channel").order_by("id")))


def refund(ident: Any, by: Clerk, amount: str) -> Payment:
    order = FollowUpOrder(target=chain_of(ident).first, code="RF", amount=Decimal(amount))
    return manual_follow_up.send_follow_up(order, by, identifiers.row_id())[0]


def test_what_these_users_moved_alone_on_this_payment_counts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refunds count by user and payment: not those of others, by the API, approved or declined."""
    monkeypatch.undo()
    clara, max_, boss = clerk("clara", "40.00"), clerk("max"), clerk("boss")
    row = asked(shop, clara, "41.00")
    paid, other = row.payment_id, shop.api.pay().id

    def count(*names: str) -> Decimal:
        return clerk_limits.sum_unapproved_moves(names, chain_of(paid))

    assert count("clara", "max", "boss") == 0
    refund(paid, clara, "1.00")
    refund(paid, clara, "2.00")
    refund(paid, max_, "4.00")
    refund(other, clara, "8.00")
    shop.api.follow(paid.hex, "RF", "16.00")
    assert approvals.decide_approval(row.pk, approve=True, note="", by=boss).state == "DONE"
    assert (count("clara"), count("max"), count("boss")) == (Decimal(3), Decimal(4), Decimal(0))
    assert (count("clara", "max"), count()) == (Decimal(7), Decimal(0))
    declined = refund(paid, max_, "5.00")
    assert count("max") == Decimal(9)
    Payment.objects.filter(pk=declined.pk).update(status="DECLINED")
    assert count("max") == Decimal(4)
