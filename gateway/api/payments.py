"""The payment endpoints: /v1/payments and /v1/payments/{id}. Also the base of all POST views with idempotency keys.

Source: Part A, Endpoints; rulings D2, D11, D12, D20.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Final

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.tokens import TokenLimits
from gateway.api.base_view import ApiView, RequestContext
from gateway.api.envelope import build_docs_url
from gateway.catalogue.endpoints import FOLLOW_UP_ENDPOINT, PAYMENT_ENDPOINT, STATUS_ENDPOINT, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.core import clock, identifiers
from gateway.core.compact_json import encode_json
from gateway.core.result_codes import PAYMENT_NOT_FOUND_CODE
from gateway.models import Channel, Payment
from gateway.payments import token_limits
from gateway.payments.channel_dispatch import choose_channel
from gateway.payments.follow_ups import FollowUpRequest, load_chain, process_follow_up
from gateway.payments.idempotency import (
    IdempotencyClaim,
    StoredResponse,
    build_idempotency_lookup,
    build_in_progress_refusal,
    parse_idempotency_claim,
)
from gateway.payments.payment_request import IdempotencyContext, PaymentRequest
from gateway.payments.process import process_payment
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError
from gateway.payments.rendering import render_payment
from gateway.payments.request_builder import build_condition_facts, build_payment_request
from gateway.payments.responses import (
    PaymentRenderer,
    ResponseFormat,
    build_envelope_fields,
    is_complete_response,
    render_ignored_parameters,
    render_response,
    render_response_body,
    resolve_http_status,
    restore_response,
)
from gateway.payments.store import IdempotencyKeyTakenError

REPLAYED_HEADER = "Idempotent-Replayed"
_IDEMPOTENCY_KEY: Final = "HTTP_IDEMPOTENCY_KEY"


def build_payment_response(
    payment: Payment, context: RequestContext, renderer: PaymentRenderer = render_payment
) -> tuple[int, dict[str, Any]]:
    """Returns (HTTP status, body) of reading a payment."""
    body = render_response_body(payment, build_envelope_fields(context.trace.ndc), {}, renderer)
    return resolve_http_status(payment), body


def resolve_request_channel(context: RequestContext) -> Channel | None:
    """The channel of a first payment's request: the sent one, else by channel dispatching; None if none takes it."""
    admission = context.admission
    if admission.channel is None and admission.entity is not None:
        return choose_channel(admission.merchant, context.pairs)
    return admission.channel


class PaymentResponder:
    """The HTTP response of one POST. ``idempotency``: the claim of its key, with what the response is rendered from;
    None without a key."""

    def __init__(
        self,
        context: RequestContext,
        parameters: Parameters,
        claim: IdempotencyClaim | None,
        renderer: PaymentRenderer = render_payment,
    ) -> None:
        self._context = context
        self._format = ResponseFormat(
            ndc=context.trace.ndc,
            docs_url=build_docs_url(context.endpoint),
            parameters=parameters,
            renderer=renderer,
        )
        self.idempotency = IdempotencyContext(claim=claim, format=self._format) if claim is not None else None

    def build_response(self, payment: Payment) -> HttpResponse:
        """The response that was stored under the key with the payment, else one rendered now: without a key, and where
        another worker completed the payment first."""
        stored = self.idempotency.stored if self.idempotency is not None else None
        response = stored or render_response(payment, self._format)
        return _build_json_response(response.status, response.text, self._context)


def _build_json_response(status: int, body: str, context: RequestContext, *, replayed: bool = False) -> HttpResponse:
    headers = {**context.headers, REPLAYED_HEADER: "true"} if replayed else context.headers
    return HttpResponse(body, status=status, content_type="application/json; charset=utf-8", headers=headers)


def replay_response(known: StoredResponse, context: RequestContext, renderer: PaymentRenderer) -> HttpResponse:
    """The stored response of an idempotency key, with the header Idempotent-Replayed."""
    if known.body is not None and is_complete_response(known.body):
        return _build_json_response(known.status, known.body, context, replayed=True)
    payment = Payment.objects.get(pk=known.payment)
    if known.body is not None:
        return _build_json_response(
            known.status,
            encode_json(restore_response(payment, known.body)).decode(),
            context,
            replayed=True,
        )
    # The worker died before it stored the response: render the payment's present state.
    status, body = build_payment_response(payment, context, renderer)
    return _build_json_response(status, encode_json(body).decode(), context, replayed=True)


class IdempotentPostView(ApiView):
    """Base of POST views: looks the idempotency key up first and claims it with the payment. ``renderer``: how
    the endpoint shows a payment."""

    renderer: ClassVar[staticmethod[[Payment], dict[str, Any]]] = staticmethod(render_payment)

    def post(self, request: Request, target: str = "") -> HttpResponse:
        http: HttpRequest = request._request
        header, path = http.META.get(_IDEMPOTENCY_KEY), http.path
        context = self.admit_request(
            request, target or None, key=build_idempotency_lookup(header, method="POST", path=path)
        )
        claim = parse_idempotency_claim(header, context.pairs, token=context.admission.token, method="POST", path=path)
        if claim is None:
            return self.pay(context, target, None)
        if (known := claim.find_stored_response(context.admission.idempotency_row)) is not None:
            return replay_response(known, context, self.renderer)
        try:
            return self.pay(context, target, claim)
        except IdempotencyKeyTakenError:
            raise build_in_progress_refusal(claim.key) from None

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        """Handle the request. ``target``: the id in the path. Raises IdempotencyKeyTakenError."""
        raise NotImplementedError


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
        return respond_to_first_payment(context, channel, parameters, now, claim)


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


def respond_to_first_payment(
    context: RequestContext,
    channel: Channel | None,
    parameters: Parameters,
    now: datetime,
    claim: IdempotencyClaim | None,
    renderer: PaymentRenderer = render_payment,
) -> HttpResponse:
    """Process a first payment, or a registration. ``renderer``: how the endpoint shows it. Raises RequestRefusedError
    when no channel takes it."""
    if channel is None:
        raise RequestRefusedError(CHANNEL_NOT_CONFIGURED_CODE)
    responder = PaymentResponder(context, parameters, claim, renderer)
    payment_request = build_payment_request(
        parameters,
        merchant=context.admission.merchant,
        channel=channel,
        now=now,
        trace=context.trace,
        idempotency=responder.idempotency,
    )
    return responder.build_response(process_within_token_limits(payment_request, context))


def respond_to_follow_up(
    context: RequestContext, target: str, parameters: Parameters, now: datetime, claim: IdempotencyClaim | None
) -> HttpResponse:
    """Process a follow-up of payment ``target``, named by the path or by referenceUuid."""
    admission = context.admission
    responder = PaymentResponder(context, parameters, claim)
    request = FollowUpRequest(
        payment=identifiers.row_id(),
        target=identifiers.parse_id(target),
        merchant=admission.merchant,
        channel=admission.channel,
        parameters=parameters,
        now=now,
        trace=context.trace,
        idempotency=responder.idempotency,
    )
    if admission.limits is not None:
        request = replace(request, chain=load_chain(request.target, request.merchant, request.channel))
    amount, currency = _resolve_max_amount(request, admission.limits)
    with token_limits.reserve_amount(admission.token, admission.limits, amount, currency) as reservation:
        payment = process_follow_up(request)
        reservation.payment = payment.id
    return responder.build_response(payment)


def _resolve_max_amount(request: FollowUpRequest, limits: TokenLimits | None) -> tuple[Decimal | None, str | None]:
    """(amount, currency) that a follow-up moves at most, for a token with limits. A reversal without an amount takes
    all that remains: no more than the followed payment's amount; of an authorization, with its increments."""
    chain = request.chain
    target = chain.find(request.target) if chain is not None and request.target is not None else None
    if chain is None or target is None:
        return None, None
    if (amount := request.parameters.get("amount")) is not None:
        return Decimal(amount), target.currency
    most = chain.authorization.authorized if target.payment_type == "PA" else target.amount
    token_limits.check_token_limits(limits, {"amount": str(most)})
    return most, target.currency
