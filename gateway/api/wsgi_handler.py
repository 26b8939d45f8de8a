"""The WSGI handler of all requests: Django's, with limits that have to hold before Django looks at a request."""

from __future__ import annotations

from typing import Any, Final

import django
from django.core.handlers.wsgi import WSGIHandler

MAX_CONTENT_TYPE_CHARS: Final = 256
"""The longest Content-Type that is parsed. A form's has 50 characters, with a multipart boundary 120."""
UNKNOWN_CONTENT_TYPE: Final = "application/octet-stream"
MAX_COOKIE_HEADER_CHARS: Final = 8_190
"""The longest Cookie that is parsed: one line of a request. Lines of the same name are joined by the web server."""


class GatewayHandler(WSGIHandler):
    """Django's handler for headers of a usual length. It parses all parameters of a Content-Type as it makes a request,
    and all cookies for any page, whoever sends them: 64 KB of headers hold enough of both for 10 ms of CPU. A longer
    Content-Type counts as an unknown one, longer cookies as none."""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if len(environ.get("CONTENT_TYPE", "")) > MAX_CONTENT_TYPE_CHARS:
            environ["CONTENT_TYPE"] = UNKNOWN_CONTENT_TYPE
        if len(environ.get("HTTP_COOKIE", "")) > MAX_COOKIE_HEADER_CHARS:
            del environ["HTTP_COOKIE"]
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
