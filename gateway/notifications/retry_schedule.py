"""Times of retries, and of probes of a paused endpoint. All by the merchant's clock.

Source: decisions, section 6.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

WEBHOOK_RETRY_DELAYS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 4, 8, 15, 30, 60))
"""Delays after the first, second … failed attempt; after the last of them, daily."""
DAILY_RETRY_DELAY: Final = timedelta(days=1)
WEBHOOK_GIVE_UP_AFTER: Final = timedelta(days=30)

PAUSE_AFTER_FAILURES: Final = 10
"""An endpoint is paused after so many failed attempts in a row, over at least this time."""
PAUSE_AFTER: Final = timedelta(minutes=5)
PROBE_DELAYS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 4, 8, 15))
"""Delays after the first, second … probe of a paused endpoint; the last one repeats."""


def next_attempt_at(attempt: int, at: datetime, give_up_at: datetime) -> datetime | None:
    """When to retry after attempt number ``attempt`` failed ``at``; None after ``give_up_at``."""
    due = at + (WEBHOOK_RETRY_DELAYS[attempt - 1] if attempt <= len(WEBHOOK_RETRY_DELAYS) else DAILY_RETRY_DELAY)
    return due if due <= give_up_at else None


def next_probe_at(probes: int, at: datetime) -> datetime:
    """When to probe a paused endpoint after ``probes`` failed probes."""
    return at + PROBE_DELAYS[min(probes, len(PROBE_DELAYS) - 1)]
