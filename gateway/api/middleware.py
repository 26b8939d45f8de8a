"""Middleware: HTTPS only in live, and a short way for API requests past the middleware of pages.

Source: Part A, What the service does, 2; ruling D11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from allauth.account.middleware import AccountMiddleware
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import CsrfViewMiddleware

from gateway.api.api_paths import is_api_path
from gateway.api.envelope import build_plain_response

NULL_BYTE_TEXT: Final = "no parameter takes the character NUL"
INTERNAL_PATHS = ("/metrics",)
"""Paths requested from inside the network, with a token of their own."""


class TlsOnlyMiddleware:
    """HTTPS only, in live: a plain HTTP request with a token is refused (403), because the token is exposed already;
    any other is redirected to https (307). Health checks answer on plain HTTP, for load balancers inside."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if (
            not settings.IS_LIVE
            or request.is_secure()
            or request.path in INTERNAL_PATHS
            or request.path.startswith("/health/")
        ):
            return _add_content_length(self.get_response(request))
        if "Authorization" in request.headers:
            return build_plain_response(
                403, "800.900.300", "The token was sent over plain HTTP: revoke it, and use https from now on."
            )
        answer = HttpResponse(status=307)
        answer["Location"] = settings.GATEWAY_BASE_URL + request.get_full_path()
        return answer


class NullByteMiddleware:
    """Refuses NUL, which no text of PostgreSQL can hold: in any path (404, no resource has such a name), and in the
    query and the cookies of a page (400). Forms of pages: gateway.api.body_limits. The API's parameters are refused by
    name, with the catalogue's other errors; the back office leaves them out of a query
    (gateway.backoffice.sign_in.session)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\0" in request.path:
            return build_plain_response(404, "200.300.404", "no such path or version")
        if not is_api_path(request.path) and _has_null_byte(request):
            return build_plain_response(400, "200.300.404", NULL_BYTE_TEXT)
        return self.get_response(request)


def _has_null_byte(request: HttpRequest) -> bool:
    # A cookie's value may be quoted, with octal escapes.
    query, cookies = request.META.get("QUERY_STRING", ""), request.META.get("HTTP_COOKIE", "")
    if "\\000" in cookies or "\0" in cookies:
        return True
    return ("%00" in query or "\0" in query) and not request.path.startswith("/admin/")


POPUP_PATHS = ("/shopper/", "/simulator/")
"""Pages that the widget opens in a popup: without its opener the widget would take the popup for closed."""


class OpenerPolicyMiddleware:
    """Sets Cross-Origin-Opener-Policy to unsafe-none for popup pages, redirects included; others keep the default."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        if request.path.startswith(POPUP_PATHS):
            answer.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
        return answer


def _add_content_length(answer: HttpResponse) -> HttpResponse:
    """Add Content-Length: without it the body is sent in chunks, which some clients read slowly."""
    if not answer.streaming and not answer.has_header("Content-Length"):
        answer["Content-Length"] = str(len(answer.content))
    return answer


class ApiShortcutMiddleware:
    """Hands API requests to their view: all middleware after this one (session, CSRF, CSP and others) is for pages.

    Django builds the chain from its end, so the handler that calls the view is found by following it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._call_view = _find_view_handler(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._call_view(request) if is_api_path(request.path) else self.get_response(request)


def _find_view_handler(handler: Any) -> Callable[[HttpRequest], HttpResponse]:
    """The last handler of a middleware chain: each wraps (functools.wraps) a middleware, which has the next one."""
    while (following := getattr(handler.__wrapped__, "get_response", None)) is not None:
        handler = following
    found: Callable[[HttpRequest], HttpResponse] = handler
    return found


class PagesCsrfMiddleware(CsrfViewMiddleware):
    """Django's, for pages only: an API request has no session that a foreign page could use."""

    def process_view(self, request: HttpRequest, *args: Any) -> Any:
        """None, or the answer to a form without the right token."""
        return None if is_api_path(request.path) else super().process_view(request, *args)


class SignInContextMiddleware:
    """django-allauth's middleware for the back office only: it provides the request to allauth's forms and redirects
    users who have to sign in again."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._inner = AccountMiddleware(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._inner(request) if request.path.startswith("/admin/") else self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return self._inner.process_exception(request, exception) if request.path.startswith("/admin/") else None


class PagePolicyMiddleware(CSPMiddleware):
    """The strict Content-Security-Policy of the settings, loosened for the back office only: its theme evaluates
    expressions and sets its colours in a style element."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if report_only:
            return parts
        loosened = settings.BACK_OFFICE_POLICY if request.path.startswith("/admin/") else {}
        report_to = {"report-to": [REPORT_ENDPOINT_NAME]} if has_named_report_endpoint() else {}
        return replace(parts, update={**loosened, **report_to, **(parts.update or {})})

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if has_named_report_endpoint():
            response.headers.setdefault("Reporting-Endpoints", build_reporting_endpoints())
        return super().process_response(request, response)


REPORT_ENDPOINT_NAME = "policy"
"""The name of the report endpoint in our policies."""


def has_named_report_endpoint() -> bool:
    """Whether policies have ``report-to`` besides ``report-uri``: only over https. Over plain HTTP browsers know no
    named endpoints, and Chromium ignores ``report-uri`` if there is a ``report-to``."""
    return bool(settings.GATEWAY_BASE_URL.startswith("https://"))


def build_reporting_endpoints() -> str:
    """The Reporting-Endpoints header of our pages."""
    return f'{REPORT_ENDPOINT_NAME}="{settings.POLICY_REPORTS_PATH}"'
