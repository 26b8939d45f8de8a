"""The schedule endpoints: create, read, change and end subscription jobs. Source: Part B, Scheduling; ruling D8."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import RequestContext
from gateway.api.payments import (
    IdempotentPostView,
    PaymentResponder,
)
from gateway.catalogue.endpoints import (
    CANCEL_SCHEDULE_ENDPOINT,
    CREATE_SCHEDULE_ENDPOINT,
    DELETE_SCHEDULE_ENDPOINT,
    READ_SCHEDULE_ENDPOINT,
    RESCHEDULE_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.parse import Parameters
from gateway.core import clock, identifiers
from gateway.models import Payment
from gateway.payments import token_limits
from gateway.payments.idempotency import IdempotencyClaim
from gateway.payments.registrations import ChangeRequest
from gateway.payments.request_builder import build_condition_facts
from gateway.payments.responses import build_envelope_fields, render_ignored_parameters
from gateway.scheduling import schedules


class ScheduleChangeView(IdempotentPostView):
    """Base of the views that change a job."""

    renderer: ClassVar[staticmethod[[Payment], dict[str, Any]]] = staticmethod(schedules.render_schedule)

    def change(self, context: RequestContext, claim: IdempotencyClaim | None) -> tuple[ChangeRequest, PaymentResponder]:
        merchant = context.admission.merchant
        now = clock.merchant_now(merchant)
        parameters: Parameters = self.parse(
            context, context.admission.channel, build_condition_facts(context.admission.channel, now)
        )
        responder = PaymentResponder(context, parameters, claim, self.renderer)
        change = ChangeRequest(
            merchant=merchant,
            now=now,
            trace=context.trace,
            parameters=parameters,
            idempotency=responder.idempotency,
        )
        return change, responder


class SchedulesView(ScheduleChangeView):
    """POST /v1/schedules."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": CREATE_SCHEDULE_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        token_limits.check_subscription_allowed(context.admission.limits)
        change, responder = self.change(context, claim)
        return responder.build_response(schedules.create_job(change, context.admission.channel))


class ScheduleView(ScheduleChangeView):
    """GET and DELETE /v1/schedules/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": READ_SCHEDULE_ENDPOINT, "DELETE": DELETE_SCHEDULE_ENDPOINT}

    def get(self, request: Request, target: str) -> Response:
        context = self.admit_request(request, target)
        parameters = self.parse(context, context.admission.channel)
        admission = context.admission
        job = schedules.find_job(identifiers.parse_id(target), admission.merchant, admission.channel)
        body = schedules.render_job(job, clock.merchant_now(admission.merchant)) | build_envelope_fields(
            context.trace.ndc
        )
        return Response(body | render_ignored_parameters(parameters), headers=context.headers)

    def delete(self, request: Request, target: str) -> HttpResponse:
        context = self.admit_request(request, target)
        change, responder = self.change(context, None)
        ident = identifiers.parse_id(target)
        return responder.build_response(schedules.deschedule_job(ident, change, context.admission.channel))


class RescheduleView(ScheduleChangeView):
    """POST /v1/schedules/{id}/reschedule."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": RESCHEDULE_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        token_limits.check_subscription_allowed(context.admission.limits)
        change, responder = self.change(context, claim)
        ident = identifiers.parse_id(target)
        return responder.build_response(schedules.reschedule_job(ident, change, context.admission.channel))


class DescheduleView(ScheduleChangeView):
    """POST /v1/schedules/{id}/deschedule."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": CANCEL_SCHEDULE_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        change, responder = self.change(context, claim)
        ident = identifiers.parse_id(target)
        return responder.build_response(schedules.deschedule_job(ident, change, context.admission.channel))
