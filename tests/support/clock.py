"""Time that passes: the merchant's test clock is moved over HTTP, then the worker does what has become due."""

from __future__ import annotations

from gateway import tasks
from tests.support.client import Api


def pass_time(api: Api, *, days: int = 0, minutes: int = 0, seconds: int = 0) -> None:
    """So much later, by the merchant's clock. The worker's tick, of every second, has come by."""
    moved = api.post("/v1/test/clock", {"advance": str((days * 24 * 60 + minutes) * 60 + seconds)})
    assert moved.status == 200, moved
    tasks.tick()
