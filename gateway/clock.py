"""Time. Business timers ask :func:`now` with their merchant: the test environment can move that merchant's clock.

Tokens, throttles, log-ins and idempotency use :func:`real`, and nothing asks the database for the time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class HasClock(Protocol):
    """Whoever has a clock of their own: a merchant."""

    clock_offset: timedelta


def real() -> datetime:
    """The time of the world, in UTC."""
    return datetime.now(UTC)


def now(merchant: HasClock) -> datetime:
    """The time it is for ``merchant``, in UTC. In the live environment the offset is always zero."""
    return real() + merchant.clock_offset


def wire(moment: datetime) -> str:
    """``yyyy-MM-dd HH:mm:ss+0000``, as answers carry it. Source: Part B, Payment response (timestamp)."""
    return f"{moment.astimezone(UTC).isoformat(' ', 'seconds')[:19]}+0000"  # strftime takes five times as long
