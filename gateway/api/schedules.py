"""Subscription jobs over HTTP. Source: Part B, Scheduling; ruling D8."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import clock, identifiers
from gateway.api.door import Visit
from gateway.api.envelope import shared_part
from gateway.api.payments import Answering, PaymentDoor, Telling, idempotency_of, ignored
from gateway.catalogue.endpoints import (
    DELETE_SCHEDULE,
    DESCHEDULE,
    READ_SCHEDULE,
    RESCHEDULE,
    SCHEDULE,
    Endpoint,
)
from gateway.catalogue.parse import Parameters
from gateway.payments import schedules, token_limits
from gateway.payments.idempotency import Claim
from gateway.payments.intake import facts_of
from gateway.payments.registrations import Change


class ScheduleDoor(PaymentDoor):
    """What changing a job takes."""

    tell: ClassVar[Telling] = staticmethod(schedules.schedule_object)

    def change(self, visit: Visit, claim: Claim | None) -> tuple[Change, Answering]:
        merchant = visit.admission.merchant
        now = clock.now(merchant)
        parameters: Parameters = self.parse(visit, visit.admission.channel, facts_of(visit.admission.channel, now))
        answering = Answering(visit, parameters, self.tell)
        change = Change(
            merchant=merchant, now=now, trace=visit.trace, parameters=parameters,
            idempotency=idempotency_of(claim, answering),
        )  # fmt: skip
        return change, answering


class SchedulesView(ScheduleDoor):
    """POST /v1/schedules."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": SCHEDULE}

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        token_limits.refuse_subscription(visit.admission.limits)
        change, answering = self.change(visit, claim)
        return answering.response(schedules.create(change, visit.admission.channel))


class OneScheduleView(ScheduleDoor):
    """GET and DELETE /v1/schedules/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": READ_SCHEDULE, "DELETE": DELETE_SCHEDULE}

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target)
        parameters = self.parse(visit, visit.admission.channel)
        admission = visit.admission
        job = schedules.find(identifiers.parse_id(target), admission.merchant, admission.channel)
        body = schedules.job_object(job, clock.now(admission.merchant)) | shared_part(visit.trace.ndc)
        return Response(body | ignored(parameters), headers=visit.headers)

    def delete(self, request: Request, target: str) -> HttpResponse:
        visit = self.enter(request, target)
        change, answering = self.change(visit, None)
        ident = identifiers.parse_id(target)
        return answering.response(schedules.deschedule(ident, change, visit.admission.channel))


class RescheduleView(ScheduleDoor):
    """POST /v1/schedules/{id}/reschedule."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": RESCHEDULE}

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        token_limits.refuse_subscription(visit.admission.limits)
        change, answering = self.change(visit, claim)
        ident = identifiers.parse_id(target)
        return answering.response(schedules.reschedule(ident, change, visit.admission.channel))


class DescheduleView(ScheduleDoor):
    """POST /v1/schedules/{id}/deschedule."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": DESCHEDULE}

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        change, answering = self.change(visit, claim)
        ident = identifiers.parse_id(target)
        return answering.response(schedules.deschedule(ident, change, visit.admission.channel))
