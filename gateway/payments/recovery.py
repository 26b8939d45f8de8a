"""Payments without an answer: the acquirer is asked until it knows. A clock never turns a question into a decline.

A payment whose ``recover_at`` has come is claimed (so that two ticks ask once), and its connector is asked what became
of it. It knows: the payment gets that answer. It never got the question: the question is taken back, so that it cannot
be accepted later, and only the acquirer's word for that declines the payment. Once tried that is carried through, since
a void without an answer may still arrive after an approval; unless whoever holds the question says that it does not
give it back. No word: it is asked again later, for ever. Real time throughout. Source: decisions, house rule 4; goals
R1, R3.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection

from gateway.connectors.accounts import load_connector_account
from gateway.connectors.acquirer_message import flatten_body, forwardable_parameters
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    Connector,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
    VoidRefusedError,
)
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.core.money import Money
from gateway.db.statement import execute_sql
from gateway.models import OpenPayment, Payment, Status
from gateway.payments import risk_screening, store
from gateway.payments.chain import COUNTED_STATUSES, sum_payment_amounts
from gateway.payments.follow_ups import load_chain_means
from gateway.payments.process import AGREEMENT_REFERENCES_KEY, OUTCOME_UNKNOWN_CODE, build_suspension, event_from_reply
from gateway.payments.states import LifecycleEvent, PaymentTransitionError
from gateway.risk.evaluation import RiskOutcome, RiskVerdict
from gateway.vault.sealing import VaultError

RECOVERY_BATCH_SIZE: Final = 32
"""Payments claimed together, and asked about at one account at the same time: a claim must not run out in a queue."""
MAX_BATCHES_PER_CONNECTOR: Final = 2
"""Times RECOVERY_BATCH_SIZE questions to one connector: a silent account leaves room to its others, they to other
connectors."""
MAX_OPEN_INQUIRIES: Final = 4 * RECOVERY_BATCH_SIZE
"""Questions to all accounts together. Nobody holds more of them than are free: however many are silent, their shares
shrink and the others go on."""
FREE_SHARE_DIVISOR: Final = 4
"""The share of what is free that one claim takes: nobody's share is much exceeded before it is counted again."""
MAX_CLAIMING_S: Final = 5.0
MAX_RECOVERY_TICK_S: Final = 30.0
"""Of one tick: while it waits for a silent acquirer it goes on with the others, but not for ever."""
INQUIRY_POLL_S: Final = 0.5
INQUIRY_BACKOFF_S: Final = (1, 2, 4, 8, 15, 30, 45)
"""From one inquiry without an answer to the next; the last repeats. Short enough that a payment is settled within a
minute after its acquirer is back."""
TIMEOUT_REVERSED_CODE: Final = "900.100.301"
_MAX_INQUIRIES: Final = 32_000

InquiryTarget = tuple[str, UUID | None, str]
"""Where a payment is asked about: connector, channel, the merchant's id there. Without a channel: all of the
connector."""

log = structlog.get_logger(__name__)

_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT payment_id FROM gateway_openpayment o
    WHERE recover_at <= %(now)s AND (cardinality(%(connectors)s::text[]) = 0 OR NOT EXISTS (
        SELECT 1 FROM gateway_payment p
        JOIN unnest(%(connectors)s::text[], %(channels)s::uuid[], %(accounts)s::text[])
          AS busy (connector, channel, account)
          ON p.connector = busy.connector
             AND (busy.channel IS NULL OR p.channel_id = busy.channel AND p.account = busy.account)
        WHERE p.id = o.payment_id
    ))
    ORDER BY recover_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE gateway_openpayment o SET recover_at = %(lease)s, inquiries = least(o.inquiries + 1, %(most)s)::smallint
FROM due WHERE o.payment_id = due.payment_id RETURNING o.payment_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryExchange:
    """One question to the acquirer about a payment. ``received`` tells a silence too. ``at``: when it was over, real
    time."""

    kind: str
    at: datetime
    sent: dict[str, Any]
    received: dict[str, Any]
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryResult:
    """What asking found out. ``exchanges`` in their order; ``reply``: the answer that the last of them gave, None when
    nobody knows yet."""

    exchanges: Sequence[InquiryExchange]
    reply: AcquirerReply | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySummary:
    """``claimed``: rows whose time had come; ``settled``: those that have their final answer now."""

    claimed: int
    settled: int


def recover_due_batch(*, limit: int = RECOVERY_BATCH_SIZE, now: datetime | None = None) -> RecoverySummary:
    """Ask about at most ``limit`` payments (and at most RECOVERY_BATCH_SIZE) whose time has come by ``now``, all at
    once."""
    with _build_inquiry_pool() as pool:
        payments = claim_due_inquiries(min(limit, RECOVERY_BATCH_SIZE), now or clock.real_now())
        asked = _submit_inquiries(payments, pool)
        settled = sum(_record_outcome_safely(asked[future], future) for future in as_completed(asked))
    return RecoverySummary(claimed=len(payments), settled=settled)


def recover_due_payments() -> RecoverySummary:
    """Recover until nothing is due, for MAX_CLAIMING_S at most: then the next tick goes on. While an acquirer keeps
    this one waiting, payments of the others are recovered."""
    claimed = settled = 0
    began = time.monotonic()
    asked: dict[Future[InquiryResult], Payment] = {}
    with _build_inquiry_pool() as pool:
        while True:
            took = time.monotonic() - began
            payments: list[Payment] = []
            free = MAX_OPEN_INQUIRIES - len(asked)
            most = min(RECOVERY_BATCH_SIZE, -(-free // FREE_SHARE_DIVISOR))
            if free > 0 and (took < MAX_CLAIMING_S or (asked and took < MAX_RECOVERY_TICK_S)):
                payments = claim_due_inquiries(
                    most, clock.real_now(), excluding=_list_busy_targets(asked.values(), free)
                )
                claimed += len(payments)
                asked |= _submit_inquiries(payments, pool)
            if not asked and len(payments) < most:
                return RecoverySummary(claimed=claimed, settled=settled)
            for future in wait(asked, timeout=INQUIRY_POLL_S, return_when=FIRST_COMPLETED).done:
                settled += _record_outcome_safely(asked.pop(future), future)


def _build_inquiry_pool() -> ThreadPoolExecutor:
    """Threads that talk to acquirers only; rows are read and written by the caller, on one connection."""
    return ThreadPoolExecutor(max_workers=MAX_OPEN_INQUIRIES + RECOVERY_BATCH_SIZE, thread_name_prefix="inquiry")


def _submit_inquiries(payments: Iterable[Payment], pool: ThreadPoolExecutor) -> dict[Future[InquiryResult], Payment]:
    """Send the questions about ``payments`` off; what will answer each."""
    asked: dict[Future[InquiryResult], Payment] = {}
    for payment in payments:
        connector = CONNECTORS.get(payment.connector)
        if connector is None:
            log.error("connector_missing", payment=payment.id.hex, connector=payment.connector)
        elif mark_outcome_unknown(payment):
            try:
                request = build_inquiry(payment, connector)
            except VaultError as fault:
                # Its claim runs out and it is asked about again; the key may be back by then.
                log.error("account_does_not_open", payment=payment.id.hex, why=str(fault))
            else:
                asked[pool.submit(resolve_outcome_in_thread, connector, request, payment)] = payment
    return asked


def _record_outcome_safely(payment: Payment, future: Future[InquiryResult]) -> bool:
    """Settle one payment; a fault in it must not keep the others waiting: its claim runs out and it is due again."""
    try:
        return record_outcome(payment, future.result())
    except Exception:
        log.exception("recovery_failed", payment=payment.id.hex)
        return False


def _list_busy_targets(asked: Iterable[Payment], free: int) -> list[InquiryTarget]:
    """Where nothing more is asked for now: accounts, and whole connectors, that have their share of the questions, or
    as many as are still ``free``."""
    busy: Counter[InquiryTarget] = Counter()
    for payment in asked:
        busy[payment.connector, payment.channel_id, payment.account] += 1
        busy[payment.connector, None, ""] += 1
    share = {True: min(RECOVERY_BATCH_SIZE, free), False: min(MAX_BATCHES_PER_CONNECTOR * RECOVERY_BATCH_SIZE, free)}
    return [place for place, number in busy.items() if number >= share[place[1] is not None]]


def claim_due_inquiries(limit: int, now: datetime, *, excluding: Sequence[InquiryTarget] = ()) -> list[Payment]:
    """The payments due by ``now``, each for one claimer: their time is moved on by as long as asking may take, so
    that another one takes over only when the claimer has died. ``besides``: those whose payments wait."""
    lease = timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S) + store.ANSWER_GRACE
    values = {
        "now": now,
        "limit": limit,
        "lease": now + lease,
        "most": _MAX_INQUIRIES,
        "connectors": [name for name, _channel, _account in excluding],
        "channels": [channel for _name, channel, _account in excluding],
        "accounts": [account for _name, _channel, account in excluding],
    }
    rows = execute_sql(_CLAIM, values)
    claimed: list[UUID] = [row[0] for row in rows]
    if not claimed:
        return []
    open_ones = Payment.objects.filter(pk__in=claimed, status__in=(Status.STARTED, Status.IN_DOUBT))
    return list(open_ones.select_related("merchant", "open").order_by("id"))


def mark_outcome_unknown(payment: Payment) -> bool:
    """A payment that is STARTED after its time is in doubt: its worker died. False when its answer came just now."""
    if payment.status != Status.STARTED:
        return True
    try:
        store.complete_payment(
            payment,
            LifecycleEvent.LOSE,
            AcquirerReply(code=OUTCOME_UNKNOWN_CODE),
            at=clock.merchant_now(payment.merchant),
            duration_ms=0,
            recover_at=payment.open.recover_at,
        )
    except PaymentTransitionError:
        return False
    return True


def build_inquiry(payment: Payment, connector: Connector) -> AcquirerRequest:
    """The question as far as asking about it needs it: no card and no parameters, unless the connector says it does.
    Raises VaultError."""
    about = Payment.objects.only("connector_tx_id").get(pk=payment.referenced) if payment.referenced else None
    request = AcquirerRequest(
        payment=payment.id,
        operation=payment.payment_type,
        money=Money(payment.amount, payment.currency),
        brand=payment.brand,
        at=payment.created_at,
        known_transaction_id=payment.connector_tx_id,
        reference=about.connector_tx_id if about is not None else "",
        account=load_connector_account(connector, payment.channel_id, payment.account),
    )
    if not connector.asks_with_means:
        return request
    others = Payment.objects.filter(referenced=payment.referenced, payment_type="RV").exclude(pk=payment.pk)
    return replace(
        request,
        means=load_chain_means(payment.chain),
        amount_already_reversed=sum_payment_amounts(others.filter(status__in=COUNTED_STATUSES))
        if payment.payment_type == "RV"
        else Decimal(0),
        parameters=forwardable_parameters(
            {**flatten_body(payment.request), **payment.answer.get(AGREEMENT_REFERENCES_KEY, {})}
        ),
    )


def resolve_outcome(connector: Connector, request: AcquirerRequest, payment: Payment) -> InquiryResult:
    """Ask what became of ``request``; take it back if it never arrived, or if it was approved and the payment's rule
    set refuses it for its AVS or CVV answer, or if that was tried before: a void that is on its way may arrive after
    whatever is found out now. Nothing is taken back of a payment that got its answer meanwhile. Of the database it
    touches the mark of that alone."""
    started = time.perf_counter()
    try:
        found = connector.inquire(request)
    except OutcomeUnknownError as silence:
        return InquiryResult(exchanges=[_unknown_exchange("inquire", silence, started)], reply=None)
    first = _build_exchange("inquire", found.sent, found.received, started)
    if not isinstance(found, NotFoundAtAcquirer):
        verdict = risk_screening.evaluate_approval(payment, found)
        refused = verdict.outcome is RiskOutcome.DECLINE
        if not refused and _is_conclusive(payment, found):
            return InquiryResult(exchanges=[first], reply=found)
        if refused:
            if not _mark_void_attempted(payment):
                return InquiryResult(exchanges=[first], reply=None)
            return _void_refused_approval(connector, request, found, verdict, first)
    if not _mark_void_attempted(payment):
        return InquiryResult(exchanges=[first], reply=None)
    started = time.perf_counter()
    try:
        word = connector.void(request)
    except VoidRefusedError as kept:
        return _inquire_after_refused_void(connector, request, [first, _unknown_exchange("void", kept, started)])
    except OutcomeUnknownError as silence:
        return InquiryResult(exchanges=[first, _unknown_exchange("void", silence, started)], reply=None)
    second = _build_exchange("void", word.sent, word.received, started)
    return InquiryResult(exchanges=[first, second], reply=replace(word, code=TIMEOUT_REVERSED_CODE, approved=None))


def _void_refused_approval(
    connector: Connector, request: AcquirerRequest, found: AcquirerReply, verdict: RiskVerdict, first: InquiryExchange
) -> InquiryResult:
    """An approval that the payment's rule set refuses."""
    started = time.perf_counter()
    try:
        reversed_one = risk_screening.void_refused_approval(connector, request, found, verdict)
    except OutcomeUnknownError as silence:
        return InquiryResult(exchanges=[first, _unknown_exchange("void", silence, started)], reply=None)
    second = _build_exchange("void", {"void": request.payment.hex}, reversed_one.received, started)
    return InquiryResult(exchanges=[first, second], reply=reversed_one)


def _inquire_after_refused_void(
    connector: Connector, request: AcquirerRequest, exchanges: list[InquiryExchange]
) -> InquiryResult:
    """Whoever holds the question keeps it, whatever void is still on its way: what it says of it now is the last word.
    The question may have come between the inquiry before and the void."""
    started = time.perf_counter()
    try:
        found = connector.inquire(request)
    except OutcomeUnknownError as silence:
        return InquiryResult(exchanges=[*exchanges, _unknown_exchange("inquire", silence, started)], reply=None)
    last = _build_exchange("inquire", found.sent, found.received, started)
    return InquiryResult(exchanges=[*exchanges, last], reply=None if isinstance(found, NotFoundAtAcquirer) else found)


def _is_conclusive(payment: Payment, found: AcquirerReply) -> bool:
    return not payment.open.taken_back or event_from_reply(found) is LifecycleEvent.DECLINE


def _mark_void_attempted(payment: Payment) -> bool:
    """Write down, before a void goes out, that one may have: whoever asks may die before the answer. False when the
    payment has its answer by now: its worker was only slow, and a void would undo what its merchant was told."""
    if payment.open.taken_back or OpenPayment.objects.filter(pk=payment.pk).update(taken_back=True):
        return True
    return not Payment.objects.filter(pk=payment.pk).exclude(status=Status.IN_DOUBT).exists()


def resolve_outcome_in_thread(connector: Connector, request: AcquirerRequest, payment: Payment) -> InquiryResult:
    """:func:`resolve_outcome` in a thread of its own: the simulator's bank keeps its books in the database, and a
    thread that ends leaves its connection behind."""
    try:
        return resolve_outcome(connector, request, payment)
    finally:
        connection.close()


def record_outcome(payment: Payment, finding: InquiryResult) -> bool:
    """Write what was found out: the answer, or when to ask again. False when there is none yet, or somebody else
    was faster."""
    offset = payment.merchant.clock_offset
    *earlier, last = finding.exchanges
    for one in earlier:
        store.record_exchange(
            payment, one.kind, one.sent, one.received, at=one.at + offset, duration_ms=one.duration_ms
        )
    at = last.at + offset
    if finding.reply is None:
        again = clock.real_now() + get_inquiry_backoff(payment.open.inquiries)
        store.record_exchange(
            payment, last.kind, last.sent, last.received, at=at, duration_ms=last.duration_ms, recover_at=again
        )
        return False
    event = event_from_reply(finding.reply)
    try:
        store.complete_payment(
            payment,
            event,
            finding.reply,
            at=at,
            duration_ms=last.duration_ms,
            kind=last.kind,
            waiting=build_suspension(event, finding.reply, at),
        )
    except PaymentTransitionError:
        return False
    return True


def get_inquiry_backoff(inquiries: int) -> timedelta:
    """Until the next inquiry, after so many without an answer (1 or more)."""
    return timedelta(seconds=INQUIRY_BACKOFF_S[min(max(inquiries, 1), len(INQUIRY_BACKOFF_S)) - 1])


def _unknown_exchange(kind: str, silence: OutcomeUnknownError, started: float) -> InquiryExchange:
    return _build_exchange(kind, silence.sent, {"silence": mask_text(str(silence))}, started)


def _build_exchange(kind: str, sent: Mapping[str, Any], received: Mapping[str, Any], started: float) -> InquiryExchange:
    duration_ms = int((time.perf_counter() - started) * 1000)
    return InquiryExchange(
        kind=kind, at=clock.real_now(), sent=dict(sent), received=dict(received), duration_ms=duration_ms
    )
