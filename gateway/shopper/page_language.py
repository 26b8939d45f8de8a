"""In which language a shopper's page speaks, and its words.

The form says it in the address; a page that nobody led to speaks as the merchant asked, else as the browser does.
Source: Part A, What the service does, 8; Basic payment (locale).
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from gateway.core import languages


def build_language_context(request: HttpRequest, merchants: str = "") -> dict[str, Any]:
    """What templates need: ``locale``, ``lang`` and ``dir`` for the document, ``t`` the texts by key.
    ``merchants``: the payment's locale."""
    asked = request.POST.get("locale") or request.GET.get("locale") or ""
    header = request.headers.get("Accept-Language", "")
    code = (
        languages.resolve_language(asked)
        or languages.resolve_language(merchants)
        or languages.negotiate_language(header)
    )
    texts = languages.load_page_texts(code)
    return {
        "locale": code,
        "lang": languages.iso_language_code(code),
        "dir": languages.text_direction(code),
        "t": texts,
    }
