"""Until when a dispute is answered: a day of the merchant's calendar, in every zone and at every hour.

Source: docs/chargebacks.md.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargebacks import deadlines
from chargebacks.models import Chargeback
from gateway.models import Merchant

ZONES = ("UTC", "Asia/Tokyo", "America/Los_Angeles", "Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago")
EVENING = datetime(2026, 5, 13, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "opened", "due"),
    [
        ("UTC", EVENING, datetime(2026, 5, 23, 17, tzinfo=UTC)),
        ("Asia/Tokyo", EVENING, datetime(2026, 5, 24, 8, tzinfo=UTC)),  # there it is the 14th already
        ("Asia/Tokyo", EVENING.replace(hour=14, minute=59), datetime(2026, 5, 23, 8, tzinfo=UTC)),
        ("America/Los_Angeles", EVENING, datetime(2026, 5, 24, 0, tzinfo=UTC)),
        ("America/Los_Angeles", EVENING.replace(hour=3), datetime(2026, 5, 23, 0, tzinfo=UTC)),  # still the 12th
        ("Europe/Berlin", datetime(2026, 3, 20, 12, tzinfo=UTC), datetime(2026, 3, 30, 15, tzinfo=UTC)),  # summer time
    ],
)
def test_the_deadline_is_17_oclock_so_many_days_after_the_day_it_was_there(
    zone: str, opened: datetime, due: datetime
) -> None:
    assert deadlines.compute_response_deadline(Merchant(time_zone=zone), opened, None, 10) == due


@given(st.sampled_from(ZONES), st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)), st.integers(1, 60))
def test_the_deadline_is_so_many_days_of_the_calendar_away(zone: str, opened: datetime, days: int) -> None:
    at, local = opened.replace(tzinfo=UTC), ZoneInfo(zone)
    due = deadlines.compute_response_deadline(Merchant(time_zone=zone), at, None, days).astimezone(local)
    assert due.date() == at.astimezone(local).date() + timedelta(days=days)
    assert (due.hour, due.minute) == (17, 0)


@pytest.mark.parametrize(("gone", "left"), [(0, 10), (3, 7), (9, 1), (10, 1), (400, 1)])
def test_days_before_the_file_came_are_gone(gone: int, left: int) -> None:
    """The scheme's days began with its own day; one is left to ask the acquirer."""
    due = deadlines.compute_response_deadline(Merchant(time_zone="UTC"), EVENING, None, 10, gone)
    assert due.date() == EVENING.date() + timedelta(days=left)
    named = deadlines.compute_response_deadline(Merchant(time_zone="UTC"), EVENING, date(2026, 6, 1), 10, gone)
    assert named.date() == date(2026, 6, 1)


@pytest.mark.parametrize("zone", ZONES)
def test_the_acquirers_own_day_goes_before_ours(zone: str) -> None:
    due = deadlines.compute_response_deadline(Merchant(time_zone=zone), EVENING, date(2026, 6, 1))
    assert due.astimezone(ZoneInfo(zone)).isoformat()[:19] == "2026-06-01T17:00:00"


@pytest.mark.parametrize(
    ("zone", "at", "left"),
    [
        ("Asia/Tokyo", datetime(2026, 5, 23, 14, 59, tzinfo=UTC), 1),
        ("Asia/Tokyo", datetime(2026, 5, 23, 15, tzinfo=UTC), 0),
        ("America/Los_Angeles", datetime(2026, 5, 23, 6, 59, tzinfo=UTC), 2),
        ("America/Los_Angeles", datetime(2026, 5, 23, 7, tzinfo=UTC), 1),
        ("America/Los_Angeles", datetime(2026, 5, 25, 7, tzinfo=UTC), -1),
    ],
)
def test_days_left_change_at_the_merchants_midnight(zone: str, at: datetime, left: int) -> None:
    merchant = Merchant(time_zone=zone)
    due = datetime(2026, 5, 24, 17, tzinfo=ZoneInfo(zone))
    assert deadlines.count_days_left(Chargeback(merchant=merchant, due_at=due), at) == left
