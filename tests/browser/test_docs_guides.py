"""Guides of the docs in a browser: the list that checks itself, the check of a request, the playground, the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from gateway.models import Role
from tests.browser.conftest import picture
from tests.browser.test_docs_pages import SCHEMES, sign_in
from tests.browser.widget import Widget
from tests.support.demo import demo_shop
from tests.support.doc_blocks import SITE, read_block
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.shopfront import NONCE, Shopfront, policy

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
    with demo_shop(committed, tmp_path):
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


def show_wallet(shop_site: Shopfront, site: str, scripts: str) -> str:
    """The address of a shop's page with a wallet's button and what /docs/widget says to put into it."""
    lines = scripts.replace(SITE, site).replace(' nonce="…"', "").replace("<script", f'<script nonce="{NONCE}"')
    form = '<form action="/result" class="paymentWidgets" data-brands="WALLET2"></form>'
    return shop_site.show("/wallet.html", f"<!doctype html><title>Shop</title>{form}{lines}", policy(site))


def test_the_lines_of_a_fast_checkout_pay(site: str, shop_site: Shopfront, open_page: Open, committed: Shop) -> None:
    """widget.md: the page asks its server for a checkout when the shopper presses."""
    order = {"amount": "18.00", "currency": "EUR", "paymentType": "DB"}
    asked: list[str] = []

    def make_checkout(route: Route) -> None:
        asked.append(route.request.post_data or "")
        route.fulfill(json={"id": made.id})

    made = committed.api.post("/v1/checkouts", order)
    page = open_page()
    page.route("**/checkout", make_checkout)
    lines = read_block("widget.md", "Fast checkout", "html")
    page.goto(show_wallet(shop_site, site, lines))
    page.get_by_role("button", name="Pay with Mobile wallet 2").click()
    page.locator(".wpwl-sheet-wallet .wpwl-button-pay").click()
    page.wait_for_url(f"{shop_site.url}/result?*")
    assert asked == ["brand=WALLET2"]
    assert committed.api.get(f"/v1/checkouts/{made.id}/payment").code == "000.100.110"


def test_the_lines_of_a_wallet_show_items_and_take_a_new_total(
    site: str, shop_site: Shopfront, open_page: Open, committed: Shop
) -> None:
    """widget.md: the shop's server updates the checkout by the address, and the sheet shows the new total."""
    made = committed.api.post("/v1/checkouts", {"amount": "18.00", "currency": "EUR", "paymentType": "DB"})
    asked: list[str] = []

    def tell_total(route: Route) -> None:
        asked.append(json.loads(route.request.post_data or "{}").get("countryCode", ""))
        committed.api.post(f"/v1/checkouts/{made.id}", {"amount": "23.00"})
        route.fulfill(json={"total": "23.00"})

    page = open_page()
    page.route("**/cart/total", tell_total)
    lines = read_block("widget.md", "Wallets: options and events", "html")
    page.goto(
        show_wallet(shop_site, site, f'{lines}<script src="{SITE}/v1/paymentWidgets.js?checkoutId={made.id}"></script>')
    )
    page.get_by_role("button", name="Pay with Mobile wallet 2").click()
    sheet = page.locator(".wpwl-sheet-wallet")
    expect(sheet).to_contain_text("Harbour shop")
    expect(sheet).to_contain_text("Mug")
    sheet.get_by_label("Full name").fill("Jane Jones")
    sheet.get_by_label("Postcode").fill("00100")
    sheet.get_by_label("Country").select_option("IT")
    expect(sheet.locator(".wpwl-total")).to_contain_text("€23.00")
    assert "IT" in asked


def test_the_status_is_shown(site: str, open_page: Open) -> None:
    page = open_page()
    page.goto(f"{site}/docs/status")
    expect(page.get_by_role("status")).to_be_visible()
    check_page(page, "status")


def test_the_till_keeps_its_options(site: str, open_page: Open, committed: Shop, tmp_path: Path) -> None:
    """After a payment the shopper is back on a page that is loaded anew."""
    with demo_shop(committed, tmp_path):
        page = open_page()
        page.goto(f"{site}/demo/")
        page.get_by_role("button", name="One Harbour mug more").click()
        expect(page.get_by_label("Your order")).to_have_text("2 × Harbour mug€36.00Total€36.00")
        page.get_by_label("Language").select_option("de")
        page.get_by_label("Jane is back").check()
        page.get_by_text("Brands in the form").click()
        page.get_by_label("American Express").uncheck()
        again = page.context.new_page()
        again.goto(f"{site}/demo/")
        expect(again.get_by_label("Language")).to_have_value("de")
        expect(again.get_by_label("Jane is back")).to_be_checked()
        expect(again.get_by_label("3-D Secure channel")).not_to_be_checked()
        again.get_by_text("Brands in the form").click()
        expect(again.get_by_label("American Express")).not_to_be_checked()
        expect(again.get_by_label("Visa", exact=True)).to_be_checked()
        again.evaluate("localStorage.setItem('tollhouse-demo-options', '[\"locale')")
        again.reload()
        expect(again.get_by_label("Language")).to_have_value("en")
        again.get_by_role("tab", name="Source").click()
        check_page(again, "demo-source")


def test_a_test_card_is_pressed_into_the_demo_shops_form(
    site: str, open_page: Open, committed: Shop, tmp_path: Path
) -> None:
    with demo_shop(committed, tmp_path):
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
