"""Deletes ended deliveries with their attempts after their retention, and cancels those that waited too long."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings

from gateway.db.statement import execute_sql
from gateway.models import WebhookAttempt, WebhookDelivery

PURGE_BATCH_SIZE: Final = 10_000

# A paused endpoint is probed with one delivery at a time: those behind it still expire after thirty days.
_GIVE_UP: Final = """
UPDATE gateway_webhookdelivery d SET state = 'given_up', ended_at = %(now)s::timestamptz + m.clock_offset
FROM gateway_merchant m
WHERE m.id = d.merchant_id AND d.state = 'waiting' AND d.give_up_at <= %(now)s::timestamptz + m.clock_offset
    AND (d.lease_until IS NULL OR d.lease_until <= %(now)s::timestamptz)
RETURNING 1
"""


def purge_webhook_deliveries(now: datetime) -> int:
    """Delete expired deliveries. Returns how many. Ids follow real time, so only the oldest are examined."""
    execute_sql(_GIVE_UP, {"now": now})
    limit = now - timedelta(days=settings.GATEWAY_WEBHOOK_DAYS)
    oldest = WebhookDelivery.objects.order_by("id").values_list("pk", flat=True)[:PURGE_BATCH_SIZE]
    ended = WebhookDelivery.objects.filter(pk__in=list(oldest), ended_at__lt=limit, created_at__lt=limit)
    numbers = list(ended.values_list("pk", flat=True))
    if not numbers:
        return 0
    WebhookAttempt.objects.filter(delivery__in=numbers).delete()
    return int(WebhookDelivery.objects.filter(pk__in=numbers).delete()[0])
