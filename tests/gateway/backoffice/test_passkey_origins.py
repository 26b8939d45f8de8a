"""Passkeys answer for this very host and port: what a page of a subdomain or another port was given counts nothing.

Source: Web Authentication level 2, 7.2 step 13 and 13.4.9 (origins of subdomains may be of others).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from gateway.models import SignIn
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.passkeys import SoftPasskey

pytestmark = pytest.mark.django_db

HOST = "office.shop.example"
AJAX = {"x-requested-with": "XMLHttpRequest"}
OWN = f"https://{HOST}"
FOREIGN = {
    "subdomain": (f"https://evil.{HOST}", {}),
    "deeper subdomain": (f"https://a.b.{HOST}", {}),
    "parent": ("https://shop.example", {}),
    "another port": (f"{OWN}:8443", {}),
    "plain HTTP": (f"http://{HOST}", {}),
    "trailing slash": (f"{OWN}/", {}),
    "upper case": (f"https://{HOST.upper()}", {}),
    "an app": ("android:apk-key-hash:abc", {}),
    "none": ("null", {}),
    "a frame of another site": (OWN, {"cross_origin": True}),
    "a frame, in other words": (OWN, {"cross_origin": "no"}),
}


@pytest.fixture(params=[True, False], ids=["test", "live"])
def anywhere(request: pytest.FixtureRequest, settings: Settings) -> None:
    """The library's setting: in the test environment it takes any origin."""
    settings.MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = request.param
    settings.ALLOWED_HOSTS = [HOST]


@pytest.fixture
def clara(shop: Shop, anywhere: None) -> User:
    return person("clara", "clerk", shop.merchant)


def at_host(client: Client) -> Client:
    client.defaults["HTTP_HOST"] = HOST
    return client


def answer_challenge(key: SoftPasskey, user: User, origin: str, **client: Any) -> Client:
    browser = at_host(Client(raise_request_exception=False))
    page = browser.get("/admin/login/passkey/", secure=True, headers=AJAX)
    challenge = page.json()["request_options"]["publicKey"]["challenge"]
    said = key.answer(challenge, origin, user, **client)
    assert browser.post("/admin/login/passkey/", {"credential": json.dumps(said)}, secure=True).status_code < 500
    return browser


def test_an_answer_made_on_our_page_signs_in(clara: User) -> None:
    browser = answer_challenge(SoftPasskey(HOST).give_to(clara), clara, OWN)
    assert browser.get("/admin/account/", secure=True).status_code == 200


@pytest.mark.parametrize(("origin", "client"), FOREIGN.values(), ids=FOREIGN)
def test_an_answer_made_on_another_page_signs_nobody_in(clara: User, origin: str, client: dict[str, Any]) -> None:
    browser = answer_challenge(SoftPasskey(HOST).give_to(clara), clara, origin, **client)
    assert browser.get("/admin/account/", secure=True).status_code == 302
    assert SignIn.objects.count() == 0


@pytest.mark.parametrize(("origin", "taken"), [(OWN, True), (f"https://evil.{HOST}", False)])
def test_a_passkey_is_added_on_our_page_alone(clara: User, origin: str, taken: bool) -> None:
    browser = at_host(signed_in(clara))
    assert browser.get("/admin/passkeys/add/", secure=True).status_code == 200
    challenge = browser.session["mfa.webauthn.state"]["challenge"]
    said = SoftPasskey(HOST).register(challenge, origin)
    form = {"name": "key", "passwordless": "on", "credential": json.dumps(said)}
    assert browser.post("/admin/passkeys/add/", form, secure=True).status_code < 500
    assert Authenticator.objects.filter(type="webauthn").exists() is taken
