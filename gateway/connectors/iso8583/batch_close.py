"""Closes a capture batch: compares its totals with the host's and marks its captures as taken if they agree.

Source: ISO 8583:1987, reconciliation; docs/decisions/0040.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count, Sum

from gateway.connectors.iso8583 import batch_totals, capture_records
from gateway.connectors.iso8583.batch_lease import (
    MAX_BATCH_FINDINGS,
    BatchDeferredError,
    ask_host,
    extend_batch_lease,
    list_granted_captures,
    move_batch_state,
)
from gateway.connectors.iso8583.batch_totals import BatchSums, TotalsVerdict
from gateway.connectors.iso8583.terminal import Terminal
from gateway.connectors.iso8583.trace_numbers import take_trace_number
from gateway.core import clock
from gateway.core.money import Money
from gateway.models import BatchedCapture, CaptureBatch
from gateway.timers import wakeup

log = structlog.get_logger(__name__)


def close_batch(batch: CaptureBatch, terminal: Terminal) -> None:
    """Send the reconciliation request and close the batch by the host's answer.

    Raises BatchDeferredError, BatchLeaseLostError.
    """
    sums = sum_granted_captures(batch)
    if not sums.count:
        _close_balanced(batch, sums, {}, "no capture was granted, so there are no sums")
        return
    repeat = batch.asked
    extend_batch_lease(
        batch, asked=True, trace_number=batch.trace_number if repeat else take_trace_number(terminal.sequence)
    )
    message = batch_totals.build_reconciliation_request(
        replace(sums, trace_number=batch.trace_number), terminal, repeat=repeat
    )
    said = ask_host(terminal, message)
    if said.answer is None:
        raise BatchDeferredError(f"the sums: {said.why}")
    answer = batch_totals.summarize_totals_answer(said.answer)
    match batch_totals.judge_totals(message, said.answer):
        case TotalsVerdict.AGAIN:
            raise BatchDeferredError(
                f"the sums: the host answered {said.answer.get('39') or 'without a response code'}"
            )
        case TotalsVerdict.BALANCED:
            _close_balanced(batch, sums, answer)
        case TotalsVerdict.DIFFERS:
            words = (
                "; ".join(batch_totals.find_total_differences(message, said.answer))
                or f"the host says so ({answer.get('39')})"
            )
            log.error(
                "capture_batch_differs",
                batch=batch.number,
                account=batch.acquirer_merchant_id,
                round=batch.round,
                why=words,
            )
            _close_differing(batch, answer, f"sums differ: {words}")


def sum_granted_captures(batch: CaptureBatch) -> BatchSums:
    """Count and total of the captures that the host has granted."""
    found = list_granted_captures(batch).aggregate(count=Count("payment"), total=Sum("amount"))
    return BatchSums(
        trace_number=batch.trace_number,
        number=batch.number,
        opened_at=batch.opened_at,
        round=batch.round,
        count=found["count"],
        total=Money(found["total"] or Decimal(0), batch.currency),
    )


@transaction.atomic
def _close_balanced(batch: CaptureBatch, sums: BatchSums, answer: Mapping[str, Any], finding: str = "") -> None:
    """Totals agree: the granted captures count as taken."""
    findings = [*batch.findings, finding][:MAX_BATCH_FINDINGS] if finding else batch.findings
    move_batch_state(
        batch,
        CaptureBatch.State.BALANCED,
        answer=dict(answer),
        findings=findings,
        count=sums.count,
        total=sums.total.amount,
        due_at=None,
        lease_until=None,
        failure="",
        closed_at=clock.real_now(),
    )
    list_granted_captures(batch).update(state=BatchedCapture.State.TAKEN, message_sealed=None)


@transaction.atomic
def _close_differing(batch: CaptureBatch, answer: Mapping[str, Any], finding: str) -> None:
    """Totals differ. After the advices: upload the captures. After an upload: a person has to look, and no capture
    counts as taken."""
    findings = [*batch.findings, finding][:MAX_BATCH_FINDINGS]
    if batch.round:
        move_batch_state(
            batch,
            CaptureBatch.State.DIFFERS,
            answer=dict(answer),
            findings=findings,
            due_at=None,
            lease_until=None,
            failure="",
            closed_at=clock.real_now(),
        )
        return
    move_batch_state(
        batch, CaptureBatch.State.UPLOADING, answer=dict(answer), findings=findings, round=1, asked=False, failures=0
    )
    list_granted_captures(batch).update(sends=0)


@transaction.atomic
def accept_unbalanced_batch(batch: CaptureBatch, why: str) -> int:
    """Manual: accept the captures of a batch whose totals differ, after the acquirer has confirmed them.

    Each of them was granted by itself. Returns how many count as taken now.
    """
    finding = f"accepted by hand: {why}"[:255]
    rows = CaptureBatch.objects.select_for_update().filter(pk=batch.pk, state=CaptureBatch.State.DIFFERS)
    row = rows.first()
    if row is None:
        return 0
    rows.update(
        state=CaptureBatch.State.BALANCED,
        closed_at=clock.real_now(),
        due_at=None,
        findings=[*row.findings, finding][:MAX_BATCH_FINDINGS],
    )
    taken = list_granted_captures(row).update(state=BatchedCapture.State.TAKEN, message_sealed=None)
    transaction.on_commit(lambda: wakeup.notify_timer(capture_records.CAPTURE_ANSWER_TIMER))
    return taken
