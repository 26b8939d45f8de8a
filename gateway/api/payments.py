"""The payment endpoints: /v1/payments and /v1/payments/{id}. Also the base of all POST views with idempotency keys.

Source: Part A, Endpoints; rulings D2, D11, D12, D20.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.tokens import TokenLimits
from gateway.api.base_view import ApiView, RequestContext
from gateway.api.envelope import build_docs_url, build_envelope_fields, encode_json
from gateway.catalogue.endpoints import FOLLOW_UP_ENDPOINT, PAYMENT_ENDPOINT, STATUS_ENDPOINT, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.core import clock, identifiers, result_codes
from gateway.models import Channel, Payment
from gateway.payments import idempotent_responses, token_limits
from gateway.payments.channel_dispatch import choose_channel
from gateway.payments.follow_ups import FollowUpRequest, process_follow_up
from gateway.payments.idempotency import (
    IDEMPOTENCY_HEADER,
    IdempotencyClaim,
    StoredResponse,
    build_idempotency_lookup,
    build_in_progress_refusal,
    parse_idempotency_claim,
)
from gateway.payments.payment_request import IdempotencyContext, PaymentRequest
from gateway.payments.process import process_payment
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError
from gateway.payments.rendering import render_payment, resolve_result_code
from gateway.payments.request_builder import build_condition_facts, build_payment_request
from gateway.payments.store import IdempotencyKeyTakenError

PAYMENT_NOT_FOUND_CODE = "700.400.580"
REPLAYED_HEADER = "Idempotent-Replayed"
ResponseRenderer = idempotent_responses.PaymentRenderer


def build_payment_response(
    payment: Payment, context: RequestContext, tell: ResponseRenderer = render_payment
) -> tuple[int, dict[str, Any]]:
    """Returns (HTTP status, body): 200 or 400 by the family of the payment's code, and the payment in the envelope."""
    code = resolve_result_code(payment)
    return result_codes.http_status(code), idempotent_responses.render_response_body(
        payment, build_envelope_fields(context.trace.ndc), {}, tell
    )


def resolve_request_channel(context: RequestContext) -> Channel | None:
    """The channel of a first payment's request: the sent one, else by channel dispatching; None if none takes it."""
    admission = context.admission
    if admission.channel is None and admission.entity is not None:
        return choose_channel(admission.merchant, context.pairs)
    return admission.channel


def render_ignored_parameters(parameters: Parameters) -> dict[str, Any]:
    """``ignoredParameters`` of a response, the sent names that were ignored; empty without any."""
    return {"ignoredParameters": list(parameters.ignored)} if parameters.ignored else {}


class PaymentResponder:
    """Renders the response of one request. With an idempotency key the first response is stored and replayed byte for
    byte, so its member names are in the order of PostgreSQL's jsonb."""

    def __init__(
        self, context: RequestContext, parameters: Parameters, tell: ResponseRenderer = render_payment
    ) -> None:
        self.context = context
        self.parameters = parameters
        self.tell = tell
        self._made: tuple[int, str] | None = None
        self._of: object = None

    def respond(self, payment: Payment) -> tuple[int, str]:
        """Render the response of ``payment``. Returns (HTTP status, the body as its idempotency key stores it)."""
        payment.request, payment.answer = (
            idempotent_responses.sort_like_jsonb(payment.request),
            idempotent_responses.sort_like_jsonb(payment.answer),
        )
        shared, more = build_envelope_fields(self.context.trace.ndc), self._more(payment)
        status, text = (
            result_codes.http_status(resolve_result_code(payment)),
            encode_json(idempotent_responses.render_response_body(payment, shared, more, self.tell)).decode(),
        )
        self._made, self._of = (status, text), payment.answer
        # Only payments can be rebuilt from their row: a registration or a job may change later.
        return status, idempotent_responses.compact_response(
            payment, shared, more, text
        ) if self.tell is render_payment else text

    def response(self, payment: Payment) -> HttpResponse:
        """The HTTP response of ``payment``: the one stored under its key, else rendered now."""
        # The stored response is sent if the statement that stores it was written. If another worker completed the
        # payment first, it was not, and the payment was read again: then its present state is rendered.
        if self._made is not None and payment.answer is self._of:
            return _build_stored_response(*self._made, self.context)
        body = idempotent_responses.render_response_body(
            payment, build_envelope_fields(self.context.trace.ndc), self._more(payment), self.tell
        )
        response: HttpResponse = Response(
            body, status=result_codes.http_status(resolve_result_code(payment)), headers=self.context.headers
        )
        return response

    def _more(self, payment: Payment) -> dict[str, Any]:
        """Remarks about the request that are not in the payment: parameterErrors and ignoredParameters."""
        more: dict[str, Any] = {}
        refusals = self.parameters.refusals
        if refusals and payment.result_code == refusals[0].code:
            docs = build_docs_url(self.context.endpoint)
            more["parameterErrors"] = [error.as_json(docs) for error in refusals]
        return more | render_ignored_parameters(self.parameters)


def _build_stored_response(status: int, body: str, context: RequestContext, *, replayed: bool = False) -> HttpResponse:
    headers = {**context.headers, REPLAYED_HEADER: "true"} if replayed else context.headers
    return HttpResponse(body, status=status, content_type="application/json; charset=utf-8", headers=headers)


def replay_response(known: StoredResponse, context: RequestContext, tell: ResponseRenderer) -> HttpResponse:
    """The stored response of an idempotency key, with the header Idempotent-Replayed."""
    if known.body is not None and idempotent_responses.is_complete_response(known.body):
        return _build_stored_response(known.status, known.body, context, replayed=True)
    payment = Payment.objects.get(pk=known.payment)
    if known.body is not None:
        return _build_stored_response(
            known.status,
            encode_json(idempotent_responses.restore_response(payment, known.body)).decode(),
            context,
            replayed=True,
        )
    # The worker died before it stored the response: render the payment's present state.
    status, body = build_payment_response(payment, context, tell)
    return _build_stored_response(status, encode_json(body).decode(), context, replayed=True)


class IdempotentPostView(ApiView):
    """Base of POST views: looks the idempotency key up first and claims it with the payment. ``tell``: renders the
    payment."""

    tell: ClassVar[staticmethod[[Payment], dict[str, Any]]] = staticmethod(render_payment)

    def post(self, request: Request, target: str = "") -> HttpResponse:
        header, path = request.headers.get(IDEMPOTENCY_HEADER), request.path
        context = self.admit_request(
            request, target or None, key=build_idempotency_lookup(header, method="POST", path=path)
        )
        claim = parse_idempotency_claim(header, context.pairs, token=context.admission.token, method="POST", path=path)
        if claim is None:
            return self.pay(context, target, None)
        if (known := claim.find(context.admission.kept)) is not None:
            return replay_response(known, context, self.tell)
        try:
            return self.pay(context, target, claim)
        except IdempotencyKeyTakenError:
            raise build_in_progress_refusal(claim.key) from None

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        """Handle the request. ``target``: the id in the path. Raises IdempotencyKeyTakenError."""
        raise NotImplementedError


def build_idempotency_context(claim: IdempotencyClaim | None, responder: PaymentResponder) -> IdempotencyContext | None:
    """The claim with its renderer, None without a key."""
    return None if claim is None else IdempotencyContext(claim=claim, respond=responder.respond)


def process_within_token_limits(request: PaymentRequest, context: RequestContext) -> Payment:
    """Process a first payment within its token's 24-hour limit. Raises TokenLimitError."""
    admission, money = context.admission, request.money
    with token_limits.reserve_amount(admission.token, admission.limits, money.amount, money.currency) as reservation:
        payment = process_payment(request)
        reservation.payment = payment.id
    return payment


class PaymentsView(IdempotentPostView):
    """POST /v1/payments."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": PAYMENT_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        admission, channel = context.admission, resolve_request_channel(context)
        now = clock.merchant_now(admission.merchant)
        parameters = self.parse(context, channel, build_condition_facts(channel, now))
        if "referenceUuid" in parameters:
            return respond_to_follow_up(context, parameters["referenceUuid"], parameters, now, claim)
        if channel is None:
            raise RequestRefusedError(CHANNEL_NOT_CONFIGURED_CODE)
        responder = PaymentResponder(context, parameters)
        payment_request = build_payment_request(
            parameters,
            merchant=admission.merchant,
            channel=channel,
            now=now,
            trace=context.trace,
            idempotency=build_idempotency_context(claim, responder),
        )
        return responder.response(process_within_token_limits(payment_request, context))


class PaymentView(IdempotentPostView):
    """GET and POST /v1/payments/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": STATUS_ENDPOINT, "POST": FOLLOW_UP_ENDPOINT}

    def get(self, request: Request, target: str) -> Response:
        context = self.admit_request(request, target, reads=True)
        parameters = self.parse(context, context.admission.channel)
        payment = context.admission.payment
        if payment is None:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE, status=404)
        status, body = build_payment_response(payment, context)
        return Response(body | render_ignored_parameters(parameters), status=status, headers=context.headers)

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        admission = context.admission
        now = clock.merchant_now(admission.merchant)
        parameters = self.parse(context, admission.channel, build_condition_facts(admission.channel, now))
        return respond_to_follow_up(context, target, parameters, now, claim)


def respond_to_follow_up(
    context: RequestContext, target: str, parameters: Parameters, now: datetime, claim: IdempotencyClaim | None
) -> HttpResponse:
    """Process a follow-up of payment ``target``, named by the path or by referenceUuid."""
    admission = context.admission
    responder = PaymentResponder(context, parameters)
    request = FollowUpRequest(
        payment=identifiers.row_id(),
        target=identifiers.parse_id(target),
        merchant=admission.merchant,
        channel=admission.channel,
        parameters=parameters,
        now=now,
        trace=context.trace,
        idempotency=build_idempotency_context(claim, responder),
    )
    amount, currency = _resolve_max_amount(request, admission.limits)
    with token_limits.reserve_amount(admission.token, admission.limits, amount, currency) as reservation:
        payment = process_follow_up(request)
        reservation.payment = payment.id
    return responder.response(payment)


def _resolve_max_amount(request: FollowUpRequest, limits: TokenLimits | None) -> tuple[Decimal | None, str | None]:
    """(amount, currency) that a follow-up moves at most, for a token with limits. A reversal without an amount takes
    all that remains, which is no more than the followed payment's amount."""
    if limits is None or request.target is None:
        return None, None
    amount = request.parameters.get("amount")
    target = Payment.objects.filter(pk=request.target, merchant=request.merchant.pk).only("amount", "currency").first()
    if target is None:
        return None, None
    if amount is None:
        token_limits.check_token_limits(limits, {"amount": str(target.amount)})
    return (Decimal(amount) if amount is not None else target.amount), target.currency
