"""Registrations over HTTP: stored means of payment, and one-click payments with them.

Source: Part A, Endpoints (registration); Part B, Tokenization and registration; rulings D5, D29.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import clock, identifiers
from gateway.api.door import Visit
from gateway.api.envelope import envelope
from gateway.api.payments import Answering, PaymentDoor, Telling, idempotency_of, ignored, process_within_limits
from gateway.catalogue.conditions.situation import STORED_CARD
from gateway.catalogue.endpoints import (
    DELETE_REGISTRATION,
    EXTEND_REGISTRATION,
    ONE_CLICK,
    READ_REGISTRATION,
    REGISTER,
    UPDATE_REGISTRATION,
    Endpoint,
)
from gateway.catalogue.parse import Parameters
from gateway.models import Registration
from gateway.payments import registrations
from gateway.payments.answer import registration_object, stored_object
from gateway.payments.dispatch import choose_channel
from gateway.payments.idempotency import Claim
from gateway.payments.intake import facts_of, first_payment
from gateway.payments.recorded import success_code
from gateway.payments.refusal import NOT_SET_UP, Refused
from gateway.payments.registrations import Change


def _found(visit: Visit, target: str) -> Registration:
    admission = visit.admission
    return registrations.find(identifiers.parse_id(target), admission.merchant, admission.channel)


class RegistrationsView(PaymentDoor):
    """POST /v1/registrations."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": REGISTER}
    tell: ClassVar[Telling] = staticmethod(registration_object)

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        admission = visit.admission
        channel = admission.channel
        if channel is None and admission.entity is not None:
            channel = choose_channel(admission.merchant, visit.pairs)
        now = clock.now(admission.merchant)
        parameters = self.parse(visit, channel, facts_of(channel, now))
        if channel is None:
            raise Refused(NOT_SET_UP)
        answering = Answering(visit, parameters, self.tell)
        asked = first_payment(
            parameters, merchant=admission.merchant, channel=channel, now=now, trace=visit.trace,
            idempotency=idempotency_of(claim, answering),
        )  # fmt: skip
        return answering.response(process_within_limits(asked, visit))


class ChangeDoor(PaymentDoor):
    """What changing a registration takes."""

    tell: ClassVar[Telling] = staticmethod(registration_object)

    def change(self, visit: Visit, parameters: Parameters, claim: Claim | None) -> tuple[Change, Answering]:
        merchant = visit.admission.merchant
        answering = Answering(visit, parameters, self.tell)
        change = Change(
            merchant=merchant, now=clock.now(merchant), trace=visit.trace, parameters=parameters,
            idempotency=idempotency_of(claim, answering),
        )  # fmt: skip
        return change, answering


class RegistrationView(ChangeDoor):
    """GET, POST and DELETE /v1/registrations/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {
        "GET": READ_REGISTRATION, "POST": UPDATE_REGISTRATION, "DELETE": DELETE_REGISTRATION,
    }  # fmt: skip

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target)
        parameters = self.parse(visit, visit.admission.channel)
        found = _found(visit, target)
        registrations.refuse_what_has_ended(found, clock.now(found.merchant))
        body: dict[str, Any] = stored_object(found, success_code(found.test_mode))
        shared = envelope(body["result"]["code"], visit.trace.ndc)
        body |= {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}
        return Response(body | ignored(parameters), headers=visit.headers)

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        facts = facts_of(visit.admission.channel, clock.now(visit.admission.merchant))
        parameters = self.parse(visit, visit.admission.channel, facts)
        change, answering = self.change(visit, parameters, claim)
        return answering.response(registrations.update(_found(visit, target), change))

    def delete(self, request: Request, target: str) -> HttpResponse:
        visit = self.enter(request, target)
        change, answering = self.change(visit, self.parse(visit, visit.admission.channel), None)
        return answering.response(registrations.delete(_found(visit, target), change))


class ExtendView(ChangeDoor):
    """POST /v1/registrations/{id}/extend."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": EXTEND_REGISTRATION}

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        change, answering = self.change(visit, self.parse(visit, visit.admission.channel), claim)
        return answering.response(registrations.extend(_extendable(visit, target), change))


def _extendable(visit: Visit, target: str) -> Registration:
    try:
        return _found(visit, target)
    except Refused as refused:
        if refused.code == registrations.REMOVED:
            raise Refused(registrations.NOT_REGISTERED) from None
        raise


class OneClickView(PaymentDoor):
    """POST /v1/registrations/{id}/payments."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": ONE_CLICK}

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        merchant = visit.admission.merchant
        now = clock.now(merchant)
        try:
            found, missing = _found(visit, target), None
        except Refused as refused:
            found, missing = None, refused
        # What is wrong with the request is told first, whatever the id names.
        channel = found.channel if found is not None else visit.admission.channel
        facts = facts_of(channel, now) | {"registration"}
        if found is not None and found.means == "card":
            facts |= {STORED_CARD, f"registration: {found.brand}"}
        parameters = self.parse(visit, channel, facts)
        if found is None:
            assert missing is not None
            raise missing
        answering = Answering(visit, parameters)
        asked = first_payment(
            parameters, merchant=merchant, channel=found.channel, now=now, trace=visit.trace,
            idempotency=idempotency_of(claim, answering),
            stored=registrations.stored_means(found, parameters, now),
        )  # fmt: skip
        return answering.response(process_within_limits(asked, visit))
