"""Timers: each runs once at a time, whatever wakes it; ticks that the back office owns. House rule 6."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from config import beat
from config.timers import TIMERS
from gateway import metrics, tasks
from gateway.models import TimerRun
from gateway.timers import registry
from tests.support.threads import at_once, times

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
Add = Callable[..., registry.Timer]


@pytest.fixture
def add() -> Iterator[Add]:
    """Make a timer known for the time of the test."""
    names: list[str] = []

    def make(name: str, run: Callable[[], int], **more: float) -> registry.Timer:
        timer = registry.Timer(name=name, about="Of a test.", run=run, **more)  # type: ignore[arg-type]
        registry.register_timer(timer)
        names.append(name)
        registry._sums.pop(name, None)
        return timer

    yield make
    for name in names:
        registry._TIMERS.pop(name, None)


# --- running -------------------------------------------------------------------------------------------------------


def test_the_products_timers_are_known_and_each_says_what_it_does() -> None:
    """config.timers lists all of them."""
    assert set(registry.TIMERS) >= {timer.name for timer in TIMERS}
    assert len({timer.name for timer in TIMERS}) == len(TIMERS)
    assert all(timer.about.endswith(".") for timer in TIMERS)


def test_the_document_names_every_timer_as_it_is() -> None:
    """docs/time.md is read by people who look for what is due."""
    path = ROOT / "docs" / "time.md"
    rows = ["| timer | every s | clock | what it does |", "|---|---|---|---|"]
    for timer in TIMERS:
        whose = "merchant" if isinstance(timer, registry.MerchantTimer) else "real"
        rows.append(f"| {timer.name} | {timer.every_s:g} | {whose} | {timer.about} |")
    before, told, after = re.split("(?<=writes them -->\n)|(?=<!-- end of the timers)", path.read_text())
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(before + "\n".join(rows) + "\n" + after)
    assert told.splitlines() == rows


def test_one_timer_that_breaks_keeps_no_other_from_running(add: Add) -> None:
    """Its failure is told in the figures, in no error page."""

    def breaks() -> int:
        raise RuntimeError("4200000000000000")

    add("breaks", breaks)
    add("works", lambda: 3)
    done = registry.run_all_timers()
    assert (done["breaks"], done["works"]) == (0, 3)
    row = TimerRun.objects.get(name="breaks")
    assert (row.failures, row.last_failure) == (1, "builtins.RuntimeError")
    assert TimerRun.objects.get(name="works").done == 3


def test_the_figures_tell_how_each_timer_does(add: Add) -> None:
    """Metrics per timer: last run, lag, done."""
    add("counts", lambda: 2)
    registry.run_timer_now("counts")
    text = metrics.render_metrics().decode()
    assert 'tollhouse_timer_items_total{timer="counts"} 2.0' in text
    assert 'tollhouse_timer_lag_seconds{timer="counts"} 0.0' in text
    assert 'tollhouse_timer_failures_total{timer="counts"} 0.0' in text


def test_runs_are_noted_seldom_and_none_is_forgotten(
    add: Add, django_assert_max_num_queries: Callable[..., object]
) -> None:
    """An idle tick writes nothing."""
    add("often", lambda: 1)
    registry.run_timer_now("often")
    for _ in range(5):
        registry.run_timer_now("often")
    assert TimerRun.objects.get(name="often").done == 1
    registry._sums["often"].noted = float("-inf")
    registry.run_timer_now("often")
    row = TimerRun.objects.get(name="often")
    assert (row.done, row.runs) == (7, 7)


@pytest.mark.django_db(transaction=True)
def test_a_timer_runs_as_often_at_a_time_as_it_says(transactional_db: None, add: Add) -> None:
    """A slow one is not started again by the next tick; another one that is woken meanwhile is not in its way."""
    began, go_on = threading.Semaphore(0), threading.Event()

    def waits() -> int:
        began.release()
        assert go_on.wait(30)
        return 1

    add("alone", waits)
    add("in pairs", waits, at_once=2)
    found: list[int | None] = []

    def later() -> None:
        for _ in range(3):
            assert began.acquire(timeout=30)
        found.extend(
            at_once(*times(4, lambda: registry.run_timer_now("alone")), lambda: registry.run_timer_now("in pairs"))
        )
        go_on.set()

    watcher = threading.Thread(target=later)
    watcher.start()
    done = at_once(lambda: registry.run_timer_now("alone"), *times(2, lambda: registry.run_timer_now("in pairs")))
    watcher.join(30)
    assert done == [1, 1, 1]
    assert found == [None] * 5
    assert registry.run_timer_now("alone") == 1


def test_the_task_of_a_timer_that_is_no_more_does_nothing() -> None:
    """A message of an older release."""
    assert tasks.run_timer("tick") is None


@pytest.mark.parametrize("wrong", [{"name": "x" * 41}, {"at_once": 0}, {"every_s": 0}])
def test_a_timer_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    values = {"name": "wrong", "about": "No.", "run": lambda: 0} | wrong
    with pytest.raises(ValueError, match="timer"):
        registry.register_timer(registry.Timer(**values))  # type: ignore[arg-type]
    assert "wrong" not in registry.TIMERS


def test_the_command_does_every_timer_without_a_broker(add: Add) -> None:
    """`manage.py tick`."""
    add("of the command", lambda: 7)
    told = StringIO()
    call_command("tick", stdout=told)
    assert "7 of the command" in told.getvalue()
    assert [name for name in registry.TIMERS if name not in told.getvalue()] == []


# --- the ticks -----------------------------------------------------------------------------------------------------


def ticks() -> dict[str, PeriodicTask]:
    return {row.name: row for row in PeriodicTask.objects.all()}


def test_beat_gets_a_tick_for_each_timer() -> None:
    """Issue: django-celery-beat's DatabaseScheduler holds the ticks."""
    beat.sync_periodic_tasks()
    rows = ticks()
    assert set(rows) == set(registry.TIMERS)
    for name, timer in registry.TIMERS.items():
        row = rows[name]
        assert (row.task, json.loads(row.args)) == ("gateway.tasks.run_timer", [name])
        assert row.enabled
        assert row.interval.schedule.run_every.total_seconds() == timer.every_s
        assert row.expire_seconds >= 5
    assert IntervalSchedule.objects.count() == len({timer.every_s for timer in registry.TIMERS.values()})


def test_what_the_back_office_changed_stays(add: Add) -> None:
    """Issue: seen and changed in the back office."""
    beat.sync_periodic_tasks()
    slower = IntervalSchedule.objects.create(every=30, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.filter(name="recovery").update(interval=slower, expire_seconds=90)
    PeriodicTask.objects.filter(name="wallet tokens").update(enabled=False)
    beat.sync_periodic_tasks()
    rows = ticks()
    assert (rows["recovery"].interval, rows["recovery"].expire_seconds) == (slower, 90)
    assert not rows["wallet tokens"].enabled


def test_ticks_of_no_timer_vanish_and_others_are_nobodys_business(add: Add) -> None:
    add("soon gone", lambda: 0, every_s=0.5)
    every = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.create(name="tick", task="gateway.tasks.tick", interval=every)
    PeriodicTask.objects.create(name="somebody's own", task="shop.tasks.own", interval=every)
    beat.sync_periodic_tasks()
    assert ticks()["soon gone"].interval.schedule.run_every.total_seconds() == 0.5
    assert "tick" not in ticks()
    registry._TIMERS.pop("soon gone")
    beat.sync_periodic_tasks()
    assert set(ticks()) == {*registry.TIMERS, "somebody's own"}


@pytest.mark.django_db(transaction=True)
def test_two_beats_that_start_at_once_make_each_tick_once(transactional_db: None) -> None:
    """Two beats only tick twice, and a row is claimed by one."""
    at_once(*times(4, beat.sync_periodic_tasks))
    assert sorted(ticks()) == sorted(registry.TIMERS)
