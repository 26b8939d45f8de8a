"""The one Celery task: run a timer. All state is in the database; the broker and this task only wake."""

from __future__ import annotations

import structlog
from celery import shared_task

from gateway.timers import registry

log = structlog.get_logger(__name__)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def run_timer(name: str) -> int | None:
    """Run the timer of that name; returns how many things it did. The name of a removed timer does nothing."""
    if name not in registry.TIMERS:
        log.warning("timer_unknown", timer=name)
        return None
    return registry.run_timer_now(name)
