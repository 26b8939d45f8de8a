"""3-D Secure without a payment over HTTP. Source: Part A, Endpoints; Part B, 3D Secure."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from gateway import clock, identifiers, results
from gateway.api.door import Door, Visit
from gateway.api.envelope import envelope
from gateway.api.payments import NOT_FOUND, ignored
from gateway.catalogue.endpoints import AUTHENTICATE, READ_AUTHENTICATION, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.models import Authentication
from gateway.payments import standalone
from gateway.payments.dispatch import choose_channel
from gateway.payments.intake import facts_of
from gateway.payments.refusal import NOT_SET_UP, Refused


def _answer(row: Authentication, visit: Visit, parameters: Parameters) -> Response:
    body: dict[str, Any] = standalone.authentication_object(row) | ignored(parameters)
    code = standalone.code_of(row)
    shared = envelope(code, visit.trace.ndc)
    body |= {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}
    return Response(body, status=results.http_status(code), headers=visit.headers)


class ThreeDSecureView(Door):
    """POST /v1/threeDSecure."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": AUTHENTICATE}

    def post(self, request: Request) -> Response:
        visit = self.enter(request)
        admission = visit.admission
        channel = admission.channel
        if channel is None and admission.entity is not None:
            channel = choose_channel(admission.merchant, visit.pairs)
        now = clock.now(admission.merchant)
        parameters = self.parse(visit, channel, facts_of(channel, now) | {"threeds", "alone"})
        if channel is None:
            raise Refused(NOT_SET_UP)
        row = standalone.authenticate_alone(
            parameters, merchant=admission.merchant, channel=channel, now=now, request=visit.trace.request
        )
        return _answer(row, visit, parameters)


class OneThreeDSecureView(Door):
    """GET /v1/threeDSecure/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": READ_AUTHENTICATION}

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request)
        parameters = self.parse(visit, visit.admission.channel)
        row = None
        if visit.admission.entity is not None:
            row = standalone.find(identifiers.parse_id(target), visit.admission.merchant, visit.admission.channel)
        if row is None:
            raise Refused(NOT_FOUND, status=404)
        return _answer(row, visit, parameters)
