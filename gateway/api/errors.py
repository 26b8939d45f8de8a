"""API errors and DRF's exception handler, which turns every exception into a response (rulings D10, D11)."""

from __future__ import annotations

from typing import Any

import structlog
from django.http import Http404
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.response import Response

from gateway.api.envelope import build_docs_url, build_envelope
from gateway.catalogue.parse import INVALID_PARAMETER_CODE, InvalidParametersError
from gateway.db.availability import is_database_away
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.token_limits import TokenLimitError

BAD_CREDENTIALS_CODE = "800.900.300"
THROTTLED_CODE = "800.120.100"
WRONG_METHOD_CODE = "200.300.403"
INTERNAL_ERROR_CODE = "999.999.999"
DATABASE_AWAY_RETRY_AFTER = "2"
"""Retry-After of an answer 503 for want of a database, seconds."""

log = structlog.get_logger(__name__)


class ApiError(Exception):
    """A request refused before its endpoint runs: authentication, throttling, unreadable body. ``more``: added to the
    description; ``headers``: of the response; ``fields``: added to its body."""

    def __init__(
        self,
        status: int,
        code: str,
        more: str = "",
        *,
        headers: dict[str, str] | None = None,
        fields: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.more = more
        self.headers = headers or {}
        self.fields = fields or {}


def handle_api_exception(exception: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler: every exception becomes an envelope, never a stack trace."""
    view = context["view"]
    ndc = view.trace.ndc
    endpoint = view.endpoints.get(view.trace.method)
    docs = build_docs_url(endpoint.name) if endpoint is not None else ""
    if isinstance(exception, ApiError):
        log.info("request_refused", ndc=ndc, status=exception.status, code=exception.code, ip=view.trace.ip)
        body = build_envelope(exception.code, ndc, more=exception.more, **exception.fields)
        return Response(body, status=exception.status, headers=exception.headers)
    if isinstance(exception, TokenLimitError):
        log.info("token_limit_exceeded", ndc=ndc, why=str(exception))
        return Response(build_envelope(BAD_CREDENTIALS_CODE, ndc, more=str(exception)), status=403)
    if isinstance(exception, InvalidParametersError):
        return Response(build_envelope(INVALID_PARAMETER_CODE, ndc, errors=exception.errors, docs=docs), status=400)
    if isinstance(exception, RequestRefusedError):
        body = build_envelope(exception.code, ndc, errors=exception.errors, more=exception.more, docs=docs)
        return Response(body, status=exception.status)
    if isinstance(exception, MethodNotAllowed):
        allowed = ", ".join(view.allowed_methods)
        return Response(
            build_envelope(WRONG_METHOD_CODE, ndc, more=f"this path takes {allowed}"),
            status=405,
            headers={"Allow": allowed},
        )
    if isinstance(exception, Http404):
        return Response(build_envelope("200.300.404", ndc, more="no such path"), status=404)
    log.error("unexpected_error", ndc=ndc, exc_info=exception)
    if is_database_away(exception):
        return Response(
            build_envelope(INTERNAL_ERROR_CODE, ndc), status=503, headers={"Retry-After": DATABASE_AWAY_RETRY_AFTER}
        )
    return Response(build_envelope(INTERNAL_ERROR_CODE, ndc), status=500)
