"""Acting on events: each is claimed by a lease, the processor is asked, and what it says is recorded once.

An event that cannot be acted on now is tried again, longer and longer after; after a day a person has to look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from time import monotonic
from typing import Final

import structlog
from django.conf import settings

from gateway import clock
from gateway.connectors.accounts import account_at
from gateway.connectors.port import Silence
from gateway.connectors.stripe.asking import NOT_FOUND, NotThere
from gateway.connectors.stripe.connector import CARD_API
from gateway.due import Timer
from gateway.models import Merchant, ProcessorEvent
from gateway.processor_events import disputes, intents, refunds
from gateway.processor_events.intake import TIMER as NAME
from gateway.processor_events.verdict import Event, Verdict, flagged, ignored
from gateway.rows import execute
from gateway.vault import VaultError

ROUNDS_S: Final = 5.0
"""Of one tick; the next goes on."""
PAUSES_S: Final = (5, 30, 120, 600, 1_800, 3_600)
"""From one try to the next; the last repeats."""
MOST_TRIES: Final = 30
KEPT: Final = timedelta(days=90)
"""How long an event is kept that is done; one that is flagged stays."""
_BATCH: Final = 10_000

log = structlog.get_logger(__name__)

_ABOUT: Final[Mapping[str, Callable[[Event], Verdict]]] = {
    "payment_intent": intents.about_intent,
    "setup_intent": intents.about_setup,
    "charge.refunded": refunds.about_charge,
    "charge.refund": refunds.about_refund,
    "refund": refunds.about_refund,
    "charge.dispute": disputes.about_dispute,
}
"""How a kind of event begins → what is done about it."""

_CLAIM: Final = """
UPDATE gateway_processorevent SET due_at = %(lease)s, attempts = attempts + 1 WHERE id = (
    SELECT id FROM gateway_processorevent WHERE state = 'new' AND due_at <= %(now)s
    ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING id
"""


def act_on_due(merchant: Merchant | None = None) -> int:
    """Act on the events that are due, for ROUNDS_S; how many were taken up. They follow real time alone."""
    began, done = monotonic(), 0
    while merchant is None and monotonic() - began < ROUNDS_S:
        now = clock.real()
        lease = timedelta(seconds=6 * settings.GATEWAY_ACQUIRER_TIMEOUT_S + 5)
        claimed = execute(_CLAIM, {"now": now, "lease": now + lease})
        if not claimed:
            break
        act(ProcessorEvent.objects.select_related("account__channel__merchant").get(pk=claimed[0][0]))
        done += 1
    return done


def act(row: ProcessorEvent) -> None:
    """Act on one event, which is this caller's by its lease; a fault in it must not keep the others waiting."""
    now = clock.real()
    try:
        channel = row.account.channel
        account = account_at(CARD_API, channel.pk, row.account.acquirer_merchant_id)
        verdict = _about(row.kind)(Event(row=row, account=account, merchant=channel.merchant))
    except NotThere as fault:
        if fault.status != NOT_FOUND:
            _later(row, now, f"the processor refused to be asked: HTTP {fault.status}")
            return
        verdict = ignored("the processor knows no such object")
    except (Silence, VaultError) as fault:
        _later(row, now, str(fault))
        return
    except Exception as fault:
        log.exception("processor_event_failed", row=row.id.hex)
        _later(row, now, f"{type(fault).__name__}, see the log")
        return
    _end(row, verdict, now)


def _about(kind: str) -> Callable[[Event], Verdict]:
    fitting = [start for start in _ABOUT if kind == start or kind.startswith(f"{start}.")]
    return _ABOUT[max(fitting, key=len)]


def _later(row: ProcessorEvent, now: datetime, why: str) -> None:
    if row.attempts >= MOST_TRIES:
        _end(row, flagged(f"tried {row.attempts} times: {why}"), now)
        return
    pause = PAUSES_S[min(row.attempts, len(PAUSES_S)) - 1]
    rows = ProcessorEvent.objects.filter(pk=row.pk, state=ProcessorEvent.State.NEW, attempts=row.attempts)
    rows.update(due_at=now + timedelta(seconds=pause), why=why[:255])


def _end(row: ProcessorEvent, verdict: Verdict, now: datetime) -> None:
    if verdict.state == ProcessorEvent.State.FLAGGED:
        log.warning("processor_event_flagged", row=row.id.hex, kind=row.kind, why=verdict.why)
    ProcessorEvent.objects.filter(pk=row.pk, state=ProcessorEvent.State.NEW).update(
        state=verdict.state, why=verdict.why[:255], payment=verdict.payment, made=verdict.made, done_at=now
    )


def forget(merchant: Merchant | None = None) -> int:
    """Throw away old events that nobody has to look at."""
    if merchant is not None:
        return 0
    ended = (ProcessorEvent.State.DONE, ProcessorEvent.State.IGNORED)
    old = ProcessorEvent.objects.filter(state__in=ended, done_at__lt=clock.real() - KEPT)
    ids = list(old.order_by("done_at").values_list("pk", flat=True)[:_BATCH])
    return ProcessorEvent.objects.filter(pk__in=ids).delete()[0] if ids else 0


TIMERS: Final = (
    Timer(name=NAME, run=act_on_due, about="Ask a processor about what its webhooks told of, and record it."),
    Timer(name="processor events, old", run=forget, every_s=60.0,
          about="Forget events of processors after 90 days."),
)  # fmt: skip
