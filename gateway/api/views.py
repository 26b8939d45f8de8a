"""The endpoints: each method enters through the door, calls one verb and answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import clock, identifiers, results
from gateway.api.door import Door, Visit
from gateway.api.envelope import envelope
from gateway.catalogue.endpoints import (
    FOLLOW_UP,
    MESSAGES,
    MOVE_CLOCK,
    PAYMENTS,
    READ_CLOCK,
    RESET_CLOCK,
    STATUS,
    Endpoint,
)
from gateway.catalogue.parse import Invalid, ParameterError, Parameters
from gateway.models import AcquirerExchange, Channel, Merchant, Payment
from gateway.models.entities import MAX_CLOCK_OFFSET
from gateway.money import Money
from gateway.payments.answer import payment_object
from gateway.payments.dispatch import choose_channel
from gateway.payments.follow_up import FollowUpRequest, process_follow_up
from gateway.payments.process import process
from gateway.payments.refusal import NOT_SET_UP, Refused, brand_of, refuse_currency, refuse_what_is_not_built
from gateway.payments.request import PaymentRequest, card_of

NOT_FOUND = "700.400.580"


def facts_of(channel: Channel | None, now: datetime) -> frozenset[str]:
    """What conditions may ask about who pays where and when (gateway.catalogue.endpoints)."""
    facts = {f"today:{now:%Y-%m}"}
    if settings.IS_LIVE:
        facts.add("live")
    if channel is not None and channel.three_d_secure:
        facts.add("threeds")
    if channel is not None and channel.cvv_required:
        facts.add("cvv")
    return frozenset(facts)


def answer_payment(payment: Payment, visit: Visit, parameters: Parameters | None = None) -> Response:
    """A payment in the envelope; 200 or 400 by the family of its code."""
    body = payment_object(payment)
    if parameters is not None:
        if parameters.refusals and payment.result_code == parameters.refusals[0].code:
            body["result"]["parameterErrors"] = [error.as_json() for error in parameters.refusals]
        if parameters.ignored:
            body["ignoredParameters"] = list(parameters.ignored)
    shared = envelope(payment.result_code, visit.trace.ndc)
    body |= {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}
    return Response(body, status=results.http_status(payment.result_code), headers=visit.headers)


class PaymentsView(Door):
    """POST /v1/payments. Source: Part A, Endpoints."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": PAYMENTS}

    def post(self, request: Request) -> Response:
        visit = self.enter(request)
        admission = visit.admission
        channel = admission.channel
        if channel is None and admission.entity is not None:
            channel = choose_channel(admission.merchant, visit.pairs)
        now = clock.now(admission.merchant)
        parameters = self.parse(visit, channel, facts_of(channel, now))
        if channel is None:
            raise Refused(NOT_SET_UP)
        refuse_what_is_not_built(parameters, channel)
        refuse_currency(parameters, channel)
        brand, detected = brand_of(parameters, channel)
        payment = process(
            PaymentRequest(
                payment=identifiers.row_id(),
                merchant=admission.merchant,
                channel=channel,
                payment_type=parameters["paymentType"],
                money=Money.parse(parameters["amount"], parameters["currency"]),
                brand=brand,
                detected=detected,
                card=card_of(parameters),
                parameters=parameters,
                test_mode="" if settings.IS_LIVE else parameters.get("testMode") or "INTERNAL",
                now=now,
                trace=visit.trace,
            )
        )
        return answer_payment(payment, visit, parameters)


class PaymentView(Door):
    """GET and POST /v1/payments/{id}. Source: Part A, Endpoints."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": STATUS, "POST": FOLLOW_UP}

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target, reads=True)
        self.parse(visit, visit.admission.channel)
        payment = visit.admission.payment
        if payment is None:
            raise Refused(NOT_FOUND, status=404)
        if not payment.result_code:
            # Begun and not answered: the worker that asked may have died. Recovery asks the acquirer.
            payment.result_code = "000.200.000"
        return answer_payment(payment, visit)

    def post(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target)
        admission = visit.admission
        now = clock.now(admission.merchant)
        parameters = self.parse(visit, admission.channel, facts_of(admission.channel, now))
        payment = process_follow_up(
            FollowUpRequest(
                target=identifiers.parse_id(target),
                merchant=admission.merchant,
                channel=admission.channel,
                parameters=parameters,
                now=now,
                trace=visit.trace,
            )
        )
        return answer_payment(payment, visit, parameters)


class TestDoor(Door):
    """Endpoints of the test environment: in live they do not exist."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if settings.IS_LIVE:
            raise Http404
        super().initial(request, *args, **kwargs)


class ClockView(TestDoor):
    """The merchant's movable clock (test environment): GET reads it, POST moves it on, DELETE puts it back."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": READ_CLOCK, "POST": MOVE_CLOCK, "DELETE": RESET_CLOCK}

    def get(self, request: Request) -> Response:
        visit = self.enter(request)
        self.parse(visit, visit.admission.channel)
        return self._tell(visit)

    def post(self, request: Request) -> Response:
        visit = self.enter(request)
        parameters = self.parse(visit, visit.admission.channel)
        merchant = visit.admission.merchant
        offset = _offset(merchant, parameters)
        if offset > MAX_CLOCK_OFFSET:
            name = "advance" if "advance" in parameters else "now"
            raise Invalid(
                [ParameterError(name=name, value=parameters[name], message="moves the clock on by more than 50 years")]
            )
        Merchant.objects.filter(pk=merchant.pk).update(clock_offset=offset)
        merchant.clock_offset = offset
        return self._tell(visit)

    def delete(self, request: Request) -> Response:
        visit = self.enter(request)
        self.parse(visit, visit.admission.channel)
        Merchant.objects.filter(pk=visit.admission.merchant.pk).update(clock_offset=timedelta(0))
        visit.admission.merchant.clock_offset = timedelta(0)
        return self._tell(visit)

    def _tell(self, visit: Visit) -> Response:
        merchant = visit.admission.merchant
        body = envelope(
            "000.000.100", visit.trace.ndc, now=clock.wire(clock.now(merchant)),
            offsetSeconds=int(merchant.clock_offset.total_seconds()),
        )  # fmt: skip
        return Response(body, headers=visit.headers)


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


class MessagesView(TestDoor):
    """GET /v1/test/acquirer/messages: what was sent on for a payment, masked, and what came back."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": MESSAGES}

    def get(self, request: Request) -> Response:
        visit = self.enter(request, request._request.GET.get("id"), reads=True)
        self.parse(visit, visit.admission.channel)
        payment = visit.admission.payment
        if payment is None:
            raise Refused(NOT_FOUND, status=404)
        messages = [
            {
                "connector": exchange.connector,
                "kind": exchange.kind,
                "sent": exchange.sent,
                "received": exchange.received,
                "durationMs": exchange.duration_ms,
                "at": clock.wire(exchange.at),
            }
            for exchange in AcquirerExchange.objects.filter(payment=payment.pk).order_by("id")
        ]
        body = envelope("000.000.100", visit.trace.ndc, id=payment.id.hex, messages=messages)
        return Response(body, headers=visit.headers)


class ResultCodesView(Door):
    """GET /v1/resultcodes: our table of result codes (D9). Public: it tells nothing of anybody."""

    http_method_names: ClassVar[list[str]] = ["get"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """No token is asked for."""

    @property
    def allowed_methods(self) -> list[str]:
        return ["GET"]

    def get(self, request: Request) -> Response:
        codes = [
            {"code": row.code, "description": row.description, "family": results.family(row.code).value}
            for row in results.RESULT_CODES.values()
        ]
        return Response(envelope("000.000.100", self.trace.ndc, resultCodes=codes))
