"""Plans of subscription jobs: which parameter is at fault, and which moments a plan's terms and bounds are.

Source: Part B, Scheduling; ruling D39; docs/decisions/0022.
"""

from __future__ import annotations

import calendar
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.catalogue.errors import ParameterError
from gateway.scheduling import job_plans
from gateway.scheduling.job_plans import (
    NEVER_RUNS_CODE,
    CalendarPeriod,
    InvalidJobPlanError,
    JobPlan,
    build_cron_expression,
    plan_from_parameters,
)
from gateway.scheduling.models import Job

SECOND = timedelta(seconds=1)
WORLD, BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")
AUCKLAND, ANGELES = ZoneInfo("Pacific/Auckland"), ZoneInfo("America/Los_Angeles")
ZONES = st.sampled_from([WORLD, BERLIN, AUCKLAND, ANGELES])
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAILY = "0 0 0 * * ? *"


def wall(text: str, zone: ZoneInfo) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def plan(**changed: Any) -> JobPlan:
    return replace(JobPlan(expression=DAILY, zone=WORLD, starts_at=NOW, ends_at=None), **changed)


def test_parts_that_are_too_long_together_are_named_with_their_code() -> None:
    every = ",".join(map(str, range(60)))
    with pytest.raises(InvalidJobPlanError) as caught:
        plan_from_parameters({"second": every, "minute": every}, ZoneInfo("UTC"), datetime(2026, 1, 1, tzinfo=UTC))
    (error,) = caught.value.errors
    assert (error.name, error.code) == ("job.expression", NEVER_RUNS_CODE)
    assert "characters together" in error.message


# --- periods ------------------------------------------------------------------------------------------------------

MORNINGS_AND_EVENINGS = st.sampled_from(["00:10:00", "08:00:00", "23:50:00"])
"""The day there and the day in UTC differ at some of them, whether east or west of Greenwich."""


@given(
    zone=ZONES,
    day=st.dates(datetime(2024, 1, 1).date(), datetime(2029, 12, 31).date()),
    time=MORNINGS_AND_EVENINGS,
    months=st.integers(1, 40),
    unit=st.sampled_from(["MONTH", "YEAR"]),
)
def test_months_keep_the_day_and_the_time_there_or_take_the_months_last_day(
    zone: ZoneInfo, day: Any, time: str, months: int, unit: str
) -> None:
    begin = wall(f"{day}T{time}", zone)
    found = CalendarPeriod(unit=unit, number=months).after(begin, zone).astimezone(zone)
    year, month = day.year, day.month
    for _ in range(months * (12 if unit == "YEAR" else 1)):
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    expected = (year, month, min(day.day, calendar.monthrange(year, month)[1]), time)
    assert (found.year, found.month, found.day, f"{found:%H:%M:%S}") == expected


@given(
    zone=ZONES,
    day=st.dates(datetime(2024, 1, 1).date(), datetime(2029, 12, 31).date()),
    time=MORNINGS_AND_EVENINGS,
    number=st.integers(1, 60),
)
def test_days_and_weeks_keep_the_time_there_and_hours_are_hours(
    zone: ZoneInfo, day: Any, time: str, number: int
) -> None:
    begin = wall(f"{day}T{time}", zone)
    for unit, days in (("DAY", 1), ("WEEK", 7)):
        found = CalendarPeriod(unit=unit, number=number).after(begin, zone).astimezone(zone)
        assert (found.date(), f"{found:%H:%M:%S}") == (day + timedelta(days=days * number), time)
    for unit, seconds in (("HOUR", 3600), ("MINUTE", 60), ("SECOND", 1)):
        assert CalendarPeriod(unit=unit, number=number).after(begin, zone) - begin == timedelta(
            seconds=seconds * number
        )


def test_terms_count_from_the_first_day_and_not_from_a_shorter_months_last() -> None:
    """The 31st comes back after February."""
    period, begin = CalendarPeriod(unit="MONTH", number=1), wall("2026-01-31T09:00:00", BERLIN)
    found = [period.after(begin, BERLIN, times).astimezone(BERLIN) for times in range(1, 5)]
    assert [f"{one:%m-%d %H}" for one in found] == ["02-28 09", "03-31 09", "04-30 09", "05-31 09"]


# --- bounds -------------------------------------------------------------------------------------------------------


def test_a_run_at_the_start_counts_and_one_at_the_end_does_not() -> None:
    found = plan(starts_at=NOW, ends_at=NOW + timedelta(days=2))
    days = [NOW, NOW + timedelta(days=1)]
    assert found.runs(NOW - timedelta(days=9), 9) == days
    assert found.next_run(NOW - timedelta(days=9)) == days[0]
    assert found.next_run(days[0]) == days[1]
    assert found.next_run(days[1]) is None
    later = plan(starts_at=NOW + SECOND, ends_at=NOW + timedelta(days=1) + SECOND)
    assert later.runs(NOW - timedelta(days=9), 9) == [days[1]]
    assert later.next_run(NOW - timedelta(days=9)) == days[1]


def test_what_follows_the_last_run_is_the_plans_end_or_a_second() -> None:
    end = NOW + timedelta(days=2, hours=5)
    bounded = plan(ends_at=end)
    assert bounded.following(NOW) == (NOW + timedelta(days=1), end)
    assert bounded.following(NOW + timedelta(days=2)) == (end, end)
    endless = plan(expression="0 0 0 1 2 ? 2026")
    assert endless.following(NOW) == (datetime(2026, 2, 1, tzinfo=UTC), None)
    last = datetime(2026, 2, 1, tzinfo=UTC)
    assert endless.following(last) == (last + SECOND, last + SECOND)


@pytest.mark.parametrize("zone", [AUCKLAND, ANGELES, BERLIN])
def test_start_and_end_are_the_zones_and_the_end_counts(zone: ZoneInfo) -> None:
    sent = {"expression": DAILY, "startDate": "2026-07-01 00:00:00", "endDate": "2026-07-03 00:00:00"}
    found = plan_from_parameters(sent, zone, NOW)
    days = [wall(f"2026-07-0{day}T00:00:00", zone) for day in (1, 2, 3)]
    assert (found.starts_at, found.ends_at) == (days[0], days[2] + SECOND)
    assert found.runs(NOW, 9) == days


def test_of_an_end_and_a_duration_the_earlier_one_ends_the_plan() -> None:
    duration = {"durationUnit": "MONTH", "durationNumber": "2"}
    start = {"expression": DAILY, "startDate": "2026-02-01 00:00:00"}
    for end, expected in (("2026-03-10", "2026-03-10T00:00:01"), ("2026-05-10", "2026-04-01T00:00:00")):
        sent = {**start, **duration, "endDate": f"{end} 00:00:00"}
        assert plan_from_parameters(sent, WORLD, NOW).ends_at == wall(expected, WORLD)


def test_a_start_that_is_over_is_now_for_a_new_job_and_stays_for_one_that_is_changed() -> None:
    """Terms count from the start: a changed job's past start is its own."""
    over, began = {"expression": DAILY, "startDate": "2025-11-05 00:00:00"}, NOW - timedelta(days=40)
    assert plan_from_parameters(over, WORLD, NOW).starts_at == NOW
    assert plan_from_parameters(over, WORLD, NOW, began=began).starts_at == wall("2025-11-05T00:00:00", WORLD)
    ahead = over | {"startDate": "2026-11-05 00:00:00"}
    for before in (None, began):
        assert plan_from_parameters(ahead, WORLD, NOW, began=before).starts_at == wall("2026-11-05T00:00:00", WORLD)
    without = {"expression": DAILY}
    assert plan_from_parameters(without, WORLD, NOW).starts_at == NOW
    assert plan_from_parameters(without, WORLD, NOW, began=began).starts_at == began
    terms = {"durationUnit": "MONTH", "durationNumber": "2"}
    assert plan_from_parameters(without | terms, WORLD, NOW, began=NOW - timedelta(days=31)).ends_at == wall(
        "2026-02-01T00:00:00", WORLD
    )


# --- notice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", [WORLD, AUCKLAND, ANGELES])
@pytest.mark.parametrize("term", range(1, 10))
def test_a_notice_at_the_last_moment_of_a_term_ends_that_term(zone: ZoneInfo, term: int) -> None:
    """And a second later the next one; B17.6."""
    start = wall("2026-01-31T23:30:00", zone)
    month = CalendarPeriod(unit="MONTH", number=1)
    callable_ = plan(zone=zone, starts_at=start, duration=month, notice_callable=Job.Callable.DURATION_END)
    end, after = month.after(start, zone, term), month.after(start, zone, term + 1)
    assert callable_.end_by_notice(end - SECOND) == end
    assert callable_.end_by_notice(end) == end
    assert callable_.end_by_notice(end + SECOND) == after
    in_time = replace(callable_, notice=CalendarPeriod(unit="DAY", number=3))
    given_at = (end.astimezone(zone).replace(tzinfo=None) - timedelta(days=3)).replace(tzinfo=zone).astimezone(UTC)
    assert in_time.end_by_notice(given_at) == end
    assert in_time.end_by_notice(given_at + SECOND) == after


@pytest.mark.parametrize("called", [Job.Callable.ANYTIME, ""])
def test_a_notice_at_any_time_awaits_no_end_of_a_term(called: str) -> None:
    terms = plan(duration=CalendarPeriod(unit="MONTH", number=1), notice_callable=called)
    assert terms.end_by_notice(NOW) == NOW
    notice = CalendarPeriod(unit="DAY", number=3)
    assert replace(terms, notice=notice).end_by_notice(NOW) == NOW + timedelta(days=3)


def test_a_notice_never_moves_an_end_back() -> None:
    end = NOW + timedelta(days=10)
    notice = CalendarPeriod(unit="DAY", number=20)
    assert plan(ends_at=end, notice=notice).end_by_notice(NOW) == end
    assert plan(ends_at=end, notice=notice).end_by_notice(NOW - timedelta(days=15)) == NOW + timedelta(days=5)
    assert plan(notice=notice).end_by_notice(NOW) == NOW + timedelta(days=20)


def test_a_notice_period_alone_is_callable_at_any_time() -> None:
    notice = {"expression": DAILY, "noticeUnit": "MONTH", "noticeNumber": "1"}
    assert plan_from_parameters(notice, WORLD, NOW).notice_callable == Job.Callable.ANYTIME
    assert plan_from_parameters({"expression": DAILY}, WORLD, NOW).notice_callable == ""


@pytest.mark.parametrize(
    ("sent", "days"),
    [
        ({"dayOfMonth": "?", "dayOfWeek": "2"}, ("?", "2")),
        ({"dayOfWeek": "?"}, ("1", "?")),
        ({"dayOfWeek": "2"}, ("?", "2")),
        ({"dayOfMonth": "?"}, ("?", "1")),
        ({"dayOfMonth": "5"}, ("5", "?")),
        ({}, ("1", "?")),
    ],
)
def test_one_of_the_two_days_is_left_open(sent: dict[str, str], days: tuple[str, str]) -> None:
    """D39."""
    _, _, _, of_month, _, of_week, _ = build_cron_expression({"hour": "1"} | sent).split()
    assert (of_month, of_week) == days


@pytest.mark.parametrize(
    ("sent", "name", "period", "fault"),
    [
        ({}, "duration", None, None),
        ({"durationUnit": "MONTH", "durationNumber": "2"}, "duration", ("MONTH", 2), None),
        ({"durationUnit": "MONTH", "durationNumber": "1"}, "duration", ("MONTH", 1), None),
        (
            {"durationUnit": "MONTH", "durationNumber": "0"},
            "duration",
            None,
            ("durationNumber", "must be 1 or more", "0"),
        ),
        ({"noticeUnit": "DAY", "noticeNumber": "0"}, "notice", ("DAY", 0), None),
        ({"noticeUnit": "DAY"}, "notice", None, ("noticeNumber", "is required with noticeUnit", None)),
        ({"noticeNumber": "3"}, "notice", None, ("noticeUnit", "is required with noticeNumber", None)),
        ({"noticeNumber": "3"}, "duration", None, None),
    ],
    ids=str,
)
def test_a_period_has_a_unit_and_a_number(
    sent: dict[str, str],
    name: str,
    period: tuple[str, int] | None,
    fault: tuple[str, str, str | None] | None,
) -> None:
    errors: list[ParameterError] = []
    found = job_plans._parse_period(sent, name, "1.2.3", errors)
    assert found == (CalendarPeriod(unit=period[0], number=period[1]) if period else None)
    told = [(one.name, one.message, one.value, one.code, one.known) for one in errors]
    assert told == ([(f"job.{fault[0]}", fault[1], fault[2], "1.2.3", True)] if fault else [])
