"""Time. Business timers ask :func:`merchant_now` with their merchant: the test environment can move that merchant's
clock.

Tokens, throttles, log-ins and idempotency use :func:`real_now`, and nothing asks the database for the time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class HasClock(Protocol):
    """Whoever has a clock of their own: a merchant."""

    clock_offset: timedelta


def real_now() -> datetime:
    """The time of the world, in UTC."""
    return datetime.now(UTC)


def merchant_now(merchant: HasClock) -> datetime:
    """The time it is for ``merchant``, in UTC. In the live environment the offset is always zero."""
    return real_now() + merchant.clock_offset


def format_timestamp(moment: datetime) -> str:
    """``yyyy-MM-dd HH:mm:ss+0000``, as answers carry it. Source: Part B, Payment response (timestamp)."""
    return f"{moment.astimezone(UTC).isoformat(' ', 'seconds')[:19]}+0000"  # strftime takes five times as long
