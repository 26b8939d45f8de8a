"""Calls of this gateway's own API within the process: the same views, requests and answers, without a connection.

The demo shop and the docs' Run button use it; they need no network access to the gateway's own address.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.urls import resolve

from gateway.core.secret import Secret

OWN_FORM_CONTENT_TYPE: Final = "application/x-www-form-urlencoded; charset=UTF-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnApiAnswer:
    """The answer of a call: HTTP status and decoded body."""

    status: int
    body: dict[str, Any]


def call_own_api(
    method: str,
    path: str,
    fields: Mapping[str, str],
    *,
    token: Secret | None,
    headers: Mapping[str, str] | None = None,
    ip: str = "127.0.0.1",
) -> OwnApiAnswer:
    """Call a path of the API. ``fields``: with the entityId; in the body of a POST, else in the query. ``token``: None
    sends no Authorization header. ``ip``: of the person for whom the call is made."""
    text = urlencode(fields)
    body = text.encode() if method == "POST" else b""
    base = urlsplit(settings.GATEWAY_BASE_URL)
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": "" if method == "POST" else text,
        "CONTENT_TYPE": OWN_FORM_CONTENT_TYPE if method == "POST" else "",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_HOST": base.netloc,
        "SERVER_NAME": base.hostname or "localhost",
        "SERVER_PORT": str(base.port or 80),
        "REMOTE_ADDR": ip,
        "wsgi.url_scheme": base.scheme,
        "wsgi.input": io.BytesIO(body),
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in (headers or {}).items()},
    }
    if token is not None:
        environ["HTTP_AUTHORIZATION"] = f"Bearer {token.reveal()}"
    request = WSGIRequest(environ)
    found = resolve(path)
    request.resolver_match = found
    response = found.func(request, *found.args, **found.kwargs)
    if hasattr(response, "render"):
        response.render()
    return OwnApiAnswer(status=response.status_code, body=json.loads(response.content))
