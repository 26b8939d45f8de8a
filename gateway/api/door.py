"""The door every API request comes through: token, body, entity, throttle, parameters, in this order.

A view names its endpoints and answers parsed requests; see gateway.api.views. A token is checked before a large body
is read, and a body is never parsed for a stranger.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, ClassVar, Final

from django.conf import settings
from django.http import HttpRequest
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway import clock, identifiers, metrics
from gateway.api import admission as doorkeeper
from gateway.api.admission import Admission, entity_of
from gateway.api.errors import Turned
from gateway.api.remarks import remarks
from gateway.catalogue.endpoints import Endpoint
from gateway.catalogue.forms import UnreadableForm, pairs
from gateway.catalogue.parse import INVALID, Invalid, ParameterError, Parameters, Policy, shorten
from gateway.catalogue.sent import Pairs, text_of, typed
from gateway.masking import mask_text
from gateway.models import Channel, RequestLog
from gateway.payments.request import Trace

READ_FIRST_BYTES: Final = 1024 * 1024
"""Bodies up to this size are read before the token is looked up, which saves a statement."""
FORM: Final = "application/x-www-form-urlencoded"
_ENTITY_NAMES: Final = ("entityId", "authentication.entityId")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request that came in: who asks, for which channel, with which parameters."""

    admission: Admission
    pairs: Pairs
    trace: Trace
    headers: dict[str, str]
    endpoint: str


class Door(APIView):
    """A DRF view whose methods are endpoints of the catalogue."""

    # No OPTIONS: CORS is for the public script and widget routes only (D19).
    http_method_names: ClassVar[list[str]] = ["get", "post", "delete"]
    endpoints: ClassVar[dict[str, Endpoint]] = {}
    trace: Trace
    visit: Visit | None = None

    @property
    def allowed_methods(self) -> list[str]:
        return sorted(self.endpoints)

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {}

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        self.trace = Trace(
            request=identifiers.row_id(), method=request.method or "", path=mask_text(request.path), at=clock.real(),
            ip=client_ip(request),
        )  # fmt: skip
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Everything is done in :meth:`enter`; only a wrong method has to find the token checked already."""
        if (request.method or "") not in self.endpoints:
            doorkeeper.bearer(request.headers.get("Authorization"))
            # A view may have inherited the method from one whose endpoint takes it.
            raise MethodNotAllowed(request.method or "")

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        endpoint = self.endpoints.get(self.trace.method)
        name = endpoint.name if endpoint is not None else "other"
        metrics.answered(name, response.status_code, time.perf_counter() - self.trace.started)
        response["Cache-Control"] = "no-store"
        response.headers.pop("Vary", None)
        return response

    def enter(
        self,
        request: Request,
        target: str | None = None,
        *,
        reads: bool = False,
        key: Mapping[str, str] | None = None,
    ) -> Visit:
        """Let the request in, or turn it away. ``target``: the payment id in the path; ``reads``: fetch it too;
        ``key``: look up what is kept under an idempotency key."""
        endpoint = self.endpoints[request.method or ""]
        token = doorkeeper.bearer(request.headers.get("Authorization"))
        http: HttpRequest = request._request
        if request.method == "POST":
            if _length(http) > READ_FIRST_BYTES:
                doorkeeper.admit(token, None, endpoint.scope, ip=self.trace.ip)
            sent, fault = self._body(http)
        else:
            sent, fault = _decoded(http.META.get("QUERY_STRING", "").encode("latin-1"))
        entity = entity_of(next((text_of(value) for name, value in sent if name in _ENTITY_NAMES), None))
        payment = identifiers.parse_id(target) if target else None
        admission = doorkeeper.admit(
            token, entity, endpoint.scope, payment=payment, reads=reads, key=key, ip=self.trace.ip
        )
        self.trace = Trace(
            request=self.trace.request, method=self.trace.method, path=self.trace.path, at=self.trace.at,
            ip=self.trace.ip, started=self.trace.started, entity=admission.entity, token=admission.token,
        )  # fmt: skip
        if fault:
            raise fault
        headers = {}
        if admission.entity is not None:
            headers = doorkeeper.throttle(admission.entity, admission.channel, endpoint.operation, self.trace.at)
        self.visit = Visit(admission=admission, pairs=sent, trace=self.trace, headers=headers, endpoint=endpoint.name)
        return self.visit

    def handle_exception(self, exc: Exception) -> Response:
        """Every exception becomes an answer; a request that came in and changed nothing is kept in the log."""
        response: Response = super().handle_exception(exc)
        if self.visit is not None and self.visit.trace.method == "POST" and response.status_code < 500:
            log_request(self.visit, response, self.endpoints["POST"])
            for name, value in self.visit.headers.items():
                response.headers.setdefault(name, value)
        return response

    def parse(self, visit: Visit, channel: Channel | None, facts: frozenset[str] = frozenset()) -> Parameters:
        """The request's parameters by this endpoint's catalogue. Raises Invalid with every error at once."""
        endpoint = self.endpoints[visit.trace.method]
        policy = channel.parameters if channel is not None else Policy.NORMAL
        masks = channel is None or channel.mask_card_data
        parameters = endpoint.catalogue.parse(visit.pairs, facts=facts, policy=policy, masks=masks)
        warn(visit, parameters, facts)
        return parameters

    def _body(self, http: HttpRequest, most: int | None = None) -> tuple[Pairs, Exception | None]:
        limit = most or settings.GATEWAY_MAX_BODY_BYTES
        if _length(http) > limit:
            return Pairs(), Turned(400, INVALID, f"the body is larger than {limit:,} bytes")
        try:
            body = _read(http, limit + 1)
        except Exception:
            # The web server's reader has many ways to say that a chunked body is none, or that the client is gone.
            return Pairs(), Turned(400, INVALID, "the body could not be read: it is broken or ended early")
        if len(body) < min(_length(http), limit + 1):
            # Half a body may still be a form, with another amount.
            return Pairs(), Turned(400, INVALID, f"the body ended after {len(body):,} of {_length(http):,} bytes")
        if len(body) > limit:
            return Pairs(), Turned(400, INVALID, f"the body is larger than {limit:,} bytes")
        kind = (http.content_type or "").strip().lower()
        if kind not in ("", FORM, "text/plain") or (kind != FORM and body[:1] in (b"{", b"[", b"<")):
            return Pairs(), Turned(
                400, INVALID, f"send form parameters with Content-Type {FORM}, not {mask_text(kind) or 'JSON'}"[:200]
            )
        return _decoded(body)


def _length(http: HttpRequest) -> int:
    """The announced length of the body; 0 for none, or for one that is no number."""
    announced = http.META.get("CONTENT_LENGTH") or "0"
    return int(announced) if announced.isdecimal() else 0


def _decoded(body: bytes) -> tuple[Pairs, Exception | None]:
    try:
        return typed(pairs(body)), None
    except UnreadableForm as fault:
        if fault.name:
            return Pairs(), Invalid([ParameterError(name=shorten(mask_text(fault.name)), message=fault.message)])
        return Pairs(), Turned(400, INVALID, fault.message)


def _read(http: HttpRequest, limit: int) -> bytes:
    """At most ``limit`` bytes of the body. A chunked body has no length, so Django would see none of it."""
    if http.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked" and http.META.get("wsgi.input_terminated"):
        return bytes(http.META["wsgi.input"].read(limit))
    return http.read(limit)


def client_ip(request: HttpRequest) -> str | None:
    """Who calls. X-Forwarded-For counts only behind a proxy of ours, and then its last entry, which that proxy set.

    Some proxies append the port, some write brackets around an IPv6 address; what is no address then counts as none.
    """
    text = request.META.get("REMOTE_ADDR") or ""
    if settings.GATEWAY_BEHIND_PROXY and (forwarded := request.headers.get("X-Forwarded-For")):
        text = forwarded.rpartition(",")[2].strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ip_address(text.partition("%")[0]))
    except ValueError:
        return None


def warn(visit: Visit, parameters: Parameters, facts: frozenset[str] = frozenset()) -> None:
    """Tell the merchant's developer in the answer's header what deserves a remark."""
    if said := remarks(parameters, facts):
        visit.headers["Warning"] = said


def log_request(visit: Visit, response: Response, endpoint: Endpoint) -> None:
    """Keep a request that made no payment, with what was sent, masked."""
    sent = endpoint.catalogue.loggables(visit.pairs, LOGGED_FIELDS)
    code = response.data["result"]["code"]
    RequestLog.objects.create(**visit.trace.log_row(response.status_code, code, parameters=sent))


LOGGED_FIELDS: Final = 200
"""Parameters of a failed request that the log keeps: enough to see what was meant."""
