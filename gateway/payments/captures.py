"""Payments told what became of captures that went by batch: taken, refused, or taken out before they went.

How a capture ended is written with its batch (gateway.connectors.iso8583); here it moves its payment, once. A capture
is approved once its host has granted it and agrees with the sums of its batch; one that the host refused is declined
with the host's reason. One whose payment is not as far (its own answer is being written) stays for the next round.
Source: Part A, States; docs/decisions/0040.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

import structlog

from gateway import clock
from gateway.connectors.iso8583 import books
from gateway.connectors.iso8583.later import answer_of
from gateway.due import Timer
from gateway.models import BatchedCapture, Merchant, Payment, Status
from gateway.payments import store
from gateway.payments.process import event_of
from gateway.payments.states import ImpossibleMove

AT_ONCE: Final = 200
ROUNDS: Final = 30
ENDED: Final = (BatchedCapture.State.TAKEN, BatchedCapture.State.REFUSED, BatchedCapture.State.WITHDRAWN)

log = structlog.get_logger(__name__)


def tell_due(merchant: Merchant | None = None) -> int:
    """Tell payments what is untold; how many are told now."""
    done = 0
    after: UUID | None = None
    for _ in range(ROUNDS):
        rows = _untold(merchant, after)
        for row in rows:
            try:
                done += _tell(row)
            except Exception:  # one payment must not keep the others waiting; it is due again
                log.exception("capture_not_told", payment=row.payment.hex)
        if len(rows) < AT_ONCE:
            break
        after = rows[-1].payment
    return done


def next_untold(merchant: Merchant) -> datetime | None:
    """Now, while something is untold."""
    waiting = BatchedCapture.objects.filter(told=False, state__in=ENDED, merchant=merchant).exists()
    return clock.now(merchant) if waiting else None


TIMER: Final = Timer(
    name=books.TOLD, run=tell_due, next_at=next_untold,
    about="Tell payments what became of captures that went by batch.",
)  # fmt: skip


def _untold(merchant: Merchant | None, after: UUID | None) -> list[BatchedCapture]:
    rows = BatchedCapture.objects.filter(told=False, state__in=ENDED).select_related("batch")
    if merchant is not None:
        rows = rows.filter(merchant=merchant)
    if after is not None:
        rows = rows.filter(payment__gt=after)
    return list(rows.order_by("payment")[:AT_ONCE])


def _tell(row: BatchedCapture) -> bool:
    """Move the payment of one capture; whether that is done."""
    payment = Payment.objects.select_related("merchant").get(pk=row.payment)
    if payment.status in (Status.STARTED, Status.IN_DOUBT):
        return False  # its first answer is on its way, or recovery asks the books
    if payment.status == Status.PENDING:
        reply = answer_of(row, payment.brand, {"batch": row.batch.number if row.batch else "taken out"})
        try:
            store.complete(
                payment, event_of(reply), reply, at=clock.now(payment.merchant), duration_ms=0, kind="batch"
            )  # fmt: skip
        except ImpossibleMove:
            return False  # somebody else moved it: look again
    return bool(BatchedCapture.objects.filter(pk=row.pk, told=False).update(told=True))
