"""Payments without an answer: the acquirer is asked until it knows. A clock never turns a question into a decline.

A payment whose ``recover_at`` has come is claimed (so that two ticks ask once), and its connector is asked what became
of it. It knows: the payment gets that answer. It never got the question: the question is taken back, so that it cannot
be accepted later, and only the acquirer's word for that declines the payment. No word: it is asked again later, for
ever. Real time throughout. Source: decisions, house rule 4; goals R1, R3.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings

from gateway import clock
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector, NeverArrived, Silence
from gateway.connectors.routing import CONNECTORS
from gateway.masking import mask_text
from gateway.models import Payment, Status
from gateway.money import Money
from gateway.payments import screening, store
from gateway.payments.process import IN_DOUBT_CODE, event_of
from gateway.payments.states import Event, ImpossibleMove
from gateway.risk.screening import Outcome
from gateway.rows import execute

AT_ONCE: Final = 32
"""Payments claimed together, and asked about at the same time: a claim must not run out in a queue."""
ROUNDS_S: Final = 5.0
PAUSES_S: Final = (1, 2, 4, 8, 15, 30, 45)
"""From one inquiry without an answer to the next; the last repeats. Short enough that a payment is settled within a
minute after its acquirer is back."""
TIMEOUT_REVERSED: Final = "900.100.301"
_MOST_INQUIRIES: Final = 32_000

log = structlog.get_logger(__name__)

_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT payment_id FROM gateway_openpayment
    WHERE recover_at <= %(now)s ORDER BY recover_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE gateway_openpayment o SET recover_at = %(lease)s, inquiries = least(o.inquiries + 1, %(most)s)::smallint
FROM due WHERE o.payment_id = due.payment_id RETURNING o.payment_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question to the acquirer about a payment. ``received`` tells a silence too."""

    kind: str
    sent: dict[str, Any]
    received: dict[str, Any]
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What asking found out. ``exchanges`` in their order; ``reply``: the answer that the last of them gave, None when
    nobody knows yet."""

    exchanges: Sequence[Exchange]
    reply: AcquirerReply | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """``claimed``: rows whose time had come; ``settled``: those that have their final answer now."""

    claimed: int
    settled: int


def recover_due(*, limit: int = AT_ONCE, now: datetime | None = None) -> Recovered:
    """Ask about at most ``limit`` payments (and at most AT_ONCE) whose time has come by ``now``, all at once."""
    payments = claim(min(limit, AT_ONCE), now or clock.real())
    if not payments:
        return Recovered(claimed=0, settled=0)
    settled = 0
    with ThreadPoolExecutor(max_workers=len(payments), thread_name_prefix="inquiry") as pool:
        # Threads talk to acquirers only; rows are read and written here, on one connection.
        asked: dict[Future[Finding], Payment] = {}
        for payment in payments:
            connector = CONNECTORS.get(payment.connector)
            if connector is None:
                log.error("connector_missing", payment=payment.id.hex, connector=payment.connector)
            elif doubt(payment):
                asked[pool.submit(ask, connector, inquiry(payment), payment)] = payment
        for future in as_completed(asked):
            payment = asked[future]
            try:
                settled += settle(payment, future.result())
            except Exception:  # one payment must not keep the others waiting; its claim runs out and it is due again
                log.exception("recovery_failed", payment=payment.id.hex)
    return Recovered(claimed=len(payments), settled=settled)


def recover_all_due() -> Recovered:
    """Recover until nothing is due, for ROUNDS_S at most: then the next tick goes on."""
    claimed = settled = 0
    end = time.monotonic() + ROUNDS_S
    while True:
        done = recover_due()
        claimed, settled = claimed + done.claimed, settled + done.settled
        if done.claimed < AT_ONCE or time.monotonic() > end:
            return Recovered(claimed=claimed, settled=settled)


def claim(limit: int, now: datetime) -> list[Payment]:
    """The payments due by ``now``, each for one claimer: their time is moved on by as long as asking may take, so
    that another one takes over only when the claimer has died."""
    lease = timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S) + store.GRACE
    rows = execute(_CLAIM, {"now": now, "limit": limit, "lease": now + lease, "most": _MOST_INQUIRIES})
    claimed: list[UUID] = [row[0] for row in rows]
    if not claimed:
        return []
    open_ones = Payment.objects.filter(pk__in=claimed, status__in=(Status.STARTED, Status.IN_DOUBT))
    return list(open_ones.select_related("merchant", "open").order_by("id"))


def doubt(payment: Payment) -> bool:
    """A payment that is STARTED after its time is in doubt: its worker died. False when its answer came just now."""
    if payment.status != Status.STARTED:
        return True
    try:
        store.complete(
            payment, Event.LOSE, AcquirerReply(code=IN_DOUBT_CODE), at=clock.now(payment.merchant), duration_ms=0,
            recover_at=payment.open.recover_at,
        )  # fmt: skip
    except ImpossibleMove:
        return False
    return True


def inquiry(payment: Payment) -> AcquirerRequest:
    """The question as far as asking about it needs it: no card, no parameters."""
    return AcquirerRequest(
        payment=payment.id, operation=payment.payment_type, money=Money(payment.amount, payment.currency),
        brand=payment.brand, at=payment.created_at, account=payment.account,
    )  # fmt: skip


def ask(connector: Connector, request: AcquirerRequest, payment: Payment) -> Finding:
    """Ask what became of ``request``; take it back if it never arrived, or if it was approved and the payment's rule
    set refuses it for its AVS or CVV answer. Touches no database."""
    started = time.perf_counter()
    try:
        found = connector.inquire(request)
    except Silence as silence:
        return Finding(exchanges=[_silence("inquire", silence, started)], reply=None)
    first = Exchange(
        kind="inquire", sent=dict(found.sent), received=dict(found.received), duration_ms=_since_ms(started)
    )
    if not isinstance(found, NeverArrived):
        verdict = screening.judged(payment, found)
        if verdict.outcome is not Outcome.DECLINE:
            return Finding(exchanges=[first], reply=found)
        started = time.perf_counter()
        try:
            reversed_one = screening.take_back(connector, request, found, verdict)
        except Silence as silence:
            return Finding(exchanges=[first, _silence("void", silence, started)], reply=None)
        second = Exchange(
            kind="void", sent={"void": request.payment.hex}, received=dict(reversed_one.received),
            duration_ms=_since_ms(started),
        )  # fmt: skip
        return Finding(exchanges=[first, second], reply=reversed_one)
    started = time.perf_counter()
    try:
        word = connector.void(request)
    except Silence as silence:
        return Finding(exchanges=[first, _silence("void", silence, started)], reply=None)
    second = Exchange(kind="void", sent=dict(word.sent), received=dict(word.received), duration_ms=_since_ms(started))
    return Finding(exchanges=[first, second], reply=replace(word, code=TIMEOUT_REVERSED, approved=None))


def settle(payment: Payment, finding: Finding) -> bool:
    """Write what was found out: the answer, or when to ask again. False when there is none yet, or somebody else
    was faster."""
    at = clock.now(payment.merchant)
    *earlier, last = finding.exchanges
    for exchange in earlier:
        store.keep(payment, exchange.kind, exchange.sent, exchange.received, at=at, duration_ms=exchange.duration_ms)
    if finding.reply is None:
        again = clock.real() + pause(payment.open.inquiries)
        store.keep(payment, last.kind, last.sent, last.received, at=at, duration_ms=last.duration_ms, recover_at=again)
        return False
    try:
        store.complete(
            payment, event_of(finding.reply), finding.reply, at=at, duration_ms=last.duration_ms, kind=last.kind
        )
    except ImpossibleMove:
        return False
    return True


def pause(inquiries: int) -> timedelta:
    """Until the next inquiry, after so many without an answer (1 or more)."""
    return timedelta(seconds=PAUSES_S[min(max(inquiries, 1), len(PAUSES_S)) - 1])


def _silence(kind: str, silence: Silence, started: float) -> Exchange:
    received = {"silence": mask_text(str(silence))}
    return Exchange(kind=kind, sent=dict(silence.sent), received=received, duration_ms=_since_ms(started))


def _since_ms(started: float) -> int:
    return int((time.perf_counter() - started) * 1000)
