"""Pages of the portal as gzip, compressed once for all readers.

What a signed-in user gets is sent as it is: it may hold a secret beside text that a link chose, and the length of
compressed text tells one from the other (BREACH, CVE-2013-3587).
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

_ACCEPTED: Final = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")
MIN_COMPRESSED_BYTES: Final = 1_000
MAX_CACHED_PAGES: Final = 64


def compress_response(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """``response``, compressed where the reader accepts it and is not signed in. Its ETag, if it has one, names the
    content of both forms."""
    patch_vary_headers(response, ["Accept-Encoding"])
    user = getattr(request, "user", None)  # requests to the API's paths have none
    anonymous = user is None or not user.is_authenticated
    wanted = anonymous and _ACCEPTED.search(request.headers.get("Accept-Encoding", "")) is not None
    if wanted and response.status_code == 200 and len(response.content) >= MIN_COMPRESSED_BYTES:
        response.content = _compress(response.content)
        response["Content-Encoding"] = "gzip"
    return response


@lru_cache(maxsize=MAX_CACHED_PAGES)
def _compress(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
