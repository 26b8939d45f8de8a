"""Single sign-on at an OpenID Connect provider that runs as a process: who it lets in, and what it never does.

Source: docs/decisions/0051.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings

from gateway.models import AuditEntry, Grant, Role
from tests.support.fixtures import Shop
from tests.support.office import app_of, code_of, person, prove, signed_in
from tests.support.provider import apps, consent, provider

pytestmark = pytest.mark.django_db
START, AGAIN = "/admin/login/sso/", "/admin/again/"
PEOPLE: list[dict[str, Any]] = [
    {"sub": "clara-1", "email": "clara@shop.example", "email_verified": True},
    {"sub": "unverified", "email": "clara@shop.example", "email_verified": False},
    {"sub": "in-words", "email": "clara@shop.example", "email_verified": "true"},
    {"sub": "stranger", "email": "stranger@shop.example", "email_verified": True},
    {"sub": "nameless"},
    {"sub": "root", "email": "root@shop.example", "email_verified": True},
]


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with provider(PEOPLE) as address:
        yield address


@pytest.fixture(autouse=True)
def settings_of_it(issuer: str) -> Iterator[None]:
    with override_settings(**apps(issuer)):
        yield


@pytest.fixture
def clara(shop: Shop) -> User:
    user = person("clara", Role.CLERK, shop.merchant)
    User.objects.filter(pk=user.pk).update(email="Clara@shop.example")
    return user


def come(client: Client, who: str, **query: str) -> HttpResponse:
    """The whole way to the provider and back."""
    away = client.get(START, query)
    assert away.status_code == 302
    return client.get(consent(away["Location"], who).partition("testserver")[2])


def test_a_user_is_found_by_a_verified_address_and_then_by_the_providers_id(client: Client, clara: User) -> None:
    """The first time by e-mail, from then on by ``sub``, whatever the address is then."""
    assert come(client, "clara-1")["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200
    assert SocialAccount.objects.get().uid == "clara-1"
    assert not SocialToken.objects.exists()
    assert AuditEntry.objects.get(action="single sign-on").after == {"subject": "clara-1"}
    assert AuditEntry.objects.get(action="sign in").after == {"with": "single sign-on"}
    User.objects.filter(pk=clara.pk).update(email="")
    assert come(Client(), "clara-1")["Location"] == "/admin/"


@pytest.mark.parametrize("who", ["unverified", "in-words", "stranger", "nameless", "root"])
def test_nobody_else_comes_in_and_no_user_is_made(client: Client, clara: User, who: str) -> None:
    """No user, no right; superusers are not found by an address that somebody may change."""
    User.objects.create_superuser("root", "root@shop.example")
    users, grants = User.objects.count(), Grant.objects.count()
    assert come(client, who)["Location"] == "/admin/login/"
    assert "No user here has this identity" in client.get("/admin/login/").content.decode()
    assert client.get("/admin/").status_code == 302
    assert (User.objects.count(), Grant.objects.count(), SocialAccount.objects.count()) == (users, grants, 0)


def test_an_address_of_two_users_is_nobodys(client: Client, clara: User, shop: Shop) -> None:
    twin = person("twin", Role.MANAGER, shop.merchant)
    User.objects.filter(pk=twin.pk).update(email="clara@shop.example")
    assert come(client, "clara-1")["Location"] == "/admin/login/"
    assert not SocialAccount.objects.exists()


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_staff": False}])
def test_who_is_switched_off_here_stays_out(client: Client, clara: User, change: dict[str, bool]) -> None:
    come(Client(), "clara-1")
    User.objects.filter(pk=clara.pk).update(**change)
    assert come(client, "clara-1")["Location"] == "/admin/login/"
    assert client.get("/admin/").status_code == 302


def test_the_second_factor_stays_ours(client: Client, clara: User) -> None:
    """What the provider asked for is not known here."""
    secret = app_of(clara)
    assert come(client, "clara-1")["Location"] == "/admin/code/"
    assert client.get("/admin/")["Location"].startswith("/admin/login/")
    assert client.post("/admin/code/", {"code": code_of(secret)})["Location"] == "/admin/"
    assert AuditEntry.objects.get(action="sign in").after == {"with": "single sign-on, code"}


@override_settings(GATEWAY_TOTP="required")
def test_where_a_second_factor_is_required_it_is_set_up_first(client: Client, clara: User) -> None:
    come(client, "clara-1")
    assert client.get("/admin/")["Location"] == "/admin/set-up/"


def test_the_way_on_is_kept_and_stays_in_the_house(client: Client, clara: User) -> None:
    assert come(client, "clara-1", next="/admin/account/")["Location"] == "/admin/account/"
    assert come(Client(), "clara-1", next="https://evil.example/")["Location"] == "/admin/"


def test_an_answer_that_this_browser_did_not_ask_for_is_refused(client: Client, clara: User) -> None:
    """A stolen or planted code: the way back is tied to the session, and the exchange to a secret of it (PKCE)."""
    away = Client().get(START)["Location"]
    assert parse_qs(urlsplit(away).query)["code_challenge_method"] == ["S256"]
    back = consent(away, "clara-1").partition("testserver")[2]
    assert client.get(back)["Location"] == "/admin/login/"
    assert client.get("/admin/").status_code == 302


def test_who_says_no_at_the_provider_is_back_at_the_sign_in_page(client: Client, clara: User) -> None:
    away = client.get(START)["Location"]
    back = consent(away, "clara-1", action="deny").partition("testserver")[2]
    assert client.get(back, follow=True).redirect_chain[-1][0] == "/admin/login/"
    assert client.get("/admin/").status_code == 302


def test_a_provider_that_is_away_is_no_fault_of_ours(client: Client, clara: User) -> None:
    with override_settings(**apps("http://127.0.0.1:9")):
        answer = client.get(START)
    assert answer["Location"] == "/admin/login/"
    assert "Single sign-on did not work" in client.get("/admin/login/").content.decode()


def test_there_is_none_where_none_is_set(client: Client, db: None) -> None:
    with override_settings(GATEWAY_OIDC_ISSUER="", SOCIALACCOUNT_PROVIDERS={"openid_connect": {"APPS": []}}):
        assert START not in client.get("/admin/login/").content.decode()
        assert client.get(START).status_code == 404
    assert START in client.get("/admin/login/").content.decode()


def test_who_has_no_password_proves_themselves_by_it(client: Client, clara: User) -> None:
    """Before what moves money: by the only way that they have."""
    come(client, "clara-1")
    session = client.session
    session["account_authentication_methods"] = []
    session.save()
    assert client.get("/admin/passkeys/add/")["Location"].startswith(AGAIN)
    asked = client.post("/admin/account/", {"act": "unlink"})
    assert asked["Location"] == f"{AGAIN}?next=%2Fadmin%2Faccount%2F"
    assert client.get(asked["Location"])["Location"] == f"{START}?next=%2Fadmin%2Faccount%2F"
    assert come(client, "clara-1", next="/admin/account/")["Location"] == "/admin/account/"
    assert client.post("/admin/account/", {"act": "unlink"}).status_code == 302
    assert not SocialAccount.objects.exists()


def test_a_manager_undoes_it(clara: User, shop: Shop) -> None:
    """Who was linked wrongly, or has left the bank."""
    come(Client(), "clara-1")
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    assert boss.post(f"/admin/auth/user/{clara.pk}/act/", {"act": "unlink"}).status_code == 302
    assert not SocialAccount.objects.exists()
    prove(boss, User.objects.get(username="boss"))
