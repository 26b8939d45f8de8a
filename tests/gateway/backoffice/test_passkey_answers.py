"""Passkeys' answers that are none: refused by the form that asked, and never a fault of ours.

Source: WebAuthn level 2; docs/decisions/0051.
"""

from __future__ import annotations

import json

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client

from gateway.models import Role, SignIn
from tests.support.fixtures import Shop
from tests.support.office import app_of, person, signed_in

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery 7"
AJAX = {"x-requested-with": "XMLHttpRequest"}
SAID = {"clientDataJSON": "e30", "authenticatorData": "AA", "signature": "AA", "userHandle": "MQ"}
BROKEN = [
    "", "x", "{", "null", "1", '"text"', "[]", "[[]]", "{}", "9" * 5_000, "NaN", "1e999", "[" * 2_400, '{"a":' * 600,
    '{"id": 1}', '{"response": null}', '{"response": []}', '{"response": {"userHandle": null}}',
    '{"response": {"userHandle": "!!"}}', '{"response": {"userHandle": "\\ud800"}}',
    json.dumps({"id": "YQ", "rawId": "YQ", "type": "public-key", "response": SAID}),
    json.dumps({"id": "YQ", "rawId": "Yg", "type": "public-key", "response": SAID}),
    json.dumps({"id": "YQ", "rawId": "YQ", "type": "other", "response": SAID, "clientExtensionResults": 7}),
    json.dumps({"id": "YQ", "rawId": "YQ", "type": "public-key", "response": {**SAID, "userHandle": "OTk5OTk5"}}),
    json.dumps({"id": "YQ", "rawId": "YQ", "type": "public-key", "response": {**SAID, "attestationObject": "oA"}}),
]  # fmt: skip


@pytest.fixture
def clara(shop: Shop) -> User:
    user = person("clara", Role.CLERK, shop.merchant)
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.mark.parametrize("asked", [True, False])
def test_a_visitors_broken_answer_leads_back_to_the_sign_in_page(client: Client, clara: User, asked: bool) -> None:
    """Whether a passkey was asked for before or not."""
    for sent in BROKEN:
        if asked:
            client.get("/admin/login/passkey/", headers=AJAX)
        answer = client.post("/admin/login/passkey/", {"credential": sent})
        assert (answer.status_code, answer["Location"]) == (302, "/admin/login/"), sent[:80]
        assert client.get("/admin/login/").status_code == 200
    assert not SignIn.objects.exists()


def test_a_broken_second_factor_is_asked_for_again(client: Client, clara: User) -> None:
    app_of(clara)
    assert client.post("/admin/login/", {"username": "clara", "password": PASSWORD})["Location"] == "/admin/code/"
    for sent in BROKEN:
        client.get("/admin/code/")
        assert client.post("/admin/code/", {"credential": sent}).status_code == 200, sent[:80]
    assert not SignIn.objects.exists()


def test_a_broken_new_passkey_is_refused_by_its_form(clara: User) -> None:
    client = signed_in(clara)
    for sent in BROKEN:
        client.get("/admin/passkeys/add/")
        assert client.post("/admin/passkeys/add/", {"name": "x", "credential": sent}).status_code == 200, sent[:80]
    assert not Authenticator.objects.exists()


def test_a_broken_proof_proves_nothing(clara: User) -> None:
    client = signed_in(clara, fresh=False)
    for sent in BROKEN:
        client.get("/admin/again/passkey/")
        assert client.post("/admin/again/passkey/", {"credential": sent}).status_code in (200, 302), sent[:80]
        assert client.get("/admin/passkeys/add/").status_code == 302, sent[:80]
