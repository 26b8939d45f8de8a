"""The end of a batch: its sums are compared with the host's, and what was granted counts as taken, or not yet.

Source: ISO 8583:1987, reconciliation; docs/decisions/0040.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count, Sum

from gateway import clock, wake
from gateway.connectors.iso8583 import books, totals
from gateway.connectors.iso8583.held import MOST_FINDINGS, NotNow, ask, granted, hold, move
from gateway.connectors.iso8583.terminal import Terminal
from gateway.connectors.iso8583.totals import Sums, Verdict
from gateway.models import BatchedCapture, CaptureBatch
from gateway.money import Money

Captured = BatchedCapture.State
State = CaptureBatch.State

log = structlog.get_logger(__name__)


def close(batch: CaptureBatch, terminal: Terminal) -> None:
    """Ask about the sums, and end the batch by what the host says. Raises NotNow, Overtaken."""
    sums = sums_of(batch)
    if not sums.count:
        _end(batch, sums, {}, "no capture was granted, so there are no sums")
        return
    message = totals.message_of(sums, terminal, repeat=batch.asked)
    hold(batch, asked=True)
    said = ask(terminal, message)
    if said.answer is None:
        raise NotNow(f"the sums: {said.why}")
    answer = totals.told_by(said.answer)
    match totals.verdict(message, said.answer):
        case Verdict.AGAIN:
            raise NotNow(f"the sums: the host answered {said.answer.get('39') or 'without a response code'}")
        case Verdict.BALANCED:
            _end(batch, sums, answer)
        case Verdict.DIFFERS:
            words = "; ".join(totals.differences(message, said.answer)) or f"the host says so ({answer.get('39')})"
            log.error("capture_batch_differs", batch=batch.number, account=batch.account, round=batch.round, why=words)
            _differs(batch, answer, f"sums differ: {words}")


def sums_of(batch: CaptureBatch) -> Sums:
    """What the host has granted of a batch."""
    found = granted(batch).aggregate(count=Count("payment"), total=Sum("amount"))
    return Sums(
        batch=batch.pk, number=batch.number, opened_at=batch.opened_at, round=batch.round, count=found["count"],
        total=Money(found["total"] or Decimal(0), batch.currency),
    )  # fmt: skip


@transaction.atomic
def _end(batch: CaptureBatch, sums: Sums, answer: Mapping[str, Any], finding: str = "") -> None:
    """In balance: what was granted is taken."""
    findings = [*batch.findings, finding][:MOST_FINDINGS] if finding else batch.findings
    move(
        batch, State.BALANCED, answer=dict(answer), findings=findings, count=sums.count, total=sums.total.amount,
        due_at=None, lease_until=None, failure="", closed_at=clock.real(),
    )  # fmt: skip
    granted(batch).update(state=Captured.TAKEN, message_sealed=None)


@transaction.atomic
def _differs(batch: CaptureBatch, answer: Mapping[str, Any], finding: str) -> None:
    """After the advices: upload. After an upload: somebody has to look, and no capture counts as taken."""
    findings = [*batch.findings, finding][:MOST_FINDINGS]
    if batch.round:
        move(
            batch, State.DIFFERS, answer=dict(answer), findings=findings, due_at=None, lease_until=None, failure="",
            closed_at=clock.real(),
        )  # fmt: skip
        return
    move(batch, State.UPLOADING, answer=dict(answer), findings=findings, round=1, asked=False, failures=0)
    granted(batch).update(sends=0)


@transaction.atomic
def accept(batch: CaptureBatch, why: str) -> int:
    """By hand: the acquirer has said that the captures of a batch whose sums differ stand. Each of them was granted by
    itself; how many count as taken now."""
    finding = f"taken on somebody's word: {why}"[:255]
    rows = CaptureBatch.objects.select_for_update().filter(pk=batch.pk, state=State.DIFFERS)
    row = rows.first()
    if row is None:
        return 0
    rows.update(
        state=State.BALANCED, closed_at=clock.real(), due_at=None, findings=[*row.findings, finding][:MOST_FINDINGS]
    )
    taken = granted(row).update(state=Captured.TAKEN, message_sealed=None)
    transaction.on_commit(lambda: wake.wake(books.TOLD))
    return taken
