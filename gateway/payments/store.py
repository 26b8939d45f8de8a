"""The only writer of payments: rows for a beginning, rows for an end, each set in one statement and one commit.

No transaction is open while an acquirer thinks: ``insert_payment`` has committed before, ``complete_payment`` starts
after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError

from gateway.connectors.port import AcquirerReply
from gateway.core import clock, result_codes
from gateway.db.statement import WriteStatement
from gateway.models import (
    AcquirerExchange,
    Agreement,
    Notification,
    OpenPayment,
    Payment,
    PaymentEvent,
    RequestLog,
    Status,
    Suspension,
)
from gateway.payments import acquirer_message_store, wallet_tokens
from gateway.payments.nested_values import deep_merge
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.record_only_payments import INSERTED_COLUMNS, build_record_rows
from gateway.payments.risk_screening import ScreeningPlan, apply_review_code
from gateway.payments.side_effects import NO_EFFECTS, REGISTRATION_PAYMENT_TYPE, build_completion_effects
from gateway.payments.states import NOT_CREATED, LifecycleEvent, PaymentTransitionError, resolve_next_status
from gateway.timers import wakeup
from gateway.wallets.channel_tokens import TOKEN_USED_CONSTRAINT, WalletTokenUse

FIRST_INQUIRY_DELAY: Final = timedelta(seconds=1)
"""After a silence, until the acquirer is asked what became of the question."""
ANSWER_GRACE: Final = timedelta(seconds=2)
"""Beyond the acquirer's timeout: a worker that lives has written its answer by then."""

WEBHOOK_TIMER: Final = "webhooks"
"""The timer that tells merchants what the outbox holds."""


class IdempotencyKeyTakenError(Exception):
    """Another request claimed the same idempotency key first; nothing was written."""


class DuplicatePaymentError(Exception):
    """The channel refuses a second payment with this merchantTransactionId; nothing was written."""


def insert_payment(
    payment: Payment,
    *,
    trace: RequestTrace,
    refusal: str = "",
    parent: Payment | Agreement | None = None,
    idempotency: IdempotencyContext | None = None,
    wallet_token: WalletTokenUse | None = None,
    plan: ScreeningPlan | None = None,
    extra_writes: Callable[[WriteStatement], None] | None = None,
) -> bool:
    """Insert ``payment`` as STARTED, or as DECLINED with the code ``refusal``.

    ``raising``: the first payment of the chain a follow-up joins, or the agreement a payment draws on; its count of
    follow-ups is raised by one. False when somebody else raised it since it was read: then nothing was written, and
    it must be read again. ``alongside``: what the door writes in the same statement; a guard of its own counts beside
    ``raising``: both hold, or nothing is written. ``plan``: what risk looks at and observes as the payment begins.
    Raises IdempotencyKeyTakenError, DuplicatePaymentError, and Refused for a ``wallet_token`` that began a payment
    already.
    """
    write = WriteStatement()
    if parent is not None:
        write.update(parent, {"follow_ups": parent.follow_ups + 1}, expecting={"follow_ups": parent.follow_ups})
    if extra_writes is not None:
        extra_writes(write)
    event = LifecycleEvent.REFUSE if refusal else LifecycleEvent.BEGIN
    payment.status = resolve_next_status(NOT_CREATED, event)
    payment.result_code = refusal
    payment.sequence = 1
    payment.completed_at = payment.created_at if refusal else None
    write.insert(Payment, **{name: getattr(payment, name) for name in INSERTED_COLUMNS})
    _insert_event(write, payment, event, payment.created_at)
    if not refusal:
        write.insert(
            OpenPayment, payment_id=payment.id, recover_at=clock.real_now() + get_recovery_delay(), inquiries=0
        )
        if plan is not None:
            plan.begin(write, payment)
    if refusal:
        _insert_notification(write, payment, "CREATED", payment.created_at)
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(refusal), refusal, payment=payment.id))
    if idempotency is not None:
        idempotency.claim.insert(write, payment.id, idempotency.respond(payment) if refusal else None)
    if wallet_token is not None:
        wallet_token.insert(write, payment.id)
    try:
        begun = write.run()
    except IntegrityError as fault:
        constraint = _violated_constraint(fault)
        if constraint == "gateway_idempotencykey_pkey":
            raise IdempotencyKeyTakenError from None
        if constraint == "payment_duplicate":
            raise DuplicatePaymentError from None
        if constraint == TOKEN_USED_CONSTRAINT and wallet_token is not None:
            raise wallet_tokens.build_wallet_refusal(wallet_token.wallet, wallet_token.replayed()) from None
        raise
    if plan is not None:
        plan.begun(write)
    if refusal:
        wakeup.notify_timer(WEBHOOK_TIMER)
    return begun


def _violated_constraint(fault: IntegrityError) -> str:
    """The name of the constraint that said no."""
    return getattr(getattr(fault.__cause__, "diag", None), "constraint_name", "") or ""


def complete_payment(
    payment: Payment,
    event: LifecycleEvent,
    reply: AcquirerReply,
    *,
    at: datetime,
    duration_ms: int,
    trace: RequestTrace | None = None,
    kind: str = "submit",
    idempotency: IdempotencyContext | None = None,
    recover_at: datetime | None = None,
    waiting: Mapping[str, Any] | None = None,
    plan: ScreeningPlan | None = None,
) -> None:
    """Move ``payment`` by the acquirer's answer, with its event, exchange, notification and log row.

    ``waiting``: the columns of a Suspension, when the payment is now PENDING for its shopper. ``plan``: what risk
    counts as the payment ends.

    Without a message in ``reply`` there was no exchange, and none is kept. ``recover_at``: when a payment that is now
    in doubt is asked about, real time; in FIRST_INQUIRY_DELAY when not given.
    Raises PaymentTransitionError when the payment is no longer as it was read: somebody else moved it, nothing is
    written.
    """
    before, sequence = Status(payment.status), payment.sequence
    status = resolve_next_status(before, event)
    if event == LifecycleEvent.APPROVE:
        reply = apply_review_code(payment, reply)
    changes: dict[str, Any] = {
        "status": status,
        "result_code": reply.code,
        "approved": reply.approved.amount if reply.approved is not None else None,
        "connector_tx_id": reply.connector_tx_id,
        "answer": _build_answer(payment, status, reply),
        "sequence": sequence + 1,
        "completed_at": at if status in (Status.APPROVED, Status.DECLINED) else None,
    }
    if reply.retryable_elsewhere and payment.route is not None:
        changes["route"] = payment.route
    ending = build_completion_effects(payment, status, reply, at=at, sequence=sequence + 1)
    if ending is not NO_EFFECTS:
        changes |= {**ending.changes, "answer": deep_merge(changes["answer"], ending.answer)}
    write = WriteStatement()
    write.update(payment, changes, expecting={"status": before, "sequence": sequence})
    for name, value in changes.items():
        setattr(payment, name, value)
    for model, row in ending.rows:
        write.insert(model, **row)
    mine = {"payment_id": payment.id}
    if status == Status.IN_DOUBT and before != Status.PENDING:
        write.update_related(OpenPayment, {"recover_at": recover_at or clock.real_now() + FIRST_INQUIRY_DELAY}, mine)
    elif before != Status.PENDING:
        write.delete(OpenPayment, mine)
    if before == Status.PENDING:
        write.delete(Suspension, mine)
        if status == Status.IN_DOUBT:
            write.insert(
                OpenPayment, **mine, recover_at=recover_at or clock.real_now() + FIRST_INQUIRY_DELAY, inquiries=0
            )
    if plan is not None:
        plan.end(write, reply.code)
    if waiting is not None:
        write.insert(Suspension, **mine, **waiting)
    _insert_event(write, payment, event, at)
    if reply.sent:
        _insert_exchange(write, payment, kind, reply.sent, reply.received, at=at, duration_ms=duration_ms)
    if payment.payment_type != REGISTRATION_PAYMENT_TYPE or status != Status.APPROVED:
        # A registration that was made tells of itself: see gateway.payments.side_effects.
        _insert_notification(write, payment, "CREATED" if before == Status.STARTED else "UPDATED", at)
    if trace is not None:
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(reply.code), reply.code, payment=payment.id))
    if idempotency is not None:
        idempotency.claim.answer(write, *idempotency.respond(payment))
    if not write.run():
        raise PaymentTransitionError(f"payment {payment.id} was moved by somebody else")
    wakeup.notify_timer(WEBHOOK_TIMER)


def insert_record_only_payment(
    payment: Payment,
    changing: Callable[[WriteStatement], None],
    notification: Mapping[str, Any],
    *,
    trace: RequestTrace | None,
    idempotency: IdempotencyContext | None = None,
) -> bool:
    """Write what ``changing`` does to a registration or a job, and insert ``payment`` as APPROVED: nobody has to be
    asked for it. ``changing`` goes first, and may guard the statement: False when somebody else changed the row, then
    nothing was written. ``notification``: the columns of what is told of it.

    Raises IdempotencyKeyTakenError.
    """
    write = WriteStatement()
    changing(write)
    for model, row in build_record_rows(payment):
        write.insert(model, **row)
    write.insert(Notification, **notification)
    if trace is not None:
        code = payment.result_code
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(code), code, payment=payment.id))
    if idempotency is not None:
        idempotency.claim.insert(write, payment.id, idempotency.respond(payment))
    try:
        changed = write.run()
    except IntegrityError as fault:
        if _violated_constraint(fault) == "gateway_idempotencykey_pkey":
            raise IdempotencyKeyTakenError from None
        raise
    wakeup.notify_timer(WEBHOOK_TIMER)
    return changed


def insert_acquirer_reported_payment(
    payment: Payment,
    reply: AcquirerReply,
    *,
    parent: Payment,
    trace: RequestTrace,
    extra_writes: Callable[[WriteStatement, Payment], None] | None = None,
) -> bool:
    """Insert ``payment`` as APPROVED by ``reply``: its acquirer has told of it, and nobody has to be asked.

    ``raising``: the first payment of its chain. False when somebody else raised it: nothing was written. Raises
    IntegrityError for rows of ``alongside`` that are there already; then nothing was written either.
    """
    write = WriteStatement()
    write.update(parent, {"follow_ups": parent.follow_ups + 1}, expecting={"follow_ups": parent.follow_ups})
    payment.completed_at = payment.created_at
    payment.result_code, payment.connector_tx_id = reply.code, reply.connector_tx_id
    payment.approved = reply.approved.amount if reply.approved is not None else payment.amount
    payment.answer = _build_answer(payment, Status.APPROVED, reply)
    for model, row in build_record_rows(payment):
        write.insert(model, **row)
    _insert_notification(write, payment, "CREATED", payment.created_at)
    write.insert(RequestLog, **trace.log_row(result_codes.http_status(reply.code), reply.code, payment=payment.id))
    if extra_writes is not None:
        extra_writes(write, payment)
    told = write.run()
    wakeup.notify_timer(WEBHOOK_TIMER)
    return told


def record_exchange(
    payment: Payment,
    kind: str,
    sent: Mapping[str, Any],
    received: Mapping[str, Any],
    *,
    at: datetime,
    duration_ms: int,
    trace: RequestTrace | None = None,
    recover_at: datetime | None = None,
) -> bool:
    """Keep an exchange that moves nothing. ``recover_at``: when the payment is asked about next.

    With ``recover_at``, False when the payment was moved by somebody else since: then nothing was written.
    """
    write = WriteStatement()
    if recover_at is not None:
        # Nothing about the payment changes; the guard is that nobody else changed it.
        unmoved = {"sequence": payment.sequence}
        write.update(payment, unmoved, expecting={"status": payment.status, **unmoved})
        write.update_related(OpenPayment, {"recover_at": recover_at}, {"payment_id": payment.id})
    _insert_exchange(write, payment, kind, sent, received, at=at, duration_ms=duration_ms)
    if trace is not None:
        code = payment.result_code
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(code), code, payment=payment.id))
    return write.run()


def get_recovery_delay() -> timedelta:
    """How long a payment may be STARTED: after that, the worker that asked is dead and recovery asks."""
    return timedelta(seconds=settings.GATEWAY_ACQUIRER_TIMEOUT_S) + ANSWER_GRACE


def resume_payment(payment: Payment, *, at: datetime, plan: ScreeningPlan | None = None) -> bool:
    """A PENDING payment's shopper authenticated: it is STARTED again, before its acquirer is asked.

    The one-time secrets go with the Suspension: whoever resumes has read them. False when somebody else was faster.
    ``plan``: what the guard looks at before it counts how the card does.
    """
    status = resolve_next_status(Status(payment.status), LifecycleEvent.RESUME)
    write = WriteStatement()
    expecting = {"status": payment.status, "sequence": payment.sequence}
    changes = {"status": status, "result_code": "", "sequence": payment.sequence + 1}
    write.update(payment, changes, expecting=expecting)
    for name, value in changes.items():
        setattr(payment, name, value)
    write.delete(Suspension, {"payment_id": payment.id})
    write.insert(OpenPayment, payment_id=payment.id, recover_at=clock.real_now() + get_recovery_delay(), inquiries=0)
    _insert_event(write, payment, LifecycleEvent.RESUME, at)
    if plan is not None:
        plan.begin(write, payment)
    resumed = write.run()
    if plan is not None:
        plan.begun(write)
    return resumed


def reroute_payment(
    payment: Payment,
    reply: AcquirerReply,
    *,
    connector: str,
    account: str,
    route: Mapping[str, Any],
    at: datetime,
    duration_ms: int,
) -> bool:
    """A STARTED payment goes to another acquirer, which is asked next; ``reply`` is the word of the one before that it
    did not accept. Written before anybody is asked: whoever recovers the payment asks where it may be.

    The event takes a number, so that nobody who read the payment before can move it. False when somebody did: then
    nothing was written.
    """
    status = resolve_next_status(Status(payment.status), LifecycleEvent.REROUTE)
    write = WriteStatement()
    changes = {"connector": connector, "account": account, "route": dict(route), "sequence": payment.sequence + 1}
    write.update(payment, changes, expecting={"status": payment.status, "sequence": payment.sequence})
    write.update_related(
        OpenPayment, {"recover_at": clock.real_now() + get_recovery_delay()}, {"payment_id": payment.id}
    )
    if reply.sent:
        _insert_exchange(write, payment, "submit", reply.sent, reply.received, at=at, duration_ms=duration_ms)
    write.insert(
        PaymentEvent,
        payment_id=payment.id,
        sequence=payment.sequence + 1,
        event=LifecycleEvent.REROUTE,
        status=status,
        result_code=reply.code,
        at=at,
    )
    if not write.run():
        return False
    for name, value in changes.items():
        setattr(payment, name, value)
    return True


def _build_answer(payment: Payment, status: Status, reply: AcquirerReply) -> dict[str, Any]:
    """The payment's answer with what the reply adds; a redirect stands in it only while the shopper is waited for."""
    facts: dict[str, Any] = {"resultDetails": dict(reply.details), "avs": reply.avs, "cvv": reply.cvv}
    answer = {**payment.answer, **{name: value for name, value in facts.items() if value}}
    if reply.facts:
        answer["facts"] = deep_merge(answer.get("facts", {}), reply.facts)
    answer.pop("redirect", None)
    if status == Status.PENDING and reply.redirect is not None:
        answer["redirect"] = reply.redirect.as_json()
    return answer


def _insert_exchange(
    write: WriteStatement,
    payment: Payment,
    kind: str,
    sent: Mapping[str, Any],
    received: Mapping[str, Any],
    *,
    at: datetime,
    duration_ms: int,
) -> None:
    write.insert(
        AcquirerExchange,
        payment_id=payment.id,
        connector=payment.connector,
        kind=kind,
        sent=acquirer_message_store.compact_message(sent, payment),
        received=dict(received),
        duration_ms=duration_ms,
        at=at,
    )


def _insert_event(write: WriteStatement, payment: Payment, event: LifecycleEvent, at: datetime) -> None:
    write.insert(
        PaymentEvent,
        payment_id=payment.id,
        sequence=payment.sequence,
        event=event,
        status=payment.status,
        result_code=payment.result_code,
        at=at,
    )


def _insert_notification(write: WriteStatement, payment: Payment, action: str, at: datetime) -> None:
    kind = "RISK" if payment.payment_type == "RI" else "PAYMENT"
    write.insert(
        Notification,
        merchant_id=payment.merchant_id,
        channel_id=payment.channel_id,
        kind=kind,
        action=action,
        payment_id=payment.id,
        sequence=payment.sequence,
        created_at=at,
    )
