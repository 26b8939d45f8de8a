"""No page of the back office takes a form without its token, or from another site: every address of the URL table."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

pytestmark = pytest.mark.django_db

SAMPLES = {
    "uuid": str(UUID(int=7)), "int": "7", "slug": "a", "str": "a", "path": "a", "ident": "a",
}  # fmt: skip
EVIL = {"origin": "https://evil.example", "referer": "https://evil.example/"}


def addresses(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    """Each address below ``before``, with a sample for each of its parts."""
    for one in patterns:
        route = str(one.pattern)
        for name, converter in one.pattern.converters.items():
            kind = type(converter).__name__.removesuffix("Converter").lower().replace("string", "str")
            for text in (f"<{kind}:{name}>", f"<{name}>"):
                route = route.replace(text, SAMPLES.get(kind, "a"))
        where = before + route.removeprefix("^").removesuffix("$")
        if isinstance(one, URLResolver):
            yield from addresses(one.url_patterns, where)
        else:
            yield where


def test_no_address_takes_a_form_without_its_token() -> None:
    found = sorted({one for one in addresses(get_resolver().url_patterns) if one.startswith("/admin/")})
    assert len(found) > 200
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    browser.force_login(User.objects.create_superuser("root"))
    browser.get("/admin/account/")
    token = browser.cookies["csrftoken"].value if "csrftoken" in browser.cookies else ""
    taken, refused = [], 0
    for address in found:
        bare = browser.post(address, {"verb": "x"})
        foreign = browser.post(address, {"csrfmiddlewaretoken": token}, headers=EVIL)
        refused += bare.status_code == foreign.status_code == 403
        if {bare.status_code, foreign.status_code} - {403, 404}:
            taken.append((address, bare.status_code, foreign.status_code))
    assert taken == []
    assert refused > 0.9 * len(found)
