"""Middleware: TLS only in live, and page middleware that API requests do not pass.

Source: Part A, What the service does, 2; ruling D11.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from allauth.account.middleware import AccountMiddleware
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.locale import LocaleMiddleware

from gateway.api.envelope import build_plain_response

_API = re.compile(r"(?:/reports|/scheduling)?/v[0-9]+(?:/|$)|/health/|/metrics$|/connectors/")


def is_api_path(path: str) -> bool:
    """Whether a path belongs to the API, to processors or to health: JSON, no session, no page."""
    return bool(_API.match(path))


INTERNAL_PATHS = ("/metrics",)
"""Asked from inside the network, with a token of its own."""


class TlsOnlyMiddleware:
    """In live, a plain HTTP request that carries a token is refused (it has been read on the way already), and any
    other is sent to https by 307. Health answers on plain HTTP: a load balancer asks from inside."""

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


POPUP_PATHS = ("/shopper/", "/simulator/")
"""Pages that the widget opens in a window of their own: cut from their opener, that window would look closed."""


class OpenerPolicyMiddleware:
    """Keep the tie between a shop's page and the window it opened, redirects included. Every other page is cut off."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        if request.path.startswith(POPUP_PATHS):
            answer.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
        return answer


def _add_content_length(answer: HttpResponse) -> HttpResponse:
    """Say how long the body is: without it a client is sent chunks, and some read those slowly."""
    if not answer.streaming and not answer.has_header("Content-Length"):
        answer["Content-Length"] = str(len(answer.content))
    return answer


def _pages_only(middleware: type[Any]) -> type[Any]:
    """``middleware`` for pages; API requests pass it untouched."""

    class PagesOnly(middleware):  # type: ignore[misc]
        def __call__(self, request: HttpRequest) -> Any:
            return self.get_response(request) if is_api_path(request.path) else super().__call__(request)

        if hasattr(middleware, "process_view"):

            def process_view(self, request: HttpRequest, *args: Any) -> Any:
                return None if is_api_path(request.path) else super().process_view(request, *args)

    PagesOnly.__name__ = PagesOnly.__qualname__ = middleware.__name__
    return PagesOnly


class SignInContextMiddleware:
    """django-allauth's middleware: it keeps the request at hand for its forms, and sends on who has to show once more
    who they are."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._inner = AccountMiddleware(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._inner(request) if request.path.startswith("/admin/") else self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return self._inner.process_exception(request, exception) if request.path.startswith("/admin/") else None


class PagePolicyMiddleware(CSPMiddleware):  # type: ignore[misc]
    """The strict policy of the settings; the back office's theme evaluates its own expressions and sets its colours in
    a style element, so there, and nowhere else, the settings loosen it."""

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
        return super().process_response(request, response)  # type: ignore[no-any-return]


REPORT_ENDPOINT_NAME = "policy"
"""The name of our report endpoint in policies of ours."""


def has_named_report_endpoint() -> bool:
    """Whether policies name the report endpoint by ``report-to``, too. Over plain HTTP browsers know no such names, and
    Chromium then heeds ``report-uri`` only where there is no ``report-to``."""
    return bool(settings.GATEWAY_BASE_URL.startswith("https://"))


def build_reporting_endpoints() -> str:
    """The header Reporting-Endpoints of pages of ours."""
    return f'{REPORT_ENDPOINT_NAME}="{settings.POLICY_REPORTS_PATH}"'


PagesCspMiddleware = _pages_only(PagePolicyMiddleware)
PagesSessionMiddleware = _pages_only(SessionMiddleware)
PagesLocaleMiddleware = _pages_only(LocaleMiddleware)
PagesCommonMiddleware = _pages_only(CommonMiddleware)
PagesCsrfMiddleware = _pages_only(CsrfViewMiddleware)
PagesAuthenticationMiddleware = _pages_only(AuthenticationMiddleware)
PagesMessageMiddleware = _pages_only(MessageMiddleware)
PagesXFrameOptionsMiddleware = _pages_only(XFrameOptionsMiddleware)
