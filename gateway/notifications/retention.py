"""Deletes ended deliveries with their attempts after their retention, and cancels those that waited too long."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings

from gateway.db.statement import execute_sql
from gateway.models import WebhookAttempt, WebhookDelivery

PURGE_BATCH_SIZE: Final = 10_000
MAX_GIVE_UP_BATCHES: Final = 20
"""Statements of one run; the next run continues."""

# A paused endpoint is probed with one delivery at a time: those behind it still expire after thirty days.
# The first condition on give_up_at uses the index, with the clock of the merchant that is furthest ahead. A sender that
# locks many at a time locks what it holds a lease on: those are passed by.
_GIVE_UP: Final = """
WITH old AS MATERIALIZED (
    SELECT d.id, %(now)s::timestamptz + m.clock_offset AS at
    FROM gateway_webhookdelivery d JOIN gateway_merchant m ON m.id = d.merchant_id
    WHERE d.state = 'waiting'
        AND d.give_up_at <= %(now)s::timestamptz + (SELECT greatest(max(clock_offset), '0') FROM gateway_merchant)
        AND d.give_up_at <= %(now)s::timestamptz + m.clock_offset
        AND (d.lease_until IS NULL OR d.lease_until <= statement_timestamp())
    ORDER BY d.give_up_at LIMIT %(most)s::int FOR UPDATE OF d SKIP LOCKED
), given_up AS (
    UPDATE gateway_webhookdelivery d SET state = 'given_up', ended_at = old.at FROM old WHERE d.id = old.id RETURNING 1
)
SELECT count(*) FROM given_up
"""


def purge_webhook_deliveries(now: datetime) -> int:
    """Delete expired deliveries. Returns how many. Ids follow real time, so only the oldest are examined."""
    for _ in range(MAX_GIVE_UP_BATCHES):
        if execute_sql(_GIVE_UP, {"now": now, "most": PURGE_BATCH_SIZE})[0][0] < PURGE_BATCH_SIZE:
            break
    limit = now - timedelta(days=settings.GATEWAY_WEBHOOK_DAYS)
    oldest = WebhookDelivery.objects.order_by("id").values_list("pk", flat=True)[:PURGE_BATCH_SIZE]
    ended = WebhookDelivery.objects.filter(pk__in=list(oldest), ended_at__lt=limit, created_at__lt=limit)
    numbers = list(ended.values_list("pk", flat=True))
    if not numbers:
        return 0
    WebhookAttempt.objects.filter(delivery__in=numbers).delete()
    return int(WebhookDelivery.objects.filter(pk__in=numbers).delete()[0])
