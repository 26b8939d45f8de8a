"""What holds before Django looks at a request: the lengths of its headers, and no body of an answer to HEAD."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import UnreadablePostError
from django.test import RequestFactory

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
    given = {"answer": answer, **environ, "REQUEST_METHOD": method}
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


FORM = {"reason": "late", "amount": "100.00"}


def a_form(path: str, missing: int, **how: Any) -> dict[str, Any]:
    """A request with FORM, of whose body ``missing`` bytes more are announced than come."""
    environ: dict[str, Any] = RequestFactory().post(path, **how).environ
    body = environ["wsgi.input"].read()
    return environ | {"wsgi.input": io.BytesIO(body[: len(body) - missing])}


@pytest.mark.parametrize(
    "how",
    [{"data": FORM}, {"data": "reason=late&amount=100.00", "content_type": "application/x-www-form-urlencoded"}],
    ids=["multipart", "urlencoded"],
)
@pytest.mark.parametrize("missing", [0, 1, 3, 20])
def test_a_page_takes_no_form_that_ends_early(passed: list[dict[str, Any]], how: dict[str, Any], missing: int) -> None:
    """Half a form may still be a form, with another amount."""
    call(**a_form("/admin/gateway/payment/1/refund/", missing, **how), method="POST")
    request = WSGIRequest(passed[0])
    if missing:
        with pytest.raises(UnreadablePostError, match="the body ended early"):
            _ = request.POST
    else:
        assert request.POST.dict() == FORM


def test_a_pages_body_is_put_together_of_what_comes(passed: list[dict[str, Any]]) -> None:
    """A web server may return less than was asked for."""

    class Slow:
        left = b"reason=late"

        def read(self, size: int) -> bytes:
            found, self.left = self.left[:3], self.left[3:]
            return found

    call(method="POST", PATH_INFO="/admin/", CONTENT_LENGTH="11", **{"wsgi.input": Slow()})
    assert WSGIRequest(passed[0]).body == b"reason=late"


def test_the_api_counts_its_bodies_itself(passed: list[dict[str, Any]]) -> None:
    environ = a_form("/v1/payments", 3, data=FORM)
    call(**environ, method="POST")
    assert passed[0]["wsgi.input"] is environ["wsgi.input"]
