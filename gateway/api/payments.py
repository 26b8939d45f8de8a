"""Payments over HTTP: each method enters through the door, calls one verb and answers.

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
from gateway.models import Payment
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
    """A payment in the envelope, and 200 or 400 by the family of its code."""
    code = resolve_result_code(payment)
    return result_codes.http_status(code), idempotent_responses.render_response_body(
        payment, build_envelope_fields(context.trace.ndc), {}, tell
    )


def render_ignored_parameters(parameters: Parameters) -> dict[str, Any]:
    """``ignoredParameters`` of an answer: the names that were sent and are not known. Empty where there are none."""
    return {"ignoredParameters": list(parameters.ignored)} if parameters.ignored else {}


class PaymentResponder:
    """How one request answers its payment. With an idempotency key the first answer is kept, and told again as it was:
    its names stand in the order in which the database keeps them."""

    def __init__(
        self, context: RequestContext, parameters: Parameters, tell: ResponseRenderer = render_payment
    ) -> None:
        self.context = context
        self.parameters = parameters
        self.tell = tell
        self._made: tuple[int, str] | None = None
        self._of: object = None

    def keep(self, payment: Payment) -> tuple[int, str]:
        """Answer ``payment``; the HTTP status, and what its idempotency key keeps of the answer."""
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
        # Only a payment stays as it is: what is told of a registration may change.
        return status, idempotent_responses.compact_response(
            payment, shared, more, text
        ) if self.tell is render_payment else text

    def response(self, payment: Payment) -> HttpResponse:
        # What was made goes out with the statement that was to write it. When somebody else was faster, nothing was
        # written, the payment was read again, and what it is now is told.
        if self._made is not None and payment.answer is self._of:
            return _build_stored_response(*self._made, self.context)
        body = idempotent_responses.render_response_body(
            payment, build_envelope_fields(self.context.trace.ndc), self._more(payment), self.tell
        )
        return Response(
            body, status=result_codes.http_status(resolve_result_code(payment)), headers=self.context.headers
        )

    def _more(self, payment: Payment) -> dict[str, Any]:
        """What the answer says about the request, and the payment does not know."""
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
    """The answer that an idempotency key was given, once more."""
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
    # Its worker died before it could answer: what is true now is told.
    status, body = build_payment_response(payment, context, tell)
    return _build_stored_response(status, encode_json(body).decode(), context, replayed=True)


class IdempotentPostView(ApiView):
    """What the POSTs share: an idempotency key is looked up first and claimed with the payment."""

    tell: ClassVar[ResponseRenderer] = staticmethod(render_payment)

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
        raise NotImplementedError


def build_idempotency_context(claim: IdempotencyClaim | None, responder: PaymentResponder) -> IdempotencyContext | None:
    return None if claim is None else IdempotencyContext(claim=claim, respond=responder.keep)


def process_within_token_limits(asked: PaymentRequest, context: RequestContext) -> Payment:
    """Make a first payment, counted towards its token's own limit of 24 hours. Raises TokenLimitError."""
    admission, money = context.admission, asked.money
    with token_limits.reserve_amount(admission.token, admission.limits, money.amount, money.currency) as reservation:
        payment = process_payment(asked)
        reservation.payment = payment.id
    return payment


class PaymentsView(IdempotentPostView):
    """POST /v1/payments."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": PAYMENT_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        admission = context.admission
        channel = admission.channel
        if channel is None and admission.entity is not None:
            channel = choose_channel(admission.merchant, context.pairs)
        now = clock.merchant_now(admission.merchant)
        parameters = self.parse(context, channel, build_condition_facts(channel, now))
        if "referenceUuid" in parameters:
            return respond_to_follow_up(context, parameters["referenceUuid"], parameters, now, claim)
        if channel is None:
            raise RequestRefusedError(CHANNEL_NOT_CONFIGURED_CODE)
        responder = PaymentResponder(context, parameters)
        asked = build_payment_request(
            parameters,
            merchant=admission.merchant,
            channel=channel,
            now=now,
            trace=context.trace,
            idempotency=build_idempotency_context(claim, responder),
        )
        return responder.response(process_within_token_limits(asked, context))


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
    """A follow-up of the payment ``target`` names, by path or by referenceUuid."""
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
    """What a follow-up moves at most, and in which currency, for a token with limits: a reversal without an amount
    takes all that remains, which is no more than the payment it speaks of."""
    if limits is None:
        return None, None
    amount = request.parameters.get("amount")
    target = Payment.objects.filter(pk=request.target, merchant=request.merchant.pk).only("amount", "currency").first()
    if target is None:
        return None, None
    if amount is None:
        token_limits.check_token_limits(limits, {"amount": str(target.amount)})
    return (Decimal(amount) if amount is not None else target.amount), target.currency
