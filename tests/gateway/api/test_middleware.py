"""API requests go past the middleware of pages. Source: ruling D11; docs/decisions/0079."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.handlers.base import BaseHandler
from django.test.client import Client, ClientHandler

from gateway.api.middleware import NULL_BYTE_TEXT, ApiShortcutMiddleware


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
