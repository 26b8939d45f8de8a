"""Which payments the choice of retries learns from: each condition of the statement that counts, by itself.

Source: docs/decisions/0128.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.models import Merchant, Payment
from gateway.scheduling import retry_statistics
from gateway.scheduling.models import RetryRate
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
SINCE, UNTIL = datetime(2030, 3, 1, tzinfo=UTC), datetime(2030, 4, 1, tzinfo=UTC)
FIRST_AT = datetime(2030, 3, 5, 9, tzinfo=UTC)
NO_MONEY, APPROVED = "800.100.155", "000.100.110"


def charge(shop: Shop, at: datetime, *, approved: bool, **values: Any) -> UUID:
    """A merchant's charge of the order "o-1"; the others' too, so that a number says whose only with its merchant."""
    row = Payment.objects.get(pk=shop.api.pay().id)
    fields = {
        "created_at": at, "status": "APPROVED" if approved else "DECLINED", "merchant_transaction_id": "o-1",
        "result_code": APPROVED if approved else NO_MONEY, "request": {"standingInstruction": {"source": "MIT"}},
        "connector": "stub", "test_mode": "EXTERNAL",
    }  # fmt: skip
    Payment.objects.filter(pk=row.pk).update(**fields | values)
    return row.pk


def read(shop: Shop, *, with_internal: bool = False) -> tuple[list[UUID], int]:
    """The retries of the channel's March, and how many approvals it counts."""
    found = retry_statistics.read_past_charges(
        shop.merchant.pk, shop.channel.pk, SINCE, UNTIL, with_internal=with_internal
    )
    return [one.payment for one in found.retries], sum(one.approved for one in found.attempts)


@pytest.fixture
def first(shop: Shop, stranger: Shop) -> UUID:
    """A declined charge, beside another merchant's under the same number, at the same time."""
    charge(stranger, FIRST_AT - SECOND, approved=False)
    charge(stranger, FIRST_AT + SECOND, approved=True)
    return charge(shop, FIRST_AT, approved=False)


@pytest.mark.parametrize(
    ("values", "retry", "counted"),
    [
        ({}, True, True),
        ({"payment_type": "PA"}, True, True),
        ({"payment_type": "CD"}, False, False),
        ({"chain": UUID(int=7)}, False, False),
        ({"amount": 0}, False, False),
        ({"means": "bankAccount"}, False, False),
        ({"status": "PENDING"}, False, False),
        ({"connector": ""}, False, False),
        ({"connector": "nobody"}, False, False),
        ({"test_mode": "INTERNAL"}, False, False),
        ({"test_mode": ""}, True, True),
        ({"created_at": UNTIL}, False, False),
        ({"created_at": SINCE - SECOND}, False, False),
        # Counted as an attempt, and no retry.
        ({"merchant_transaction_id": ""}, False, True),
        ({"merchant_transaction_id": "o-2"}, False, True),
        ({"request": {"standingInstruction": {"source": "CIT"}}}, False, True),
        ({"request": {}}, False, True),
        ({"created_at": FIRST_AT - SECOND}, False, True),
        ({"created_at": FIRST_AT + 15 * DAY}, True, True),
        ({"created_at": FIRST_AT + 15 * DAY + SECOND}, False, True),
    ],
    ids=str,
)
def test_a_retry_is_a_charge_of_the_merchant_after_a_decline_of_the_same(
    shop: Shop, first: UUID, values: dict[str, Any], retry: bool, counted: bool
) -> None:
    second = charge(shop, FIRST_AT + DAY, approved=True, **values)
    assert read(shop) == ([second] if retry else [], int(counted))


def test_what_the_simulator_answered_is_read_where_it_is_asked_for(shop: Shop, first: UUID) -> None:
    second = charge(shop, FIRST_AT + DAY, approved=True, test_mode="INTERNAL")
    assert read(shop, with_internal=True) == ([second], 1)


def test_what_follows_an_approval_is_no_retry(shop: Shop, first: UUID) -> None:
    Payment.objects.filter(pk=first).update(status="APPROVED", result_code=APPROVED)
    charge(shop, FIRST_AT + DAY, approved=True)
    assert read(shop) == ([], 2)


def test_each_channel_has_its_own_past(shop: Shop, first: UUID) -> None:
    charge(shop, FIRST_AT + DAY, approved=True, channel=shop.open_channel())
    assert read(shop) == ([], 0)


def test_the_first_moment_of_a_period_belongs_to_it(shop: Shop, first: UUID) -> None:
    Payment.objects.filter(pk=first).update(created_at=SINCE)
    second = charge(shop, UNTIL - SECOND, approved=True)
    assert read(shop) == ([], 1), "more than 15 days later"
    Payment.objects.filter(pk=second).update(created_at=SINCE + DAY)
    assert read(shop) == ([second], 1)


@pytest.mark.parametrize("ahead", [timedelta(0), 300 * DAY, -300 * DAY])
def test_a_count_is_of_180_days_by_each_merchants_clock(shop: Shop, stranger: Shop, ahead: timedelta) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    real = clock.real_now()
    now = real + ahead
    for at in (now - 180 * DAY, now, now + SECOND, now - 180 * DAY - SECOND):
        charge(shop, at, approved=True)
    charge(stranger, real, approved=True)
    retry_statistics.count_outcomes(real)
    hours = RetryRate.objects.filter(cell="hour", issuer="")
    assert sum(one.tries for one in hours) == 3
