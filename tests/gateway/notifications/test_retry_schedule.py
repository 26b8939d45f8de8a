"""The retention of webhooks is longer than their retries."""

from __future__ import annotations

import pytest
from django.core.checks import run_checks
from django.test import override_settings


@pytest.mark.parametrize("days, faults", [(0, 1), (30, 1), (31, 0), (90, 0)])
def test_nothing_starts_that_forgets_webhooks_while_they_are_tried(days: int, faults: int) -> None:
    with override_settings(GATEWAY_WEBHOOK_DAYS=days):
        found = [message for message in run_checks() if message.id == "tollhouse.E018"]
    assert len(found) == faults
    assert all(f"GATEWAY_WEBHOOK_DAYS is {days};" in message.msg for message in found)
