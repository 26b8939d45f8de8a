"""Language and texts of a shopper page.

The form passes the language in the address; a page opened otherwise uses the merchant's locale, else the browser's.
Source: Part A, What the service does, 8; Basic payment (locale).
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from gateway.core import languages


def build_language_context(request: HttpRequest, merchants: str | None = "") -> dict[str, Any]:
    """Template context: ``locale``, ``lang`` and ``dir`` for the document, ``t`` with the texts by key. ``merchants``:
    the payment's locale; None where nothing is at the address: then a form that was sent there is not read, which a
    stranger could make as dear as a form may be (decision 0050)."""
    posted = request.POST.get("locale", "") if merchants is not None else ""
    requested = posted or request.GET.get("locale") or ""
    header = request.headers.get("Accept-Language", "")
    code = (
        languages.resolve_language(requested)
        or languages.resolve_language(merchants or "")
        or languages.negotiate_language(header)
    )
    texts = languages.load_page_texts(code)
    return {
        "locale": code,
        "lang": languages.iso_language_code(code),
        "dir": languages.text_direction(code),
        "t": texts,
    }
