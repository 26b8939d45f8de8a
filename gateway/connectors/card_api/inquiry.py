"""What became of an earlier question, and how it is taken back.

A payment's object is found by its id, by a list of what was made since, or by a search; nothing is ever sent a second
time. Before "it never arrived" is said, the question's idempotency key is taken by a request that moves nothing: what
arrives later is refused by the processor. Source: docs/decisions/0034-a-card-api.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.authorize import reply_from_intent
from gateway.connectors.card_api.follow_up import (
    is_authorization_released,
    reply_from_capture,
    reply_from_refund,
    reply_from_release,
)
from gateway.connectors.card_api.operation import (
    INTENTS_PATH,
    REFUNDS_PATH,
    SETUPS_PATH,
    CardApiOperation,
    summarize_response,
)
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse, FormFields
from gateway.connectors.port import AcquirerReply, NotFoundAtAcquirer, OutcomeUnknownError, VoidRefusedError
from gateway.connectors.reply_codes import REVERSED

LIST_PAGE_SIZE: Final = 100
MAX_LIST_PAGES: Final = 20
"""Of one look; beyond that the processor's search, and the key, have to tell."""
PROCESSOR_CLOCK_SKEW_S: Final = 300
"""How far the processor's clock may be from ours."""
MAX_REQUEST_LIFE_S: Final = 900
"""No request runs longer at the processor: a key that is taken, and nothing made under it, was a failure there."""
_UNFINISHED: Final = frozenset({"requires_payment_method", "requires_confirmation", "requires_action"})
VOID_MARK: Final = "tollhouse_void"
_TIMED: Final = 7
"""The version of ids that begin with their time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryMatch:
    """``thing``: the object, None when there is none; ``all_seen``: whether everything was looked through."""

    thing: Mapping[str, Any] | None
    all_seen: bool = True


def inquire_payment(question: CardApiOperation) -> AcquirerReply | NotFoundAtAcquirer:
    """Raises OutcomeUnknownError when it cannot be told."""
    if not question.makes_intent:
        return _of_follow_up(question)
    found = _find(question)
    sent = _about(question)
    if found.thing is None:
        return _never(question, found)
    failed = found.thing.get("last_payment_error") or found.thing.get("last_setup_error")
    if found.thing.get("status") in _UNFINISHED and not failed:
        # It was made and never confirmed, or waits for somebody who will not come: it is taken back.
        return NotFoundAtAcquirer(
            sent=sent, received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=found.thing))
        )
    return reply_from_intent(question.request, found.thing, sent)


def void_payment(question: CardApiOperation) -> AcquirerReply:
    """Raises OutcomeUnknownError without the processor's word that nothing stands, and nothing can come."""
    if not question.makes_intent:
        return _take_back_follow_up(question)
    found = _find(question)
    if found.thing is None:
        never = _never(question, found)
        return AcquirerReply(code=REVERSED, sent=never.sent, received=never.received)
    thing, sent = found.thing, _about(question)
    ident, status = mapping.parse_object_id(thing.get("id")), thing.get("status")
    if status == "canceled" or (question.collection_path == SETUPS_PATH and status == "succeeded"):
        return _reversed(ident, sent, thing)
    if status == "succeeded":
        return _give_back(question, "payment_intent", ident, thing.get("amount_received", thing.get("amount")))
    heard, sent = question.post(f"{question.collection_path}/{ident}/cancel", (), "cancel")
    if heard.kind is not CallVerdict.DONE or heard.body.get("status") != "canceled":
        raise OutcomeUnknownError("the processor does not cancel it", sent)
    return _reversed(ident, sent, heard.body)


def _reversed(ident: str, sent: Mapping[str, Any], thing: Mapping[str, Any]) -> AcquirerReply:
    return AcquirerReply(
        code=REVERSED,
        connector_tx_id=ident,
        sent=sent,
        received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=thing)),
    )


def _about(question: CardApiOperation) -> dict[str, Any]:
    return {"lookFor": question.request.payment.hex, "at": question.collection_path}


# --- finding ------------------------------------------------------------------------------------------------------


def _find(question: CardApiOperation) -> InquiryMatch:
    """The intent or setup of the question's payment."""
    payment, collection_path = question.request.payment, question.collection_path
    if known_transaction_id := mapping.parse_object_id(question.request.known_transaction_id):
        looked = question.session.get(f"{collection_path}/{known_transaction_id}", _expanding(question))
        if looked.kind is CallVerdict.DONE and mapping.is_made_by_payment(looked.body, payment):
            return InquiryMatch(thing=looked.body)
    since = [("created[gte]", str(int(_made_at(question) - PROCESSOR_CLOCK_SKEW_S)))] if question.setup.full else []
    all_seen = False
    for thing, last in _each(question, collection_path, since):
        all_seen = last
        if thing is not None and mapping.is_made_by_payment(thing, payment):
            return InquiryMatch(thing=_whole(question, collection_path, thing))
    if not all_seen and question.setup.full and collection_path == INTENTS_PATH:
        query = f"metadata['{mapping.PAYMENT_MARK}']:'{payment.hex}'"
        for thing in _things(_looked(question, f"{collection_path}/search", [("query", query)])):
            if mapping.is_made_by_payment(thing, payment):
                return InquiryMatch(thing=_whole(question, collection_path, thing))
    return InquiryMatch(thing=None, all_seen=all_seen)


def _expanding(question: CardApiOperation) -> Sequence[tuple[str, str]]:
    if not question.setup.full:
        return ()
    return [("expand[]", "latest_attempt" if question.collection_path == SETUPS_PATH else "latest_charge")]


def _whole(question: CardApiOperation, collection_path: str, thing: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object as it is now, with its charge."""
    return _looked(question, f"{collection_path}/{mapping.parse_object_id(thing.get('id'))}", _expanding(question))


def _each(
    question: CardApiOperation, path: str, narrowing: Sequence[tuple[str, str]]
) -> Iterator[tuple[Mapping[str, Any] | None, bool]]:
    """Each object of a list, and whether it is the last; (None, True) ends an empty one."""
    after: list[tuple[str, str]] = []
    for _ in range(MAX_LIST_PAGES):
        page = _looked(question, path, [("limit", str(LIST_PAGE_SIZE)), *narrowing, *after])
        things = _things(page)
        more = page.get("has_more") is True and bool(things)
        yield from ((thing, not more and thing is things[-1]) for thing in things)
        if not more:
            if not things:
                yield None, True
            return
        after = [("starting_after", mapping.parse_object_id(things[-1].get("id")))]


def _things(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = page.get("data")
    return [thing for thing in found if isinstance(thing, dict)] if isinstance(found, list) else []


def _looked(question: CardApiOperation, path: str, fields: Sequence[tuple[str, str]] = ()) -> Mapping[str, Any]:
    """An object or a page. Raises OutcomeUnknownError when there is none to be had."""
    looked = question.session.get(path, fields)
    if looked.kind is not CallVerdict.DONE:
        raise OutcomeUnknownError(f"the processor could not be asked: {looked.why}", {"get": path})
    return looked.body


def _made_at(question: CardApiOperation) -> float:
    """When the payment was begun, real time, in seconds: its id tells, whatever the merchant's clock says."""
    payment = question.request.payment
    return (payment.int >> 80) / 1000 if payment.version == _TIMED else question.request.at.timestamp()


# --- it never arrived, and cannot any more ------------------------------------------------------------------------


def _never(question: CardApiOperation, found: InquiryMatch) -> NotFoundAtAcquirer:
    """Nothing was found. Raises OutcomeUnknownError unless nothing can come any more, either."""
    sent = _about(question)
    if not question.setup.full:
        # No key to be taken: what was looked through is all there is.
        if not found.all_seen:
            raise OutcomeUnknownError("there is more at the processor than can be looked through", sent)
        return NotFoundAtAcquirer(sent=sent, received={"outcome": "unknown"})
    path, form = _closing(question)
    heard, sent = question.post(path, form)
    if heard.kind is CallVerdict.TAKEN and found.all_seen and time.time() - _made_at(question) > MAX_REQUEST_LIFE_S:
        return NotFoundAtAcquirer(sent=sent, received={"outcome": "failed there"})
    if heard.kind is CallVerdict.REFUSED and heard.status == 404:
        return NotFoundAtAcquirer(sent=sent, received=summarize_response(heard))
    if heard.kind is not CallVerdict.DONE:
        raise OutcomeUnknownError(f"the key could not be taken: {heard.why}", sent)
    if question.makes_intent:
        # For tidiness alone: an intent without a card can never be charged.
        question.post(f"{path}/{mapping.parse_object_id(heard.body.get('id'))}/cancel", (), "closed")
    return NotFoundAtAcquirer(sent=sent, received={"outcome": "unknown", "key": "taken"})


def _closing(question: CardApiOperation) -> tuple[str, FormFields]:
    request = question.request
    if question.makes_intent:
        return question.collection_path, mapping.build_closing_request(request)
    at = "/v1/charges" if request.reference.startswith("ch_") else INTENTS_PATH
    return f"{at}/{request.reference}", mapping.build_closing_mark(request.payment)


# --- follow-ups ---------------------------------------------------------------------------------------------------


def _of_follow_up(question: CardApiOperation) -> AcquirerReply | NotFoundAtAcquirer:
    sent = _about(question)
    if not question.request.reference:
        raise OutcomeUnknownError("the payment it refers to is not known", sent)
    intent, refund = _state(question)
    if refund is not None:
        return reply_from_refund(question, refund, sent)
    if question.request.operation == "CP" and intent is not None and _is_captured(question, intent):
        return reply_from_capture(question, intent, sent)
    if question.request.operation == "RV" and intent is not None and is_authorization_released(question, intent):
        return reply_from_release(question, intent, sent)
    return _never(question, InquiryMatch(thing=None))


def _take_back_follow_up(question: CardApiOperation) -> AcquirerReply:
    request = question.request
    found = _of_follow_up(question)
    if isinstance(found, NotFoundAtAcquirer) or found.approved is None:
        return AcquirerReply(code=REVERSED, sent=found.sent, received=found.received)
    if request.operation != "CP":
        raise VoidRefusedError("money that was given back is not taken again", found.sent)
    by = "charge" if found.connector_tx_id.startswith("ch_") else "payment_intent"
    return _give_back(question, by, found.connector_tx_id, mapping.units_from_money(request.money))


def _state(question: CardApiOperation) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """The intent that a follow-up refers to (None for a charge), and the refund that it made, if it did."""
    request = question.request
    by_charge = request.reference.startswith("ch_")
    intent = (
        None if by_charge else _looked(question, f"{INTENTS_PATH}/{request.reference}", _expanding_charge(question))
    )
    if request.operation == "CP" or (intent is not None and mapping.parse_charge(intent).id == ""):
        return intent, None
    of = [("charge" if by_charge else "payment_intent", request.reference)]
    return intent, _refund(question, of, mapping.PAYMENT_MARK)


def _expanding_charge(question: CardApiOperation) -> Sequence[tuple[str, str]]:
    return [("expand[]", "latest_charge")] if question.setup.full else ()


def _refund(question: CardApiOperation, of: Sequence[tuple[str, str]], mark: str) -> Mapping[str, Any] | None:
    """The refund with our payment's id under ``mark``. Raises OutcomeUnknownError where there are more than can be
    seen."""
    all_seen = False
    for thing, last in _each(question, REFUNDS_PATH, of):
        all_seen = last
        if thing is not None and mapping.read_mark(thing, mark) == question.request.payment.hex:
            return thing
    if not all_seen:
        raise OutcomeUnknownError("there are more refunds than can be looked through", _about(question))
    return None


def _is_captured(question: CardApiOperation, intent: Mapping[str, Any]) -> bool:
    """The mark is written with the capture; by servers of the core profile before it, so the state counts too."""
    marked = mapping.read_mark(intent, mapping.capture_mark_name(question.request.payment))
    return bool(marked) and (question.setup.full or intent.get("status") == "succeeded")


def _give_back(question: CardApiOperation, by: str, ident: str, units: object) -> AcquirerReply:
    """Refund what stands; once, however often it is asked for."""
    of = [(by, ident)]
    given = _refund(question, of, VOID_MARK)
    sent: dict[str, Any] = _about(question)
    if given is None:
        marked = [(f"metadata[{VOID_MARK}]", question.request.payment.hex)]
        heard, sent = question.post(REFUNDS_PATH, [*of, ("amount", str(units)), *marked], "void")
        if heard.kind is not CallVerdict.DONE:
            raise OutcomeUnknownError(f"the processor does not give it back: {heard.why}", sent)
        given = heard.body
    if given.get("status") not in ("succeeded", "pending"):
        raise OutcomeUnknownError("the processor has not given it back", sent)
    return _reversed(ident, sent, given)
