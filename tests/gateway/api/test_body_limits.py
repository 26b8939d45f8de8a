"""Bodies that no page accepts: each is refused with its status before anything reads it. Without a database.

Source: docs/decisions/0050.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.test import RequestFactory

from gateway.api import body_limits
from gateway.api.body_limits import (
    MAX_ANONYMOUS_FORM_BYTES,
    MAX_FORM_BYTES,
    MAX_FORM_ESCAPES,
    MAX_MULTIPART_FIELDS_BYTES,
    BodyLimitMiddleware,
    UploadPolicy,
    allow_uploads,
    build_upload_url,
)

FORM, FILE = "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
PATH, MOST = "/admin/files/upload/", 3 * 1024**2


def a_request(
    body: bytes = b"a=b", *, kind: str = FORM, signed_in: bool = True, path: str = PATH, length: int | None = None,
    session: str | None = "s1", method: str = "POST", **headers: str,
) -> HttpRequest:  # fmt: skip
    request = RequestFactory().generic(method, path, body, kind, headers=headers or None)
    if length is not None:
        request.META["CONTENT_LENGTH"] = str(length)
    request.user = SimpleNamespace(is_authenticated=signed_in)  # type: ignore[assignment]
    request.session = SimpleNamespace(session_key=session)  # type: ignore[assignment]
    return request


def a_view(*, may: bool = True) -> Any:
    @allow_uploads(UploadPolicy(most=lambda: MOST, may=lambda _request, _kwargs: may))
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    return view


def plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse()


def refused(request: HttpRequest, view: Any = plain, **kwargs: Any) -> tuple[int | None, str]:
    answer = BodyLimitMiddleware(plain).process_view(request, view, (), kwargs)
    return (None, "") if answer is None else (answer.status_code, answer.content.decode())  # type: ignore[attr-defined]


def test_a_usual_form_passes() -> None:
    assert refused(a_request()) == (None, "")
    assert refused(a_request(signed_in=False)) == (None, "")
    handler = BodyLimitMiddleware(lambda _request: HttpResponse(b"page"))
    assert handler(a_request()).content == b"page"


@pytest.mark.parametrize(
    ("request_of", "status", "words"),
    [
        ({"Content-Encoding": "gzip"}, 415, "without Content-Encoding"),
        ({"Content-Encoding": " Identity "}, None, ""),
        ({"Transfer-Encoding": "chunked"}, 411, "with a Content-Length"),
        ({"signed_in": False, "length": MAX_ANONYMOUS_FORM_BYTES}, None, ""),
        ({"signed_in": False, "length": MAX_ANONYMOUS_FORM_BYTES + 1}, 413, f"{MAX_ANONYMOUS_FORM_BYTES:,} bytes"),
        ({"length": MAX_ANONYMOUS_FORM_BYTES + 1}, None, ""),
        ({"length": MAX_FORM_BYTES}, None, ""),
        ({"length": MAX_FORM_BYTES + 1}, 413, f"{MAX_FORM_BYTES:,} bytes"),
        ({"body": b"a=%00"}, 400, "NUL"),
        ({"body": b"a=\0"}, 400, "NUL"),
        ({"body": b"a=%01"}, None, ""),
        ({"body": b"%" * MAX_FORM_ESCAPES}, None, ""),
        ({"body": b"%" * (MAX_FORM_ESCAPES + 1)}, 413, f"{MAX_FORM_BYTES:,} bytes"),
        ({"kind": FILE}, 415, "no file is taken here"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_form_of_a_page_has_its_limits(request_of: dict[str, Any], status: int | None, words: str) -> None:
    found, text = refused(a_request(**request_of))
    assert found == status
    assert words in text


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD"])
def test_only_a_post_has_a_form(method: str) -> None:
    assert refused(a_request(method=method, length=MAX_FORM_BYTES + 1)) == (None, "")


@pytest.mark.parametrize(("path", "looked_at"), [("/v1/payments", False), ("/connectors/x", False), ("/v", True)])
def test_the_api_reads_its_own_bodies(path: str, looked_at: bool) -> None:
    assert refused(a_request(path=path, length=MAX_FORM_BYTES + 1))[0] == (413 if looked_at else None)


@pytest.mark.parametrize("announced", ["", "x", "-1", "9" * 20, "٣"])
def test_a_length_that_is_none_is_no_fault(announced: str) -> None:
    request = a_request()
    request.META["CONTENT_LENGTH"] = announced
    request._body = b"a=b"  # type: ignore[attr-defined]
    assert refused(request) == (None, "")


def test_a_form_that_ends_early_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_request: HttpRequest) -> bytes:
        raise UnreadablePostError

    monkeypatch.setattr(HttpRequest, "body", property(broken))
    status, text = refused(a_request())
    assert status == 400
    assert "the body ended early" in text


WORD = "its own"


@pytest.mark.parametrize(
    ("path", "changes", "may", "status"),
    [
        (WORD, {}, True, None),
        (WORD, {}, False, 403),
        (WORD, {"signed_in": False}, True, 415),
        (WORD, {"session": "s2"}, True, 403),
        (WORD, {"session": None}, True, 403),
        (f"{PATH}?upload=x", {}, True, 403),
        (PATH, {}, True, 403),
        ("/admin/other/", {}, True, 403),
        (WORD, {"length": MOST + MAX_MULTIPART_FIELDS_BYTES}, True, None),
        (WORD, {"length": MOST + MAX_MULTIPART_FIELDS_BYTES + 1}, True, 413),
        (WORD, {"length": MAX_FORM_BYTES + 1}, True, None),
    ],
)
def test_a_file_is_taken_with_the_word_of_its_session_and_page_and_the_right(
    path: str, changes: dict[str, Any], may: bool, status: int | None
) -> None:
    own = build_upload_url(a_request(), PATH)
    assert own.startswith(f"{PATH}?upload=")
    if path == WORD:
        path = own
    elif path != PATH and "?" not in path:
        path = f"{path}?{own.partition('?')[2]}"
    assert refused(a_request(kind=FILE, path=path, **changes), a_view(may=may))[0] == status


def test_a_file_that_is_too_large_is_told_in_the_browsers_words_with_its_most(monkeypatch: pytest.MonkeyPatch) -> None:
    word = build_upload_url(a_request(), PATH)
    shown: list[dict[str, Any]] = []

    def render(_request: HttpRequest, template: str, context: dict[str, Any], status: int) -> HttpResponse:
        shown.append({"template": template, **context})
        return HttpResponse(b"page", status=status)

    monkeypatch.setattr(body_limits, "render", render)
    large = a_request(kind=FILE, path=word, length=MOST + MAX_MULTIPART_FIELDS_BYTES + 1, Accept="text/html,*/*")
    assert refused(large, a_view()) == (413, "page")
    assert shown == [
        {"template": "400.html", "number": 413, "why": "The file is larger than 3 MB, the most that is taken here."}
    ]
    form = a_request(length=MAX_FORM_BYTES + 1, Accept="text/html")
    assert refused(form)[0] == 413
    assert shown[1] == {"template": "400.html", "number": 413, "why": ""}


def test_the_right_is_asked_for_what_the_address_names() -> None:
    asked: list[tuple[HttpRequest, Mapping[str, Any]]] = []

    def may(request: HttpRequest, kwargs: Mapping[str, Any]) -> bool:
        asked.append((request, kwargs))
        return True

    view = allow_uploads(UploadPolicy(most=lambda: MOST, may=may))(lambda request: HttpResponse())
    request = a_request(kind=FILE, path=build_upload_url(a_request(), PATH))
    assert refused(request, view, ident="7") == (None, "")
    assert asked == [(request, {"ident": "7"})]
