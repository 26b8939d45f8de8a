"""A clerk's day in a real browser: find and refund, a second pair of eyes, find out why, export and leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.test import override_settings
from playwright.sync_api import Browser, Page, expect

from gateway.access import signin
from gateway.background import queue
from gateway.models import Division, Payment, Psp, SignIn
from tests.browser.conftest import picture
from tests.browser.patience import follow, in_no_hurry
from tests.support.fixtures import Shop, open_shop
from tests.support.office import person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Open = Callable[..., Page]
PASSWORD = "correct-horse-battery"
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


def somebody(name: str, role: str, shop: Shop, **limits: str) -> User:
    user = person(name, role, shop.merchant, **limits)
    user.set_password(PASSWORD)
    user.save()
    return user


def sign_in(page: Page, site: str, name: str) -> None:
    page.goto(f"{site}/admin/login/")
    page.fill("#id_username", name)
    page.fill("#id_password", PASSWORD)
    with page.expect_navigation(url=f"{site}/admin/"):
        page.press("#id_password", "Enter")


def find(page: Page, site: str, text: str) -> None:
    page.goto(f"{site}/admin/gateway/payment/")
    page.get_by_label("Find a payment").fill(text)
    follow(page, page.get_by_role("button", name="Find"))


def serious(page: Page) -> list[str]:
    """What axe calls serious or critical inside the page's own part; the frame is another test's matter."""
    found = Axe().run(page, context=".ck", options=RULES)
    return [
        f"{one['id']}: {json.dumps([node['target'] for node in one['nodes']])[:300]}"
        for one in found.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def test_a_clerk_finds_a_payment_and_refunds_it(shop: Shop, site: str, open_page: Open) -> None:
    """Day one: find and refund; by keyboard, twice clicked, once sent."""
    somebody("clara", "clerk", shop)
    paid = shop.api.pay(customer__email="jane@shop.example", customer__givenName="Jane", customer__surname="Jones")
    page = open_page()
    sign_in(page, site, "clara")
    find(page, site, "jane@shop.example")
    follow(page, page.get_by_role("row").filter(has_text="92.00 EUR").get_by_role("link").first)
    expect(page.get_by_text("92.00 EUR was taken.")).to_be_visible()
    picture(page, "clerk-payment")
    assert serious(page) == []
    follow(page, page.get_by_role("link", name="Refund…"))
    amount = page.get_by_label("Amount in EUR")
    expect(amount).to_have_value("92.00")
    amount.fill("93.00")
    expect(page.get_by_text("That is more than is possible.")).to_be_visible()
    expect(page.get_by_role("button", name="Refund")).to_be_disabled()
    amount.fill("30.00")
    page.get_by_label("Reason").select_option("duplicate")
    picture(page, "clerk-refund")
    assert serious(page) == []
    # Both at once: a page that comes between them would be hit by the second.
    page.get_by_role("button", name="Refund 30.00 EUR").evaluate("(one) => { one.click(); one.click() }")
    expect(page.get_by_text("Refund 30.00 EUR was accepted.")).to_be_visible()
    expect(page.locator(".ck-sum", has_text="Still to refund")).to_contain_text("62.00")
    # The back button leads to the form: it is the one that was sent, also with another amount.
    page.go_back()
    expect(amount).to_have_value("62.00")
    page.get_by_label("Reason").select_option("duplicate")
    follow(page, page.get_by_role("button", name="Refund 62.00 EUR"))
    expect(page.get_by_text("Refund 30.00 EUR was sent by this form before. Nothing was sent twice.")).to_be_visible()
    refunds = Payment.objects.filter(payment_type="RF", referenced=paid.id)
    assert [row.amount for row in refunds] == [Decimal("30.00")]
    follow(page, page.get_by_role("link", name="Refund…"))
    page.get_by_label("Reason").select_option("other")
    follow(page, page.get_by_role("button", name="Refund 62.00 EUR"))
    expect(page.get_by_text("Refund 62.00 EUR was accepted.")).to_be_visible()


def test_back_leads_to_no_second_capture_or_refund_of_another_part(shop: Shop, site: str, open_page: Open) -> None:
    """A reservation is captured in two parts, and both are refunded: each time the back button leads to a form that
    offers the rest, or the other capture, and sending it says what was done."""
    somebody("clara", "clerk", shop)
    held = shop.api.pay(paymentType="PA", amount="100.00")
    address = f"{site}/admin/gateway/payment/{UUID(held.id)}/change/"
    page = open_page()
    sign_in(page, site, "clara")

    def send(link: str, amount: str, done: str) -> None:
        page.goto(address)
        follow(page, page.get_by_role("link", name=f"{link}…", exact=True).first)
        page.get_by_label("Amount in EUR").fill(amount)
        press(link, amount)
        expect(page.get_by_text(done)).to_be_visible()

    def press(link: str, amount: str) -> None:
        if link == "Refund":
            page.get_by_label("Reason").select_option("requested")
        follow(page, page.get_by_role("button", name=f"{link} {amount} EUR"))

    def made(code: str) -> list[Decimal]:
        return [row.amount for row in Payment.objects.filter(payment_type=code).order_by("id")]

    send("Capture", "60.00", "Capture 60.00 EUR was accepted.")
    page.go_back()
    expect(page.get_by_label("Amount in EUR")).to_have_value("40.00")
    press("Capture", "40.00")
    expect(page.get_by_text("Capture 60.00 EUR was sent by this form before. Nothing was sent twice.")).to_be_visible()
    assert made("CP") == [Decimal("60.00")]
    send("Capture", "40.00", "Capture 40.00 EUR was accepted.")

    send("Refund", "40.00", "Refund 40.00 EUR was accepted.")
    page.go_back()
    offered = page.get_by_label("Amount in EUR").input_value()
    press("Refund", offered)
    expect(page.get_by_text("Refund 40.00 EUR was sent by this form before. Nothing was sent twice.")).to_be_visible()
    assert made("RF") == [Decimal("40.00")]
    send("Refund", "20.00", "Refund 20.00 EUR was accepted.")
    assert made("RF") == [Decimal("40.00"), Decimal("20.00")]
    assert made("CP") == [Decimal("60.00"), Decimal("40.00")]


def test_back_past_a_refused_form_leads_to_no_second_capture(shop: Shop, site: str, chromium: Browser) -> None:
    """The page that refuses an amount stands between the form and what was sent. It answers 400, which the console of
    the browser calls an error."""
    somebody("clara", "clerk", shop)
    held = shop.api.pay(paymentType="PA", amount="100.00")
    with in_no_hurry(chromium.new_context()) as context:
        page = context.new_page()
        sign_in(page, site, "clara")
        page.goto(f"{site}/admin/gateway/payment/{UUID(held.id)}/do/CP/")
        amount, send = page.get_by_label("Amount in EUR"), page.locator("[data-submit]")
        amount.fill("0")
        follow(page, send)
        expect(page.get_by_text("Give an amount above 0.")).to_be_visible()
        amount.fill("60.00")
        follow(page, send)
        expect(page.get_by_text("Capture 60.00 EUR was accepted.")).to_be_visible()
        with page.expect_navigation():
            page.evaluate("history.go(-2)")
        expect(amount).to_have_value("40.00")
        follow(page, send)
        expect(page.get_by_text("Capture 60.00 EUR was sent by this form before.")).to_be_visible()
    assert [row.amount for row in Payment.objects.filter(payment_type="CP")] == [Decimal("60.00")]


def test_what_was_typed_comes_back_after_the_page_that_asks_who_one_is(shop: Shop, site: str, open_page: Open) -> None:
    """The proof grows old, or the session ends, while a refund is typed: nothing is sent, and nothing typed again. What
    was sent, or is somebody else's, does not come back."""
    somebody("clara", "clerk", shop)
    somebody("cleo", "clerk", shop)
    form = f"{site}/admin/gateway/payment/{UUID(shop.api.pay().id)}/do/RF/"
    page = open_page()

    def typed() -> list[str]:
        return [page.get_by_label(label).input_value() for label in ("Amount in EUR", "Reason", "Note for the audit")]

    sign_in(page, site, "clara")
    page.goto(form)
    page.get_by_label("Amount in EUR").fill("30.00")
    page.get_by_label("Reason").select_option("duplicate")
    page.get_by_label("Note for the audit").fill("she called twice")
    with override_settings(ACCOUNT_REAUTHENTICATION_TIMEOUT=0):
        follow(page, page.get_by_role("button", name="Refund 30.00 EUR"))
    page.locator("input[type=password]").fill(PASSWORD)
    follow(page, page.get_by_role("button", name="It is me"))
    expect(page.get_by_role("button", name="Refund 30.00 EUR")).to_be_enabled()
    assert typed() == ["30.00", "duplicate", "she called twice"]
    assert not Payment.objects.filter(payment_type="RF").exists()

    signin.end_sessions(SignIn.objects.all(), by="tests")
    follow(page, page.get_by_role("button", name="Refund 30.00 EUR"))
    expect(page.get_by_text("You were signed out.")).to_be_visible()
    page.fill("#id_username", "clara")
    page.fill("#id_password", PASSWORD)
    follow(page, page.get_by_role("button", name="Sign in", exact=True))
    assert typed() == ["30.00", "duplicate", "she called twice"]
    follow(page, page.get_by_role("button", name="Refund 30.00 EUR"))
    expect(page.get_by_text("Refund 30.00 EUR was accepted.")).to_be_visible()
    page.goto(form)
    assert typed() == ["62.00", "", ""]

    page.get_by_label("Amount in EUR").fill("11.00")
    page.get_by_label("Reason").select_option("other")
    signin.end_sessions(SignIn.objects.all(), by="tests")
    follow(page, page.get_by_role("button", name="Refund 11.00 EUR"))
    page.fill("#id_username", "cleo")
    page.fill("#id_password", PASSWORD)
    follow(page, page.get_by_role("button", name="Sign in", exact=True))
    assert typed() == ["62.00", "", ""]
    assert [row.amount for row in Payment.objects.filter(payment_type="RF")] == [Decimal("30.00")]


def test_a_second_pair_of_eyes(shop: Shop, site: str, open_page: Open) -> None:
    """Day one: over the limit a manager is asked, decides, and the clerk sees what came of it."""
    somebody("clara", "clerk", shop, four_eyes_above="50.00")
    somebody("max", "manager", shop)
    shop.api.pay(merchantTransactionId="order-4711")
    clerk, manager = open_page(), open_page(390, 844)
    sign_in(clerk, site, "clara")
    find(clerk, site, "order-4711")
    follow(clerk, clerk.locator("tbody a").first)
    follow(clerk, clerk.get_by_role("link", name="Refund…"))
    expect(clerk.get_by_text("it needs approval by a manager")).to_be_visible()
    clerk.get_by_label("Reason").select_option("requested")
    clerk.get_by_label("Note for the manager").fill("the lamp came back broken")
    clerk.get_by_role("button", name="Ask for approval").click()
    expect(clerk.get_by_text("A manager has been asked; nothing was sent yet.")).to_be_visible()
    assert not Payment.objects.filter(payment_type="RF").exists()
    sign_in(manager, site, "max")
    manager.goto(f"{site}/admin/gateway/payment/")
    assert fits(manager)
    follow(manager, manager.get_by_role("link", name="1 request waits for your decision"))
    follow(manager, manager.locator("tbody a").first)
    expect(manager.get_by_role("definition").filter(has_text="the lamp came back broken")).to_be_visible()
    picture(manager, "clerk-approval-narrow")
    assert serious(manager) == []
    assert fits(manager)
    manager.get_by_role("button", name="Approve and send").click()
    expect(manager.get_by_text("Carried out as")).to_be_visible()
    clerk.goto(f"{site}/admin/gateway/payment/")
    expect(clerk.get_by_text("carried out")).to_be_visible()
    picture(clerk, "clerk-list")
    assert serious(clerk) == []


def test_a_clerk_finds_out_why_a_payment_failed(shop: Shop, site: str, open_page: Open) -> None:
    """Day one: who decided, what to do, what to tell the shopper; on a phone, in the dark."""
    somebody("clara", "clerk", shop)
    shop.api.pay(card__number="4000015500000005")
    page = open_page(390, 844, color_scheme="dark")
    sign_in(page, site, "clara")
    find(page, site, "0005")
    follow(page, page.locator("tbody a").first)
    for told in ("the shopper's bank", "No money moved.", "The card has not enough credit."):
        expect(page.get_by_text(told).first).to_be_visible()
    assert fits(page)
    picture(page, "clerk-why-narrow-dark")
    assert serious(page) == []


def test_a_whole_card_number_is_not_even_sent(shop: Shop, site: str, open_page: Open) -> None:
    """R8: not to the server, not into an address."""
    somebody("clara", "clerk", shop)
    page = open_page()
    sign_in(page, site, "clara")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site}/admin/gateway/payment/")
    page.get_by_label("Find a payment").fill("4200 0000 0000 0000")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("That looks like a whole card number.")).to_be_visible()
    assert not [url for url in asked if "4200" in url]


def test_an_export_goes_on_while_the_clerk_does_something_else(
    shop: Shop, site: str, open_page: Open, tmp_path: Path
) -> None:
    """Issue: exports run as jobs with a progress bar, and can be left and found again."""
    somebody("clara", "clerk", shop)
    shop.api.pay()
    page = open_page()
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        sign_in(page, site, "clara")
        page.goto(f"{site}/admin/gateway/payment/")
        follow(page, page.get_by_role("button", name="XLSX"))
        expect(page.get_by_role("progressbar")).to_be_visible()
        assert serious(page) == []
        page.goto(f"{site}/admin/gateway/payment/")
        queue.run_background_work()
        page.goto(f"{site}/admin/gateway/backgroundwork/")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download", exact=True).click()
        assert download.value.suggested_filename.endswith("payments.xlsx")
