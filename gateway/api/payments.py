"""Payments over HTTP: each method enters through the door, calls one verb and answers.

Source: Part A, Endpoints; rulings D2, D11, D12, D20.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import clock, identifiers, results
from gateway.api.door import Door, Visit
from gateway.api.envelope import docs_of, envelope, to_json
from gateway.catalogue.endpoints import FOLLOW_UP, PAYMENTS, STATUS, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.models import Payment
from gateway.payments.answer import code_of, payment_object
from gateway.payments.dispatch import choose_channel
from gateway.payments.follow_up import FollowUpRequest, process_follow_up
from gateway.payments.idempotency import HEADER, Claim, claim_of, in_progress
from gateway.payments.intake import facts_of, first_payment
from gateway.payments.process import process
from gateway.payments.refusal import NOT_SET_UP, Refused
from gateway.payments.request import Idempotency
from gateway.payments.store import KeyTaken

NOT_FOUND = "700.400.580"
REPLAYED = "Idempotent-Replayed"


def answer_of(payment: Payment, visit: Visit, parameters: Parameters | None = None) -> tuple[int, dict[str, Any]]:
    """A payment in the envelope, and 200 or 400 by the family of its code."""
    body = payment_object(payment)
    if parameters is not None:
        if parameters.refusals and payment.result_code == parameters.refusals[0].code:
            body["result"]["parameterErrors"] = [
                error.as_json(docs_of(visit.endpoint)) for error in parameters.refusals
            ]
        if parameters.ignored:
            body["ignoredParameters"] = list(parameters.ignored)
    code = code_of(payment)
    shared = envelope(code, visit.trace.ndc)
    body |= {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}
    return results.http_status(code), body


class Answering:
    """How one request answers its payment. With an idempotency key the first answer is stored, and sent as stored."""

    def __init__(self, visit: Visit, parameters: Parameters) -> None:
        self.visit = visit
        self.parameters = parameters
        self.stored: tuple[int, str] | None = None

    def store(self, payment: Payment) -> tuple[int, str]:
        status, body = answer_of(payment, self.visit, self.parameters)
        self.stored = status, to_json(body).decode()
        return self.stored

    def response(self, payment: Payment) -> HttpResponse:
        if self.stored is not None:
            return _stored(*self.stored, self.visit)
        status, body = answer_of(payment, self.visit, self.parameters)
        return Response(body, status=status, headers=self.visit.headers)


def _stored(status: int, body: str, visit: Visit, *, replayed: bool = False) -> HttpResponse:
    headers = {**visit.headers, REPLAYED: "true"} if replayed else visit.headers
    return HttpResponse(body, status=status, content_type="application/json; charset=utf-8", headers=headers)


class PaymentDoor(Door):
    """What the two POSTs share: an idempotency key is looked up first and claimed with the payment."""

    def post(self, request: Request, target: str = "") -> HttpResponse:
        visit = self.enter(request, target or None)
        claim = claim_of(
            request.headers.get(HEADER), visit.pairs, token=visit.admission.token, method="POST", path=request.path
        )
        if claim is None:
            return self.pay(visit, target, None)
        if (known := claim.find()) is not None:
            if known.body is not None:
                return _stored(known.status, known.body, visit, replayed=True)
            status, body = answer_of(Payment.objects.get(pk=known.payment), visit)
            return _stored(status, to_json(body).decode(), visit, replayed=True)
        try:
            return self.pay(visit, target, claim)
        except KeyTaken:
            raise in_progress(claim.key) from None

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        raise NotImplementedError


def _idempotency(claim: Claim | None, answering: Answering) -> Idempotency | None:
    return None if claim is None else Idempotency(claim=claim, respond=answering.store)


class PaymentsView(PaymentDoor):
    """POST /v1/payments."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": PAYMENTS}

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        admission = visit.admission
        channel = admission.channel
        if channel is None and admission.entity is not None:
            channel = choose_channel(admission.merchant, visit.pairs)
        now = clock.now(admission.merchant)
        parameters = self.parse(visit, channel, facts_of(channel, now))
        if "referenceUuid" in parameters:
            return follow_up(visit, parameters["referenceUuid"], parameters, now, claim)
        if channel is None:
            raise Refused(NOT_SET_UP)
        answering = Answering(visit, parameters)
        payment = process(
            first_payment(
                parameters, merchant=admission.merchant, channel=channel, now=now, trace=visit.trace,
                idempotency=_idempotency(claim, answering),
            )
        )  # fmt: skip
        return answering.response(payment)


class PaymentView(PaymentDoor):
    """GET and POST /v1/payments/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": STATUS, "POST": FOLLOW_UP}

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target, reads=True)
        self.parse(visit, visit.admission.channel)
        payment = visit.admission.payment
        if payment is None:
            raise Refused(NOT_FOUND, status=404)
        status, body = answer_of(payment, visit)
        return Response(body, status=status, headers=visit.headers)

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        admission = visit.admission
        now = clock.now(admission.merchant)
        parameters = self.parse(visit, admission.channel, facts_of(admission.channel, now))
        return follow_up(visit, target, parameters, now, claim)


def follow_up(visit: Visit, target: str, parameters: Parameters, now: datetime, claim: Claim | None) -> HttpResponse:
    """A follow-up of the payment ``target`` names, by path or by referenceUuid."""
    admission = visit.admission
    answering = Answering(visit, parameters)
    payment = process_follow_up(
        FollowUpRequest(
            payment=identifiers.row_id(),
            target=identifiers.parse_id(target),
            merchant=admission.merchant,
            channel=admission.channel,
            parameters=parameters,
            now=now,
            trace=visit.trace,
            idempotency=_idempotency(claim, answering),
        )
    )
    return answering.response(payment)
