"""Rate limits: how many requests of an operation an entity may send in a window of time.

Source: docs/spec, Part A, Limits.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings

from gateway.core import clock
from gateway.models import Channel, ThrottleWindow
from gateway.timers.registry import SWEEP_INTERVAL_S, Timer

SHOPPER_OPERATION: Final = "shopper"
"""The operation under which requests without a token are counted (``ThrottleWindow.operation``)."""


def resolve_rate_limit(channel: Channel | None, operation: str) -> tuple[int, int] | None:
    """(requests, window in seconds) for an operation: the channel's limit, else the default. None: unlimited."""
    limits = channel.limits if channel is not None else {}
    for key in (operation, "*"):
        if key in limits:
            limit = limits[key]
            return None if limit is None else (limit["limit"], limit["window_s"])
    if settings.GATEWAY_THROTTLE_LIMIT == 0:
        return None
    return settings.GATEWAY_THROTTLE_LIMIT, settings.GATEWAY_THROTTLE_WINDOW_S


_WINDOW_RETENTION: Final = timedelta(minutes=10)


def _delete_old_windows() -> int:
    old = (clock.real_now() - _WINDOW_RETENTION).timestamp()
    return ThrottleWindow.objects.extra(where=['"window" * window_s + window_s < %s'], params=[old]).delete()[0]


TIMER: Final = Timer(
    name="throttle windows",
    run=_delete_old_windows,
    every_s=SWEEP_INTERVAL_S,
    about="Forget counters of past windows.",
    # Due while there is any: which ended first is in no index.
    earliest_due="""
        SELECT statement_timestamp() FROM gateway_throttlewindow
        ORDER BY entity_id, operation, window_s, "window" LIMIT 1""",
)
