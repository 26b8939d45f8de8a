"""Time. Business timers use :func:`merchant_now`: the test environment can move a merchant's clock.

Tokens, throttles, sign-ins and idempotency use :func:`real_now`. The database's clock is never used.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


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
