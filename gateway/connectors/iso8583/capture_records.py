"""The books of captures that go by batch: kept, taken out, looked up. One row a capture, moved by compare-and-set.

A capture waits until a batch takes it (batches.py); until then it can be taken out, by whoever is first. How it ended
is told to its payment by gateway.payments.batched_captures. Source: docs/decisions/0040.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from gateway.connectors.iso8583.terminal import Terminal
from gateway.connectors.port import AcquirerRequest
from gateway.core import clock
from gateway.core.secret import RedactedDict, Secret
from gateway.models import BatchedCapture, OpenPayment, Payment, Status
from gateway.timers import wakeup
from gateway.vault.sealing import current_vault

BatchedCaptureState = BatchedCapture.State

CAPTURE_ANSWER_TIMER: Final = "capture answers"
"""The timer that tells payments what became of their captures."""


def find_batched_capture(payment: UUID) -> BatchedCapture | None:
    """The capture of a payment; None when it never came, or went as an advice."""
    return BatchedCapture.objects.select_related("batch").filter(pk=payment).first()


def store_batched_capture(
    request: AcquirerRequest, message: Mapping[str, str], reference: str, terminal: Terminal
) -> BatchedCapture:
    """The capture of a question, as the message that will be sent; asked again it is the same one."""
    about = _payment(request.payment)
    now = clock.merchant_now(about.merchant)
    row, _ = BatchedCapture.objects.get_or_create(
        payment=request.payment,
        defaults={
            "merchant": about.merchant,
            "channel_id": about.channel_id,
            "account": request.account.merchant,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "reference": reference,
            "message_sealed": current_vault().seal(Secret(json.dumps(dict(message))), request.payment),
            "present_at": terminal.next_batch(now),
            "created_at": now,
        },
    )
    return row


def load_capture_message(row: BatchedCapture) -> RedactedDict:
    """The message as it was kept. Raises VaultError."""
    assert row.message_sealed is not None  # only captures that ended have none
    return RedactedDict(json.loads(current_vault().open(row.message_sealed, row.payment).reveal()))


def withdraw_capture(payment: UUID, *, told: bool) -> bool:
    """Take a capture out that waits for its batch. False when it is in one, or ended, or never came."""
    waiting = BatchedCapture.objects.filter(pk=payment, state=BatchedCaptureState.WAITING)
    done = bool(waiting.update(state=BatchedCaptureState.WITHDRAWN, told=told, message_sealed=None))
    if done and not told:
        wakeup.notify_timer(CAPTURE_ANSWER_TIMER)
    return done


def reverse_waiting_capture(payment: UUID, *, by: UUID) -> bool:
    """Take a capture out for the reversal ``by``. False when it is in a batch, or ended, or never came; and when
    recovery has given the reversal up, which its merchant may know by now."""
    with transaction.atomic():
        # The lock first: whoever gives the reversal up says so before it waits here to look at the capture.
        BatchedCapture.objects.select_for_update().filter(pk=payment).first()
        if (
            OpenPayment.objects.filter(pk=by, taken_back=True).exists()
            or Payment.objects.filter(pk=by, status=Status.DECLINED).exists()
        ):
            return False
        return withdraw_capture(payment, told=False)


@transaction.atomic
def was_capture_withdrawn(payment: UUID, *, settled: bool = False) -> bool:
    """Whether somebody took the capture out. ``settled``: whoever is about to is waited for."""
    rows = BatchedCapture.objects.filter(pk=payment)
    row = (rows.select_for_update() if settled else rows).first()
    return row is not None and row.state == BatchedCaptureState.WITHDRAWN


def refuse_late_capture(request: AcquirerRequest) -> BatchedCapture:
    """A capture that never came, taken back: should its question still arrive, it finds this. The row as it stands."""
    about = _payment(request.payment)
    row, _ = BatchedCapture.objects.get_or_create(
        payment=request.payment,
        defaults={
            "merchant": about.merchant,
            "channel_id": about.channel_id,
            "account": request.account.merchant,
            "state": BatchedCaptureState.WITHDRAWN,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "created_at": clock.merchant_now(about.merchant),
            "told": True,
        },
    )
    return row


def describe_batched_capture(row: BatchedCapture) -> dict[str, Any]:
    """The capture as an exchange keeps it."""
    told: Mapping[str, Any] = {
        "capture": row.state.lower().replace("_", " "),
        "batch": row.batch.number if row.batch else "",
        "presentAt": row.present_at.isoformat() if row.present_at and row.state == BatchedCaptureState.WAITING else "",
        "39": row.code,
    }
    answer: dict[str, Any] = row.answer
    return {name: value for name, value in told.items() if value} | answer


def _payment(ident: UUID) -> Payment:
    """Whose payment it is: the port says nothing of merchants."""
    return Payment.objects.select_related("merchant").only("merchant", "channel_id").get(pk=ident)
