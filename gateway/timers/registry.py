"""Timers: each kind of timed work is one timer, and the database holds its due times.

A timer finds rows whose time has come and acts on each once. What wakes it does not matter: Celery beat,
`manage.py tick`, a wake-up after a commit, or the test environment's clock when it is moved. config.timers lists all.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, Protocol

import structlog
from django.db import DatabaseError, InterfaceError, connection

from gateway import tracing
from gateway.core import clock
from gateway.db.database_clock import WrongClockError, require_right_clock
from gateway.db.sessions import keep_session
from gateway.db.statement import execute_sql
from gateway.models import Merchant

RUN_STATISTICS_INTERVAL: Final = timedelta(seconds=5)
"""How often a process writes the statistics of its runs of one timer: a tick that finds nothing writes nothing."""
MAX_TIMER_NAME_CHARS: Final = 40
SWEEP_INTERVAL_S: Final = 60.0
"""How often timers run that only delete what is past its retention."""
MAX_SWEPT_ROWS: Final = 10_000
"""Most rows that one such run deletes; the next run continues."""

log = structlog.get_logger(__name__)


def interval_sql(length: timedelta) -> str:
    """``length`` as SQL, for an ``earliest_due``."""
    return f"interval '{length.total_seconds():.0f} seconds'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """One kind of timed work. It follows real time: moving a merchant's clock does not touch it.

    ``run``: do what is due now; returns how many things it did. It takes rows by lease or compare-and-set, so that two
    runs at once do nothing twice, and returns when nothing due is left (or after a bounded batch, when more than that
    is due: then it returns more than zero).
    ``every_s``: how often beat wakes it at most, unless the back office says otherwise.
    ``earliest_due``: an SQL query of one value, the earliest due time of its rows over all merchants, NULL when nothing
    waits. It may be earlier than what a run finds, never later. Beat wakes the timer when that time has come; without
    it at every interval (gateway.timers.due_times).
    ``is_off``: whether it has nothing to do by the settings, a folder that is not set: beat does not wake it then.
    ``at_once``: how many runs of it there may be at a time, on all machines together. One is enough for most; with two
    a wake-up that comes while a run is about to end is not put off to the next tick.
    """

    name: str
    about: str
    run: Callable[[], int]
    every_s: float = 1.0
    at_once: int = 1
    earliest_due: str = ""
    is_off: Callable[[], bool] = bool


class MerchantRun(Protocol):
    """Do what is due now, for one merchant or for all."""

    def __call__(self, merchant: Merchant | None = None, /) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MerchantTimer(Timer):
    """Timed work that is due by the merchants' clocks, and so is its ``earliest_due``.

    ``next_at``: when this merchant's next thing falls due, by the merchant's clock; None when nothing waits.
    """

    run: MerchantRun
    next_at: Callable[[Merchant], datetime | None]


_TIMERS: Final[dict[str, Timer]] = {}
TIMERS: Final[Mapping[str, Timer]] = MappingProxyType(_TIMERS)
"""Name → timer, in the order of registration."""


def register_timer(timer: Timer) -> None:
    """Register ``timer``; config does so when it is loaded."""
    if len(timer.name) > MAX_TIMER_NAME_CHARS or timer.at_once < 1 or timer.every_s <= 0:
        raise ValueError(
            f"timer {timer.name!r}: a name up to {MAX_TIMER_NAME_CHARS} characters, and numbers above zero"
        )
    _TIMERS[timer.name] = timer


def run_timer_now(name: str) -> int | None:
    """Run the timer ``name`` for all merchants; returns how many things it did. None when it already runs elsewhere
    as often as it may, this machine's clock is wrong, or it failed: a failure is logged and counted, and never raised.
    What is due stays due.

    Raises KeyError for an unknown name.
    """
    timer = TIMERS[name]
    began, at = time.perf_counter(), clock.real_now()
    done: int | None = None
    busy, failure = False, ""
    try:
        require_right_clock()
        with _claim_slot(timer) as free:
            busy = not free
            if free:
                with tracing.trace_span(f"timer {name}") as span:
                    done = timer.run()
                    span.set(done=done)
    except WrongClockError:  # logged where it is measured
        failure = WrongClockError.__qualname__
    except Exception as fault:  # one timer must not keep the others waiting
        log.exception("timer_failed", timer=name)
        failure = f"{type(fault).__module__}.{type(fault).__qualname__}"
        if isinstance(fault, DatabaseError | InterfaceError):
            connection.close()  # the next run opens a new one
    _record_run(name, at, int((time.perf_counter() - began) * 1000), done=done or 0, busy=busy, failure=failure)
    return done


def run_all_timers() -> dict[str, int]:
    """Run every timer once, in turn; timer → things done. One that runs elsewhere, or failed, counts 0."""
    return {name: run_timer_now(name) or 0 for name in tuple(TIMERS)}


# Two runs of one timer are harmless, since rows are leased; they would only be in each other's way. The lock is the
# session's: it ends with a process that dies.
@contextmanager
def _claim_slot(timer: Timer) -> Iterator[bool]:
    """Yields whether one more run of ``timer`` is allowed, and holds its place for the time of the block."""
    kind = zlib.crc32(f"timer {timer.name}".encode()) - 2**31
    with keep_session():
        taken = next((slot for slot in range(timer.at_once) if _try_lock("pg_try_advisory_lock", kind, slot)), None)
        try:
            yield taken is not None
        finally:
            if taken is not None:
                with suppress(DatabaseError, InterfaceError):
                    _try_lock("pg_advisory_unlock", kind, taken)


def _try_lock(what: str, kind: int, slot: int) -> bool:
    return bool(execute_sql(f"SELECT {what}(%s::int, %s::int)", [kind, slot])[0][0])


@dataclass(slots=True, kw_only=True)
class _RunStatistics:
    """This process's unwritten statistics of one timer."""

    noted: float = field(default=-RUN_STATISTICS_INTERVAL.total_seconds())
    runs: int = 0
    done: int = 0
    busy: int = 0
    failures: int = 0
    failed_at: datetime | None = None
    last_failure: str = ""


_sums: Final[dict[str, _RunStatistics]] = {}
_summing: Final = threading.Lock()
_NOTE: Final = """
INSERT INTO gateway_timerrun AS t (name, last_at, last_ms, runs, done, busy, failures, failed_at, last_failure)
VALUES (%s::text, %s::timestamptz, %s::int, %s::bigint, %s::bigint, %s::bigint, %s::bigint, %s::timestamptz, %s::text)
ON CONFLICT (name) DO UPDATE SET
    last_at = greatest(t.last_at, EXCLUDED.last_at), last_ms = EXCLUDED.last_ms, runs = t.runs + EXCLUDED.runs,
    done = t.done + EXCLUDED.done, busy = t.busy + EXCLUDED.busy, failures = t.failures + EXCLUDED.failures,
    failed_at = coalesce(EXCLUDED.failed_at, t.failed_at),
    last_failure = CASE WHEN EXCLUDED.failures > 0 THEN EXCLUDED.last_failure ELSE t.last_failure END
"""


def _record_run(name: str, at: datetime, took_ms: int, *, done: int, busy: bool, failure: str) -> None:
    """Add up, and write when the interval is over. Statistics only: while the database is away some are lost."""
    with _summing:
        statistics = _sums.setdefault(name, _RunStatistics())
        statistics.done += done
        statistics.busy += busy
        statistics.runs += not busy
        if failure:
            statistics.failures, statistics.failed_at, statistics.last_failure = (
                statistics.failures + 1,
                at,
                failure[:200],
            )
        now = time.monotonic()
        if busy or now - statistics.noted < RUN_STATISTICS_INTERVAL.total_seconds():
            return
        _sums[name] = _RunStatistics(noted=now)
    values = [
        name,
        at,
        took_ms,
        statistics.runs,
        statistics.done,
        statistics.busy,
        statistics.failures,
        statistics.failed_at,
        statistics.last_failure,
    ]
    try:
        execute_sql(_NOTE, values)
    except (DatabaseError, InterfaceError):
        log.warning("timer_run_not_recorded", timer=name)
        connection.close()
