"""The connector of card acquirers that speak ISO 8583.

Requests (0100, 0200) cannot be asked about: without an answer they are taken back by a reversal advice (0420), which is
repeated until the host answers it. Advices and reversals (0220, 0400) are themselves repeated: their answer is the
outcome. Source: ISO 8583:1987, message repeats and reversals; docs/connectors/iso8583.md.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.connectors.iso8583 import batched_capture, capture_records
from gateway.connectors.iso8583.codec import BadMessageError
from gateway.connectors.iso8583.iso_request import (
    MESSAGE_KINDS,
    IsoRequest,
    OriginalMessage,
    UnsendableRequestError,
    build_iso_request,
)
from gateway.connectors.iso8583.link_registry import (
    LinkState,
    LinkUnansweredError,
    LinkUnreachableError,
    get_link,
    list_link_states,
)
from gateway.connectors.iso8583.mapping import build_iso_message, mask_iso_message
from gateway.connectors.iso8583.replies import reply_from_answer, reply_from_reversal
from gateway.connectors.iso8583.terminal import (
    BATCH_CAPTURES,
    ISO8583_SETTINGS,
    TerminalNotConfiguredError,
    check_terminal_settings,
    parse_terminal,
)
from gateway.connectors.means import Card, TokenAccount
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorSetting,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
)
from gateway.core.secret import RedactedDict

TERMINAL_NOT_CONFIGURED: Final = "500.100.401"
REQUEST_NOT_SENDABLE: Final = "600.100.100"
MAX_REMEMBERED_REVERSALS: Final = 4_096
"""Payments whose reversal this process has sent: the next one says that it is a repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """A message ready to go, and what is kept of it."""

    asked: IsoRequest
    message: RedactedDict
    sent: Mapping[str, Any]


class Iso8583Connector:
    """Many accounts at many hosts: each account's settings name its own."""

    name = "iso8583"
    operations = frozenset({"RG", "PA", "DB", "CD", "CP", "RF", "RV", "RB"})
    takes = frozenset({Card.kind, TokenAccount.kind})
    required: frozenset[str] = frozenset()
    redirects = False
    settings: tuple[ConnectorSetting, ...] = ISO8583_SETTINGS
    asks_with_means = True

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Without a link nobody accepted anything: a decline that says so. Everything else unclear is
        OutcomeUnknownError."""
        if request.operation == "RV" and (row := batched_capture.find_reversed_capture(request)) is not None:
            return batched_capture.reverse_queued_capture(request, row)
        try:
            if self.asks_nobody(request):
                return batched_capture.queue_capture(request, parse_terminal(request.account))
            written = _written(request)
            answer = _asked(request, written)
        except TerminalNotConfiguredError as fault:
            return _unsent(request, TERMINAL_NOT_CONFIGURED, str(fault))
        except (UnsendableRequestError, BadMessageError) as fault:
            return _unsent(request, REQUEST_NOT_SENDABLE, str(fault))
        except LinkUnreachableError as fault:
            sent = written.sent
            return AcquirerReply(
                code=ACQUIRER_UNREACHABLE, sent=sent, received={"unreachable": str(fault)}, retryable_elsewhere=True
            )
        return reply_from_answer(written.asked, answer, written.sent)

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """An advice or a reversal is repeated; nobody can be asked about a request. Captures that go by batch stand in
        our own books."""
        if request.operation == "RV" and (row := batched_capture.find_reversed_capture(request)) is not None:
            return batched_capture.inquire_reversal(request, row)
        if request.operation == "CP" and (row := capture_records.find_batched_capture(request.payment)) is not None:
            return batched_capture.reply_from_batched_capture(row, request.brand, {"inquiry": request.payment.hex})
        if _kept_only(request):
            return NotFoundAtAcquirer(sent={"inquiry": request.payment.hex}, received={"capture": "unknown"})
        kind = MESSAGE_KINDS.get(request.operation)
        if kind is None or not kind.advice:
            mti = kind.mti if kind is not None else ""
            return NotFoundAtAcquirer(sent={"mti": mti}, received={"inquiry": "a request cannot be asked about"})
        written = _or_silence(request, repeat=True)
        return reply_from_answer(written.asked, _asked_or_silence(request, written), written.sent, repeat=True)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """A reversal advice; the next one for the same payment says that it is a repeat."""
        if request.operation == "RV" and (row := batched_capture.find_reversed_capture(request)) is not None:
            return batched_capture.void_reversal(request, row)
        if request.operation == "CP" and (
            _kept_only(request) or capture_records.find_batched_capture(request.payment) is not None
        ):
            return batched_capture.void_queued_capture(request)
        written = _or_silence(request, repeat=_sent_before(request.payment), void=True)
        return reply_from_reversal(written.asked, _asked_or_silence(request, written), written.sent)

    def asks_nobody(self, request: AcquirerRequest) -> bool:
        """Whether ``submit`` answers out of our own books: a capture of an account that presents them by batch, and a
        reversal of one that the host has not answered."""
        if request.operation == "RV":
            return batched_capture.find_capture_by_reference(request) is not None
        return request.operation == "CP" and request.account.settings.get("capture") == BATCH_CAPTURES

    def faults_of(self, settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What is wrong with an account's settings taken together: (setting, why)."""
        return check_terminal_settings(settings)

    def link_states(self) -> tuple[LinkState, ...]:
        """How this process's links are, for the pages of health."""
        return list_link_states()


ISO8583: Final = Iso8583Connector()

_reversed: OrderedDict[UUID, None] = OrderedDict()
_lock = threading.Lock()


def _kept_only(request: AcquirerRequest) -> bool:
    """A capture that can only be in the books: its account presents by batch, and no advice of it went out before the
    account was changed to that, for then the silence has told its numbers."""
    return (
        request.operation == "CP"
        and ISO8583.asks_nobody(request)
        and OriginalMessage.parse(request.known_transaction_id) is None
    )


def _unsent(request: AcquirerRequest, code: str, why: str) -> AcquirerReply:
    """Nothing left the house."""
    sent = {"operation": request.operation, "transaction": request.payment.hex}
    return AcquirerReply(code=code, sent=sent, received={"unsent": why}, retryable_elsewhere=True, not_sent=True)


def _written(request: AcquirerRequest, *, repeat: bool = False, void: bool = False) -> _Written:
    asked = build_iso_request(request, parse_terminal(request.account), void=void)
    message = build_iso_message(asked, repeat=repeat)
    return _Written(asked=asked, message=message, sent=mask_iso_message(message, asked))


def _or_silence(request: AcquirerRequest, *, repeat: bool, void: bool = False) -> _Written:
    try:
        return _written(request, repeat=repeat, void=void)
    except (TerminalNotConfiguredError, UnsendableRequestError) as fault:
        raise OutcomeUnknownError(str(fault), {}) from None


def _asked(request: AcquirerRequest, written: _Written) -> dict[str, str]:
    """Send, and wait for the answer: connecting and answering together take the acquirer's timeout at most."""
    deadline = time.monotonic() + settings.GATEWAY_ACQUIRER_TIMEOUT_S
    try:
        return get_link(written.asked.terminal).ask(written.message, deadline)
    except LinkUnansweredError as fault:
        raise OutcomeUnknownError(str(fault), written.sent, connector_tx_id=written.asked.own.text()) from None


def _asked_or_silence(request: AcquirerRequest, written: _Written) -> dict[str, str]:
    try:
        return _asked(request, written)
    except (LinkUnreachableError, BadMessageError) as fault:
        raise OutcomeUnknownError(str(fault), written.sent, connector_tx_id=written.asked.own.text()) from None


def _sent_before(payment: UUID) -> bool:
    """Whether this process has sent the payment's reversal; from now on it has."""
    with _lock:
        before = payment in _reversed
        _reversed[payment] = None
        _reversed.move_to_end(payment)
        while len(_reversed) > MAX_REMEMBERED_REVERSALS:
            _reversed.popitem(last=False)
    return before


def _forked() -> None:
    """The lock may have been held by a thread that did not come along."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forked)
