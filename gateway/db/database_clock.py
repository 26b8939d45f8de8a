"""The database's clock: all machines share it, so leases and days that are compared across machines are dated by it.

It also says how far this machine's clock is from it. Business times stay those of the machine, so a machine whose clock
differs by more than GATEWAY_MAX_CLOCK_DIFFERENCE_S runs no timers and reports that it is not ready. A merchant's moved
clock (test environment) is an offset of its own and does not count. Source: docs/decisions/0071.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from django.conf import settings

from gateway.db.statement import execute_sql

CLOCK_COMPARISON_INTERVAL_S: Final = 60.0
"""How often a process compares its clock."""
MAX_CLOCK_MEASUREMENTS: Final = 3
"""A slow answer says little, so a difference is measured again before it counts."""

log = structlog.get_logger(__name__)


class WrongClockError(Exception):
    """This machine's clock differs too much from the database's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockDifference:
    """This machine's clock minus the database's, in seconds; right within ``uncertainty_s`` either way, half of the
    time that the answer took."""

    seconds: float
    uncertainty_s: float

    def is_too_large(self) -> bool:
        """Whether it is certainly above the setting; never with the setting 0."""
        allowed = settings.GATEWAY_MAX_CLOCK_DIFFERENCE_S
        return allowed > 0 and abs(self.seconds) - self.uncertainty_s > allowed


@dataclass(slots=True)
class _LastComparison:
    """This process's last comparison, ``at`` its monotonic clock."""

    at: float = 0.0
    found: ClockDifference | None = None


_last: Final = _LastComparison()
_comparing: Final = threading.Lock()


def read_database_time() -> datetime:
    """The database's clock, now."""
    now: datetime = execute_sql("SELECT clock_timestamp()", [])[0][0]
    return now.astimezone(UTC)


def measure_clock_difference() -> ClockDifference:
    """Compare this machine's clock with the database's. Where they seem to differ, the best of a few measurements."""
    best = _measure_once()
    for _ in range(MAX_CLOCK_MEASUREMENTS - 1):
        if not best.is_too_large():
            break
        best = min(best, _measure_once(), key=lambda one: one.uncertainty_s)
    return best


def compare_clocks() -> ClockDifference:
    """The difference, measured at most once a minute in this process; one that is too large is logged."""
    with _comparing:
        found = _last.found
        if found is None or time.monotonic() - _last.at >= CLOCK_COMPARISON_INTERVAL_S:
            found = measure_clock_difference()
            _last.at, _last.found = time.monotonic(), found
            if found.is_too_large():
                log.critical("clock_differs", seconds=round(found.seconds, 3), allowed=_allowed())
    return found


def require_right_clock() -> None:
    """Raises WrongClockError if this machine's clock differs too much from the database's."""
    found = compare_clocks()
    if found.is_too_large():
        raise WrongClockError(
            f"this machine's clock differs from the database's by {found.seconds:.3f} s; allowed: {_allowed()}"
        )


def _allowed() -> float:
    allowed: float = settings.GATEWAY_MAX_CLOCK_DIFFERENCE_S
    return allowed


def _measure_once() -> ClockDifference:
    began, at = time.monotonic(), datetime.now(UTC)
    there = read_database_time()
    took = time.monotonic() - began
    return ClockDifference(seconds=(at - there).total_seconds() + took / 2, uncertainty_s=took / 2)
