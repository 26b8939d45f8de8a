"""Maps answers to replies: what DE39 and the amounts mean. Pure functions.

An answer that contradicts itself or the request counts as none: the payment is in doubt, and is voided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from gateway.connectors.acquirer_message import external_success_code, parse_scheme_reference, parse_transaction_link
from gateway.connectors.iso8583 import response_codes
from gateway.connectors.iso8583.iso_request import MESSAGE_KINDS, IsoRequest, OriginalMessage
from gateway.connectors.iso8583.late_answers import LateAnswerTaker
from gateway.connectors.iso8583.private_field import mask_private_parts, parse_private_field
from gateway.connectors.port import AcquirerReply, NotFoundYetError, OutcomeUnknownError
from gateway.core.money import Money, currency_number
from gateway.core.result_codes import OUTCOME_UNKNOWN_CODE, TIMEOUT_REVERSED_CODE
from gateway.models.payments import UNDECIDED

MAX_UNDER_WAY: Final = timedelta(seconds=60)
"""How long a message may be under way after its answer was given up. The network has it for the acquirer's timeout at
most (connection.py), the rest is the host's."""
_KEPT: Final = ("4", "7", "11", "15", "37", "38", "39", "41", "44", "49", "54")
_NUMBERS: Final = ("mti", "7", "11", "37", "41")
_LONGEST: Final = 120
_IN_PART: Final = frozenset({"PA", "DB", "RB", "CD"})
_AVS_PLACE, _CVV_PLACE = 1, 9
"""Positions of the two letters in DE44, where the networks put them if the private field has none."""


def summarize_answer(answer: Mapping[str, str], asked: IsoRequest) -> dict[str, Any]:
    """The answer for the stored exchange: the informative fields, no account."""
    summary: dict[str, Any] = {"mti": answer.get("t", "")}
    summary |= {number: answer[number][:_LONGEST] for number in _KEPT if number in answer}
    if parts := parse_private_field(answer.get(asked.terminal.private_field, "")):
        summary[asked.terminal.private_field] = mask_private_parts(parts)
    return summary


def reply_from_answer(
    asked: IsoRequest, answer: Mapping[str, str], sent: Mapping[str, Any], *, repeat: bool = False
) -> AcquirerReply:
    """Map the answer to a reply. ``repeat``: the message was a repeat, to which 94 is an approval only where the
    account says so: the host knows the message, and may have refused it. Raises OutcomeUnknownError if it is not
    conclusive."""
    code = answer.get("39", "")
    own, received = asked.own.text(), summarize_answer(answer, asked)
    if not code.strip():
        why = "the host's answer has no response code"
        raise OutcomeUnknownError(why, sent, connector_tx_id=own, received=received)
    known_already = repeat and code == response_codes.DUPLICATE_MESSAGE and asked.terminal.duplicates_done
    if not known_already and _is_no_verdict(asked, code, repeat=repeat):
        why = f"the host answered {code}: no verdict"
        # "Try later" says nothing of what was asked for again: it is stored as no answer.
        kept = {} if repeat and code in response_codes.REPEAT_CODES else received
        raise OutcomeUnknownError(why, sent, connector_tx_id=own, received=kept)
    gives = not asked.own.amount or asked.kind in response_codes.CREDITING_TYPES
    checked = code == response_codes.NO_REASON_TO_DECLINE and gives
    grants = code in response_codes.GRANTING_CODES or checked or known_already
    parts = parse_private_field(answer.get(asked.terminal.private_field, ""))
    known = _identify_answered_message(asked, answer, parts, grants=grants)
    granted = _approved_amount(asked, answer, code, known, sent) if grants else None
    reopens = grants and _reopens_authorization(asked)
    details = {
        "AcquirerResponse": code[:2],
        "MerchantAdviceCode": parts.get("merchantAdvice", "")[:2],
        "AuthorizationReopened": "true" if reopens else "",
    }
    return AcquirerReply(
        code=external_success_code()
        if grants
        else response_codes.map_declined_code(code, asked.request.network_brand, asked.country),
        approved=granted,
        connector_tx_id=known.text(),
        network_reference=parse_scheme_reference(parts.get("network", "")) if grants else "",
        transaction_link=parse_transaction_link(parts.get("link", "")) if grants else "",
        details={name: text for name, text in details.items() if text},
        avs=response_codes.map_avs_letter(
            _letter(parts.get("avs", ""), answer, _AVS_PLACE), asked.request.network_brand
        ),
        cvv=response_codes.map_cvv_letter(
            _letter(parts.get("cvv", ""), answer, _CVV_PLACE), asked.request.network_brand
        ),
        sent=sent,
        received=received,
        retryable_elsewhere=not grants and code in response_codes.RETRYABLE_CODES,
        reopens_authorization=reopens,
    )


def _is_no_verdict(asked: IsoRequest, code: str, *, repeat: bool) -> bool:
    """Whether a DE39 leaves open what became of the message."""
    if MESSAGE_KINDS[asked.kind].advice and code in response_codes.REPEAT_CODES:
        return True
    # A host that answers 94 to what it has done has not done what it answers otherwise.
    may_be_done = repeat and MESSAGE_KINDS[asked.kind].advice and not asked.terminal.duplicates_done
    if may_be_done and response_codes.leaves_first_open(code, asked.request.network_brand):
        return True
    if asked.kind in response_codes.CREDITING_TYPES:
        undecided = response_codes.UNDECIDED_CREDIT_CODES - asked.terminal.credit_declines
        return code in response_codes.UNCLEAR_CODES | undecided
    return code in response_codes.UNCLEAR_CODES


def prepare_late_reply(
    asked: IsoRequest, sent: Mapping[str, Any], take: Callable[[AcquirerReply], None]
) -> LateAnswerTaker:
    """What maps a late answer to ``asked`` and has it taken. It is kept for long, so nothing of the card is in it, and
    of the parameters only what a result code goes by."""
    request = asked.request
    bare = replace(
        request,
        brand=request.network_brand,
        means=None,
        parameters={"merchant.country": asked.country},
        cryptogram=None,
        party_accounts={},
        original=request.point_of_service,
        take_late_answer=None,
    )
    about = replace(asked, request=bare, parts={}, addenda={})
    numbers = {name: sent[name] for name in _NUMBERS if name in sent}
    return LateAnswerTaker(payment=request.payment, take=partial(_take_late_answer, about, numbers, take))


def _take_late_answer(
    asked: IsoRequest, sent: Mapping[str, Any], take: Callable[[AcquirerReply], None], answer: Mapping[str, str]
) -> None:
    try:
        reply = reply_from_answer(asked, answer, sent)
    except OutcomeUnknownError as unknown:
        received = {UNDECIDED: str(unknown), **unknown.received}
        reply = AcquirerReply(code=OUTCOME_UNKNOWN_CODE, sent=sent, received=received)
    take(reply)


def _reopens_authorization(asked: IsoRequest) -> bool:
    """Whether the host goes on holding what the capture took that this message reverses (docs/decisions/0096)."""
    reversed_capture = asked.kind == "RV" and asked.original is not None and asked.original.operation == "CP"
    return reversed_capture and asked.terminal.captures_reversed_alone


def _identify_answered_message(
    asked: IsoRequest, answer: Mapping[str, str], parts: Mapping[str, str], *, grants: bool
) -> OriginalMessage:
    """The message's identifying numbers with what its answer added: what a reversal of it, or a follow-up, names."""
    units = _units(answer) if grants and asked.kind in _IN_PART and "4" in answer else 0
    return replace(
        asked.own,
        auth=answer.get("38", ""),
        network=parts.get("network", "") or asked.own.network,
        amount=units if 0 < units <= asked.own.amount else asked.own.amount,
    )


def _letter(part: str, answer: Mapping[str, str], place: int) -> str:
    return part[:1] or answer.get("44", "")[place : place + 1]


def reply_from_reversal(asked: IsoRequest, answer: Mapping[str, str], sent: Mapping[str, Any]) -> AcquirerReply:
    """Map the answer to a reversal. Raises OutcomeUnknownError unless it proves that nothing stays booked:
    NotFoundYetError where the host does not know a message that may still be under way."""
    code = answer.get("39", "")
    asked_for = asked.request.asked_for
    # A switch may have answered (91) while the message is still on its way to the issuer.
    may_arrive = asked_for is not None and asked_for < MAX_UNDER_WAY and not asked.own.auth
    received = summarize_answer(answer, asked)
    if code in response_codes.NOT_FOUND_CODES and may_arrive:
        why = f"the host does not know the message: {code}; it may still be under way"
        raise NotFoundYetError(why, sent, connector_tx_id=asked.own.text())
    known_already = code == response_codes.DUPLICATE_MESSAGE and asked.terminal.duplicates_done
    may_stand = not known_already and _is_repeated_reversal(asked, code)
    if code not in response_codes.REVERSAL_DONE_CODES and not known_already and not may_stand:
        why = f"the host did not take it back: {code or 'no response code'}"
        # "Try later" is no refusal: it is stored as no answer, and the reversal is repeated as soon.
        refused = {} if code in response_codes.REPEAT_CODES else received
        raise OutcomeUnknownError(why, sent, received=refused)
    return AcquirerReply(
        code=TIMEOUT_REVERSED_CODE,
        connector_tx_id=asked.own.text(),
        details={"AcquirerResponse": code},
        sent=sent,
        received=received,
        may_stand=may_stand,
    )


def _is_repeated_reversal(asked: IsoRequest, code: str) -> bool:
    """Whether the host has nothing left to reverse of an approval that came late, after it acknowledged a reversal that
    did not know of it. Hosts acknowledge advices that they can do nothing about, so this is no proof, but their last
    word (docs/decisions/0138). A credit in doubt stays so, since it could be made twice."""
    is_declined = asked.request.asked_for is None
    is_known = is_declined or (bool(asked.own.auth) and asked.request.operation not in response_codes.CREDITING_TYPES)
    was_acknowledged = any(one.get("39") == "00" for one in asked.request.earlier_void_answers)
    return is_known and was_acknowledged and response_codes.is_already_reversed(code, asked.request.network_brand)


def _approved_amount(
    asked: IsoRequest, answer: Mapping[str, str], code: str, known: OriginalMessage, sent: Mapping[str, Any]
) -> Money:
    """The amount that an approval grants. Raises OutcomeUnknownError for an impossible one; ``known`` is then what the
    void names."""
    own, money = asked.own, asked.request.money

    def nonsense(why: str) -> OutcomeUnknownError:
        received = summarize_answer(answer, asked)
        return OutcomeUnknownError(f"the host's approval {why}", sent, connector_tx_id=known.text(), received=received)

    if answer.get("49", "").strip() not in ("", currency_number(money.currency)):
        raise nonsense("is in another currency")
    if asked.kind == "RV" or "4" not in answer:
        # A reversal's DE4 repeats the original's amount.
        if code == response_codes.DE39_PARTIAL:
            raise nonsense("in part tells no amount")
        return money
    units = _units(answer)
    in_part = 0 < units < own.amount
    if units == own.amount and code != response_codes.DE39_PARTIAL:
        return money
    # Of a renewal that the host holds apart the renewed amount would be given up for less.
    whole = asked.terminal.renewals_apart and asked.is_renewal
    if not in_part or asked.kind not in _IN_PART or whole:
        raise nonsense("is for another amount")
    try:
        return Money.from_minor_units(units, money.currency)
    except ValueError:
        raise nonsense("is for an amount out of range") from None


def _units(answer: Mapping[str, str]) -> int:
    text = answer["4"]
    return int(text) if text.isascii() and text.isdecimal() else -1
