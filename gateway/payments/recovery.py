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

from gateway import clock
from gateway.connectors.accounts import account_at
from gateway.connectors.message import flat, onwards
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector, NeverArrived, NotTakenBack, Silence
from gateway.connectors.routing import CONNECTORS
from gateway.masking import mask_text
from gateway.models import OpenPayment, Payment, Status
from gateway.money import Money
from gateway.payments import screening, store
from gateway.payments.chain import COUNTED, total
from gateway.payments.follow_up import means_of_chain
from gateway.payments.process import AGREED, IN_DOUBT_CODE, event_of, waiting_of
from gateway.payments.states import Event, ImpossibleMove
from gateway.risk.screening import Outcome, Verdict
from gateway.rows import execute
from gateway.vault import VaultError

AT_ONCE: Final = 32
"""Payments claimed together, and asked about at one account at the same time: a claim must not run out in a queue."""
ACCOUNTS_AT_ONCE: Final = 2
"""Times AT_ONCE questions to one connector: a silent account leaves room to its others, they to other connectors."""
MOST_AT_ONCE: Final = 4 * AT_ONCE
"""Questions to all accounts together. Nobody holds more of them than are free: however many are silent, their shares
shrink and the others go on."""
OF_THE_FREE: Final = 4
"""The share of what is free that one claim takes: nobody's share is much exceeded before it is counted again."""
ROUNDS_S: Final = 5.0
LONGEST_S: Final = 30.0
"""Of one tick: while it waits for a silent acquirer it goes on with the others, but not for ever."""
LOOK_EVERY_S: Final = 0.5
PAUSES_S: Final = (1, 2, 4, 8, 15, 30, 45)
"""From one inquiry without an answer to the next; the last repeats. Short enough that a payment is settled within a
minute after its acquirer is back."""
TIMEOUT_REVERSED: Final = "900.100.301"
_MOST_INQUIRIES: Final = 32_000

Place = tuple[str, UUID | None, str]
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
class Exchange:
    """One question to the acquirer about a payment. ``received`` tells a silence too. ``at``: when it was over, real
    time."""

    kind: str
    at: datetime
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
    with _inquiries() as pool:
        payments = claim(min(limit, AT_ONCE), now or clock.real())
        asked = _ask_about(payments, pool)
        settled = sum(_settle(asked[future], future) for future in as_completed(asked))
    return Recovered(claimed=len(payments), settled=settled)


def recover_all_due() -> Recovered:
    """Recover until nothing is due, for ROUNDS_S at most: then the next tick goes on. While an acquirer keeps this one
    waiting, payments of the others are recovered."""
    claimed = settled = 0
    began = time.monotonic()
    asked: dict[Future[Finding], Payment] = {}
    with _inquiries() as pool:
        while True:
            took = time.monotonic() - began
            payments: list[Payment] = []
            free = MOST_AT_ONCE - len(asked)
            most = min(AT_ONCE, -(-free // OF_THE_FREE))
            if free > 0 and (took < ROUNDS_S or (asked and took < LONGEST_S)):
                payments = claim(most, clock.real(), besides=_full(asked.values(), free))
                claimed += len(payments)
                asked |= _ask_about(payments, pool)
            if not asked and len(payments) < most:
                return Recovered(claimed=claimed, settled=settled)
            for future in wait(asked, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED).done:
                settled += _settle(asked.pop(future), future)


def _inquiries() -> ThreadPoolExecutor:
    """Threads that talk to acquirers only; rows are read and written by the caller, on one connection."""
    return ThreadPoolExecutor(max_workers=MOST_AT_ONCE + AT_ONCE, thread_name_prefix="inquiry")


def _ask_about(payments: Iterable[Payment], pool: ThreadPoolExecutor) -> dict[Future[Finding], Payment]:
    """Send the questions about ``payments`` off; what will answer each."""
    asked: dict[Future[Finding], Payment] = {}
    for payment in payments:
        connector = CONNECTORS.get(payment.connector)
        if connector is None:
            log.error("connector_missing", payment=payment.id.hex, connector=payment.connector)
        elif doubt(payment):
            try:
                request = inquiry(payment, connector)
            except VaultError as fault:
                # Its claim runs out and it is asked about again; the key may be back by then.
                log.error("account_does_not_open", payment=payment.id.hex, why=str(fault))
            else:
                asked[pool.submit(ask_apart, connector, request, payment)] = payment
    return asked


def _settle(payment: Payment, future: Future[Finding]) -> bool:
    """Settle one payment; a fault in it must not keep the others waiting: its claim runs out and it is due again."""
    try:
        return settle(payment, future.result())
    except Exception:
        log.exception("recovery_failed", payment=payment.id.hex)
        return False


def _full(asked: Iterable[Payment], free: int) -> list[Place]:
    """Where nothing more is asked for now: accounts, and whole connectors, that have their share of the questions, or
    as many as are still ``free``."""
    busy: Counter[Place] = Counter()
    for payment in asked:
        busy[payment.connector, payment.channel_id, payment.account] += 1
        busy[payment.connector, None, ""] += 1
    share = {True: min(AT_ONCE, free), False: min(ACCOUNTS_AT_ONCE * AT_ONCE, free)}
    return [place for place, number in busy.items() if number >= share[place[1] is not None]]


def claim(limit: int, now: datetime, *, besides: Sequence[Place] = ()) -> list[Payment]:
    """The payments due by ``now``, each for one claimer: their time is moved on by as long as asking may take, so
    that another one takes over only when the claimer has died. ``besides``: those whose payments wait."""
    lease = timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S) + store.GRACE
    values = {
        "now": now, "limit": limit, "lease": now + lease, "most": _MOST_INQUIRIES,
        "connectors": [name for name, _channel, _account in besides],
        "channels": [channel for _name, channel, _account in besides],
        "accounts": [account for _name, _channel, account in besides],
    }  # fmt: skip
    rows = execute(_CLAIM, values)
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


def inquiry(payment: Payment, connector: Connector) -> AcquirerRequest:
    """The question as far as asking about it needs it: no card and no parameters, unless the connector says it does.
    Raises VaultError."""
    about = Payment.objects.only("connector_tx_id").get(pk=payment.referenced) if payment.referenced else None
    request = AcquirerRequest(
        payment=payment.id, operation=payment.payment_type, money=Money(payment.amount, payment.currency),
        brand=payment.brand, at=payment.created_at, learnt=payment.connector_tx_id,
        reference=about.connector_tx_id if about is not None else "",
        account=account_at(connector, payment.channel_id, payment.account),
    )  # fmt: skip
    if not connector.asks_with_means:
        return request
    others = Payment.objects.filter(referenced=payment.referenced, payment_type="RV").exclude(pk=payment.pk)
    return replace(
        request,
        means=means_of_chain(payment.chain),
        reversed_besides=total(others.filter(status__in=COUNTED)) if payment.payment_type == "RV" else Decimal(0),
        parameters=onwards({**flat(payment.request), **payment.answer.get(AGREED, {})}),
    )


def ask(connector: Connector, request: AcquirerRequest, payment: Payment) -> Finding:
    """Ask what became of ``request``; take it back if it never arrived, or if it was approved and the payment's rule
    set refuses it for its AVS or CVV answer, or if that was tried before: a void that is on its way may arrive after
    whatever is found out now. Nothing is taken back of a payment that got its answer meanwhile. Of the database it
    touches the mark of that alone."""
    started = time.perf_counter()
    try:
        found = connector.inquire(request)
    except Silence as silence:
        return Finding(exchanges=[_silence("inquire", silence, started)], reply=None)
    first = _exchange("inquire", found.sent, found.received, started)
    if not isinstance(found, NeverArrived):
        verdict = screening.judged(payment, found)
        refused = verdict.outcome is Outcome.DECLINE
        if not refused and _is_last_word(payment, found):
            return Finding(exchanges=[first], reply=found)
        if refused:
            if not _will_take_back(payment):
                return Finding(exchanges=[first], reply=None)
            return _taken_back(connector, request, found, verdict, first)
    if not _will_take_back(payment):
        return Finding(exchanges=[first], reply=None)
    started = time.perf_counter()
    try:
        word = connector.void(request)
    except NotTakenBack as kept:
        return _kept(connector, request, [first, _silence("void", kept, started)])
    except Silence as silence:
        return Finding(exchanges=[first, _silence("void", silence, started)], reply=None)
    second = _exchange("void", word.sent, word.received, started)
    return Finding(exchanges=[first, second], reply=replace(word, code=TIMEOUT_REVERSED, approved=None))


def _taken_back(
    connector: Connector, request: AcquirerRequest, found: AcquirerReply, verdict: Verdict, first: Exchange
) -> Finding:
    """An approval that the payment's rule set refuses."""
    started = time.perf_counter()
    try:
        reversed_one = screening.take_back(connector, request, found, verdict)
    except Silence as silence:
        return Finding(exchanges=[first, _silence("void", silence, started)], reply=None)
    second = _exchange("void", {"void": request.payment.hex}, reversed_one.received, started)
    return Finding(exchanges=[first, second], reply=reversed_one)


def _kept(connector: Connector, request: AcquirerRequest, exchanges: list[Exchange]) -> Finding:
    """Whoever holds the question keeps it, whatever void is still on its way: what it says of it now is the last word.
    The question may have come between the inquiry before and the void."""
    started = time.perf_counter()
    try:
        found = connector.inquire(request)
    except Silence as silence:
        return Finding(exchanges=[*exchanges, _silence("inquire", silence, started)], reply=None)
    last = _exchange("inquire", found.sent, found.received, started)
    return Finding(exchanges=[*exchanges, last], reply=None if isinstance(found, NeverArrived) else found)


def _is_last_word(payment: Payment, found: AcquirerReply) -> bool:
    return not payment.open.taken_back or event_of(found) is Event.DECLINE


def _will_take_back(payment: Payment) -> bool:
    """Write down, before a void goes out, that one may have: whoever asks may die before the answer. False when the
    payment has its answer by now: its worker was only slow, and a void would undo what its merchant was told."""
    if payment.open.taken_back or OpenPayment.objects.filter(pk=payment.pk).update(taken_back=True):
        return True
    return not Payment.objects.filter(pk=payment.pk).exclude(status=Status.IN_DOUBT).exists()


def ask_apart(connector: Connector, request: AcquirerRequest, payment: Payment) -> Finding:
    """:func:`ask` in a thread of its own: the simulator's bank keeps its books in the database, and a thread that
    ends leaves its connection behind."""
    try:
        return ask(connector, request, payment)
    finally:
        connection.close()


def settle(payment: Payment, finding: Finding) -> bool:
    """Write what was found out: the answer, or when to ask again. False when there is none yet, or somebody else
    was faster."""
    offset = payment.merchant.clock_offset
    *earlier, last = finding.exchanges
    for one in earlier:
        store.keep(payment, one.kind, one.sent, one.received, at=one.at + offset, duration_ms=one.duration_ms)
    at = last.at + offset
    if finding.reply is None:
        again = clock.real() + pause(payment.open.inquiries)
        store.keep(payment, last.kind, last.sent, last.received, at=at, duration_ms=last.duration_ms, recover_at=again)
        return False
    event = event_of(finding.reply)
    try:
        store.complete(
            payment, event, finding.reply, at=at, duration_ms=last.duration_ms, kind=last.kind,
            waiting=waiting_of(event, finding.reply, at),
        )  # fmt: skip
    except ImpossibleMove:
        return False
    return True


def pause(inquiries: int) -> timedelta:
    """Until the next inquiry, after so many without an answer (1 or more)."""
    return timedelta(seconds=PAUSES_S[min(max(inquiries, 1), len(PAUSES_S)) - 1])


def _silence(kind: str, silence: Silence, started: float) -> Exchange:
    return _exchange(kind, silence.sent, {"silence": mask_text(str(silence))}, started)


def _exchange(kind: str, sent: Mapping[str, Any], received: Mapping[str, Any], started: float) -> Exchange:
    duration_ms = int((time.perf_counter() - started) * 1000)
    return Exchange(kind=kind, at=clock.real(), sent=dict(sent), received=dict(received), duration_ms=duration_ms)
