"""Connector to card acquirers over ISO 8583.

Requests (0100, 0200) have no inquiry: without an answer they are reversed by an advice (0420), repeated until the host
answers it; but for a payout to a card, of which networks know no reversal. Advices and reversals (0220, 0400) are
themselves repeated, and their answer is the outcome. Source: ISO 8583:1987, message repeats and reversals;
docs/connectors/iso8583.md.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.catalogue.conditions.request_facts import MAIL_OR_TELEPHONE
from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.capabilities import PAYOUT_TRANSFER, SentParameter
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.connectors.iso8583 import batched_capture, capture_records, trace_numbers
from gateway.connectors.iso8583.addenda import ADDENDA_CAPABILITIES
from gateway.connectors.iso8583.codec import BadMessageError
from gateway.connectors.iso8583.exemptions import map_exemption
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
from gateway.connectors.iso8583.private_field import PRIVATE_CAPABILITIES
from gateway.connectors.iso8583.processing_codes import TRANSFER_CAPABILITIES
from gateway.connectors.iso8583.replies import prepare_late_reply, reply_from_answer, reply_from_reversal
from gateway.connectors.iso8583.response_codes import CREDITING_TYPES, UNDECIDED_CREDIT_CODES
from gateway.connectors.iso8583.terminal import (
    BATCH_CAPTURES,
    CALENDAR_DAYS,
    ISO8583_SETTINGS,
    RENEWALS_APART,
    REVERSED_ALONE,
    check_terminal_settings,
    name_trace_sequence,
    parse_terminal,
)
from gateway.connectors.means import Card, TokenAccount
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorAccount,
    ConnectorSetting,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
    VoidRefusedError,
)
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE
from gateway.core.secret import RedactedDict

TERMINAL_NOT_CONFIGURED: Final = "500.100.401"
REQUEST_NOT_SENDABLE: Final = "600.100.100"
PAYOUT_REMINDER: Final = timedelta(days=1)
"""How often a payout in doubt is looked at: nothing is sent."""
MAX_REMEMBERED_REVERSALS: Final = 4_096
"""Reversals that this process has sent: a further one of the same number is marked as a repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """A message ready to send, and its masked form for the exchange."""

    asked: IsoRequest
    message: RedactedDict
    sent: Mapping[str, Any]


ISO8583_PARAMETERS: Final[tuple[SentParameter, ...]] = (
    *TRANSFER_CAPABILITIES,
    *PRIVATE_CAPABILITIES,
    *ADDENDA_CAPABILITIES,
    SentParameter(name="transactionCategory", values=MAIL_OR_TELEPHONE, place="DE22 012, DE25 08"),
)


class Iso8583Connector:
    """Serves many accounts at many hosts; each account's settings name its host."""

    name = "iso8583"
    operations = frozenset({"RG", "PA", "DB", "CD", "CP", "RF", "RV", "RB"})
    takes = frozenset({Card.kind, TokenAccount.kind})
    required: frozenset[str] = frozenset()
    sends = ISO8583_PARAMETERS
    redirects = False
    settings: tuple[ConnectorSetting, ...] = ISO8583_SETTINGS
    asks_with_means = True

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Send the message. Without a link it is declined as retryable elsewhere; any other failure is
        OutcomeUnknownError."""
        if request.operation == "RV" and (row := batched_capture.find_reversed_capture(request)) is not None:
            return batched_capture.reverse_queued_capture(request, row)
        try:
            if self.answers_locally(request):
                return batched_capture.queue_capture(request, parse_terminal(request.account))
            written = _write_message(request)
            answer = _exchange(request, written, take_late_answer=request.take_late_answer)
        except AccountSettingError as fault:
            return _decline_unsent(request, TERMINAL_NOT_CONFIGURED, str(fault))
        except (UnsendableRequestError, BadMessageError) as fault:
            return _decline_unsent(request, REQUEST_NOT_SENDABLE, str(fault))
        except LinkUnreachableError as fault:
            sent = written.sent
            return AcquirerReply(
                code=ACQUIRER_UNREACHABLE, sent=sent, received={"unreachable": str(fault)}, retryable_elsewhere=True
            )
        return reply_from_answer(written.asked, answer, written.sent)

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Repeat an advice or reversal; a request cannot be inquired about, but what its host has answered may count by
        now. Batched captures are looked up in the database."""
        if request.operation == "RV" and (row := batched_capture.find_reversed_capture(request)) is not None:
            return batched_capture.inquire_reversal(request, row)
        if request.operation == "CP" and (row := capture_records.find_batched_capture(request.payment)) is not None:
            return batched_capture.reply_from_batched_capture(
                row, request.network_brand, {"inquiry": request.payment.hex}
            )
        if _is_batched_only(request):
            return NotFoundAtAcquirer(sent={"inquiry": request.payment.hex}, received={"capture": "unknown"})
        if _was_never_built(request):
            return NotFoundAtAcquirer(sent={"inquiry": request.payment.hex}, received={"unsent": "no trace number"})
        kind = MESSAGE_KINDS.get(request.operation)
        if kind is None or not kind.advice:
            if (declined := _decline_undecided_credit(request)) is not None:
                return declined
            mti = kind.mti if kind is not None else ""
            return NotFoundAtAcquirer(sent={"mti": mti}, received={"inquiry": "a request cannot be asked about"})
        written = _write_message_in_doubt(request, repeat=True)
        return reply_from_answer(written.asked, _exchange_in_doubt(request, written), written.sent, repeat=True)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Send a reversal advice; a further one of the same number is marked as a repeat. Raises VoidRefusedError for a
        payout to a card, NotFoundYetError if the host does not know a message that may still be under way."""
        if request.operation == "RV" and (row := batched_capture.find_reversed_capture(request)) is not None:
            return batched_capture.void_reversal(request, row)
        if request.operation == "CP" and (
            _is_batched_only(request) or capture_records.find_batched_capture(request.payment) is not None
        ):
            return batched_capture.void_queued_capture(request)
        if _was_never_built(request):
            sent = {"void": request.payment.hex}
            return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent=sent, received={"unsent": "no trace number"})
        if request.operation == "CD" and request.point_of_service.transfer == PAYOUT_TRANSFER:
            # A host acknowledges the advice, and the money is on the card all the same (docs/decisions/0152).
            why = "networks know no reversal of a payout: the acquirer has to be asked by a person"
            raise VoidRefusedError(why, {"void": request.payment.hex}, ask_again_after=PAYOUT_REMINDER)
        written = _write_message_in_doubt(request, repeat=_mark_reversal_sent(request), void=True)
        return reply_from_reversal(written.asked, _exchange_in_doubt(request, written), written.sent)

    def answers_locally(self, request: AcquirerRequest) -> bool:
        """True if ``submit`` answers from the database: a capture of an account with batch capture, and the reversal of
        one that the host has not answered."""
        if request.operation == "RV":
            return batched_capture.find_capture_by_reference(request) is not None
        return request.operation == "CP" and request.account.settings.get("capture") == BATCH_CAPTURES

    def take_trace_number(self, account: ConnectorAccount) -> int:
        """The number of a payment's message, once a day on a terminal (trace_numbers.py)."""
        terminal = account.settings.get("terminal", "")
        return trace_numbers.take_trace_number(name_trace_sequence(account.merchant, terminal)) if terminal else 0

    def claims_exemption(self, exemption: str, brand: str) -> bool:
        """Whether part 34 has a code for the exemption in the brand's network."""
        return bool(map_exemption(exemption, brand))

    def holds_renewals_apart(self, account: ConnectorAccount) -> bool:
        """Whether the host holds a renewal as an amount of its own, beside what it renews."""
        return account.settings.get("renewals") == RENEWALS_APART

    def holds_reversed_captures(self, account: ConnectorAccount) -> bool:
        """Whether the host voids a reversed capture alone, and goes on holding its amount."""
        return account.settings.get("reversed_captures") == REVERSED_ALONE

    def find_capture_arrival(self, account: ConnectorAccount, at: datetime) -> datetime:
        """When a capture that is made at ``at`` reaches the host: with the account's next batch, or at once."""
        if account.settings.get("capture") != BATCH_CAPTURES:
            return at
        try:
            return parse_terminal(account).next_batch(at)
        except AccountSettingError:  # the capture is declined when it is submitted
            return at

    def find_day_zone(self, account: ConnectorAccount) -> str:
        """The time zone by whose days the host counts the validity of authorizations; '' where it counts hours."""
        counts = account.settings.get("authorization_days") == CALENDAR_DAYS
        return account.settings.get("time_zone", "UTC") if counts else ""

    def faults_of(self, settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Errors in an account's settings taken together: (setting, reason)."""
        return check_terminal_settings(settings)

    def link_states(self) -> tuple[LinkState, ...]:
        """States of this process's links, for the health pages."""
        return list_link_states()


ISO8583: Final = Iso8583Connector()

_reversed: OrderedDict[tuple[UUID, int], None] = OrderedDict()
_lock = threading.Lock()


def _is_batched_only(request: AcquirerRequest) -> bool:
    """True for a capture that can only be a batched one.

    Its account has batch capture, and no advice of it went out before that was set, for then its message numbers are
    known.
    """
    return (
        request.operation == "CP"
        and ISO8583.answers_locally(request)
        and OriginalMessage.parse(request.known_transaction_id) is None
    )


def _was_never_built(request: AcquirerRequest) -> bool:
    """True for a payment whose message had no number, so that none was sent."""
    return not request.trace_number and OriginalMessage.parse(request.known_transaction_id) is None


def _decline_unsent(request: AcquirerRequest, code: str, why: str) -> AcquirerReply:
    """Decline a request that was not sent."""
    sent = {"operation": request.operation, "transaction": request.payment.hex}
    return AcquirerReply(code=code, sent=sent, received={"unsent": why}, retryable_elsewhere=True, not_sent=True)


def _decline_undecided_credit(request: AcquirerRequest) -> AcquirerReply | None:
    """The decline of a refund, credit or payout whose host's answer decided nothing until the account's
    ``credit_declines`` said that it does; None otherwise."""
    code = request.undecided_answer.get("39")
    declines = request.account.settings.get("credit_declines", "").split()
    if request.operation not in CREDITING_TYPES or code not in UNDECIDED_CREDIT_CODES.intersection(declines):
        return None
    written = _write_message_in_doubt(request, repeat=False)
    return reply_from_answer(written.asked, {"39": code}, {"inquiry": request.payment.hex})


def _write_message(request: AcquirerRequest, *, repeat: bool = False, void: bool = False) -> _Written:
    """Build the message. Raises UnsendableRequestError."""
    asked = build_iso_request(request, parse_terminal(request.account), void=void)
    message = build_iso_message(asked, repeat=repeat)
    return _Written(asked=asked, message=message, sent=mask_iso_message(message, asked))


def _write_message_in_doubt(request: AcquirerRequest, *, repeat: bool, void: bool = False) -> _Written:
    """Like :func:`_write_message` for a payment in doubt: raises OutcomeUnknownError instead."""
    try:
        return _write_message(request, repeat=repeat, void=void)
    except (AccountSettingError, UnsendableRequestError) as fault:
        raise OutcomeUnknownError(str(fault), {}) from None


def _exchange(
    request: AcquirerRequest, written: _Written, *, take_late_answer: Callable[[AcquirerReply], None] | None = None
) -> dict[str, str]:
    """Send and wait for the answer; connecting and answering together take the acquirer's timeout at most.
    ``take_late_answer``: takes the payment's own answer if it comes after that; of a repeat or reversal, nothing."""
    late = None
    if take_late_answer is not None:
        late = partial(prepare_late_reply, written.asked, written.sent, take_late_answer)
    deadline = time.monotonic() + settings.GATEWAY_ACQUIRER_TIMEOUT_S
    try:
        link = get_link(written.asked.terminal)
        return link.exchange(written.message, deadline, before_send=request.check_in_time, late=late)
    except LinkUnansweredError as fault:
        raise OutcomeUnknownError(str(fault), written.sent, connector_tx_id=written.asked.own.text()) from None


def _exchange_in_doubt(request: AcquirerRequest, written: _Written) -> dict[str, str]:
    """Like :func:`_exchange` for a payment in doubt: an unreachable host is an unknown outcome, too."""
    try:
        return _exchange(request, written)
    except (LinkUnreachableError, BadMessageError) as fault:
        raise OutcomeUnknownError(str(fault), written.sent, connector_tx_id=written.asked.own.text()) from None


def _mark_reversal_sent(request: AcquirerRequest) -> bool:
    """Record that this process sends the payment's reversal of this number. Returns whether it had before."""
    sent = (request.payment, request.trace_number)
    with _lock:
        before = sent in _reversed
        _reversed[sent] = None
        _reversed.move_to_end(sent)
        while len(_reversed) > MAX_REMEMBERED_REVERSALS:
            _reversed.popitem(last=False)
    return before


def _renew_lock() -> None:
    """Replace the lock after a fork: it may have been held by a thread that does not exist in the child."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
