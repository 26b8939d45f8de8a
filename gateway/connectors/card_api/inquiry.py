"""Inquiries and voids.

A payment's object is found by its id, in a list of recent objects, or by a search; no request is sent again. Before
"not found" is answered, the request's idempotency key is used up by a request that moves no money: the processor then
refuses the original if it arrives late. Source: docs/decisions/0034-a-card-api.md.
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
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE

LIST_PAGE_SIZE: Final = 100
MAX_LIST_PAGES: Final = 20
"""Pages of one list that are read; beyond that, the processor's search and the key have to decide."""
PROCESSOR_CLOCK_SKEW_S: Final = 300
"""Assumed difference between the processor's clock and ours."""
MAX_REQUEST_LIFE_S: Final = 900
"""No request runs longer at the processor: a used key without an object was a failure there."""
_UNFINISHED: Final = frozenset({"requires_payment_method", "requires_confirmation", "requires_action"})
VOID_MARK: Final = "tollhouse_void"
_TIMESTAMPED_UUID_VERSION: Final = 7
"""The UUID version whose ids begin with their time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InquiryMatch:
    """The object found, None for none; ``all_seen``: the list was read to its end."""

    resource: Mapping[str, Any] | None
    all_seen: bool = True


def inquire_payment(question: CardApiOperation) -> AcquirerReply | NotFoundAtAcquirer:
    """Find a payment's outcome. Raises OutcomeUnknownError if it stays unknown."""
    if not question.makes_intent:
        return _inquire_follow_up(question)
    found = _find_object(question)
    sent = _describe_operation(question)
    if found.resource is None:
        return _prove_not_found(question, found)
    failed = found.resource.get("last_payment_error") or found.resource.get("last_setup_error")
    if found.resource.get("status") in _UNFINISHED and not failed:
        # Made but never confirmed, or waiting for a step that will not happen: it is voided.
        return NotFoundAtAcquirer(
            sent=sent, received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=found.resource))
        )
    return reply_from_intent(question.request, found.resource, sent)


def void_payment(question: CardApiOperation) -> AcquirerReply:
    """Void a payment. Raises OutcomeUnknownError unless the processor confirms that nothing is, or can still be,
    booked."""
    if not question.makes_intent:
        return _void_follow_up(question)
    found = _find_object(question)
    if found.resource is None:
        never = _prove_not_found(question, found)
        return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent=never.sent, received=never.received)
    resource, sent = found.resource, _describe_operation(question)
    ident, status = mapping.parse_object_id(resource.get("id")), resource.get("status")
    if status == "canceled" or (question.collection_path == SETUPS_PATH and status == "succeeded"):
        return _reversed_reply(ident, sent, resource)
    if status == "succeeded":
        return _refund_remaining(
            question, "payment_intent", ident, resource.get("amount_received", resource.get("amount"))
        )
    response, sent = question.post(f"{question.collection_path}/{ident}/cancel", (), "cancel")
    if response.kind is not CallVerdict.DONE or response.body.get("status") != "canceled":
        raise OutcomeUnknownError("the processor does not cancel it", sent)
    return _reversed_reply(ident, sent, response.body)


def _reversed_reply(ident: str, sent: Mapping[str, Any], resource: Mapping[str, Any]) -> AcquirerReply:
    return AcquirerReply(
        code=TIMEOUT_REVERSED_CODE,
        connector_tx_id=ident,
        sent=sent,
        received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=resource)),
    )


def _describe_operation(question: CardApiOperation) -> dict[str, Any]:
    return {"lookFor": question.request.payment.hex, "at": question.collection_path}


# --- finding --------------------------------------------------------------------------------------------------------


def _find_object(question: CardApiOperation) -> InquiryMatch:
    """The intent or setup of the payment."""
    payment, collection_path = question.request.payment, question.collection_path
    if known_transaction_id := mapping.parse_object_id(question.request.known_transaction_id):
        lookup = question.session.get(f"{collection_path}/{known_transaction_id}", _expanding(question))
        if lookup.kind is CallVerdict.DONE and mapping.is_made_by_request(lookup.body, question.request):
            return InquiryMatch(resource=lookup.body)
    since = (
        [("created[gte]", str(int(_payment_time(question) - PROCESSOR_CLOCK_SKEW_S)))] if question.setup.full else []
    )
    all_seen = False
    for resource, last in _iterate_list(question, collection_path, since):
        all_seen = last
        if resource is not None and mapping.is_made_by_request(resource, question.request):
            return InquiryMatch(resource=_reload_object(question, collection_path, resource))
    if not all_seen and question.setup.full and collection_path == INTENTS_PATH:
        query = f"metadata['{mapping.PAYMENT_MARK}']:'{payment.hex}'"
        for resource in _list_page(_fetch(question, f"{collection_path}/search", [("query", query)])):
            if mapping.is_made_by_request(resource, question.request):
                return InquiryMatch(resource=_reload_object(question, collection_path, resource))
    return InquiryMatch(resource=None, all_seen=all_seen)


def _expanding(question: CardApiOperation) -> Sequence[tuple[str, str]]:
    if not question.setup.full:
        return ()
    return [("expand[]", "latest_attempt" if question.collection_path == SETUPS_PATH else "latest_charge")]


def _reload_object(question: CardApiOperation, collection_path: str, resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object's present state, with its charge."""
    return _fetch(question, f"{collection_path}/{mapping.parse_object_id(resource.get('id'))}", _expanding(question))


def _iterate_list(
    question: CardApiOperation, path: str, narrowing: Sequence[tuple[str, str]]
) -> Iterator[tuple[Mapping[str, Any] | None, bool]]:
    """Each object of a list, and whether it is the last; (None, True) for an empty one."""
    after: list[tuple[str, str]] = []
    for _ in range(MAX_LIST_PAGES):
        page = _fetch(question, path, [("limit", str(LIST_PAGE_SIZE)), *narrowing, *after])
        things = _list_page(page)
        more = page.get("has_more") is True and bool(things)
        yield from ((resource, not more and resource is things[-1]) for resource in things)
        if not more:
            if not things:
                yield None, True
            return
        after = [("starting_after", mapping.parse_object_id(things[-1].get("id")))]


def _list_page(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = page.get("data")
    return [resource for resource in found if isinstance(resource, dict)] if isinstance(found, list) else []


def _fetch(question: CardApiOperation, path: str, fields: Sequence[tuple[str, str]] = ()) -> Mapping[str, Any]:
    """An object or a page. Raises OutcomeUnknownError if it cannot be read."""
    lookup = question.session.get(path, fields)
    if lookup.kind is not CallVerdict.DONE:
        raise OutcomeUnknownError(f"the processor could not be asked: {lookup.why}", {"get": path})
    return lookup.body


def _payment_time(question: CardApiOperation) -> float:
    """When the payment began, real time, in seconds: read from its id, whatever the merchant's clock says."""
    payment = question.request.payment
    return (
        (payment.int >> 80) / 1000 if payment.version == _TIMESTAMPED_UUID_VERSION else question.request.at.timestamp()
    )


def _call_time(question: CardApiOperation) -> float:
    """When the processor was called, real time, in seconds."""
    called_at = question.request.called_at
    began = _payment_time(question)
    return max(began, called_at.timestamp()) if called_at is not None else began


# --- proving "not found" --------------------------------------------------------------------------------------------


def _prove_not_found(question: CardApiOperation, found: InquiryMatch) -> NotFoundAtAcquirer:
    """Answer that nothing was found. Raises OutcomeUnknownError unless a late arrival is impossible."""
    sent = _describe_operation(question)
    if not question.setup.full:
        # Without a key to use up, the list that was read has to decide.
        if not found.all_seen:
            raise OutcomeUnknownError("there is more at the processor than can be looked through", sent)
        return NotFoundAtAcquirer(sent=sent, received={"outcome": "unknown"})
    path, form = _closing_request(question)
    response, sent = question.post(path, form)
    if (
        response.kind is CallVerdict.TAKEN
        and found.all_seen
        and time.time() - _call_time(question) > MAX_REQUEST_LIFE_S
    ):
        return NotFoundAtAcquirer(sent=sent, received={"outcome": "failed there"})
    if response.kind is CallVerdict.REFUSED and response.status == 404:
        return NotFoundAtAcquirer(sent=sent, received=summarize_response(response))
    if response.kind is not CallVerdict.DONE:
        raise OutcomeUnknownError(f"the key could not be taken: {response.why}", sent)
    if question.makes_intent:
        # Only to clean up: an intent without a card can never be charged.
        question.post(f"{path}/{mapping.parse_object_id(response.body.get('id'))}/cancel", (), "closed")
    return NotFoundAtAcquirer(sent=sent, received={"outcome": "unknown", "key": "taken"})


def _closing_request(question: CardApiOperation) -> tuple[str, FormFields]:
    request = question.request
    if question.makes_intent:
        return question.collection_path, mapping.build_closing_request(request)
    at = "/v1/charges" if request.reference.startswith("ch_") else INTENTS_PATH
    return f"{at}/{request.reference}", mapping.build_closing_mark(request.payment)


# --- follow-ups -----------------------------------------------------------------------------------------------------


def _inquire_follow_up(question: CardApiOperation) -> AcquirerReply | NotFoundAtAcquirer:
    sent = _describe_operation(question)
    if not question.request.reference:
        raise OutcomeUnknownError("the payment it refers to is not known", sent)
    intent, refund = _load_follow_up_state(question)
    if refund is not None:
        return reply_from_refund(question, refund, sent)
    if question.request.operation == "CP" and intent is not None and _is_captured(question, intent):
        return reply_from_capture(question, intent, sent)
    if question.request.operation == "RV" and intent is not None and is_authorization_released(question, intent):
        return reply_from_release(question, intent, sent)
    return _prove_not_found(question, InquiryMatch(resource=None))


def _void_follow_up(question: CardApiOperation) -> AcquirerReply:
    request = question.request
    found = _inquire_follow_up(question)
    if isinstance(found, NotFoundAtAcquirer) or found.approved is None:
        return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent=found.sent, received=found.received)
    if request.operation != "CP":
        raise VoidRefusedError("money that was given back is not taken again", found.sent)
    by = "charge" if found.connector_tx_id.startswith("ch_") else "payment_intent"
    return _refund_remaining(question, by, found.connector_tx_id, mapping.units_from_money(request.money))


def _load_follow_up_state(question: CardApiOperation) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """The intent that a follow-up refers to (None for a charge), and the refund that it made, if any."""
    request = question.request
    by_charge = request.reference.startswith("ch_")
    intent = None if by_charge else _fetch(question, f"{INTENTS_PATH}/{request.reference}", _expanding_charge(question))
    if request.operation == "CP" or (intent is not None and mapping.parse_charge(intent).id == ""):
        return intent, None
    of = [("charge" if by_charge else "payment_intent", request.reference)]
    return intent, _find_refund(question, of, mapping.PAYMENT_MARK)


def _expanding_charge(question: CardApiOperation) -> Sequence[tuple[str, str]]:
    return [("expand[]", "latest_charge")] if question.setup.full else ()


def _find_refund(question: CardApiOperation, of: Sequence[tuple[str, str]], mark: str) -> Mapping[str, Any] | None:
    """The refund with our payment's id under ``mark``. Raises OutcomeUnknownError if the list is too long to read."""
    all_seen = False
    for resource, last in _iterate_list(question, REFUNDS_PATH, of):
        all_seen = last
        if resource is not None and mapping.read_mark(resource, mark) == question.request.payment.hex:
            return resource
    if not all_seen:
        raise OutcomeUnknownError("there are more refunds than can be looked through", _describe_operation(question))
    return None


def _is_captured(question: CardApiOperation, intent: Mapping[str, Any]) -> bool:
    """True if our capture was made. Servers of the core profile write the mark before it, so the state counts too."""
    marked = mapping.read_mark(intent, mapping.capture_mark_name(question.request.payment))
    return bool(marked) and (question.setup.full or intent.get("status") == "succeeded")


def _refund_remaining(question: CardApiOperation, by: str, ident: str, units: object) -> AcquirerReply:
    """Refund what is not refunded; idempotent."""
    of = [(by, ident)]
    given = _find_refund(question, of, VOID_MARK)
    sent: dict[str, Any] = _describe_operation(question)
    if given is None:
        marked = [(f"metadata[{VOID_MARK}]", question.request.payment.hex)]
        response, sent = question.post(REFUNDS_PATH, [*of, ("amount", str(units)), *marked], "void")
        if response.kind is not CallVerdict.DONE:
            raise OutcomeUnknownError(f"the processor does not give it back: {response.why}", sent)
        given = response.body
    if given.get("status") not in ("succeeded", "pending"):
        raise OutcomeUnknownError("the processor has not given it back", sent)
    return _reversed_reply(ident, sent, given)
