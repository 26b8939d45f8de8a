"""An authentication without a payment: begun by the API, told as an object that looks like a payment's.

Its proof may be sent with a payment later (D32). Source: Part A, Endpoints; Part B, 3D Secure; decisions, section 4.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway import results
from gateway.card_number import CardNumber
from gateway.catalogue.parse import ParameterError, Parameters
from gateway.connectors.message import CRYPTOGRAM
from gateway.models import Authentication, Channel, Merchant, Step
from gateway.money import Money, amount_text
from gateway.payments.answer import issuer_facts
from gateway.payments.phases import step_of
from gateway.payments.refusal import Refused, brand_of, refuse_currency
from gateway.payments.values import merged
from gateway.secret import Secret
from gateway.threeds import authentications, server
from gateway.threeds.networks import network_of
from gateway.threeds.outcome import Waiting

WAITING: Final = "000.200.000"
NOT_CONFIGURED: Final = "000.400.104"
NO_NETWORK: Final = "000.400.101"
_FROM_COLUMNS: Final = ("paymentType", "paymentBrand", "amount", "currency", "testMode")


def authenticate_alone(
    parameters: Parameters, *, merchant: Merchant, channel: Channel, now: datetime, request: UUID
) -> Authentication:
    """Begin an authentication. Raises Refused where the channel or the brand has none, or a value is refused."""
    if parameters.refusals:
        raise Refused(parameters.refusals[0].code, parameters.refusals)
    refuse_currency(parameters, channel)
    brand, detected = brand_of(parameters, channel)
    if not channel.three_d_secure:
        message = "belongs to a channel without 3-D Secure"
        raise Refused(NOT_CONFIGURED, [ParameterError(name="entityId", message=message, code=NOT_CONFIGURED)])
    if network_of(brand) is None:
        error = ParameterError(name="paymentBrand", value=brand, message="has no 3-D Secure", code=NO_NETWORK)
        raise Refused(NO_NETWORK, [error])
    number = parameters.secrets["card.number"]
    known = CardNumber.of(number)
    answer: dict[str, Any] = {"card": {"bin": known.bin6, "last4Digits": known.last4}}
    if detected:
        answer["brandResult"] = brand
    return server.begin(
        server.Begin(
            payment=None,
            merchant=merchant,
            channel=channel,
            brand=brand,
            number=number,
            expiry=(parameters["card.expiryMonth"], parameters["card.expiryYear"]),
            holder=parameters.get("card.holder") or "",
            money=Money.parse(parameters["amount"], parameters["currency"]),
            parameters=parameters.values,
            test_mode="" if settings.IS_LIVE else parameters.get("testMode") or "INTERNAL",
            now=now,
            request=request,
            return_url=parameters.get("shopperResultUrl") or "",
            echo=parameters.echo(),
            answer=answer,
        )
    )[0]


def find(ident: UUID | None, merchant: Merchant, channel: Channel | None) -> Authentication | None:
    """An authentication of this merchant (and channel); None for everybody else's."""
    row = authentications.alone(ident) if ident is not None else None
    if row is None or row.merchant_id != merchant.pk or (channel is not None and row.channel_id != channel.pk):
        return None
    return row


def code_of(row: Authentication) -> str:
    return row.code if row.step == Step.DONE else WAITING


def authentication_object(row: Authentication) -> dict[str, Any]:
    """The authentication without the envelope. The proof is told here, and only here."""
    code = code_of(row)
    facts = row.answer["card"]
    told: dict[str, Any] = authentications.facts_of(row)
    proof = authentications.proof_of(row).get(CRYPTOGRAM)
    if isinstance(proof, Secret) and results.is_approved(code):
        told["verificationId"] = proof.reveal()
    body: dict[str, Any] = {
        "id": row.id.hex,
        "paymentType": "3D",
        "paymentBrand": row.brand,
        "amount": amount_text(row.amount),
        "currency": row.currency,
    }
    body |= {name: value for name, value in row.request.items() if name not in _FROM_COLUMNS}
    body["result"] = {"code": code, "description": results.result(code).description}
    body["card"] = {**facts, **row.request.get("card", {}), **issuer_facts(facts["bin"])}
    body = merged(body, {"threeDSecure": told} if told else {})
    if "brandResult" in row.answer:
        body["brandResult"] = row.answer["brandResult"]
    outcome = authentications.outcome_of(row)
    if isinstance(outcome, Waiting) and (redirect := step_of(row.id, outcome)) is not None:
        body["redirect"] = redirect.as_json()
    if row.test_mode:
        body["testMode"] = row.test_mode
    return body
