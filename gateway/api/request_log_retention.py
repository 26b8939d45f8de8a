"""Deletes rows of the request log that are older than GATEWAY_REQUEST_LOG_DAYS."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings

from gateway.core import clock
from gateway.models import Merchant, RequestLog
from gateway.timers.registry import MAX_SWEPT_ROWS, SWEEP_INTERVAL_S, Timer


def _delete_old_requests(_merchant: Merchant | None) -> int:
    limit = clock.real_now() - timedelta(days=settings.GATEWAY_REQUEST_LOG_DAYS)
    stale = list(RequestLog.objects.filter(at__lt=limit).order_by("at").values_list("pk", flat=True)[:MAX_SWEPT_ROWS])
    return RequestLog.objects.filter(pk__in=stale).delete()[0] if stale else 0


TIMER: Final = Timer(
    name="request log",
    run=_delete_old_requests,
    every_s=SWEEP_INTERVAL_S,
    about="Forget requests older than GATEWAY_REQUEST_LOG_DAYS.",
)
