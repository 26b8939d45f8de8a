"""Payments that begin something: intents, and verifications of a card without money."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.operation import SETUPS_PATH, CardApiOperation, reply_from_failure, summarize_response
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse
from gateway.connectors.port import AcquirerReply, AcquirerRequest, OutcomeUnknownError
from gateway.connectors.reply_codes import REVERSED, SOFT_DECLINE
from gateway.core.money import Money

PAYMENT_METHODS_PATH: Final = "/v1/payment_methods"


def authorize_payment(question: CardApiOperation) -> AcquirerReply:
    """Make the intent, or the verification. Raises OutcomeUnknownError and Unfit."""
    request, setup = question.request, question.setup
    method = ""
    if not setup.full:
        made, sent = question.post(PAYMENT_METHODS_PATH, mapping.build_card_object(request), "card")
        method = mapping.parse_object_id(made.body.get("id"))
        if made.kind is not CallVerdict.DONE or not method:
            # A card that lies there moves no money, whatever became of the request.
            return reply_from_failure(question, made, sent, moves_money=False)
    if mapping.is_verification(request):
        heard, sent = _verify(question, method)
    else:
        form = mapping.build_intent(request, full=setup.full, multicapture=setup.multicapture, method=method)
        heard, sent = question.post(question.collection_path, form)
    if heard.kind is not CallVerdict.DONE:
        return reply_from_failure(question, heard, sent)
    reply = reply_from_intent(request, heard.body, sent)
    if heard.body.get("status") == "requires_action":
        # Nobody will take that step: the shopper authenticates before the processor is asked.
        question.post(
            f"{question.collection_path}/{mapping.parse_object_id(heard.body.get('id'))}/cancel", (), "cancel"
        )
    return reply


def _verify(question: CardApiOperation, method: str) -> tuple[CardApiResponse, dict[str, Any]]:
    request = question.request
    if question.setup.full:
        return question.post(SETUPS_PATH, mapping.build_verification(request))
    made, sent = question.post(SETUPS_PATH, mapping.build_verification(request, confirm=False))
    ident = mapping.parse_object_id(made.body.get("id"))
    if made.kind is not CallVerdict.DONE or not ident:
        return made, sent
    return question.post(f"{SETUPS_PATH}/{ident}/confirm", [("payment_method", method)], "confirm")


def reply_from_intent(request: AcquirerRequest, thing: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """What an intent or a setup says about the request that made it.

    Raises OutcomeUnknownError for one that says nothing yet, contradicts itself, or is another payment's.
    """
    ident, status = mapping.parse_object_id(thing.get("id")), thing.get("status")
    if not ident or not mapping.is_made_by_payment(thing, request.payment):
        raise OutcomeUnknownError("the processor answered with another payment's object", sent)
    charge = mapping.parse_charge(thing)
    details = {"ConnectorTxID1": ident, "ConnectorTxID2": charge.id}
    code, granted = _meaning(request, thing, str(status), sent, ident)
    error = thing.get("last_payment_error") or thing.get("last_setup_error")
    if granted is None and isinstance(error, dict):
        details["AcquirerResponse"] = str(error.get("decline_code") or error.get("code") or "")[:64]
    elif granted is not None:
        details["AcquirerResponse"] = str(status)
    return AcquirerReply(
        code=code,
        approved=granted,
        connector_tx_id=ident,
        network_reference=charge.network_id if granted is not None else "",
        avs=charge.avs,
        cvv=charge.cvv,
        details={name: value for name, value in details.items() if value},
        sent=sent,
        received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=thing)),
    )


def _meaning(
    request: AcquirerRequest, thing: Mapping[str, Any], status: str, sent: Mapping[str, Any], ident: str
) -> tuple[str, Money | None]:
    granting = _GRANTED.get((request.operation if request.money else "RG", status))
    if granting is not None:
        granted = granting(request, thing)
        if granted is None or granted > request.money or bool(granted) != bool(request.money):
            raise OutcomeUnknownError(
                "the processor granted another amount than was asked for", sent, connector_tx_id=ident
            )
        return external_success_code(), granted
    if status == "canceled":
        return REVERSED, None
    if status == "requires_action":
        return SOFT_DECLINE, None
    error = thing.get("last_payment_error") or thing.get("last_setup_error")
    if status == "requires_payment_method" and isinstance(error, dict):
        return mapping.result_code_from_error(error, request.operation), None
    raise OutcomeUnknownError(f"the processor has no final answer yet: {status[:40]}", sent, connector_tx_id=ident)


def _of_amount(name: str) -> Callable[[AcquirerRequest, Mapping[str, Any]], Money | None]:
    def read(request: AcquirerRequest, thing: Mapping[str, Any]) -> Money | None:
        if thing.get("currency") != request.money.currency.lower():
            return None
        return mapping.money_from_units(thing.get(name, thing.get("amount")), request.money.currency)

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
