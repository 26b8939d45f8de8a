"""The ticks' Celery names. A tick only finds rows whose time has come; the rows are the truth, the broker wakes."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from celery import shared_task
from django.conf import settings

from gateway import clock
from gateway.models import CardTestingCount, RequestLog, RiskObservation, ThrottleWindow
from gateway.payments import idempotency, recovery, resume
from gateway.risk.rules import MAX_WINDOW
from gateway.wallets import channels

_CARD_TESTING_KEPT: Final = timedelta(hours=2)
_THROTTLE_KEPT: Final = timedelta(minutes=10)
_BATCH: Final = 10_000


@shared_task
def tick() -> dict[str, int]:
    """Every second: whatever is due. Payments in doubt are asked about, those whose shopper never came back end."""
    recovered = recovery.recover_all_due()
    return {
        "asked": recovered.claimed,
        "settled": recovered.settled,
        "expired": resume.expire_due(),
        "authenticated": resume.confirm_due(),
    }


@shared_task
def sweep() -> dict[str, int]:
    """Throw away what has had its time: counters of past windows, requests older than the settings keep them."""
    now = clock.real()
    old = (now - _THROTTLE_KEPT).timestamp()
    windows = ThrottleWindow.objects.extra(where=['"window" * window_s + window_s < %s'], params=[old]).delete()[0]
    limit = now - timedelta(days=settings.GATEWAY_REQUEST_LOG_DAYS)
    stale = list(RequestLog.objects.filter(at__lt=limit).order_by("at").values_list("pk", flat=True)[:_BATCH])
    requests = RequestLog.objects.filter(pk__in=stale).delete()[0] if stale else 0
    keys = idempotency.forget(now, limit=_BATCH)
    tokens = channels.forget(now, limit=_BATCH)
    tested = CardTestingCount.objects.filter(at__lt=now - _CARD_TESTING_KEPT).delete()[0]
    # Ids follow the time; only the oldest are looked at.
    oldest = RiskObservation.objects.order_by("id").values_list("pk", flat=True)[:_BATCH]
    observed = RiskObservation.objects.filter(pk__in=list(oldest), at__lt=now - MAX_WINDOW).delete()[0]
    return {
        "throttle windows": windows, "requests": requests, "idempotency keys": keys, "wallet tokens": tokens,
        "card testing": tested, "risk": observed,
    }  # fmt: skip
