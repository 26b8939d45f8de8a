"""Time travel: moves a merchant's clock forward (test environment); everything due on the way happens in order.

The clock is set to the moment at which the next thing falls due, what is due is done, and so on to the target: a year
of a monthly subscription makes twelve payments, each at its own time. Only timers that follow the merchant's clock
are run. Beat's workers see the moved clock, too, and may be faster; each row is claimed by one worker, and a request
that moves the clock waits for rows that another worker has claimed.
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
from gateway.db.sessions import keep_session
from gateway.db.statement import execute_sql
from gateway.models import Merchant
from gateway.timers import registry
from gateway.timers.registry import MerchantTimer

MAX_ADVANCE_S: Final = 20.0
"""Longest time of one move, below the web server's and any client's timeout; it then reports how far it came."""
MAX_BLOCKED_TIMER_WAIT_S: Final = 3.0
"""How long due work that cannot be done yet is waited for: another worker has it, or a bank does not answer."""
BLOCKED_TIMER_POLL_S: Final = 0.05
_LOCK: Final = 0x7011C10C

log = structlog.get_logger(__name__)


class ConcurrentAdvanceError(Exception):
    """Another request is moving this merchant's clock."""


@dataclass(slots=True, kw_only=True)
class ClockAdvance:
    """Result of a move. ``ran``: timer → things done on the way by this move; ``waiting``: timers with something due
    that could not be done; ``remaining``: distance of the clock from the target, zero when it is there."""

    ran: Counter[str] = field(default_factory=Counter)
    waiting: set[str] = field(default_factory=set)
    remaining: timedelta = timedelta(0)

    @property
    def complete(self) -> bool:
        return not self.remaining


@contextmanager
def lock_clock(merchant: Merchant) -> Iterator[None]:
    """Keep others from moving this merchant's clock for the time of the block; ``merchant`` is read again first.

    Raises ConcurrentAdvanceError. The lock is the database session's, and ends with a process that dies.
    """
    mine = merchant.pk.int & 0x7FFFFFFF
    with keep_session():
        if not execute_sql("SELECT pg_try_advisory_lock(%s::int, %s::int)", [_LOCK, mine])[0][0]:
            raise ConcurrentAdvanceError
        try:
            merchant.refresh_from_db(fields=["clock_offset"])
            yield
        finally:
            with suppress(DatabaseError, InterfaceError):
                execute_sql("SELECT pg_advisory_unlock(%s::int, %s::int)", [_LOCK, mine])


def advance_clock(merchant: Merchant, target: timedelta, *, within_s: float = MAX_ADVANCE_S) -> ClockAdvance:
    """Move the clock to the offset ``target``, doing on the way what falls due. The caller holds :func:`lock_clock`."""
    timers = {name: timer for name, timer in registry.TIMERS.items() if isinstance(timer, MerchantTimer)}
    moved, stuck = ClockAdvance(), _BlockedTimers()
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
            _set_offset(merchant, min(target, first - clock.real_now()))
            present = clock.merchant_now(merchant)
        ready = [name for name, at in times.items() if at <= present]
        done = _run_ready(merchant, timers, ready, moved.ran)
        stuck.free(done)
        if not done:
            stuck.wait_for(ready)
    _set_offset(merchant, target)
    # Timers that were given up may have held back later work of their kind: it is done now, out of order.
    while _run_ready(merchant, timers, sorted(stuck.given_up), moved.ran) and time.monotonic() < end:
        pass
    moved.waiting = {name for name in stuck.given_up if _is_due(merchant, timers[name])}
    return moved


class _BlockedTimers:
    """Timers with something due that could not be done yet. They are waited for during MAX_BLOCKED_TIMER_WAIT_S; then
    the clock goes on without them, and they are tried again at each step."""

    def __init__(self) -> None:
        self.given_up: set[str] = set()
        self._since: dict[str, float] = {}

    def free(self, done: list[str]) -> None:
        """These timers did something: they no longer block."""
        for name in done:
            self.given_up.discard(name)
            self._since.pop(name, None)

    def wait_for(self, ready: list[str]) -> None:
        """None of these timers did anything: look again soon, unless they were waited for long enough."""
        now = time.monotonic()
        for name in ready:
            if now - self._since.setdefault(name, now) > MAX_BLOCKED_TIMER_WAIT_S:
                self.given_up.add(name)
        if not self.given_up.issuperset(ready):
            time.sleep(BLOCKED_TIMER_POLL_S)


def reset_clock(merchant: Merchant) -> None:
    """Put the clock back to real time; due times in the future stay as they are. The caller holds lock_clock."""
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=timedelta(0))
    merchant.clock_offset = timedelta(0)


def _due_times(merchant: Merchant, timers: Mapping[str, MerchantTimer]) -> dict[str, datetime]:
    """Timer → when its next thing is due; timers with nothing due are left out."""
    due = {name: timer.next_at(merchant) for name, timer in timers.items()}
    return {name: at for name, at in due.items() if at is not None}


def _is_due(merchant: Merchant, timer: MerchantTimer) -> bool:
    at = timer.next_at(merchant)
    return at is not None and at <= clock.merchant_now(merchant)


def _run_ready(
    merchant: Merchant, timers: Mapping[str, MerchantTimer], ready: list[str], ran: Counter[str]
) -> list[str]:
    """Run the timers named in ``ready``; returns those that did something."""
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


def _set_offset(merchant: Merchant, offset: timedelta) -> None:
    if offset <= merchant.clock_offset:
        return
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=offset)
    merchant.clock_offset = offset
