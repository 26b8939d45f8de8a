"""Guides of the docs in a browser: the list that checks itself, the check of a request, the playground, the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import override_settings
from playwright.sync_api import Page, expect

from gateway.models import Role
from tests.browser.conftest import picture
from tests.browser.test_docs_pages import SCHEMES, sign_in
from tests.browser.widget import Widget
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.shopfront import Shopfront, policy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]

Open = Callable[..., Page]


def check_page(page: Page, name: str) -> None:
    """Nothing serious for axe in both schemes, and no wider than a phone's screen."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no colour in transition
        found = Axe().run(page)
        wrong = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
        assert not wrong, (scheme, [(one["id"], [node["html"] for node in one["nodes"]]) for one in wrong])
    page.emulate_media(color_scheme="light")
    picture(page, f"{name}-wide")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    picture(page, f"{name}-narrow")


def test_the_list_checks_itself_for_who_is_signed_in(site: str, open_page: Open, committed: Shop) -> None:
    other = committed.open_channel("second")
    committed.api.pay()
    page = open_page()
    page.goto(f"{site}/docs/go-live")
    expect(page.get_by_role("link", name="Sign in to the back office")).to_be_visible()
    sign_in(page, site, signed_in(person("dev", Role.DEVELOPER, committed.merchant)))
    page.reload()
    paid = page.locator(".checklist li", has_text="An approved payment")
    expect(paid).to_contain_text("done")
    page.get_by_label("Channel").select_option(str(other.entity_id))
    page.get_by_role("button", name="Check again").click()
    expect(paid).to_contain_text("open")
    check_page(page, "go-live")


def test_a_request_of_an_old_client_is_checked(site: str, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{site}/docs/migrating")
    page.get_by_role("button", name="Check it").click()
    expect(page.locator("#checked")).to_contain_text("refused")
    expect(page.get_by_role("row", name="amount").first).to_contain_text("two decimals")
    check_page(page, "migrating")


def test_choices_of_the_playground_show_in_a_real_form(
    site: str, open_page: Open, committed: Shop, tmp_path: Path
) -> None:
    facts = {"access_token": committed.api.token, "channels": {"plain": committed.channel.entity_id}}
    file = tmp_path / "demo.json"
    file.write_text(json.dumps(facts))
    with override_settings(GATEWAY_DEMO_FILE=str(file)):
        page = open_page()
        page.goto(f"{site}/docs/theming")
        page.locator("select[name=style]").select_option("plain")
        page.locator("select[name=locale]").select_option("de")
        page.get_by_label("accent", exact=True).fill("#7c3aed")
        page.get_by_role("button", name="Show it").click()
        expect(page.get_by_label("Your style sheet", exact=True)).to_contain_text("--wpwl-accent: #7c3aed;")
        expect(page.get_by_label("The lines of your page", exact=True)).to_contain_text('"locale": "de"')
        link = page.get_by_label("The address of these choices", exact=True).inner_text()
        form = page.frame_locator(".playground-frame")
        button = form.get_by_role("button", name="zahlen")
        expect(button).to_have_css("background-color", "rgb(124, 58, 237)")
        check_page(page, "theming")
        shared = open_page()
        shared.goto(link)
        expect(shared.get_by_label("accent", exact=True)).to_have_value("#7c3aed")
        # Its form loads as long as the demo is there.
        expect(shared.frame_locator(".playground-frame").get_by_role("button", name="zahlen")).to_be_visible()


def test_the_sample_page_leads_to_the_next_command(
    site: str, shop_site: Shopfront, open_page: Open, committed: Shop
) -> None:
    page = open_page()
    page.goto(f"{site}/docs/widget")
    lines = page.get_by_label("pay.html", exact=True).inner_text()
    made = committed.api.post(
        "/v1/checkouts", {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "integrity": "true"}
    )
    text = lines.replace("{checkout id}", made.id).replace("{integrity}", made.body["integrity"])
    page.goto(shop_site.show("/pay.html", text, policy(site)))
    Widget(page=page).ready().fill().press()
    page.wait_for_url(f"{site}/docs/result?*")
    expect(page.get_by_label("Read the result", exact=True)).to_contain_text(f"{made.id}/payment?entityId=")
    check_page(page, "result")


def test_the_status_is_shown(site: str, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{site}/docs/status")
    expect(page.get_by_role("status")).to_be_visible()
    check_page(page, "status")


def test_a_test_card_is_pressed_into_the_demo_shops_form(
    site: str, open_page: Open, committed: Shop, tmp_path: Path
) -> None:
    file = tmp_path / "demo.json"
    file.write_text(
        json.dumps({"access_token": committed.api.token, "channels": {"plain": committed.channel.entity_id}})
    )
    with override_settings(GATEWAY_DEMO_FILE=str(file)):
        page = open_page()
        page.goto(f"{site}/demo/")
        page.get_by_role("tab", name="Test cards").click()
        card = page.get_by_role("button", name="4200 0000 0000 0000")
        card.click()
        expect(page.locator("#card-note")).to_contain_text("press Go to payment first")
        page.get_by_role("button", name="Go to payment").click()
        form = Widget(page=page).ready()
        card.click()
        expect(form.number).to_have_value("4200 0000 0000 0000")
        form.press()
        page.wait_for_url(f"{site}/demo/result?*")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
