"""The docs in a browser: a sample's language is chosen by mouse or keys, is remembered, and is what is copied."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from playwright.sync_api import Locator, Page, expect

from gateway.models import Role
from gateway.portal.sample_code import SAMPLE_LANGUAGES, format_sample
from gateway.portal.samples import API_SAMPLES
from tests.browser.conftest import picture
from tests.browser.patience import follow
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.webhook_delivery import deliver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]

Open = Callable[..., Page]
ENTITY: str = "0123456789abcdef" * 2
SCHEMES = ("light", "dark")


def find_sample(page: Page, name: str) -> Locator:
    return page.locator(f'[data-sample="{name}"]')


def choose(page: Page, name: str, language: str) -> None:
    find_sample(page, name).get_by_role("tab", name=SAMPLE_LANGUAGES[language], exact=True).click()


def test_a_language_is_chosen_for_all_samples_and_remembered(site: str, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{site}/docs/reference/follow-up")
    choose(page, "refund", "python")
    for name in ("refund", "capture", "reverse"):
        expect(find_sample(page, name).locator("code")).to_have_text(format_sample(API_SAMPLES[name], "python", site))
    page.goto(f"{site}/")
    expect(find_sample(page, "pay").locator("code")).to_have_text(format_sample(API_SAMPLES["pay"], "python", site))
    expect(find_sample(page, "pay").get_by_role("tab", selected=True)).to_have_text("Python")


def test_the_keys_walk_over_the_languages(site: str, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{site}/docs/reference/status")
    tabs = find_sample(page, "read").get_by_role("tab")
    tabs.first.focus()
    for key, shown in (("ArrowRight", "Python"), ("End", "HTTP"), ("ArrowRight", "curl"), ("ArrowLeft", "HTTP")):
        page.keyboard.press(key)
        expect(find_sample(page, "read").locator(":focus")).to_have_text(shown)
        expect(find_sample(page, "read").get_by_role("tab", selected=True)).to_have_text(shown)
    assert [tab.get_attribute("tabindex") for tab in tabs.all()] == ["-1"] * 4 + ["0"]


def test_what_is_shown_is_copied_with_the_readers_entity(site: str, open_page: Open) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"{site}/docs/reference/payment")
    page.evaluate("(id) => sessionStorage.setItem('tollhouse.entityId', id)", ENTITY)
    page.reload()
    choose(page, "pay", "php")
    expect(find_sample(page, "pay").locator('[data-variable="ENTITY_ID"]')).to_have_text(f"'{ENTITY}'")
    find_sample(page, "pay").get_by_role("button", name="Copy").click()
    expect(find_sample(page, "pay").get_by_role("button", name="Copy")).to_have_text("Copied")
    wanted = format_sample(API_SAMPLES["pay"], "php", site).replace("getenv('ENTITY_ID')", f"'{ENTITY}'")
    assert page.evaluate("navigator.clipboard.readText()") == wanted


def test_a_sample_without_the_chosen_language_shows_curl(site: str, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{site}/docs/errors")
    choose(page, "faults", "javascript")
    page.goto(f"{site}/docs/authentication")
    expect(find_sample(page, "wrong-token").get_by_role("tab", selected=True)).to_have_text("JavaScript")
    expect(find_sample(page, "no-token").get_by_role("tab", selected=True)).to_have_text("curl")
    expect(find_sample(page, "no-token").get_by_role("tab")).to_have_count(2)


def test_a_page_without_its_script_shows_curl(site: str, open_page: Open) -> None:
    page = open_page(java_script_enabled=False)
    page.goto(f"{site}/docs/reference/status")
    expect(find_sample(page, "read").locator("code")).to_have_text(API_SAMPLES["read"].curl(site))
    expect(page.get_by_role("tab")).to_have_count(0)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("path", ["/docs/", "/docs/reference/follow-up", "/"])
def test_the_tabs_are_drawn_for_everybody(site: str, open_page: Open, path: str, scheme: str) -> None:
    name = "refund" if "reference" in path else "pay"
    for width in (320, 1280):
        page = open_page(width=width, height=900, color_scheme=scheme, bypass_csp=True)
        page.goto(f"{site}{path}")
        choose(page, name, "javascript")
        expect(find_sample(page, name).locator("code")).to_contain_text("new Tollhouse")
        find_sample(page, name).scroll_into_view_if_needed()
        picture(page, f"samples-{scheme}-{width}-{path.strip('/').replace('/', '-') or 'start'}")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        for tab in find_sample(page, name).get_by_role("tab").all():
            box = tab.bounding_box()
            assert box
            assert box["height"] >= 44
        if width > 320:
            continue  # the same elements and colours
        found = Axe().run(page, options={"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa"]}})
        bad = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
        assert not [(one["id"], json.dumps([node["target"] for node in one["nodes"]])[:300]) for one in bad]


# --- Run --------------------------------------------------------------------------------------------------------------


def sign_in(page: Page, site: str, client: Client) -> None:
    cookie = client.cookies["sessionid"]
    page.context.add_cookies([{"name": "sessionid", "value": cookie.value, "url": site}])


def test_a_sample_is_run_and_its_timeline_shown(site: str, open_page: Open, committed: Shop) -> None:
    page = open_page()
    sign_in(page, site, signed_in(person("dev", Role.DEVELOPER, committed.merchant)))
    page.goto(f"{site}/docs/reference/payment")
    entity = committed.channel.entity_id
    expect(find_sample(page, "pay").locator('[data-variable="ENTITY_ID"]')).to_have_text(entity)
    find_sample(page, "pay").get_by_role("button", name="Run").click()
    panel = page.locator(".run")
    expect(panel.get_by_label("Your answer")).to_contain_text("000.100.110")
    expect(panel.locator(".ck-timeline")).to_contain_text("approved")
    deliver(committed)
    expect(panel.get_by_text("The webhook", exact=True)).to_be_visible()
    picture(page, "docs-run")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no colour in transition
        found = Axe().run(page)
        assert not [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")], scheme


def test_the_checkout_that_is_run_is_put_into_the_lines_of_the_page(
    site: str, open_page: Open, committed: Shop
) -> None:
    """Nothing is filled in by hand: the lines are copied as they stand."""
    page = open_page()
    sign_in(page, site, signed_in(person("dev", Role.DEVELOPER, committed.merchant)))
    page.goto(f"{site}/docs/widget")
    lines = page.get_by_label("pay.html", exact=True)
    expect(lines).to_contain_text("checkoutId={checkout id}")
    find_sample(page, "checkout").get_by_role("button", name="Run").click()
    expect(page.locator(".run")).to_contain_text("pay.html above has this checkout now")
    text = lines.inner_text()
    assert (len(text.splitlines()), "{" in text) == (15, False)
    (made,) = re.findall('checkoutId=([^"]+)"', text)
    assert committed.api.get(f"/v1/checkouts/{made}/payment").code == "000.200.000"
    assert re.search('integrity="sha384-[^"]{64}"', text)


def test_what_a_sample_builds_on_is_run_first_on_a_phone(site: str, open_page: Open, committed: Shop) -> None:
    committed.open_channel("second")
    page = open_page(width=390)
    sign_in(page, site, signed_in(person("dev", Role.DEVELOPER, committed.merchant)))
    page.goto(f"{site}/docs/quick-start")
    find_sample(page, "refund").get_by_role("button", name="Run").click()
    panel = page.locator(".run")
    expect(panel.get_by_text("First: ")).to_contain_text("200 000.100.110")
    expect(panel.get_by_label("Your answer")).to_contain_text('"paymentType": "RF"')
    panel.get_by_label("Channel").select_option(label="Committed shop: second")
    find_sample(page, "pay").get_by_role("button", name="Run").click()
    expect(page.locator(".run")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    picture(page, "docs-run-phone")


@pytest.mark.parametrize("width", [1280, 375])
def test_a_row_of_the_test_data_is_tried_in_place(site: str, open_page: Open, committed: Shop, width: int) -> None:
    page = open_page(width=width)
    sign_in(page, site, signed_in(person("dev", Role.DEVELOPER, committed.merchant)))
    page.goto(f"{site}/testdata")
    declined = page.locator('[id="4000015500000005"]')
    declined.get_by_role("button", name="Try it now: 4000 0155").click()
    panel = page.locator(".run")
    expect(panel).to_contain_text("✓ result.code is 800.100.155, as promised.")
    expect(panel.locator(".ck-timeline")).to_contain_text("declined")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture(page, f"docs-try-{width}")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = Axe().run(page).response["violations"]
        assert not [(one["id"], one["impact"], [node["target"] for node in one["nodes"]]) for one in found], scheme
    page.get_by_role("searchbox", name="Find a card").fill("nothing like it")
    expect(panel).to_be_hidden()


def test_a_shopper_goes_on_from_a_row_and_comes_back(site: str, open_page: Open, committed: Shop) -> None:
    page = open_page()
    sign_in(page, site, signed_in(person("dev", Role.DEVELOPER, committed.merchant)))
    page.goto(f"{site}/testdata#redirects")
    page.locator("#redirects").get_by_role("button", name=re.compile("Try it now: .*approve")).first.click()
    follow(page, page.locator(".run").get_by_role("link", name="Go on as the shopper"))
    follow(page, page.locator("button[value=approve]"))
    expect(page).to_have_url(re.compile("/docs/result"))
    expect(page.get_by_text("resourcePath", exact=True).first).to_be_visible()


def test_a_visitor_is_led_to_the_sign_in(site: str, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{site}/docs/quick-start")
    find_sample(page, "pay").get_by_role("button", name="Run").click()
    link = page.locator(".run").get_by_role("link", name="Sign in")
    assert link.get_attribute("href") == "/admin/login/?next=%2Fdocs%2Fquick-start"
