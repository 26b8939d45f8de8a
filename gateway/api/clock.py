"""The merchant's test clock (test environment): read it, advance it with everything that falls due, reset it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import RequestContext
from gateway.api.envelope import build_envelope
from gateway.api.sandbox import SandboxView
from gateway.catalogue.endpoints import MOVE_CLOCK_ENDPOINT, READ_CLOCK_ENDPOINT, RESET_CLOCK_ENDPOINT, Endpoint
from gateway.catalogue.parse import InvalidParametersError, ParameterError, Parameters
from gateway.core import clock
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.models import Merchant
from gateway.models.entities import MAX_CLOCK_OFFSET
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.responses import render_ignored_parameters
from gateway.timers import time_travel


class ClockView(SandboxView):
    """GET reads the clock, POST advances it and processes what falls due on the way, DELETE resets it."""

    endpoints: ClassVar[dict[str, Endpoint]] = {
        "GET": READ_CLOCK_ENDPOINT,
        "POST": MOVE_CLOCK_ENDPOINT,
        "DELETE": RESET_CLOCK_ENDPOINT,
    }

    def get(self, request: Request) -> Response:
        context = self.admit_request(request)
        return _build_clock_response(
            context, **render_ignored_parameters(self.parse(context, context.admission.channel))
        )

    def post(self, request: Request) -> Response:
        context = self.admit_request(request)
        parameters = self.parse(context, context.admission.channel)
        merchant = context.admission.merchant
        try:
            with time_travel.lock_clock(merchant):
                moved = time_travel.advance_clock(merchant, _parse_target_offset(merchant, parameters))
        except time_travel.ConcurrentAdvanceError:
            raise _build_clock_refusal() from None
        return _build_clock_response(
            context,
            complete=moved.complete,
            remainingSeconds=math.ceil(moved.remaining.total_seconds()),
            ran=dict(moved.ran),
            waiting=sorted(moved.waiting),
            **render_ignored_parameters(parameters),
        )

    def delete(self, request: Request) -> Response:
        context = self.admit_request(request)
        ignored_names = render_ignored_parameters(self.parse(context, context.admission.channel))
        try:
            with time_travel.lock_clock(context.admission.merchant):
                time_travel.reset_clock(context.admission.merchant)
        except time_travel.ConcurrentAdvanceError:
            raise _build_clock_refusal() from None
        return _build_clock_response(context, **ignored_names)


def _build_clock_response(context: RequestContext, **more: Any) -> Response:
    merchant = context.admission.merchant
    body = build_envelope(
        "000.000.100",
        context.trace.ndc,
        now=clock.format_timestamp(clock.merchant_now(merchant)),
        offsetSeconds=int(merchant.clock_offset.total_seconds()),
        **more,
    )
    return Response(body, headers=context.headers)


def _build_clock_refusal() -> RequestRefusedError:
    return RequestRefusedError(
        CONCURRENT_UPDATE_CODE, status=409, more="this merchant's clock is being moved by another request"
    )


def _parse_target_offset(merchant: Merchant, parameters: Parameters) -> timedelta:
    """The clock offset to advance to. Raises InvalidParametersError."""
    offset = _parse_offset(merchant, parameters)
    if offset > MAX_CLOCK_OFFSET:
        name = "advance" if "advance" in parameters else "now"
        raise InvalidParametersError(
            [ParameterError(name=name, value=parameters[name], message="moves the clock on by more than 50 years")]
        )
    return offset


def _parse_offset(merchant: Merchant, parameters: Parameters) -> timedelta:
    if "advance" in parameters:
        return merchant.clock_offset + timedelta(seconds=int(parameters["advance"]))
    text = parameters["now"]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidParametersError(
            [ParameterError(name="now", value=text, message="is not a date of the calendar")]
        ) from None
    offset = moment.astimezone(UTC) - clock.real_now()
    if offset < merchant.clock_offset - timedelta(seconds=1):
        raise InvalidParametersError(
            [
                ParameterError(
                    name="now", value=text, message="lies before the merchant's present: DELETE resets the clock"
                )
            ]
        )
    return offset
