"""Rows of batched captures: stored, withdrawn, looked up. One row per capture, moved by compare-and-set.

A capture waits until batch_planning.py puts it into a batch, and can be withdrawn until then. Its outcome is applied to
its payment by gateway.payments.batched_captures. Source: docs/decisions/0040.
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
"""Name of the timer that applies capture outcomes to payments."""


def find_batched_capture(payment: UUID) -> BatchedCapture | None:
    """The batched capture of a payment; None if it was never queued, or was sent as an advice."""
    return BatchedCapture.objects.select_related("batch").filter(pk=payment).first()


def store_batched_capture(
    request: AcquirerRequest, message: Mapping[str, str], reference: str, terminal: Terminal
) -> BatchedCapture:
    """Store a capture with the message that will be sent. Idempotent: a repeated request returns the same row."""
    about = _payment(request.payment)
    now = clock.merchant_now(about.merchant)
    row, _ = BatchedCapture.objects.get_or_create(
        payment=request.payment,
        defaults={
            "merchant": about.merchant,
            "channel_id": about.channel_id,
            "acquirer_merchant_id": request.account.merchant,
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
    """Decrypt the stored message. Raises VaultError."""
    assert row.message_sealed is not None  # only captures that ended have none
    return RedactedDict(json.loads(current_vault().open(row.message_sealed, row.payment).reveal()))


def withdraw_capture(payment: UUID, *, applied: bool) -> bool:
    """Withdraw a waiting capture. False if it is in a batch, ended, or unknown."""
    waiting = BatchedCapture.objects.filter(pk=payment, state=BatchedCaptureState.WAITING)
    done = bool(waiting.update(state=BatchedCaptureState.WITHDRAWN, applied=applied, message_sealed=None))
    if done and not applied:
        wakeup.notify_timer(CAPTURE_ANSWER_TIMER)
    return done


def reverse_waiting_capture(payment: UUID, *, by: UUID) -> bool:
    """Withdraw a waiting capture for the reversal ``by``.

    False if it is in a batch, ended, or unknown; also if recovery has given up the reversal, as its merchant may
    already know.
    """
    with transaction.atomic():
        # The lock first: recovery records that it gives up the reversal before it waits here for the capture.
        BatchedCapture.objects.select_for_update().filter(pk=payment).first()
        if (
            OpenPayment.objects.filter(pk=by, void_attempted=True).exists()
            or Payment.objects.filter(pk=by, status=Status.DECLINED).exists()
        ):
            return False
        return withdraw_capture(payment, applied=False)


@transaction.atomic
def was_capture_withdrawn(payment: UUID, *, settled: bool = False) -> bool:
    """True if the capture was withdrawn. ``settled``: first wait for a concurrent withdrawal to commit."""
    rows = BatchedCapture.objects.filter(pk=payment)
    row = (rows.select_for_update() if settled else rows).first()
    return row is not None and row.state == BatchedCaptureState.WITHDRAWN


def refuse_late_capture(request: AcquirerRequest) -> BatchedCapture:
    """Void a capture that was never queued: a withdrawn row is left, which a late request finds. Returns the row."""
    about = _payment(request.payment)
    row, _ = BatchedCapture.objects.get_or_create(
        payment=request.payment,
        defaults={
            "merchant": about.merchant,
            "channel_id": about.channel_id,
            "acquirer_merchant_id": request.account.merchant,
            "state": BatchedCaptureState.WITHDRAWN,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "created_at": clock.merchant_now(about.merchant),
            "applied": True,
        },
    )
    return row


def describe_batched_capture(row: BatchedCapture) -> dict[str, Any]:
    """The capture for the stored exchange."""
    facts: Mapping[str, Any] = {
        "capture": row.state.lower().replace("_", " "),
        "batch": row.batch.number if row.batch else "",
        "presentAt": row.present_at.isoformat() if row.present_at and row.state == BatchedCaptureState.WAITING else "",
        "39": row.code,
    }
    answer: dict[str, Any] = row.answer
    return {name: value for name, value in facts.items() if value} | answer


def _payment(ident: UUID) -> Payment:
    """The payment's row: the port's request does not carry the merchant."""
    return Payment.objects.select_related("merchant").only("merchant", "channel_id").get(pk=ident)
