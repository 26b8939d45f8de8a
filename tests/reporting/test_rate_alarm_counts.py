"""What alarms of approval rates are counted from, and which merchants are looked at: each condition by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.models import Merchant, Payment
from reporting.approvals import alarms
from reporting.approvals.models import RateAlarm
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
SINCE, UNTIL = datetime(2030, 3, 5, 9, tzinfo=UTC), datetime(2030, 3, 5, 15, tzinfo=UTC)


def put(shop: Shop, **values: Any) -> None:
    """A declined attempt at an acquirer within the window."""
    fields = {"created_at": SINCE + SECOND, "status": "DECLINED", "result_code": "800.100.152", "connector": "stub"}
    Payment.objects.filter(pk=shop.api.pay().id).update(**fields | values)


def count(shop: Shop) -> tuple[int, int, int]:
    """Attempts and approvals of the window, and attempts of the days before."""
    found = [one for one in alarms._load_days(shop.merchant, SINCE, UNTIL) if one.kind == "all"]
    if not found:
        return 0, 0, 0
    approved, attempts = found[0].now
    return attempts, approved, found[0].before_sum[1]


@pytest.mark.parametrize(
    ("values", "counted"),
    [
        ({}, (2, 1, 0)),
        ({"status": "APPROVED"}, (2, 2, 0)),
        ({"payment_type": "PA"}, (2, 1, 0)),
        ({"payment_type": "CD"}, (1, 1, 0)),
        ({"chain": UUID(int=7)}, (1, 1, 0)),
        ({"amount": 0}, (1, 1, 0)),
        ({"status": "PENDING"}, (1, 1, 0)),
        ({"connector": ""}, (1, 1, 0)),
        ({"connector": "nobody"}, (1, 1, 0)),
        ({"created_at": SINCE}, (2, 1, 0)),
        ({"created_at": SINCE - SECOND}, (1, 1, 0)),
        ({"created_at": UNTIL - SECOND}, (2, 1, 0)),
        ({"created_at": UNTIL}, (1, 1, 0)),
        ({"created_at": SINCE - DAY}, (1, 1, 1)),
        ({"created_at": UNTIL - DAY}, (1, 1, 0)),
        ({"created_at": SINCE - alarms.ALARM_DAYS * DAY}, (1, 1, 1)),
        ({"created_at": SINCE - (alarms.ALARM_DAYS + 1) * DAY}, (1, 1, 0)),
    ],
    ids=str,
)
def test_first_attempts_of_the_same_hours_are_counted(
    shop: Shop, stranger: Shop, values: dict[str, Any], counted: tuple[int, int, int]
) -> None:
    """Another merchant's are beside them."""
    put(stranger)
    put(stranger, created_at=SINCE - DAY)
    put(shop, status="APPROVED")
    put(shop, **values)
    assert count(shop) == counted


@pytest.mark.parametrize("ahead", [timedelta(0), 9 * DAY, -9 * DAY])
def test_a_merchant_is_looked_at_while_it_has_payments_or_an_alarm(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    looked: list[Merchant] = []
    monkeypatch.setattr(alarms, "_watch_merchant", lambda merchant: bool(looked.append(merchant)))
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    real = clock.real_now()
    now = real + ahead

    def watched() -> set[str]:
        looked.clear()
        alarms.watch_approval_rates()
        return {one.name for one in looked}

    put(stranger, created_at=real - alarms.ALARM_WINDOW - timedelta(minutes=1))
    put(shop, created_at=now - alarms.ALARM_WINDOW - timedelta(minutes=1))
    assert watched() == set()
    put(shop, created_at=now - alarms.ALARM_WINDOW + timedelta(minutes=1))
    assert watched() == {shop.merchant.name}
    alarm = RateAlarm.objects.create(
        merchant=stranger.merchant, kind="all", segment="", since=real - DAY, until=real, found_at=real, attempts=50,
        approved=10, before_attempts=500, before_approved=400, chance=1e-9,
    )  # fmt: skip
    assert watched() == {shop.merchant.name, stranger.merchant.name}
    RateAlarm.objects.filter(pk=alarm.pk).update(ended_at=real)
    assert watched() == {shop.merchant.name}
