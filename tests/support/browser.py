"""Django's test client as a browser sends forms: urlencoded, and as multipart only where there is a file."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import django.test
import django.test.client
from django.http import HttpResponse
from django.test.client import MULTIPART_CONTENT

URLENCODED = "application/x-www-form-urlencoded"


class Browser(django.test.client.Client):
    def post(self, path: str, data: Any = None, content_type: str = MULTIPART_CONTENT, *args: Any, **more: Any) -> Any:
        """POST; ``data`` as a dictionary is a form."""
        files = isinstance(data, Mapping) and any(map(_is_file, data.values()))
        if content_type == MULTIPART_CONTENT and not files:
            data = data if isinstance(data, bytes | str) else urlencode(data or {}, doseq=True)
            content_type = URLENCODED
        return super().post(path, data, content_type, *args, **more)


def install() -> None:
    """Make it the client of every test that asks Django for one."""
    django.test.Client = django.test.client.Client = Browser  # type: ignore[misc]


def send_file(client: django.test.Client, page: str, data: Mapping[str, Any], **more: Any) -> HttpResponse:
    """Send the form with a file that stands on ``page``, to the address it names."""
    found = re.search(r'enctype="multipart/form-data" action="([^"]+)"', client.get(page).content.decode())
    answer: HttpResponse = client.post(html.unescape(found[1]) if found else page, data, **more)
    return answer


def _is_file(value: Any) -> bool:
    return callable(getattr(value, "read", None))
