"""The merchant's movable clock (test environment): read, moved on with everything that falls due, put back."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from gateway import clock, clock_moves
from gateway.api.door import Visit
from gateway.api.envelope import envelope
from gateway.api.payments import ignored
from gateway.api.testing import TestDoor
from gateway.catalogue.endpoints import MOVE_CLOCK, READ_CLOCK, RESET_CLOCK, Endpoint
from gateway.catalogue.parse import Invalid, ParameterError, Parameters
from gateway.models import Merchant
from gateway.models.entities import MAX_CLOCK_OFFSET
from gateway.payments.refusal import Refused

BUSY: Final = "800.120.402"


class ClockView(TestDoor):
    """GET reads the clock, POST moves it on and does what falls due on the way, DELETE puts it back."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": READ_CLOCK, "POST": MOVE_CLOCK, "DELETE": RESET_CLOCK}

    def get(self, request: Request) -> Response:
        visit = self.enter(request)
        return _told(visit, **ignored(self.parse(visit, visit.admission.channel)))

    def post(self, request: Request) -> Response:
        visit = self.enter(request)
        parameters = self.parse(visit, visit.admission.channel)
        merchant = visit.admission.merchant
        try:
            with clock_moves.sole_mover(merchant):
                moved = clock_moves.move(merchant, _target(merchant, parameters))
        except clock_moves.MovedByAnother:
            raise _busy() from None
        return _told(
            visit, complete=moved.complete, remainingSeconds=math.ceil(moved.remaining.total_seconds()),
            ran=dict(moved.ran), waiting=sorted(moved.waiting), **ignored(parameters),
        )  # fmt: skip

    def delete(self, request: Request) -> Response:
        visit = self.enter(request)
        passed_over = ignored(self.parse(visit, visit.admission.channel))
        try:
            with clock_moves.sole_mover(visit.admission.merchant):
                clock_moves.reset(visit.admission.merchant)
        except clock_moves.MovedByAnother:
            raise _busy() from None
        return _told(visit, **passed_over)


def _told(visit: Visit, **more: Any) -> Response:
    merchant = visit.admission.merchant
    body = envelope(
        "000.000.100", visit.trace.ndc, now=clock.wire(clock.now(merchant)),
        offsetSeconds=int(merchant.clock_offset.total_seconds()), **more,
    )  # fmt: skip
    return Response(body, headers=visit.headers)


def _busy() -> Refused:
    return Refused(BUSY, status=409, more="this merchant's clock is being moved by another request")


def _target(merchant: Merchant, parameters: Parameters) -> timedelta:
    """The offset to move to. Raises Invalid."""
    offset = _offset(merchant, parameters)
    if offset > MAX_CLOCK_OFFSET:
        name = "advance" if "advance" in parameters else "now"
        raise Invalid(
            [ParameterError(name=name, value=parameters[name], message="moves the clock on by more than 50 years")]
        )
    return offset


def _offset(merchant: Merchant, parameters: Parameters) -> timedelta:
    if "advance" in parameters:
        return merchant.clock_offset + timedelta(seconds=int(parameters["advance"]))
    text = parameters["now"]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid([ParameterError(name="now", value=text, message="is not a date of the calendar")]) from None
    offset = moment.astimezone(UTC) - clock.real()
    if offset < merchant.clock_offset - timedelta(seconds=1):
        raise Invalid(
            [
                ParameterError(
                    name="now", value=text, message="lies before the merchant's present: DELETE resets the clock"
                )
            ]
        )
    return offset
