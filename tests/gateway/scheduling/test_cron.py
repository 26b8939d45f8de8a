"""When a job runs next: what real Quartz answered, and what ruling D39 says where it differs.

Source: Part B, Scheduling; checks B17.2, B17.7; docs/decisions/0022.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway.catalogue.structures.cron_notation import (
    CRON_DAY_OF_MONTH,
    CRON_DAY_OF_WEEK,
    CRON_HOUR,
    CRON_MINUTE,
    CRON_MONTH,
    CRON_SECOND,
    CRON_YEAR,
    CronField,
)
from gateway.scheduling import cron
from gateway.scheduling.cron import compile_cron, parse_cron_values

HERE = Path(__file__).parent
BERLIN, WORLD, LORD_HOWE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC"), ZoneInfo("Australia/Lord_Howe")
TIMES = 5


def rows(name: str) -> list[tuple[str, ZoneInfo, datetime, list[int]]]:
    found = []
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        expression, zone, begin, told = line.split("\t")
        times = [] if told == "none" else [int(one) for one in told.split()]
        found.append((expression, ZoneInfo(zone), datetime.fromtimestamp(int(begin), UTC), times))
    return found


def runs(expression: str, begin: str, zone: ZoneInfo = WORLD, number: int = TIMES) -> list[str]:
    """The next runs as the wall shows them; ``begin`` is the wall's, too."""
    moment = datetime.fromisoformat(begin).replace(tzinfo=zone)
    return [one.astimezone(zone).isoformat() for one in islice(compile_cron(expression).runs(moment, zone), number)]


# --- part by part: a mistake here would let what follows search for long --------------------------------------------


@pytest.mark.parametrize(
    ("field", "text", "values"),
    [
        (CRON_SECOND, "*", tuple(range(60))),
        (CRON_SECOND, "0", (0,)),
        (CRON_SECOND, "59", (59,)),
        (CRON_SECOND, "7,3,7", (3, 7)),
        (CRON_SECOND, "5-8", (5, 6, 7, 8)),
        (CRON_SECOND, "5-5", (5,)),
        (CRON_SECOND, "58-1", (0, 1, 58, 59)),
        (CRON_MINUTE, "*/20", (0, 20, 40)),
        (CRON_MINUTE, "/20", (0, 20, 40)),
        (CRON_MINUTE, "5/20", (5, 25, 45)),
        (CRON_MINUTE, "5-25/10", (5, 15, 25)),
        (CRON_MINUTE, "50-10/5", (0, 5, 10, 50, 55)),
        (CRON_MINUTE, "3,40/10", (3, 40, 50)),
        (CRON_HOUR, "22-2", (0, 1, 2, 22, 23)),
        (CRON_DAY_OF_MONTH, "?", tuple(range(1, 32))),
        (CRON_DAY_OF_MONTH, "30-2", (1, 2, 30, 31)),
        (CRON_MONTH, "NOV-FEB", (1, 2, 11, 12)),
        (CRON_MONTH, "JAN,6", (1, 6)),
        (CRON_MONTH, "3/4", (3, 7, 11)),
        (CRON_DAY_OF_WEEK, "FRI-MON", (1, 2, 6, 7)),
        (CRON_DAY_OF_WEEK, "7-1", (1, 7)),
        (CRON_YEAR, "2026/30", (2026, 2056, 2086)),
        (CRON_YEAR, "2098-2099", (2098, 2099)),
        (CRON_YEAR, "*", tuple(range(1970, 2100))),
    ],
)
def test_a_field_is_a_list_of_values_ranges_and_steps(field: CronField, text: str, values: tuple[int, ...]) -> None:
    assert parse_cron_values(field, text) == values


def test_each_part_of_an_expression_is_its_own_field() -> None:
    found = compile_cron("1 2 3 4 May ? 2030")
    assert (found.seconds, found.minutes, found.hours, found.months, found.years) == ((1,), (2,), (3,), (5,), (2030,))
    assert found.days(2030, 5) == [4]
    assert compile_cron("1 2 3 ? 5 4").days(2026, 2) == [4, 11, 18, 25]
    assert compile_cron("1 2 3 4 5 ?").years == tuple(range(1970, 2100))


@pytest.mark.parametrize(
    ("month_day", "year", "month", "days"),
    [
        ("1", 2026, 4, [1]),
        ("30", 2026, 4, [30]),
        ("31", 2026, 4, []),
        ("1,31", 2026, 4, [1]),
        ("1,31", 2026, 5, [1, 31]),
        ("L", 2026, 2, [28]),
        ("L", 2028, 2, [29]),
        ("L-3", 2026, 4, [27]),
        ("L-29", 2026, 4, [1]),
        ("L-30", 2026, 4, []),
        ("L-30", 2026, 5, [1]),
        ("LW", 2026, 4, [30]),
        ("LW", 2026, 2, [27]),
        ("LW", 2026, 5, [29]),
        ("L-3W", 2026, 3, [27]),
        ("L-2W", 2026, 3, [30]),
        ("12W", 2026, 8, [12]),
        ("14W", 2026, 8, [14]),
        ("15W", 2026, 8, [14]),
        ("16W", 2026, 8, [17]),
        ("17W", 2026, 8, [17]),
        ("1W", 2026, 8, [3]),
        ("2W", 2026, 8, [3]),
        ("1W", 2026, 2, [2]),
        ("2W", 2027, 5, [3]),
        ("30W", 2026, 5, [29]),
        ("31W", 2026, 5, [29]),
        ("31W", 2026, 4, []),
        ("2W", 2027, 1, [1]),
        ("30W", 2028, 1, [31]),
    ],
)
def test_days_of_a_month(month_day: str, year: int, month: int, days: list[int]) -> None:
    assert compile_cron(f"0 0 0 {month_day} * ?").days(year, month) == days


@pytest.mark.parametrize(
    ("week_day", "year", "month", "days"),
    [
        ("1", 2026, 2, [1, 8, 15, 22]),
        ("SUN", 2026, 2, [1, 8, 15, 22]),
        ("7", 2026, 2, [7, 14, 21, 28]),
        ("L", 2026, 2, [7, 14, 21, 28]),
        ("2,4", 2026, 2, [2, 4, 9, 11, 16, 18, 23, 25]),
        ("FRI-SUN", 2026, 2, [1, 6, 7, 8, 13, 14, 15, 20, 21, 22, 27, 28]),
        ("6L", 2026, 2, [27]),
        ("FRIL", 2026, 2, [27]),
        ("1L", 2026, 3, [29]),
        ("3L", 2026, 3, [31]),
        ("6#1", 2026, 2, [6]),
        ("FRI#3", 2026, 2, [20]),
        ("6#5", 2026, 2, []),
        ("6#5", 2026, 1, [30]),
        ("3#1", 2024, 10, [1]),
        ("5#5", 2024, 10, [31]),
    ],
)
def test_days_of_the_week(week_day: str, year: int, month: int, days: list[int]) -> None:
    assert compile_cron(f"0 0 0 ? * {week_day}").days(year, month) == days


@pytest.mark.parametrize(
    ("least", "found"),
    [
        ("00:00:00", "06:05:10"),
        ("05:40:50", "06:05:10"),
        ("06:00:00", "06:05:10"),
        ("06:04:50", "06:05:10"),
        ("06:05:09", "06:05:10"),
        ("06:05:10", "06:05:10"),
        ("06:05:11", "06:05:40"),
        ("06:05:40", "06:05:40"),
        ("06:05:41", "06:30:10"),
        ("06:06:00", "06:30:10"),
        ("06:30:40", "06:30:40"),
        ("06:30:41", "18:05:10"),
        ("06:31:00", "18:05:10"),
        ("07:00:00", "18:05:10"),
        ("18:30:40", "18:30:40"),
        ("18:30:41", None),
        ("18:31:00", None),
        ("19:00:00", None),
    ],
)
def test_the_first_time_of_a_day_from_a_time_on(least: str, found: str | None) -> None:
    expected = time.fromisoformat(found) if found else None
    assert compile_cron("10,40 5,30 6,18 * * ?")._time_from(time.fromisoformat(least)) == expected


@pytest.mark.parametrize(
    ("expression", "after", "found"),
    [
        ("0 0 12 * * ?", "2026-01-10T11:59:59", "2026-01-10T12:00:00"),
        ("0 0 12 * * ?", "2026-01-10T11:59:59.999999", "2026-01-10T12:00:00"),
        ("0 0 12 * * ?", "2026-01-10T12:00:00", "2026-01-11T12:00:00"),
        ("0 0 12 * * ?", "2026-01-10T12:00:00.5", "2026-01-11T12:00:00"),
        ("0 0 12 * * ?", "2026-01-31T12:00:00", "2026-02-01T12:00:00"),
        ("* * * * * ?", "2026-12-31T23:59:59", "2027-01-01T00:00:00"),
        ("0 0 12 20 * ?", "2026-01-10T15:00:00", "2026-01-20T12:00:00"),
        ("0 0 12 20 * ?", "2026-01-25T09:00:00", "2026-02-20T12:00:00"),
        ("0 0 12 5 * ?", "2026-01-10T09:00:00", "2026-02-05T12:00:00"),
        ("0 0 12 5,20 * ?", "2026-01-10T09:00:00", "2026-01-20T12:00:00"),
        ("0 0 12 10 * ?", "2026-01-10T15:00:00", "2026-02-10T12:00:00"),
        ("0 0 12 10 * ?", "2026-02-10T15:00:00", "2026-03-10T12:00:00"),
        ("0 0 12 20 3 ?", "2026-01-25T15:00:00", "2026-03-20T12:00:00"),
        ("0 0 12 20 3 ?", "2026-04-01T00:00:00", "2027-03-20T12:00:00"),
        ("0 0 12 20 2,11 ?", "2026-12-25T15:00:00", "2027-02-20T12:00:00"),
        ("0 0 12 20 3 ? 2027,2030", "2027-03-20T12:00:00", "2030-03-20T12:00:00"),
        ("0 0 12 20 3 ? 2027,2030", "2026-12-25T15:00:00", "2027-03-20T12:00:00"),
        ("0 0 12 20 3 ? 2027,2030", "2030-03-20T12:00:00", None),
        ("0 0 12 * * ?", "2099-12-31T12:00:00", None),
        ("0 0 12 30 2 ?", "2026-01-01T00:00:00", None),
    ],
)
def test_the_next_time_of_a_wall_clock_is_later(expression: str, after: str, found: str | None) -> None:
    expected = datetime.fromisoformat(found) if found else None
    assert compile_cron(expression)._next_wall(datetime.fromisoformat(after)) == expected


@pytest.mark.parametrize(
    ("zone", "wall", "twice", "instant"),
    [
        (BERLIN, "2026-10-25T01:59:59", False, "2026-10-24T23:59:59"),
        (BERLIN, "2026-10-25T02:00:00", True, "2026-10-25T01:00:00"),
        (BERLIN, "2026-10-25T02:59:59", True, "2026-10-25T01:59:59"),
        (BERLIN, "2026-10-25T03:00:00", False, "2026-10-25T02:00:00"),
        (BERLIN, "2026-03-29T01:59:59", False, "2026-03-29T00:59:59"),
        (BERLIN, "2026-03-29T02:00:00", False, "2026-03-29T01:00:00"),
        (BERLIN, "2026-03-29T02:30:00", False, "2026-03-29T01:00:00"),
        (BERLIN, "2026-03-29T02:59:59", False, "2026-03-29T01:00:00"),
        (BERLIN, "2026-03-29T03:00:00", False, "2026-03-29T01:00:00"),
        (LORD_HOWE, "2026-04-05T01:29:59", False, "2026-04-04T14:29:59"),
        (LORD_HOWE, "2026-04-05T01:30:00", True, "2026-04-04T15:00:00"),
        (LORD_HOWE, "2026-10-04T02:15:00", False, "2026-10-03T15:30:00"),
        (WORLD, "2026-10-25T02:30:00", False, "2026-10-25T02:30:00"),
    ],
    ids=str,
)
def test_a_wall_clocks_time_is_an_instant(zone: ZoneInfo, wall: str, twice: bool, instant: str) -> None:
    """The later one where it comes twice, the end of the gap where it is left out."""
    moment = datetime.fromisoformat(wall)
    assert cron._comes_twice(moment, zone) is twice
    assert cron._resolve_instant(moment, zone) == datetime.fromisoformat(instant).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "wall", "start"),
    [
        (BERLIN, "2026-10-25T02:00:00", "2026-10-25T02:00:00"),
        (BERLIN, "2026-10-25T02:40:30.5", "2026-10-25T02:00:00"),
        (BERLIN, "2026-10-25T02:59:59", "2026-10-25T02:00:00"),
        (LORD_HOWE, "2026-04-05T01:45:00", "2026-04-05T01:30:00"),
    ],
    ids=str,
)
def test_an_hour_that_comes_twice_has_a_beginning(zone: ZoneInfo, wall: str, start: str) -> None:
    assert cron._start_of_overlap(datetime.fromisoformat(wall), zone) == datetime.fromisoformat(start)


@pytest.mark.parametrize(("most", "least", "found"), [(10, 4, 4), (10, 0, 0), (10, 9, 9), (10, 99, 10), (0, 0, 0)])
def test_the_least_number_is_found_by_bisection(most: int, least: int, found: int) -> None:
    assert cron._first(most, lambda number: number >= least) == found


@pytest.mark.parametrize(
    ("expression", "moment", "found"),
    [
        ("0 30 2 * * ?", "2026-10-25T02:40:00+02:00", "2026-10-25T01:30:00"),
        ("0 30 2 * * ?", "2026-10-25T02:30:00+01:00", "2026-10-26T01:30:00"),
        ("0 30 2 * * ?", "2026-10-25T02:20:00+01:00", "2026-10-25T01:30:00"),
        ("0 0 2 * * ?", "2026-10-25T02:40:00+02:00", "2026-10-25T01:00:00"),
        ("0 30 1 * * ?", "2026-10-25T02:40:00+02:00", "2026-10-26T00:30:00"),
        ("0 30 2,4 * * ?", "2026-03-29T01:00:00+00:00", "2026-03-29T02:30:00"),
        ("0 30 2,4 * * ?", "2026-03-29T00:59:59+00:00", "2026-03-29T01:00:00"),
    ],
)
def test_the_next_run_is_after_its_moment_across_a_change_of_clocks(expression: str, moment: str, found: str) -> None:
    expected = datetime.fromisoformat(found).replace(tzinfo=UTC)
    assert compile_cron(expression).next_after(datetime.fromisoformat(moment), BERLIN) == expected


# --- whole expressions ----------------------------------------------------------------------------------------------


def test_every_case_of_real_quartz_has_the_same_times() -> None:
    """B17.2: thousands of expressions, zones and beginnings; the oracle that made them lies beside them."""
    cases = rows("cases.tsv")
    assert len(cases) > 3_500
    wrong = []
    for expression, zone, begin, told in cases:
        found = [int(one.timestamp()) for one in islice(compile_cron(expression).runs(begin, zone), TIMES)]
        if found != told:
            wrong.append((expression, zone.key, begin.isoformat(), found, told))
    assert not wrong, wrong[:5]


def test_around_changes_of_clocks_only_skipped_times_differ_from_quartz() -> None:
    """D39: Quartz leaves a skipped time out; here it fires right after the gap. Everything else is the same, once the
    hour that comes twice has come again."""
    skipped = 0
    for expression, zone, begin, told in rows("clock_changes.tsv"):
        local = begin.astimezone(zone)
        if local.replace(fold=1).utcoffset() < local.replace(fold=0).utcoffset() and not local.fold:  # type: ignore[operator]
            continue
        cron = compile_cron(expression)
        found = list(islice(cron.runs(begin, zone), 2 * TIMES))
        own = []
        for one in found:
            wall = one.astimezone(zone).replace(tzinfo=UTC)
            if cron.next_after(wall - timedelta(seconds=1), WORLD) == wall:
                own.append(int(one.timestamp()))
            else:
                skipped += 1
                assert one.astimezone(zone).utcoffset() != (one - timedelta(seconds=1)).astimezone(zone).utcoffset()
        assert own[: len(told)] == told, (expression, zone.key, begin)
    assert skipped > 20


def test_a_time_in_the_gap_fires_right_after_it() -> None:
    """D39: in Berlin 02:00 to 03:00 is skipped on 29 March 2026; all that would have fired there fires once."""
    for expression in ("0 30 2 * * ?", "0 */10 2 * * ?", "0 0 2 * * ?"):
        found = runs(expression, "2026-03-28T23:00:00", BERLIN, 1)
        assert found == ["2026-03-29T03:00:00+02:00"], expression
    assert runs("0 0 * * * ?", "2026-03-29T01:00:00", BERLIN, 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-29T04:00:00+02:00",
    ]


def test_an_overlap_fires_once() -> None:
    """D39: in Berlin 02:00 to 03:00 comes twice on 25 October 2026. Quartz takes the second one."""
    assert runs("0 30 2 * * ?", "2026-10-24T23:00:00", BERLIN, 2) == [
        "2026-10-25T02:30:00+01:00",
        "2026-10-26T02:30:00+01:00",
    ]
    first_pass = datetime(2026, 10, 25, 2, 40, tzinfo=BERLIN)
    found = compile_cron("0 30 2 * * ?").next_after(first_pass, BERLIN)
    assert found == datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN).astimezone(UTC)
    assert compile_cron("* * * * * ?").next_after(first_pass, BERLIN) == datetime(2026, 10, 25, 1, 0, 0, tzinfo=UTC)


def test_a_day_of_the_week_counts_from_sunday() -> None:
    """B17.7."""
    sunday = ["2026-02-01T00:00:00+00:00", "2026-02-08T00:00:00+00:00"]
    assert runs("0 0 0 ? * 1", "2026-01-31T12:00:00", number=2) == sunday
    assert runs("0 0 0 ? * SUN", "2026-01-31T12:00:00", number=2) == sunday


def test_the_third_monday_and_the_last_day_are_found() -> None:
    """B17.2: MON#2 is 2#2; L is the 28th or 29th of February, too."""
    assert runs("0 0 0 ? * MON#2", "2026-01-01T00:00:00", number=2) == [
        "2026-01-12T00:00:00+00:00",
        "2026-02-09T00:00:00+00:00",
    ]
    assert [one[:10] for one in runs("0 0 0 L * ?", "2028-01-31T00:00:00", number=3)] == [
        "2028-02-29",
        "2028-03-31",
        "2028-04-30",
    ]


def test_the_weekday_nearest_to_a_day_that_a_month_lacks_is_left_out() -> None:
    """docs/decisions/0022: Quartz rolls over into the next month, from some beginnings and not from others."""
    found = [one[:10] for one in runs("0 0 0 31W * ?", "2027-01-30T00:00:00", number=3)]
    assert found == ["2027-03-31", "2027-05-31", "2027-07-30"]


@pytest.mark.parametrize("expression", ["0 0 0 31 2 ?", "0 0 0 30 2 ? *", "0 0 0 1 1 ? 2025", "0 0 0 31 4,6 ?"])
def test_an_expression_that_never_comes_true_ends(expression: str) -> None:
    assert runs(expression, "2026-01-01T00:00:00") == []


def test_nothing_runs_after_the_last_year_of_the_specification() -> None:
    """Part B, Scheduling: years 1970 to 2099."""
    assert runs("0 0 0 1 1 ?", "2098-06-01T00:00:00") == ["2099-01-01T00:00:00+00:00"]


def test_what_is_no_expression_has_no_meaning() -> None:
    for text in ("0 0 0 ? * MON-FRI/2", "0 0 0 ? JAN/3 2", "0 0 0 1 * MON", "0 0 0 ? * ?", "0 0 12"):
        with pytest.raises(ValueError, match="no cron expression"):
            compile_cron(text)
