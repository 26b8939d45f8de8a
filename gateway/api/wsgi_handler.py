"""The WSGI handler of all requests: Django's, with limits that have to hold before Django looks at a request."""

from __future__ import annotations

from typing import Any, BinaryIO, Final

import django
from django.core.handlers.wsgi import WSGIHandler

from gateway.api.api_paths import is_api_path

MAX_CONTENT_TYPE_CHARS: Final = 256
"""The longest Content-Type that is parsed. A form's has 50 characters, with a multipart boundary 120."""
UNKNOWN_CONTENT_TYPE: Final = "application/octet-stream"
MAX_COOKIE_HEADER_CHARS: Final = 8_190
"""The longest Cookie that is parsed: one line of a request. Lines of the same name are joined by the web server."""


class WholeBody:
    """The body of a page's form, as the web server's. Raises OSError, of which Django makes UnreadablePostError, when
    it ends before its announced length: what came may still be a form, with another amount.

    The API compares the lengths itself (gateway.api.base_view).
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        """``size`` bytes; the caller asks for no more than were announced."""
        parts: list[bytes] = []
        while size > 0:
            parts.append(self._check(self._stream.read(size)))
            size -= len(parts[-1])
        return b"".join(parts)

    def readline(self, size: int) -> bytes:
        """The rest of a line, or ``size`` bytes of it."""
        return self._check(self._stream.readline(size))

    def _check(self, part: bytes) -> bytes:
        if not part:
            raise OSError("the body ended early")
        return part


class GatewayHandler(WSGIHandler):
    """Django's handler for headers of a usual length, and for pages' bodies that come whole.

    Django parses all parameters of a Content-Type as it makes a request, and all cookies for any page, whoever sends
    them: 64 KB of headers hold enough of both for 10 ms of CPU. A longer Content-Type counts as an unknown one, longer
    cookies as none."""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if len(environ.get("CONTENT_TYPE", "")) > MAX_CONTENT_TYPE_CHARS:
            environ["CONTENT_TYPE"] = UNKNOWN_CONTENT_TYPE
        if len(environ.get("HTTP_COOKIE", "")) > MAX_COOKIE_HEADER_CHARS:
            del environ["HTTP_COOKIE"]
        if "wsgi.input" in environ and not is_api_path(environ.get("PATH_INFO", "")):
            environ["wsgi.input"] = WholeBody(environ["wsgi.input"])
        answer = super().__call__(environ, start_response)
        if environ["REQUEST_METHOD"] != "HEAD":
            return answer
        # The web server would leave the body out, and warn of each.
        getattr(answer, "close", lambda: None)()
        return []


def build_wsgi_application() -> GatewayHandler:
    """As django.core.wsgi.get_wsgi_application, with our handler."""
    django.setup(set_prefix=False)
    return GatewayHandler()
