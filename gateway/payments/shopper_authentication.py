"""The authenticate phase of a payment: 3-D Secure, by our own server.

Source: Part B, 3D Secure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from django.conf import settings

from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply, Precondition, Redirect
from gateway.core import clock
from gateway.core.result_codes import AWAITING_SHOPPER_CODE
from gateway.models import Payment, Suspension
from gateway.payments import shopper_tokens
from gateway.payments.outcomes import AuthenticationProof, Declined, Suspended
from gateway.payments.payment_means import pack_one_time_secrets
from gateway.payments.payment_request import PaymentRequest
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.payments.stored_answer import merge_shown_facts
from gateway.threeds import authentications, server
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationPending, AuthenticationRejected
from gateway.vault.sealing import current_vault


def authenticate_payment(payment: Payment, request: PaymentRequest) -> AuthenticationProof | Declined | Suspended:
    """Authenticate the cardholder, if the channel and the card want it: the proof for the acquirer; a decline; or a
    suspension until the shopper has authenticated."""
    card, channel = request.means, request.channel
    if not channel.three_d_secure or not isinstance(card, Card) or card.number_type == "DPAN":
        return AuthenticationProof(parameters={})
    values = request.parameters.values
    # A wallet's brand does not name the card network; the card itself does.
    brand = request.brand if not card.wallet else card.facts.brand or request.brand
    proved = CRYPTOGRAM_PARAMETER in request.parameters
    if not server.is_authentication_wanted(values, proved=proved, brand=brand, operation=request.payment_type):
        return AuthenticationProof(parameters={})
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
    at = clock.merchant_now(request.merchant)
    match outcome:
        case AuthenticationPassed(proof=proof, facts=facts):
            payment.answer = merge_shown_facts(payment.answer, facts)
            return AuthenticationProof(parameters=proof)
        case AuthenticationRejected(code=code, facts=facts):
            return Declined(reply=AcquirerReply(code=code, facts=facts), at=at)
        case AuthenticationPending(deadline=deadline, facts=facts):
            redirect = build_authentication_redirect(payment.id, outcome)
            secrets = pack_one_time_secrets(request.means, request.parameters)
            return Suspended(
                reply=AcquirerReply(code=AWAITING_SHOPPER_CODE, facts=facts, redirect=redirect),
                at=at,
                deadline=deadline,
                stage=Suspension.Stage.AUTHENTICATE,
                secrets_sealed=current_vault().seal(secrets, payment.id) if secrets is not None else None,
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
