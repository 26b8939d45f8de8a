"""Checkouts over HTTP: the merchant's server creates, updates and reads; the shopper's browser pays.

A request without an Authorization header is a browser's: the checkout's id is its capability, and it may send and
learn what decisions, section 7, allow. Source: Part A, Endpoints; rulings D3, D4, D11, D12, D19, D20.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final
from uuid import UUID

from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from checkout import describe, paying, session
from checkout.choice import refuse_what_nobody_can_pay
from checkout.form import OVERRIDE, Form
from checkout.models import Checkout
from gateway import clock, languages, widget_hash
from gateway.api import admission as doorkeeper
from gateway.api.admission import Admission
from gateway.api.door import Visit, decoded, log_request, warn
from gateway.api.envelope import envelope, to_json
from gateway.api.payments import Answering, PaymentDoor, Telling, answer_of, idempotency_of, ignored
from gateway.catalogue.endpoints import (
    CHECKOUT,
    CHECKOUT_REGISTRATION,
    CHECKOUT_STATUS,
    PAY_CHECKOUT,
    STORE_CHECKOUT,
    UPDATE_CHECKOUT,
    Endpoint,
)
from gateway.catalogue.formats import boolean
from gateway.catalogue.parse import INVALID, Invalid, ParameterError, Parameters, Policy, shorten
from gateway.catalogue.sent import Pairs
from gateway.masking import mask_text
from gateway.payments import token_limits
from gateway.payments.answer import registration_object
from gateway.payments.dispatch import choose_channel
from gateway.payments.idempotency import Claim
from gateway.payments.intake import facts_of
from gateway.payments.refusal import NOT_SET_UP, Refused
from gateway.payments.request import Trace
from gateway.payments.store import KeyTaken
from gateway.rows import Write

CREATED: Final = "000.200.100"
UPDATED: Final = "000.200.101"
JSON: Final = "application/json; charset=utf-8"
CORS: Final = {"Access-Control-Allow-Origin": "*"}
"""The widget's public routes are read from any page (D19); they know no cookies."""
MOST_FORM_BYTES: Final = 256 * 1024
"""A page's form is small: the longest wallet tokens take 16 KiB."""
_NOBODY: Final = UUID(int=0)


class CheckoutDoor(PaymentDoor):
    """What every route of checkouts shares: their ids stand in no log."""

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        found = super().initialize_request(request, *args, **kwargs)
        target = (request.resolver_match.kwargs if request.resolver_match else {}).get("target")
        if target:
            path = self.trace.path.replace(target, session.hashed(target))
            self.trace = _moved(self.trace, path=path)
        return found

    def own(self, visit: Visit, target: str) -> Checkout:
        """The asker's checkout of that id. Raises Refused (404)."""
        if visit.admission.entity is None:
            raise Invalid([ParameterError(name="entityId", message="is required", known=True)])
        where = {"merchant": visit.admission.merchant.pk}
        if visit.admission.channel is not None:
            where["channel"] = visit.admission.channel.pk
        return session.find_open(target, **where)


class CheckoutsView(CheckoutDoor):
    """POST /v1/checkouts."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": CHECKOUT}

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        admission = visit.admission
        channel = admission.channel
        if channel is None and admission.entity is not None:
            channel = choose_channel(admission.merchant, visit.pairs)
        now = clock.now(admission.merchant)
        parameters = self.parse(visit, channel, facts_of(channel, now))
        _refuse_refused(parameters)
        if channel is None:
            raise Refused(NOT_SET_UP)
        row, write = session.create(parameters, merchant=admission.merchant, channel=channel, now=now)
        body = _changed(row, CREATED, parameters)
        _run(write, row, body, claim)
        response = Response(body, headers=visit.headers)
        self.trace = _moved(self.trace, path=f"{self.trace.path}/{session.hashed(row.public_id)}")
        log_request(_with(visit, self.trace), response, CHECKOUT)
        return response


class CheckoutView(CheckoutDoor):
    """POST /v1/checkouts/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": UPDATE_CHECKOUT}

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        for _ in range(paying.MOST_TRIES):
            row = self.own(visit, target)
            parameters = _as_it_will_be(row, visit.pairs)
            token_limits.check(visit.admission.limits, parameters.values, pays_later=True)
            _refuse_refused(parameters)
            body = _changed(row, UPDATED, parameters)
            if _run(session.update(row, parameters), row, body, claim):
                warn(visit, parameters)
                response = Response(body, headers=visit.headers)
                log_request(visit, response, UPDATE_CHECKOUT)
                return response
        raise Refused(session.IN_PROGRESS)


class ShopperDoor(CheckoutDoor):
    """POST and GET of a checkout's result. POST without a token is a browser's."""

    kind: ClassVar[str]
    shopper: bool = False

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """A wrong method is told to anybody: the path is public."""

    def post(self, request: Request, target: str = "") -> HttpResponse:
        if "Authorization" in request.headers:
            return super().post(request, target)
        self.shopper = True
        visit, row, form = self._let_in(request, target)
        status, body = describe.submitted(row, paying.pay(row, paying.Submission(form=form, trace=visit.trace)))
        shared = envelope(body["result"]["code"], self.trace.request.hex)
        body |= {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}
        return Response(body, status=status, headers={**visit.headers, **CORS})

    def _let_in(self, request: Request, target: str) -> tuple[Visit, Checkout, Form]:
        http: HttpRequest = request._request
        # Whoever knows no open checkout has nothing read.
        row = session.find_open(target)
        self.trace = _moved(self.trace, entity=row.channel_id)
        operation = self.endpoints["POST"].operation
        headers = doorkeeper.throttle_shopper(row.id, row.channel, self.trace.ip, operation, self.trace.at)
        body, fault = self.read(http, MOST_FORM_BYTES)
        if fault:
            raise fault
        pairs = decoded(body)
        admission = Admission(token=_NOBODY, merchant=row.merchant, channel=row.channel, entity=row.channel_id,
                              payment=None, kept=None)  # fmt: skip
        self.visit = Visit(
            admission=admission, pairs=pairs, trace=self.trace, headers=headers, endpoint=self.endpoints["POST"].name
        )
        self._of_kind(row)
        supplied = {
            "customer.ip": self.trace.ip or "",
            "customer.browser.acceptHeader": _printable(http.headers.get("Accept", "*/*")),
            "customer.browser.userAgent": _printable(http.headers.get("User-Agent", "")),
        }
        return self.visit, row, Form(pairs=pairs, supplied=supplied, literal=_is_strict(row))

    def pay(self, visit: Visit, target: str, claim: Claim | None) -> HttpResponse:
        row = self.own(visit, target)
        self._of_kind(row)
        answering = Answering(visit, Parameters(), self.tell)
        submission = paying.Submission(
            form=Form(pairs=visit.pairs, trusted=True, literal=_is_strict(row)), trace=visit.trace,
            idempotency=idempotency_of(claim, answering),
        )  # fmt: skip
        prepared, limits = session.values_of(row), visit.admission.limits
        token_limits.check(limits, prepared)
        amount = Decimal(prepared["amount"]) if "amount" in prepared else None
        currency = prepared.get("currency")
        with token_limits.reserved(visit.admission.token, limits, amount, currency) as reservation:
            payment = paying.pay(row, submission)
            reservation.payment = payment.id
        return answering.response(payment)

    def get(self, request: Request, target: str) -> Response:
        visit = self.enter(request)
        passed_over = ignored(self.parse(visit, visit.admission.channel))
        row = self.own(visit, target)
        self._of_kind(row)
        if row.payment is None:
            return Response(envelope(describe.WAITING, visit.trace.ndc, **passed_over), headers=visit.headers)
        session.fetched(row)
        status, body = answer_of(row.payment, visit, tell=self.tell)
        return Response(body | passed_over, status=status, headers=visit.headers)

    def _of_kind(self, row: Checkout) -> None:
        if row.kind != self.kind:
            raise Refused(INVALID, more=f"this checkout is for a {row.kind}: use the path that ends with /{row.kind}")

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        if self.shopper:
            response.data["ndc"] = self.trace.request.hex
            if response.status_code < 500:
                response.data |= {"state": _state_after(response), "redirect": None, "returnTo": None}
            for name, value in CORS.items():
                response.headers[name] = value
        return response


class CheckoutPaymentView(ShopperDoor):
    """POST and GET /v1/checkouts/{id}/payment."""

    kind = Checkout.Kind.PAYMENT
    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": CHECKOUT_STATUS, "POST": PAY_CHECKOUT}


class CheckoutRegistrationView(ShopperDoor):
    """POST and GET /v1/checkouts/{id}/registration: the registration, without a paymentType (D5)."""

    kind = Checkout.Kind.REGISTRATION
    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": CHECKOUT_REGISTRATION, "POST": STORE_CHECKOUT}
    tell: ClassVar[Telling] = staticmethod(registration_object)


class PublicDoor(CheckoutDoor):
    """GET for the widget's script, on any page. ``zips``: its answer is long."""

    zips: ClassVar[bool] = False
    http_method_names: ClassVar[list[str]] = ["get"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """The checkout's id is the capability."""

    @property
    def allowed_methods(self) -> list[str]:
        return ["GET"]

    def get(self, request: Request, target: str) -> HttpResponse:
        row = session.find(target)
        if row is None:
            raise session.none_found()
        headers = doorkeeper.throttle_shopper(row.id, row.channel, self.trace.ip, doorkeeper.WIDGET, self.trace.at)
        code, fields = self.tell(row, request._request)
        body = envelope(code, self.trace.ndc, **fields)
        if self.zips and "gzip" in request.headers.get("Accept-Encoding", ""):
            # Whoever asks knows the checkout's id already: there is no secret to guess by the length.
            zipped = gzip.compress(to_json(body), mtime=0)
            return HttpResponse(zipped, content_type=JSON, headers={**headers, "Content-Encoding": "gzip"})
        return Response(body, headers=headers)

    def tell(self, row: Checkout, request: HttpRequest) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in CORS.items():
            response[name] = value
        return response


class ConfigView(PublicDoor):
    """GET /v1/checkouts/{id}/config: how to draw the form."""

    zips = True

    def tell(self, row: Checkout, request: HttpRequest) -> tuple[str, dict[str, Any]]:
        if session.is_expired(row):
            raise session.none_found()
        wanted = request.GET.get("brands", "").split() or list(describe.DEFAULT_BRANDS)
        locale = languages.known(request.GET.get("locale", "")) or languages.of_header(
            request.headers.get("Accept-Language", "")
        )
        asks = boolean(request.GET.get("billing", "")) == "true"
        return "000.000.100", describe.config(row, wanted, locale, asks_address=asks)


class StateView(PublicDoor):
    """GET /v1/checkouts/{id}/state: how it stands; no payment object."""

    def tell(self, row: Checkout, request: HttpRequest) -> tuple[str, dict[str, Any]]:
        return describe.last_code(row), describe.state(row)


def _run(write: Write, row: Checkout, body: Mapping[str, Any], claim: Claim | None) -> bool:
    """Write a checkout together with what its idempotency key answers from now on. Raises KeyTaken."""
    if claim is not None:
        claim.insert(write, row.id, (200, to_json(body).decode()))
    try:
        return write.run()
    except IntegrityError as fault:
        if getattr(getattr(fault.__cause__, "diag", None), "constraint_name", "") != "gateway_idempotencykey_pkey":
            raise
        raise KeyTaken from None


def _changed(row: Checkout, code: str, parameters: Parameters) -> dict[str, Any]:
    """The answer of a checkout that was created or updated: its id is the ndc too (D3). ``parameters``: all of the
    checkout, as they will be."""
    fields: dict[str, Any] = {"id": row.public_id}
    if parameters.get("integrity") == "true":
        fields["integrity"] = widget_hash.integrity()
    return envelope(code, row.public_id, **fields, **ignored(parameters))


def _as_it_will_be(row: Checkout, pairs: Pairs) -> Parameters:
    """The checkout's parameters with what is sent now in place of the earlier values. Raises Invalid."""
    fixed = [name for name, value in pairs if value and name.startswith(OVERRIDE)]
    taken = [pair for pair in pairs if not pair[0].startswith(OVERRIDE)]
    # A duplicate within the request stays one: the parser tells it.
    sent = {name for name, _ in taken}
    kept = [(name, value) for name, value in session.values_of(row).items() if name not in sent]
    lenient = row.channel.parameters == Policy.LENIENT
    refused = [] if lenient else [ParameterError(name=shorten(mask_text(name)), message=_FIXED) for name in fixed]
    facts = facts_of(row.channel, clock.now(row.merchant))
    try:
        parameters = CHECKOUT.catalogue.parse(
            Pairs([*kept, *taken]), facts=facts, policy=row.channel.parameters, masks=row.channel.mask_card_data
        )
    except Invalid as fault:
        raise Invalid([*refused, *fault.errors]) from None
    if refused:
        raise Invalid(refused)
    parameters.ignored += tuple(shorten(mask_text(name)) for name in fixed)
    return parameters


_FIXED: Final = "is not an allowed parameter here: it is sent when the checkout is created"


def _is_strict(row: Checkout) -> bool:
    return bool(row.channel.parameters == Policy.STRICT)


def _refuse_refused(parameters: Parameters) -> None:
    """A well-formed value that is refused answers with its own code; there is no payment yet to decline."""
    if parameters.refusals:
        raise Refused(parameters.refusals[0].code, parameters.refusals)
    refuse_what_nobody_can_pay(parameters.values)


def _state_after(response: Response) -> str:
    if response.status_code == 404:
        return "expired"
    return "processing" if response.data["result"]["code"] == session.IN_PROGRESS else "open"


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())


def _moved(trace: Trace, *, path: str | None = None, entity: UUID | None = None) -> Trace:
    return Trace(
        request=trace.request, method=trace.method, path=path or trace.path, at=trace.at, ip=trace.ip,
        entity=entity or trace.entity, token=trace.token, started=trace.started,
    )  # fmt: skip


def _with(visit: Visit, trace: Trace) -> Visit:
    return Visit(
        admission=visit.admission, pairs=visit.pairs, trace=_moved(visit.trace, path=trace.path),
        headers=visit.headers, endpoint=visit.endpoint,
    )  # fmt: skip
