"""What holds before Django looks at a request: the lengths of its headers, and no body of an answer to HEAD."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler

from gateway.api import wsgi_handler
from gateway.api.wsgi_handler import MAX_CONTENT_TYPE_CHARS, MAX_COOKIE_HEADER_CHARS, GatewayHandler


class Body:
    """An answer that says whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What Django was given."""
    found: list[dict[str, Any]] = []

    def take(self: WSGIHandler, environ: dict[str, Any], start_response: Any) -> Any:
        found.append(dict(environ))
        start_response("200 OK", [])
        return environ["answer"]

    monkeypatch.setattr(WSGIHandler, "__call__", take)
    return found


def call(answer: Any = None, method: str = "GET", **environ: Any) -> tuple[Any, list[str]]:
    started: list[str] = []
    handler = GatewayHandler.__new__(GatewayHandler)
    given = {"REQUEST_METHOD": method, "answer": answer, **environ}
    return handler(given, lambda status, _headers: started.append(status)), started


@pytest.mark.parametrize(
    ("length", "kept"),
    [(MAX_CONTENT_TYPE_CHARS - 1, True), (MAX_CONTENT_TYPE_CHARS, True), (MAX_CONTENT_TYPE_CHARS + 1, False)],
)
def test_a_content_type_that_is_too_long_is_an_unknown_one(
    passed: list[dict[str, Any]], length: int, kept: bool
) -> None:
    call(CONTENT_TYPE="x" * length, HTTP_COOKIE="a=b")
    assert passed[0]["CONTENT_TYPE"] == ("x" * length if kept else "application/octet-stream")
    assert passed[0]["HTTP_COOKIE"] == "a=b"


@pytest.mark.parametrize(
    ("length", "kept"),
    [(MAX_COOKIE_HEADER_CHARS - 1, True), (MAX_COOKIE_HEADER_CHARS, True), (MAX_COOKIE_HEADER_CHARS + 1, False)],
)
def test_cookies_that_are_too_long_are_none(passed: list[dict[str, Any]], length: int, kept: bool) -> None:
    call(CONTENT_TYPE="text/plain", HTTP_COOKIE="x" * length)
    assert passed[0].get("HTTP_COOKIE") == ("x" * length if kept else None)
    assert passed[0]["CONTENT_TYPE"] == "text/plain"


def test_a_request_without_these_headers_passes(passed: list[dict[str, Any]]) -> None:
    call()
    assert not {"CONTENT_TYPE", "HTTP_COOKIE"} & passed[0].keys()


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_answer_is_handed_on_as_it_is(passed: list[dict[str, Any]], method: str) -> None:
    body = Body()
    assert call(body, method) == (body, ["200 OK"])
    assert not body.closed


def test_an_answer_to_head_has_no_body_and_is_closed(passed: list[dict[str, Any]]) -> None:
    body = Body()
    assert call(body, "HEAD") == ([], ["200 OK"])
    assert body.closed
    assert call([b"x"], "HEAD") == ([], ["200 OK"])


def test_the_application_is_this_handler_without_a_prefix_of_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(wsgi_handler.django, "setup", lambda **how: asked.append(how))
    assert isinstance(wsgi_handler.build_wsgi_application(), GatewayHandler)
    assert asked == [{"set_prefix": False}]
