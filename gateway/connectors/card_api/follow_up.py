"""Follow-ups: captures, refunds, reversals. What the processor does not support is declined before it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.card_api import mapping, result_mapping
from gateway.connectors.card_api.operation import (
    INTENTS_PATH,
    REFUNDS_PATH,
    CardApiOperation,
    reply_from_failure,
    summarize_response,
)
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse
from gateway.connectors.port import AcquirerReply, OutcomeUnknownError

ALREADY_CAPTURED: Final = "700.400.100"
"""Captured before, or no longer authorized."""
PARTIAL_REVERSAL_REFUSED: Final = "700.400.300"
CAPTURED_BEFORE_REVERSAL: Final = "700.400.300"
"""An authorization can be reversed in full only."""
INTENT_STILL_OPEN: Final = "700.400.570"
_HELD: Final = frozenset({"requires_capture", "requires_confirmation", "requires_action", "requires_payment_method"})


def capture_intent(question: CardApiOperation) -> AcquirerReply:
    """Capture in full or in part. Without multicapture, or with a card that does not allow it, the processor releases
    the rest, and a further capture is declined."""
    request, setup = question.request, question.setup
    path = f"{INTENTS_PATH}/{request.reference}"
    if not setup.full:
        lookup = question.session.get(path)
        if lookup.kind is not CallVerdict.DONE:
            return _reply_to_failed_lookup(question, lookup)
        if lookup.body.get("status") != "requires_capture":
            return _declined_reply(ALREADY_CAPTURED, lookup)
        marked, sent = question.post(path, mapping.build_capture_mark(request), "mark")
        if marked.kind is not CallVerdict.DONE:
            return reply_from_failure(question, marked, sent, moves_money=False)
    again = setup.multicapture
    if again and not mapping.is_last_capture(request):
        # For a card that allows one capture only, the processor refuses a capture that announces another.
        lookup = question.session.get(path, [("expand[]", "latest_charge")])
        if lookup.kind is not CallVerdict.DONE:
            return _reply_to_failed_lookup(question, lookup)
        again = mapping.is_multicapture_available(lookup.body)
    form = mapping.build_capture(request, full=setup.full, multicapture=again)
    response, sent = question.post(f"{path}/capture", form)
    if response.kind is not CallVerdict.DONE:
        return reply_from_failure(question, response, sent)
    if response.body.get("status") not in ("succeeded", "requires_capture"):
        raise OutcomeUnknownError("the processor has not captured yet", sent)
    return reply_from_capture(question, response.body, sent)


def reply_from_capture(
    question: CardApiOperation, resource: Mapping[str, Any], sent: Mapping[str, Any]
) -> AcquirerReply:
    """Map a capture to its reply. Follow-ups refer to the charge, not the intent."""
    charge = mapping.parse_charge(resource).id
    return _approved_reply(question, charge or question.request.reference, str(resource.get("status")), sent, resource)


def refund_charge(question: CardApiOperation) -> AcquirerReply:
    """Refund a debit (its intent) or a capture (its charge), in full or in part."""
    response, sent = question.post(REFUNDS_PATH, mapping.build_refund(question.request))
    if response.kind is not CallVerdict.DONE:
        return reply_from_failure(question, response, sent)
    return reply_from_refund(question, response.body, sent)


def reply_from_refund(
    question: CardApiOperation, resource: Mapping[str, Any], sent: Mapping[str, Any]
) -> AcquirerReply:
    """Map a refund to its reply. ``pending`` counts as accepted: a later failure comes by webhook, and is recorded."""
    request, status = question.request, str(resource.get("status"))
    if mapping.read_mark(resource, mapping.PAYMENT_MARK) != request.payment.hex:
        raise OutcomeUnknownError("the processor answered with another payment's refund", sent)
    if status in ("failed", "canceled"):
        return AcquirerReply(
            code=result_mapping.UNLISTED_DECLINE,
            connector_tx_id=mapping.parse_object_id(resource.get("id")),
            sent=sent,
            details={"AcquirerResponse": str(resource.get("failure_reason") or status)[:64]},
            received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=resource)),
        )
    if status not in ("succeeded", "pending"):
        raise OutcomeUnknownError("the processor has not decided on the refund yet", sent)
    if mapping.money_from_units(resource.get("amount"), request.money.currency) != request.money:
        raise OutcomeUnknownError("the processor gave back another amount than was asked for", sent)
    return _approved_reply(question, mapping.parse_object_id(resource.get("id")), status, sent, resource)


def reverse_intent(question: CardApiOperation) -> AcquirerReply:
    """Release an authorization, or refund what was captured."""
    request = question.request
    if request.reference.startswith("ch_"):
        return refund_charge(question)
    path = f"{INTENTS_PATH}/{request.reference}"
    lookup = question.session.get(path)
    if lookup.kind is not CallVerdict.DONE:
        return _reply_to_failed_lookup(question, lookup)
    status, resource = lookup.body.get("status"), lookup.body
    if is_authorization_released(question, resource):
        return reply_from_release(question, resource, {"get": path})
    if status == "succeeded":
        # An authorization captured outside the gateway has to be recorded here first; then it can be refunded.
        return (
            refund_charge(question)
            if resource.get("capture_method") != "manual"
            else _declined_reply(CAPTURED_BEFORE_REVERSAL, lookup)
        )
    if status not in _HELD:
        return _declined_reply(INTENT_STILL_OPEN, lookup)
    held = mapping.money_from_units(resource.get("amount_capturable") or resource.get("amount"), request.money.currency)
    if held is None or request.money < held:
        return _declined_reply(PARTIAL_REVERSAL_REFUSED, lookup)
    if resource.get("amount_received"):
        # Captured in part, the rest still authorized: a final capture of zero releases it.
        form = [("amount_to_capture", "0"), ("final_capture", "true")]
        response, sent = question.post(f"{path}/capture", form)
    else:
        response, sent = question.post(f"{path}/cancel", ())
    if response.kind is not CallVerdict.DONE:
        return reply_from_failure(question, response, sent)
    if not is_authorization_released(question, response.body):
        raise OutcomeUnknownError("the processor has not given up what it holds yet", sent)
    return reply_from_release(question, response.body, sent)


def reply_from_release(
    question: CardApiOperation, resource: Mapping[str, Any], sent: Mapping[str, Any]
) -> AcquirerReply:
    """Map a released authorization to the reversal's reply, also if it was released before."""
    return _approved_reply(question, question.request.reference, str(resource.get("status")), sent, resource)


def is_authorization_released(question: CardApiOperation, resource: Mapping[str, Any]) -> bool:
    """True if an intent has released what the reversal asks for: cancelled, or captured with that much left over."""
    if resource.get("status") == "canceled":
        return True
    if resource.get("status") != "succeeded" or resource.get("capture_method") != "manual":
        return False
    amount, taken = resource.get("amount"), resource.get("amount_received")
    if not isinstance(amount, int) or not isinstance(taken, int):
        return False
    return amount - taken >= mapping.units_from_money(question.request.money)


def _approved_reply(
    question: CardApiOperation, ident: str, word: str, sent: Mapping[str, Any], resource: Mapping[str, Any]
) -> AcquirerReply:
    return AcquirerReply(
        code=external_success_code(),
        approved=question.request.money,
        connector_tx_id=ident,
        sent=sent,
        details={"AcquirerResponse": word[:64], "ConnectorTxID1": ident},
        received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=resource)),
    )


def _reply_to_failed_lookup(question: CardApiOperation, lookup: CardApiResponse) -> AcquirerReply:
    """A read before the actual request failed, so nothing was requested."""
    sent = {"get": f"{INTENTS_PATH}/{question.request.reference}"}
    return reply_from_failure(question, lookup, sent, moves_money=False)


def _declined_reply(code: str, lookup: CardApiResponse) -> AcquirerReply:
    kept = summarize_response(lookup)
    return AcquirerReply(
        code=code,
        sent={"get": "the intent's state"},
        received=kept,
        details={"AcquirerResponse": str(kept.get("status", ""))[:64]},
    )
