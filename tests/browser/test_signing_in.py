"""Signing in with passkeys in a real browser with an authenticator of its own, and the look of every page of it.

Source: WebAuthn level 2; docs/decisions/0051.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, Route, expect

from gateway.models import AuditEntry, Role, SignIn
from tests.browser.conftest import picture
from tests.browser.patience import follow, in_no_hurry
from tests.browser.test_back_office import list_faults
from tests.browser.test_clerks import fits
from tests.support.fixtures import Shop
from tests.support.office import app_of, code_of, person
from tests.support.provider import apps, provider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Opened = Callable[..., Page]
PASSWORD = "correct horse battery 7"
DEVICE = {
    "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
    "isUserVerified": True, "automaticPresenceSimulation": True,
}  # fmt: skip


@pytest.fixture
def dora(committed: Shop) -> User:
    user = person("dora", Role.DEVELOPER, committed.merchant)
    user.set_password(PASSWORD)
    user.save()
    return user


def with_device(page: Page) -> Page:
    """A browser with an authenticator that says yes at once."""
    line = page.context.new_cdp_session(page)
    line.send("WebAuthn.enable")
    line.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
    return page


def give_password(page: Page, site: str) -> None:
    page.goto(f"{site}/admin/login/")
    page.get_by_label("Username").fill("dora")
    page.get_by_label("Password").fill(PASSWORD)
    follow(page, page.get_by_role("button", name="Sign in", exact=True))


def add_passkey(page: Page, site: str, name: str, *, alone: bool) -> None:
    page.goto(f"{site}/admin/passkeys/add/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Sign in with it, without a password").set_checked(alone)
    page.get_by_role("button", name="Add a passkey").click()
    page.wait_for_url(f"{site}/admin/**", wait_until="load")
    expect(page.locator("#mfa_webauthn_add")).to_have_count(0)


def test_a_passkey_is_added_signs_in_and_proves_who_one_is(
    site: str, open_page: Opened, dora: User, settings: Any
) -> None:
    """One thing in place of password and code, also before secrets are shown."""
    page = with_device(open_page(width=390, height=844))
    give_password(page, site)
    add_passkey(page, site, "My phone", alone=True)
    expect(page.get_by_text("Keep them where your phone is not.")).to_be_visible()
    page.get_by_role("link", name="I have kept them").click()
    expect(page.get_by_text("My phone")).to_be_visible()
    page.context.clear_cookies()

    page.goto(f"{site}/admin/login/?next=/admin/account/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{site}/admin/account/")
    assert SignIn.objects.latest("at").second_factor
    assert AuditEntry.objects.filter(action="sign in").latest("id").after == {"with": "passkey"}

    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 0
    page.goto(f"{site}/admin/gateway/accesstoken/add/")
    page.wait_for_url(f"{site}/admin/again/passkey/**")
    settings.ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
    page.get_by_role("button", name="Use your passkey").click()
    page.wait_for_url(f"{site}/admin/gateway/accesstoken/add/")

    page.goto(f"{site}/admin/account/")
    follow(page, page.get_by_role("link", name="Remove"))
    follow(page, page.get_by_role("button", name="Remove"))
    expect(page.get_by_text("The second factor was removed.")).to_be_visible()
    assert not Authenticator.objects.exists()
    kinds = list(AuditEntry.objects.filter(action="second factor").order_by("id").values_list("after", flat=True))
    assert kinds == [{"passkey": "set up", "name": "My phone"}, {"passkey": "removed", "name": "My phone"}]


def test_a_passkeys_answer_is_taken_once(site: str, open_page: Opened, dora: User) -> None:
    """The browser keeps what a visitor's passkey was asked: whoever sends the same question and answer again, as a log
    or another program of the machine may know them, is not let in."""
    page = with_device(open_page())
    give_password(page, site)
    add_passkey(page, site, "My phone", alone=True)
    page.context.clear_cookies()
    sent: list[tuple[str, dict[str, str]]] = []

    def keep(route: Route) -> None:
        if route.request.method == "POST":
            cookies = {str(one["name"]): str(one["value"]) for one in page.context.cookies()}
            sent.append((str(route.request.post_data), cookies))
        route.continue_()

    page.route("**/admin/login/passkey/", keep)
    page.goto(f"{site}/admin/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{site}/admin/")
    (body, cookies), count = sent[0], SignIn.objects.count()
    again = requests.post(
        f"{site}/admin/login/passkey/",
        data=body,
        cookies=cookies,
        allow_redirects=False,
        timeout=20,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert (again.status_code, again.headers["Location"]) == (302, "/admin/login/")
    assert SignIn.objects.count() == count


def test_a_security_key_is_a_second_factor_and_no_sign_in(site: str, open_page: Opened, dora: User) -> None:
    """Its owner asked for that: the password comes first."""
    page = with_device(open_page())
    give_password(page, site)
    add_passkey(page, site, "Key ring", alone=False)
    page.context.clear_cookies()
    give_password(page, site)
    page.wait_for_url(f"{site}/admin/code/")
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(f"{site}/admin/")
    assert AuditEntry.objects.filter(action="sign in").latest("id").after == {"with": "password, passkey"}


def test_a_passkey_leads_past_a_lock_and_who_has_none_stays_out(site: str, open_page: Opened, dora: User) -> None:
    """Strangers may lock a name; what cannot be guessed still opens."""
    page = with_device(open_page())
    give_password(page, site)
    add_passkey(page, site, "My phone", alone=True)
    page.context.clear_cookies()
    SignIn.objects.update(ip="192.0.2.1")
    for _ in range(10):
        page.goto(f"{site}/admin/login/")
        page.get_by_label("Username").fill("dora")
        page.get_by_label("Password").fill("wrong")
        follow(page, page.get_by_role("button", name="Sign in", exact=True))
    expect(page.get_by_text("Too many tries.")).to_be_visible()
    page.goto(f"{site}/admin/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{site}/admin/")


def test_where_a_factor_is_required_a_passkey_is_one(site: str, open_page: Opened, dora: User, settings: Any) -> None:
    """The first sign-in in live."""
    settings.GATEWAY_TOTP = "required"
    page = with_device(open_page(width=390, height=844))
    give_password(page, site)
    page.wait_for_url(f"{site}/admin/set-up/")
    follow(page, page.get_by_role("link", name="Add a passkey"))
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_role("link", name="I have kept them").click()
    page.goto(f"{site}/admin/")
    expect(page.get_by_role("heading", name="The last 24 hours")).to_be_visible()


def test_where_no_passkey_can_be_the_pages_do_not_offer_one(
    site: str, open_page: Opened, dora: User, settings: Any
) -> None:
    """Browsers keep passkeys for names; an address such as 127.0.0.1 has none."""
    page = open_page()
    page.goto(f"{site}/admin/login/".replace("localhost", "127.0.0.1"))
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with provider([{"sub": "dora-1", "email": "dora@shop.example", "email_verified": True}]) as address:
        yield address


def test_single_sign_on_at_a_provider(site: str, chromium: Browser, dora: User, issuer: str, settings: Any) -> None:
    """To the provider and back, under the pages' policy."""
    User.objects.filter(pk=dora.pk).update(email="dora@shop.example")
    for name, value in apps(issuer).items():
        setattr(settings, name, value)
    # The provider's own page fetches its style from elsewhere, and its console says that it is not there.
    context = in_no_hurry(chromium.new_context())
    page, said = context.new_page(), []
    page.on("console", lambda one: said.append(one.text) if "Content Security Policy" in one.text else None)
    page.goto(f"{site}/admin/login/?next=/admin/account/")
    picture(page, "sign-in-with-single-sign-on")
    page.get_by_role("button", name="The bank's sign-in").click()
    page.get_by_role("button", name="dora-1").click()
    page.wait_for_url(f"{site}/admin/account/")
    expect(page.get_by_text("Single sign-on leads to this account.")).to_be_visible()
    context.close()
    assert said == []


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_of_signing_in_fits_and_has_no_fault(
    site: str, open_page: Opened, dora: User, width: int, language: str, issuer: str, settings: Any
) -> None:
    """Narrow and wide, in both languages."""
    for name, value in apps(issuer).items():
        setattr(settings, name, value)
    page = with_device(open_page(width=width, height=844))
    page.context.add_cookies([{"name": "django_language", "value": language, "url": site}])
    faults: list[str] = []

    def look(name: str, path: str | None = None) -> None:
        if path is not None:
            page.goto(f"{site}{path}")
        picture(page, f"{name}-{width}-{language}")
        faults.extend(list_faults(page))
        if not fits(page):
            faults.append(f"{page.url} is wider than the window")

    look("login", "/admin/login/")
    page.fill("#id_username", "dora")
    page.fill("#id_password", "wrong")
    follow(page, page.locator("#login-form button"))
    look("login-wrong")
    settings.GATEWAY_TOTP = "required"
    page.fill("#id_username", "dora")
    page.fill("#id_password", PASSWORD)
    follow(page, page.locator("#login-form button"))
    look("set-up")
    look("set-up-app", "/admin/code/set-up/")
    look("set-up-passkey", "/admin/passkeys/add/")
    page.locator("#mfa_webauthn_add").click()
    page.wait_for_url(f"{site}/admin/recovery-codes/")
    look("recovery-codes")
    look("recovery-codes-again", "/admin/recovery-codes/")
    secret = app_of(dora)
    number = Authenticator.objects.get(type="webauthn").pk
    for name, path in (
        ("account", "account/"),
        ("recovery-codes-new", "recovery-codes/new/"),
        ("app-remove", "code/remove/"),
        ("passkey-remove", f"passkeys/{number}/remove/"),
        ("passkey-edit", f"passkeys/{number}/edit/"),
        ("password", "password_change/"),
        ("again-passkey", "again/passkey/?next=/admin/"),
        ("again-password", "again/password/?next=/admin/"),
        ("again-code", "again/code/?next=/admin/"),
    ):
        look(name, f"/admin/{path}")
    page.context.clear_cookies(name="sessionid")
    page.goto(f"{site}/admin/login/")
    page.fill("#id_username", "dora")
    page.fill("#id_password", PASSWORD)
    follow(page, page.locator("#login-form button"))
    look("code")
    page.fill("#id_code", "000000")
    follow(page, page.locator("form:has(#id_code) button"))
    look("code-wrong")
    page.fill("#id_code", code_of(secret))
    follow(page, page.locator("form:has(#id_code) button"))
    page.wait_for_url(f"{site}/admin/")
    assert faults == []
