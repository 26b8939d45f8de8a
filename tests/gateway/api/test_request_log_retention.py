"""The request log forgets what is older than its setting, and nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.api import request_log_retention
from gateway.core import clock
from gateway.models import RequestLog
from tests.support.fixtures import Shop


@pytest.mark.django_db
def test_requests_are_forgotten_after_their_days(shop: Shop, settings: Any) -> None:
    settings.GATEWAY_REQUEST_LOG_DAYS = 90
    old, younger, new = (shop.api.pay() for _ in range(3))
    assert request_log_retention.TIMER.run(None) == 0
    ids = [UUID(answer.id) for answer in (old, younger, new)]
    for ident, age in zip(
        ids, (timedelta(days=90, minutes=1), timedelta(days=90, minutes=-1), timedelta(0)), strict=True
    ):
        RequestLog.objects.filter(payment=ident).update(at=clock.real_now() - age)
    assert request_log_retention.TIMER.run(None) == 1
    assert set(RequestLog.objects.values_list("payment", flat=True)) == set(ids[1:])
