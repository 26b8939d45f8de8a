"""Follow-ups: captures, refunds, reversals. What the processor cannot do is refused with a code before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.connectors.message import success_code
from gateway.connectors.port import AcquirerReply, Silence
from gateway.connectors.stripe import mapping, table
from gateway.connectors.stripe.question import INTENTS, REFUNDS, Question, received, turned_away
from gateway.connectors.stripe.wire import Heard, Kind

CAPTURED: Final = "700.400.100"
"""It was captured before, or is no longer held."""
PARTLY: Final = "700.400.300"
TAKEN: Final = "700.400.300"
"""Only all of an authorization can be given up."""
STILL_OPEN: Final = "700.400.570"
_HELD: Final = frozenset({"requires_capture", "requires_confirmation", "requires_action", "requires_payment_method"})


def capture(question: Question) -> AcquirerReply:
    """Capture, all or a part. Without multicapture the processor lets the rest go, and the next one is refused."""
    request, setup = question.request, question.setup
    path = f"{INTENTS}/{request.reference}"
    if not setup.full:
        looked = question.talk.get(path)
        if looked.kind is not Kind.DONE:
            return _not_asked(question, looked)
        if looked.body.get("status") != "requires_capture":
            return _refused(CAPTURED, looked)
        marked, sent = question.post(path, mapping.captured_by(request), "mark")
        if marked.kind is not Kind.DONE:
            return turned_away(question, marked, sent, moves=False)
    form = mapping.capture(request, full=setup.full, multicapture=setup.multicapture)
    heard, sent = question.post(f"{path}/capture", form)
    if heard.kind is not Kind.DONE:
        return turned_away(question, heard, sent)
    if heard.body.get("status") not in ("succeeded", "requires_capture"):
        raise Silence("the processor has not captured yet", sent)
    return captured(question, heard.body, sent)


def captured(question: Question, thing: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """The reply to a capture that was made. What follows it names the charge, not the intent."""
    charge = mapping.charge_of(thing).id
    return _granted(question, charge or question.request.reference, str(thing.get("status")), sent, thing)


def refund(question: Question) -> AcquirerReply:
    """Give money back, in parts or at once, of a debit (its intent) or a capture (its charge)."""
    heard, sent = question.post(REFUNDS, mapping.refund(question.request))
    if heard.kind is not Kind.DONE:
        return turned_away(question, heard, sent)
    return refunded(question, heard.body, sent)


def refunded(question: Question, thing: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """What a refund says. ``pending`` is accepted: should it fail later, the processor tells, and it is flagged."""
    request, status = question.request, str(thing.get("status"))
    if mapping.mark_of(thing, mapping.OURS) != request.payment.hex:
        raise Silence("the processor answered with another payment's refund", sent)
    if status in ("failed", "canceled"):
        return AcquirerReply(
            code=table.DECLINED, connector_tx_id=mapping.text_of(thing.get("id")), sent=sent,
            details={"AcquirerResponse": str(thing.get("failure_reason") or status)[:64]},
            received=received(Heard(kind=Kind.DONE, body=thing)),
        )  # fmt: skip
    if status not in ("succeeded", "pending"):
        raise Silence("the processor has not decided on the refund yet", sent)
    if mapping.money_of(thing.get("amount"), request.money.currency) != request.money:
        raise Silence("the processor gave back another amount than was asked for", sent)
    return _granted(question, mapping.text_of(thing.get("id")), status, sent, thing)


def reverse(question: Question) -> AcquirerReply:
    """Give up what is held, or give back what was taken."""
    request = question.request
    if request.reference.startswith("ch_"):
        return refund(question)
    path = f"{INTENTS}/{request.reference}"
    looked = question.talk.get(path)
    if looked.kind is not Kind.DONE:
        return _not_asked(question, looked)
    status, thing = looked.body.get("status"), looked.body
    if is_released(question, thing):
        return released(question, thing, {"get": path})
    if status == "succeeded":
        # What was only held for us and was taken by somebody else is recorded first; then it can be refunded.
        return refund(question) if thing.get("capture_method") != "manual" else _refused(TAKEN, looked)
    if status not in _HELD:
        return _refused(STILL_OPEN, looked)
    held = mapping.money_of(thing.get("amount_capturable") or thing.get("amount"), request.money.currency)
    if held is None or request.money < held:
        return _refused(PARTLY, looked)
    if thing.get("amount_received"):
        # Captured in part, with the rest still held: a last capture of nothing lets it go.
        form = [("amount_to_capture", "0"), ("final_capture", "true")]
        heard, sent = question.post(f"{path}/capture", form)
    else:
        heard, sent = question.post(f"{path}/cancel", ())
    if heard.kind is not Kind.DONE:
        return turned_away(question, heard, sent)
    if not is_released(question, heard.body):
        raise Silence("the processor has not given up what it holds yet", sent)
    return released(question, heard.body, sent)


def released(question: Question, thing: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """The reply to a reversal of what was held, whether this one let it go or it was gone before."""
    return _granted(question, question.request.reference, str(thing.get("status")), sent, thing)


def is_released(question: Question, thing: Mapping[str, Any]) -> bool:
    """Whether an intent has let go of what the reversal asks for: cancelled, or captured with that much left over."""
    if thing.get("status") == "canceled":
        return True
    if thing.get("status") != "succeeded" or thing.get("capture_method") != "manual":
        return False
    amount, taken = thing.get("amount"), thing.get("amount_received")
    if not isinstance(amount, int) or not isinstance(taken, int):
        return False
    return amount - taken >= mapping.units_of(question.request.money)


def _granted(
    question: Question, ident: str, word: str, sent: Mapping[str, Any], thing: Mapping[str, Any]
) -> AcquirerReply:
    return AcquirerReply(
        code=success_code(), approved=question.request.money, connector_tx_id=ident, sent=sent,
        details={"AcquirerResponse": word[:64], "ConnectorTxID1": ident},
        received=received(Heard(kind=Kind.DONE, body=thing)),
    )  # fmt: skip


def _not_asked(question: Question, looked: Heard) -> AcquirerReply:
    """A question before the request itself had no answer: nothing was asked for."""
    sent = {"get": f"{INTENTS}/{question.request.reference}"}
    return turned_away(question, looked, sent, moves=False)


def _refused(code: str, looked: Heard) -> AcquirerReply:
    kept = received(looked)
    return AcquirerReply(code=code, sent={"get": "the intent's state"}, received=kept,
                         details={"AcquirerResponse": str(kept.get("status", ""))[:64]})  # fmt: skip
