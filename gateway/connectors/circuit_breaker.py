"""A circuit breaker: an acquirer that does not answer is left alone for a while, then tried with single payments.

It counts questions that found nobody (silence, no link, out of order) against those that were answered, whatever the
answer was: a decline is an answer. Pure but for the clock it is given; one breaker may be used by many threads.
"""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MAX_COUNTED_CALLS: Final = 1_000
"""Questions that the share is reckoned of; of more, the newest."""
PROBES_TO_CLOSE: Final = 2
"""Payments in a row that have to be answered before all are sent again."""


MAX_PAUSES: Final = 6
"""Pauses from its opening until a payment tries an open breaker, however many inquiries find nobody meanwhile: a
payment that the acquirer never gives a word about is asked about for ever, and must not keep the account shut."""


class BreakerState(enum.StrEnum):
    CLOSED = "closed"
    HALF_OPEN = "half-open"
    OPEN = "open"


BREAKER_STATE_LEVEL: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerLimits:
    """``share``: of the questions within ``window_s``, at least ``least`` of them, that found nobody; from there on the
    breaker is open for ``pause_s``."""

    share: float
    least: int
    window_s: float
    pause_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerTransition:
    """The breaker changed its state."""

    state: BreakerState
    why: str


class CircuitBreaker:
    """``enter`` before a payment is sent; ``answered`` or ``failed`` when it is known how that went, ``gave_up`` when
    nothing can be said about the acquirer.

    Whoever is let in gets a turn, the number of the breaker's changes so far, and hands it back: a payment that was
    sent before the breaker changed says how the acquirer was then, and decides nothing about now."""

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
        """The turn of a payment that may be sent now, None for one that may not; a breaker whose pause is over lets one
        through."""
        with self._lock:
            moved = None
            if self._state is BreakerState.OPEN and self._now() >= self._until:
                moved = self._to(BreakerState.HALF_OPEN, "the pause is over: single payments try it")
            return self._turn if self._lets_in() else None, moved

    def _lets_in(self) -> bool:
        if self._state is BreakerState.HALF_OPEN and not self._probing:
            self._probing = True
            return True
        return self._state is BreakerState.CLOSED

    def record_success(self, permit: int | None = None) -> BreakerTransition | None:
        """``turn``: of a payment that :meth:`enter` let in; an inquiry has none."""
        with self._lock:
            if self._is_of_before(permit):
                return None
            self._counted.append((self._now(), False))
            if self._state is not BreakerState.HALF_OPEN or permit is None:
                return None
            self._probing, self._good = False, self._good + 1
            return (
                self._to(BreakerState.CLOSED, f"{PROBES_TO_CLOSE} payments in a row were answered")
                if self._good >= PROBES_TO_CLOSE
                else None
            )

    def failed(self, why: str, permit: int | None = None, *, repeat: bool = False) -> BreakerTransition | None:
        """A question found nobody. While the breaker is open that makes its pause begin anew, whenever it was sent: it
        has had no answer until now; for MAX_PAUSES in all. ``again``: an inquiry about a payment of which one failed
        before, which opens nothing: it says more about that payment than about the acquirer."""
        with self._lock:
            now = self._now()
            if self._state is BreakerState.OPEN:
                pause = self._limits().pause_s
                self._until = max(self._until, min(now + pause, self._opened + MAX_PAUSES * pause))
                return None
            if repeat or self._is_of_before(permit):
                return None
            self._counted.append((now, True))
            if self._state is BreakerState.HALF_OPEN:
                return self._open(f"a try found nobody: {why}") if permit is not None else None
            limits = self._limits()
            while self._counted and self._counted[0][0] < now - limits.window_s:
                self._counted.popleft()
            lost = sum(failed for _, failed in self._counted)
            if len(self._counted) < limits.least or lost < limits.share * len(self._counted):
                return None
            return self._open(f"{lost} of {len(self._counted)} questions found nobody; the last: {why}")

    def release(self, permit: int) -> None:
        """A payment that was let in says nothing about the acquirer: the next one tries."""
        with self._lock:
            if not self._is_of_before(permit):
                self._probing = False

    def _is_of_before(self, permit: int | None) -> bool:
        return permit is not None and permit != self._turn

    def _open(self, why: str) -> BreakerTransition:
        self._opened = self._now()
        self._until = self._opened + self._limits().pause_s
        return self._to(BreakerState.OPEN, why)

    def _to(self, state: BreakerState, why: str) -> BreakerTransition:
        self._state, self._probing, self._good = state, False, 0
        self._turn += 1
        self._counted.clear()
        return BreakerTransition(state=state, why=why)
