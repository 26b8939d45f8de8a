"""Rows of bank orders: created, withdrawn, looked up. One row per order, moved under its row lock.

An order waits until file_planning.py puts it into a file, and can be withdrawn until then. Every move writes an event,
which gateway.payments.bank_order_outcomes applies to the payment. Source: Part A, Basic payment, Bank account.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from gateway.connectors.means import BankAccount
from gateway.connectors.port import AcquirerRequest
from gateway.connectors.sepa import cancellations, mandates, recalls, reversals
from gateway.connectors.sepa.creditor import Creditor
from gateway.core import clock, identifiers
from gateway.core.masking import mask_iban
from gateway.core.secret import Secret
from gateway.db.statement import execute_sql
from gateway.models import (
    BankFile,
    BankMessage,
    BankOrder,
    BankOrderEvent,
    OpenPayment,
    Payment,
    SepaMandate,
    Status,
)
from gateway.timers import wakeup
from gateway.vault.sealing import current_vault

BankOrderState = BankOrder.State
BankFileKind = BankFile.Kind

LAST_COLLECTION_PARAMETER: Final = "customParameters[SEPA_lastCollection]"
"""The merchant's word (true) that a mandate is not used again after this collection."""
BANK_ANSWER_TIMER: Final = "bank answers"
"""Name of the timer that applies order outcomes to payments."""
BANK_FILE_TIMER: Final = "bank files"
"""Name of the timer that makes and delivers files."""
_COLLECTIONS_LOCK: Final = 0x5E_9A_00_01
"""Key of the advisory lock of :func:`lock_collections`."""


def find_bank_order(payment: UUID) -> BankOrder | None:
    """The order of a payment; None if there is none."""
    return BankOrder.objects.filter(pk=payment).first()


def create_collection(request: AcquirerRequest, means: BankAccount, creditor: Creditor) -> BankOrder:
    """Create the collection of a request. Idempotent. Raises MandateError."""
    known = find_bank_order(request.payment)
    if known is not None:
        return known
    payment = _load_payment(request.payment)
    now = clock.merchant_now(payment.merchant)
    with transaction.atomic():
        mandate = mandates.resolve_mandate(request, means, creditor, payment, now)
        due, file_at = creditor.plan(now, mandates.parse_date(means.due_date))
        mandates.check_mandate_usable(mandate, due)
        return _insert_order(
            request,
            payment,
            kind=BankFileKind.COLLECT,
            name=means.holder,
            iban=means.account,
            bic=means.bic,
            mandate=mandate,
            address=mandates.resolve_debtor_address(request, means, mandate),
            last=request.parameters.get(LAST_COLLECTION_PARAMETER) == "true",
            notice=creditor.notice_by if creditor.notice_days else "",
            due_on=due,
            file_at=file_at,
            created_at=now,
        )


def create_transfer(
    request: AcquirerRequest,
    creditor: Creditor,
    *,
    name: str,
    iban: Secret,
    bic: str,
    collection: UUID | None = None,
    reversible: BankOrder | None = None,
) -> BankOrder:
    """Create the transfer of a request: a refund of ``collection``, or a payout. ``reversible``: a collection that is
    reversed instead, if its account does so and it is in time. Idempotent."""
    payment = _load_payment(request.payment)
    now = clock.merchant_now(payment.merchant)
    run = creditor.next_run(now)
    reverses = reversible is not None and reversals.is_reversible(reversible, creditor, now)
    return _insert_order(
        request,
        payment,
        kind=BankFileKind.REVERSE if reverses else BankFileKind.PAY,
        name=name,
        iban=iban,
        bic=bic,
        original_payment=collection,
        file_at=run,
        due_on=run.astimezone(creditor.zone).date(),
        created_at=now,
    )


def create_cancellation(request: AcquirerRequest, creditor: Creditor, collection: UUID) -> BankOrder | None:
    """Create the request to cancel a collection whose file has left, for the reversal ``request``; it goes out at once.

    None if it is too late, or the account's bank takes no such requests, or recovery has given up the reversal.
    """
    payment = _load_payment(request.payment)
    now = clock.merchant_now(payment.merchant)
    with transaction.atomic():
        behind = lock_bank_order(collection)
        if behind is None or not cancellations.is_cancellable(behind, creditor, now) or _is_given_up(request.payment):
            return None
        order = _insert_order(
            request,
            payment,
            kind=BankFileKind.CANCEL,
            name=behind.name,
            iban=None,
            iban_shown=behind.iban_shown,
            bic=behind.bic,
            original_payment=collection,
            file_at=now,
            due_on=behind.due_on,
            created_at=now,
        )
    wakeup.notify_timer(BANK_FILE_TIMER)
    return order


@transaction.atomic
def create_recall(transfer: UUID, reason: str, creditor: Creditor) -> BankOrder:
    """Create the recall of a transfer that the bank has; it goes out at once. Raises RecallRefusedError."""
    behind = lock_bank_order(transfer)
    if behind is None:
        raise recalls.RecallRefusedError(recalls.RecallRefusal.NO_TRANSFER)
    now = clock.merchant_now(behind.merchant)
    recalls.check_recall(behind, reason, creditor, now)
    order = BankOrder.objects.create(
        payment=identifiers.row_id(),
        merchant_id=behind.merchant_id,
        channel_id=behind.channel_id,
        acquirer_merchant_id=behind.acquirer_merchant_id,
        kind=BankFileKind.RECALL,
        original_payment=behind.pk,
        recall_reason=reason,
        amount=behind.amount,
        currency=behind.currency,
        file_at=now,
        due_on=behind.due_on,
        created_at=now,
    )
    transaction.on_commit(lambda: wakeup.notify_timer(BANK_FILE_TIMER))
    return order


@transaction.atomic
def resolve_stored_mandate(request: AcquirerRequest, means: BankAccount, creditor: Creditor) -> SepaMandate:
    """The mandate of an account that is stored. Raises MandateError."""
    payment = _load_payment(request.payment)
    now = clock.merchant_now(payment.merchant)
    mandate = mandates.resolve_mandate(request, means, creditor, payment, now)
    mandates.check_mandate_usable(mandate, now.date())
    mandates.resolve_debtor_address(request, means, mandate)
    return mandate


@transaction.atomic
def was_order_withdrawn(payment: UUID, *, settled: bool = False) -> bool:
    """True if the order was withdrawn. ``settled``: first wait for a concurrent withdrawal to commit."""
    rows = BankOrder.objects.filter(pk=payment)
    order = (rows.select_for_update() if settled else rows).first()
    return order is not None and order.state == BankOrderState.WITHDRAWN


def reverse_bank_order(payment: UUID, *, by: UUID) -> bool:
    """Withdraw an order for the reversal ``by``.

    False if it is in a file, ended, or unknown; also if recovery has given up the reversal, as its merchant may already
    know.
    """
    with transaction.atomic():
        # The lock first: recovery records that it gives up the reversal before it waits here for the order.
        BankOrder.objects.select_for_update().filter(pk=payment).first()
        if _is_given_up(by):
            return False
        done = withdraw_bank_order(payment, reason="", applied=False)
    if done:
        wakeup.notify_timer(BANK_ANSWER_TIMER)
    return done


def withdraw_bank_order(payment: UUID, *, reason: str, applied: bool) -> bool:
    """Withdraw a waiting order. False if it is in a file, ended, or unknown."""
    with transaction.atomic():
        if not BankOrder.objects.filter(pk=payment, state=BankOrderState.WAITING).update(
            state=BankOrderState.WITHDRAWN, reason=reason
        ):
            return False
        record_order_event(payment, BankOrderState.WITHDRAWN, reason=reason, applied=applied)
    wakeup.notify_timer(BANK_ANSWER_TIMER)
    return True


def refuse_late_order(request: AcquirerRequest) -> BankOrder:
    """Void an order that was never created: a withdrawn row is left, which a late request finds. Returns the row."""
    payment = _load_payment(request.payment)
    kind = BankFileKind.PAY if request.operation in ("RF", "CD") else BankFileKind.COLLECT
    row, _ = BankOrder.objects.get_or_create(
        payment=request.payment,
        defaults={
            "merchant": payment.merchant,
            "channel_id": payment.channel_id,
            "acquirer_merchant_id": request.account.merchant,
            "kind": kind,
            "state": BankOrderState.WITHDRAWN,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "name": "",
            "iban_shown": "",
            "text": "",
            "created_at": clock.merchant_now(payment.merchant),
        },
    )
    return row


def lock_collections() -> None:
    """Let one transaction at a time lock many collections: a bank message names them in an order of its own, and files
    about collections in another, so two of them could wait for each other."""
    execute_sql("SELECT pg_advisory_xact_lock(%(key)s)", {"key": _COLLECTIONS_LOCK})


def lock_cancellation(original: UUID) -> BankOrder | None:
    """The request to cancel or recall an order that the bank has to answer, locked; None if there is none. The order is
    locked before it: that keeps requests from being made or filed meanwhile."""
    rows = BankOrder.objects.select_for_update(of=("self",)).select_related("file", "mandate")
    asked = rows.filter(original_payment=original, kind__in=cancellations.REQUEST_KINDS)
    return asked.filter(state=BankOrderState.FILED).first()


def settle_cancellation(original: BankOrder, message: BankMessage | None) -> bool:
    """Decide the request to cancel or recall an order by what became of the order, which is locked."""
    state = cancellations.find_settled_state(original)
    if state is None or (request := lock_cancellation(original.pk)) is None:
        return False
    move_bank_order(request, state, message=message)
    return True


def lock_bank_order(payment: UUID) -> BankOrder | None:
    """The order of a payment, locked until the transaction ends; None if there is none. What is read here is what a
    move has to be judged by: a list that was read before may be older."""
    rows = BankOrder.objects.select_for_update(of=("self",)).select_related("file", "mandate")
    return rows.filter(pk=payment).first()


def move_bank_order(
    order: BankOrder,
    state: BankOrderState,
    *,
    reason: str = "",
    on: date | None = None,
    charges: Decimal | None = None,
    message: BankMessage | None = None,
) -> None:
    """Move an order that lock_bank_order returned in the same transaction, and write an event."""
    BankOrder.objects.filter(pk=order.pk).update(state=state, reason=reason or order.reason, final_at=None)
    order.state, order.reason, order.final_at = state, reason or order.reason, None
    record_order_event(order.pk, state, reason=reason, on=on, charges=charges, message=message)


def mark_undecided(payment: UUID, made_at: datetime | None) -> None:
    """Record of a filed order that the bank has called it pending in a batch or file that it rejected. ``made_at``:
    when the bank made the message."""
    at = made_at or clock.real_now()
    rows = BankOrder.objects.filter(pk=payment, state=BankOrderState.FILED)
    rows.filter(Q(undecided_at=None) | Q(undecided_at__lt=at)).update(undecided_at=at)


def clear_undecided(order: BankOrder, made_at: datetime | None) -> None:
    """Record that the bank has accepted an order, which is locked, after it had called it pending. A message that it
    made before, and that comes later, says nothing."""
    since = order.undecided_at
    if since is not None and (made_at is None or made_at >= since):
        BankOrder.objects.filter(pk=order.pk).update(undecided_at=None)


def record_order_event(
    payment: UUID,
    state: BankOrderState,
    *,
    reason: str,
    on: date | None = None,
    charges: Decimal | None = None,
    message: BankMessage | None = None,
    applied: bool = False,
) -> None:
    """Write an event of an order and wake the timer that applies it."""
    BankOrderEvent.objects.create(
        order_id=payment,
        state=state,
        reason=reason,
        on=on,
        charges=charges,
        message=message,
        at=clock.real_now(),
        applied=applied,
    )


def describe_bank_order(order: BankOrder) -> dict[str, Any]:
    """The order for the stored exchange."""
    facts: Mapping[str, Any] = {
        "order": order.state.lower(),
        "kind": order.kind.lower(),
        "mandate": order.mandate.mandate if order.mandate else "",
        "dueOn": order.due_on.isoformat() if order.due_on else "",
        "account": order.iban_shown,
        "file": order.file.message_id if order.file else "",
        "reason": order.reason,
    }
    return {name: value for name, value in facts.items() if value}


def _insert_order(
    request: AcquirerRequest,
    behind: Payment,
    *,
    kind: BankFileKind,
    name: str,
    iban: Secret | None,
    bic: str,
    created_at: datetime,
    **more: Any,
) -> BankOrder:
    sent = request.parameters
    text = sent.get("descriptor") or sent.get("merchantTransactionId") or request.payment.hex
    row, _ = BankOrder.objects.get_or_create(
        payment=request.payment,
        defaults={
            "merchant": behind.merchant,
            "channel_id": behind.channel_id,
            "acquirer_merchant_id": request.account.merchant,
            "kind": kind,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "name": name[:140],
            **(_seal_iban(iban, request.payment) if iban is not None else {}),
            "bic": bic,
            "text": text[:140],
            "created_at": created_at,
            **more,
        },
    )
    return row


def _seal_iban(iban: Secret, payment: UUID) -> dict[str, Any]:
    return {"iban_sealed": current_vault().seal(iban, payment), "iban_shown": mask_iban(iban.reveal())}


def _is_given_up(reversal: UUID) -> bool:
    """Whether recovery has given up a reversal, so that its merchant may know it as declined."""
    is_voided = OpenPayment.objects.filter(pk=reversal, void_attempted=True).exists()
    return is_voided or Payment.objects.filter(pk=reversal, status=Status.DECLINED).exists()


def _load_payment(ident: UUID) -> Payment:
    """The payment's row. The port's request does not carry the merchant, and a creditor's orders are filed together."""
    return (
        Payment.objects.select_related("merchant")
        .only("merchant", "channel_id", "registration", "payment_type", "request", "agreement")
        .get(pk=ident)
    )
