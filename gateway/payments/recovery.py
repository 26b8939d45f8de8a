"""Recovery: inquires at acquirers about payments without an answer until their outcome is known.

A payment whose ``recover_at`` has passed is claimed by a lease, and its connector is asked for the outcome. If the
acquirer has one, the payment gets it. If the acquirer never received the request, recovery voids it, so that it cannot
be accepted later; only a confirmed void declines the payment, or an acquirer's last word that nothing is left to void,
of which a person is told (UNPROVEN_EXCHANGE). A void once tried is carried through, since it may still arrive after an
approval, unless the acquirer refuses it. Without an answer recovery inquires again later, without end: a deadline never
turns an unknown outcome into a decline; of a refund or credit whose reversals are refused only seldom
(refused_reversals.py). Real time throughout.
Source: decisions, house rule 4; goals R1, R3.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection

from gateway import tracing
from gateway.connectors.accounts import load_connector_account
from gateway.connectors.acquirer_message import flatten_body, forwardable_parameters
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    Connector,
    NotFoundAtAcquirer,
    NotFoundYetError,
    OutcomeUnknownError,
    ReversalReason,
    VoidRefusedError,
)
from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE
from gateway.db.statement import execute_sql
from gateway.models import AcquirerExchange, OpenPayment, Payment, Status
from gateway.models.payments import PERSON_TYPES, UNDECIDED
from gateway.payments import risk_screening, step_up, store
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import (
    find_authorizing_payment,
    load_chain_means,
    load_chain_members,
    name_authorization,
)
from gateway.payments.late_outcomes import DENIED_EXCHANGE, LATE_EXCHANGE, mark_outcome_unknown, record_late_outcome
from gateway.payments.outcomes import (
    Approved,
    Declined,
    describe_silence,
    outcome_from_reply,
    resolve_event,
)
from gateway.payments.payout_decisions import is_entered_as_not_paid
from gateway.payments.points_of_service import find_point_of_service
from gateway.payments.refused_reversals import count_refusals, get_refusal_pause, is_for_person, is_refusal
from gateway.payments.states import LifecycleEvent, PaymentTransitionError
from gateway.payments.stored_answer import EarlierDecline, get_attempt_number, read_private_facts
from gateway.risk.evaluation import RiskOutcome, RiskVerdict
from gateway.timers.registry import Timer
from gateway.vault.sealing import VaultError

RECOVERY_BATCH_SIZE: Final = 32
"""Payments claimed together, and the parallel inquiries at one account: a lease must not run out in a queue."""
MAX_BATCHES_PER_CONNECTOR: Final = 2
"""Times RECOVERY_BATCH_SIZE parallel inquiries to one connector: an account that does not answer leaves room for the
connector's other accounts, and these for other connectors."""
MAX_OPEN_INQUIRIES: Final = 4 * RECOVERY_BATCH_SIZE
"""Parallel inquiries to all accounts. No account may hold more of them than are free: the more accounts do not answer,
the smaller their shares, so that the others go on."""
FREE_SHARE_DIVISOR: Final = 4
"""One claim takes this fraction of the free inquiries, so that no share is exceeded by much before the next count."""
MAX_CLAIMING_S: Final = 5.0
MAX_RECOVERY_TICK_S: Final = 30.0
"""Limit of one tick: while acquirers do not answer, it goes on with the others, for at most this long."""
INQUIRY_POLL_S: Final = 0.5
INQUIRY_BACKOFF_S: Final = (1, 2, 4, 8, 15, 30, 45)
"""Delays between inquiries without an answer; the last repeats. Short enough that a payment has its result within a
minute after its acquirer is back."""
WAITING_EXCHANGE: Final = "wait"
"""Kind of the exchange of a look at a payment that waits for a person: nothing was sent, and nobody was asked."""
UNPROVEN_EXCHANGE: Final = "unproven"
"""Kind of the exchange of a void after which a late approval may stand: nothing more is sent, and somebody has to ask
the acquirer (``AcquirerReply.may_stand``)."""
_MAX_INQUIRIES: Final = 32_000
MAX_VOID_ANSWERS: Final = 16
"""Answers to earlier voids of one payment that a connector is given."""

InquiryTarget = tuple[str, UUID | None, str]
"""Where a payment is inquired about: (connector, channel, acquirer merchant id); with channel None, all accounts of the
connector."""

log = structlog.get_logger(__name__)

_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT payment_id FROM gateway_openpayment o
    WHERE recover_at <= statement_timestamp() AND (cardinality(%(connectors)s::text[]) = 0 OR NOT EXISTS (
        SELECT 1 FROM gateway_payment p
        JOIN unnest(%(connectors)s::text[], %(channels)s::uuid[], %(accounts)s::text[])
          AS busy (connector, channel, account)
          ON p.connector = busy.connector
             AND (busy.channel IS NULL OR p.channel_id = busy.channel AND p.acquirer_merchant_id = busy.account)
        WHERE p.id = o.payment_id
    ))
    ORDER BY recover_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE gateway_openpayment o SET recover_at = clock_timestamp() + %(lease)s::interval,
    inquiries = least(o.inquiries + 1, %(most)s)::smallint
FROM due WHERE o.payment_id = due.payment_id RETURNING o.payment_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryExchange:
    """One inquiry or void that was sent to the acquirer, or a WAITING_EXCHANGE. ``received``: the answer, or that there
    was none. ``at``: when it ended, real time."""

    kind: str
    at: datetime
    sent: dict[str, Any]
    received: dict[str, Any]
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryResult:
    """The result of an inquiry. ``exchanges``: in order; ``reply``: the outcome that the last of them gave, None while
    it is unknown. ``was_taken_back``: the outcome is the decline of the account before, since the attempt was voided.
    ``ask_again_after``: of VoidRefusedError; ``not_found_yet``: of NotFoundYetError, the id of what may still arrive.
    """

    exchanges: Sequence[InquiryExchange]
    reply: AcquirerReply | None
    was_taken_back: bool = False
    ask_again_after: timedelta | None = None
    not_found_yet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySummary:
    """``claimed``: payments that were due; ``settled``: those of them whose outcome is recorded now."""

    claimed: int
    settled: int


def recover_due_payments() -> RecoverySummary:
    """Recover payments until none is due, for at most MAX_CLAIMING_S; the next tick continues. While one acquirer does
    not answer, payments of the others are recovered (MAX_RECOVERY_TICK_S)."""
    claimed = settled = 0
    began = time.monotonic()
    inquiries: dict[Future[InquiryResult], Payment] = {}
    with _build_inquiry_pool() as pool:
        while True:
            took = time.monotonic() - began
            payments: list[Payment] = []
            free = MAX_OPEN_INQUIRIES - len(inquiries)
            most = min(RECOVERY_BATCH_SIZE, -(-free // FREE_SHARE_DIVISOR))
            if free > 0 and (took < MAX_CLAIMING_S or (inquiries and took < MAX_RECOVERY_TICK_S)):
                payments = claim_due_inquiries(most, excluding=_list_busy_targets(inquiries.values(), free))
                claimed += len(payments)
                settled += sum(_begin_recovery_safely(payment, pool, inquiries) for payment in payments)
            if not inquiries and len(payments) < most:
                return RecoverySummary(claimed=claimed, settled=settled)
            for future in wait(inquiries, timeout=INQUIRY_POLL_S, return_when=FIRST_COMPLETED).done:
                settled += _record_outcome_safely(inquiries.pop(future), future)


def _begin_recovery_safely(
    payment: Payment, pool: ThreadPoolExecutor, inquiries: dict[Future[InquiryResult], Payment]
) -> bool:
    """End one payment at once, or start its inquiry; True when it has ended. An error in one payment does not stop the
    others, whose answers are on their way: its lease runs out and it is due again."""
    try:
        if _end_unfinished_step_up(payment):
            return True
        if (inquiry := _submit_inquiry(payment, pool)) is not None:
            inquiries[inquiry] = payment
    except Exception:
        log.exception("recovery_failed", payment=payment.id.hex)
    return False


def _end_unfinished_step_up(payment: Payment) -> bool:
    """Decline a payment whose worker died between its soft decline and the redirect to the challenge: its issuer has
    said no, and was not asked again. False for any other payment."""
    if payment.status not in (Status.STARTED, Status.IN_DOUBT) or not step_up.has_unfinished_challenge(payment):
        return False
    declined = read_private_facts(payment.answer).earlier_decline or EarlierDecline(code=SOFT_DECLINE)
    reply = AcquirerReply(code=declined.code, details=declined.details)
    outcome = Declined(reply=reply, at=clock.merchant_now(payment.merchant))
    try:
        store.complete_payment(payment, outcome)
    except PaymentTransitionError:
        log.info("step_up_overtaken", payment=payment.id.hex)  # its worker was only slow
    return True


def _build_inquiry_pool() -> ThreadPoolExecutor:
    """A pool whose threads call acquirers only; the caller reads and writes all rows on its own connection."""
    return ThreadPoolExecutor(max_workers=MAX_OPEN_INQUIRIES + RECOVERY_BATCH_SIZE, thread_name_prefix="inquiry")


def _submit_inquiry(payment: Payment, pool: ThreadPoolExecutor) -> Future[InquiryResult] | None:
    """Start the inquiry about a payment; None where there is none to make now."""
    connector = CONNECTORS.get(payment.connector)
    if connector is None:
        log.error("connector_missing", payment=payment.id.hex, connector=payment.connector)
        return None
    if not mark_outcome_unknown(payment):
        return None
    try:
        request = build_inquiry(payment, connector)
    except VaultError as fault:
        # Its lease runs out and it is due again; the vault key may be back by then.
        log.error("acquirer_secrets_unreadable", payment=payment.id.hex, why=str(fault))
        return None
    return pool.submit(resolve_outcome_in_thread, connector, request, payment)


def _record_outcome_safely(payment: Payment, future: Future[InquiryResult]) -> bool:
    """Record one outcome; an error in one payment does not stop the others: its lease runs out and it is due again."""
    try:
        return record_outcome(payment, future.result())
    except Exception:
        log.exception("recovery_failed", payment=payment.id.hex)
        return False


def _list_busy_targets(inquiries: Iterable[Payment], free: int) -> list[InquiryTarget]:
    """The accounts and connectors that have their share of parallel inquiries already, or as many as are ``free``."""
    busy: Counter[InquiryTarget] = Counter()
    for payment in inquiries:
        busy[payment.connector, payment.channel_id, payment.acquirer_merchant_id] += 1
        busy[payment.connector, None, ""] += 1
    share = {True: min(RECOVERY_BATCH_SIZE, free), False: min(MAX_BATCHES_PER_CONNECTOR * RECOVERY_BATCH_SIZE, free)}
    return [target for target, number in busy.items() if number >= share[target[1] is not None]]


def claim_due_inquiries(limit: int, *, excluding: Sequence[InquiryTarget] = ()) -> list[Payment]:
    """Claim due payments by a lease: ``recover_at`` moves on by as long as an inquiry may take, so that another worker
    takes over only if this one died. By the database's clock: a worker whose own is ahead would take back payments
    that are on their way. ``excluding``: targets whose payments are left out."""
    lease = timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S) + store.ANSWER_GRACE
    values = {
        "limit": limit,
        "lease": lease,
        "most": _MAX_INQUIRIES,
        "connectors": [name for name, _channel, _account in excluding],
        "channels": [channel for _name, channel, _account in excluding],
        "accounts": [account for _name, _channel, account in excluding],
    }
    rows = execute_sql(_CLAIM, values)
    claimed: list[UUID] = [row[0] for row in rows]
    if not claimed:
        return []
    # A declined payment is here when an approval of it came too late: it is voided.
    undecided = (Status.STARTED, Status.IN_DOUBT, Status.DECLINED)
    unanswered = Payment.objects.filter(pk__in=claimed, status__in=undecided)
    return list(unanswered.select_related("merchant", "open").order_by("id"))


def build_inquiry(payment: Payment, connector: Connector) -> AcquirerRequest:
    """Rebuild the acquirer request for an inquiry: without card and parameters, unless the connector needs them
    (``asks_with_means``). Raises VaultError."""
    chain = Chain(load_chain_members(payment.chain)) if payment.referenced else None
    followed = chain.find(payment.referenced) if chain is not None and payment.referenced is not None else None
    opened: OpenPayment | None = getattr(payment, "open", None)  # gone once the payment has its final result
    called_at = store.find_call_time(payment)
    request = AcquirerRequest(
        payment=payment.id,
        operation=payment.payment_type,
        money=Money(payment.amount, payment.currency),
        brand=payment.brand,
        at=called_at or payment.created_at,
        known_transaction_id=payment.connector_tx_id,
        trace_number=opened.trace_number if opened is not None else 0,
        reference=followed.connector_tx_id if followed is not None else "",
        account=load_connector_account(connector, payment.channel_id, payment.acquirer_merchant_id),
        attempt=get_attempt_number(payment),
        called_at=called_at - payment.merchant.clock_offset if called_at is not None else None,
        asked_for=_add_up_backoffs(opened.inquiries) if opened is not None else None,
        earlier_void_answers=_list_void_answers(payment) if opened is not None and opened.void_attempted else (),
        undecided_answer=_find_undecided_answer(payment),
    )
    if connector.asks_with_means:
        whole = chain or Chain([payment])
        request = replace(
            request,
            means=load_chain_means(payment.chain, find_authorizing_payment(whole, payment).id),
            parameters=forwardable_parameters(
                {**flatten_body(payment.request), **read_private_facts(payment.answer).agreement_references}
            ),
            original=find_point_of_service(whole, payment),
        )
    # Last: by its point of service a renewal names the first authorization.
    return name_authorization(request, chain, followed) if chain is not None and followed is not None else request


def _list_void_answers(payment: Payment) -> list[dict[str, Any]]:
    """What the payment's acquirer answered to voids of it: an approval that came late is voided once more."""
    voids = AcquirerExchange.objects.filter(payment=payment.pk, connector=payment.connector, kind="void")
    took_back = voids.exclude(received__has_any_keys=["silence", UNDECIDED])
    answered = took_back.order_by("id").values_list("received", flat=True)
    return [received for received in answered[:MAX_VOID_ANSWERS] if received is not None]


def _find_undecided_answer(payment: Payment) -> dict[str, Any]:
    """What the payment's acquirer answered to its message, in time or late, where that decides nothing."""
    own = AcquirerExchange.objects.filter(
        payment=payment.pk, connector=payment.connector, kind__in=("submit", LATE_EXCHANGE)
    )
    undecided = own.filter(received__has_key=UNDECIDED).order_by("-id")
    return undecided.values_list("received", flat=True).first() or {}


def resolve_outcome(connector: Connector, request: AcquirerRequest, payment: Payment) -> InquiryResult:
    """Inquire about the outcome of ``request``, and void it if it never arrived, if it was approved but is refused
    (:func:`risk_screening.evaluate_approval`), or if a void was tried before (one under way may still arrive after what
    is found now). A payment that was completed meanwhile is not voided. Writes nothing but
    ``OpenPayment.void_attempted``.
    """
    with tracing.trace_span(
        "recovery", ndc=lambda: identifiers.format_ndc(payment.request_id, payment.channel_id.hex)
    ) as span:
        span.set(connector=connector.name, payment=payment.id.hex)
        result = _prefer_earlier_decline(payment, _resolve_outcome(connector, request, payment))
        span.set(answered=result.reply is not None)
        return result


def _resolve_outcome(connector: Connector, request: AcquirerRequest, payment: Payment) -> InquiryResult:
    if payment.status == Status.DECLINED:
        return _void_late_approval(connector, request)
    started = time.perf_counter()
    try:
        found = connector.inquire(request)
    except OutcomeUnknownError as unknown:
        return InquiryResult(exchanges=[_build_unknown_exchange("inquire", unknown, started)], reply=None)
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
    # A void that was sent before is repeated with what it said.
    kept = read_private_facts(payment.answer)
    reason = risk_screening.get_reversal_reason(kept.refused_code)
    started = time.perf_counter()
    try:
        voided = connector.void(replace(request, reversal_reason=reason))
    except VoidRefusedError as refused:
        if refused.ask_again_after is not None:
            waits = _build_unknown_exchange(WAITING_EXCHANGE, refused, started)
            return InquiryResult(exchanges=[waits], reply=None, ask_again_after=refused.ask_again_after)
        return _inquire_after_refused_void(
            connector, request, [first, _build_unknown_exchange("void", refused, started)]
        )
    except OutcomeUnknownError as unknown:
        exchanges = [first, _build_unknown_exchange("void", unknown, started)]
        return InquiryResult(exchanges=exchanges, reply=None, not_found_yet=_name_not_found(unknown))
    second = _build_exchange("void", voided.sent, voided.received, started)
    code, details = kept.refused_code or TIMEOUT_REVERSED_CODE, {**voided.details, **kept.refused_details}
    return InquiryResult(exchanges=[first, second], reply=replace(voided, code=code, approved=None, details=details))


def _prefer_earlier_decline(payment: Payment, result: InquiryResult) -> InquiryResult:
    """``result`` of an authorization attempt that was taken back or never arrived, with the issuer's decline of the
    attempt before: nothing else is known of the card. Not a soft decline, since the shopper has authenticated."""
    reply, declined = result.reply, read_private_facts(payment.answer).earlier_decline
    if reply is None or reply.code != TIMEOUT_REVERSED_CODE or declined is None or declined.code == SOFT_DECLINE:
        return result
    return replace(result, reply=replace(reply, code=declined.code, details=declined.details), was_taken_back=True)


def _void_late_approval(connector: Connector, request: AcquirerRequest) -> InquiryResult:
    """Void what the acquirer approved after recovery had declined the payment."""
    started = time.perf_counter()
    try:
        # It was answered, so nothing of it is under way.
        voided = connector.void(replace(request, reversal_reason=ReversalReason.TIMEOUT, asked_for=None))
    except OutcomeUnknownError as unknown:
        again = unknown.ask_again_after if isinstance(unknown, VoidRefusedError) else None
        exchanges = [_build_unknown_exchange(WAITING_EXCHANGE if again is not None else "void", unknown, started)]
        return InquiryResult(
            exchanges=exchanges, reply=None, ask_again_after=again, not_found_yet=_name_not_found(unknown)
        )
    return InquiryResult(exchanges=[_build_exchange("void", voided.sent, voided.received, started)], reply=voided)


def _void_refused_approval(
    connector: Connector, request: AcquirerRequest, found: AcquirerReply, verdict: RiskVerdict, first: InquiryExchange
) -> InquiryResult:
    """Void an approval that fails the AVS/CVV policy of the rule set, or is for less than its channel takes."""
    started = time.perf_counter()
    try:
        voided = risk_screening.void_refused_approval(connector, request, found, verdict)
    except OutcomeUnknownError as unknown:
        return InquiryResult(exchanges=[first, _build_unknown_exchange("void", unknown, started)], reply=None)
    second = _build_exchange("void", {"void": request.payment.hex}, voided.received, started)
    return InquiryResult(exchanges=[first, second], reply=voided)


def _inquire_after_refused_void(
    connector: Connector, request: AcquirerRequest, exchanges: list[InquiryExchange]
) -> InquiryResult:
    """Inquire once more after the acquirer refused the void: its answer now is final, whatever void is still under way,
    because the request may have arrived between the first inquiry and the void."""
    started = time.perf_counter()
    try:
        found = connector.inquire(request)
    except OutcomeUnknownError as unknown:
        return InquiryResult(exchanges=[*exchanges, _build_unknown_exchange("inquire", unknown, started)], reply=None)
    last = _build_exchange("inquire", found.sent, found.received, started)
    return InquiryResult(exchanges=[*exchanges, last], reply=None if isinstance(found, NotFoundAtAcquirer) else found)


def _is_conclusive(payment: Payment, found: AcquirerReply) -> bool:
    """Whether the answer is final: any answer before a void was tried, afterwards a decline only."""
    return not payment.open.void_attempted or resolve_event(found) is LifecycleEvent.DECLINE


def _mark_void_attempted(payment: Payment) -> bool:
    """Record that a void is tried before it is sent, in case this worker dies before the answer. False when the payment
    was completed meanwhile: its worker was only slow, and a void would undo a result the merchant has."""
    if payment.open.void_attempted or OpenPayment.objects.filter(pk=payment.pk).update(void_attempted=True):
        return True
    return not Payment.objects.filter(pk=payment.pk).exclude(status=Status.IN_DOUBT).exists()


def resolve_outcome_in_thread(connector: Connector, request: AcquirerRequest, payment: Payment) -> InquiryResult:
    """:func:`resolve_outcome` in a thread of its own, whose database connection is closed at the end (the simulator
    and the void mark use one)."""
    try:
        return resolve_outcome(connector, request, payment)
    finally:
        connection.close()


def record_outcome(payment: Payment, finding: InquiryResult) -> bool:
    """Record the outcome of an inquiry, or the time of the next one. False when the outcome is unknown still, or
    another worker completed the payment first."""
    *earlier, last = finding.exchanges
    for exchange in earlier:
        _record_exchange(payment, exchange)
    at = last.at + payment.merchant.clock_offset
    if finding.reply is None:
        again = (
            finding.ask_again_after or _find_refusal_pause(payment, last) or get_inquiry_backoff(payment.open.inquiries)
        )
        unmoved = store.record_exchange(
            payment,
            last.kind,
            last.sent,
            last.received,
            at=at,
            duration_ms=last.duration_ms,
            inquire_after=again,
            void_anew=finding.not_found_yet,
        )
        if not unmoved:
            _record_exchange(payment, last)
        return False
    connector = payment.connector
    if finding.reply.may_stand:
        last = replace(last, kind=UNPROVEN_EXCHANGE)
    if payment.status == Status.DECLINED:
        _record_exchange(payment, last)
        if not store.close_late_approval(payment):
            return False
        if finding.reply.may_stand:
            _log_late_approval_that_may_stand(payment, connector)
        else:
            log.warning("late_approval_voided", payment=payment.id.hex, connector=connector)
        return True
    outcome = outcome_from_reply(finding.reply, at=at, duration_ms=last.duration_ms)
    try:
        store.complete_payment(payment, outcome, kind=last.kind, was_taken_back=finding.was_taken_back)
    except PaymentTransitionError:
        # A late approval came meanwhile, or another worker was faster: what was sent is told all the same.
        payment.refresh_from_db()
        if isinstance(outcome, Approved) and is_entered_as_not_paid(payment):
            # A person entered "not paid", and the acquirer says to the repeat under way that it was made.
            asked = store.get_attempt_columns(payment)
            complete = partial(store.complete_payment, payment, outcome, kind=last.kind)
            record_late_outcome(payment, outcome, complete, asked=asked, trace=None, kind=last.kind)
            return False
        denies = isinstance(outcome, Declined) and payment.status == Status.APPROVED
        if denies and (last.kind == "void" or is_for_person(payment)):
            # A person entered "paid", and the acquirer reversed or declined it at the same time: both cannot be right.
            log.error("declined_after_approval", payment=payment.id.hex, connector=connector)
            last = replace(last, kind=DENIED_EXCHANGE)
        _record_exchange(payment, last, connector)
        return False
    if finding.reply.may_stand:
        _log_late_approval_that_may_stand(payment, connector)
    return True


def _find_refusal_pause(payment: Payment, last: InquiryExchange) -> timedelta | None:
    """How long a host is left alone that refuses to take a refund or credit back, or has no verdict on the repeats of a
    capture or reversal, ``last`` included."""
    if payment.payment_type not in PERSON_TYPES:
        return None
    return get_refusal_pause(count_refusals(payment) + is_refusal(last.kind, last.received))


def _log_late_approval_that_may_stand(payment: Payment, connector: str) -> None:
    """Log that the shopper may be debited for a payment that is declined here: a person has to ask the acquirer."""
    log.error("late_approval_may_stand", payment=payment.id.hex, connector=connector)


def _record_exchange(payment: Payment, exchange: InquiryExchange, connector: str = "") -> None:
    """Store an exchange, whatever became of the payment meanwhile. ``connector``: that was asked, where the payment has
    another one in memory by now."""
    store.record_exchange(
        payment,
        exchange.kind,
        exchange.sent,
        exchange.received,
        at=exchange.at + payment.merchant.clock_offset,
        duration_ms=exchange.duration_ms,
        connector=connector,
    )


def get_inquiry_backoff(inquiries: int) -> timedelta:
    """The delay until the next inquiry after ``inquiries`` (1 or more) without an answer."""
    return timedelta(seconds=INQUIRY_BACKOFF_S[min(max(inquiries, 1), len(INQUIRY_BACKOFF_S)) - 1])


def _add_up_backoffs(inquiries: int) -> timedelta:
    """How long an acquirer has been asked, at least, when the inquiry number ``inquiries`` is made."""
    before = max(inquiries, 1) - 1
    longest = INQUIRY_BACKOFF_S[-1] * max(0, before - len(INQUIRY_BACKOFF_S))
    return timedelta(seconds=sum(INQUIRY_BACKOFF_S[:before]) + longest)


def _name_not_found(unknown: OutcomeUnknownError) -> str:
    return unknown.connector_tx_id if isinstance(unknown, NotFoundYetError) else ""


def _build_unknown_exchange(kind: str, unknown: OutcomeUnknownError, started: float) -> InquiryExchange:
    return _build_exchange(kind, unknown.sent, describe_silence(unknown), started)


def _build_exchange(kind: str, sent: Mapping[str, Any], received: Mapping[str, Any], started: float) -> InquiryExchange:
    duration_ms = int((time.perf_counter() - started) * 1000)
    return InquiryExchange(
        kind=kind, at=clock.real_now(), sent=dict(sent), received=dict(received), duration_ms=duration_ms
    )


TIMER: Final = Timer(
    name="recovery",
    run=lambda: recover_due_payments().claimed,
    about="Ask the acquirer about payments without an answer.",
    earliest_due="SELECT min(recover_at) FROM gateway_openpayment",
)
