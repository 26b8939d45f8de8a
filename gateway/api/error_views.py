"""Django's error handlers: JSON for API clients, HTML for browsers; /payments redirects to /v1/payments."""

from __future__ import annotations

import sys
from typing import Any, Final

import structlog
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.translation import gettext_lazy

from gateway.api.api_paths import is_api_path
from gateway.api.envelope import build_plain_response
from gateway.api.errors import DATABASE_AWAY_RETRY_AFTER, INTERNAL_ERROR_CODE
from gateway.catalogue.endpoints import ENDPOINTS
from gateway.core import identifiers
from gateway.core.document import suggest_name
from gateway.core.masking import mask_text
from gateway.db.availability import is_database_away

_TITLES: Final = {404: gettext_lazy("There is nothing here"), 403: gettext_lazy("This page is not for you")}
_API_PATHS: Final = tuple(dict.fromkeys(endpoint.path.partition("/{")[0] for endpoint in ENDPOINTS))
_LIVE_API_PATHS: Final = tuple(path for path in _API_PATHS if not path.startswith("/v1/test/"))
_ANY_ID: Final = f"/{'0' * 32}/"
_SLASH_HINTS: Final = {
    (True, True): " - leave out the slash at its end, or put an id behind it",
    (True, False): " - leave out the slash at its end",
    (False, True): " - an id is missing at its end",
}
"""By whether a path without the slash at its end is one, and whether it is one with an id there."""
MAX_SUGGESTED_PATH_CHARS: Final = 60
CAPABILITY_PATHS: Final = ("/pay/", "/shopper/", "/v1/checkouts/", "/v1/paymentLinks/", "/admin/welcome/")
"""Beginnings of paths whose rest is enough to be let in: no log has more of them, nor have those of docs/running's
proxies."""
log = structlog.get_logger(__name__)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponseBase:
    """404, or a redirect (307) if only the version is missing in the path (ruling D1)."""
    if not is_api_path(request.path):
        if _is_path(f"/v1{request.path}"):
            answer = HttpResponse(status=307)
            answer["Location"] = f"/v1{request.get_full_path()}"
            return answer
        if _is_browser(request):
            return _render_in_backoffice(request, 404) or render(request, "404.html", status=404)
    return build_plain_response(404, "200.300.404", f"no such path or version{_suggest_path(request.path)}")


def _suggest_path(path: str) -> str:
    """`` - did you mean /v1/payments?`` for a path that is nearly one of the API's, what is wrong with its slashes, or
    an empty string. An id that is missing is a client's variable that was not set."""
    if "//" in path and _is_path(path.replace("//", _ANY_ID, 1)):
        return " - an id is missing between two of its slashes"
    if path.endswith("/"):
        ends = (_is_path(path.rstrip("/")), _is_path(f"{path.rstrip('/')}{_ANY_ID}".rstrip("/")))
        if hint := _SLASH_HINTS.get(ends):
            return hint
    start = "/".join(path.split("/", 3)[:3])
    asked = (path, start) if len(path) <= MAX_SUGGESTED_PATH_CHARS else (start[:MAX_SUGGESTED_PATH_CHARS],)
    paths = _LIVE_API_PATHS if settings.IS_LIVE else _API_PATHS
    if start in paths:
        return ""
    return next((hint for one in asked if (hint := suggest_name(one, paths))), "")


def _is_path(path: str) -> bool:
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


def server_error(request: HttpRequest, *args: Any) -> HttpResponseBase:
    """500 for an unhandled exception, 503 if the database was away; the log has it under the ndc that the response
    shows."""
    ndc = identifiers.format_ndc(identifiers.row_id())
    log.error("unexpected_error", ndc=ndc, method=request.method, path=_hide_capability(request.path), exc_info=True)
    status = 503 if is_database_away(sys.exception()) else 500
    answer: HttpResponse
    if _is_browser(request) and not is_api_path(request.path):
        answer = render(request, "500.html", {"ndc": ndc, "status": status}, status=status)
    else:
        answer = build_plain_response(status, INTERNAL_ERROR_CODE, ndc=ndc)
    if status == 503:
        answer["Retry-After"] = DATABASE_AWAY_RETRY_AFTER
    return answer


def _hide_capability(path: str) -> str:
    begin = next((one for one in CAPABILITY_PATHS if path.startswith(one)), None)
    return mask_text(path) if begin is None else f"{begin}…"


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponseBase:
    """400. In the test environment, for a host name that is not allowed, a page names the setting to change."""
    if isinstance(exception, DisallowedHost) and not settings.IS_LIVE and not is_api_path(request.path):
        return _unknown_host(request)
    if _is_browser(request) and not is_api_path(request.path):
        return render(request, "400.html", status=400)
    return build_plain_response(400, "200.300.404", "the request could not be read")


MAX_HOST_CHARS = 253
"""The longest possible host name (RFC 1035); no more of a sent one is shown."""


def _unknown_host(request: HttpRequest) -> HttpResponseBase:
    # The header may contain a card number, which no page may repeat.
    sent = mask_text(str(request.META.get("HTTP_HOST", ""))[: MAX_HOST_CHARS + 1])
    # A name with characters that no host name has cannot be allowed either.
    name = split_domain_port(sent)[0] if len(sent) <= MAX_HOST_CHARS else ""
    names = [*settings.ALLOWED_HOSTS, name] if name else []
    facts = {"sent": sent[:MAX_HOST_CHARS], "allowed": settings.ALLOWED_HOSTS, "names": ",".join(names)}
    return render(request, "400-host.html", facts, status=400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponseBase:
    """403, as a page for browsers and as JSON for API clients."""
    if _is_browser(request) and not is_api_path(request.path):
        return _render_in_backoffice(request, 403) or render(request, "403.html", status=403)
    return build_plain_response(403, "800.900.300")


def _render_in_backoffice(request: HttpRequest, status: int) -> HttpResponse | None:
    """The error within the back office's own frame, for users of it; None for anybody else."""
    user = getattr(request, "user", None)
    if not request.path.startswith("/admin/") or not getattr(user, "is_staff", False):
        return None
    if getattr(request, "has_to_set_up", False):
        return None  # no second factor yet: no page of the back office, its navigation included
    context = {**admin.site.each_context(request), "status": status, "title": str(_TITLES[status])}
    return render(request, "admin/error.html", context, status=status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """403 for a form without a valid CSRF token."""
    return forbidden(request)


def _is_browser(request: HttpRequest) -> bool:
    return "text/html" in request.headers.get("Accept", "")
