"""The registration endpoints: stored means of payment, and one-click payments with them.

Source: Part A, Endpoints (registration); Part B, Tokenization and registration; rulings D5, D29.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import RequestContext
from gateway.api.payments import (
    IdempotentPostView,
    PaymentResponder,
    process_within_token_limits,
    resolve_request_channel,
    respond_to_first_payment,
)
from gateway.catalogue.conditions.request_facts import STORED_CARD_FACT
from gateway.catalogue.endpoints import (
    CREATE_REGISTRATION_ENDPOINT,
    DELETE_REGISTRATION_ENDPOINT,
    EXTEND_REGISTRATION_ENDPOINT,
    ONE_CLICK_ENDPOINT,
    READ_REGISTRATION_ENDPOINT,
    UPDATE_REGISTRATION_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.parse import Parameters
from gateway.core import clock, identifiers
from gateway.models import Payment, Registration
from gateway.payments import account_updates, registrations
from gateway.payments.agreements import MERCHANT_INITIATED_USES, classify_agreement_use
from gateway.payments.idempotency import IdempotencyClaim
from gateway.payments.record_only_payments import resolve_success_code
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.registrations import ChangeRequest
from gateway.payments.rendering import render_registration, render_registration_change
from gateway.payments.request_builder import build_condition_facts, build_payment_request
from gateway.payments.responses import build_envelope_fields, render_ignored_parameters


def _find_registration(context: RequestContext, target: str) -> Registration:
    admission = context.admission
    return registrations.find_registration(identifiers.parse_id(target), admission.merchant, admission.channel)


class RegistrationsView(IdempotentPostView):
    """POST /v1/registrations."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": CREATE_REGISTRATION_ENDPOINT}
    renderer: ClassVar[staticmethod[[Payment], dict[str, Any]]] = staticmethod(render_registration_change)

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        channel, now = resolve_request_channel(context), clock.merchant_now(context.admission.merchant)
        parameters = self.parse(context, channel, build_condition_facts(channel, now))
        return respond_to_first_payment(context, channel, parameters, now, claim, self.renderer)


class RegistrationChangeView(IdempotentPostView):
    """Base of the views that change a registration."""

    renderer: ClassVar[staticmethod[[Payment], dict[str, Any]]] = staticmethod(render_registration_change)

    def change(
        self, context: RequestContext, parameters: Parameters, claim: IdempotencyClaim | None
    ) -> tuple[ChangeRequest, PaymentResponder]:
        merchant = context.admission.merchant
        responder = PaymentResponder(context, parameters, claim, self.renderer)
        change = ChangeRequest(
            merchant=merchant,
            now=clock.merchant_now(merchant),
            trace=context.trace,
            parameters=parameters,
            idempotency=responder.idempotency,
        )
        return change, responder


def build_registration_response(row: Registration, context: RequestContext, parameters: Parameters) -> Response:
    """The present state of a registration."""
    body = render_registration(row, resolve_success_code(row.test_mode))
    more = build_envelope_fields(context.trace.ndc) | render_ignored_parameters(parameters)
    return Response(body | more, headers=context.headers)


class RegistrationView(RegistrationChangeView):
    """GET, POST and DELETE /v1/registrations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {
        "GET": READ_REGISTRATION_ENDPOINT, "POST": UPDATE_REGISTRATION_ENDPOINT, "DELETE": DELETE_REGISTRATION_ENDPOINT,
    }  # fmt: skip

    def get(self, request: Request, target: str) -> Response:
        context = self.admit_request(request, target)
        parameters = self.parse(context, context.admission.channel)
        found = _find_registration(context, target)
        registrations.check_registration_retention(found, clock.merchant_now(found.merchant))
        return build_registration_response(found, context, parameters)

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        facts = build_condition_facts(context.admission.channel, clock.merchant_now(context.admission.merchant))
        parameters = self.parse(context, context.admission.channel, facts)
        change, responder = self.change(context, parameters, claim)
        return responder.build_response(registrations.update_registration(_find_registration(context, target), change))

    def delete(self, request: Request, target: str) -> HttpResponse:
        context = self.admit_request(request, target)
        change, responder = self.change(context, self.parse(context, context.admission.channel), None)
        return responder.build_response(registrations.delete_registration(_find_registration(context, target), change))


class ExtendRegistrationView(RegistrationChangeView):
    """POST /v1/registrations/{id}/extend."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": EXTEND_REGISTRATION_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        change, responder = self.change(context, self.parse(context, context.admission.channel), claim)
        return responder.build_response(
            registrations.extend_registration(_find_extendable_registration(context, target), change)
        )


def _find_extendable_registration(context: RequestContext, target: str) -> Registration:
    try:
        return _find_registration(context, target)
    except RequestRefusedError as refused:
        if refused.code == registrations.REGISTRATION_DELETED_CODE:
            raise RequestRefusedError(registrations.NOT_REGISTERED_CODE) from None
        raise


class OneClickView(IdempotentPostView):
    """POST /v1/registrations/{id}/payments."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": ONE_CLICK_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        merchant = context.admission.merchant
        now = clock.merchant_now(merchant)
        try:
            found, missing = _find_registration(context, target), None
        except RequestRefusedError as refused:
            found, missing = None, refused
        # Errors in the parameters are reported before an unknown id.
        channel = found.channel if found is not None else context.admission.channel
        facts = build_condition_facts(channel, now) | {"registration"}
        if found is not None and found.means == "card":
            facts |= {STORED_CARD_FACT, f"registration: {found.brand}"}
        parameters = self.parse(context, channel, facts)
        if found is None:
            assert missing is not None
            raise missing
        responder = PaymentResponder(context, parameters, claim)
        if classify_agreement_use(parameters) in MERCHANT_INITIATED_USES:
            found = account_updates.refresh_stored_card(found)
        payment_request = build_payment_request(
            parameters,
            merchant=merchant,
            channel=found.channel,
            now=now,
            trace=context.trace,
            idempotency=responder.idempotency,
            stored=registrations.load_stored_means(found, parameters, now),
        )
        return responder.build_response(process_within_token_limits(payment_request, context))
