"""`manage.py tick --forever`: timers without a broker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping

import pytest

from gateway.management.commands import tick
from gateway.timers import due_times, registry

TIMER = next(iter(registry.TIMERS))


@pytest.fixture
def own_handler() -> Iterator[None]:
    """A signal that the command does not handle fails the test and not the run of all."""

    def fail(_signal: int, _frame: object) -> None:
        raise AssertionError("not handled")

    before = signal.signal(signal.SIGTERM, fail)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("own_handler")
def test_a_tick_that_is_told_to_end_begins_nothing_more_and_lets_its_runs_finish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finished = []

    def choose(_self: object, free: Mapping[str, float]) -> list[str]:
        return [TIMER] if TIMER in free else []

    def run(name: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(2 * tick.TICK_POLL_S)
        finished.append(name)

    monkeypatch.setattr(tick, "TICK_POLL_S", 0.05)
    monkeypatch.setattr(registry, "run_timer_now", run)
    monkeypatch.setattr(due_times.DueLooks, "choose_timers", choose)
    tick._for_ever({TIMER: registry.TIMERS[TIMER]})
    assert finished == [TIMER]


@pytest.mark.usefixtures("own_handler")
def test_a_tick_that_is_told_to_end_while_it_looks_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []

    def choose(_self: object, free: Mapping[str, float]) -> list[str]:
        os.kill(os.getpid(), signal.SIGTERM)
        return [TIMER]

    monkeypatch.setattr(tick, "TICK_POLL_S", 0.05)
    monkeypatch.setattr(registry, "run_timer_now", began.append)
    monkeypatch.setattr(due_times.DueLooks, "choose_timers", choose)
    tick._for_ever({TIMER: registry.TIMERS[TIMER]})
    assert began == []
