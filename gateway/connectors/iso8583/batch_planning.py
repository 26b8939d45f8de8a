"""Assigns due captures to batches, in one transaction, before anything is sent.

A run makes one batch for each account and currency with due captures, and moves each capture out of WAITING by
compare-and-set, so a concurrent reversal either wins or loses. A planned batch is sent (batch_upload.py) as often as it
takes. Source: docs/decisions/0040.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

import structlog
from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, QuerySet

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import BatchedCapture, CaptureBatch, Channel, Merchant, Payment, Status
from gateway.timers import wakeup
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest

CAPTURE_BATCH_TIMER: Final = "capture batches"
"""Name of the timer that plans and sends batches."""
MAX_BATCH_CAPTURES: Final = 5_000
"""Captures of one batch; the rest go into the next batch of the same run."""
MAX_BATCHES_PER_ROUND: Final = 50
"""Batches that one round of the timer plans."""

log = structlog.get_logger(__name__)

# Captures whose payment is not pending (yet, or any more) are not sent.
_DUE: Final = f"""
SELECT c.channel_id, c.acquirer_merchant_id, c.currency FROM gateway_batchedcapture c
JOIN gateway_merchant m ON m.id = c.merchant_id JOIN gateway_payment p ON p.id = c.payment AND p.status = 'PENDING'
WHERE c.state = 'WAITING' AND {due_sql("c.present_at")}
GROUP BY 1, 2, 3 ORDER BY random() LIMIT %(limit)s
"""  # noqa: S608 - a constant


def plan_due_batches(merchant: Merchant | None = None) -> int:
    """Plan the due batches of one merchant or all. Returns the number of captures in them."""
    decided = 0
    for channel, account, currency in execute_sql(_DUE, bind_run(merchant, limit=MAX_BATCHES_PER_ROUND)):
        try:
            decided += plan_batch(channel, account, currency)
        except Exception:  # one account must not block the others; its captures stay due
            log.exception("capture_batch_planning_failed", channel=channel.hex, account=account)
    return decided


@transaction.atomic
def plan_batch(channel: UUID, account: str, currency: str) -> int:
    """Plan one batch from the due captures of an account. Returns the number of its captures."""
    merchant = Merchant.objects.get(channels=channel)
    now = clock.merchant_now(merchant)
    pending = Exists(Payment.objects.filter(pk=OuterRef("payment"), status=Status.PENDING))
    due = BatchedCapture.objects.filter(
        pending,
        channel=channel,
        acquirer_merchant_id=account,
        currency=currency,
        state=BatchedCapture.State.WAITING,
        present_at__lte=now,
    )
    captures = list(due.order_by("payment").select_for_update(skip_locked=True, of=("self",))[:MAX_BATCH_CAPTURES])
    if not captures:
        return 0
    batch = CaptureBatch.objects.create(
        merchant=merchant,
        channel_id=channel,
        acquirer_merchant_id=account,
        currency=currency,
        number=_next_batch_number(channel, account),
        count=len(captures),
        total=sum((one.amount for one in captures), Decimal(0)),
        opened_at=now,
        due_at=clock.real_now(),
    )
    mine = BatchedCapture.objects.filter(pk__in=[one.pk for one in captures])
    return mine.update(state=BatchedCapture.State.IN_BATCH, batch=batch)


def release_captures_now(channel: Channel, account: str) -> int:
    """Make an account's waiting captures due at the next tick instead of at its batch time. Returns how many."""
    waiting = count_waiting_captures(channel, account)
    moved = waiting.update(present_at=clock.merchant_now(channel.merchant))
    wakeup.notify_timer(CAPTURE_BATCH_TIMER)
    return moved


def count_waiting_captures(channel: Channel, account: str) -> QuerySet[BatchedCapture]:
    """The captures of an account that are in no batch yet."""
    return BatchedCapture.objects.filter(
        channel=channel,
        acquirer_merchant_id=account,
        state=BatchedCapture.State.WAITING,
        merchant_id=channel.merchant_id,
    )


def next_batch_run(merchant: Merchant) -> datetime | None:
    """When this merchant's next capture is due, by the merchant's clock."""
    waiting = BatchedCapture.objects.filter(merchant=merchant, state=BatchedCapture.State.WAITING)
    return find_earliest(waiting, "present_at")


def _next_batch_number(channel: UUID, account: str) -> int:
    """The account's next batch number; a concurrent planner of the same account waits until this one has committed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s), hashtext(%s))", [channel.hex, account])
    last = CaptureBatch.objects.filter(channel=channel, acquirer_merchant_id=account).aggregate(last=Max("number"))[
        "last"
    ]
    return (last or 0) + 1
