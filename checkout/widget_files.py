"""The widget's public files: the script and its builds, its hash, the hosted fields' document, texts and brands.

The script's bytes are the same for everyone, with or without a checkout in the address. Source: Part A, What the
service does, 8 and 10; rulings D13, D19; decisions, section 7.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags, quote_etag

from checkout.brand_selection import resolve_form_kind
from checkout.widget_responses import render_brand
from gateway import widget_hash
from gateway.api.envelope import build_plain_response
from gateway.api.errors import WRONG_METHOD_CODE
from gateway.api.middleware import REPORT_ENDPOINT_NAME, build_reporting_endpoints, has_named_report_endpoint
from gateway.core import brands, languages

JAVASCRIPT_TYPE: Final = "application/javascript; charset=utf-8"
WIDGET_JSON_TYPE: Final = "application/json; charset=utf-8"
CACHE_REVALIDATED: Final = "public, no-cache"
"""Cached, but revalidated by its ETag each time: a page's new hash must never meet an old script."""
CACHE_IMMUTABLE: Final = "public, max-age=31536000, immutable"
_DIGEST: Final = re.compile(r"[0-9a-f]{96}")
_ORIGIN: Final = re.compile(r"https?://(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_FRAME: Final = Path(__file__).parent / "widget" / "frame" / "frame.html"
_INLINE: Final = {name: re.compile(f"<{name}>(.*?)</{name}>", re.DOTALL) for name in ("script", "style")}


def widget_script_view(request: HttpRequest) -> HttpResponse:
    """GET /v1/paymentWidgets.js: the current build of the script."""
    build = widget_hash.current_widget_build()
    if not build.script:
        return build_plain_response(404, "200.300.404", "no widget is built: run manage.py widget_build")
    return _file_response(request, build.script, JAVASCRIPT_TYPE, etag=build.digest.hex(), caching=CACHE_REVALIDATED)


def widget_build_view(request: HttpRequest, digest: str) -> HttpResponse:
    """GET /v1/paymentWidgets/{sha384}.js: any build that was ever served, and the second script of each."""
    script = _load_build(digest)
    if script is None:
        return build_plain_response(404, "200.300.404", "no such build")
    return _file_response(request, script, JAVASCRIPT_TYPE, etag=digest, caching=CACHE_IMMUTABLE)


def integrity_view(request: HttpRequest) -> HttpResponse:
    """GET /v1/fastcheckout/integrity: one field, without the envelope (D13)."""
    return _json_response(request, {"integrity": widget_hash.widget_integrity()}, "no-store")


def widget_texts_view(request: HttpRequest, locale: str) -> HttpResponse:
    """GET /v1/widget/texts/{locale}.json: the texts of a language, without a checkout."""
    code = languages.resolve_language(locale)
    if code is None:
        return build_plain_response(404, "200.300.404", "no such language")
    body = {
        "locale": code,
        "lang": languages.iso_language_code(code),
        "dir": languages.text_direction(code),
        "texts": dict(languages.load_form_texts(code)),
    }
    return _json_response(request, body, "public, max-age=300")


def brand_table_view(request: HttpRequest) -> HttpResponse:
    """GET /v1/widget/brands.json: every brand a form can take."""
    rows = [render_brand(brand) for brand in brands.PAYMENT_BRANDS.values() if resolve_form_kind(brand)]
    return _json_response(request, {"brands": rows}, "public, max-age=300")


def hosted_field_view(request: HttpRequest) -> HttpResponse:
    """GET /v1/widget/frame.html: the document of a hosted field. Only the page named in the address may frame it."""
    if wrong := _build_wrong_method(request):
        return wrong
    parent = request.GET.get("parent", "")
    ancestors = _frame_ancestors(parent)
    if ancestors is None:
        return build_plain_response(
            400, "200.300.404", "parent must be the origin of the page, e.g. https://shop.example"
        )
    document = load_frame_document()
    if not document:
        return build_plain_response(404, "200.300.404", "no widget is built")
    own = {name: compute_inline_hash(document, name) for name in _INLINE}
    zipped = "gzip" in request.headers.get("Accept-Encoding", "")
    content = document.encode()
    answer = HttpResponse(_compress(content) if zipped else content, content_type="text/html; charset=utf-8")
    if zipped:
        answer["Content-Encoding"] = "gzip"
    answer["Content-Security-Policy"] = (
        f"default-src 'none'; script-src {own['script']}; style-src {own['style']}; connect-src 'self'; "
        f"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}; "
        f"report-uri {settings.POLICY_REPORTS_PATH}"
    )
    if has_named_report_endpoint():
        answer["Content-Security-Policy"] += f"; report-to {REPORT_ENDPOINT_NAME}"
        answer["Reporting-Endpoints"] = build_reporting_endpoints()
    # Both fields of a form share this address: the browser requests it once.
    answer["Cache-Control"] = "private, max-age=600"
    answer["Vary"] = "Accept-Encoding"
    answer["Referrer-Policy"] = "no-referrer"
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
    return answer


def compute_inline_hash(document: str, element: str) -> str:
    """The CSP source that allows exactly this document's own inline ``script`` or ``style``."""
    found = _INLINE[element].search(document)
    content = found[1] if found else ""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _frame_ancestors(parent: str) -> str | None:
    """The frame-ancestors of a page's origin; None if it is invalid. A page opened from disk has the origin "null":
    allowed in the test environment."""
    if _ORIGIN.fullmatch(parent):
        # A source list cannot name IPv6 hosts: scheme and port are the closest match.
        parts = urlsplit(parent)
        return f"{parts.scheme}:" if "[" in parent else parent
    return "file:" if parent in ("null", "file://") and not settings.IS_LIVE else None


def load_frame_document() -> str:
    """The built document of a hosted field."""
    try:
        return _FRAME.read_text(encoding="utf-8")
    except OSError:
        return ""


def _load_build(digest: str) -> bytes | None:
    if not _DIGEST.fullmatch(digest):
        return None
    for name in (widget_hash.FIRST_SCRIPT_NAME, widget_hash.SECOND_SCRIPT_NAME):
        now = widget_hash.current_widget_build(name)
        if now.script and now.digest.hex() == digest:
            return now.script
    try:
        return (Path(settings.GATEWAY_WIDGET_DIST) / "builds" / f"{digest}.js").read_bytes()
    except OSError:
        return None


def _json_response(request: HttpRequest, body: dict[str, Any], caching: str) -> HttpResponse:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return _file_response(request, text, WIDGET_JSON_TYPE, etag=widget_hash.sha384_hex(text), caching=caching)


def _file_response(request: HttpRequest, content: bytes, kind: str, *, etag: str, caching: str) -> HttpResponse:
    """A response with the same bytes for everyone, readable from any page."""
    if wrong := _build_wrong_method(request):
        return wrong
    quoted = quote_etag(etag)
    known = parse_etags(request.headers.get("If-None-Match", ""))
    zipped = "gzip" in request.headers.get("Accept-Encoding", "") and len(content) > 1_000
    if quoted in known or f"W/{quoted}" in known or "*" in known:
        answer: HttpResponse = HttpResponseNotModified()
    else:
        answer = HttpResponse(_compress(content) if zipped else content, content_type=kind)
        if zipped:
            answer["Content-Encoding"] = "gzip"
    answer["ETag"] = quoted
    answer["Vary"] = "Accept-Encoding"
    answer["Cache-Control"] = caching
    answer["Access-Control-Allow-Origin"] = "*"
    answer["Cross-Origin-Resource-Policy"] = "cross-origin"
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


@lru_cache(maxsize=64)
def _compress(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _build_wrong_method(request: HttpRequest) -> HttpResponse | None:
    if request.method in ("GET", "HEAD"):
        return None
    answer = build_plain_response(405, WRONG_METHOD_CODE, "this path takes GET, HEAD")
    answer["Allow"] = "GET, HEAD"
    return answer
