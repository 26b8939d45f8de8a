"""Whole stories of shoppers at the payment form: a phone and a bank, a wallet that is closed, a card that is known."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from gateway.models import Channel, Division, Payment, Psp, Registration, Status
from tests.browser.conftest import picture
from tests.browser.test_widget import fill_address
from tests.browser.test_widget_means import CREATE, TOTAL_AT, fast
from tests.browser.test_widget_options import DELETE, expire
from tests.browser.widget import GOOD, Widget, checkout, result
from tests.support.fixtures import Shop, open_shop
from tests.support.shopfront import Shopfront
from tests.support.subscriptions import store_card
from tests.support.threeds import BILLING, CODE, FRICTIONLESS, PASS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
Open = Callable[..., Widget]


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "The Corner Bookshop")


def fits(widget: Widget) -> bool:
    return bool(widget.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_card_is_paid_with_on_a_small_phone_by_keyboard(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Typing faults, a bank's page that is closed, a decline, another card; charged once, nothing sideways."""
    api = shop.api_of(shop.open_channel("secure", three_d_secure=True))
    checkout_id = checkout(api)
    widget = open_widget(320, 640, has_touch=True).open(shop_site.widget(site, checkout_id))
    page = widget.page
    for field, mode in ((widget.number, "cc-number"), (widget.expiry, "cc-exp"), (widget.cvv, "cc-csc")):
        expect(field).to_have_attribute("inputmode", "numeric")
        expect(field).to_have_attribute("autocomplete", mode)
    widget.fill("4200000000000001")
    fill_address(page)
    widget.press()
    expect(widget.hint("cardNumber")).to_be_visible()
    expect(widget.number).to_be_focused()
    expect(widget.number).to_have_value("4200 0000 0000 0001")
    assert fits(widget)
    picture(page, "phone-wrong-number")

    widget.number.fill(PASS)
    widget.heard()
    expect(widget.pay).to_have_text(re.compile("€92.00"))
    widget.pay.focus()
    page.keyboard.press("Enter")
    bank = page.frame_locator(".wpwl-sheet-frame")
    expect(bank.get_by_label("Code")).to_be_visible()
    assert fits(widget)
    picture(page, "phone-bank")
    page.locator(".wpwl-sheet-challenge").get_by_role("button", name="Close").click()
    expect(page.locator(".wpwl-note")).to_contain_text("You were not charged")
    expect(widget.number).to_have_value("4200 0000 0000 0042")

    widget.emptied()
    widget.number.fill("4000015500000005")
    widget.cvv.fill("123")
    widget.press()
    expect(page.locator(".wpwl-note-error")).to_contain_text("You were not charged")
    widget.emptied()
    widget.number.fill(PASS)
    widget.cvv.fill("123")
    widget.press()
    bank.get_by_label("Code").fill(CODE)
    bank.get_by_label("Code").press("Enter")
    widget.lands()
    assert result(api, checkout_id).code == "000.100.110"
    assert Payment.objects.filter(status=Status.APPROVED).count() == 1


def test_a_wallet_is_opened_closed_left_for_a_card_and_opened_again(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """One checkout for one press, an address that changes the total, one charge, whichever way it was paid."""
    for pays_by_wallet in (False, True):
        checkout_id = checkout(shop.api)
        widget = open_widget(390, 844)
        page = widget.page
        page.expose_function(
            "updateCheckout",
            lambda known=checkout_id: shop.api.post(f"/v1/checkouts/{known}", {"amount": "95.00"}).code,
        )
        code = CREATE % f"'{checkout_id}'" + TOTAL_AT % ("wallet2", "SHIPPING_ADDRESS")
        address = (
            fast(site, shop_site, "WALLET2", code)
            if pays_by_wallet
            else shop_site.widget(site, checkout_id, brands="WALLET2 VISA", code=code)
        )
        page.goto(address)
        page.get_by_role("button", name="Pay with Mobile wallet 2").click()
        sheet = page.locator(".wpwl-sheet-wallet")
        expect(sheet.locator(".wpwl-total")).to_contain_text("€92.00")
        if pays_by_wallet:
            sheet.get_by_label("Full name").fill("Jane Jones")
            sheet.get_by_label("Postcode").fill("00100")
            sheet.get_by_label("Country").select_option("IT")
            expect(sheet.locator(".wpwl-total")).to_contain_text("€95.00")
            assert page.evaluate("asked") == [{"brand": "WALLET2"}]
            picture(page, "wallet-new-total")
            sheet.get_by_role("button", name=re.compile("Pay .*95")).click()
        else:
            page.keyboard.press("Escape")
            expect(sheet).to_have_count(0)
            page.get_by_role("radio", name="Card", exact=True).check()
            widget.fill(GOOD)
            widget.press()
        widget.lands()
    amounts = Payment.objects.filter(status=Status.APPROVED).order_by("created_at").values_list("brand", "amount")
    assert [(brand, str(amount)) for brand, amount in amounts] == [("VISA", "92.00"), ("WALLET2", "95.00")]


def test_a_shopper_comes_back_to_the_card_that_was_kept(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Kept when it is ticked, paid by one press, asked for its code if the page wants it, renewed, removed."""
    api = shop.api
    shopper = {"customer.merchantCustomerId": "17"}
    first = checkout(api, **shopper)
    widget = open_widget(390, 900).open(shop_site.widget(site, first)).fill()
    page = widget.page
    keep = page.get_by_label("Save this card for next time")
    expect(keep).not_to_be_checked()
    keep.check()
    widget.press()
    widget.lands()
    stored = result(api, first).body["registrationId"]
    known = {**shopper, "registrations[0].id": stored}
    box = page.locator(f"#wpwl-container-registration-{stored}")

    second = checkout(api, **known)
    widget.open(shop_site.widget(site, second))
    expect(page.locator(".wpwl-method").first).to_contain_text("0000")
    expect(page.locator(".wpwl-method").first).to_contain_text("Expires")
    picture(page, "known-card")
    box.locator(".wpwl-button-pay").click()
    widget.lands()

    third = checkout(api, **known)
    widget.open(shop_site.widget(site, third, options={"registrations": {"requireCvv": True}}))
    box.locator(".wpwl-button-pay").click()
    expect(box.locator(".wpwl-hint-cvvError")).to_be_visible()
    box.frame_locator("iframe").locator("#field").fill("123")
    widget.heard()
    box.locator(".wpwl-button-pay").click()
    widget.lands()

    expire(stored)
    fourth = checkout(api, **known)
    widget.open(shop_site.widget(site, fourth))
    expect(page.locator(".wpwl-method").first).to_contain_text("Expired")
    box.get_by_role("radio").check()
    box.locator(".wpwl-control-expiry").press_sequentially("0534")
    box.frame_locator("iframe").locator("#field").fill("123")
    widget.heard()
    box.locator(".wpwl-button-pay").click()
    widget.lands()
    assert Registration.objects.get(pk=stored).details["card"]["expiryYear"] == "2034"

    widget.open(shop_site.widget(site, checkout(api, **known), code=DELETE))
    box.get_by_role("button", name="Remove").click()
    expect(box).to_contain_text("Remove Visa ending in")
    box.get_by_role("button", name="Remove").click()
    expect(page.locator(".wpwl-note-done")).to_contain_text("Removed.")
    assert page.evaluate("deleted.length") == 1
    told = [result(api, one).body for one in (second, third, fourth)]
    assert {one["result"]["code"] for one in told} == {"000.100.110"}
    assert {one["registrationId"] for one in told} == {stored}


def test_a_card_that_is_known_goes_to_its_bank_only_when_that_wants_it(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Two cards of one shopper: one bank is content with what it knows, the other one asks each time."""
    api = shop.api
    stored = {number: store_card(api, number) for number in (FRICTIONLESS, PASS)}
    Channel.objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    widget = open_widget(390, 900)
    page = widget.page
    bank = page.frame_locator(".wpwl-sheet-frame")
    for number, flow in ((FRICTIONLESS, "frictionless"), (PASS, "challenge")):
        again = checkout(api, **BILLING, **{"registrations[0].id": stored[number]})
        widget.open(shop_site.widget(site, again))
        box = page.locator(f"#wpwl-container-registration-{stored[number]}")
        box.locator(".wpwl-button-pay").click()
        if flow == "challenge":
            expect(bank.get_by_label("Code")).to_be_visible()
            picture(page, "known-card-bank")
            bank.get_by_label("Code").fill(CODE)
            bank.get_by_label("Code").press("Enter")
        widget.lands()
        paid = result(api, again).body
        assert (paid["result"]["code"], paid["threeDSecure"]["flow"]) == ("000.100.110", flow)
    assert Payment.objects.filter(payment_type="DB", status=Status.APPROVED).count() == 2


def test_a_known_card_is_asked_for_the_address_that_its_bank_wants(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Found in use: the shop sent no billing address, the form asked for none, and the shopper read that something
    went wrong on the way."""
    api = shop.api
    stored = store_card(api, FRICTIONLESS)
    Channel.objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    again = checkout(api, **{"registrations[0].id": stored, "billing.country": "DE"})
    widget = open_widget(390, 900)
    page = widget.open(shop_site.widget(site, again)).page
    box = page.locator(f"#wpwl-container-registration-{stored}")
    expect(box.locator(".wpwl-billing .wpwl-label")).to_have_count(3)
    box.locator(".wpwl-button-pay").click()
    expect(box.locator(".wpwl-control-street1")).to_be_focused()
    for name in ("street1", "city", "postcode"):
        box.locator(f".wpwl-control-{name}").fill(BILLING[f"billing.{name}"])
    assert fits(widget)
    picture(page, "known-card-address")
    box.locator(".wpwl-button-pay").click()
    widget.lands()
    paid = result(api, again).body
    assert (paid["result"]["code"], paid["threeDSecure"]["flow"]) == ("000.100.110", "frictionless")
    assert {f"billing.{name}": text for name, text in paid["billing"].items()} == BILLING


def test_a_known_card_is_asked_for_no_address_that_the_page_alone_wants(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    stored = store_card(shop.api, FRICTIONLESS)
    again = checkout(shop.api, **{"registrations[0].id": stored})
    page = open_widget(390, 900).open(shop_site.widget(site, again, options={"billingAddress": True})).page
    expect(page.locator(f"#wpwl-container-registration-{stored} .wpwl-button-pay")).to_be_visible()
    expect(page.locator(f"#wpwl-container-registration-{stored} .wpwl-billing")).to_have_count(0)
