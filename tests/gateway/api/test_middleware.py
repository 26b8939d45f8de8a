"""API requests go past the middleware of pages. Source: ruling D11; docs/decisions/0079."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.handlers.base import BaseHandler
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import RequestFactory
from django.test.client import Client, ClientHandler
from pytest_django.fixtures import Settings

from gateway.api.api_paths import is_api_path
from gateway.api.middleware import (
    NULL_BYTE_TEXT,
    ApiShortcutMiddleware,
    NullByteMiddleware,
    OpenerPolicyMiddleware,
    PagePolicyMiddleware,
    PagesCsrfMiddleware,
    SignInContextMiddleware,
    TlsOnlyMiddleware,
)


def find_shortcut(handler: BaseHandler) -> ApiShortcutMiddleware:
    handler.load_middleware()
    step: Any = handler._middleware_chain  # type: ignore[attr-defined]  # set by load_middleware
    while not isinstance(step.__wrapped__, ApiShortcutMiddleware):
        step = step.__wrapped__.get_response
    return step.__wrapped__


def test_the_shortcut_ends_at_the_handler_that_calls_the_view() -> None:
    """No middleware stands between."""
    handler = ClientHandler()
    last: Any = find_shortcut(handler)._call_view
    assert last.__wrapped__ == handler._get_response


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/v1/nothing", "/v3/query", "/health/live", "/scheduling/v1/schedules"])
def test_an_answer_of_the_api_has_nothing_that_is_for_pages(path: str) -> None:
    """No session, no form token, no language, no policy; what holds for all answers is there."""
    client = Client(headers={"Accept-Language": "de"})
    client.cookies["sessionid"] = "made-up"
    answer = client.get(path)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not {"Set-Cookie", "Content-Security-Policy", "Content-Language", "X-Frame-Options"} & set(answer.headers)
    assert not answer.cookies


@pytest.mark.django_db
def test_a_page_passes_all_of_it() -> None:
    """The sign-in page."""
    answer = Client().get("/admin/login/", follow=True)
    assert {"Content-Security-Policy", "Content-Language", "X-Frame-Options"} <= set(answer.headers)
    assert "csrftoken" in answer.cookies


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "cookie", "status", "more"),
    [
        ("/v1/pay%00ments", "", 404, "no such path or version"),
        ("/docs?q=%00", "", 400, NULL_BYTE_TEXT),
        ("/admin/login/", r'seen="\000"', 400, NULL_BYTE_TEXT),
    ],
)
def test_what_no_text_of_the_database_can_hold_is_refused_in_words(
    path: str, cookie: str, status: int, more: str
) -> None:
    answer = Client().get(path, HTTP_COOKIE=cookie)
    assert answer.status_code == status
    result = answer.json()["result"]
    assert result["code"] == "200.300.404"
    assert more in result["description"]


# --- which paths --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/payments", True),
        ("/v3/query", True),
        ("/v1", True),
        ("/v10/x", True),
        ("/reports/v1/settlement", True),
        ("/scheduling/v1/schedules", True),
        ("/health/live", True),
        ("/metrics", True),
        ("/connectors/card-api/1", True),
        ("/", False),
        ("/v1x", False),
        ("/vx/payments", False),
        ("/admin/v1/", False),
        ("/docs/v1/payments", False),
        ("/reports", False),
        ("/reports/settlement", False),
        ("/metrics/more", False),
        ("/connectors", False),
        ("/health", False),
        ("/pay/secret", False),
    ],
)
def test_the_api_is_what_has_a_version_and_what_machines_ask(path: str, expected: bool) -> None:
    assert is_api_path(path) is expected


# --- HTTPS --------------------------------------------------------------------------------------------------------


def passes(middleware: type[Any], request: HttpRequest, answer: Any = None) -> Any:
    """The answer of a middleware before a view that answers "passed"."""
    return middleware(lambda _: answer or HttpResponse("passed"))(request)


@pytest.mark.parametrize(
    ("live", "secure", "path", "token", "status"),
    [
        (False, False, "/v1/payments?a=b", True, 200),
        (False, False, "/docs", False, 200),
        (True, True, "/v1/payments?a=b", True, 200),
        (True, True, "/docs", False, 200),
        (True, False, "/v1/payments?a=b", True, 403),
        (True, False, "/v1/payments?a=b", False, 307),
        (True, False, "/docs?a=b", False, 307),
        (True, False, "/metrics", True, 200),
        (True, False, "/metrics/more", False, 307),
        (True, False, "/health/ready", False, 200),
        (True, False, "/health/ready", True, 200),
        (True, False, "/health", False, 307),
    ],
)
def test_in_live_only_https_passes_and_what_is_asked_within(
    settings: Settings, live: bool, secure: bool, path: str, token: bool, status: int
) -> None:
    settings.IS_LIVE, settings.GATEWAY_BASE_URL = live, "https://pay.example"
    headers = {"Authorization": "Bearer x"} if token else {}
    answer = passes(TlsOnlyMiddleware, RequestFactory().get(path, secure=secure, headers=headers))
    assert answer.status_code == status
    if status == 307:
        assert answer["Location"] == f"https://pay.example{path}"
    if status == 403:
        result = json.loads(answer.content)["result"]
        assert (result["code"], "revoke it" in result["description"]) == ("800.900.300", True)


def test_an_answer_that_is_there_as_a_whole_says_its_length() -> None:
    request = RequestFactory().get("/docs")
    assert passes(TlsOnlyMiddleware, request, HttpResponse("Grüße"))["Content-Length"] == "7"
    known = HttpResponse("x", headers={"Content-Length": "9"})
    assert passes(TlsOnlyMiddleware, request, known)["Content-Length"] == "9"
    assert "Content-Length" not in passes(TlsOnlyMiddleware, request, StreamingHttpResponse(iter([b"x"])))


# --- NUL ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "query", "cookie", "status"),
    [
        ("/docs", "", "", 200),
        ("/docs", "q=a", "a=b", 200),
        ("/do\0cs", "", "", 404),
        ("/v1/pay\0ments", "", "", 404),
        ("/admin/\0", "", "", 404),
        ("/docs", "q=%00", "", 400),
        ("/docs", "q=\0", "", 400),
        ("/docs", "", "a=\0", 400),
        ("/docs", "", r'a="\000"', 400),
        ("/docs", "", r'a="\001"', 200),
        # The back office leaves it out of a query, and takes none in a cookie.
        ("/admin/", "q=%00", "", 200),
        ("/admin/", "q=\0", "", 200),
        ("/admin/", "", "a=\0", 400),
        ("/admin/", "q=%00", r'a="\000"', 400),
        # The API tells it by name, with all other errors.
        ("/v1/query", "q=%00", "", 200),
        ("/v1/query", "q=\0", "", 200),
        ("/v1/query", "", "a=\0", 200),
    ],
)
def test_nul_passes_only_where_it_is_looked_for_later(path: str, query: str, cookie: str, status: int) -> None:
    request = RequestFactory().get("/", QUERY_STRING=query, HTTP_COOKIE=cookie)
    request.path = path
    answer = passes(NullByteMiddleware, request)
    assert answer.status_code == status
    if status != 200:
        result = json.loads(answer.content)["result"]
        words = NULL_BYTE_TEXT if status == 400 else "no such path or version"
        assert (result["code"], words in result["description"]) == ("200.300.404", True)


# --- pages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "loosened"),
    [("/shopper/1", True), ("/simulator/x", True), ("/shopper", False), ("/pay/shopper/1", False), ("/admin/", False)],
)
def test_only_pages_of_a_popup_keep_their_opener(path: str, loosened: bool) -> None:
    answer = passes(OpenerPolicyMiddleware, RequestFactory().get(path))
    assert (answer.headers.get("Cross-Origin-Opener-Policy") == "unsafe-none") is loosened


@pytest.mark.parametrize(("path", "inner"), [("/admin/login/", True), ("/admin", False), ("/v1/payments", False)])
def test_only_the_back_office_has_the_middleware_of_its_sign_in(path: str, inner: bool) -> None:
    middleware = SignInContextMiddleware(lambda _: HttpResponse("passed"))
    told: list[Any] = []

    class Inner:
        def __call__(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse("inner")

        def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse:
            told.append((request, exception))
            return HttpResponse("sign in again")

    middleware._inner = Inner()  # type: ignore[assignment]
    request, fault = RequestFactory().get(path), RuntimeError()
    assert middleware(request).content == (b"inner" if inner else b"passed")
    answer = middleware.process_exception(request, fault)
    assert (answer is not None) is inner
    assert told == ([(request, fault)] if inner else [])


@pytest.mark.parametrize(("path", "refused"), [("/docs/run", True), ("/admin/x/", True), ("/v1/payments", False)])
def test_only_forms_of_pages_want_the_token_of_the_form(path: str, refused: bool) -> None:
    request = RequestFactory(enforce_csrf_checks=True).post(path)
    answer = PagesCsrfMiddleware(lambda _: HttpResponse()).process_view(request, lambda _: None, (), {})
    assert (answer is not None) is refused


@pytest.mark.parametrize("base", ["https://pay.example", "http://localhost:8000"])
@pytest.mark.parametrize("path", ["/admin/", "/docs", "/pay/x"])
def test_a_policy_is_loosened_for_the_back_office_and_names_where_to_report_over_https(
    settings: Settings, base: str, path: str
) -> None:
    settings.GATEWAY_BASE_URL = base
    middleware = PagePolicyMiddleware(lambda _: HttpResponse())
    request, answer = RequestFactory().get(path), HttpResponse()
    middleware.process_request(request)
    parts = middleware.get_policy_parts(request, answer)
    office = path.startswith("/admin/")
    loosened = settings.BACK_OFFICE_POLICY if office else {}
    reports = {"report-to": ["policy"]} if base.startswith("https") else {}
    assert parts.update == {**loosened, **reports}
    answer._csp_update = {"img-src": "data:", "script-src": "'self'"}  # type: ignore[attr-defined]
    own = middleware.get_policy_parts(request, answer).update
    assert own == {**loosened, **reports, "img-src": "data:", "script-src": "'self'"}
    assert middleware.get_policy_parts(request, HttpResponse(), report_only=True).update is None
    sent = middleware.process_response(request, HttpResponse())
    assert ("'unsafe-eval'" in sent.headers["Content-Security-Policy"]) is office
    assert ("report-to policy" in sent.headers["Content-Security-Policy"]) is bool(reports)
    named = f'policy="{settings.POLICY_REPORTS_PATH}"' if reports else None
    assert sent.headers.get("Reporting-Endpoints") == named
    kept = middleware.process_response(request, HttpResponse(headers={"Reporting-Endpoints": "own"}))
    assert kept.headers["Reporting-Endpoints"] == "own"
