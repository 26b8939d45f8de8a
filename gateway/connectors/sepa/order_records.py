"""The books of orders to banks: accepted, taken back, looked up. One row an order, moved by compare-and-set.

An order waits until a run files it (files.py); until then it can be taken back, by whoever is first. Every move leaves
an event, and gateway.payments.bank_order_outcomes tells payments of it. Source: Part A, Basic payment, Bank account.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from gateway.connectors.means import BankAccount
from gateway.connectors.port import AcquirerRequest
from gateway.connectors.sepa.creditor import Creditor
from gateway.core import clock
from gateway.core.masking import mask_iban
from gateway.core.secret import Secret
from gateway.models import BankFile, BankMessage, BankOrder, BankOrderEvent, OpenPayment, Payment, SepaMandate, Status
from gateway.timers import wakeup
from gateway.vault.sealing import current_vault

BankOrderState = BankOrder.State
BankFileKind = BankFile.Kind

BANK_ANSWER_TIMER: Final = "bank answers"
"""The timer that tells payments what became of their orders."""
MAX_MANDATE_CHARS: Final = 35


class MandateAccountError(Exception):
    """The mandate was given for another account."""


def find_bank_order(payment: UUID) -> BankOrder | None:
    """The order of a payment; None when it never came."""
    return BankOrder.objects.filter(pk=payment).first()


def create_collection(request: AcquirerRequest, means: BankAccount, creditor: Creditor) -> BankOrder:
    """The collection of a question; asked again it is the same one. Raises MandateAccountError."""
    about = _payment(request.payment)
    now = clock.merchant_now(about.merchant)
    with transaction.atomic():
        mandate = resolve_mandate(request, means, creditor, about, now)
        due, file_at = creditor.plan(now, _date(means.due_date))
        return _insert(
            request,
            about,
            kind=BankFileKind.COLLECT,
            name=means.holder,
            iban=means.account,
            bic=means.bic,
            mandate=mandate,
            due_on=due,
            file_at=file_at,
            created_at=now,
        )


def create_transfer(
    request: AcquirerRequest, creditor: Creditor, *, name: str, iban: Secret, bic: str, about: UUID | None = None
) -> BankOrder:
    """The transfer of a question: a refund of the collection ``about``, or a payout."""
    payment = _payment(request.payment)
    now = clock.merchant_now(payment.merchant)
    run = creditor.next_run(now)
    return _insert(
        request,
        payment,
        kind=BankFileKind.PAY,
        name=name,
        iban=iban,
        bic=bic,
        about=about,
        file_at=run,
        due_on=run.astimezone(creditor.zone).date(),
        created_at=now,
    )


def resolve_mandate(
    request: AcquirerRequest, means: BankAccount, creditor: Creditor, about: Payment, now: datetime
) -> SepaMandate:
    """The mandate of a question: the merchant's, the one that we named for this stored account, or one for this
    payment. Raises MandateAccountError."""
    iban = means.account.reveal()
    own, recurring = bool(means.mandate_id), _is_repeated(request, about)
    mine = SepaMandate.objects.filter(merchant=about.merchant, creditor=creditor.ident)
    name = build_mandate_id(means.mandate_id) or request.payment.hex.upper()
    if not own:
        # A stored account's mandate was named when it was stored: its payments come without one.
        known = mine.filter(own=False, recurring=True, iban_fingerprint__in=current_vault().fingerprints(iban)).first()
        if known is not None:
            return known
    row = mine.filter(mandate=name).first()
    if row is None:
        ident = _row_id()
        row, _ = SepaMandate.objects.get_or_create(
            merchant=about.merchant,
            creditor=creditor.ident,
            mandate=name,
            defaults={
                "id": ident,
                "own": own,
                "recurring": own or recurring,
                "signed_on": _date(means.mandate_signed) or now.astimezone(creditor.zone).date(),
                "iban_sealed": current_vault().seal(means.account, ident),
                "iban_fingerprint": current_vault().fingerprint(iban),
            },
        )
    if not current_vault().matches(iban, row.iban_fingerprint):
        raise MandateAccountError
    return row


def build_mandate_id(text: str) -> str:
    """A mandate's id as files carry it: 35 characters at most; of a longer one the beginning and what tells it from
    others."""
    if len(text) <= MAX_MANDATE_CHARS:
        return text
    return f"{text[:22]}-{hashlib.sha256(text.encode()).hexdigest()[:12].upper()}"


def resolve_stored_mandate(request: AcquirerRequest, means: BankAccount, creditor: Creditor) -> SepaMandate:
    """The mandate of an account that is stored. Raises MandateAccountError."""
    about = _payment(request.payment)
    return resolve_mandate(request, means, creditor, about, clock.merchant_now(about.merchant))


@transaction.atomic
def was_order_withdrawn(payment: UUID, *, settled: bool = False) -> bool:
    """Whether somebody took the order out. ``settled``: whoever is about to is waited for."""
    rows = BankOrder.objects.filter(pk=payment)
    order = (rows.select_for_update() if settled else rows).first()
    return order is not None and order.state == BankOrderState.WITHDRAWN


def reverse_bank_order(payment: UUID, *, by: UUID) -> bool:
    """Take an order out for the reversal ``by``. False when it is filed, or ended, or never came; and when recovery
    has given the reversal up, which its merchant may know by now."""
    with transaction.atomic():
        # The lock first: whoever gives the reversal up says so before it waits here to look at the order.
        BankOrder.objects.select_for_update().filter(pk=payment).first()
        if (
            OpenPayment.objects.filter(pk=by, taken_back=True).exists()
            or Payment.objects.filter(pk=by, status=Status.DECLINED).exists()
        ):
            return False
        done = withdraw_bank_order(payment, reason="", told=False)
    if done:
        wakeup.notify_timer(BANK_ANSWER_TIMER)
    return done


def withdraw_bank_order(payment: UUID, *, reason: str, told: bool) -> bool:
    """Take an order out that waits for its file. False when it is filed, or ended, or never came."""
    with transaction.atomic():
        if not BankOrder.objects.filter(pk=payment, state=BankOrderState.WAITING).update(
            state=BankOrderState.WITHDRAWN, reason=reason
        ):
            return False
        record_order_event(payment, BankOrderState.WITHDRAWN, reason=reason, told=told)
    wakeup.notify_timer(BANK_ANSWER_TIMER)
    return True


def refuse_late_order(request: AcquirerRequest) -> BankOrder:
    """An order that never came, taken back: should its question still arrive, it finds this. The row as it stands."""
    about = _payment(request.payment)
    kind = BankFileKind.PAY if request.operation in ("RF", "CD") else BankFileKind.COLLECT
    row, _ = BankOrder.objects.get_or_create(
        payment=request.payment,
        defaults={
            "merchant": about.merchant,
            "channel_id": about.channel_id,
            "account": request.account.merchant,
            "kind": kind,
            "state": BankOrderState.WITHDRAWN,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "name": "",
            "iban_shown": "",
            "text": "",
            "created_at": clock.merchant_now(about.merchant),
        },
    )
    return row


def move_bank_order(
    order: BankOrder,
    state: BankOrderState,
    *,
    reason: str = "",
    on: date | None = None,
    message: BankMessage | None = None,
) -> bool:
    """Move an order from the state it was read in, and write that down. False when somebody else moved it. Inside a
    transaction of the caller."""
    moved = BankOrder.objects.filter(pk=order.pk, state=order.state).update(
        state=state, reason=reason or order.reason, final_at=None
    )
    if moved:
        order.state = state
        record_order_event(order.pk, state, reason=reason, on=on, message=message)
    return bool(moved)


def record_order_event(
    payment: UUID,
    state: BankOrderState,
    *,
    reason: str = "",
    on: date | None = None,
    message: BankMessage | None = None,
    told: bool = False,
) -> None:
    BankOrderEvent.objects.create(
        order_id=payment, state=state, reason=reason, on=on, message=message, at=clock.real_now(), told=told
    )


def describe_bank_order(order: BankOrder) -> dict[str, Any]:
    """The order as an exchange keeps it."""
    told: Mapping[str, Any] = {
        "order": order.state.lower(),
        "kind": order.kind.lower(),
        "mandate": order.mandate.mandate if order.mandate else "",
        "dueOn": order.due_on.isoformat() if order.due_on else "",
        "account": order.iban_shown,
        "file": order.file.message_id if order.file else "",
        "reason": order.reason,
    }
    return {name: value for name, value in told.items() if value}


def _insert(
    request: AcquirerRequest,
    behind: Payment,
    *,
    kind: BankFileKind,
    name: str,
    iban: Secret,
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
            "account": request.account.merchant,
            "kind": kind,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "name": name[:140],
            "iban_sealed": current_vault().seal(iban, request.payment),
            "iban_shown": mask_iban(iban.reveal()),
            "bic": bic,
            "text": text[:140],
            "created_at": created_at,
            **more,
        },
    )
    return row


def _payment(ident: UUID) -> Payment:
    """Whose payment it is. The port says nothing of merchants: orders of one creditor are filed together."""
    return (
        Payment.objects.select_related("merchant")
        .only("merchant", "channel_id", "registration", "payment_type", "request")
        .get(pk=ident)
    )


def _is_repeated(request: AcquirerRequest, about: Payment) -> bool:
    """Whether a mandate that we name will be used again: for a stored account, or under an agreement."""
    sent = request.parameters
    agreed = sent.get("createRegistration") == "true" or any(name.startswith("standingInstruction.") for name in sent)
    return agreed or about.registration is not None or request.operation == "RG"


def _row_id() -> UUID:
    made: UUID = SepaMandate._meta.pk.get_default()
    return made


def _date(text: str) -> date | None:
    """A date the catalogue has let through; None for none."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
