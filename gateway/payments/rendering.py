"""Renders payments and registrations as the API's JSON objects; webhooks carry the same objects.

Source: Part B, Payment response; rulings D2, D5, D13, D17.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway import widget_hash
from gateway.core import brands, clock, result_codes
from gateway.core.money import format_amount
from gateway.core.result_codes import OUTCOME_UNKNOWN_CODE
from gateway.models import Payment, Registration
from gateway.payments import shopper_tokens
from gateway.payments.descriptors import DESCRIPTOR, resolve_descriptor
from gateway.payments.nested_values import deep_merge
from gateway.payments.states import FINAL_STATUSES
from gateway.payments.stored_answer import read_return_reason, read_token_use
from gateway.payments.stored_tokens import render_stored_token

COLUMN_PARAMETERS: Final = ("paymentType", "paymentBrand", "amount", "currency", "testMode")
"""Parameters that responses take from the row's columns, not from the echo."""


def render_payment(payment: Payment) -> dict[str, Any]:
    """The payment without the envelope: ids, result, echo of the request, card facts, redirect."""
    echo = {name: value for name, value in payment.request.items() if name not in COLUMN_PARAMETERS}
    answer = payment.answer
    approved = payment.approved_amount if payment.approved_amount is not None else payment.amount
    body: dict[str, Any] = {"id": payment.id.hex}
    if payment.referenced is not None:
        body["referencedId"] = payment.referenced.hex
    body |= {
        "paymentType": payment.payment_type,
        "paymentBrand": payment.brand,
        "amount": format_amount(approved),
        "currency": payment.currency,
    }
    echo.pop(DESCRIPTOR, None)
    body[DESCRIPTOR] = resolve_descriptor(payment)
    if echo.pop("integrity", None) == "true":
        body["integrity"] = widget_hash.widget_integrity()
    card = echo.pop("card", None)
    body |= echo
    body["result"] = render_payment_result(payment)
    if details := _render_result_details(payment):
        body["resultDetails"] = details
    _add_means_facts(body, answer, card)
    if facts := answer.get("facts"):
        body = deep_merge(body, facts)
    if "resultDetails" in body:
        body["resultDetails"] = {**_default_result_details(payment), **body["resultDetails"]}
    if detected := answer.get("brandResult"):
        body["brandResult"] = detected
    if redirect := answer.get("redirect"):
        body["redirect"] = _add_redirect_token(redirect, payment)
    if payment.registration is not None:
        body |= {"registrationId": payment.registration.hex, "registration": {"id": payment.registration.hex}}
    if payment.test_mode:
        body["testMode"] = payment.test_mode
    return body


def _add_means_facts(body: dict[str, Any], answer: Mapping[str, Any], sent_card: Mapping[str, Any] | None) -> None:
    """Add what the row knows of the means to what the request said about it: BIN, last digits, a stored account."""
    if facts := answer.get("card"):
        body["card"] = {**facts, **(sent_card or {}), **render_issuer(facts["bin"])}
    for name in ("bankAccount", "virtualAccount"):
        if stored := answer.get(name):
            body[name] = deep_merge(stored, body.get(name, {}))


def _render_result_details(payment: Payment) -> dict[str, Any]:
    """The acquirer's resultDetails and those that the row's columns give."""
    return {
        **payment.answer.get("resultDetails", {}),
        **_render_expiry(payment),
        **_render_return(payment),
        **_render_archive(payment),
        **_render_token_use(payment),
    }


def _render_expiry(payment: Payment) -> dict[str, str]:
    """The time until which an authorization may be captured, and whether it has passed."""
    if payment.expires_at is None:
        return {}
    expired = {"authorizationExpired": "true"} if payment.expired_at is not None else {}
    return {"authorizationExpiresAt": clock.format_timestamp(payment.expires_at), **expired}


def _render_token_use(payment: Payment) -> dict[str, str]:
    """Whether the network token of a stored card was sent, or why not; nothing of a payment without one."""
    use = read_token_use(payment.answer)
    return {"NetworkToken": use} if use and payment.status in FINAL_STATUSES else {}


def _render_return(payment: Payment) -> dict[str, str]:
    """The return of a refund or payout that came back, with the bank's reason; nothing of others."""
    if payment.returned_at is None:
        return {}
    reason = read_return_reason(payment.answer)
    return {"transferReturned": "true", **({"transferReturnReason": reason} if reason else {})}


def _render_archive(payment: Payment) -> dict[str, str]:
    """The time when an archived payment was archived; nothing of others. What was personal is gone."""
    return {"archivedAt": clock.format_timestamp(payment.archived_at)} if payment.archived_at is not None else {}


def _default_result_details(payment: Payment) -> dict[str, str]:
    """The members that resultDetails always has, for those the acquirer did not send (Part B: values may be empty)."""
    return {
        "AcquirerResponse": "",
        "ExtendedDescription": result_codes.find_result_code(resolve_result_code(payment)).description,
    }


_OF_PAYMENTS: Final = frozenset(
    {
        "paymentType",
        "amount",
        "currency",
        "referencedId",
        "registrationId",
        "registration",
        "createRegistration",
        "transactionProcessingCode",
    }
)


def render_registration_change(payment: Payment) -> dict[str, Any]:
    """The payment that created or changed a registration as the registration endpoints answer it: without paymentType
    and amount (ruling D5)."""
    body = {name: value for name, value in render_payment(payment).items() if name not in _OF_PAYMENTS}
    if DESCRIPTOR not in payment.request:
        del body[DESCRIPTOR]
    return body | {"id": (payment.registration or payment.id).hex}


def render_registration(registration: Registration, code: str) -> dict[str, Any]:
    """The present state of a registration. ``code``: the result code of reading it."""
    body: dict[str, Any] = {"id": registration.id.hex, "paymentBrand": registration.brand, **registration.request}
    body["result"] = {"code": code, "description": result_codes.find_result_code(code).description}
    body |= {name: value for name, value in registration.details.items() if not name.startswith("wallet")}
    if card := registration.details.get("card"):
        body["card"] = {**card, **render_issuer(card["bin"])}
    body |= render_stored_token(registration) | render_account_update(registration)
    if registration.test_mode:
        body["testMode"] = registration.test_mode
    return body


def render_account_update(registration: Registration) -> dict[str, Any]:
    """``accountUpdate`` of a registration's answers and webhooks; empty where the updater changed nothing."""
    if not registration.account_update or registration.account_updated_at is None:
        return {}
    at = clock.format_timestamp(registration.account_updated_at)
    return {"accountUpdate": {"answer": str(registration.account_update), "at": at}}


def _add_redirect_token(redirect: dict[str, Any], payment: Payment) -> dict[str, Any]:
    """The redirect, with the shopper token added if it leads to our own page: the token is derived, not stored."""
    step = shopper_tokens.build_shopper_redirect(payment.id)
    return redirect | step.as_json() if redirect["url"] == step.url else redirect


def resolve_result_code(payment: Payment) -> str:
    """The result code; 000.200.001 for a payment without one yet, which recovery will inquire about."""
    return payment.result_code or OUTCOME_UNKNOWN_CODE


def render_payment_result(payment: Payment) -> dict[str, str]:
    """``result``: code, description, and the AVS and CVV answers where the acquirer gave them."""
    code = resolve_result_code(payment)
    result = {"code": code, "description": result_codes.find_result_code(code).description}
    for name, field in (("avs", "avsResponse"), ("cvv", "cvvResponse")):
        if value := payment.answer.get(name):
            result[field] = value
    return result


def render_issuer(bin6: str) -> dict[str, Any]:
    """Facts from the BIN table by a card's first six digits: issuer, type, level, regulated; empty if unknown."""
    issuer = brands.find_issuer(bin6)
    if issuer is None:
        return {}
    facts: dict[str, Any] = {
        "issuer": {
            name: value
            for name, value in (("bank", issuer.bank), ("phone", issuer.phone), ("website", issuer.website))
            if value
        },
        "type": issuer.type,
        "level": issuer.level,
        "regulatedFlag": {None: "", True: "true", False: "false"}[issuer.regulated],
    }
    return {name: value for name, value in facts.items() if value}
