"""Which limit an operation has at a channel, and which counters are forgotten. Source: docs/spec, Part A, Limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from pytest_django.fixtures import Settings

from gateway.access import rate_limits
from gateway.core import clock
from gateway.models import Channel, ThrottleWindow

NOW = datetime(2027, 3, 1, 10, 5, tzinfo=UTC)
OWN, ALL = {"limit": 7, "window_s": 60}, {"limit": 50, "window_s": 3600}


@pytest.mark.parametrize(
    ("limits", "default", "expected"),
    [
        ({"payment": OWN, "*": ALL}, 9, (7, 60)),
        ({"*": ALL}, 9, (50, 3600)),
        ({"query": OWN, "*": ALL}, 9, (50, 3600)),
        ({"query": OWN}, 9, (9, 30)),
        ({}, 9, (9, 30)),
        ({}, 1, (1, 30)),
        (None, 9, (9, 30)),
        # None: as often as they like.
        ({"payment": None, "*": ALL}, 9, None),
        ({"*": None}, 9, None),
        ({"payment": OWN, "*": None}, 9, (7, 60)),
        ({}, 0, None),
        ({"*": ALL}, 0, (50, 3600)),
    ],
)
def test_an_operation_has_its_own_limit_else_that_of_all_else_the_settings(
    settings: Settings, limits: dict[str, Any] | None, default: int, expected: tuple[int, int] | None
) -> None:
    settings.GATEWAY_THROTTLE_LIMIT, settings.GATEWAY_THROTTLE_WINDOW_S = default, 30
    channel = Channel(limits=limits) if limits is not None else None
    assert rate_limits.resolve_rate_limit(channel, "payment") == expected


@pytest.mark.django_db
def test_counters_are_forgotten_ten_minutes_after_their_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is its number since the epoch: it ends where the next one begins."""
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    kept, at = [], int((NOW - timedelta(minutes=10)).timestamp())
    for length in (1, 60, 3600):
        newest_old = at // length - 1 - (at % length == 0)
        for window in (newest_old - 1, newest_old, newest_old + 1, newest_old + 2):
            ThrottleWindow.objects.create(
                entity_id=UUID(int=1), operation="payment", window_s=length, window=window, count=1
            )
            if window > newest_old:
                kept.append((length, window))
    assert rate_limits.TIMER.run() == 6
    assert sorted(ThrottleWindow.objects.values_list("window_s", "window")) == sorted(kept)
