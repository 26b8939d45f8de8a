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

from gateway import clock, identifiers, results
from gateway.api.door import Door, Visit
from gateway.api.envelope import docs_of, shared_part, to_json
from gateway.catalogue.endpoints import FOLLOW_UP, PAYMENTS, STATUS, Endpoint
from gateway.catalogue.parse import Parameters
from gateway.models import Payment
from gateway.payments import kept, token_limits
from gateway.payments.answer import code_of, payment_object
from gateway.payments.dispatch import choose_channel
from gateway.payments.follow_up import FollowUpRequest, process_follow_up
from gateway.payments.idempotency import HEADER, Claim, StoredAnswer, claim_of, in_progress, looked_up
from gateway.payments.intake import facts_of, first_payment
from gateway.payments.process import process
from gateway.payments.refusal import NOT_SET_UP, Refused
from gateway.payments.request import Idempotency, PaymentRequest
from gateway.payments.store import KeyTaken
from gateway.tokens import TokenLimits

NOT_FOUND = "700.400.580"
REPLAYED = "Idempotent-Replayed"
Telling = kept.Telling


def answer_of(payment: Payment, visit: Visit, tell: Telling = payment_object) -> tuple[int, dict[str, Any]]:
    """A payment in the envelope, and 200 or 400 by the family of its code."""
    code = code_of(payment)
    return results.http_status(code), kept.told(payment, shared_part(visit.trace.ndc), {}, tell)


def ignored(parameters: Parameters) -> dict[str, Any]:
    """``ignoredParameters`` of an answer: the names that were sent and are not known. Empty where there are none."""
    return {"ignoredParameters": list(parameters.ignored)} if parameters.ignored else {}


class Answering:
    """How one request answers its payment. With an idempotency key the first answer is kept, and told again as it was:
    its names stand in the order in which the database keeps them."""

    def __init__(self, visit: Visit, parameters: Parameters, tell: Telling = payment_object) -> None:
        self.visit = visit
        self.parameters = parameters
        self.tell = tell
        self._made: tuple[int, str] | None = None
        self._of: object = None

    def keep(self, payment: Payment) -> tuple[int, str]:
        """Answer ``payment``; the HTTP status, and what its idempotency key keeps of the answer."""
        payment.request, payment.answer = kept.in_stored_order(payment.request), kept.in_stored_order(payment.answer)
        shared, more = shared_part(self.visit.trace.ndc), self._more(payment)
        status, text = (
            results.http_status(code_of(payment)),
            to_json(kept.told(payment, shared, more, self.tell)).decode(),
        )
        self._made, self._of = (status, text), payment.answer
        # Only a payment stays as it is: what is told of a registration may change.
        return status, kept.keep(payment, shared, more, text) if self.tell is payment_object else text

    def response(self, payment: Payment) -> HttpResponse:
        # What was made goes out with the statement that was to write it. When somebody else was faster, nothing was
        # written, the payment was read again, and what it is now is told.
        if self._made is not None and payment.answer is self._of:
            return _stored(*self._made, self.visit)
        body = kept.told(payment, shared_part(self.visit.trace.ndc), self._more(payment), self.tell)
        return Response(body, status=results.http_status(code_of(payment)), headers=self.visit.headers)

    def _more(self, payment: Payment) -> dict[str, Any]:
        """What the answer says about the request, and the payment does not know."""
        more: dict[str, Any] = {}
        refusals = self.parameters.refusals
        if refusals and payment.result_code == refusals[0].code:
            docs = docs_of(self.visit.endpoint)
            more["parameterErrors"] = [error.as_json(docs) for error in refusals]
        return more | ignored(self.parameters)


def _stored(status: int, body: str, visit: Visit, *, replayed: bool = False) -> HttpResponse:
    headers = {**visit.headers, REPLAYED: "true"} if replayed else visit.headers
    return HttpResponse(body, status=status, content_type="application/json; charset=utf-8", headers=headers)


def replay(known: StoredAnswer, visit: Visit, tell: Telling) -> HttpResponse:
    """The answer that an idempotency key was given, once more."""
    if known.body is not None and kept.is_whole(known.body):
        return _stored(known.status, known.body, visit, replayed=True)
    payment = Payment.objects.get(pk=known.payment)
    if known.body is not None:
        return _stored(known.status, to_json(kept.again(payment, known.body)).decode(), visit, replayed=True)
    # Its worker died before it could answer: what is true now is told.
    status, body = answer_of(payment, visit, tell)
    return _stored(status, to_json(body).decode(), visit, replayed=True)


class PaymentDoor(Door):
    """What the POSTs share: an idempotency key is looked up first and claimed with the payment."""

    tell: ClassVar[Telling] = staticmethod(payment_object)

    def post(self, request: Request, target: str = "") -> HttpResponse:
        header, path = request.headers.get(HEADER), request.path
        visit = self.enter(request, target or None, key=looked_up(header, method="POST", path=path))
        claim = claim_of(header, visit.pairs, token=visit.admission.token, method="POST", path=path)
        if claim is None:
            return self.pay(visit, target, None)
        if (known := claim.find(visit.admission.kept)) is not None:
            return replay(known, visit, self.tell)
        try:
            return self.pay(visit, target, claim)
        except KeyTaken:
            raise in_progress(claim.key) from None

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        raise NotImplementedError


def idempotency_of(claim: Claim | None, answering: Answering) -> Idempotency | None:
    return None if claim is None else Idempotency(claim=claim, respond=answering.keep)


def process_within_limits(asked: PaymentRequest, visit: Visit) -> Payment:
    """Make a first payment, counted towards its token's own limit of 24 hours. Raises TokenLimitError."""
    admission, money = visit.admission, asked.money
    with token_limits.reserved(admission.token, admission.limits, money.amount, money.currency) as reservation:
        payment = process(asked)
        reservation.payment = payment.id
    return payment


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
        asked = first_payment(
            parameters, merchant=admission.merchant, channel=channel, now=now, trace=visit.trace,
            idempotency=idempotency_of(claim, answering),
        )  # fmt: skip
        return answering.response(process_within_limits(asked, visit))


class PaymentView(PaymentDoor):
    """GET and POST /v1/payments/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": STATUS, "POST": FOLLOW_UP}

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target, reads=True)
        parameters = self.parse(visit, visit.admission.channel)
        payment = visit.admission.payment
        if payment is None:
            raise Refused(NOT_FOUND, status=404)
        status, body = answer_of(payment, visit)
        return Response(body | ignored(parameters), status=status, headers=visit.headers)

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        admission = visit.admission
        now = clock.now(admission.merchant)
        parameters = self.parse(visit, admission.channel, facts_of(admission.channel, now))
        return follow_up(visit, target, parameters, now, claim)


def follow_up(visit: Visit, target: str, parameters: Parameters, now: datetime, claim: Claim | None) -> HttpResponse:
    """A follow-up of the payment ``target`` names, by path or by referenceUuid."""
    admission = visit.admission
    answering = Answering(visit, parameters)
    request = FollowUpRequest(
        payment=identifiers.row_id(),
        target=identifiers.parse_id(target),
        merchant=admission.merchant,
        channel=admission.channel,
        parameters=parameters,
        now=now,
        trace=visit.trace,
        idempotency=idempotency_of(claim, answering),
    )
    amount, currency = _largest_amount(request, admission.limits)
    with token_limits.reserved(admission.token, admission.limits, amount, currency) as reservation:
        payment = process_follow_up(request)
        reservation.payment = payment.id
    return answering.response(payment)


def _largest_amount(request: FollowUpRequest, limits: TokenLimits | None) -> tuple[Decimal | None, str | None]:
    """What a follow-up moves at most, and in which currency, for a token with limits: a reversal without an amount
    takes all that remains, which is no more than the payment it speaks of."""
    if limits is None:
        return None, None
    amount = request.parameters.get("amount")
    target = Payment.objects.filter(pk=request.target, merchant=request.merchant.pk).only("amount", "currency").first()
    if target is None:
        return None, None
    if amount is None:
        token_limits.check(limits, {"amount": str(target.amount)})
    return (Decimal(amount) if amount is not None else target.amount), target.currency
