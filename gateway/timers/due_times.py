"""When timers have something to do: one statement asks for the earliest due time of each.

A timer that says in SQL where its due times are (``Timer.earliest_due``) is woken when the earliest has come, and every
ten minutes in any case; the others are woken at their interval. One look of all of them costs half a millisecond, so it
is made every second: nothing has to announce a new row, no announcement can be lost, and a merchant's clock that was
moved counts at the next look. docs/time.md; docs/decisions/0073, 0164.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Final

from gateway.db.statement import execute_sql
from gateway.timers import registry

DUE_LOOK_INTERVAL_S: Final = 1.0
SAFETY_TICK_INTERVAL_S: Final = 600.0
"""How often a timer is woken that has nothing due: against a due time that its statement does not see."""

MAX_ROUTINE_TICKS_PER_LOOK: Final = 3
"""Most timers that one look wakes without knowing that they have something due: all together need one a second."""

# Clocks ahead of real time count: their rows are due earlier. The furthest one is enough to know that something may be.
_EARLIEST: Final = """
WITH clocks AS MATERIALIZED (
    SELECT statement_timestamp() AS present,
        statement_timestamp() + greatest(max(clock_offset), interval '0') AS furthest FROM gateway_merchant
)
SELECT {columns} FROM clocks
"""


def lowest_id_since_sql(lookback: timedelta) -> str:
    """SQL of the lowest id that a row made within ``lookback`` can have: ids begin with milliseconds of real time."""
    since = f"extract(epoch FROM statement_timestamp()) * 1000 - {int(lookback.total_seconds() * 1000)}"
    return f"(lpad(to_hex(({since})::bigint), 12, '0') || repeat('0', 20))::uuid"


def find_due_timers(names: Collection[str]) -> set[str]:
    """The timers of ``names`` that have an ``earliest_due`` and something due now. Raises DatabaseError and
    InterfaceError."""
    asked = [timer for timer in registry.TIMERS.values() if timer.earliest_due]
    wanted = [timer.name in names for timer in asked]
    if not any(wanted):
        return set()
    found = execute_sql(_build_statement(asked), {"wanted": wanted})[0]
    return {timer.name for timer, is_due in zip(asked, found, strict=True) if is_due}


def measure_queue_ages() -> dict[str, timedelta | None]:
    """How long ago the earliest due thing of each timer fell due, None if nothing is due; of timers that have an
    ``earliest_due`` and something to do by the settings. For a merchant whose clock is ahead the age is too large.
    Raises DatabaseError and InterfaceError."""
    asked = [timer for timer in registry.TIMERS.values() if timer.earliest_due and not timer.is_off()]
    columns = ",\n".join(f"present - ({timer.earliest_due})" for timer in asked)
    found = execute_sql(_EARLIEST.format(columns=columns), {})[0] if asked else ()
    return {
        timer.name: age if age is not None and age >= timedelta(0) else None
        for timer, age in zip(asked, found, strict=True)
    }


def _build_statement(asked: list[registry.Timer]) -> str:
    columns = (
        f"CASE WHEN (%(wanted)s::bool[])[{number}] THEN coalesce(({timer.earliest_due}) <= "
        f"{'furthest' if isinstance(timer, registry.MerchantTimer) else 'present'}, FALSE) ELSE FALSE END"
        for number, timer in enumerate(asked, start=1)
    )
    return _EARLIEST.format(columns=",\n".join(columns))


class DueLooks:
    """Decides which timers to wake: each no more often than its interval, when it has something due; those that cannot
    tell, and those not woken for SAFETY_TICK_INTERVAL_S, in turn, so that a start wakes no crowd."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._woken: dict[str, float] = {}

    def choose_timers(self, intervals: Mapping[str, float]) -> list[str]:
        """The timers to wake now, of those in ``intervals`` (name to seconds); they count as woken. Raises
        DatabaseError and InterfaceError."""
        now = self._now()
        timers = {name: timer for name, timer in registry.TIMERS.items() if name in intervals and not timer.is_off()}
        past = {name: now - self._woken.get(name, float("-inf")) for name in timers}
        ready = {name for name, passed in past.items() if passed >= intervals[name]}
        telling = {name for name in ready if timers[name].earliest_due}
        due = find_due_timers(telling)
        routine = list(ready - telling)
        routine += [name for name in telling - due if past[name] >= SAFETY_TICK_INTERVAL_S]
        routine.sort(key=lambda name: past[name] / max(intervals[name], 1.0), reverse=True)
        chosen = [*due, *routine[:MAX_ROUTINE_TICKS_PER_LOOK]]
        self._woken.update(dict.fromkeys(chosen, now))
        return chosen
