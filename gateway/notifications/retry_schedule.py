"""When a delivery is tried again, and when an endpoint that fails is left alone. All by the merchant's clock.

Source: decisions, section 6.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

WEBHOOK_RETRY_DELAYS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 4, 8, 15, 30, 60))
"""How long after the first, second … attempt that failed the next one comes; after the last of them, daily."""
DAILY_RETRY_DELAY: Final = timedelta(days=1)
WEBHOOK_GIVE_UP_AFTER: Final = timedelta(days=30)

PAUSE_AFTER_FAILURES: Final = 10
"""So many attempts in a row that failed, and over this long, pause an endpoint."""
PAUSE_AFTER: Final = timedelta(minutes=5)
PROBE_DELAYS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 4, 8, 15))
"""How long a paused endpoint is left alone after its first, second … probe; at most the last of them."""


def next_attempt_at(attempt: int, at: datetime, give_up_at: datetime) -> datetime | None:
    """When a delivery is tried again whose attempt of this number failed ``at``; None when its time is over."""
    due = at + (WEBHOOK_RETRY_DELAYS[attempt - 1] if attempt <= len(WEBHOOK_RETRY_DELAYS) else DAILY_RETRY_DELAY)
    return due if due <= give_up_at else None


def next_probe_at(probes: int, at: datetime) -> datetime:
    """When a paused endpoint is asked again after ``probes`` that failed."""
    return at + PROBE_DELAYS[min(probes, len(PROBE_DELAYS) - 1)]
