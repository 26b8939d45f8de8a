"""NUL, which PostgreSQL's texts cannot hold, in every segment of a path and every parameter of every route."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gateway.api.api_paths import is_api_path
from tests.fuzz.routes import Route, routes
from tests.support.client import FORM
from tests.support.fixtures import Shop
from tests.support.office import signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(600)]

NAMES: Final = (
    "amount", "paymentType", "merchantTransactionId", "customParameters[a]", "q", "o", "id__exact", "next",
    "username", "password", "action", "_selected_action", "date.from", "file", "state", "code", "token", "p", "e",
    "merchant__id__exact", "channel", "verb", "act", "outcome", "PaRes", "MD", "cres", "threeDSMethodData", "lang",
)  # fmt: skip
"""Parameters of the API, filters and searches of lists, and fields of forms."""
_PARAMETER: Final = re.compile(r"<(?:\w+:)?\w+>")


def _paths(route: Route) -> list[str]:
    """The route's address with NUL alone, and within an id, in each of its segments; as it is without any."""
    places = list(_PARAMETER.finditer(route.text))
    found = []
    for chosen in places:
        for hostile in ("%00", "1%00"):
            text = "".join(
                (hostile if place is chosen else "0" * 32) if index % 2 else piece
                for index, (piece, place) in enumerate(_pieces(route.text, places))
            )
            found.append(text)
    return found or [route.text]


def _pieces(text: str, places: list[re.Match[str]]) -> list[tuple[str, re.Match[str] | None]]:
    """The route cut at its parameters: at odd positions a parameter."""
    pieces: list[tuple[str, re.Match[str] | None]] = []
    at = 0
    for place in places:
        pieces += [(text[at : place.start()], None), ("", place)]
        at = place.end()
    return [*pieces, (text[at:], None)]


def test_a_null_byte_anywhere_reaches_no_database(shop: Shop) -> None:
    """The path, each parameter of query and form, with an idempotency key: never a 5xx."""
    user = User.objects.create_superuser("root")
    token, browser = {"Authorization": f"Bearer {shop.api.token}", "Idempotency-Key": "key-1"}, signed_in(user)
    broken = []
    for route in routes():
        is_api = is_api_path(route.text)
        headers = token if is_api else {"Accept": "text/html"}
        for method, path, body in _requests(route, shop.channel.entity_id):
            client = Client(raise_request_exception=False) if is_api else browser
            answer = client.generic(method, path, body.encode(), FORM, headers=headers)
            if answer.status_code >= 500:
                broken.append(f"{method} {path[:80]} {body[:80]} → {answer.status_code}")
            if not is_api and "login" in answer.headers.get("Location", ""):
                browser = signed_in(user)
    assert broken == []


def _requests(route: Route, entity: str) -> Iterator[tuple[str, str, str]]:
    """Method, path with query, body."""
    own, sent = f"entityId={entity}", "&".join(f"{name}=a%00" for name in NAMES)
    for path in _paths(route):
        if "%00" in path:
            yield from (("GET", f"{path}?{own}", ""), ("POST", path, own), ("DELETE", f"{path}?{own}", ""))
    path = _PARAMETER.sub("0" * 32, route.text)
    yield from (("GET", f"{path}?{own}&{sent}", ""), ("POST", path, f"{own}&{sent}"), ("POST", path, f"{own}&%00=1"))


@pytest.mark.parametrize("cookie", [r'sessionid="\000aaaaaaaa"', r'csrftoken="\000"; sessionid=a', "messages=\0"])
@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/docs/", "/shopper/x", "/pay/x"])
def test_a_null_byte_in_a_cookie_reaches_no_database(path: str, cookie: str, db: None) -> None:
    """RFC 6265 has no escapes, but Python's cookies do."""
    answer = Client(raise_request_exception=False).get(path, headers={"Cookie": cookie})
    assert answer.status_code == 400
