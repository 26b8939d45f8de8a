"""First payments: payment intents, and card verifications without money."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.operation import SETUPS_PATH, CardApiOperation, reply_from_failure, summarize_response
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse
from gateway.connectors.port import AcquirerReply, AcquirerRequest, OutcomeUnknownError
from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.core.money import Money
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE

PAYMENT_METHODS_PATH: Final = "/v1/payment_methods"


def authorize_payment(question: CardApiOperation) -> AcquirerReply:
    """Create the intent or verification. Raises OutcomeUnknownError and UnsupportedRequestError."""
    request, setup = question.request, question.setup
    method = ""
    if not setup.full:
        made, sent = question.post(PAYMENT_METHODS_PATH, mapping.build_card_object(request), "card")
        method = mapping.parse_object_id(made.body.get("id"))
        if made.kind is not CallVerdict.DONE or not method:
            # A card object moves no money, whatever the outcome of the request.
            return reply_from_failure(question, made, sent, moves_money=False)
    if mapping.is_verification(request):
        response, sent = _submit_verification(question, method)
    else:
        form = mapping.build_intent(
            request,
            full=setup.full,
            multicapture=setup.multicapture,
            mit_reference=setup.mit_reference,
            method=method,
        )
        response, sent = question.post(question.collection_path, form)
    if response.kind is not CallVerdict.DONE:
        return reply_from_failure(question, response, sent)
    reply = reply_from_intent(request, response.body, sent)
    if response.body.get("status") == "requires_action":
        # That step will not happen: the shopper authenticates before the processor is called.
        question.post(
            f"{question.collection_path}/{mapping.parse_object_id(response.body.get('id'))}/cancel", (), "cancel"
        )
    return reply


def _submit_verification(question: CardApiOperation, method: str) -> tuple[CardApiResponse, dict[str, Any]]:
    request = question.request
    if question.setup.full:
        return question.post(SETUPS_PATH, mapping.build_verification(request))
    made, sent = question.post(SETUPS_PATH, mapping.build_verification(request, confirm=False))
    ident = mapping.parse_object_id(made.body.get("id"))
    if made.kind is not CallVerdict.DONE or not ident:
        return made, sent
    return question.post(f"{SETUPS_PATH}/{ident}/confirm", [("payment_method", method)], "confirm")


def reply_from_intent(request: AcquirerRequest, resource: Mapping[str, Any], sent: Mapping[str, Any]) -> AcquirerReply:
    """Map an intent or setup to the reply of the request that made it.

    Raises OutcomeUnknownError if it is not conclusive, contradicts itself, or belongs to another payment.
    """
    ident, status = mapping.parse_object_id(resource.get("id")), resource.get("status")
    if not ident or not mapping.is_made_by_request(resource, request):
        raise OutcomeUnknownError("the processor answered with another payment's object", sent)
    charge = mapping.parse_charge(resource)
    details = {"ConnectorTxID1": ident, "ConnectorTxID2": charge.id}
    code, granted = _result_of_status(request, resource, str(status), sent, ident)
    error = resource.get("last_payment_error") or resource.get("last_setup_error")
    if granted is None and isinstance(error, dict):
        details["AcquirerResponse"] = str(error.get("decline_code") or error.get("code") or "")[:64]
        details["MerchantAdviceCode"] = mapping.parse_advice_code(error)
    elif granted is not None:
        details["AcquirerResponse"] = str(status)
    return AcquirerReply(
        code=code,
        approved=granted,
        connector_tx_id=ident,
        network_reference=charge.network_id if granted is not None else "",
        transaction_link=charge.transaction_link if granted is not None else "",
        avs=charge.avs,
        cvv=charge.cvv,
        details={name: value for name, value in details.items() if value},
        sent=sent,
        received=summarize_response(CardApiResponse(kind=CallVerdict.DONE, body=resource)),
        valid_for=charge.valid_for if granted is not None else None,
        has_own_advice=granted is None and isinstance(error, dict) and mapping.has_own_advice(error),
    )


def _result_of_status(
    request: AcquirerRequest, resource: Mapping[str, Any], status: str, sent: Mapping[str, Any], ident: str
) -> tuple[str, Money | None]:
    granting = _GRANTED.get((request.operation if request.money else "RG", status))
    if granting is not None:
        granted = granting(request, resource)
        if granted is None or granted > request.money or bool(granted) != bool(request.money):
            raise OutcomeUnknownError(
                "the processor granted another amount than was asked for", sent, connector_tx_id=ident
            )
        return external_success_code(), granted
    if status == "canceled":
        return TIMEOUT_REVERSED_CODE, None
    if status == "requires_action":
        return SOFT_DECLINE, None
    error = resource.get("last_payment_error") or resource.get("last_setup_error")
    if status == "requires_payment_method" and isinstance(error, dict):
        return mapping.result_code_from_error(error, request.operation), None
    raise OutcomeUnknownError(f"the processor has no final answer yet: {status[:40]}", sent, connector_tx_id=ident)


def _amount_reader(name: str) -> Callable[[AcquirerRequest, Mapping[str, Any]], Money | None]:
    def read(request: AcquirerRequest, resource: Mapping[str, Any]) -> Money | None:
        if resource.get("currency") != request.money.currency.lower():
            return None
        return mapping.money_from_units(resource.get(name, resource.get("amount")), request.money.currency)

    return read


def _no_amount(request: AcquirerRequest, _resource: Mapping[str, Any]) -> Money | None:
    return request.money if not request.money else None


def _authorized_amount(request: AcquirerRequest, resource: Mapping[str, Any]) -> Money | None:
    """An authorization that was captured meanwhile was granted all the same."""
    return _amount_reader("amount")(request, resource) if resource.get("capture_method") == "manual" else None


_GRANTED: Final[Mapping[tuple[str, str], Callable[[AcquirerRequest, Mapping[str, Any]], Money | None]]] = {
    ("PA", "requires_capture"): _amount_reader("amount_capturable"),
    ("PA", "succeeded"): _authorized_amount,
    ("DB", "succeeded"): _amount_reader("amount_received"),
    ("RB", "succeeded"): _amount_reader("amount_received"),
    ("RG", "succeeded"): _no_amount,
}
"""(payment type, status) → how much was granted; every other pair grants nothing."""
