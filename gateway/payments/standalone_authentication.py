"""Standalone 3-D Secure: an authentication without a payment, rendered as an object like a payment.

Its proof may be sent with a later payment (ruling D32). Source: Part A, Endpoints; Part B, 3D Secure; decisions,
section 4.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from gateway.catalogue.parse import Parameters
from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER
from gateway.core import result_codes
from gateway.core.card_number import CardNumber
from gateway.core.money import Money, format_amount
from gateway.core.result_codes import AWAITING_SHOPPER_CODE
from gateway.core.secret import Secret
from gateway.models import Authentication, AuthenticationStep, Channel, Merchant
from gateway.payments import shopper_tokens
from gateway.payments.nested_values import deep_merge
from gateway.payments.refusal import RequestRefusedError, build_parameter_refusal, check_currency, resolve_brand
from gateway.payments.rendering import COLUMN_PARAMETERS, render_issuer
from gateway.payments.request_builder import resolve_test_mode
from gateway.payments.shopper_authentication import build_authentication_redirect
from gateway.threeds import authentications, server
from gateway.threeds.outcome import AuthenticationPending
from gateway.threeds_protocol.networks import find_threeds_network

THREEDS_NOT_CONFIGURED_CODE: Final = "000.400.104"
NO_THREEDS_NETWORK_CODE: Final = "000.400.101"


def begin_standalone_authentication(
    parameters: Parameters, *, merchant: Merchant, channel: Channel, now: datetime, request: UUID
) -> Authentication:
    """Begin a standalone authentication. Raises RequestRefusedError when the channel or the brand has no 3-D Secure, or
    a value is refused."""
    if parameters.refusals:
        raise RequestRefusedError(parameters.refusals[0].code, parameters.refusals)
    check_currency(parameters, channel)
    brand, detected = resolve_brand(parameters, channel)
    if not channel.three_d_secure:
        message = "belongs to a channel without 3-D Secure"
        raise build_parameter_refusal(THREEDS_NOT_CONFIGURED_CODE, "entityId", message)
    if find_threeds_network(brand) is None:
        raise build_parameter_refusal(NO_THREEDS_NETWORK_CODE, "paymentBrand", "has no 3-D Secure", value=brand)
    number = parameters.secrets["card.number"]
    known = CardNumber.of(number)
    answer: dict[str, Any] = {"card": {"bin": known.bin6, "last4Digits": known.last4}}
    if detected:
        answer["brandResult"] = brand
    return server.begin_authentication(
        server.AuthenticationRequest(
            payment=None,
            merchant=merchant,
            channel=channel,
            brand=brand,
            number=number,
            expiry=(parameters["card.expiryMonth"], parameters["card.expiryYear"]),
            holder=parameters.get("card.holder") or "",
            money=Money.parse(parameters["amount"], parameters["currency"]),
            parameters=parameters.values,
            test_mode=resolve_test_mode(parameters),
            now=now,
            request=request,
            return_url=parameters.get("shopperResultUrl") or "",
            build_notification_url=shopper_tokens.build_challenge_return_url,
            echo=parameters.echo(),
            answer=answer,
        )
    )[0]


def find_authentication(ident: UUID | None, merchant: Merchant, channel: Channel | None) -> Authentication | None:
    """Find a standalone authentication of this merchant (and channel), or None."""
    row = authentications.find_standalone_authentication(ident) if ident is not None else None
    if row is None or row.merchant_id != merchant.pk or (channel is not None and row.channel_id != channel.pk):
        return None
    return row


def resolve_authentication_code(row: Authentication) -> str:
    """The result code of an authentication; pending until it is done."""
    return row.code if row.step == AuthenticationStep.DONE else AWAITING_SHOPPER_CODE


def render_authentication(row: Authentication) -> dict[str, Any]:
    """The authentication without the envelope. Only this response contains the proof."""
    code = resolve_authentication_code(row)
    facts = row.answer["card"]
    threeds_facts: dict[str, Any] = authentications.build_authentication_facts(row)
    proof = authentications.build_authentication_proof(row).get(CRYPTOGRAM_PARAMETER)
    if isinstance(proof, Secret) and result_codes.is_approved(code):
        threeds_facts["verificationId"] = proof.reveal()
    body: dict[str, Any] = {
        "id": row.id.hex,
        "paymentType": "3D",
        "paymentBrand": row.brand,
        "amount": format_amount(row.amount),
        "currency": row.currency,
    }
    body |= {name: value for name, value in row.request.items() if name not in COLUMN_PARAMETERS}
    body["result"] = {"code": code, "description": result_codes.find_result_code(code).description}
    body["card"] = {**facts, **row.request.get("card", {}), **render_issuer(facts["bin"])}
    body = deep_merge(body, {"threeDSecure": threeds_facts} if threeds_facts else {})
    if "brandResult" in row.answer:
        body["brandResult"] = row.answer["brandResult"]
    outcome = authentications.outcome_from_authentication(row)
    if (
        isinstance(outcome, AuthenticationPending)
        and (redirect := build_authentication_redirect(row.id, outcome)) is not None
    ):
        body["redirect"] = redirect.as_json()
    if row.test_mode:
        body["testMode"] = row.test_mode
    return body
