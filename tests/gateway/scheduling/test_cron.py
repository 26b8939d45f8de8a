"""When a job runs next: what real Quartz answered, and what ruling D39 says where it differs.

Source: Part B, Scheduling; checks B17.2, B17.7; docs/decisions/0022.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway.scheduling.cron import compile_cron

HERE = Path(__file__).parent
BERLIN, WORLD = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")
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
