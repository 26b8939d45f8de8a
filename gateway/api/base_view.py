"""The base view of all API endpoints: checks token, entity, rate limit, body and parameters, in this order.

Subclasses name their endpoints of the catalogue and handle parsed requests. A small body is read before the token is
checked, but only searched for its entityId; it is decoded after admission and throttling. A larger body is read only
after its token was checked. Source: docs/decisions/0050.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway import metrics, tracing
from gateway.api import token_admission
from gateway.api.deprecation_warnings import build_warning_header
from gateway.api.errors import ApiError
from gateway.api.token_admission import Admission, parse_entity_id
from gateway.catalogue.endpoints import Endpoint
from gateway.catalogue.forms import UnreadableFormError, parse_form
from gateway.catalogue.parse import (
    INVALID_PARAMETER_CODE,
    InvalidParametersError,
    ParameterError,
    Parameters,
    UnknownNamePolicy,
    mask_reported_value,
)
from gateway.catalogue.typed_pairs import ParameterPairs, type_secrets
from gateway.core import identifiers
from gateway.core.client_address import resolve_client_ip
from gateway.core.masking import mask_text
from gateway.core.secret import reveal_text
from gateway.models import Channel, RequestLog
from gateway.payments import token_limits
from gateway.payments.payment_request import RequestTrace

MAX_PREREAD_BYTES: Final = 64 * 1024
"""Bodies with a Content-Length up to this are read before the token is checked, which saves a statement."""
URLENCODED_FORM: Final = "application/x-www-form-urlencoded"
_AUTHORIZATION: Final = "HTTP_AUTHORIZATION"
_ENTITY_NAMES: Final = ("entityId", "authentication.entityId")
_ENTITY: Final = re.compile(rb"(?:^|&)(?:authentication(?:\.|%2[Ee]))?entityId=([0-9a-f]{32})(?=&|$)")
"""An entityId in a form that is not decoded yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """An admitted request: its admission, raw parameters, trace and rate headers."""

    admission: Admission
    pairs: ParameterPairs
    trace: RequestTrace
    headers: dict[str, str]
    endpoint: str


class ApiView(APIView):  # type: ignore[misc]  # DRF has no type hints
    """A DRF view whose methods are endpoints of the catalogue."""

    # No OPTIONS: CORS is for the public script and widget routes only (D19).
    http_method_names: ClassVar[list[str]] = ["get", "post", "delete"]
    endpoints: ClassVar[dict[str, Endpoint]] = {}
    trace: RequestTrace
    context: RequestContext | None = None

    @property
    def allowed_methods(self) -> list[str]:
        found = set(self.endpoints) or {name.upper() for name in self.http_method_names}
        return sorted(found | {"HEAD"} if "GET" in found else found)

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        sent = request.method
        if sent == "HEAD" and "GET" in self.allowed_methods:
            # Whoever sends the answer leaves its body out. RFC 9110, 9.3.2; docs/decisions/0146.
            request.method = "GET"
        endpoint = self.endpoints.get(request.method or "")
        name = endpoint.name if endpoint is not None else "other"
        with tracing.trace_span(f"request {name}", ndc=lambda: self.trace.ndc, operation=name) as span:
            response = super().dispatch(request, *args, **kwargs)
            span.set(status=response.status_code)
            request.method = sent
            self.__dict__.pop("head", None)  # Django's, a method of this view, which would so name itself
            return response

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        self.trace = RequestTrace(
            method=request.method or "",
            path=mask_text(request.path),
            ip=resolve_client_ip(request),
        )
        found = Request(request)  # no parsers and authenticators: see :meth:`admit_request`
        found.parser_context.clear()  # it names the request
        return found

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Only a wrong method's token is checked here; all else is done by :meth:`admit_request`."""
        if (request.method or "") not in self.endpoints:
            token_admission.parse_bearer_token(request.META.get(_AUTHORIZATION))
            # A view may have inherited the method from one whose endpoint takes it.
            raise MethodNotAllowed(request.method or "")

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        endpoint = self.endpoints.get(self.trace.method)
        name = endpoint.name if endpoint is not None else "other"
        metrics.count_request(name, response.status_code, time.perf_counter() - self.trace.started)
        response["Cache-Control"] = "no-store"
        response.headers.pop("Vary", None)
        return response

    def admit_request(
        self,
        request: Request,
        target: str | None = None,
        *,
        reads: bool = False,
        key: Mapping[str, str] | None = None,
    ) -> RequestContext:
        """Authenticate, throttle and decode the request. Raises ApiError, and InvalidParametersError for an unreadable
        form. ``target``: the payment id in the path; ``reads``: load that payment; ``key``: look up an idempotency
        key."""
        endpoint = self.endpoints[request.method or ""]
        http: HttpRequest = request._request
        token = token_admission.parse_bearer_token(http.META.get(_AUTHORIZATION))
        if request.method == "POST":
            if _get_content_length(http) > MAX_PREREAD_BYTES or _is_chunked(http):
                token_admission.admit_token(token, None, endpoint.scope, ip=self.trace.ip)
            body, fault = self.read_body(http, settings.GATEWAY_MAX_BODY_BYTES)
        else:
            body, fault = http.META.get("QUERY_STRING", "").encode("latin-1"), None
        found = _ENTITY.search(body)
        entity = parse_entity_id(found[1].decode()) if found else None
        lookups: dict[str, Any] = {
            "payment": identifiers.parse_id(target) if target else None,
            "reads": reads,
            "key": key,
        }
        admission = self._admit(token, entity, endpoint, lookups)
        if fault := fault or _find_misplaced_parameters_fault(http, body):
            raise fault
        headers = self._throttle(admission, endpoint)
        sent = decode_form(body)
        sent_entity = parse_entity_id(next((reveal_text(value) for name, value in sent if name in _ENTITY_NAMES), None))
        if sent_entity != entity:
            # The entityId was percent-encoded, or it was sent twice: the decoded form decides.
            admission = self._admit(token, sent_entity, endpoint, lookups)
            headers = self._throttle(admission, endpoint)
        self.context = RequestContext(
            admission=admission, pairs=sent, trace=self.trace, headers=headers, endpoint=endpoint.name
        )
        return self.context

    def _admit(self, token: str, entity: UUID | None, endpoint: Endpoint, lookups: Mapping[str, Any]) -> Admission:
        """Check the token and add entity and token to the trace. Raises ApiError."""
        admission = token_admission.admit_token(token, entity, endpoint.scope, ip=self.trace.ip, **lookups)
        self.trace = replace(self.trace, entity=admission.entity, token=admission.token)
        return admission

    def _throttle(self, admission: Admission, endpoint: Endpoint) -> dict[str, str]:
        """Count the request and return the rate headers. Raises ApiError above the limit."""
        # One that names no entity is decoded, refused and logged all the same: it counts for its token's merchant.
        counted = admission.entity or admission.merchant.id
        return token_admission.throttle_request(counted, admission.channel, endpoint.operation, self.trace.at)

    def handle_exception(self, exc: Exception) -> Response:
        """Turn an exception into a response; an admitted POST that made no payment is written to the request log."""
        response: Response = super().handle_exception(exc)
        if self.context is not None and self.context.trace.method == "POST" and response.status_code < 500:
            log_request(self.context, response, self.endpoints["POST"])
            for name, value in self.context.headers.items():
                response.headers.setdefault(name, value)
        return response

    def parse(
        self, context: RequestContext, channel: Channel | None, facts: frozenset[str] = frozenset()
    ) -> Parameters:
        """Parse the parameters by this endpoint's catalogue and check the token's limits. Raises InvalidParametersError
        with all errors at once, and TokenLimitError."""
        endpoint = self.endpoints[context.trace.method]
        policy = channel.parameters if channel is not None else UnknownNamePolicy.NORMAL
        masks = channel is None or channel.mask_card_data
        parameters = endpoint.catalogue.parse(context.pairs, facts=facts, policy=policy, masks=masks)
        token_limits.check_token_limits(
            context.admission.limits, parameters.values, pays_later=endpoint.operation == "checkout"
        )
        add_warning_header(context, parameters, facts)
        return parameters

    def read_body(self, http: HttpRequest, limit: int) -> tuple[bytes, Exception | None]:
        """Read the body: returns (body, None), or (b"", error). One that is refused by its headers is not read at
        all."""
        if fault := _find_header_fault(http, limit):
            return b"", fault
        try:
            body = _read_body(http, limit + 1)
        except Exception:
            # The web server raises many kinds of exceptions for a broken chunked body or a closed connection.
            return b"", ApiError(400, INVALID_PARAMETER_CODE, "the body could not be read: it is broken or ended early")
        if len(body) > limit:
            return b"", _build_too_large_error(limit)
        if len(body) < _get_content_length(http):
            # A truncated body may still be a valid form, with another amount.
            return b"", ApiError(
                400,
                INVALID_PARAMETER_CODE,
                f"the body ended after {len(body):,} of {_get_content_length(http):,} bytes",
            )
        if (http.content_type or "") != URLENCODED_FORM and body[:1] in (b"{", b"[", b"<"):
            return b"", _build_content_type_error("JSON")
        # A line's end after the form is its sender's, who has it from a file: it is no part of the last value.
        return body.rstrip(b"\r\n") if body.endswith(b"\n") else body, None


def _find_misplaced_parameters_fault(http: HttpRequest, body: bytes) -> Exception | None:
    """The error of parameters that were sent in the address of a POST, or in the body of another request, alone."""
    if body:
        return None
    if http.method == "POST" and http.META.get("QUERY_STRING"):
        return ApiError(400, INVALID_PARAMETER_CODE, "send a POST's parameters in its body, not in its address")
    if http.method != "POST" and _get_content_length(http):
        words = f"send a {http.method}'s parameters in its address, not in its body: ?entityId=…"
        return ApiError(400, INVALID_PARAMETER_CODE, words)
    return None


def _find_header_fault(http: HttpRequest, limit: int) -> Exception | None:
    """The error of a body that is refused by its headers; None if it may be read."""
    if (coding := http.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()) != "identity":
        return ApiError(
            400,
            INVALID_PARAMETER_CODE,
            f"send the body as it is, without Content-Encoding {mask_reported_value(coding)}"[:200],
        )
    if _get_content_length(http) > limit:
        return _build_too_large_error(limit)
    kind = (http.content_type or "").strip().lower()
    return None if kind in ("", URLENCODED_FORM, "text/plain") else _build_content_type_error(mask_reported_value(kind))


def _build_too_large_error(limit: int) -> ApiError:
    return ApiError(400, INVALID_PARAMETER_CODE, f"the body is larger than {limit:,} bytes")


def _build_content_type_error(kind: str) -> ApiError:
    return ApiError(
        400, INVALID_PARAMETER_CODE, f"send form parameters with Content-Type {URLENCODED_FORM}, not {kind}"[:200]
    )


def decode_form(body: bytes) -> ParameterPairs:
    """Decode a form into name-value pairs, card data as Secret. Raises InvalidParametersError and ApiError."""
    try:
        return type_secrets(parse_form(body))
    except UnreadableFormError as fault:
        if fault.name:
            raise InvalidParametersError(
                [ParameterError(name=mask_reported_value(fault.name), message=fault.message)]
            ) from None
        raise ApiError(400, INVALID_PARAMETER_CODE, fault.message) from None


def _get_content_length(http: HttpRequest) -> int:
    """The Content-Length; 0 for a missing or malformed one."""
    announced = http.META.get("CONTENT_LENGTH") or "0"
    return int(announced) if announced.isdecimal() and len(announced) < 20 else 0


def _is_chunked(http: HttpRequest) -> bool:
    return "HTTP_TRANSFER_ENCODING" in http.META


def _read_body(http: HttpRequest, limit: int) -> bytes:
    """Read at most ``limit`` bytes; a chunked body from the WSGI input, as Django reads nothing without a length."""
    if _is_chunked(http) and http.META.get("wsgi.input_terminated"):
        return bytes(http.META["wsgi.input"].read(limit))
    return http.read(limit)


def add_warning_header(context: RequestContext, parameters: Parameters, facts: frozenset[str] = frozenset()) -> None:
    """Add the Warning header for deprecated and recommended parameters, if there are any."""
    if warning := build_warning_header(parameters, facts):
        context.headers["Warning"] = warning


def log_request(context: RequestContext, response: Response, endpoint: Endpoint) -> None:
    """Write a request that made no payment to the request log, with its parameters masked."""
    sent = endpoint.catalogue.mask_pairs_for_log(context.pairs, MAX_LOGGED_PARAMETERS)
    code = response.data["result"]["code"]
    RequestLog.objects.create(**context.trace.log_row(response.status_code, code, parameters=sent))


MAX_LOGGED_PARAMETERS: Final = 200
"""Parameters of a failed request that are logged at most."""
