"""Captures of accounts that present them by batch: answers out of the books, pending until the host has spoken.

The host is not asked here: batches.py decides what goes when, presenting.py sends it. Source: docs/decisions/0040.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from gateway.connectors.iso8583 import books, codes
from gateway.connectors.iso8583.mapping import masked, message_of
from gateway.connectors.iso8583.question import question
from gateway.connectors.iso8583.terminal import Terminal
from gateway.connectors.message import success_code
from gateway.connectors.port import AcquirerReply, AcquirerRequest, NeverArrived, NotTakenBack
from gateway.models import BatchedCapture
from gateway.money import Money

OUTSTANDING: Final = "800.400.500"
WITHDRAWN: Final = "100.396.201"
REVERSED: Final = "900.100.301"
TOO_LATE: Final = "700.300.700"
WHOLE_ONLY: Final = "700.100.200"
ANSWER: Final = timedelta(days=7)
"""After its batch was due, until a capture without an answer is looked at once a day; it stays pending all the same."""

State = BatchedCapture.State


def keep(request: AcquirerRequest, terminal: Terminal) -> AcquirerReply:
    """Take a capture into the books. Raises Unsendable, and BadMessage for one that would not fit into a frame."""
    asked = question(request, terminal)
    message = message_of(asked)
    terminal.wire.frame(message)
    row = books.keep(request, message, asked.own.text(), terminal)
    return answer_of(row, request.brand, masked(message, asked))


def named(request: AcquirerRequest) -> UUID | None:
    """The capture of our books that a reversal names: its reference is the payment's id until the host has answered,
    and the numbers of its message from then on."""
    try:
        return UUID(hex=request.reference)
    except ValueError:
        return None


def behind(request: AcquirerRequest) -> BatchedCapture | None:
    """The capture that a reversal speaks of, where that is one of the books'."""
    ident = named(request)
    return books.find(ident) if ident is not None else None


def reverse(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply:
    """A capture that no batch has yet is taken out, whole; afterwards it is too late, until the host has answered."""
    sent = {"operation": "RV", "transaction": request.payment.hex, "capture": row.payment.hex}
    if request.money != Money(row.amount, row.currency):
        return _refused(WHOLE_ONLY, sent, "a capture is taken out of its batch as a whole")
    if not books.reverse(row.payment, by=request.payment) and not books.was_withdrawn(row.payment):
        return _refused(TOO_LATE, sent, "the capture is in a batch already, or the reversal was itself taken back")
    return _taken_out(request, sent)


def inquire_reversal(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply | NeverArrived:
    """It has no row of its own: what it did stands in the capture's."""
    sent = {"inquiry": request.payment.hex}
    if books.was_withdrawn(row.payment):
        return _taken_out(request, sent)
    return NeverArrived(sent=sent, received={"capture": "not taken out"})


def void_reversal(request: AcquirerRequest, row: BatchedCapture) -> AcquirerReply:
    """Raises NotTakenBack for a reversal that took its capture out."""
    sent = {"void": request.payment.hex}
    if books.was_withdrawn(row.payment, settled=True):
        raise NotTakenBack("the capture is taken out and does not come back", sent)
    return AcquirerReply(code=REVERSED, sent=sent, received={"capture": "not taken out"})


def void(request: AcquirerRequest) -> AcquirerReply:
    """Take a capture back that no batch has. Raises NotTakenBack for one that is in a batch: its host alone decides."""
    sent = {"void": request.payment.hex}
    if books.withdraw(request.payment, told=True):
        return AcquirerReply(code=REVERSED, sent=sent, received={"capture": "taken out"})
    row = books.refuse_late(request)
    if row.state in (State.WITHDRAWN, State.REFUSED):
        return AcquirerReply(code=REVERSED, sent=sent, received=books.evidence(row))
    raise NotTakenBack("the capture is in a batch and is not taken back", sent)


def answer_of(row: BatchedCapture, brand: str, sent: Mapping[str, Any]) -> AcquirerReply:
    """What a capture says by now."""
    code = code_of(row, brand)
    taken = row.state == State.TAKEN
    details = {"AcquirerResponse": row.code[:2]}
    return AcquirerReply(
        code=code, approved=Money(row.amount, row.currency) if taken else None,
        connector_tx_id=row.reference if row.state in (State.TAKEN, State.REFUSED) else row.payment.hex,
        details={name: text for name, text in details.items() if text}, sent=dict(sent), received=books.evidence(row),
        until=row.present_at + ANSWER if code == OUTSTANDING and row.present_at is not None else None,
    )  # fmt: skip


def code_of(row: BatchedCapture, brand: str) -> str:
    """The result code of a capture as it stands."""
    match State(row.state):
        case State.WAITING | State.IN_BATCH:
            return OUTSTANDING
        case State.TAKEN:
            return success_code()
        case State.REFUSED:
            return codes.declined(row.code, brand)
        case State.WITHDRAWN:
            return WITHDRAWN


def _taken_out(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    return AcquirerReply(
        code=success_code(), approved=request.money, connector_tx_id=request.payment.hex, sent=sent,
        received={"capture": "taken out"},
    )  # fmt: skip


def _refused(code: str, sent: dict[str, Any], why: str) -> AcquirerReply:
    return AcquirerReply(code=code, sent=sent, received={"refused": why})
