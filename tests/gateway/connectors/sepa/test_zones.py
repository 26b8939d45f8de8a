"""Runs, days of collection and their end are the bank's: in its time zone, east and west of Greenwich.

Source: docs/connectors/sepa.md.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.port import ConnectorAccount
from gateway.connectors.sepa import target_calendar
from gateway.connectors.sepa.creditor import Creditor, parse_creditor
from tests.support.sepa import SETTINGS

ZONES = ("Europe/Berlin", "UTC", "America/Los_Angeles", "Asia/Tokyo", "Pacific/Kiritimati")
each_zone = pytest.mark.parametrize("zone", ZONES)


def creditor(zone: str = "Europe/Berlin", **changes: str) -> Creditor:
    return parse_creditor(ConnectorAccount(settings={**SETTINGS, "timeZone": zone, **changes}))


@pytest.mark.parametrize(
    ("zone", "now", "run"),
    [
        ("Asia/Tokyo", "2026-01-06T00:59:59Z", "2026-01-06T01:00:00Z"),
        ("Asia/Tokyo", "2026-01-06T01:00:00Z", "2026-01-07T01:00:00Z"),
        ("Asia/Tokyo", "2026-01-05T16:00:00Z", "2026-01-06T01:00:00Z"),  # the sixth there already
        ("America/Los_Angeles", "2026-01-07T02:00:00Z", "2026-01-07T18:00:00Z"),  # still the sixth, its run is over
        ("America/Los_Angeles", "2026-01-06T17:59:59Z", "2026-01-06T18:00:00Z"),
        ("America/Los_Angeles", "2026-01-10T05:00:00Z", "2026-01-12T18:00:00Z"),  # Friday night; Monday is the next
    ],
)
def test_the_next_run_is_at_the_banks_hour(zone: str, now: str, run: str) -> None:
    assert creditor(zone).next_run(datetime.fromisoformat(now)) == datetime.fromisoformat(run)


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(2025, 1, 1), datetime(2028, 12, 31)),
    st.integers(1, 14),
    st.none() | st.integers(-3, 40),
)
def test_a_collection_is_planned_on_an_open_day_with_its_lead_and_never_in_the_past(
    zone: str, now: datetime, lead: int, wanted: int | None
) -> None:
    own, at = creditor(zone, leadDays=str(lead)), now.replace(tzinfo=UTC)
    local = at.astimezone(ZoneInfo(zone)).date()
    day = local + timedelta(days=wanted) if wanted is not None else None
    due, run = own.plan(at, day)
    filed = run.astimezone(ZoneInfo(zone))
    assert run > at
    assert filed.time() == time(10)
    assert target_calendar.is_target_day(filed.date())
    assert target_calendar.is_target_day(due)
    assert target_calendar.target_day_after(filed.date(), lead) == due
    if day is not None:
        assert due >= day
        if due > target_calendar.roll_to_target_day(day):
            assert run == own.next_run(at), "later than was wished for: then as soon as can be"
    else:
        assert run == own.next_run(at)


@each_zone
@pytest.mark.parametrize(
    ("due", "after", "final"),
    [
        (date(2026, 1, 6), "1", date(2026, 1, 8)),
        (date(2026, 1, 9), "1", date(2026, 1, 13)),
        (date(2026, 1, 6), "2", date(2026, 1, 9)),
        (date(2026, 4, 2), "1", date(2026, 4, 8)),
    ],
)
def test_a_collection_is_final_at_the_end_of_the_last_day_on_which_the_bank_may_object(
    zone: str, due: date, after: str, final: date
) -> None:
    """Open days of TARGET; Easter lies between the last two. The midnight is the bank's."""
    at = creditor(zone, finalAfter=after).final_at(due)
    assert at == datetime.combine(final, time(0), ZoneInfo(zone))
    assert creditor(zone).final_at(due) is None


CLOSED = (
    "2026-01-01",
    "2026-04-03",
    "2026-04-06",
    "2026-05-01",
    "2026-12-25",
    "2027-03-26",
    "2027-03-29",
    "2028-12-26",
)
OPEN = ("2026-01-02", "2026-04-02", "2026-04-07", "2026-05-14", "2026-12-24", "2026-12-28", "2027-03-25", "2027-05-06")


def test_the_calendars_of_some_years() -> None:
    """Published by the European Central Bank; Ascension Day, Whit Monday and the 24th of December are open."""
    assert [day for day in CLOSED if target_calendar.is_target_day(date.fromisoformat(day))] == []
    assert [day for day in OPEN if not target_calendar.is_target_day(date.fromisoformat(day))] == []


@given(st.dates(date(2020, 1, 1), date(2035, 12, 31)), st.integers(0, 20))
def test_so_many_open_days_on_and_back(day: date, number: int) -> None:
    first = target_calendar.roll_to_target_day(day)
    later = target_calendar.target_day_after(day, number)
    assert target_calendar.target_day_before(later, number) == first
    between = [first + timedelta(days=one) for one in range((later - first).days)]
    assert sum(target_calendar.is_target_day(one) for one in between) == number
    assert target_calendar.target_day_before(day, number) <= first
