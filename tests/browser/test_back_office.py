"""The back office in a real browser: signing in with an app's code, and a token that is issued and used at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from gateway.access import tokens
from gateway.models import AccessToken, RiskSet, Role
from tests.browser.conftest import picture
from tests.browser.patience import follow
from tests.support.client import Api
from tests.support.clock import jump
from tests.support.fixtures import BY, Shop
from tests.support.office import code_of, person

PASSWORD = "correct horse battery 7"
Opened = Callable[..., Page]


@pytest.fixture
def developer(committed: Shop) -> User:
    user = person("dora", Role.DEVELOPER, committed.merchant)
    user.set_password(PASSWORD)
    user.save()
    return user


def sign_in(page: Page, site: str, name: str = "dora") -> None:
    page.goto(f"{site}/admin/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    follow(page, page.get_by_role("button", name="Sign in", exact=True))


def test_issue_a_token_and_call_the_api_with_it(site: str, open_page: Opened, committed: Shop, developer: User) -> None:
    page = open_page()
    sign_in(page, site)
    follow(page, page.get_by_role("link", name="Access tokens"))
    picture(page, "tokens")
    page.goto(f"{site}/admin/gateway/accesstoken/add/")
    page.get_by_label("Name").fill("Web shop")
    page.locator("select[name=channel]").select_option(str(committed.channel.pk))
    picture(page, "token-form")
    page.get_by_role("button", name="Save", exact=True).click()
    shown = page.get_by_label("Access token")
    expect(shown).to_be_visible()
    picture(page, "token-shown")
    token = shown.input_value()
    api = Api(token=token, entity=committed.channel.entity_id)
    assert api.pay().status == 403, "a developer's token waits for a second person"
    assert tokens.approve_token(AccessToken.objects.get(name="Web shop"), by=BY)
    assert api.pay().status == 200
    page.goto(f"{site}/admin/gateway/accesstoken/")
    expect(page.get_by_text("Web shop").first).to_be_visible()
    assert token not in page.content()


def test_sign_in_with_an_app(site: str, open_page: Opened, developer: User, settings: object) -> None:
    """Set up where it is required, then asked for at the next sign-in."""
    settings.GATEWAY_TOTP = "required"  # type: ignore[attr-defined]
    page = open_page(width=390, height=844)
    sign_in(page, site)
    follow(page, page.get_by_role("link", name="Set up an app"))
    secret = page.locator(".th-key").inner_text().replace(" ", "")
    picture(page, "set-up-app")
    page.get_by_label("Code").fill(code_of(secret))
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("Keep them where your phone is not.")).to_be_visible()
    picture(page, "recovery-codes")
    recovery = page.locator("#recovery-codes").inner_text().splitlines()[0]
    page.get_by_role("link", name="I have kept them").click()
    page.goto(f"{site}/admin/")
    expect(page.get_by_role("heading", name="The last 24 hours")).to_be_visible()

    again = open_page()
    sign_in(again, site)
    again.get_by_label("Code").fill(recovery)
    again.get_by_role("button", name="Go on").click()
    expect(again.get_by_role("heading", name="The last 24 hours")).to_be_visible()
    picture(again, "home")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_pages_have_no_fault(
    site: str, open_page: Opened, committed: Shop, developer: User, scheme: str
) -> None:
    """Accessible, dark and light."""
    assert committed.api.pay().status == 200
    page = open_page(color_scheme=scheme)
    page.goto(f"{site}/admin/login/")
    found = list_faults(page)
    sign_in(page, site)
    for path in ("", "account/", "gateway/accesstoken/", "gateway/channel/", "gateway/requestlog/", "test-clock/"):
        page.goto(f"{site}/admin/{path}")
        found += list_faults(page)
    assert found == []


def test_a_moved_clock_is_put_back_on_a_phone(site: str, open_page: Opened, committed: Shop) -> None:
    """Nothing of its row lies beside the screen."""
    manager = person("max", Role.MANAGER, committed.merchant)
    manager.set_password(PASSWORD)
    manager.save()
    jump(86_400)
    page = open_page(width=375, height=812, locale="de-DE", color_scheme="dark")
    page.goto(f"{site}/admin/login/")
    page.fill("#id_username", "max")
    page.fill("#id_password", PASSWORD)
    with page.expect_navigation(url=f"{site}/admin/"):
        page.press("#id_password", "Enter")
    page.goto(f"{site}/admin/test-clock/")
    button = page.locator("button[value=reset]")
    box = button.bounding_box()
    assert box
    assert box["x"] + box["width"] <= 375
    expect(page.locator("td[data-label='Voraus um']")).to_contain_text("1 T 0 h")
    picture(page, "clock-phone")
    assert list_faults(page) == []
    follow(page, button)
    expect(button).to_have_count(0)


def list_faults(page: Page) -> list[str]:
    """What axe finds, of any weight: rule, and where."""
    page.wait_for_load_state("networkidle")
    answer = Axe().run(page).response
    return [f"{page.url} {fault['id']}: {fault['nodes'][0]['target']}" for fault in answer["violations"]]


def test_a_rule_set_is_put_together_and_goes_as_one_field(
    site: str, open_page: Opened, committed: Shop, settings: object
) -> None:
    """Found in review: a large set had more inputs than a form may have fields, and was lost."""
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 60  # type: ignore[attr-defined]
    rules = [{"name": f"rule {n}", "when": {"kind": "disposable-email"}, "then": {"score": 1}} for n in range(30)]
    document = {"key": "EVERYDAY", "declineFrom": 50, "rules": rules}
    row = RiskSet.objects.create(merchant=committed.merchant, key="EVERYDAY", document=document)
    boss = person("dora", Role.MANAGER, committed.merchant)
    boss.set_password(PASSWORD)
    boss.save()
    page = open_page()
    sign_in(page, site)
    page.goto(f"{site}/admin/gateway/riskset/{row.pk}/change/")
    page.get_by_role("button", name="Add a rule").click()
    added = page.locator("[data-rule]").last
    added.get_by_label("Name", exact=True).fill("large")
    added.get_by_label("Condition").select_option("amount")
    added.get_by_label("Currency").fill("EUR")
    added.get_by_label("Over", exact=True).fill("500.00")
    picture(page, "rule-set")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url(f"{site}/admin/gateway/riskset/")
    row.refresh_from_db()
    assert [rule["name"] for rule in row.document["rules"]] == [*(rule["name"] for rule in rules), "large"]
    when = {"kind": "amount", "currency": "EUR", "over": "500.00"}
    assert row.document["rules"][-1] == {"name": "large", "when": when, "then": {"score": 10}}


def test_a_manager_makes_a_user_who_chooses_a_password_and_signs_in(
    site: str, open_page: Opened, committed: Shop
) -> None:
    """By forms that a browser really sends. A page that sends no referrer sends no origin either, and
    was refused as a forgery: nobody could have chosen a first password."""
    manager = person("maja", Role.MANAGER, committed.merchant)
    manager.set_password(PASSWORD)
    manager.save()
    page = open_page()
    sign_in(page, site, "maja")
    page.goto(f"{site}/admin/auth/user/add/")
    page.get_by_label("Username").fill("newcomer")
    role = page.locator("select[name=grants-0-role]")
    expect(role).to_have_value("")
    role.select_option(label="clerk")
    place = page.locator("#select2-id_grants-0-merchant-container")
    place.click()
    page.locator("input.select2-search__field").fill(committed.merchant.name[:3])
    page.get_by_role("option", name=committed.merchant.name).click()
    expect(place).to_contain_text(committed.merchant.name)
    for chosen in (role, place):
        # What was chosen can be read: it stands in the room that it has.
        assert chosen.evaluate("one => one.clientWidth") > 150
    picture(page, "user-form")
    page.get_by_role("button", name="Save", exact=True).click()
    link = page.get_by_text(f"{site}/admin/welcome/")
    expect(link).to_be_visible()
    invited = open_page()
    invited.goto(str(link.inner_text()).strip())
    invited.locator("input[name=password1]").fill(PASSWORD)
    invited.locator("input[name=password2]").fill(PASSWORD)
    invited.get_by_role("button", name="Set the password").click()
    invited.wait_for_url(f"{site}/admin/login/")
    sign_in(invited, site, "newcomer")
    expect(invited.get_by_text("This is your first sign-in.")).to_be_visible()
