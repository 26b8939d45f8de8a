"""What counts towards a person's limit of a day: each condition alone. Source: docs/decisions/0043."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.backoffice.follow_ups import clerk_limits
from gateway.core import clock, identifiers
from gateway.models import ClerkLimitUsage, Payment
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


def test_what_is_exactly_left_of_a_limit_may_be_moved() -> None:
    used = clerk_limits.LimitUse(over=clerk_limits.LimitScope.DAY, limit=Decimal(10), moved=Decimal("3.50"))
    assert used.left == Decimal("6.50")
    assert clerk_limits.LimitUse(over=clerk_limits.LimitScope.DAY, limit=Decimal(10), moved=Decimal(11)).left == 0
