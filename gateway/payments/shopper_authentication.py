"""The authenticate phase of a payment: 3-D Secure, by our own server.

Source: Part B, 3D Secure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.conf import settings

from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply, Precondition, Redirect
from gateway.core import clock
from gateway.core.result_codes import AWAITING_SHOPPER_CODE
from gateway.core.secret import Secret
from gateway.models import Merchant, Payment, Suspension
from gateway.payments import exempting, shopper_tokens
from gateway.payments.outcomes import AuthenticationProof, Declined, Suspended
from gateway.payments.payment_means import pack_one_time_secrets
from gateway.payments.payment_request import PaymentRequest
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.payments.stored_answer import merge_shown_facts, read_private_facts
from gateway.threeds import authentications, server
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationPending, AuthenticationRejected
from gateway.vault.sealing import current_vault


def authenticate_payment(payment: Payment, request: PaymentRequest) -> AuthenticationProof | Declined | Suspended:
    """Authenticate the cardholder, if the channel and the card want it: the proof for the acquirer, or the exemption
    that the channel's rules ask for; a decline; or a suspension until the shopper has authenticated."""
    card, values = request.means, request.parameters.values
    if (
        not request.channel.three_d_secure
        or not isinstance(card, Card)
        or not is_shopper_authenticated_here(payment, card, values, request.parameters.secrets)
    ):
        return AuthenticationProof(parameters={})
    exemption = exempting.ask_exemption(payment, card, values)
    if exemption.skips:
        return AuthenticationProof(parameters=exemption.parameters)
    asked = build_authentication_request(
        payment,
        card,
        {**values, **exemption.parameters},
        merchant=request.merchant,
        request=request.trace.request,
        now=request.now,
        agreed=agreement.id if (use := request.agreement_use) is not None and (agreement := use.agreement) else None,
    )
    outcome = server.begin_authentication(asked)[1]
    at = clock.merchant_now(request.merchant)
    match outcome:
        case AuthenticationPassed(proof=proof, facts=facts):
            payment.answer = merge_shown_facts(payment.answer, facts)
            return AuthenticationProof(parameters={**exempting.list_asked_parameters(payment), **proof})
        case AuthenticationRejected(code=code, facts=facts):
            return Declined(reply=AcquirerReply(code=code, facts=facts), at=at)
        case AuthenticationPending():
            return suspend_for_shopper(payment, outcome, card, request.parameters.secrets, at=at)


def restore_authentication_facts(payment: Payment) -> None:
    """Merge what the authentication of the payment's present attempt showed into ``payment.answer``, in memory: a
    worker that died at the acquirer had not written it."""
    if payment.means != Card.kind or payment.referenced is not None:
        return
    row = authentications.find_ended_authentication(payment.id, read_private_facts(payment.answer).attempt)
    if row is not None:
        shown = {"threeDSecure": authentications.build_authentication_facts(row)}
        payment.answer = merge_shown_facts(payment.answer, shown)


def is_shopper_authenticated_here(
    payment: Payment, card: Card, values: Mapping[str, str], sent: Mapping[str, str | Secret]
) -> bool:
    """Whether a channel with 3-D Secure authenticates the shopper of this payment. ``values``: its plain parameters by
    full name; ``sent``: those with its secrets, a proof of the merchant's own 3DS server among them."""
    return card.number_type != "DPAN" and server.is_authentication_wanted(
        values,
        proved=CRYPTOGRAM_PARAMETER in sent,
        brand=_resolve_network_brand(payment, card),
        operation=payment.payment_type,
    )


def build_authentication_request(
    payment: Payment,
    card: Card,
    values: Mapping[str, str],
    *,
    merchant: Merchant,
    request: UUID,
    now: datetime,
    attempt: int = 1,
    agreed: UUID | None = None,
) -> server.AuthenticationRequest:
    """What the 3DS server is asked for a payment. ``request``: the id of the shopper's or merchant's request;
    ``attempt``: which authorization of the payment it is for; ``agreed``: the payment that began its agreement."""
    return server.AuthenticationRequest(
        payment=payment.id,
        attempt=attempt,
        agreed=agreed,
        merchant=merchant,
        channel=payment.channel,
        brand=_resolve_network_brand(payment, card),
        number=card.number,
        expiry=(card.expiry_month, card.expiry_year),
        holder=card.holder,
        money=payment.money,
        parameters=_mark_storing(payment, values),
        test_mode=payment.test_mode,
        now=now,
        request=request,
        account=payment.acquirer_merchant_id,
        build_notification_url=shopper_tokens.build_challenge_return_url,
    )


def suspend_for_shopper(
    payment: Payment, waiting: AuthenticationPending, card: Card, sent: Mapping[str, str | Secret], *, at: datetime
) -> Suspended:
    """The suspension of a payment until its shopper has authenticated. ``sent``: parameters with secrets among them."""
    secrets = pack_one_time_secrets(card, sent)
    redirect = build_authentication_redirect(payment.id, waiting)
    return Suspended(
        reply=AcquirerReply(code=AWAITING_SHOPPER_CODE, facts=waiting.facts, redirect=redirect),
        at=at,
        deadline=waiting.deadline,
        stage=Suspension.Stage.AUTHENTICATE,
        secrets_sealed=current_vault().seal(secrets, payment.id) if secrets is not None else None,
    )


def _resolve_network_brand(payment: Payment, card: Card) -> str:
    """The brand whose network authenticates the card: a wallet's brand does not name it, the card itself does."""
    return payment.brand if not card.wallet else card.facts.brand or payment.brand


def _mark_storing(payment: Payment, values: Mapping[str, str]) -> Mapping[str, str]:
    """The parameters of an authentication. Storing a card without a payment is a non-payment authentication to add a
    card, unless the request says otherwise. Source: EMV 3-D Secure v2.2.0, table A.1; docs/decisions/0066."""
    verifies = payment.amount == 0 and values.get("createRegistration") == "true"
    if payment.payment_type != REGISTRATION_PAYMENT_TYPE and not verifies:
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
