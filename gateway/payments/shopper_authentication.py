"""The authenticate phase of a payment: 3-D Secure, and PaymentStop, by which a phase ends the line early.

Screening (gateway.payments.risk_screening) and authentication may stop a payment: with a code that declines it, or with
a deadline until which it waits for its shopper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER
from gateway.connectors.means import Card
from gateway.connectors.port import Precondition, Redirect
from gateway.core.secret import Secret
from gateway.models import Payment
from gateway.payments import shopper_tokens
from gateway.payments.nested_values import deep_merge
from gateway.payments.payment_request import PaymentRequest
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.threeds import authentications, server
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationPending, AuthenticationRejected

AWAITING_SHOPPER_CODE: Final = "000.200.000"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentStop:
    """Why a payment does not go to its acquirer now. Without a ``deadline`` it is declined with ``code``; with one (the
    merchant's clock) it is suspended and the shopper is sent to ``redirect``. ``facts`` are merged into the answer."""

    code: str = ""
    deadline: datetime | None = None
    redirect: Redirect | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


def authenticate_payment(payment: Payment, request: PaymentRequest) -> PaymentStop | Mapping[str, str | Secret]:
    """Authenticate the cardholder. Returns the proof as ``threeDSecure.*`` parameters by full name, empty if none is
    needed, or the PaymentStop of a rejected or pending authentication."""
    card, channel = request.means, request.channel
    if not channel.three_d_secure or not isinstance(card, Card) or card.number_type == "DPAN":
        return {}
    values = request.parameters.values
    # A wallet's brand does not name the card network; the card itself does.
    brand = request.brand if not card.wallet else card.facts.brand or request.brand
    proved = CRYPTOGRAM_PARAMETER in request.parameters
    if not server.is_authentication_wanted(values, proved=proved, brand=brand, operation=request.payment_type):
        return {}
    outcome = server.begin_authentication(
        server.AuthenticationRequest(
            payment=payment.id,
            merchant=request.merchant,
            channel=channel,
            brand=brand,
            number=card.number,
            expiry=(card.expiry_month, card.expiry_year),
            holder=card.holder,
            money=request.money,
            parameters=_mark_storing(request, values),
            test_mode=request.test_mode,
            now=request.now,
            request=request.trace.request,
            account=payment.acquirer_merchant_id,
            build_notification_url=shopper_tokens.build_challenge_return_url,
        )
    )[1]
    match outcome:
        case AuthenticationPassed(proof=proof, facts=facts):
            payment.answer["facts"] = deep_merge(payment.answer.get("facts", {}), facts)
            return proof
        case AuthenticationRejected(code=code, facts=facts):
            return PaymentStop(code=code, facts=facts)
        case AuthenticationPending(deadline=deadline, facts=facts):
            return PaymentStop(
                deadline=deadline, redirect=build_authentication_redirect(payment.id, outcome), facts=facts
            )


def _mark_storing(request: PaymentRequest, values: Mapping[str, str]) -> Mapping[str, str]:
    """The parameters of an authentication. Storing a card without a payment is a non-payment authentication to add a
    card, unless the request says otherwise. Source: EMV 3-D Secure v2.2.0, table A.1; docs/decisions/0066."""
    verifies = request.money.amount == 0 and values.get("createRegistration") == "true"
    if request.payment_type != REGISTRATION_PAYMENT_TYPE and not verifies:
        return values
    return {"threeDSecure.npa": "true", "threeDSecure.authenticationInd": "ADD_CARD", **values}


def build_authentication_redirect(ident: UUID, waiting: AuthenticationPending) -> Redirect | None:
    """The redirect of a pending authentication, with its 3DS method as precondition; None without a shopper (3RI)."""
    if not waiting.shopper:
        return None
    step = shopper_tokens.build_shopper_redirect(ident)
    if waiting.step != "method":
        return step
    ours = f"{settings.GATEWAY_BASE_URL}/shopper/method"
    notify = ours if waiting.method_url else ""
    data = (("threeDSMethodData", authentications.build_method_data(waiting.authentication, notify)),)
    page = Precondition(origin="iframe#hidden", url=waiting.method_url or ours, method="POST", parameters=data)
    return replace(step, preconditions=(page,))
