"""Signing in to the back office: password, code, recovery codes, lock-out, sessions, showing again who one is.

Source: issue 7 (TOTP for staff of the live environment, recovery codes, lock-out, session list, re-authentication);
docs/decisions/0024.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings

from gateway import clock, signin, totp
from gateway.admin import account
from gateway.audit import Actor
from gateway.models import AuditEntry, RecoveryCode, Role, SecondFactor, SignIn
from gateway.secret import Secret
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.office import Moving, person, signed_in
from tests.support.threads import at_once, times

pytestmark = pytest.mark.django_db
LOGIN, CODE, SET_UP, AGAIN, ACCOUNT = (
    "/admin/login/", "/admin/code/", "/admin/code/set-up/", "/admin/again/", "/admin/account/",
)  # fmt: skip
PASSWORD = "correct horse battery"
BY = Actor(name="tests")
required = override_settings(GATEWAY_TOTP="required")


@pytest.fixture(autouse=True)
def quick_hashes(settings: Any) -> None:
    """A slow hash is right for thieves and wrong for a hundred tries."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def clerk(shop: Shop) -> User:
    user = person("clara", Role.CLERK, shop.merchant)
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def secret(clerk: User) -> Secret:
    """The secret of an app that ``clerk`` has set up, some time ago."""
    found = signin.offer_factor(clerk)
    assert signin.confirm_factor(clerk, found, now(found.secret), by=BY)
    SecondFactor.objects.update(last_step=0)
    return found.secret


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Moving:
    """It is five past ten, until it is said otherwise."""
    moving = Moving(datetime(2027, 3, 1, 10, 5, tzinfo=UTC))
    monkeypatch.setattr(clock, "real", moving.real)
    return moving


def now(secret: Secret) -> str:
    return totp.code(secret, totp.step_at(clock.real()))


def log_in(client: Client, name: str = "clara", password: str = PASSWORD, **more: Any) -> HttpResponse:
    return client.post(LOGIN, {"username": name, "password": password, **more})


def is_in(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


# --- RFC 6238 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seconds, expected",
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037")],
)
def test_codes_are_those_of_the_standard(seconds: int, expected: str) -> None:
    """RFC 6238, appendix B, the last six digits."""
    secret = Secret("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
    assert totp.code(secret, seconds // totp.STEP_S) == expected


def test_a_code_is_good_for_its_neighbours_in_time_and_no_longer() -> None:
    """RFC 6238, 5.2."""
    secret, moment = totp.new_secret(), clock.real()
    step = totp.step_at(moment)
    for off, good in ((-2, False), (-1, True), (0, True), (1, True), (2, False)):
        assert (totp.match(secret, totp.code(secret, step + off), moment, after=0) is not None) is good, off
    assert totp.match(secret, totp.code(secret, step), moment, after=step) is None


# --- password and code ----------------------------------------------------------------------------------------------


def test_a_password_is_enough_where_no_second_factor_is_asked_for(client: Client, clerk: User) -> None:
    """GATEWAY_TOTP=optional, the default of the test environment."""
    assert log_in(client)["Location"] == "/admin/"
    assert "This is your first sign-in" in client.get("/admin/").content.decode()


def test_the_last_sign_in_is_shown(client: Client, clerk: User) -> None:
    """Journey 4, step 1."""
    log_in(Client())
    log_in(client)
    assert "Your last sign-in:" in client.get("/admin/").content.decode()


def test_whoever_has_an_app_is_asked_for_its_code(client: Client, clerk: User, secret: Secret) -> None:
    """Journey 4, step 1."""
    assert log_in(client)["Location"] == CODE
    assert not is_in(client)
    assert client.post(CODE, {"code": "000000"}).status_code == 422
    assert not is_in(client)
    assert client.post(CODE, {"code": now(secret)})["Location"] == "/admin/"
    assert is_in(client)


@pytest.mark.parametrize("path", ["/admin/", ACCOUNT, "/admin/gateway/payment/", SET_UP, AGAIN])
def test_between_password_and_code_nobody_is_in(client: Client, clerk: User, secret: Secret, path: str) -> None:
    """Issue 7: TOTP required."""
    log_in(client)
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith((LOGIN, CODE))


def test_a_code_is_taken_once(client: Client, clerk: User, secret: Secret) -> None:
    """RFC 6238, 5.2."""
    code = now(secret)
    log_in(client)
    client.post(CODE, {"code": code})
    again = Client()
    log_in(again)
    assert again.post(CODE, {"code": code}).status_code == 422
    assert not is_in(again)


@required
def test_where_it_is_required_the_app_is_set_up_before_anything_else(client: Client, clerk: User) -> None:
    """Issue 7: TOTP required for staff of the live environment, recovery codes."""
    assert log_in(client)["Location"] == SET_UP
    page = client.get(SET_UP)
    assert "no-store" in page["Cache-Control"]
    key = re.search(r'th-key">([A-Z2-7 ]+)<', page.content.decode())
    assert key
    secret = Secret(key[1].replace(" ", ""))
    assert client.post(SET_UP, {"code": "123"}).status_code == 422
    assert not is_in(client)
    shown = client.post(SET_UP, {"code": now(secret)})
    codes = re.findall(r"[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}-[a-z2-7]{4}", shown.content.decode())
    assert len(set(codes)) == 10
    assert is_in(client)
    assert places_of(*codes, secret.reveal()) == set()
    assert AuditEntry.objects.filter(action="second factor").count() == 1


@required
def test_a_session_without_a_second_factor_ends_where_one_is_required(clerk: User) -> None:
    """Issue 7: no other way of signing in goes around it."""
    assert signed_in(clerk).get("/admin/").status_code == 302


def test_a_session_of_another_way_in_ends_for_whoever_has_a_factor(clerk: User, secret: Secret) -> None:
    """Issue 7."""
    assert signed_in(clerk).get("/admin/").status_code == 302


def test_a_recovery_code_opens_once(client: Client, clerk: User, secret: Secret) -> None:
    """Issue 7: recovery codes."""
    code = signin.new_recovery_codes(clerk, by=BY)[3]
    log_in(client)
    assert client.post(CODE, {"code": f" {code.upper()} "})["Location"] == "/admin/"
    assert "9 are left" in client.get("/admin/").content.decode()
    again = Client()
    log_in(again)
    assert again.post(CODE, {"code": code}).status_code == 422


def test_new_recovery_codes_replace_the_old_ones(client: Client, clerk: User, secret: Secret) -> None:
    """Issue 7: recovery codes."""
    old = signin.new_recovery_codes(clerk, by=BY)[0]
    log_in(client)
    client.post(CODE, {"code": now(secret)})
    assert client.post(ACCOUNT, {"act": "new codes"}).status_code == 200
    assert RecoveryCode.objects.count() == 10
    assert signin.check_factor(clerk, old) is None


@pytest.mark.parametrize(
    "onward", ["//evil.example/", "https://evil.example/", "javascript:alert(1)", "\\\\evil.example"]
)
def test_the_way_on_stays_in_the_house(client: Client, clerk: User, onward: str) -> None:
    """Goals: no open redirect."""
    assert log_in(client, next=onward)["Location"] == "/admin/"


def test_the_way_on_is_kept_through_the_second_step(client: Client, clerk: User, secret: Secret) -> None:
    """Journey 4."""
    log_in(client, next="/admin/gateway/payment/")
    assert client.post(CODE, {"code": now(secret)})["Location"] == "/admin/gateway/payment/"


def test_signing_in_changes_the_session_key(client: Client, clerk: User) -> None:
    """Goals: no session fixation."""
    client.get(LOGIN)
    session = client.session
    session["seed"] = 1
    session.save()
    before = client.session.session_key
    log_in(client)
    assert client.session.session_key != before


# --- lock-out -------------------------------------------------------------------------------------------------------


def test_after_too_many_tries_even_the_right_password_waits(client: Client, clerk: User, time: Moving) -> None:
    """Issue 7: lock-out. Real names and invented ones look the same."""
    for name in ("clara", "nobody"):
        for _ in range(signin.MOST_TRIES["name and address"]):
            assert "Too many tries" not in log_in(client, name, "wrong").content.decode()
        assert "Too many tries. The next may be made at 10:15 UTC" in log_in(client, name, "x").content.decode()
    assert not is_in(client)
    assert "Too many tries" in log_in(client).content.decode()
    time.shift(timedelta(minutes=10))
    assert log_in(client)["Location"] == "/admin/"
    assert AuditEntry.objects.filter(action="refused").count() == signin.MOST_TRIES["name and address"]


def test_a_right_try_forgets_the_wrong_ones_before(client: Client, clerk: User, time: Moving) -> None:
    """Issue 7: lock-out."""
    for _ in range(3):
        for _ in range(signin.MOST_TRIES["name and address"] - 1):
            log_in(Client(), password="wrong")
        assert log_in(Client())["Location"] == "/admin/"


def test_codes_are_locked_out_too(client: Client, clerk: User, secret: Secret, time: Moving) -> None:
    """Issue 7: six digits are guessed soon."""
    log_in(client)
    for _ in range(signin.MOST_TRIES["name and address"]):
        client.post(CODE, {"code": "000000"})
    assert "Too many tries" in client.post(CODE, {"code": now(secret)}).content.decode()
    assert not is_in(client)


def locked(name: str, ip: str) -> bool:
    try:
        signin.count_try(name, ip)
    except signin.LockedOut:
        return True
    return False


def test_one_address_locks_a_name_for_nobody_else(time: Moving) -> None:
    """Found in use: 31 requests from one machine, and nobody of that name signed in for a quarter of an hour."""
    for _ in range(2 * signin.MOST_TRIES["name"]):
        locked("clara", "192.0.2.1")
    assert locked("clara", "192.0.2.1")
    assert not locked("clara", "192.0.2.2")


def test_a_name_is_locked_for_many_addresses_but_not_where_its_owner_signed_in(clerk: User, time: Moving) -> None:
    """Decision 0046."""
    for place in ("198.51.100.7", "2001:db8:1:2::7"):
        signin.begin(clerk, ip=place, agent="", second_factor=False)
    for number in range(signin.MOST_TRIES["name"]):
        assert not locked("clara", f"192.0.2.{number}")
    assert locked("clara", "192.0.2.200")
    assert not locked("clara", "198.51.100.7")
    assert not locked("clara", "2001:db8:1:2:ffff::1")
    assert locked("clara", "2001:db8:1:3::7")
    assert locked("nobody", "198.51.100.7") is False
    for _ in range(signin.MOST_TRIES["name and address"]):
        locked("clara", "198.51.100.7")
    assert locked("clara", "198.51.100.7")
    time.shift(signin.KNOWN_FOR + timedelta(minutes=1))
    for number in range(signin.MOST_TRIES["name"]):
        locked("clara", f"192.0.2.{number}")
    assert locked("clara", "198.51.100.7")


def test_addresses_of_one_ipv6_network_are_one(time: Moving) -> None:
    """Whoever has a line has all of its addresses."""
    for number in range(signin.MOST_TRIES["name and address"]):
        assert not locked("clara", f"2001:db8::{number:x}")
    assert locked("clara", "2001:db8::ffff")
    assert not locked("clara", "2001:db8:0:1::1")


@pytest.mark.django_db(transaction=True)
def test_tries_at_once_are_all_counted(time: Moving) -> None:
    """Issue 7: a lock that many threads run past locks nobody."""

    def attempt() -> bool:
        try:
            signin.count_try("clara", "10.0.0.1")
        except signin.LockedOut:
            return False
        return True

    assert at_once(*times(16, attempt)).count(True) == signin.MOST_TRIES["name and address"]


@pytest.mark.django_db(transaction=True)
def test_of_two_that_send_one_code_at_once_one_is_in(committed: Shop) -> None:
    """RFC 6238, 5.2: a code is taken once."""
    user = person("clara", Role.CLERK, committed.merchant)
    offer = signin.offer_factor(user)
    secret = offer.secret
    signin.confirm_factor(user, offer, now(secret), by=BY)
    SecondFactor.objects.update(last_step=0)
    code = now(secret)
    found = at_once(*times(4, lambda: signin.check_factor(user, code)))
    assert sorted(each or "" for each in found) == ["", "", "", "code"]


# --- sessions -------------------------------------------------------------------------------------------------------


def test_a_session_is_ended_from_another_browser(client: Client, clerk: User) -> None:
    """Issue 7: session list."""
    elsewhere = Client(headers={"user-agent": "Firefox on a lost phone"})
    log_in(elsewhere)
    log_in(client)
    page = client.get(ACCOUNT).content.decode()
    assert "Firefox on a lost phone" in page
    client.post(ACCOUNT, {"act": "end others"})
    assert not is_in(elsewhere)
    assert is_in(client)
    assert AuditEntry.objects.get(action="end sessions").after == {"sessions": 1}


def test_nobody_ends_the_session_of_somebody_else(client: Client, clerk: User, shop: Shop) -> None:
    """Issue 7."""
    other = person("other", Role.CLERK, shop.merchant)
    theirs = signed_in(other)
    assert is_in(theirs)
    log_in(client)
    row = SignIn.objects.get(user=other)
    client.post(ACCOUNT, {"act": "end", "session": str(row.pk)})
    client.post(ACCOUNT, {"act": "end", "session": "x"})
    assert is_in(theirs)


@pytest.mark.parametrize("away, still", [(timedelta(minutes=59), True), (timedelta(minutes=61), False)])
def test_a_session_ends_when_nobody_uses_it(
    client: Client, clerk: User, away: timedelta, still: bool, time: Moving
) -> None:
    """Issue 7: session age limits."""
    log_in(client)
    time.shift(away)
    assert is_in(client) is still


def test_a_session_ends_after_its_hours_however_busy(client: Client, clerk: User, time: Moving) -> None:
    """Issue 7: session age limits."""
    time.shift(timedelta(hours=-4))
    log_in(client)
    for _ in range(13):
        time.shift(timedelta(minutes=55))
        assert is_in(client)
    time.shift(timedelta(minutes=10))
    assert not is_in(client)


def test_signing_out_ends_the_row_too(client: Client, clerk: User) -> None:
    """Issue 7: the session list tells the truth."""
    log_in(client)
    client.post("/admin/logout/")
    assert SignIn.objects.get().ended_by == "clara"
    assert not is_in(client)


def test_a_new_password_ends_the_sessions_elsewhere(client: Client, clerk: User) -> None:
    """Issue 7."""
    elsewhere = Client()
    log_in(elsewhere)
    log_in(client)
    new = "another horse battery"
    changed = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert client.post("/admin/password_change/", changed).status_code == 302
    assert is_in(client)
    assert not is_in(elsewhere)
    assert AuditEntry.objects.filter(action="set password").count() == 1


# --- showing again who one is ---------------------------------------------------------------------------------------


def test_a_password_or_a_code_is_good_for_ten_minutes(
    client: Client, clerk: User, secret: Secret, time: Moving
) -> None:
    """Issue 7: sudo-style re-authentication."""
    log_in(client)
    client.post(CODE, {"code": now(secret)})
    for proof in (lambda: PASSWORD, lambda: now(secret)):
        time.shift(timedelta(minutes=11))
        assert client.post(ACCOUNT, {"act": "new codes"})["Location"] == f"{AGAIN}?next=%2Fadmin%2Faccount%2F"
        assert "wrong" not in client.get(AGAIN).content.decode()
        assert "neither your password" in client.post(AGAIN, {"proof": "wrong"}).content.decode()
        assert client.post(AGAIN, {"proof": proof(), "next": ACCOUNT})["Location"] == ACCOUNT
        assert client.post(ACCOUNT, {"act": "new codes"}).status_code == 200


# --- the first password ---------------------------------------------------------------------------------------------


def test_a_link_sets_the_first_password_once(client: Client, shop: Shop) -> None:
    """Issue 7: users of a merchant are made by its manager."""
    user = person("newcomer", Role.CLERK, shop.merchant)
    address = account.welcome_address(user)
    assert "newcomer" in client.get(address).content.decode()
    fields: Callable[[str], dict[str, str]] = lambda text: {"password1": text, "password2": text}  # noqa: E731
    assert client.post(address, fields("short")).status_code == 200
    assert client.post(address, fields(PASSWORD))["Location"] == LOGIN
    assert log_in(client, "newcomer")["Location"] == "/admin/"
    assert client.get(address).status_code == 404


@pytest.mark.parametrize("address", ["/admin/welcome/x/y/", "/admin/welcome/OTk5OTk5/c-d/", "/admin/welcome/%FF/c-d/"])
def test_a_link_that_nobody_made_opens_nothing(client: Client, db: None, address: str) -> None:
    """Goals: no 500."""
    assert client.get(address).status_code == 404
    assert client.post(address, {"password1": PASSWORD, "password2": PASSWORD}).status_code == 404


# --- what was found in use --------------------------------------------------------------------------------------------


def key_shown(page: HttpResponse) -> Secret:
    """The key of the app, as the page writes it in groups of four."""
    found = re.search(r"(?:[A-Z2-7]{4} ){4,}[A-Z2-7]{1,4}", page.content.decode())
    assert found
    return Secret(found[0].replace(" ", ""))


def test_a_factor_is_set_up_with_a_secret_of_its_own_session(clerk: User, time: Moving) -> None:
    """Found in use: who once knew the password read the same secret as the owner, and waited."""
    thief, owner = signed_in(clerk), signed_in(clerk)
    stolen, own = key_shown(thief.get(SET_UP)), key_shown(owner.get(SET_UP))
    assert stolen.reveal() != own.reveal()
    assert key_shown(owner.get(SET_UP)).reveal() == own.reveal()
    assert owner.post(SET_UP, {"code": now(stolen)}).status_code == 422
    assert "recovery codes" in owner.post(SET_UP, {"code": now(own)}).content.decode()
    assert is_in(owner)
    assert not is_in(thief)
    assert signin.check_factor(clerk, now(stolen)) is None


def test_a_secret_that_was_shown_is_good_for_ten_minutes(clerk: User, time: Moving) -> None:
    """A page that was left open is no key for later."""
    client = signed_in(clerk)
    shown = key_shown(client.get(SET_UP))
    time.shift(timedelta(minutes=11))
    session = client.session
    session["fresh_at"] = clock.real().timestamp()
    session.save()
    assert client.post(SET_UP, {"code": now(shown)}).status_code == 422
    assert not SecondFactor.objects.exists()
    assert key_shown(client.get(SET_UP)).reveal() != shown.reveal()


def test_a_password_is_not_guessed_inside_a_session(clerk: User, time: Moving) -> None:
    """Found in use: forty tries of the old password, no lock and no trace."""
    client = signed_in(clerk)
    form = {"old_password": "wrong", "new_password1": "Tollhouse-4711-x", "new_password2": "Tollhouse-4711-x"}
    for _ in range(8):
        client.post("/admin/password_change/", form)
    assert AuditEntry.objects.filter(action="refused", subject_id=str(clerk.pk)).count() == 6
    page = client.post("/admin/password_change/", {**form, "old_password": PASSWORD}, follow=True)
    assert "Too many tries" in page.content.decode()
    clerk.refresh_from_db()
    assert clerk.check_password(PASSWORD)
    time.shift(timedelta(minutes=15))
    session = signed_in(clerk)
    assert session.post("/admin/password_change/", {**form, "old_password": PASSWORD}).status_code == 302


def test_an_address_signs_nobody_out(clerk: User) -> None:
    """Found in use: GET answered 405 and had ended the session: an image on any page would do."""
    client = signed_in(clerk)
    assert is_in(client)
    assert client.get("/admin/logout/").status_code == 405
    assert is_in(client)


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("path", [
    "/admin/gateway/authentication/", "/admin/gateway/auditentry/", "/admin/gateway/registration/",
    "/admin/gateway/requestlog/", "/admin/gateway/notification/", "/admin/checkout/checkout/", "/admin/autocomplete/",
    "/admin/gateway/payment/",
])  # fmt: skip
def test_a_nul_is_left_out_of_an_address_and_refused_in_a_form(clerk: User, path: str, method: str) -> None:
    """Found in use: a 500 on nearly every list."""
    client = signed_in(clerk)
    for name in ("q", "after", "step__exact", "status", "kind__exact", "term"):
        answer = getattr(client, method)(path, {name: "a\0b", "p": "1"}, headers={"accept": "text/html"})
        if method == "get":
            assert (answer.status_code, answer["Location"]) == (302, f"{path}?p=1")
        else:
            assert answer.status_code == 400
            assert "could not be read" in answer.content.decode()


def test_a_whole_card_number_stays_in_no_address(clerk: User) -> None:
    """Found in use: the search of registrations and of the request log repeated it."""
    client = signed_in(clerk)
    for path in ("/admin/gateway/registration/", "/admin/gateway/requestlog/", "/admin/gateway/webhookdelivery/"):
        for number in ("4200000000000000", "4200 0000 0000 0000"):
            answer = client.get(path, {"q": number, "status": "x", "payment": number})
            assert answer["Location"] == f"{path}?status=x"
            assert "last four" in client.get(path).content.decode()


def test_a_form_without_its_token_gets_a_page_of_ours(clerk: User) -> None:
    """Found in use: Django's own page."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(clerk)
    answer = client.post("/admin/again/", {"proof": "x"}, headers={"accept": "text/html"})
    assert answer.status_code == 403
    assert "This page is not for you" in answer.content.decode()


def test_a_page_that_asks_by_itself_keeps_no_session_alive(clerk: User, time: Moving, settings: Any) -> None:
    """Found in use: the inspector, left open, looked every two seconds, and nobody was ever signed out."""
    client = signed_in(clerk)
    assert is_in(client)
    for _ in range(3):
        time.shift(timedelta(minutes=settings.GATEWAY_SESSION_IDLE_MINUTES // 2))
        client.get("/admin/gateway/backgroundwork/", headers={"sec-fetch-dest": "empty"})
    assert not is_in(client)


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36",
         "Chrome, Linux"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1 Version/17.5 Safari/604.1",
         "Safari, iPhone"),
        ("a<b>" + "x" * 100, "a&lt;b&gt;" + "x" * 34), ("", "–"),
    ],
)  # fmt: skip
def test_a_sign_in_is_listed_with_its_browser_in_a_few_words(shop: Shop, agent: str, shown: str) -> None:
    """Found in use: what a browser calls itself was cut off on a phone."""
    boss = person("boss", Role.MANAGER, shop.merchant)
    SignIn.objects.create(user=boss, at=clock.real(), last_seen_at=clock.real(), agent=agent)
    assert shown in signed_in(boss).get("/admin/gateway/signin/").content.decode()
