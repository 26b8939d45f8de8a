"""Middleware that limits the bodies of HTML pages by their headers, before the first byte is read.

Forms are small. A file is accepted only by views marked with :func:`allow_uploads`, from users with the permission,
whose form URL carries a token signed for their session: the CSRF token within the form would be known only after the
file was stored. The API reads its own bodies (gateway.api.base_view). Source: docs/decisions/0050.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from gateway.api.api_paths import is_api_path
from gateway.api.envelope import build_plain_response
from gateway.api.middleware import NULL_BYTE_TEXT
from gateway.catalogue.errors import INVALID_PARAMETER_CODE

MAX_ANONYMOUS_FORM_BYTES: Final = 8 * 1024
"""Forms without sign-in (sign-in itself, shopper pages, callbacks of apps) are less than a tenth of this."""
MAX_FORM_BYTES: Final = 1024 * 1024
"""A form of a signed-in user; the longest is a set of 200 risk rules."""
MAX_FORM_ESCAPES: Final = 200_000
"""Percent signs in a form: decoding takes some 230 bytes of memory for each."""
MAX_MULTIPART_FIELDS_BYTES: Final = 64 * 1024
"""Size of the other fields of a form with a file."""
UPLOAD_TOKEN_PARAMETER: Final = "upload"  # noqa: S105 - a name or a mask, no password
"""The query parameter of a form's URL that carries the signed token."""
View = TypeVar("View", bound=Callable[..., HttpResponseBase])


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPolicy:
    """The upload rules of a view: one file of at most ``most()`` bytes; ``may``: checks the user's permission by the
    request and the URL's arguments."""

    most: Callable[[], int]
    may: Callable[[HttpRequest, Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """The refusal of a body: the HTTP status, the text for clients (``words``) and for browsers (``shown``)."""

    status: int
    words: str
    shown: str = ""


def allow_uploads(uploads: UploadPolicy) -> Callable[[View], View]:
    """Decorator: mark a view as one that accepts files."""

    def mark_view(view: View) -> View:
        vars(view)["uploads"] = uploads
        return view

    return mark_view


def build_upload_url(request: HttpRequest, path: str) -> str:
    """The URL of a form with a file, with the token that allows this session to upload there."""
    return f"{path}?{urlencode({UPLOAD_TOKEN_PARAMETER: _build_upload_token(request, path)})}"


class BodyLimitMiddleware:
    """Refuses bodies that no page accepts. It runs before the CSRF middleware, which reads the whole form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Mapping[str, Any]
    ) -> HttpResponseBase | None:
        if request.method != "POST" or is_api_path(request.path):
            return None
        refusal = _find_body_refusal(request, getattr(view, "uploads", None), kwargs)
        if refusal is None:
            return None
        if "text/html" in request.headers.get("Accept", ""):
            return render(request, "400.html", {"number": refusal.status, "why": refusal.shown}, status=refusal.status)
        return build_plain_response(refusal.status, INVALID_PARAMETER_CODE, refusal.words)


def _find_body_refusal(
    request: HttpRequest, uploads: UploadPolicy | None, kwargs: Mapping[str, Any]
) -> _Refusal | None:
    headers = request.headers
    if headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        return _Refusal(status=415, words="send the body as it is, without Content-Encoding")
    if "Transfer-Encoding" in headers:
        return _Refusal(status=411, words="send the body with a Content-Length")
    announced = headers.get("Content-Length") or "0"
    length = int(announced) if announced.isdecimal() and len(announced) < 20 else 0
    if request.content_type == "multipart/form-data":
        return _find_upload_refusal(request, length, uploads, kwargs)
    if length > MAX_ANONYMOUS_FORM_BYTES and not request.user.is_authenticated:
        return _build_too_large_refusal(MAX_ANONYMOUS_FORM_BYTES)
    if length > MAX_FORM_BYTES:
        return _build_too_large_refusal(MAX_FORM_BYTES)
    try:
        return _find_form_refusal(request.body)
    except UnreadablePostError:
        return _Refusal(status=400, words="the body ended early")


def _find_form_refusal(body: bytes) -> _Refusal | None:
    if body.count(b"%") > MAX_FORM_ESCAPES:
        return _build_too_large_refusal(MAX_FORM_BYTES)
    # No text of PostgreSQL can hold it.
    return _Refusal(status=400, words=NULL_BYTE_TEXT) if b"%00" in body or b"\0" in body else None


def _find_upload_refusal(
    request: HttpRequest, length: int, uploads: UploadPolicy | None, kwargs: Mapping[str, Any]
) -> _Refusal | None:
    if uploads is None or not request.user.is_authenticated:
        return _Refusal(status=415, words="no file is taken here: send application/x-www-form-urlencoded")
    token = request.GET.get(UPLOAD_TOKEN_PARAMETER, "")
    if not constant_time_compare(token, _build_upload_token(request, request.path)) or not uploads.may(request, kwargs):
        return _Refusal(status=403, words="this session sends no file here")
    most = uploads.most()
    return _build_too_large_refusal(most, of_a_file=True) if length > most + MAX_MULTIPART_FIELDS_BYTES else None


def _build_too_large_refusal(most: int, *, of_a_file: bool = False) -> _Refusal:
    shown = _("The file is larger than %d MB, the most that is taken here.") % (most // 1024**2) if of_a_file else ""
    return _Refusal(status=413, words=f"the body is larger than {most:,} bytes", shown=shown)


def _build_upload_token(request: HttpRequest, path: str) -> str:
    return salted_hmac(f"gateway.upload {path}", request.session.session_key or "").hexdigest()
