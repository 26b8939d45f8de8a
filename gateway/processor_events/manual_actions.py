"""Clerks' actions on flagged events: process them once more, or mark them as settled."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from gateway.access import audit_log
from gateway.core import clock
from gateway.models import ProcessorEvent
from gateway.processor_events.intake import PROCESSOR_EVENT_TIMER
from gateway.timers import wakeup

_State = ProcessorEvent.State


def requeue_events(rows: Iterable[ProcessorEvent], by: audit_log.Actor) -> int:
    """Queue flagged events for another try; returns how many. The processor is queried again, and nothing is recorded
    twice."""
    changes = {"state": _State.NEW, "attempts": 0, "due_at": clock.real_now(), "done_at": None}
    moved = sum(_update_flagged_event(row, changes, "event acted on again", by) for row in rows)
    wakeup.notify_timer(PROCESSOR_EVENT_TIMER)
    return moved


def mark_events_settled(rows: Iterable[ProcessorEvent], by: audit_log.Actor) -> int:
    """Mark flagged events as settled by hand; returns how many."""
    return sum(_update_flagged_event(row, {"state": _State.DONE}, "event settled by hand", by) for row in rows)


def _update_flagged_event(row: ProcessorEvent, changes: dict[str, object], action: str, by: audit_log.Actor) -> bool:
    with transaction.atomic():
        if not ProcessorEvent.objects.filter(pk=row.pk, state=_State.FLAGGED).update(**changes):
            return False
        before = {"state": row.state, "why": row.why}
        audit_log.record_audit_entry(
            by, action, row, before=before, after={"state": str(changes["state"]), "object": row.object_id}
        )
        return True
