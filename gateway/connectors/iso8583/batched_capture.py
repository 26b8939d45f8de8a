"""Captures of accounts with batch capture: queued in the database, pending until the host has answered.

No host is called here: batch_planning.py decides what is sent when, batch_upload.py sends it. Source:
docs/decisions/0040.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.iso8583 import capture_records, response_codes
from gateway.connectors.iso8583.iso_request import build_iso_request
from gateway.connectors.iso8583.mapping import build_iso_message, mask_iso_message
from gateway.connectors.iso8583.terminal import Terminal
from gateway.connectors.port import AcquirerReply, AcquirerRequest, NotFoundAtAcquirer, VoidRefusedError
from gateway.connectors.reply_codes import PARTIAL_REVERSAL_NOT_POSSIBLE, REVERSAL_TOO_LATE, WITHDRAWN
from gateway.core.money import Money
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE
from gateway.models import BatchedCapture

CAPTURE_OUTSTANDING: Final = "800.400.500"
CAPTURE_ANSWER_TIMEOUT: Final = timedelta(days=7)
"""The time after its batch was due from which a capture without an answer is checked once a day; it stays pending."""


def queue_capture(request: AcquirerRequest, terminal: Terminal) -> AcquirerReply:
    """Queue a capture for its batch. Raises UnsendableRequestError, and BadMessageError if it does not fit into a
    frame."""
    asked = build_iso_request(request, terminal)
    message = build_iso_message(asked)
    terminal.wire.frame(message)
    row = capture_records.store_batched_capture(request, message, asked.own.text(), terminal)
    return reply_from_batched_capture(row, request.network_brand, mask_iso_message(message, asked))


def find_capture_by_reference(request: AcquirerRequest) -> UUID | None:
    """The queued capture that a reversal refers to.

    Its reference is the payment's id until the host has answered, and the numbers of its message afterwards.
    """
    try:
        return UUID(hex=request.reference)
    except ValueError:
        return None


def find_reversed_capture(request: AcquirerRequest) -> BatchedCapture | None:
    """The queued capture that a reversal refers to, if it is one."""
    ident = find_capture_by_reference(request)
    return capture_records.find_batched_capture(ident) if ident is not None else None


def reverse_queued_capture(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply:
    """Withdraw a waiting capture, in full. Once it is in a batch, it is too late until the host has answered."""
    sent = {"operation": "RV", "transaction": request.payment.hex, "capture": row.payment.hex}
    if request.money != Money(row.amount, row.currency):
        return _declined_reply(PARTIAL_REVERSAL_NOT_POSSIBLE, sent, "a capture is taken out of its batch as a whole")
    if not capture_records.reverse_waiting_capture(
        row.payment, by=request.payment
    ) and not capture_records.was_capture_withdrawn(row.payment):
        return _declined_reply(
            REVERSAL_TOO_LATE, sent, "the capture is in a batch already, or the reversal was itself taken back"
        )
    return _withdrawn_reply(request, sent)


def inquire_reversal(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply | NotFoundAtAcquirer:
    """Outcome of a reversal; it has no row of its own, so the capture's row says it."""
    sent = {"inquiry": request.payment.hex}
    if capture_records.was_capture_withdrawn(row.payment):
        return _withdrawn_reply(request, sent)
    return NotFoundAtAcquirer(sent=sent, received={"capture": "not taken out"})


def void_reversal(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply:
    """Void a reversal. Raises VoidRefusedError if it has withdrawn its capture."""
    sent = {"void": request.payment.hex}
    if capture_records.was_capture_withdrawn(row.payment, settled=True):
        raise VoidRefusedError("the capture is taken out and does not come back", sent)
    return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent=sent, received={"capture": "not taken out"})


def void_queued_capture(request: AcquirerRequest) -> AcquirerReply:
    """Withdraw a waiting capture. Raises VoidRefusedError if it is in a batch: only the host decides then."""
    sent = {"void": request.payment.hex}
    if capture_records.withdraw_capture(request.payment, applied=True):
        return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent=sent, received={"capture": "taken out"})
    row = capture_records.refuse_late_capture(request)
    if row.state in (BatchedCapture.State.WITHDRAWN, BatchedCapture.State.REFUSED):
        return AcquirerReply(
            code=TIMEOUT_REVERSED_CODE, sent=sent, received=capture_records.describe_batched_capture(row)
        )
    raise VoidRefusedError("the capture is in a batch and is not taken back", sent)


def reply_from_batched_capture(row: BatchedCapture, brand: str, sent: Mapping[str, Any]) -> AcquirerReply:
    """The present reply of a queued capture."""
    code = result_code_of_capture(row, brand)
    taken = row.state == BatchedCapture.State.TAKEN
    answered = taken or row.state == BatchedCapture.State.REFUSED
    details = {"AcquirerResponse": row.code[:2]}
    return AcquirerReply(
        code=code,
        approved=Money(row.amount, row.currency) if taken else None,
        connector_tx_id=row.reference if answered else row.payment.hex,
        details={name: text for name, text in details.items() if text},
        sent=dict(sent),
        received=capture_records.describe_batched_capture(row),
        pending_until=row.present_at + CAPTURE_ANSWER_TIMEOUT
        if code == CAPTURE_OUTSTANDING and row.present_at is not None
        else None,
    )


def result_code_of_capture(row: BatchedCapture, brand: str) -> str:
    """The present result code of a queued capture."""
    match BatchedCapture.State(row.state):
        case BatchedCapture.State.WAITING | BatchedCapture.State.IN_BATCH:
            return CAPTURE_OUTSTANDING
        case BatchedCapture.State.TAKEN:
            return external_success_code()
        case BatchedCapture.State.REFUSED:
            return response_codes.map_declined_code(row.code, brand)
        case BatchedCapture.State.WITHDRAWN:
            return WITHDRAWN


def _withdrawn_reply(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    return AcquirerReply(
        code=external_success_code(),
        approved=request.money,
        connector_tx_id=request.payment.hex,
        sent=sent,
        received={"capture": "taken out"},
    )


def _declined_reply(code: str, sent: dict[str, Any], why: str) -> AcquirerReply:
    return AcquirerReply(code=code, sent=sent, received={"refused": why})
