"""The endpoints of standalone 3-D Secure authentication. Source: Part A, Endpoints; Part B, 3D Secure."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import ApiView, RequestContext
from gateway.api.payments import resolve_request_channel
from gateway.catalogue.endpoints import READ_AUTHENTICATION_ENDPOINT, STANDALONE_AUTHENTICATION_ENDPOINT, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.core import clock, identifiers, result_codes
from gateway.core.result_codes import PAYMENT_NOT_FOUND_CODE
from gateway.models import Authentication
from gateway.payments import standalone_authentication
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError
from gateway.payments.request_builder import build_condition_facts
from gateway.payments.responses import build_envelope_fields, render_ignored_parameters


def _build_authentication_response(row: Authentication, context: RequestContext, parameters: Parameters) -> Response:
    body = standalone_authentication.render_authentication(row) | render_ignored_parameters(parameters)
    status = result_codes.http_status(standalone_authentication.resolve_authentication_code(row))
    return Response(body | build_envelope_fields(context.trace.ndc), status=status, headers=context.headers)


class ThreeDSecureView(ApiView):
    """POST /v1/threeDSecure."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": STANDALONE_AUTHENTICATION_ENDPOINT}

    def post(self, request: Request) -> Response:
        context = self.admit_request(request)
        admission = context.admission
        channel = resolve_request_channel(context)
        now = clock.merchant_now(admission.merchant)
        parameters = self.parse(context, channel, build_condition_facts(channel, now) | {"threeds", "alone"})
        if channel is None:
            raise RequestRefusedError(CHANNEL_NOT_CONFIGURED_CODE)
        row = standalone_authentication.begin_standalone_authentication(
            parameters, merchant=admission.merchant, channel=channel, now=now, request=context.trace.request
        )
        return _build_authentication_response(row, context, parameters)


class ThreeDSecureResultView(ApiView):
    """GET /v1/threeDSecure/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": READ_AUTHENTICATION_ENDPOINT}

    def get(self, request: Request, target: str) -> Response:
        context = self.admit_request(request)
        parameters = self.parse(context, context.admission.channel)
        row = None
        if context.admission.entity is not None:
            row = standalone_authentication.find_authentication(
                identifiers.parse_id(target), context.admission.merchant, context.admission.channel
            )
        if row is None:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE, status=404)
        return _build_authentication_response(row, context, parameters)
