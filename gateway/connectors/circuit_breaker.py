"""Circuit breaker: stops calls to an acquirer that does not answer, then probes it with single payments.

Failures (timeout, no connection, out of order) are counted against answers of any kind: a decline is an answer. Pure
except for the clock passed in; thread-safe.
"""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MAX_COUNTED_CALLS: Final = 1_000
"""Calls, the newest, from which the failure rate is computed."""
PROBES_TO_CLOSE: Final = 2
"""Probes in a row that must be answered before the breaker closes."""


MAX_PAUSES: Final = 6
"""Pauses after which an open breaker lets a probe through, however many inquiries have failed meanwhile.

A payment that the acquirer never answers for is inquired about without end, and must not keep the account shut.
"""


class BreakerState(enum.StrEnum):
    """The three usual states of a circuit breaker."""

    CLOSED = "closed"
    HALF_OPEN = "half-open"
    OPEN = "open"


BREAKER_STATE_LEVEL: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerLimits:
    """The breaker opens for ``pause_s`` when ``share`` of the calls within ``window_s``, at least ``least`` calls,
    failed."""

    share: float
    least: int
    window_s: float
    pause_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerTransition:
    """A change of state, and the reason for it."""

    state: BreakerState
    why: str


class CircuitBreaker:
    """Call ``acquire`` before a payment is sent, then ``record_success``, ``failed``, or ``release`` when the outcome
    says nothing about the acquirer.

    ``acquire`` returns a permit: the number of transitions so far. The outcome of a payment that was sent before the
    last transition is recognised by its permit and ignored, since it describes the acquirer as it was then.
    """

    def __init__(self, limits: Callable[[], BreakerLimits], now: Callable[[], float]) -> None:
        self._limits, self._now = limits, now
        self._lock = threading.Lock()
        self._counted: deque[tuple[float, bool]] = deque(maxlen=MAX_COUNTED_CALLS)
        self._state, self._until, self._opened = BreakerState.CLOSED, 0.0, 0.0
        self._turn, self._probing, self._good = 0, False, 0

    @property
    def state(self) -> BreakerState:
        return self._state

    def acquire(self) -> tuple[int | None, BreakerTransition | None]:
        """A permit for a payment, or None if it may not be sent. After the pause, a single probe is let through."""
        with self._lock:
            moved = None
            if self._state is BreakerState.OPEN and self._now() >= self._until:
                moved = self._move_to(BreakerState.HALF_OPEN, "the pause is over: single payments try it")
            return self._turn if self._may_pass() else None, moved

    def _may_pass(self) -> bool:
        if self._state is BreakerState.HALF_OPEN and not self._probing:
            self._probing = True
            return True
        return self._state is BreakerState.CLOSED

    def record_success(self, permit: int | None = None) -> BreakerTransition | None:
        """Count an answer. ``permit``: from :meth:`acquire`; None for an inquiry."""
        with self._lock:
            if self._is_outdated(permit):
                return None
            self._counted.append((self._now(), False))
            if self._state is not BreakerState.HALF_OPEN or permit is None:
                return None
            self._probing, self._good = False, self._good + 1
            return (
                self._move_to(BreakerState.CLOSED, f"{PROBES_TO_CLOSE} payments in a row were answered")
                if self._good >= PROBES_TO_CLOSE
                else None
            )

    def record_failure(self, why: str, permit: int | None = None, *, repeat: bool = False) -> BreakerTransition | None:
        """Count a call without an answer.

        While the breaker is open, each failure restarts its pause, whenever the call was sent, up to MAX_PAUSES in all.
        ``repeat``: an inquiry about a payment with an earlier failed inquiry; it never opens the breaker, since it says
        more about that payment than about the acquirer.
        """
        with self._lock:
            now = self._now()
            if self._state is BreakerState.OPEN:
                pause = self._limits().pause_s
                self._until = max(self._until, min(now + pause, self._opened + MAX_PAUSES * pause))
                return None
            if repeat or self._is_outdated(permit):
                return None
            self._counted.append((now, True))
            if self._state is BreakerState.HALF_OPEN:
                return self._open(f"the probe did not reach the acquirer: {why}") if permit is not None else None
            limits = self._limits()
            while self._counted and self._counted[0][0] < now - limits.window_s:
                self._counted.popleft()
            lost = sum(failed for _, failed in self._counted)
            if len(self._counted) < limits.least or lost < limits.share * len(self._counted):
                return None
            return self._open(f"{lost} of {len(self._counted)} calls did not reach the acquirer; the last: {why}")

    def release(self, permit: int) -> None:
        """Return the permit of a payment whose outcome says nothing about the acquirer; the next payment may probe."""
        with self._lock:
            if not self._is_outdated(permit):
                self._probing = False

    def _is_outdated(self, permit: int | None) -> bool:
        return permit is not None and permit != self._turn

    def _open(self, why: str) -> BreakerTransition:
        self._opened = self._now()
        self._until = self._opened + self._limits().pause_s
        return self._move_to(BreakerState.OPEN, why)

    def _move_to(self, state: BreakerState, why: str) -> BreakerTransition:
        self._state, self._probing, self._good = state, False, 0
        self._turn += 1
        self._counted.clear()
        return BreakerTransition(state=state, why=why)
