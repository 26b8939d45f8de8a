"""Sessions of people who are not signed in: their browser keeps them, and the database none.

Source: docs/decisions/0051.
"""

from __future__ import annotations

import time

import pytest
from allauth.account.internal.stagekit import LOGIN_SESSION_KEY
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import signing
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from gateway.access.sessions import COOKIE_S, SessionStore
from gateway.models import Role, SignIn
from tests.support.fixtures import Shop
from tests.support.office import app_of, code_of, person

pytestmark = pytest.mark.django_db
LOGIN, PASSKEY = "/admin/login/", "/admin/login/passkey/"
PASSWORD = "correct horse battery 7"
AJAX = {"x-requested-with": "XMLHttpRequest"}


@pytest.fixture
def clara(shop: Shop) -> User:
    user = person("clara", Role.CLERK, shop.merchant)
    user.set_password(PASSWORD)
    user.save()
    return user


def addresses() -> list[str]:
    """Every address of the back office that takes no argument, and those with words of anybody's choice in them."""
    found = [*_below(get_resolver().url_patterns, "/")]
    plain = {
        one for one in found if one.startswith("/admin/") and "<" not in one and "\\" not in one and "^" not in one
    }
    assert {LOGIN, PASSKEY, "/admin/password_change/", "/admin/jsi18n/", "/admin/again/password/"} <= plain
    return [
        *sorted(plain),
        "/admin/login/sso/",
        "/admin/login/sso/callback/?code=x&state=y",
        "/admin/welcome/OTk/c-d/",
        "/admin/gateway/payment/1/change/",
        "/admin/nothing/",
        "/docs",
        "/testdata",
        "/demo/",
    ]


def _below(patterns: list[URLPattern | URLResolver], before: str) -> list[str]:
    found = []
    for one in patterns:
        here = before + str(one.pattern)
        found += _below(one.url_patterns, here) if isinstance(one, URLResolver) else [here]
    return found


def test_strangers_write_no_session(client: Client, clara: User) -> None:
    """Each address of the back office, by GET and POST, by browsers that keep no cookies and by one that does; failed
    sign-ins; passkeys that are asked for."""
    for address in addresses():
        for browser in (Client(raise_request_exception=False), client):
            browser.raise_request_exception = False
            assert browser.get(address).status_code < 500, address
            assert browser.get(address, headers=AJAX).status_code < 500, address
            assert (
                browser.post(address, {"username": "clara", "password": "wrong", "credential": "{}"}).status_code < 500
            )
    for browser in (Client(), client):
        browser.post(LOGIN, {"username": "clara", "password": "wrong"})
        browser.post(LOGIN, {"username": "a stranger", "password": "wrong"})
        assert browser.get(PASSKEY, headers=AJAX).status_code == 200
    assert Session.objects.count() == 0
    assert SignIn.objects.count() == 0


def test_a_visitors_session_is_kept_by_the_browser(client: Client, db: None) -> None:
    """What a passkey has to answer is found again."""
    client.get(PASSKEY, headers=AJAX)
    cookie = client.cookies["sessionid"]
    assert "mfa.webauthn.state" in SessionStore(cookie.value)
    assert cookie["httponly"]
    assert SessionStore(cookie.value[:-1] + ("a" if cookie.value[-1] != "a" else "b")).load() == {}


def test_a_right_password_begins_a_row(client: Client, clara: User) -> None:
    """Also where a second factor is still asked for: a row is ended by leaving, a cookie is not."""
    secret = app_of(clara)
    client.get(PASSKEY, headers=AJAX)
    client.post(LOGIN, {"username": "clara", "password": PASSWORD})
    assert Session.objects.count() == 1
    half = client.cookies["sessionid"].value
    assert ":" not in half
    client.post("/admin/code/", {"code": code_of(secret)})
    assert client.get("/admin/").status_code == 200
    assert client.cookies["sessionid"].value != half
    assert Session.objects.count() == 1
    client.post("/admin/logout/")
    assert Session.objects.count() == 0


@pytest.mark.parametrize("name", [SESSION_KEY, LOGIN_SESSION_KEY])
def test_no_cookie_signs_anybody_in(clara: User, name: str) -> None:
    """Not even one with our signature."""
    forged = signing.dumps({name: str(clara.pk)}, salt="gateway.access.sessions")
    assert SessionStore(forged).load() == {}


def test_a_visitors_cookie_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    store = SessionStore()
    store["kept"] = 1
    store.save()
    assert SessionStore(store.session_key)["kept"] == 1
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + COOKIE_S + 2)
    assert SessionStore(store.session_key).load() == {}


def test_what_no_cookie_holds_is_left_out() -> None:
    """Browsers would drop it, and keep the one before."""
    store = SessionStore()
    store["long"] = [hash((number, "x")) for number in range(2_000)]
    store.save()
    assert len(store.session_key or "") < 200
    assert SessionStore(store.session_key).load() == {}
