"""Processes stored events: claims each by a lease, queries the processor, and records the result once.

An event that cannot be processed now is retried with growing delays and flagged for a person after MAX_EVENT_TRIES,
about a day.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from time import monotonic
from typing import Final

import structlog
from django.conf import settings

from gateway.connectors.accounts import load_connector_account
from gateway.connectors.card_api.client import HTTP_NOT_FOUND, ObjectNotFoundError
from gateway.connectors.card_api.connector import CARD_API
from gateway.connectors.port import OutcomeUnknownError
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import ProcessorEvent
from gateway.processor_events import disputes, intents, refunds
from gateway.processor_events.event_outcomes import (
    ChainStillOpenError,
    EventContext,
    EventOutcome,
    build_flagged_outcome,
    build_ignored_outcome,
)
from gateway.processor_events.intake import PROCESSOR_EVENT_TIMER as NAME
from gateway.timers.registry import Timer, interval_sql
from gateway.vault.sealing import VaultError

MAX_EVENT_TICK_S: Final = 5.0
"""Limit of one tick; the next one continues."""
EVENT_RETRY_DELAYS_S: Final = (5, 30, 120, 600, 1_800, 3_600)
"""Delays between tries; the last repeats."""
MAX_EVENT_TRIES: Final = 30
PROCESSOR_EVENT_RETENTION: Final = timedelta(days=90)
"""How long processed and ignored events are stored; flagged ones are not deleted."""
_BATCH: Final = 10_000

log = structlog.get_logger(__name__)

_EVENT_HANDLERS: Final[Mapping[str, Callable[[EventContext], EventOutcome]]] = {
    "payment_intent": intents.handle_intent_event,
    "setup_intent": intents.handle_setup_event,
    "charge.refunded": refunds.handle_charge_event,
    "charge.refund": refunds.handle_refund_event,
    "refund": refunds.handle_refund_event,
    "charge.dispute": disputes.handle_dispute_event,
}
"""Prefix of an event kind → its handler; the longest matching prefix applies."""

_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT id FROM gateway_processorevent WHERE state = 'new' AND due_at <= statement_timestamp()
    ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE gateway_processorevent e SET due_at = clock_timestamp() + %(lease)s::interval, attempts = attempts + 1
FROM due WHERE e.id = due.id RETURNING e.id
"""


def process_due_events() -> int:
    """Process due events for at most MAX_EVENT_TICK_S; returns how many."""
    began, done = monotonic(), 0
    while monotonic() - began < MAX_EVENT_TICK_S:
        claimed = execute_sql(_CLAIM, {"lease": timedelta(seconds=6 * settings.GATEWAY_ACQUIRER_TIMEOUT_S + 5)})
        if not claimed:
            break
        process_event(ProcessorEvent.objects.select_related("account__channel__merchant").get(pk=claimed[0][0]))
        done += 1
    return done


def process_event(row: ProcessorEvent) -> None:
    """Process one event that the caller has claimed; any error reschedules it and does not stop the others."""
    now = clock.real_now()
    try:
        channel = row.account.channel
        account = load_connector_account(CARD_API, channel.pk, row.account.acquirer_merchant_id)
        outcome = _find_event_handler(row.kind)(EventContext(row=row, account=account, merchant=channel.merchant))
    except ObjectNotFoundError as fault:
        if fault.status != HTTP_NOT_FOUND:
            _reschedule_event(row, now, f"the processor refused to be asked: HTTP {fault.status}")
            return
        outcome = build_ignored_outcome("the processor knows no such object")
    except (ChainStillOpenError, OutcomeUnknownError, VaultError) as fault:
        _reschedule_event(row, now, str(fault))
        return
    except Exception as fault:
        log.exception("processor_event_failed", row=row.id.hex)
        _reschedule_event(row, now, f"{type(fault).__name__}, see the log")
        return
    _finish_event(row, outcome, now)


def _find_event_handler(kind: str) -> Callable[[EventContext], EventOutcome]:
    matching = [prefix for prefix in _EVENT_HANDLERS if kind == prefix or kind.startswith(f"{prefix}.")]
    return _EVENT_HANDLERS[max(matching, key=len)]


def _reschedule_event(row: ProcessorEvent, now: datetime, why: str) -> None:
    if row.attempts >= MAX_EVENT_TRIES:
        _finish_event(row, build_flagged_outcome(f"tried {row.attempts} times: {why}"), now)
        return
    pause = EVENT_RETRY_DELAYS_S[min(row.attempts, len(EVENT_RETRY_DELAYS_S)) - 1]
    rows = ProcessorEvent.objects.filter(pk=row.pk, state=ProcessorEvent.State.NEW, attempts=row.attempts)
    rows.update(due_at=now + timedelta(seconds=pause), why=why[:255])


def _finish_event(row: ProcessorEvent, outcome: EventOutcome, now: datetime) -> None:
    if outcome.state == ProcessorEvent.State.FLAGGED:
        log.warning("processor_event_flagged", row=row.id.hex, kind=row.kind, why=outcome.why)
    ProcessorEvent.objects.filter(pk=row.pk, state=ProcessorEvent.State.NEW).update(
        state=outcome.state, why=outcome.why[:255], payment=outcome.payment, recorded=outcome.recorded, done_at=now
    )


def delete_old_processor_events() -> int:
    """Delete processed and ignored events older than PROCESSOR_EVENT_RETENTION; returns how many."""
    ended = (ProcessorEvent.State.DONE, ProcessorEvent.State.IGNORED)
    old = ProcessorEvent.objects.filter(state__in=ended, done_at__lt=clock.real_now() - PROCESSOR_EVENT_RETENTION)
    ids = list(old.order_by("done_at").values_list("pk", flat=True)[:_BATCH])
    return ProcessorEvent.objects.filter(pk__in=ids).delete()[0] if ids else 0


TIMERS: Final = (
    Timer(name=NAME, run=process_due_events, about="Ask a processor about what its webhooks told of, and record it.",
          earliest_due="SELECT min(due_at) FROM gateway_processorevent WHERE state = 'new'"),
    Timer(name="processor events, old", run=delete_old_processor_events, every_s=60.0,
          earliest_due=f"SELECT min(done_at) + {interval_sql(PROCESSOR_EVENT_RETENTION)} FROM gateway_processorevent",  # noqa: S608 - a constant
          about="Forget events of processors after 90 days."),
)  # fmt: skip
