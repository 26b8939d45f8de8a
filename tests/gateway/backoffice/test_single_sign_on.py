"""Single sign-on at an OpenID Connect provider that runs as a process: who it lets in, and what it never does.

Source: docs/decisions/0051.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
import structlog
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client, override_settings

from gateway.backoffice.sign_in import provider_session
from gateway.models import AuditEntry, Grant, Role, SignIn
from tests.support.fixtures import Shop
from tests.support.office import app_of, code_of, person, prove, signed_in
from tests.support.provider import apps, consent, provider
from tests.support.receivers import answering, receiving

pytestmark = pytest.mark.django_db
START, AGAIN = "/admin/login/sso/", "/admin/again/"
PEOPLE: list[dict[str, Any]] = [
    {"sub": "clara-1", "email": "clara@shop.example", "email_verified": True},
    {"sub": "unverified", "email": "clara@shop.example", "email_verified": False},
    {"sub": "in-words", "email": "clara@shop.example", "email_verified": "true"},
    {"sub": "stranger", "email": "stranger@shop.example", "email_verified": True},
    {"sub": "nameless"},
    {"sub": "clara-2", "email": "clara@shop.example", "email_verified": True},
    {"sub": "look-alike", "email": "cl\u0131ra@shop.example", "email_verified": True},
    {"sub": "x" * 230, "email": "clara@shop.example", "email_verified": True},
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


def away(client: Client, **sent: str) -> str:
    """The provider's address that the press of the button leads to."""
    answer = client.post(START, sent)
    assert answer.status_code == 200
    return str(answer["Refresh"].removeprefix("0; url="))


def come(client: Client, who: str, **sent: str) -> HttpResponse:
    """The whole way to the provider and back."""
    return client.get(consent(away(client, **sent), who).partition("testserver")[2])


def test_a_user_is_found_by_a_verified_address_and_then_by_the_providers_id(
    client: Client, clara: User, issuer: str
) -> None:
    """The first time by e-mail, from then on by ``sub``, whatever the address is then."""
    assert come(client, "clara-1")["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200
    assert SocialAccount.objects.get().uid.endswith(":clara-1")
    assert not SocialToken.objects.exists()
    assert AuditEntry.objects.get(action="single sign-on").after == {"subject": "clara-1", "issuer": issuer}
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


@pytest.mark.parametrize("change", [{"is_active": False}, {"is_staff": False}, {"is_superuser": True}])
def test_who_may_not_come_in_by_an_address_is_not_linked_by_it(
    client: Client, clara: User, change: dict[str, bool]
) -> None:
    User.objects.filter(pk=clara.pk).update(**change)
    assert come(client, "clara-1")["Location"] == "/admin/login/"
    assert not SocialAccount.objects.exists()


def test_an_address_of_somebody_who_was_switched_off_is_free_for_its_next_user(
    client: Client, clara: User, shop: Shop
) -> None:
    before = person("before", Role.CLERK, shop.merchant)
    User.objects.filter(pk=before.pk).update(email="clara@shop.example", is_active=False)
    assert come(client, "clara-1")["Location"] == "/admin/"
    assert SocialAccount.objects.get().user == clara


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
    begun = away(Client())
    assert parse_qs(urlsplit(begun).query)["code_challenge_method"] == ["S256"]
    back = consent(begun, "clara-1").partition("testserver")[2]
    assert client.get(back)["Location"] == "/admin/login/"
    assert client.get("/admin/").status_code == 302


def test_a_code_of_another_request_is_refused_also_by_a_provider_without_pkce(client: Client, clara: User) -> None:
    """The provider of the tests ignores the challenge: the nonce of its ID token tells. OpenID Connect Core 3.1.3.7"""
    stolen = parse_qs(urlsplit(consent(away(Client()), "clara-1")).query)["code"][0]
    asked = parse_qs(urlsplit(away(client)).query)
    assert asked["nonce"][0] not in asked["code_challenge"][0]
    back = consent(away(client), "clara-1").partition("testserver")[2]
    own = parse_qs(urlsplit(back).query)
    answer = client.get(urlsplit(back).path, {"code": stolen, "state": own["state"][0]})
    assert answer["Location"] == "/admin/login/"
    assert client.get("/admin/").status_code == 302


def test_who_says_no_at_the_provider_is_back_at_the_sign_in_page(client: Client, clara: User) -> None:
    back = consent(away(client), "clara-1", action="deny").partition("testserver")[2]
    assert client.get(back, follow=True).redirect_chain[-1][0] == "/admin/login/"
    assert client.get("/admin/").status_code == 302


def test_a_provider_that_is_away_is_no_fault_of_ours(client: Client, clara: User) -> None:
    with override_settings(**apps("http://127.0.0.1:9")), structlog.testing.capture_logs() as logged:
        answer = client.post(START)
    (told,) = (one for one in logged if one["event"] == "single_sign_on_failed")
    assert (told["why"], "status" in told) == ("ConnectionError", False)
    assert told["asked"] == "http://127.0.0.1:9/.well-known/openid-configuration"
    assert answer["Location"] == "/admin/login/"
    assert "Single sign-on did not work" in client.get("/admin/login/").content.decode()


@pytest.mark.parametrize("status", [200, 503])
def test_the_log_says_where_single_sign_on_failed_and_nothing_of_what_was_sent(
    client: Client, clara: User, status: int
) -> None:
    odd = answering(status, b'{"secret": "s3cr3t"}', "Content-Type: application/json")
    with (
        receiving(odd) as receiver,
        structlog.testing.capture_logs() as logged,
        override_settings(**apps(receiver.url)),
    ):
        assert client.post(START)["Location"] == "/admin/login/"
    (told,) = (one for one in logged if one["event"] == "single_sign_on_failed")
    assert told["why"] == ("KeyError" if status == 200 else "HTTPError")
    assert told.get("status") == (None if status == 200 else 503)
    assert all(re.fullmatch(r"[a-z_]+\.py:[0-9]+ \w+", place) for place in told["at"])
    assert "s3cr3t" not in str(told)


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


ASKED: dict[str, Any] = {
    "long ago": 1_700_000_000,
    "not yet": 4_000_000_000,
    "not said": None,
    "no number": "1700000000",
    "a yes": True,
    "nothing": 0,
}


def set_auth_time(issuer: str, at: Any) -> None:
    """From now on the provider says this of clara-1."""
    claims: Any = {"email": "clara@shop.example", "email_verified": True, "auth_time": at}
    requests.put(f"{issuer}/users/clara-1", json=claims, timeout=20).raise_for_status()


@pytest.fixture
def provider_asks_anew(issuer: str) -> Iterator[None]:
    """After the test the provider says again when it asked."""
    yield
    claims: Any = {"email": "clara@shop.example", "email_verified": True}
    requests.put(f"{issuer}/users/clara-1", json=claims, timeout=20).raise_for_status()


def forget_proofs(client: Client) -> None:
    session = client.session
    session["account_authentication_methods"] = []
    session.save()


@pytest.mark.usefixtures("provider_asks_anew")
@pytest.mark.parametrize("asked", ASKED)
def test_a_provider_that_did_not_ask_anew_proves_nothing(client: Client, clara: User, issuer: str, asked: str) -> None:
    """OpenID Connect Core 1.0, 3.1.2.1: with ``max_age`` there is an ``auth_time``. The open session stays open."""
    come(client, "clara-1")
    forget_proofs(client)
    set_auth_time(issuer, ASKED[asked])
    assert come(client, "clara-1")["Location"] == "/admin/login/"
    assert client.get("/admin/passkeys/add/")["Location"].startswith(AGAIN)
    assert "auth_time" in client.get("/admin/").content.decode()
    assert come(Client(), "clara-1")["Location"] == "/admin/login/"
    set_auth_time(issuer, int(time.time()))
    assert come(client, "clara-1")["Location"] == "/admin/"
    assert client.get("/admin/passkeys/add/").status_code == 200


@pytest.mark.usefixtures("provider_asks_anew")
def test_a_setting_lets_in_where_the_provider_says_nothing(client: Client, clara: User, issuer: str) -> None:
    """The moment of the answer counts then; an old ``auth_time`` that is sent still proves nothing anew."""
    with override_settings(GATEWAY_OIDC_REQUIRE_AUTH_TIME=False):
        set_auth_time(issuer, None)
        assert come(client, "clara-1")["Location"] == "/admin/"
        assert client.get("/admin/passkeys/add/").status_code == 200
        set_auth_time(issuer, 1_700_000_000)
        browser = Client()
        assert come(browser, "clara-1")["Location"] == "/admin/"
        assert browser.get("/admin/passkeys/add/")["Location"].startswith(AGAIN)


def test_a_manager_undoes_it(clara: User, shop: Shop) -> None:
    """Who was linked wrongly, or has left the bank."""
    come(Client(), "clara-1")
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    assert boss.post(f"/admin/auth/user/{clara.pk}/act/", {"act": "unlink"}).status_code == 302
    assert not SocialAccount.objects.exists()
    prove(boss, User.objects.get(username="boss"))


def test_a_look_alike_address_finds_nobody(client: Client, shop: Shop) -> None:
    """The database compares in capitals, in which a dotless i is an I: an address of another is none of ours."""
    for name, email in (("clira", "clira@shop.example"), ("dotless", "CLIRA2@shop.example")):
        User.objects.filter(pk=person(name, Role.CLERK, shop.merchant).pk).update(email=email)
    assert User.objects.filter(email__iexact="cl\u0131ra@shop.example").get().username == "clira"
    assert come(client, "look-alike")["Location"] == "/admin/login/"
    assert not SocialAccount.objects.exists()


def test_a_second_person_of_the_provider_with_the_same_address_finds_nobody(client: Client, clara: User) -> None:
    """Addresses are given to others: who is known by an id is not found by e-mail again."""
    come(Client(), "clara-1")
    assert come(client, "clara-2")["Location"] == "/admin/login/"
    assert client.get("/admin/").status_code == 302
    assert SocialAccount.objects.count() == 1


@pytest.mark.parametrize("process", ["connect", "redirect"])
def test_no_other_process_of_allauth_is_begun(clara: User, shop: Shop, process: str) -> None:
    """``connect`` would link the provider's person to whoever is signed in here, without a sign-in."""
    other = person("other", Role.MANAGER, shop.merchant)
    client = signed_in(other)
    begun = away(client, process=process)
    assert client.get(consent(begun, "clara-1").partition("testserver")[2])["Location"] == "/admin/"
    assert SocialAccount.objects.get().user == clara
    assert client.get("/admin/").wsgi_request.user == clara


def test_a_long_id_of_the_provider_is_a_digest(client: Client, clara: User) -> None:
    """OpenID Connect allows 255 characters; the column has 191."""
    assert come(client, "x" * 230)["Location"] == "/admin/"
    assert come(Client(), "x" * 230)["Location"] == "/admin/"
    assert len(SocialAccount.objects.get().uid) < 100


def test_another_issuers_people_are_others(clara: User, shop: Shop) -> None:
    """The operator changes the provider: there the same ``sub`` is somebody else, and a user links anew."""
    come(Client(), "clara-1")
    dave = person("dave", Role.MANAGER, shop.merchant)
    User.objects.filter(pk=dave.pk).update(email="dave@shop.example")
    people = [
        {"sub": "clara-1", "email": "dave@shop.example", "email_verified": True},
        {"sub": "d-7", "email": "clara@shop.example", "email_verified": True},
    ]
    with provider(people) as address, override_settings(**apps(address)):
        browser = Client()
        come(browser, "clara-1")
        assert browser.get("/admin/").wsgi_request.user == dave
        browser = Client()
        come(browser, "d-7")
        assert browser.get("/admin/").wsgi_request.user == clara
    browser = Client()
    come(browser, "clara-1")
    assert browser.get("/admin/").wsgi_request.user == clara


def test_no_address_of_another_site_begins_it(client: Client, clara: User) -> None:
    """A link or picture elsewhere: it shows a button, and asks the provider for nothing."""
    page = client.get(START, {"next": "/admin/account/", "process": "connect"})
    assert page.status_code == 200
    assert "Refresh" not in page
    assert 'value="/admin/account/"' in page.content.decode()
    assert "socialaccount_states" not in client.session
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(START).status_code == 403


def test_what_the_provider_is_asked_is_ours_to_say(client: Client, clara: User) -> None:
    """An address that asks it for nothing would make a proof of who one is one of nothing."""
    answer = client.post(f"{START}?auth_params=prompt%3Dnone&scope=admin&process=connect", {"scope": "x"})
    asked = parse_qs(urlsplit(answer["Refresh"].removeprefix("0; url=")).query)
    assert set(asked["scope"][0].split()) == {"openid", "profile", "email"}
    assert (asked["prompt"], asked["max_age"]) == (["login"], ["0"])


def test_a_sign_in_within_a_session_ends_the_sessions_row(client: Client, clara: User, shop: Shop) -> None:
    """The page of sessions shows one for each browser: the same person again, and another one."""
    come(client, "clara-1")
    come(client, "clara-1")
    assert [row.ended_at is None for row in SignIn.objects.filter(user=clara)] == [True, False]
    assert client.get("/admin/account/").content.decode().count('name="session"') <= 1
    other = signed_in(person("other", Role.MANAGER, shop.merchant))
    other.get("/admin/")
    come(other, "clara-1")
    assert not SignIn.objects.filter(user__username="other", ended_at__isnull=True).exists()


# --- what strangers can make us do ------------------------------------------------------------------------------------


def test_pressing_the_button_again_asks_the_provider_nothing(
    client: Client, issuer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can press it: each press was a call to the provider, with a TLS handshake."""
    away(client)
    asked: list[str] = []
    send = requests.adapters.HTTPAdapter.send

    def noted(self: Any, request: Any, *args: Any, **options: Any) -> Any:
        asked.append(request.url)
        return send(self, request, *args, **options)

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", noted)
    for _ in range(3):
        assert away(Client()).startswith(issuer)
    assert asked == []


def test_a_provider_that_hangs_holds_two_threads_and_no_more(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of the web server are there for payments, too."""
    going, entered = threading.Event(), threading.Semaphore(0)

    def hang(line: socket.socket, request: bytes) -> None:
        entered.release()
        going.wait(60)
        line.shutdown(socket.SHUT_RDWR)  # else the client waits until its own time is over

    def press() -> HttpResponse:
        try:
            return Client().post(START)
        finally:
            connection.close()

    with receiving(hang) as receiver, override_settings(**apps(f"http://127.0.0.1:{receiver.port}")):
        monkeypatch.setattr(provider_session, "PROVIDER_TIMEOUT_S", 60.0)
        with ThreadPoolExecutor(2) as pool:
            held = [pool.submit(press) for _ in range(2)]
            assert all(entered.acquire(timeout=60) for _ in held)
            refused = client.post(START)
            assert refused["Location"] == "/admin/login/"
            assert receiver.connections == 2
            going.set()
            assert [one.result()["Location"] for one in held] == ["/admin/login/"] * 2
