"""HTTP API of checkouts: the merchant's server creates, updates and reads; the shopper's browser pays.

A request without an Authorization header comes from a browser: the checkout's id is its capability, and it may send and
read what decisions, section 7, allow. Source: Part A, Endpoints; rulings D3, D4, D11, D12, D19, D20.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar, Final
from uuid import UUID

from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from checkout import parts, payment_attempts, session, widget_responses
from checkout.brand_selection import check_brand_payable
from checkout.form_parameters import OVERRIDE_TYPE_PREFIX, SubmittedForm, split_shown_rest
from checkout.models import Checkout
from gateway import widget_hash
from gateway.api import token_admission
from gateway.api.base_view import RequestContext, add_warning_header, decode_form, log_request
from gateway.api.envelope import build_envelope
from gateway.api.payments import (
    IdempotentPostView,
    PaymentResponder,
    build_payment_response,
)
from gateway.api.token_admission import Admission
from gateway.catalogue.endpoints import (
    CHECKOUT_REGISTRATION_ENDPOINT,
    CHECKOUT_STATUS_ENDPOINT,
    CREATE_CHECKOUT_ENDPOINT,
    PAY_CHECKOUT_ENDPOINT,
    STORE_CHECKOUT_ENDPOINT,
    UPDATE_CHECKOUT_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.errors import HIDDEN_VALUE
from gateway.catalogue.formats import normalize_boolean
from gateway.catalogue.parse import (
    INVALID_PARAMETER_CODE,
    InvalidParametersError,
    ParameterError,
    Parameters,
    UnknownNamePolicy,
    shorten_reported_value,
)
from gateway.catalogue.typed_pairs import ParameterPairs
from gateway.core import clock, languages
from gateway.core.brands import find_issuer
from gateway.core.compact_json import encode_json
from gateway.core.masking import mask_text
from gateway.core.money import format_amount
from gateway.core.result_codes import AWAITING_SHOPPER_CODE, CONCURRENT_UPDATE_CODE
from gateway.core.secret import reveal_text
from gateway.db.statement import WriteStatement
from gateway.models import Payment
from gateway.payments import token_limits
from gateway.payments.channel_dispatch import choose_channel
from gateway.payments.idempotency import IdempotencyClaim
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError
from gateway.payments.rendering import render_registration_change
from gateway.payments.request_builder import build_condition_facts
from gateway.payments.responses import RenderedResponse, render_ignored_parameters
from gateway.payments.store import IdempotencyKeyTakenError

CHECKOUT_CREATED_CODE: Final = "000.200.100"
CHECKOUT_UPDATED_CODE: Final = "000.200.101"
API_JSON_TYPE: Final = "application/json; charset=utf-8"
CORS_HEADERS: Final = {"Access-Control-Allow-Origin": "*"}
"""The widget's public routes may be read from any page (D19); they use no cookies."""
MAX_CHECKOUT_FORM_BYTES: Final = 256 * 1024
"""A page's form is small: the longest wallet tokens take 16 KiB."""
CARD_NUMBER_FIELD: Final = "card.number"
_NOBODY: Final = UUID(int=0)
_BIN6: Final = re.compile("[0-9]{6}")


class CheckoutApiView(IdempotentPostView):
    """Shared by all checkout routes: logs have a hash of the checkout's id."""

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        found = super().initialize_request(request, *args, **kwargs)
        target = (request.resolver_match.kwargs if request.resolver_match else {}).get("target")
        if target:
            path = self.trace.path.replace(target, session.hash_checkout_id(target))
            self.trace = replace(self.trace, path=path)
        return found

    def find_own_checkout(self, context: RequestContext, target: str) -> Checkout:
        """The caller's checkout of that id. Raises RequestRefusedError (404)."""
        if context.admission.entity is None:
            raise InvalidParametersError([ParameterError(name="entityId", message="is required", known=True)])
        where = {"merchant": context.admission.merchant.pk}
        if context.admission.channel is not None:
            where["channel"] = context.admission.channel.pk
        return session.find_open_checkout(target, **where)


class CreateCheckoutView(CheckoutApiView):
    """POST /v1/checkouts."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": CREATE_CHECKOUT_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        admission = context.admission
        channel = admission.channel
        if channel is None and admission.entity is not None:
            channel = choose_channel(admission.merchant, context.pairs)
        now = clock.merchant_now(admission.merchant)
        parameters = self.parse(context, channel, build_condition_facts(channel, now))
        _check_refusals(parameters)
        if channel is None:
            raise RequestRefusedError(CHANNEL_NOT_CONFIGURED_CODE)
        row, write = session.create_checkout(parameters, merchant=admission.merchant, channel=channel, now=now)
        body = _render_checkout(row, CHECKOUT_CREATED_CODE, parameters)
        write_with_idempotency(write, row.id, body, claim)
        response: HttpResponse = Response(body, headers=context.headers)
        self.trace = replace(self.trace, path=f"{self.trace.path}/{session.hash_checkout_id(row.public_id)}")
        log_request(replace(context, trace=self.trace), response, CREATE_CHECKOUT_ENDPOINT)
        return response


class UpdateCheckoutView(CheckoutApiView):
    """POST /v1/checkouts/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": UPDATE_CHECKOUT_ENDPOINT}

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        for _ in range(payment_attempts.MAX_CHECKOUT_UPDATE_TRIES):
            row = self.find_own_checkout(context, target)
            parameters = _merge_parameters(row, context.pairs)
            token_limits.check_token_limits(context.admission.limits, parameters.values, pays_later=True)
            _check_refusals(parameters)
            body = _render_checkout(row, CHECKOUT_UPDATED_CODE, parameters)
            if write_with_idempotency(session.update_checkout(row, parameters), row.id, body, claim):
                add_warning_header(context, parameters)
                response: HttpResponse = Response(body, headers=context.headers)
                log_request(context, response, UPDATE_CHECKOUT_ENDPOINT)
                return response
        raise RequestRefusedError(CONCURRENT_UPDATE_CODE)


class ShopperApiView(CheckoutApiView):
    """POST and GET of a checkout's result. POST without a token is sent by a browser."""

    kind: ClassVar[str]
    shopper: bool = False
    shopper_checkout: UUID | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """No authentication here, so a wrong method is answered to anyone: the path is public."""

    def post(self, request: Request, target: str = "") -> HttpResponse:
        if "Authorization" in request.headers:
            return super().post(request, target)
        self.shopper = True
        context, row, submission = self._admit_shopper(request, target)
        status, body = widget_responses.render_submission(row, payment_attempts.pay_checkout(row, submission))
        shared = build_envelope(body["result"]["code"], self.trace.request.hex)
        body |= {name: shared[name] for name in ("buildNumber", "timestamp", "ndc")}
        response: HttpResponse = Response(body, status=status, headers={**context.headers, **CORS_HEADERS})
        return response

    def _admit_shopper(
        self, request: Request, target: str
    ) -> tuple[RequestContext, Checkout, payment_attempts.CheckoutSubmission]:
        http: HttpRequest = request._request
        # Without an open checkout the body is not even read.
        row = session.find_open_checkout(target)
        self.shopper_checkout = row.id
        self.trace = replace(self.trace, entity=row.channel_id)
        operation = self.endpoints["POST"].operation
        headers = token_admission.throttle_shopper_request(row.id, row.channel, self.trace.ip, operation, self.trace.at)
        body, fault = self.read_body(http, MAX_CHECKOUT_FORM_BYTES)
        if fault:
            raise fault
        pairs = decode_form(body)
        admission = Admission(
            token=_NOBODY,
            merchant=row.merchant,
            channel=row.channel,
            entity=row.channel_id,
            payment=None,
            idempotency_row=None,
        )
        self.context = RequestContext(
            admission=admission, pairs=pairs, trace=self.trace, headers=headers, endpoint=self.endpoints["POST"].name
        )
        self._check_kind(row)
        supplied = {
            "customer.ip": self.trace.ip or "",
            "customer.browser.acceptHeader": _to_printable(http.headers.get("Accept", "*/*")),
            "customer.browser.userAgent": _to_printable(http.headers.get("User-Agent", "")),
        }
        pairs, shown_rest = split_shown_rest(pairs)
        form = SubmittedForm(pairs=pairs, supplied=supplied, literal=_is_parsing_strict(row))
        submission = payment_attempts.CheckoutSubmission(form=form, trace=self.context.trace, max_amount=shown_rest)
        return self.context, row, submission

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        row = self.find_own_checkout(context, target)
        self._check_kind(row)
        responder = PaymentResponder(context, Parameters(), claim, self.renderer)
        submission = payment_attempts.CheckoutSubmission(
            form=SubmittedForm(pairs=context.pairs, trusted=True, literal=_is_parsing_strict(row)),
            trace=context.trace,
            idempotency=responder.idempotency,
        )
        limits = context.admission.limits
        prepared = {name: reveal_text(value) for name, value in session.load_checkout_values(row).items()}
        if (held := parts.find_held_amount(row)) is not None:
            prepared["amount"] = format_amount(held.rest)
        token_limits.check_token_limits(limits, prepared)
        amount = Decimal(prepared["amount"]) if "amount" in prepared else None
        currency = prepared.get("currency")
        submission = replace(submission, max_amount=amount)
        with token_limits.reserve_amount(context.admission.token, limits, amount, currency) as reservation:
            payment = payment_attempts.pay_checkout(row, submission)
            reservation.payment = payment.id
        return responder.build_response(payment)

    def get(self, request: Request, target: str) -> Response:
        context = self.admit_request(request)
        passed_over = render_ignored_parameters(self.parse(context, context.admission.channel))
        row = self.find_own_checkout(context, target)
        self._check_kind(row)
        if row.payment is None:
            return Response(
                build_envelope(AWAITING_SHOPPER_CODE, context.trace.ndc, **passed_over),
                headers=context.headers,
            )
        if request.META["REQUEST_METHOD"] == "GET":  # HEAD has not read it
            session.mark_result_fetched(row)
        status, body = build_payment_response(row.payment, context, renderer=self.renderer)
        return Response(body | passed_over, status=status, headers=context.headers)

    def _check_kind(self, row: Checkout) -> None:
        if row.kind != self.kind:
            raise RequestRefusedError(
                INVALID_PARAMETER_CODE,
                more=f"this checkout is for a {row.kind}: use the path that ends with /{row.kind}",
            )

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        if self.shopper:
            response.data["ndc"] = self.trace.request.hex
            if response.status_code < 500:
                response.data |= {"state": _choose_state_after(response), "redirect": None, "returnTo": None}
                _hide_card_number(response)
                if self.shopper_checkout is not None:
                    response.data["attempts"] = widget_responses.count_attempts(self.shopper_checkout)
            for name, value in CORS_HEADERS.items():
                response.headers[name] = value
        return response


class CheckoutPaymentView(ShopperApiView):
    """POST and GET /v1/checkouts/{id}/payment."""

    kind = Checkout.Kind.PAYMENT
    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": CHECKOUT_STATUS_ENDPOINT, "POST": PAY_CHECKOUT_ENDPOINT}


class CheckoutRegistrationView(ShopperApiView):
    """POST and GET /v1/checkouts/{id}/registration: the registration, without a paymentType (D5)."""

    kind = Checkout.Kind.REGISTRATION
    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": CHECKOUT_REGISTRATION_ENDPOINT, "POST": STORE_CHECKOUT_ENDPOINT}
    renderer: ClassVar[staticmethod[[Payment], dict[str, Any]]] = staticmethod(render_registration_change)


class PublicApiView(CheckoutApiView):
    """A route of the widget's script, which any page may call."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """No authentication: the checkout's id is the capability."""

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in CORS_HEADERS.items():
            response[name] = value
        return response


class CheckoutReadView(PublicApiView):
    """GET of what a checkout tells the widget. ``is_compressed``: the answer is long, and may be sent gzipped."""

    is_compressed: ClassVar[bool] = False
    http_method_names: ClassVar[list[str]] = ["get"]

    def get(self, request: Request, target: str) -> HttpResponse:
        row = session.find_checkout(target)
        if row is None:
            raise session.build_checkout_not_found()
        headers = token_admission.throttle_shopper_request(
            row.id, row.channel, self.trace.ip, token_admission.WIDGET_OPERATION, self.trace.at
        )
        code, fields = self.render_fields(row, request._request)
        body = build_envelope(code, self.trace.ndc, **fields)
        if self.is_compressed and "gzip" in request.headers.get("Accept-Encoding", ""):
            # No compression side channel: the caller knows the checkout's id, the only secret here.
            zipped = gzip.compress(encode_json(body), mtime=0)
            return HttpResponse(zipped, content_type=API_JSON_TYPE, headers={**headers, "Content-Encoding": "gzip"})
        response: HttpResponse = Response(body, headers=headers)
        return response

    def render_fields(self, row: Checkout, request: HttpRequest) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError


class CheckoutConfigView(CheckoutReadView):
    """GET /v1/checkouts/{id}/config: how to draw the form."""

    is_compressed = True

    def render_fields(self, row: Checkout, request: HttpRequest) -> tuple[str, dict[str, Any]]:
        if session.is_checkout_expired(row):
            raise session.build_checkout_not_found()
        wanted = request.GET.get("brands", "").split() or list(widget_responses.DEFAULT_WIDGET_BRANDS)
        locale = languages.resolve_language(request.GET.get("locale", "")) or languages.negotiate_language(
            request.headers.get("Accept-Language", "")
        )
        asks = normalize_boolean(request.GET.get("billing", "")) == "true"
        return "000.000.100", widget_responses.render_form_config(row, wanted, locale, asks_address=asks)


class CardBrandsView(CheckoutReadView):
    """GET /v1/checkouts/{id}/card-brands: which brands the cards that begin with six digits carry, for the number's
    hosted field. Empty where the table of BINs does not say."""

    def render_fields(self, row: Checkout, request: HttpRequest) -> tuple[str, dict[str, Any]]:
        if session.is_checkout_expired(row):
            raise session.build_checkout_not_found()
        token_admission.throttle_card_brand_question(row.link_id or row.id, self.trace.ip, self.trace.at)
        digits = request.GET.get("card.bin", "")
        if not _BIN6.fullmatch(digits):
            message = "must be the first six digits of a card number, never more"
            raise InvalidParametersError([ParameterError(name="card.bin", message=message, known=True)])
        issuer = find_issuer(digits)
        return "000.000.100", {"brands": list(issuer.brands) if issuer is not None else []}


class ReleasePartsView(CheckoutReadView):
    """POST /v1/checkouts/{id}/release: give the parts of the amount back that are held until the rest is paid. The
    answer is the checkout's state: processing until the acquirers have confirmed it. Nothing happens where nothing is
    held, or the rest is being paid."""

    http_method_names: ClassVar[list[str]] = ["post"]

    def post(self, request: Request, target: str = "") -> HttpResponse:
        return self.get(request, target)

    def render_fields(self, row: Checkout, request: HttpRequest) -> tuple[str, dict[str, Any]]:
        if session.is_checkout_expired(row):
            raise session.build_checkout_not_found()
        parts.give_parts_back(row)
        row = session.find_checkout(row.public_id) or row
        return widget_responses.get_last_result_code(row), widget_responses.render_state(row)


class CheckoutStateView(CheckoutReadView):
    """GET /v1/checkouts/{id}/state: the checkout's state, without a payment object."""

    def render_fields(self, row: Checkout, request: HttpRequest) -> tuple[str, dict[str, Any]]:
        return widget_responses.get_last_result_code(row), widget_responses.render_state(row)


def write_with_idempotency(
    write: WriteStatement, ident: UUID, body: Mapping[str, Any], claim: IdempotencyClaim | None
) -> bool:
    """Write a checkout or payment link of the id ``ident``, and the stored response of its idempotency key, in one
    statement. Raises IdempotencyKeyTakenError."""
    if claim is not None:
        text = encode_json(body).decode()
        claim.insert(write, ident, RenderedResponse(status=200, text=text, stored_text=text))
    try:
        return write.run()
    except IntegrityError as fault:
        if getattr(getattr(fault.__cause__, "diag", None), "constraint_name", "") != "gateway_idempotencykey_pkey":
            raise
        raise IdempotencyKeyTakenError from None


def _render_checkout(row: Checkout, code: str, parameters: Parameters) -> dict[str, Any]:
    """The response for a created or updated checkout: its id is also the ndc (D3). ``parameters``: all of the
    checkout's, after the change."""
    fields: dict[str, Any] = {"id": row.public_id}
    if parameters.get("integrity") == "true":
        fields["integrity"] = widget_hash.widget_integrity()
    if parameters.get("paymentPage") == "true":
        fields["paymentPage"] = session.build_hosted_page_url(row)
    return build_envelope(code, row.public_id, **fields, **render_ignored_parameters(parameters))


def _merge_parameters(row: Checkout, pairs: ParameterPairs) -> Parameters:
    """The checkout's parameters, with the values sent now replacing earlier ones. Raises InvalidParametersError."""
    fixed = [name for name, value in pairs if value and name.startswith(OVERRIDE_TYPE_PREFIX)]
    taken = [pair for pair in pairs if not pair[0].startswith(OVERRIDE_TYPE_PREFIX)]
    # A duplicate within the request is passed on: the parser reports it.
    sent = {name for name, _ in taken}
    kept = [(name, value) for name, value in session.load_checkout_values(row).items() if name not in sent]
    lenient = row.channel.parameters == UnknownNamePolicy.LENIENT
    refused = (
        []
        if lenient
        else [ParameterError(name=shorten_reported_value(mask_text(name)), message=_FIXED) for name in fixed]
    )
    facts = build_condition_facts(row.channel, clock.merchant_now(row.merchant))
    try:
        parameters = CREATE_CHECKOUT_ENDPOINT.catalogue.parse(
            ParameterPairs([*kept, *taken]),
            facts=facts,
            policy=row.channel.parameters,
            masks=row.channel.mask_card_data,
        )
    except InvalidParametersError as fault:
        raise InvalidParametersError([*refused, *fault.errors]) from None
    if refused:
        raise InvalidParametersError(refused)
    parameters.ignored += tuple(shorten_reported_value(mask_text(name)) for name in fixed)
    return parameters


_FIXED: Final = "is not an allowed parameter here: it is sent when the checkout is created"


def _is_parsing_strict(row: Checkout) -> bool:
    return bool(row.channel.parameters == UnknownNamePolicy.STRICT)


def _check_refusals(parameters: Parameters) -> None:
    """Raise the own result code of a well-formed value that is refused; there is no payment yet to decline."""
    if parameters.refusals:
        raise RequestRefusedError(parameters.refusals[0].code, parameters.refusals)
    check_brand_payable(parameters.values)


def _choose_state_after(response: Response) -> str:
    if response.status_code == 404:
        return "expired"
    return "processing" if response.data["result"]["code"] == CONCURRENT_UPDATE_CODE else "open"


def _hide_card_number(response: Response) -> None:
    """Leave no digit of the number in an answer that the page reads: it was typed into a hosted field, and a script of
    the page that sent each of its beginnings would be told the number four digits at a time."""
    for error in response.data["result"].get("parameterErrors", ()):
        if error["name"] == CARD_NUMBER_FIELD:
            error["value"] = HIDDEN_VALUE


def _to_printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())
