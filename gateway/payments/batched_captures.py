"""Completes the payments of captures that were sent in a batch: taken, refused, or withdrawn before they were sent.

A capture's outcome is written with its batch (gateway.connectors.iso8583); here it moves its payment, once. A capture
is approved once its host has granted it and agrees with the batch totals; a refused one is declined with the host's
reason. One whose payment is still STARTED or IN_DOUBT stays for the next round.
Source: Part A, States; docs/decisions/0040.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

import structlog

from gateway.connectors.iso8583 import capture_records
from gateway.connectors.iso8583.batched_capture import reply_from_batched_capture
from gateway.core import clock
from gateway.models import BatchedCapture, Merchant, Payment, Status
from gateway.payments import store
from gateway.payments.network_brands import find_network_brand
from gateway.payments.outcomes import outcome_from_reply
from gateway.payments.states import PaymentTransitionError
from gateway.timers.registry import MerchantTimer

CAPTURE_OUTCOME_BATCH_SIZE: Final = 200
MAX_CAPTURE_OUTCOME_ROUNDS: Final = 30
FINAL_CAPTURE_STATES: Final = (BatchedCapture.State.TAKEN, BatchedCapture.State.REFUSED, BatchedCapture.State.WITHDRAWN)

log = structlog.get_logger(__name__)


def apply_capture_outcomes(merchant: Merchant | None = None) -> int:
    """Apply unprocessed capture outcomes to their payments, of one merchant or all. Returns how many were applied."""
    applied = 0
    after: UUID | None = None
    for _ in range(MAX_CAPTURE_OUTCOME_ROUNDS):
        rows = _list_unapplied_captures(merchant, after)
        for row in rows:
            try:
                applied += _apply_capture_outcome(row)
            except Exception:  # one payment must not keep the others waiting; it is due again
                log.exception("capture_result_not_applied", payment=row.payment.hex)
        if len(rows) < CAPTURE_OUTCOME_BATCH_SIZE:
            break
        after = rows[-1].payment
    return applied


def find_next_capture_outcome(merchant: Merchant) -> datetime | None:
    """When this merchant's next outcome is due: now while any is unprocessed, else None."""
    waiting = BatchedCapture.objects.filter(applied=False, state__in=FINAL_CAPTURE_STATES, merchant=merchant).exists()
    return clock.merchant_now(merchant) if waiting else None


TIMER: Final = MerchantTimer(
    name=capture_records.CAPTURE_ANSWER_TIMER,
    run=apply_capture_outcomes,
    next_at=find_next_capture_outcome,
    about="Tell payments what became of captures that went by batch.",
    earliest_due="""
        SELECT statement_timestamp() FROM gateway_batchedcapture
        WHERE NOT applied AND state IN ('TAKEN', 'REFUSED', 'WITHDRAWN') LIMIT 1""",
)


def _list_unapplied_captures(merchant: Merchant | None, after: UUID | None) -> list[BatchedCapture]:
    rows = BatchedCapture.objects.filter(applied=False, state__in=FINAL_CAPTURE_STATES).select_related("batch")
    if merchant is not None:
        rows = rows.filter(merchant=merchant)
    if after is not None:
        rows = rows.filter(payment__gt=after)
    return list(rows.order_by("payment")[:CAPTURE_OUTCOME_BATCH_SIZE])


def _apply_capture_outcome(row: BatchedCapture) -> bool:
    """Move the payment of one capture. True when the outcome is processed, False when it has to wait."""
    payment = Payment.objects.select_related("merchant").get(pk=row.payment)
    if payment.status in (Status.STARTED, Status.IN_DOUBT):
        return False  # its first answer is being written, or recovery inquires about it
    if payment.status == Status.PENDING:
        reply = reply_from_batched_capture(
            row, find_network_brand(payment), {"batch": row.batch.number if row.batch else "taken out"}
        )
        try:
            outcome = outcome_from_reply(reply, at=clock.merchant_now(payment.merchant))
            store.complete_payment(payment, outcome, kind="batch")
        except PaymentTransitionError:
            return False  # the payment changed meanwhile: the next round reads it again
    return bool(BatchedCapture.objects.filter(pk=row.pk, applied=False).update(applied=True))
