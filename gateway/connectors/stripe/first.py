"""Payments that begin something: intents, and verifications of a card without money."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.connectors.message import success_code
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Silence
from gateway.connectors.stripe import mapping, table
from gateway.connectors.stripe.question import SETUPS, Question, received, turned_away
from gateway.connectors.stripe.wire import Heard, Kind
from gateway.connectors.stub.connector import REVERSED
from gateway.money import Money

CARDS: Final = "/v1/payment_methods"


def pay(question: Question) -> AcquirerReply:
    """Make the intent, or the verification. Raises Silence and Unfit."""
    request, setup = question.request, question.setup
    method = ""
    if not setup.full:
        made, sent = question.post(CARDS, mapping.card_object(request), "card")
        method = mapping.text_of(made.body.get("id"))
        if made.kind is not Kind.DONE or not method:
            # A card that lies there moves no money, whatever became of the request.
            return turned_away(question, made, sent, moves=False)
    if mapping.is_verification(request):
        heard, sent = _verify(question, method)
    else:
        form = mapping.intent(request, full=setup.full, multicapture=setup.multicapture, method=method)
        heard, sent = question.post(question.home, form)
    if heard.kind is not Kind.DONE:
        return turned_away(question, heard, sent)
    reply = reply_of(request, heard.body, sent)
    if heard.body.get("status") == "requires_action":
        # Nobody will take that step: the shopper authenticates before the processor is asked.
        question.post(f"{question.home}/{mapping.text_of(heard.body.get('id'))}/cancel", (), "cancel")
    return reply


def _verify(question: Question, method: str) -> tuple[Heard, dict[str, Any]]:
    request = question.request
    if question.setup.full:
        return question.post(SETUPS, mapping.verification(request))
    made, sent = question.post(SETUPS, mapping.verification(request, confirm=False))
    ident = mapping.text_of(made.body.get("id"))
    if made.kind is not Kind.DONE or not ident:
        return made, sent
    return question.post(f"{SETUPS}/{ident}/confirm", [("payment_method", method)], "confirm")


def reply_of(request: AcquirerRequest, thing: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """What an intent or a setup says about the request that made it.

    Raises Silence for one that says nothing yet, contradicts itself, or is another payment's.
    """
    ident, status = mapping.text_of(thing.get("id")), thing.get("status")
    if not ident or not mapping.is_made_by(thing, request.payment):
        raise Silence("the processor answered with another payment's object", sent)
    charge = mapping.charge_of(thing)
    details = {"ConnectorTxID1": ident, "ConnectorTxID2": charge.id}
    code, granted = _meaning(request, thing, str(status), sent, ident)
    error = thing.get("last_payment_error") or thing.get("last_setup_error")
    if granted is None and isinstance(error, dict):
        details["AcquirerResponse"] = str(error.get("decline_code") or error.get("code") or "")[:64]
    elif granted is not None:
        details["AcquirerResponse"] = str(status)
    return AcquirerReply(
        code=code, approved=granted, connector_tx_id=ident,
        network_reference=charge.network_id if granted is not None else "", avs=charge.avs, cvv=charge.cvv,
        details={name: value for name, value in details.items() if value}, sent=sent,
        received=received(Heard(kind=Kind.DONE, body=thing)),
    )  # fmt: skip


def _meaning(
    request: AcquirerRequest, thing: Mapping[str, Any], status: str, sent: Mapping[str, Any], ident: str
) -> tuple[str, Money | None]:
    granting = _GRANTED.get((request.operation if request.money else "RG", status))
    if granting is not None:
        granted = granting(request, thing)
        if granted is None or granted > request.money or bool(granted) != bool(request.money):
            raise Silence("the processor granted another amount than was asked for", sent, connector_tx_id=ident)
        return success_code(), granted
    if status == "canceled":
        return REVERSED, None
    if status == "requires_action":
        return table.AUTHENTICATE, None
    error = thing.get("last_payment_error") or thing.get("last_setup_error")
    if status == "requires_payment_method" and isinstance(error, dict):
        return mapping.refusal_code(error, request.operation), None
    raise Silence(f"the processor has no final answer yet: {status[:40]}", sent, connector_tx_id=ident)


def _of_amount(name: str) -> Callable[[AcquirerRequest, Mapping[str, Any]], Money | None]:
    def read(request: AcquirerRequest, thing: Mapping[str, Any]) -> Money | None:
        if thing.get("currency") != request.money.currency.lower():
            return None
        return mapping.money_of(thing.get(name, thing.get("amount")), request.money.currency)

    return read


def _nothing(request: AcquirerRequest, thing: Mapping[str, Any]) -> Money | None:
    return request.money if not request.money else None


def _held_and_taken(request: AcquirerRequest, thing: Mapping[str, Any]) -> Money | None:
    """An authorization that somebody captured meanwhile was granted all the same."""
    return _of_amount("amount")(request, thing) if thing.get("capture_method") == "manual" else None


_GRANTED: Final[Mapping[tuple[str, str], Callable[[AcquirerRequest, Mapping[str, Any]], Money | None]]] = {
    ("PA", "requires_capture"): _of_amount("amount_capturable"),
    ("PA", "succeeded"): _held_and_taken,
    ("DB", "succeeded"): _of_amount("amount_received"),
    ("RB", "succeeded"): _of_amount("amount_received"),
    ("RG", "succeeded"): _nothing,
}
"""(payment type, status) → how much was granted; every other pair grants nothing."""
