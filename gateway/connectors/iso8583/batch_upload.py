"""Sends the captures of a batch, each as an advice (0220) or, after totals that differ, as an upload (0320).

It is recorded before a message is sent that it may have been, and afterwards what the host answered. A capture without
an answer is repeated (0221, 0321) under its own numbers, by which the host recognises it. Source: docs/decisions/0040.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

import structlog
from django.db.models import F, QuerySet

from gateway.connectors.iso8583 import batch_totals, capture_records
from gateway.connectors.iso8583.batch_lease import (
    BatchDeferredError,
    HostAnswer,
    ask_host,
    extend_batch_lease,
    record_batch_finding,
)
from gateway.connectors.iso8583.iso_request import IsoRequest, OriginalMessage
from gateway.connectors.iso8583.replies import reply_from_answer, summarize_answer
from gateway.connectors.iso8583.terminal import Terminal
from gateway.connectors.port import AcquirerRequest, OutcomeUnknownError
from gateway.core.money import Money
from gateway.core.secret import RedactedDict
from gateway.models import BatchedCapture, CaptureBatch

MAX_PARALLEL_CAPTURES: Final = 8
"""Captures of a batch in flight at the same time."""
MAX_UNANSWERED_CAPTURES: Final = 3
"""Chunks with an unanswered capture after which a run defers the batch."""

log = structlog.get_logger(__name__)


def list_unsent_captures(batch: CaptureBatch) -> QuerySet[BatchedCapture]:
    """The captures that this step still has to send."""
    rows = BatchedCapture.objects.filter(batch=batch, state=BatchedCapture.State.IN_BATCH)
    return (
        rows.filter(code="") if batch.state == CaptureBatch.State.PRESENTING else rows.filter(uploaded__lt=batch.round)
    )


def send_batch_captures(batch: CaptureBatch, terminal: Terminal, over: float) -> None:
    """Send every unanswered capture once. Raises BatchDeferredError if some stay unanswered."""
    rows = list(list_unsent_captures(batch).order_by("payment"))
    left, silences, why = 0, 0, ""
    with ThreadPoolExecutor(max_workers=MAX_PARALLEL_CAPTURES, thread_name_prefix="batch") as pool:
        for place in range(0, len(rows), MAX_PARALLEL_CAPTURES):
            if time.monotonic() > over:
                raise BatchDeferredError("captures are still to be sent", wait=False)
            missed = [
                one
                for one in _send_chunk(batch, terminal, rows[place : place + MAX_PARALLEL_CAPTURES], pool)
                if one.why
            ]
            left, silences = left + len(missed), silences + any(one.timed_out for one in missed)
            why = missed[0].why if missed else why
            if silences >= MAX_UNANSWERED_CAPTURES or any(one.not_sent for one in missed):
                raise BatchDeferredError(why)
    if left:
        raise BatchDeferredError(f"{left} captures have no verdict: {why}")


def _send_chunk(
    batch: CaptureBatch, terminal: Terminal, rows: Sequence[BatchedCapture], pool: ThreadPoolExecutor
) -> list[HostAnswer]:
    """Send some captures in parallel and record the host's answers."""
    extend_batch_lease(batch)
    upload = batch.state == CaptureBatch.State.UPLOADING
    messages = [
        RedactedDict(
            capture_records.load_capture_message(row)
            | {"60": batch_totals.format_batch_number(batch.number)}
            | ({"t": batch_totals.UPLOAD_MTI} if upload else {})
        )
        for row in rows
    ]
    for row, message in zip(rows, messages, strict=True):
        if row.sends:
            message["t"] = message["t"][:3] + "1"
    # Recorded before anything is sent, so that after a crash it is known that it may have been.
    BatchedCapture.objects.filter(pk__in=[row.pk for row in rows]).update(sends=F("sends") + 1)
    answers = list(pool.map(lambda message: ask_host(terminal, message), messages))
    return [_record_host_answer(batch, terminal, row, said) for row, said in zip(rows, answers, strict=True)]


def _record_host_answer(batch: CaptureBatch, terminal: Terminal, row: BatchedCapture, said: HostAnswer) -> HostAnswer:
    """Record the host's answer to one capture; the result has a ``why`` if it was no verdict."""
    if said.answer is None:
        return said
    asked = _request_from_row(row, terminal)
    upload = batch.state == CaptureBatch.State.UPLOADING
    try:
        reply = reply_from_answer(asked, said.answer, {}, repeat=upload or row.sends > 0)
    except OutcomeUnknownError as nothing:
        return HostAnswer(why=str(nothing))
    code, answer = said.answer["39"][:3], summarize_answer(said.answer, asked)
    rows = list_unsent_captures(batch).filter(pk=row.pk)  # the first verdict of a step counts
    if reply.approved is not None:
        kept = {"uploaded": batch.round} if upload else {"reference": reply.connector_tx_id, "code": code}
        rows.update(answer=answer, **kept)
        return said
    log.error("capture_refused", payment=row.payment.hex, batch=batch.number, code=code)
    if upload:
        record_batch_finding(
            batch, f"capture {row.payment.hex} was granted ({row.code}), and its upload refused ({code})"
        )
    rows.update(state=BatchedCapture.State.REFUSED, code=code, answer=answer, message_sealed=None)
    return said


def _request_from_row(row: BatchedCapture, terminal: Terminal) -> IsoRequest:
    """The request that the stored message was built from, as far as its answer's check needs it."""
    own = OriginalMessage.parse(row.reference)
    assert own is not None  # written by capture_records.store_batched_capture
    request = AcquirerRequest(
        payment=row.payment, operation="CP", money=Money(row.amount, row.currency), brand="", at=row.created_at
    )
    # 94 to a repeat is taken for granted here: the sums of the batch say whether it was.
    trusting = replace(terminal, duplicates_done=True)
    return IsoRequest(request=request, terminal=trusting, kind="CP", own=own, original=None, parts={})
