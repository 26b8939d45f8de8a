"""Follow-ups: captures, refunds, reversals. What the processor cannot do is refused with a code before it is asked."""

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
"""It was captured before, or is no longer held."""
PARTIAL_REVERSAL_REFUSED: Final = "700.400.300"
CAPTURED_BEFORE_REVERSAL: Final = "700.400.300"
"""Only all of an authorization can be given up."""
INTENT_STILL_OPEN: Final = "700.400.570"
_HELD: Final = frozenset({"requires_capture", "requires_confirmation", "requires_action", "requires_payment_method"})


def capture_intent(question: CardApiOperation) -> AcquirerReply:
    """Capture, all or a part. Without multicapture the processor lets the rest go, and the next one is refused."""
    request, setup = question.request, question.setup
    path = f"{INTENTS_PATH}/{request.reference}"
    if not setup.full:
        looked = question.session.get(path)
        if looked.kind is not CallVerdict.DONE:
            return _not_asked(question, looked)
        if looked.body.get("status") != "requires_capture":
            return _refused(ALREADY_CAPTURED, looked)
        marked, sent = question.post(path, mapping.build_capture_mark(request), "mark")
        if marked.kind is not CallVerdict.DONE:
            return reply_from_failure(question, marked, sent, moves_money=False)
    form = mapping.build_capture(request, full=setup.full, multicapture=setup.multicapture)
    heard, sent = question.post(f"{path}/capture", form)
    if heard.kind is not CallVerdict.DONE:
        return reply_from_failure(question, heard, sent)
    if heard.body.get("status") not in ("succeeded", "requires_capture"):
        raise OutcomeUnknownError("the processor has not captured yet", sent)
    return reply_from_capture(question, heard.body, sent)


def reply_from_capture(question: CardApiOperation, thing: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """The reply to a capture that was made. What follows it names the charge, not the intent."""
    charge = mapping.parse_charge(thing).id
    return _granted(question, charge or question.request.reference, str(thing.get("status")), sent, thing)


def refund_charge(question: CardApiOperation) -> AcquirerReply:
    """Give money back, in parts or at once, of a debit (its intent) or a capture (its charge)."""
    heard, sent = question.post(REFUNDS_PATH, mapping.build_refund(question.request))
    if heard.kind is not CallVerdict.DONE:
        return reply_from_failure(question, heard, sent)
    return reply_from_refund(question, heard.body, sent)


def reply_from_refund(question: CardApiOperation, thing: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """What a refund says. ``pending`` is accepted: should it fail later, the processor tells, and it is flagged."""
    request, status = question.request, str(thing.get("status"))
    if mapping.read_mark(thing, mapping.PAYMENT_MARK) != request.payment.hex:
        raise OutcomeUnknownError("the processor answered with another payment's refund", sent)
    if status in ("failed", "canceled"):
        return AcquirerReply(
            code=result_mapping.UNLISTED_DECLINE,
            connector_tx_id=mapping.parse_object_id(thing.get("id")),
            sent=sent,
            details={"AcquirerResponse": str(thing.get("failure_reason") or status)[:64]},
            received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=thing)),
        )
    if status not in ("succeeded", "pending"):
        raise OutcomeUnknownError("the processor has not decided on the refund yet", sent)
    if mapping.money_from_units(thing.get("amount"), request.money.currency) != request.money:
        raise OutcomeUnknownError("the processor gave back another amount than was asked for", sent)
    return _granted(question, mapping.parse_object_id(thing.get("id")), status, sent, thing)


def reverse_intent(question: CardApiOperation) -> AcquirerReply:
    """Give up what is held, or give back what was taken."""
    request = question.request
    if request.reference.startswith("ch_"):
        return refund_charge(question)
    path = f"{INTENTS_PATH}/{request.reference}"
    looked = question.session.get(path)
    if looked.kind is not CallVerdict.DONE:
        return _not_asked(question, looked)
    status, thing = looked.body.get("status"), looked.body
    if is_authorization_released(question, thing):
        return reply_from_release(question, thing, {"get": path})
    if status == "succeeded":
        # What was only held for us and was taken by somebody else is recorded first; then it can be refunded.
        return (
            refund_charge(question)
            if thing.get("capture_method") != "manual"
            else _refused(CAPTURED_BEFORE_REVERSAL, looked)
        )
    if status not in _HELD:
        return _refused(INTENT_STILL_OPEN, looked)
    held = mapping.money_from_units(thing.get("amount_capturable") or thing.get("amount"), request.money.currency)
    if held is None or request.money < held:
        return _refused(PARTIAL_REVERSAL_REFUSED, looked)
    if thing.get("amount_received"):
        # Captured in part, with the rest still held: a last capture of nothing lets it go.
        form = [("amount_to_capture", "0"), ("final_capture", "true")]
        heard, sent = question.post(f"{path}/capture", form)
    else:
        heard, sent = question.post(f"{path}/cancel", ())
    if heard.kind is not CallVerdict.DONE:
        return reply_from_failure(question, heard, sent)
    if not is_authorization_released(question, heard.body):
        raise OutcomeUnknownError("the processor has not given up what it holds yet", sent)
    return reply_from_release(question, heard.body, sent)


def reply_from_release(question: CardApiOperation, thing: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """The reply to a reversal of what was held, whether this one let it go or it was gone before."""
    return _granted(question, question.request.reference, str(thing.get("status")), sent, thing)


def is_authorization_released(question: CardApiOperation, thing: Mapping[str, Any]) -> bool:
    """Whether an intent has let go of what the reversal asks for: cancelled, or captured with that much left over."""
    if thing.get("status") == "canceled":
        return True
    if thing.get("status") != "succeeded" or thing.get("capture_method") != "manual":
        return False
    amount, taken = thing.get("amount"), thing.get("amount_received")
    if not isinstance(amount, int) or not isinstance(taken, int):
        return False
    return amount - taken >= mapping.units_from_money(question.request.money)


def _granted(
    question: CardApiOperation, ident: str, word: str, sent: Mapping[str, Any], thing: Mapping[str, Any]
) -> AcquirerReply:
    return AcquirerReply(
        code=external_success_code(),
        approved=question.request.money,
        connector_tx_id=ident,
        sent=sent,
        details={"AcquirerResponse": word[:64], "ConnectorTxID1": ident},
        received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=thing)),
    )


def _not_asked(question: CardApiOperation, looked: CardApiResponse) -> AcquirerReply:
    """A question before the request itself had no answer: nothing was asked for."""
    sent = {"get": f"{INTENTS_PATH}/{question.request.reference}"}
    return reply_from_failure(question, looked, sent, moves_money=False)


def _refused(code: str, looked: CardApiResponse) -> AcquirerReply:
    kept = summarize_response(looked)
    return AcquirerReply(
        code=code,
        sent={"get": "the intent's state"},
        received=kept,
        details={"AcquirerResponse": str(kept.get("status", ""))[:64]},
    )
