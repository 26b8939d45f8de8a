"""What a person does with an event that was flagged: has it acted on once more, or says that it is settled."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from gateway import audit, clock, wake
from gateway.models import ProcessorEvent
from gateway.processor_events.intake import TIMER

_State = ProcessorEvent.State


def again(rows: Iterable[ProcessorEvent], by: audit.Actor) -> int:
    """Act on flagged events once more; how many. The processor is asked anew, and nothing is recorded twice."""
    changes = {"state": _State.NEW, "attempts": 0, "due_at": clock.real(), "done_at": None}
    moved = sum(_moved(row, changes, "event acted on again", by) for row in rows)
    wake.wake(TIMER)
    return moved


def settled(rows: Iterable[ProcessorEvent], by: audit.Actor) -> int:
    """Flagged events that somebody has looked at and settled in another way; how many."""
    return sum(_moved(row, {"state": _State.DONE}, "event settled by hand", by) for row in rows)


def _moved(row: ProcessorEvent, changes: dict[str, object], action: str, by: audit.Actor) -> bool:
    with transaction.atomic():
        if not ProcessorEvent.objects.filter(pk=row.pk, state=_State.FLAGGED).update(**changes):
            return False
        before = {"state": row.state, "why": row.why}
        audit.record(by, action, row, before=before, after={"state": str(changes["state"]), "object": row.object_id})
        return True
