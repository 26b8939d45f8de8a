"""Captures of accounts that present them by batch: answers out of the books, pending until the host has spoken.

The host is not asked here: batches.py decides what goes when, presenting.py sends it. Source: docs/decisions/0040.
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
from gateway.connectors.reply_codes import PARTIAL_REVERSAL_NOT_POSSIBLE, REVERSAL_TOO_LATE, REVERSED, WITHDRAWN
from gateway.core.money import Money
from gateway.models import BatchedCapture

CAPTURE_OUTSTANDING: Final = "800.400.500"
CAPTURE_ANSWER_TIMEOUT: Final = timedelta(days=7)
"""After its batch was due, until a capture without an answer is looked at once a day; it stays pending all the same."""


def queue_capture(request: AcquirerRequest, terminal: Terminal) -> AcquirerReply:
    """Take a capture into the books. Raises Unsendable, and BadMessage for one that would not fit into a frame."""
    asked = build_iso_request(request, terminal)
    message = build_iso_message(asked)
    terminal.wire.frame(message)
    row = capture_records.store_batched_capture(request, message, asked.own.text(), terminal)
    return reply_from_batched_capture(row, request.brand, mask_iso_message(message, asked))


def find_capture_by_reference(request: AcquirerRequest) -> UUID | None:
    """The capture of our books that a reversal names: its reference is the payment's id until the host has answered,
    and the numbers of its message from then on."""
    try:
        return UUID(hex=request.reference)
    except ValueError:
        return None


def find_reversed_capture(request: AcquirerRequest) -> BatchedCapture | None:
    """The capture that a reversal speaks of, where that is one of the books'."""
    ident = find_capture_by_reference(request)
    return capture_records.find_batched_capture(ident) if ident is not None else None


def reverse_queued_capture(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply:
    """A capture that no batch has yet is taken out, whole; afterwards it is too late, until the host has answered."""
    sent = {"operation": "RV", "transaction": request.payment.hex, "capture": row.payment.hex}
    if request.money != Money(row.amount, row.currency):
        return _refused(PARTIAL_REVERSAL_NOT_POSSIBLE, sent, "a capture is taken out of its batch as a whole")
    if not capture_records.reverse_waiting_capture(
        row.payment, by=request.payment
    ) and not capture_records.was_capture_withdrawn(row.payment):
        return _refused(
            REVERSAL_TOO_LATE, sent, "the capture is in a batch already, or the reversal was itself taken back"
        )
    return _taken_out(request, sent)


def inquire_reversal(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply | NotFoundAtAcquirer:
    """It has no row of its own: what it did stands in the capture's."""
    sent = {"inquiry": request.payment.hex}
    if capture_records.was_capture_withdrawn(row.payment):
        return _taken_out(request, sent)
    return NotFoundAtAcquirer(sent=sent, received={"capture": "not taken out"})


def void_reversal(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply:
    """Raises VoidRefusedError for a reversal that took its capture out."""
    sent = {"void": request.payment.hex}
    if capture_records.was_capture_withdrawn(row.payment, settled=True):
        raise VoidRefusedError("the capture is taken out and does not come back", sent)
    return AcquirerReply(code=REVERSED, sent=sent, received={"capture": "not taken out"})


def void_queued_capture(request: AcquirerRequest) -> AcquirerReply:
    """Take a capture back that no batch has. Raises VoidRefusedError for one that is in a batch: its host alone
    decides."""
    sent = {"void": request.payment.hex}
    if capture_records.withdraw_capture(request.payment, told=True):
        return AcquirerReply(code=REVERSED, sent=sent, received={"capture": "taken out"})
    row = capture_records.refuse_late_capture(request)
    if row.state in (BatchedCapture.State.WITHDRAWN, BatchedCapture.State.REFUSED):
        return AcquirerReply(code=REVERSED, sent=sent, received=capture_records.describe_batched_capture(row))
    raise VoidRefusedError("the capture is in a batch and is not taken back", sent)


def reply_from_batched_capture(row: BatchedCapture, brand: str, sent: Mapping[str, Any]) -> AcquirerReply:
    """What a capture says by now."""
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
    """The result code of a capture as it stands."""
    match BatchedCapture.State(row.state):
        case BatchedCapture.State.WAITING | BatchedCapture.State.IN_BATCH:
            return CAPTURE_OUTSTANDING
        case BatchedCapture.State.TAKEN:
            return external_success_code()
        case BatchedCapture.State.REFUSED:
            return response_codes.map_declined_code(row.code, brand)
        case BatchedCapture.State.WITHDRAWN:
            return WITHDRAWN


def _taken_out(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    return AcquirerReply(
        code=external_success_code(),
        approved=request.money,
        connector_tx_id=request.payment.hex,
        sent=sent,
        received={"capture": "taken out"},
    )


def _refused(code: str, sent: dict[str, Any], why: str) -> AcquirerReply:
    return AcquirerReply(code=code, sent=sent, received={"refused": why})
