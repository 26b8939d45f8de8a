"""Moving a merchant's clock on (test environment): whatever falls due on the way is done, in the order of its time.

The clock is set to the moment at which the next thing falls due, what is due is done, and so on to the target: a year
of a monthly subscription makes twelve payments, each at its own time. Only timers that follow the merchant's clock
are run. Beat's workers see the moved clock, too, and may be faster; rows are claimed by one, and whoever moves the
clock waits for what another one has claimed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import DatabaseError, InterfaceError

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import Merchant
from gateway.timers import registry

MAX_ADVANCE_S: Final = 20.0
"""How long one move works, below the web server's and any client's patience; then it says how far it came."""
MAX_BLOCKED_TIMER_WAIT_S: Final = 3.0
"""How long a due thing that nobody could do yet is waited for: another worker has it, or a bank is silent."""
BLOCKED_TIMER_POLL_S: Final = 0.05
_LOCK: Final = 0x7011C10C

log = structlog.get_logger(__name__)


class ConcurrentAdvanceError(Exception):
    """Another request is moving this merchant's clock."""


@dataclass(slots=True, kw_only=True)
class ClockAdvance:
    """How a move went. ``ran``: timer → things done on the way by this move; ``waiting``: timers with something due
    that could not be done; ``remaining``: how far the clock still is from the target, zero when it is there."""

    ran: Counter[str] = field(default_factory=Counter)
    waiting: set[str] = field(default_factory=set)
    remaining: timedelta = timedelta(0)

    @property
    def complete(self) -> bool:
        return not self.remaining


@contextmanager
def lock_clock(merchant: Merchant) -> Iterator[None]:
    """For the time of the block nobody else moves this merchant's clock; ``merchant`` has it as it stands.

    Raises ConcurrentAdvanceError. The lock is the database session's, and goes with a process that dies.
    """
    mine = merchant.pk.int & 0x7FFFFFFF
    if not execute_sql("SELECT pg_try_advisory_lock(%s::int, %s::int)", [_LOCK, mine])[0][0]:
        raise ConcurrentAdvanceError
    try:
        merchant.refresh_from_db(fields=["clock_offset"])
        yield
    finally:
        with suppress(DatabaseError, InterfaceError):
            execute_sql("SELECT pg_advisory_unlock(%s::int, %s::int)", [_LOCK, mine])


def advance_clock(merchant: Merchant, target: timedelta, *, within_s: float = MAX_ADVANCE_S) -> ClockAdvance:
    """Move the clock on to the offset ``target``, doing on the way what falls due. For the sole mover only."""
    timers = {name: timer for name, timer in registry.TIMERS.items() if timer.next_at is not None}
    moved, stuck = ClockAdvance(), _Stuck()
    end = time.monotonic() + within_s
    while True:
        times = _due_times(merchant, timers)
        present = clock.merchant_now(merchant)
        first = min((at for name, at in times.items() if not (name in stuck.given_up and at <= present)), default=None)
        if first is None or first > clock.real_now() + target:
            break
        if time.monotonic() > end:
            moved.remaining = target - merchant.clock_offset
            moved.waiting = set(stuck.given_up)
            return moved
        if first > present:
            _set(merchant, min(target, first - clock.real_now()))
            present = clock.merchant_now(merchant)
        ready = [name for name, at in times.items() if at <= present]
        done = _run(merchant, timers, ready, moved.ran)
        stuck.free(done)
        if not done:
            stuck.wait_for(ready)
    _set(merchant, target)
    # What was given up may have held back later things of its kind: out of order they are done now.
    while _run(merchant, timers, sorted(stuck.given_up), moved.ran) and time.monotonic() < end:
        pass
    moved.waiting = {name for name in stuck.given_up if _is_due(merchant, timers[name])}
    return moved


class _Stuck:
    """Timers with something due that could not be done yet. For MAX_BLOCKED_TIMER_WAIT_S they are waited for; then the
    clock goes on without them, and they are tried again at each step."""

    def __init__(self) -> None:
        self.given_up: set[str] = set()
        self._since: dict[str, float] = {}

    def free(self, done: list[str]) -> None:
        """These did something."""
        for name in done:
            self.given_up.discard(name)
            self._since.pop(name, None)

    def wait_for(self, ready: list[str]) -> None:
        """None of these did anything: look again soon, unless it was long enough."""
        now = time.monotonic()
        for name in ready:
            if now - self._since.setdefault(name, now) > MAX_BLOCKED_TIMER_WAIT_S:
                self.given_up.add(name)
        if not self.given_up.issuperset(ready):
            time.sleep(BLOCKED_TIMER_POLL_S)


def reset_clock(merchant: Merchant) -> None:
    """Put the clock back to real time. What is due in the future by then stays due at its time. For the sole mover."""
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=timedelta(0))
    merchant.clock_offset = timedelta(0)


def _due_times(merchant: Merchant, timers: Mapping[str, registry.Timer]) -> dict[str, datetime]:
    """Timer → when its next thing is due; those with nothing left out."""
    found = {name: timer.next_at(merchant) for name, timer in timers.items() if timer.next_at is not None}
    return {name: at for name, at in found.items() if at is not None}


def _is_due(merchant: Merchant, timer: registry.Timer) -> bool:
    at = timer.next_at(merchant) if timer.next_at is not None else None
    return at is not None and at <= clock.merchant_now(merchant)


def _run(merchant: Merchant, timers: Mapping[str, registry.Timer], ready: list[str], ran: Counter[str]) -> list[str]:
    """Run the timers named in ``ready``; those that did something."""
    done = []
    for name in ready:
        try:
            number = timers[name].run(merchant)
        except Exception:  # the others go on; this one is waited for like one that another worker has
            log.exception("timer_failed", timer=name)
            continue
        if number:
            ran[name] += number
            done.append(name)
    return done


def _set(merchant: Merchant, offset: timedelta) -> None:
    if offset <= merchant.clock_offset:
        return
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=offset)
    merchant.clock_offset = offset
