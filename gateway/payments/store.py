"""The only writer of payments: begins and completes them, each with all its rows in one statement and one commit.

No transaction is open during an acquirer call: :func:`insert_payment` has committed before it, and
:func:`complete_payment` starts after it. Source: docs/decisions/0002-one-statement-per-phase.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction

from gateway.connectors.accounts import assign_trace_number
from gateway.connectors.port import AcquirerReply
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock, result_codes
from gateway.db.statement import DatabaseTime, WriteStatement
from gateway.models import (
    AcquirerExchange,
    Agreement,
    AuthorizationExpiry,
    AuthorizationRelease,
    BankOrderEvent,
    Notification,
    OpenPayment,
    Payment,
    PaymentEvent,
    PaymentToken,
    RequestLog,
    Status,
    Suspension,
)
from gateway.payments import acquirer_message_store, exemption_counts, wallet_tokens
from gateway.payments.chain_states import mark_authorization_expired
from gateway.payments.held_parts import build_part_approval, hold_part, is_held, load_earlier_parts, name_parts
from gateway.payments.nested_values import deep_merge
from gateway.payments.outcomes import Approved, Declined, OutcomeUnknown, PaymentOutcome, Suspended
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.record_only_payments import build_record_rows, list_inserted_columns
from gateway.payments.risk_screening import ScreeningPlan, apply_review_code
from gateway.payments.side_effects import (
    NO_EFFECTS,
    REGISTRATION_PAYMENT_TYPE,
    CompletionEffects,
    build_completion_effects,
    build_release_row,
)
from gateway.payments.states import (
    FINAL_STATUSES,
    NOT_CREATED,
    LifecycleEvent,
    PaymentTransitionError,
    resolve_next_status,
)
from gateway.payments.stored_answer import (
    EarlierDecline,
    PrivateFacts,
    TokenUse,
    add_return_reason,
    begin_next_attempt,
    merge_shown_facts,
    read_private_facts,
    set_token_use,
)
from gateway.timers import wakeup
from gateway.wallets.channel_tokens import TOKEN_USED_CONSTRAINT, WalletTokenUse

FIRST_INQUIRY_DELAY: Final = timedelta(seconds=1)
"""Delay from a lost answer to the first inquiry."""
ANSWER_GRACE: Final = timedelta(seconds=2)
"""Time beyond the acquirer timeout in which a living worker has certainly written the answer."""


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

    ``parent``: the first payment of the chain that a follow-up joins, or the agreement that a payment counts towards;
    its ``follow_ups`` is raised by compare-and-set. Returns False if it changed since it was read: nothing was written,
    and the caller has to read it again. ``extra_writes``: adds the caller's rows to the statement; if a version check
    in them fails, nothing is written either. ``plan``: risk queries and observations of the begin. Raises
    IdempotencyKeyTakenError, DuplicatePaymentError, and RequestRefusedError for a wallet token used before.
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
    write.insert(Payment, **list_inserted_columns(payment))
    _insert_event(write, payment, event, payment.created_at)
    if not refusal:
        _begin_submission(payment, payment.connector, payment.acquirer_merchant_id)
        _insert_open_row(write, payment)
        if plan is not None:
            plan.add_begin_writes(write, payment)
    else:
        _insert_notification(write, payment, "CREATED", payment.created_at)
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(refusal), refusal, payment=payment.id))
    if idempotency is not None:
        response = idempotency.render_response(payment) if refusal else None
        idempotency.claim.insert(write, payment.id, response)
    if wallet_token is not None:
        wallet_token.insert(write, payment.id)
    try:
        begun = write.run()
    except IntegrityError as fault:
        if (conflict := _find_insert_conflict(fault, wallet_token)) is not None:
            raise conflict from None
        raise
    if idempotency is not None and begun:
        idempotency.stored = response
    if plan is not None:
        plan.read_begin_results(write)
    if refusal:
        wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
    return begun


def _find_insert_conflict(fault: IntegrityError, wallet_token: WalletTokenUse | None = None) -> Exception | None:
    """The error for a payment that another one keeps from being inserted, by the violated constraint: the same
    idempotency key, merchantTransactionId or wallet token. None for any other constraint."""
    constraint = getattr(getattr(fault.__cause__, "diag", None), "constraint_name", "")
    if constraint == "gateway_idempotencykey_pkey":
        return IdempotencyKeyTakenError()
    if constraint == "payment_duplicate":
        return DuplicatePaymentError()
    if constraint == TOKEN_USED_CONSTRAINT and wallet_token is not None:
        return wallet_tokens.build_wallet_refusal(wallet_token.wallet, wallet_token.replayed())
    return None


def complete_payment(
    payment: Payment,
    outcome: PaymentOutcome,
    *,
    trace: RequestTrace | None = None,
    kind: str = "submit",
    idempotency: IdempotencyContext | None = None,
    recover_at: datetime | None = None,
    plan: ScreeningPlan | None = None,
    was_taken_back: bool = False,
) -> None:
    """Move ``payment`` by its outcome, with its event, exchange, side effects, notification, log row and the response
    that its idempotency key stores.

    ``kind``: of the stored exchange; none is stored for a reply without a sent message. ``recover_at``: real time of
    the first inquiry about a payment that is now IN_DOUBT, after FIRST_INQUIRY_DELAY by default. ``plan``: the
    guards count the outcome. ``was_taken_back``: the outcome is the decline of the account before the present one,
    where the attempt was voided.
    An approval in part that waits for the rest is held; the approval of the rest approves the parts before it, too.
    Raises PaymentTransitionError when the payment changed since it was read: nothing was written.
    """
    outcome = hold_part(payment, outcome)
    parts = load_earlier_parts(payment)
    complete = partial(
        _complete_payment,
        payment,
        outcome,
        trace=trace,
        kind=kind,
        idempotency=idempotency,
        recover_at=recover_at,
        plan=plan,
        was_taken_back=was_taken_back,
        parts=parts,
    )
    if not parts or not isinstance(outcome, Approved):
        complete()
        return
    # Their checkout gives none back while the rest is being paid. Where they are held no longer, another worker has
    # completed this payment.
    if not all(is_held(part) for part in parts):
        raise PaymentTransitionError(f"the parts before payment {payment.id} were moved by another worker")
    with transaction.atomic():
        # The lock order of whoever completes it during recovery: the payment, then its parts.
        Payment.objects.select_for_update().only("id").get(pk=payment.pk)
        for part in parts:
            others = [one for one in (*parts, payment) if one is not part]
            _complete_payment(part, build_part_approval(part, others, outcome.at))
        complete()
    wakeup.notify_timer(wakeup.WEBHOOK_TIMER)  # what the transaction asked for came before its commit


def _complete_payment(
    payment: Payment,
    outcome: PaymentOutcome,
    *,
    trace: RequestTrace | None = None,
    kind: str = "submit",
    idempotency: IdempotencyContext | None = None,
    recover_at: datetime | None = None,
    plan: ScreeningPlan | None = None,
    was_taken_back: bool = False,
    parts: Sequence[Payment] = (),
) -> None:
    """:func:`complete_payment` of one payment. ``parts``: those that hold the other parts of its amount."""
    before, sequence, asked = Status(payment.status), payment.sequence, payment.connector
    reply = _resolve_reply(payment, outcome, parts)
    changes, effects = _resolve_changes(payment, outcome, reply)
    if was_taken_back:
        changes |= _return_to_declining_account(payment, reply.code, outcome.at)
    write = WriteStatement()
    write.update(payment, changes, expecting={"status": before, "sequence": sequence})
    for name, value in changes.items():
        setattr(payment, name, value)
    for model, row in effects.rows:
        write.insert(model, **row)
    for model, columns, which in effects.updates:
        write.update_related(model, columns, which)
    _move_open_rows(write, payment, before, outcome, recover_at)
    if plan is not None:
        plan.add_end_writes(write, reply)
    exemption_counts.add_completion_writes(write, payment)
    _insert_event(write, payment, outcome.event, outcome.at)
    if reply.sent:
        _insert_exchange(
            write,
            payment,
            kind,
            reply.sent,
            reply.received,
            at=outcome.at,
            duration_ms=outcome.duration_ms,
            connector=asked,
        )
    if payment.payment_type != REGISTRATION_PAYMENT_TYPE or payment.status != Status.APPROVED:
        # A new registration has a notification of its own: see gateway.payments.side_effects.
        _insert_notification(write, payment, "CREATED" if before == Status.STARTED else "UPDATED", outcome.at)
    if trace is not None:
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(reply.code), reply.code, payment=payment.id))
    response = idempotency.render_response(payment) if idempotency is not None else None
    if idempotency is not None and response is not None:
        idempotency.claim.store_response(write, payment.id, response)
    if not write.run():
        raise PaymentTransitionError(f"payment {payment.id} was moved by another worker")
    if idempotency is not None:
        idempotency.stored = response
    wakeup.notify_timer(wakeup.WEBHOOK_TIMER)


def _resolve_reply(payment: Payment, outcome: PaymentOutcome, parts: Sequence[Payment]) -> AcquirerReply:
    """The acquirer's reply as the payment's result: with the code of a review, and the ids of ``parts``."""
    reply = apply_review_code(payment, outcome.reply) if isinstance(outcome, Approved) else outcome.reply
    return replace(reply, details={**reply.details, **name_parts(parts)}) if parts else reply


def _resolve_changes(
    payment: Payment, outcome: PaymentOutcome, reply: AcquirerReply
) -> tuple[dict[str, Any], CompletionEffects]:
    """Returns (columns of the payment that its outcome changes, the side effects)."""
    status = resolve_next_status(Status(payment.status), outcome.event)
    changes: dict[str, Any] = {
        "status": status,
        "result_code": reply.code,
        "approved_amount": reply.approved.amount if reply.approved is not None else None,
        "connector_tx_id": reply.connector_tx_id,
        "answer": _build_answer(payment, status, reply),
        "sequence": payment.sequence + 1,
        "completed_at": outcome.at if status in FINAL_STATUSES else None,
    }
    if reply.retryable_elsewhere and payment.route is not None:
        changes |= _resolve_final_account(payment.route, reply.code)
    effects = build_completion_effects(payment, status, reply, at=outcome.at, sequence=payment.sequence + 1)
    if effects is not NO_EFFECTS:
        changes |= {**effects.changes, "answer": deep_merge(changes["answer"], effects.answer)}
    return changes, effects


def _resolve_final_account(route: Mapping[str, Any], code: str) -> dict[str, Any]:
    """Columns of a payment whose last acquirer certainly judged nothing: its route; and where the decline of the
    account before is the answer (``code``), that account, which figures and alarms then count the payment for."""
    declined = [one for one in route.get("tried", ()) if one.get("declined")]
    if not declined or declined[-1]["code"] != code:
        return {"route": route}
    last = declined[-1]
    return {
        "route": {**route, "name": last["name"], "cascades": len(declined) - 1},
        "connector": last["connector"],
        "acquirer_merchant_id": last["account"],
    }


def _return_to_declining_account(payment: Payment, code: str, at: datetime) -> dict[str, Any]:
    """Columns of a payment whose last attempt was voided, and whose answer is the decline of the account before
    (``code``): that account, which figures and alarms then count the payment for. What a processor reports of the
    attempt that was voided still finds the payment by its route."""
    route = payment.route or {}
    if not any(one.get("declined") for one in route.get("tried", ())):
        return {}
    voided = {
        "name": route.get("name", payment.acquirer_merchant_id),
        "connector": payment.connector,
        "account": payment.acquirer_merchant_id,
        "code": result_codes.TIMEOUT_REVERSED_CODE,
        "why": "",
        "at": at.isoformat(timespec="seconds"),
        "sent": True,
        "voided": True,
    }
    returned = _resolve_final_account({**route, "tried": [*route["tried"], voided]}, code)
    return returned if "connector" in returned else {}


def _move_open_rows(
    write: WriteStatement, payment: Payment, before: Status, outcome: PaymentOutcome, recover_at: datetime | None
) -> None:
    """Write the row by which a payment without a final result is found again: an OpenPayment while its acquirer is
    called or inquired, a Suspension while it waits for its shopper or a bank."""
    mine = {"payment_id": payment.id}
    inquiry_at = {"recover_at": recover_at or DatabaseTime(FIRST_INQUIRY_DELAY)}
    in_doubt = isinstance(outcome, OutcomeUnknown)
    if before == Status.PENDING:
        write.delete(Suspension, mine)
        if in_doubt:
            # What is given back is voided whatever a late answer says.
            refused = bool(read_private_facts(payment.answer).refused_code)
            numbers = {"inquiries": 0, "trace_number": payment.trace_number}
            write.insert(OpenPayment, **mine, **inquiry_at, **numbers, void_attempted=refused)
    elif in_doubt:
        write.update_related(OpenPayment, inquiry_at, mine)
    else:
        write.delete(OpenPayment, mine)
    if isinstance(outcome, Suspended):
        write.insert(
            Suspension,
            **mine,
            stage=outcome.stage,
            deadline=outcome.deadline,
            secrets_sealed=outcome.secrets_sealed,
        )


def insert_record_only_payment(
    payment: Payment,
    changing: Callable[[WriteStatement], None],
    notification: Mapping[str, Any],
    *,
    trace: RequestTrace | None,
    idempotency: IdempotencyContext | None = None,
) -> bool:
    """Change a registration or a job and insert its record-only ``payment`` as APPROVED, in one statement.

    ``changing``: adds the change, usually with a version check; returns False if that failed and nothing was written.
    ``notification``: the columns of the Notification. Raises IdempotencyKeyTakenError.
    """
    write = WriteStatement()
    changing(write)
    for model, row in build_record_rows(payment):
        write.insert(model, **row)
    write.insert(Notification, **notification)
    if trace is not None:
        code = payment.result_code
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(code), code, payment=payment.id))
    response = idempotency.render_response(payment) if idempotency is not None else None
    if idempotency is not None:
        idempotency.claim.insert(write, payment.id, response)
    try:
        changed = write.run()
    except IntegrityError as fault:
        if (conflict := _find_insert_conflict(fault)) is not None:
            raise conflict from None
        raise
    if idempotency is not None and changed:
        idempotency.stored = response
    wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
    return changed


def insert_acquirer_reported_payment(
    payment: Payment,
    reply: AcquirerReply,
    *,
    parent: Payment,
    trace: RequestTrace,
    extra_writes: Callable[[WriteStatement, Payment], None] | None = None,
) -> bool:
    """Insert a follow-up that its acquirer reported, as APPROVED by ``reply``, without an acquirer call.

    ``parent``: the first payment of its chain. Returns False if it changed since it was read: nothing was written.
    Raises IntegrityError for rows of ``extra_writes`` that exist already; then nothing was written either.
    """
    write = WriteStatement()
    write.update(parent, {"follow_ups": parent.follow_ups + 1}, expecting={"follow_ups": parent.follow_ups})
    payment.completed_at = payment.created_at
    payment.result_code, payment.connector_tx_id = reply.code, reply.connector_tx_id
    payment.approved_amount = reply.approved.amount if reply.approved is not None else payment.amount
    payment.answer = _build_answer(payment, Status.APPROVED, reply)
    for model, row in build_record_rows(payment):
        write.insert(model, **row)
    _insert_notification(write, payment, "CREATED", payment.created_at)
    write.insert(RequestLog, **trace.log_row(result_codes.http_status(reply.code), reply.code, payment=payment.id))
    if extra_writes is not None:
        extra_writes(write, payment)
    inserted = write.run()
    wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
    return inserted


def expire_authorization(
    first: Payment,
    expires_at: datetime,
    *,
    at: datetime,
    expiry: int,
    release: bool,
    again_at: datetime | None = None,
) -> bool:
    """Record that the authorization of a chain has expired: its event, its notification, and where ``release`` the row
    by which the rest is released at the acquirer; with ``again_at`` it is looked at again then.

    ``first``: the chain's first payment, with a counter of follow-ups that must not have changed since the chain was
    read; ``expires_at``: the authorization's end, renewals included; ``expiry``: the row that asked. Returns False if
    the payment changed since it was read: nothing was written.
    """
    resolve_next_status(Status(first.status), LifecycleEvent.EXPIRE)
    changes = {"expires_at": expires_at, "expired_at": at, "sequence": first.sequence + 1}
    write = WriteStatement()
    write.update(first, changes, expecting={"sequence": first.sequence, "follow_ups": first.follow_ups})
    for name, value in changes.items():
        setattr(first, name, value)
    if again_at is not None:
        write.update_related(AuthorizationExpiry, {"due_at": again_at}, {"id": expiry})
    else:
        write.delete(AuthorizationExpiry, {"id": expiry})
    mark_authorization_expired(write, first)
    if release:
        write.insert(AuthorizationRelease, **build_release_row(first, AuthorizationRelease.Cause.EXPIRY, at))
    _insert_event(write, first, LifecycleEvent.EXPIRE, at)
    _insert_notification(write, first, "UPDATED", at)
    expired = write.run()
    if expired:
        wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
    return expired


def insert_release(first: Payment, cause: AuthorizationRelease.Cause, *, at: datetime, expiry: int) -> bool:
    """Write the row by which the rest of an authorization that expired before, or was closed, is released. Returns
    False if the payment changed since it was read: nothing was written."""
    write = WriteStatement()
    unmoved = {"sequence": first.sequence}
    write.update(first, unmoved, expecting={**unmoved, "follow_ups": first.follow_ups})
    write.delete(AuthorizationExpiry, {"id": expiry})
    write.insert(AuthorizationRelease, **build_release_row(first, cause, at))
    return write.run()


def record_returned_transfer(payment: Payment, reason: str, *, at: datetime, bank_event: int | None = None) -> None:
    """Record that an approved refund, reversal or payout did not stay with the shopper: its event, its notification,
    and that ``bank_event``, by which a bank reported it, is applied. ``reason``: an ISO 20022 external code, a
    processor's reason, or empty. Raises PaymentTransitionError if the payment changed since it was read: nothing was
    written."""
    resolve_next_status(Status(payment.status), LifecycleEvent.RETURN)
    answer = add_return_reason(payment.answer, reason)
    changes = {"returned_at": at, "answer": answer, "sequence": payment.sequence + 1}
    write = WriteStatement()
    write.update(payment, changes, expecting={"sequence": payment.sequence})
    for name, value in changes.items():
        setattr(payment, name, value)
    if bank_event is not None:
        write.update_related(BankOrderEvent, {"applied": True}, {"id": bank_event})
    _insert_event(write, payment, LifecycleEvent.RETURN, at)
    _insert_notification(write, payment, "UPDATED", at)
    if not write.run():
        raise PaymentTransitionError(f"payment {payment.id} was moved by another worker")
    wakeup.notify_timer(wakeup.WEBHOOK_TIMER)


def record_exchange(
    payment: Payment,
    kind: str,
    sent: Mapping[str, Any],
    received: Mapping[str, Any],
    *,
    at: datetime,
    duration_ms: int,
    trace: RequestTrace | None = None,
    inquire_after: timedelta | None = None,
    void_anew: str = "",
    connector: str = "",
) -> bool:
    """Store an acquirer exchange that does not move the payment. ``inquire_after``: until the next inquiry;
    ``void_anew``: the connector's id of the payment, where its next void is another message than the last;
    ``connector``: of the acquirer that was asked, if it is not the payment's own.

    With ``inquire_after``, returns False if the payment changed since it was read: then nothing was written.
    """
    write = WriteStatement()
    if inquire_after is not None:
        # The payment itself does not change: the update only checks its version.
        unmoved = {"sequence": payment.sequence}
        named = {"connector_tx_id": void_anew} if void_anew else {}
        write.update(payment, unmoved | named, expecting={"status": payment.status, **unmoved})
        opened: dict[str, Any] = {"recover_at": DatabaseTime(inquire_after)}
        if void_anew:
            opened["trace_number"] = _take_trace_number(payment, payment.connector, payment.acquirer_merchant_id)
        write.update_related(OpenPayment, opened, {"payment_id": payment.id})
    _insert_exchange(write, payment, kind, sent, received, at=at, duration_ms=duration_ms, connector=connector)
    if trace is not None:
        # A payment that another worker moved may be in doubt, without a code.
        code = payment.result_code or result_codes.OUTCOME_UNKNOWN_CODE
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(code), code, payment=payment.id))
    return write.run()


def record_late_approval(
    payment: Payment,
    outcome: Approved,
    *,
    asked: Mapping[str, Any],
    trace: RequestTrace | None,
    refused: PrivateFacts | None = None,
    kind: str = "submit",
) -> bool:
    """Store an approval that arrived for a payment which recovery has declined, or is voiding, and have recovery void
    it by what it said: the payment has an OpenPayment row until that void is answered. ``asked``: the columns of the
    attempt that was approved (:func:`get_attempt_columns`), which recovery may have left for the account before; the
    void has to go there. ``refused``: the decline that an approval becomes which the rule set or the channel refuses;
    ``kind``: of its exchange.

    Returns False if the payment changed since it was read: nothing was written."""
    reply = outcome.reply
    write = WriteStatement()
    # A reversal names what the approval said: its code, the network's reference and the amount.
    named: dict[str, Any] = {"connector_tx_id": reply.connector_tx_id} if reply.connector_tx_id else {}
    kept = replace(refused or PrivateFacts(), transaction_link=reply.transaction_link)
    if facts := kept.as_json():
        named["answer"] = payment.answer | facts
    where = ("connector", "acquirer_merchant_id")
    has_left = any(asked[name] != getattr(payment, name) for name in where)
    # What was tried tells from then on that recovery had left this attempt: close_late_approval reads it.
    there = {**asked, "route": {**(asked["route"] or {}), "tried": (payment.route or {}).get("tried", [])}}
    changes = {"sequence": payment.sequence, **(there if has_left else {}), **named}
    # A message of its own: to a repeat of the void that knew no approval a host may repeat its answer.
    number = payment.trace_number
    if named:
        number = _take_trace_number(payment, asked["connector"], asked["acquirer_merchant_id"])
    void: dict[str, Any] = {"void_attempted": True, "trace_number": number}
    if payment.status == Status.IN_DOUBT:
        # Raised without an event: what the void under way has found, not knowing of the approval, decides nothing.
        changes["sequence"] += 1
        write.update(payment, changes, expecting={"status": payment.status, "sequence": payment.sequence})
        write.update_related(OpenPayment, void, {"payment_id": payment.id})
    else:
        write.update(payment, changes, expecting={"status": Status.DECLINED})
        again = {"recover_at": DatabaseTime(timedelta(0)), "inquiries": 0}
        write.insert(OpenPayment, payment_id=payment.id, **again, **void)
    _insert_exchange(
        write,
        payment,
        kind,
        reply.sent,
        reply.received,
        at=outcome.at,
        duration_ms=outcome.duration_ms,
        connector=asked["connector"],
    )
    if trace is not None:
        code = payment.result_code or result_codes.OUTCOME_UNKNOWN_CODE
        write.insert(RequestLog, **trace.log_row(result_codes.http_status(code), code, payment=payment.id))
    return write.run()


def get_attempt_columns(payment: Payment) -> dict[str, Any]:
    """The columns that say at which account a payment's present attempt is, and which attempt it is."""
    return {
        "connector": payment.connector,
        "acquirer_merchant_id": payment.acquirer_merchant_id,
        "route": payment.route,
    }


def close_late_approval(payment: Payment) -> bool:
    """The late approval of a declined payment is void: where recovery had left the account that approved, the payment
    is the account's again that declined it. Returns False if the payment changed since it was read: nothing was
    written."""
    write = WriteStatement()
    unmoved = {"sequence": payment.sequence}
    changes: dict[str, Any] = unmoved
    route = payment.route or {}
    present = {"connector": payment.connector, "account": payment.acquirer_merchant_id}
    # Not by equal codes: both accounts may have declined with the same one.
    if any(present.items() <= one.items() for one in route.get("tried", ())[-1:]):
        changes = unmoved | _resolve_final_account(route, payment.result_code)
    write.update(payment, changes, expecting={"status": Status.DECLINED, **unmoved})
    write.delete(OpenPayment, {"payment_id": payment.id})
    return write.run()


def get_recovery_delay() -> timedelta:
    """How long a payment may stay STARTED: after that its worker is dead, and recovery inquires about it."""
    return timedelta(seconds=settings.GATEWAY_ACQUIRER_TIMEOUT_S) + ANSWER_GRACE


def _take_trace_number(payment: Payment, connector: str, account: str) -> int:
    return assign_trace_number(CONNECTORS.get(connector), payment.channel_id, account)


def _begin_submission(payment: Payment, connector: str, account: str, called_at: datetime | None = None) -> None:
    """Set until when the payment's acquirer may be called, and number and time of its message. Taken before its row is
    written, so that the time is never later than the row's ``recover_at``. ``called_at``: of the event that is written
    with it, if the payment began earlier."""
    payment.called_at = called_at
    payment.trace_number = _take_trace_number(payment, connector, account)
    payment.send_by = clock.Deadline.after(get_recovery_delay().total_seconds())


_CALLING_EVENTS: Final = (
    LifecycleEvent.RESUME,
    LifecycleEvent.STEP_UP,
    LifecycleEvent.REROUTE,
    LifecycleEvent.CASCADE,
    LifecycleEvent.TOKEN_FALLBACK,
)
_BEGIN_AND_LOSE: Final = 2


def find_call_time(payment: Payment) -> datetime | None:
    """When the payment's last authorization attempt began, by the merchant's clock, if it waited for its shopper or was
    tried before; None for one that was called as it began."""
    if payment.sequence <= _BEGIN_AND_LOSE:
        return None
    called = PaymentEvent.objects.filter(payment=payment, event__in=_CALLING_EVENTS).order_by("-sequence").first()
    at: datetime | None = called.at if called is not None else None
    return at


def _insert_open_row(write: WriteStatement, payment: Payment) -> None:
    """Write the row by which recovery finds a payment that has begun."""
    write.insert(
        OpenPayment,
        payment_id=payment.id,
        recover_at=DatabaseTime(get_recovery_delay()),
        inquiries=0,
        trace_number=payment.trace_number,
    )


def resume_payment(payment: Payment, *, at: datetime, plan: ScreeningPlan | None = None) -> bool:
    """Move a PENDING payment whose shopper authenticated back to STARTED, before its acquirer is called, with
    ``payment.answer``: what the authentication showed.

    Deletes the Suspension with its one-time secrets: the caller has read them. ``plan``: the card-testing guard reads
    its counts. Returns False if the payment changed since it was read.
    """
    status = resolve_next_status(Status(payment.status), LifecycleEvent.RESUME)
    write = WriteStatement()
    expecting = {"status": payment.status, "sequence": payment.sequence}
    changes = {"status": status, "result_code": "", "answer": payment.answer, "sequence": payment.sequence + 1}
    write.update(payment, changes, expecting=expecting)
    for name, value in changes.items():
        setattr(payment, name, value)
    write.delete(Suspension, {"payment_id": payment.id})
    _begin_submission(payment, payment.connector, payment.acquirer_merchant_id, at)
    _insert_open_row(write, payment)
    _insert_event(write, payment, LifecycleEvent.RESUME, at)
    if plan is not None:
        plan.add_begin_writes(write, payment)
    resumed = write.run()
    if plan is not None:
        plan.read_begin_results(write)
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
    plan: ScreeningPlan | None,
) -> bool:
    """Record a failover before the next acquirer is called. ``reply`` is the first acquirer's refusal. Persisted first,
    so recovery inquires at the right acquirer after a crash. ``plan``: the schemes' retry rules count a refusal that
    its network counts, though no issuer gave it.

    The event raises the payment's sequence, so a worker that read it before cannot move it. Returns False if it changed
    since it was read: nothing was written."""
    changes = {"connector": connector, "acquirer_merchant_id": account, "route": dict(route)}
    is_counted = False

    def count_refusal(write: WriteStatement) -> None:
        nonlocal is_counted
        is_counted = plan is not None and plan.add_attempt_writes(write, reply)

    begun = _begin_next_attempt(
        payment, LifecycleEvent.REROUTE, changes, reply, at=at, duration_ms=duration_ms, extra_writes=count_refusal
    )
    if begun and is_counted and plan is not None and plan.retries is not None:
        plan.retries.add_decline()
    return begun


def record_step_up(payment: Payment, declined: Declined, *, plan: ScreeningPlan | None) -> bool:
    """Record a soft decline before the payment is authorized again: its event, its exchange, and that the second
    attempt begins, so that recovery inquires about the right one after a crash. ``plan``: the schemes' retry rules
    count the decline.

    Returns False if the payment changed since it was read: nothing was written.
    """
    changes = {"answer": begin_next_attempt(payment.answer)}
    return _record_declined_attempt(payment, declined, LifecycleEvent.STEP_UP, changes, plan)


def record_cascade(
    payment: Payment,
    declined: Declined,
    *,
    connector: str,
    account: str,
    route: Mapping[str, Any],
    plan: ScreeningPlan | None,
) -> bool:
    """Record a decline before the payment is authorized again at another account: its event, its exchange, and where
    the payment is now, so that recovery inquires there after a crash. ``plan``: the schemes' retry rules count the
    decline.

    Returns False if the payment changed since it was read: nothing was written.
    """
    changes = {"connector": connector, "acquirer_merchant_id": account, "route": dict(route)}
    return _record_declined_attempt(payment, declined, LifecycleEvent.CASCADE, changes, plan)


def record_token_fallback(payment: Payment, declined: Declined, *, plan: ScreeningPlan | None) -> bool:
    """Record that the issuer declined a network token before the payment is authorized again with the card number, at
    the same account. ``plan``: the schemes' retry rules count the decline.

    Returns False if the payment changed since it was read: nothing was written.
    """
    changes = {"answer": set_token_use(payment.answer, TokenUse.DECLINED)}

    def forget_token(write: WriteStatement) -> None:
        write.delete(PaymentToken, {"payment_id": payment.id})

    return _record_declined_attempt(
        payment, declined, LifecycleEvent.TOKEN_FALLBACK, changes, plan, extra_writes=forget_token
    )


def _record_declined_attempt(
    payment: Payment,
    declined: Declined,
    event: LifecycleEvent,
    changes: Mapping[str, Any],
    plan: ScreeningPlan | None,
    *,
    extra_writes: Callable[[WriteStatement], None] | None = None,
) -> bool:
    """Begin the next attempt of a payment whose issuer declined the one before, and keep that decline: it is the
    payment's result if the next attempt is never made."""
    reply = declined.reply
    earlier = EarlierDecline(code=reply.code, details=reply.details)
    answer = changes.get("answer", payment.answer) | PrivateFacts(earlier_decline=earlier).as_json()
    changes = {**changes, "answer": answer}

    def count_decline(write: WriteStatement) -> None:
        if extra_writes is not None:
            extra_writes(write)
        if plan is not None and plan.retries is not None:
            plan.retries.count(write, reply.code, reply.details.get("MerchantAdviceCode", ""))

    begun = _begin_next_attempt(
        payment, event, changes, reply, at=declined.at, duration_ms=declined.duration_ms, extra_writes=count_decline
    )
    if begun and plan is not None and plan.retries is not None:
        plan.retries.add_decline()
    return begun


def _begin_next_attempt(
    payment: Payment,
    event: LifecycleEvent,
    changes: Mapping[str, Any],
    reply: AcquirerReply,
    *,
    at: datetime,
    duration_ms: int,
    extra_writes: Callable[[WriteStatement], None] | None,
) -> bool:
    """Write that a payment goes on to its next attempt: ``changes`` of it, ``event`` with the code of ``reply``, the
    exchange that ``reply`` ended, and the times and the number of the next message.

    The event raises the payment's sequence, so a worker that read it before cannot move it. Returns False if it changed
    since it was read: nothing was written."""
    changes = {
        "status": resolve_next_status(Status(payment.status), event),
        **changes,
        "sequence": payment.sequence + 1,
    }
    write = WriteStatement()
    write.update(payment, changes, expecting={"status": payment.status, "sequence": payment.sequence})
    account = changes.get("acquirer_merchant_id", payment.acquirer_merchant_id)
    _begin_submission(payment, changes.get("connector", payment.connector), account, at)
    opened = {"recover_at": DatabaseTime(get_recovery_delay()), "trace_number": payment.trace_number}
    write.update_related(OpenPayment, opened, {"payment_id": payment.id})
    if reply.sent:
        _insert_exchange(write, payment, "submit", reply.sent, reply.received, at=at, duration_ms=duration_ms)
    if extra_writes is not None:
        extra_writes(write)
    write.insert(
        PaymentEvent,
        payment_id=payment.id,
        sequence=payment.sequence + 1,
        event=event,
        status=changes["status"],
        result_code=reply.code,
        at=at,
    )
    if not write.run():
        return False
    for name, value in changes.items():
        setattr(payment, name, value)
    return True


def _build_answer(payment: Payment, status: Status, reply: AcquirerReply) -> dict[str, Any]:
    """``Payment.answer`` with what the reply adds; it has a redirect only while the payment is PENDING."""
    facts: dict[str, Any] = {"resultDetails": dict(reply.details), "avs": reply.avs, "cvv": reply.cvv}
    answer = {**payment.answer, **{name: value for name, value in facts.items() if value}}
    if reply.facts:
        answer = merge_shown_facts(answer, reply.facts)
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
    connector: str = "",
) -> None:
    """``connector``: of the acquirer that was asked, if it is not the payment's own."""
    write.insert(
        AcquirerExchange,
        payment_id=payment.id,
        connector=connector or payment.connector,
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
