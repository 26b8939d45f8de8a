"""Time. Business timers use :func:`merchant_now`: the test environment can move a merchant's clock.

Tokens, throttles, sign-ins and idempotency use :func:`real_now`. Only recovery uses the clock of the database, since
its due times are written on one machine and read on another (gateway.db.statement.DatabaseTime).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A moment on both clocks of this machine: the wall clock, which a step moves, and the monotonic one, which may
    stand while the machine is suspended. It has passed when either says so."""

    wall: datetime
    monotonic: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The moment ``seconds`` from now."""
        return cls(wall=real_now() + timedelta(seconds=seconds), monotonic=time.monotonic() + seconds)

    def has_passed(self) -> bool:
        """Whether it is over by either clock."""
        return self.is_within(0)

    def is_within(self, seconds: float) -> bool:
        """Whether it will be over ``seconds`` from now, by either clock."""
        return time.monotonic() + seconds > self.monotonic or real_now() + timedelta(seconds=seconds) > self.wall


class HasClock(Protocol):
    """An entity with a clock of its own: a merchant."""

    clock_offset: timedelta


def real_now() -> datetime:
    """The current real time, in UTC."""
    return datetime.now(UTC)


def merchant_now(merchant: HasClock) -> datetime:
    """The current time by the merchant's clock, in UTC. In the live environment the offset is always zero."""
    return real_now() + merchant.clock_offset


def format_timestamp(moment: datetime) -> str:
    """``yyyy-MM-dd HH:mm:ss+0000``, the format of API answers. Source: Part B, Payment response (timestamp)."""
    return f"{moment.astimezone(UTC).isoformat(' ', 'seconds')[:19]}+0000"  # strftime takes five times as long


def parse_time(text: str | None) -> datetime | None:
    """A time in the API's notation, yyyy-MM-dd HH:mm:ss in UTC, which the catalogue has checked; None for none."""
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) if text else None


def bound_days(first: date, last: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """When ``first`` begins and when ``last`` ends in ``zone``."""
    midnight = datetime.min.time()
    return datetime.combine(first, midnight, zone), datetime.combine(last + timedelta(days=1), midnight, zone)
