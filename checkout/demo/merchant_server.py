"""Server side of the demo shop: calls the API as any merchant's server does, and records the exchange for display.

It calls the API's views within this process, so it needs no network access to itself; requests and responses are the
same.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.urls import resolve

from gateway.core.masking import mask_text
from gateway.core.secret import Secret

DEMO_FORM_CONTENT_TYPE: Final = "application/x-www-form-urlencoded; charset=UTF-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoShop:
    """The seeded demo merchant. ``channels``: name → entityId."""

    token: Secret
    channels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiExchange:
    """One API request and its response, as the shop's panel shows them: without the token."""

    method: str
    path: str
    fields: Mapping[str, str]
    status: int
    body: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        sent = [[name, mask_text(value)] for name, value in self.fields.items()]
        return {"method": self.method, "path": self.path, "sent": sent, "status": self.status, "answer": self.body}


def load_demo_shop() -> DemoShop | None:
    """The demo merchant; None in live, and if nothing was seeded."""
    return (
        None
        if settings.IS_LIVE
        else _read_demo_shop(settings.GATEWAY_DEMO_FILE, _data_stamp(settings.GATEWAY_DEMO_FILE))
    )


def _data_stamp(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=2)
def _read_demo_shop(path: str, stamp: int) -> DemoShop | None:
    if not stamp:
        return None
    try:
        facts = json.loads(Path(path).read_text())
        return DemoShop(token=Secret(facts["access_token"]), channels=dict(facts["channels"]))
    except (OSError, ValueError, KeyError):
        return None


def call_api(shop: DemoShop, method: str, path: str, fields: Mapping[str, str]) -> ApiExchange:
    """Call the API. ``fields``: including entityId; sent in the body, or in the query of a GET."""
    text = urlencode(fields)
    body = text.encode() if method == "POST" else b""
    base = urlsplit(settings.GATEWAY_BASE_URL)
    request = WSGIRequest(
        {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": "" if method == "POST" else text,
            "CONTENT_TYPE": DEMO_FORM_CONTENT_TYPE if method == "POST" else "",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_AUTHORIZATION": f"Bearer {shop.token.reveal()}",
            "HTTP_HOST": base.netloc,
            "SERVER_NAME": base.hostname or "localhost",
            "SERVER_PORT": str(base.port or 80),
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.url_scheme": base.scheme,
            "wsgi.input": io.BytesIO(body),
        }
    )
    found = resolve(path)
    request.resolver_match = found
    response = found.func(request, *found.args, **found.kwargs)
    if hasattr(response, "render"):
        response.render()
    answer: dict[str, Any] = json.loads(response.content)
    return ApiExchange(method=method, path=path, fields=fields, status=response.status_code, body=answer)
