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

from gateway import clock, due
from gateway.models import Merchant
from gateway.rows import execute

WITHIN_S: Final = 20.0
"""How long one move works, below the web server's and any client's patience; then it says how far it came."""
PATIENCE_S: Final = 3.0
"""How long a due thing that nobody could do yet is waited for: another worker has it, or a bank is silent."""
LOOK_EVERY_S: Final = 0.05
_LOCK: Final = 0x7011C10C

log = structlog.get_logger(__name__)


class MovedByAnother(Exception):
    """Another request is moving this merchant's clock."""


@dataclass(slots=True, kw_only=True)
class Moved:
    """How a move went. ``ran``: timer → things done on the way by this move; ``waiting``: timers with something due
    that could not be done; ``remaining``: how far the clock still is from the target, zero when it is there."""

    ran: Counter[str] = field(default_factory=Counter)
    waiting: set[str] = field(default_factory=set)
    remaining: timedelta = timedelta(0)

    @property
    def complete(self) -> bool:
        return not self.remaining


@contextmanager
def sole_mover(merchant: Merchant) -> Iterator[None]:
    """For the time of the block nobody else moves this merchant's clock; ``merchant`` has it as it stands.

    Raises MovedByAnother. The lock is the database session's, and goes with a process that dies.
    """
    mine = merchant.pk.int & 0x7FFFFFFF
    if not execute("SELECT pg_try_advisory_lock(%s::int, %s::int)", [_LOCK, mine])[0][0]:
        raise MovedByAnother
    try:
        merchant.refresh_from_db(fields=["clock_offset"])
        yield
    finally:
        with suppress(DatabaseError, InterfaceError):
            execute("SELECT pg_advisory_unlock(%s::int, %s::int)", [_LOCK, mine])


def move(merchant: Merchant, target: timedelta, *, within_s: float = WITHIN_S) -> Moved:
    """Move the clock on to the offset ``target``, doing on the way what falls due. For the sole mover only."""
    timers = {name: timer for name, timer in due.TIMERS.items() if timer.next_at is not None}
    moved, given_up = Moved(), dict[str, datetime]()
    end = time.monotonic() + within_s
    waiting_since: dict[str, float] = {}
    while True:
        times = _due_times(merchant, timers, given_up)
        first = min(times.values(), default=None)
        if first is None or first > clock.real() + target:
            break
        if time.monotonic() > end:
            moved.remaining = target - merchant.clock_offset
            return moved
        if first > clock.now(merchant):
            _set(merchant, min(target, first - clock.real()))
        present = clock.now(merchant)
        ready = [name for name, at in times.items() if at <= present]
        if not (done := _run(merchant, timers, ready, moved.ran)):
            _wait_or_give_up(ready, times, waiting_since, given_up)
        for name in done:
            waiting_since.pop(name, None)
    _set(merchant, target)
    # What was given up may have held back later things of its kind: out of order they are done now.
    while _run(merchant, timers, list(given_up), moved.ran) and time.monotonic() < end:
        pass
    moved.waiting = set(given_up)
    return moved


def reset(merchant: Merchant) -> None:
    """Put the clock back to real time. What is due in the future by then stays due at its time. For the sole mover."""
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=timedelta(0))
    merchant.clock_offset = timedelta(0)


def _due_times(
    merchant: Merchant, timers: Mapping[str, due.Timer], given_up: Mapping[str, datetime]
) -> dict[str, datetime]:
    """Timer → when its next thing is due; those left out that were waited for in vain, until they have another time."""
    found = {name: timer.next_at(merchant) for name, timer in timers.items() if timer.next_at is not None}
    return {name: at for name, at in found.items() if at is not None and given_up.get(name) != at}


def _run(merchant: Merchant, timers: Mapping[str, due.Timer], ready: list[str], ran: Counter[str]) -> list[str]:
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


def _wait_or_give_up(
    ready: list[str], times: Mapping[str, datetime], since: dict[str, float], given_up: dict[str, datetime]
) -> None:
    """Nothing that is due could be done just now: look again soon, for PATIENCE_S at most."""
    now = time.monotonic()
    for name in ready:
        if now - since.setdefault(name, now) > PATIENCE_S:
            given_up[name] = times[name]
            del since[name]
    time.sleep(LOOK_EVERY_S)


def _set(merchant: Merchant, offset: timedelta) -> None:
    if offset <= merchant.clock_offset:
        return
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=offset)
    merchant.clock_offset = offset
