"""Time that passes: the merchant's test clock is moved over HTTP, which does what falls due on the way."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from gateway.models import Merchant
from gateway.timers import registry
from tests.support.client import Api


def pass_time(api: Api, *, days: int = 0, minutes: int = 0, seconds: int = 0) -> None:
    """So much later, by the merchant's clock. What follows real time has come by, too."""
    moved = api.post("/v1/test/clock", {"advance": str((days * 24 * 60 + minutes) * 60 + seconds)})
    assert moved.status == 200, moved
    assert moved.body["complete"], moved
    registry.run_all_timers()


def jump(seconds: float) -> None:
    """Move every merchant's clock forward without a tick: what is due is not done yet."""
    Merchant.objects.update(clock_offset=F("clock_offset") + timedelta(seconds=seconds))
