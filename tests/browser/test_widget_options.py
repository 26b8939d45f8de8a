"""What a page may ask of the form, and what the form tells the page; stored cards replaced and taken away.

Source: decisions, section 7; Part A, What the service does, 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from checkout.models import Checkout, OfferRule
from gateway.models import Merchant, Payment, Registration, RiskSet, Status
from tests.browser.conftest import picture
from tests.browser.test_widget_means import store
from tests.browser.widget import Widget, checkout, lose, result
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.shopfront import Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
PAYMENT = re.compile("/v1/checkouts/[^/]+/payment")
FUNDS = "4000015500000005"
TOLD = "window.told = []; widgetOptions.onError = (what) => told.push(what);"


@pytest.fixture
def shop(committed: Shop) -> Shop:
    return committed


@pytest.fixture
def api(shop: Shop) -> Api:
    return shop.api


def test_a_page_may_do_without_the_code_where_the_channel_does(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """requireCvv false: no field, and the card pays; a channel that wants the code has it asked all the same."""
    options = {"requireCvv": False}
    checkout_id = checkout(shop.api)
    widget = open_widget().open(shop_site.widget(site, checkout_id, options=options))
    expect(widget.page.locator(".wpwl-group-cvv")).to_be_hidden()
    widget.number.fill("4200000000000000")
    widget.expiry.press_sequentially("0534")
    widget.press()
    widget.lands()
    assert result(shop.api, checkout_id).code == "000.100.110"
    strict = shop.api_of(shop.open_channel("strict", cvv_required=True))
    widget.open(shop_site.widget(site, checkout(strict), options=options))
    expect(widget.page.locator(".wpwl-group-cvv")).to_be_visible()
    widget.number.fill("4200000000000000")
    widget.expiry.press_sequentially("0534")
    widget.press()
    expect(widget.hint("cvv")).to_have_text("Enter the 3-digit security code.")


def test_only_stored_cards_where_the_page_wants_no_others(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """hideInitialPaymentForms; without a stored card there is nothing to hide the others behind."""
    options = {"registrations": {"hideInitialPaymentForms": True}}
    offered = checkout(api, **{"registrations[0].id": store(api)})
    widget = open_widget().open(shop_site.widget(site, offered, brands="VISA WALLET2", options=options))
    expect(widget.page.locator(".wpwl-container")).to_have_count(1)
    expect(widget.page.locator(".wpwl-form-card, .wpwl-wallet")).to_have_count(0)
    widget.page.locator(".wpwl-form-registrations .wpwl-button-pay").click()
    widget.lands()
    widget.open(shop_site.widget(site, checkout(api), brands="VISA", options=options))
    expect(widget.number).to_be_visible()


def test_the_page_is_told_what_failed(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """onError: a name for the page, words as the shopper reads them, the code of a decline."""
    widget = open_widget().open(shop_site.widget(site, checkout(api), code=TOLD)).fill(FUNDS)
    widget.press()
    expect(widget.page.locator(".wpwl-note-error")).to_be_visible()
    words = widget.page.locator(".wpwl-note-words").inner_text()
    [told] = widget.page.evaluate("told")
    assert told == {"name": "declined", "message": words, "code": result_code(FUNDS)}
    widget.open(shop_site.widget(site, "0" * 32 + "-node01", code=TOLD))
    expect(widget.page.locator(".wpwl-end")).to_be_visible()
    assert [one["name"] for one in widget.page.evaluate("told")] == ["expired"]
    widget.page.goto(
        shop_site.widget(site, checkout(api), code=TOLD + "widgetOptions.baseUrl = 'https://pay.example';")
    )
    widget.page.wait_for_function("() => told.length")
    assert [one["name"] for one in widget.page.evaluate("told")] == ["baseUrl"]


def test_a_pages_mistakes_are_told_on_the_page_in_the_test_environment(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A wrong option, an unknown language, a wrong address: a console is easily overlooked."""
    options = {"style": "crad", "locale": "xx", "brandDetecton": True}
    widget = open_widget().open(shop_site.widget(site, checkout(api), options=options))
    told = " ".join(widget.page.locator(".wpwl-banner").all_inner_texts())
    for words in ("Did you mean card?", 'locale "xx" is none', "Did you mean brandDetection?"):
        assert words in told
    widget.open(shop_site.widget(site, checkout(api), options={"style": "plain", "locale": "nl"}))
    expect(widget.page.locator(".wpwl-banner")).to_have_count(0)
    widget.page.goto(shop_site.widget(site, checkout(api), options={"baseUrl": "https://pay.example"}))
    expect(widget.page.get_by_role("alert")).to_contain_text("ends with a slash")


def test_an_expired_checkout_leads_back_to_the_shop(site: str, shop_site: Shopfront, open_widget: Open) -> None:
    widget = open_widget()
    page = shop_site.widget(site, "0" * 32 + "-node01")
    widget.page.goto(page)
    back = widget.page.locator(".wpwl-end").get_by_role("link", name="Back to the shop")
    expect(back).to_have_attribute("href", re.compile(r"^https?://[^/]+/$"))
    cart = shop_site.show("/cart", f'<title>Cart</title><a href="{page}">Pay</a>', "")
    widget.page.goto(cart)
    widget.page.get_by_role("link", name="Pay").click()
    expect(back).to_have_attribute("href", cart)


def result_code(number: str) -> str:
    assert number == FUNDS
    return Payment.objects.get().result_code


def test_the_offered_brands_follow_the_risk_score(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.12: on the same page two shoppers see two lists; the reason stays with the checkout."""
    rule = {
        "name": "trash",
        "when": {"kind": "list", "field": "customer.email", "values": ["x@trash.example"]},
        "then": {"score": 40},
    }
    RiskSet.objects.create(merchant=shop.merchant, key="SET", document={"key": "SET", "rules": [rule]})
    shop.channel.risk_set = "SET"
    shop.channel.save()
    OfferRule.objects.create(
        merchant=shop.merchant,
        name="risky",
        brands=["DIRECTDEBIT_SEPA"],
        conditions={"scoreAtLeast": 30},
        reason="Risk score 30 or more",
    )
    widget = open_widget()
    for email, rows in (("jane@mail.example", 2), ("x@trash.example", 1)):
        checkout_id = checkout(shop.api, **{"customer.email": email})
        widget.open(shop_site.widget(site, checkout_id, brands="VISA DIRECTDEBIT_SEPA"))
        expect(widget.page.locator(".wpwl-container")).to_have_count(rows)
    assert Checkout.objects.get(pk=checkout_id[:32].lower()).hidden_brands == {
        "DIRECTDEBIT_SEPA": "Risk score 30 or more"
    }
    widget.fill().press()
    widget.lands()


DELETE = """
  window.deleted = [];
  widgetOptions.registrations = { onDelete: (which) => {
    deleted.push(which);
    return window.refuse ? Promise.reject(new Error("not now")) : Promise.resolve();
  } };
"""


def test_a_stored_card_is_taken_away_after_one_question(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The shop's server deletes; the form asks once, and without the page's function has no button for it."""
    first, second = store(api), store(api, **{"card.number": "4242424242424242"})
    offered = {"registrations[0].id": first, "registrations[1].id": second}
    widget = open_widget(390, 900).open(shop_site.widget(site, checkout(api, **offered)))
    page = widget.page
    expect(page.get_by_role("button", name="Remove")).to_have_count(0)
    widget.open(shop_site.widget(site, checkout(api, **offered), code=DELETE))
    box = page.locator(f"#wpwl-container-registration-{first}")
    box.get_by_role("button", name="Remove").click()
    expect(box).to_contain_text("Remove Visa ending in \u20680000\u2069?")
    expect(box.get_by_role("button", name="Remove")).to_be_focused()
    picture(page, "remove")
    box.get_by_role("button", name="Cancel").click()
    expect(box.get_by_role("button", name="Cancel")).to_have_count(0)
    assert page.evaluate("deleted") == []
    page.evaluate("window.refuse = true; 0")
    for _ in range(2):
        box.get_by_role("button", name="Remove").click()
    expect(page.locator(".wpwl-note-error")).to_be_visible()
    expect(box).to_be_visible()
    page.evaluate("window.refuse = false; 0")
    box.get_by_role("button", name="Remove").click()
    expect(page.locator(".wpwl-note-done")).to_contain_text("Removed.")
    expect(box).to_have_count(0)
    expect(page.get_by_role("radio").first).to_be_checked()
    assert page.evaluate("deleted[1]") == {"id": first, "brand": "VISA", "last4": "0000"}
    page.locator(f"#wpwl-container-registration-{second} .wpwl-button-pay").click()
    widget.lands()


def expire(registration: str) -> None:
    row = Registration.objects.get(pk=registration)
    row.details["card"] |= {"expiryMonth": "01", "expiryYear": "2024"}
    row.save(update_fields=["details"])


def press_slowly(widget: Widget, button: Locator) -> None:
    """A finger rests on the button, which stays where it is whatever the fields say meanwhile."""
    button.hover()
    place = button.bounding_box()
    widget.page.mouse.down()
    widget.heard()
    assert button.bounding_box() == place
    widget.page.mouse.up()


@pytest.mark.parametrize("stored", [True, False])
def test_a_press_is_not_lost_to_an_error_that_goes(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, stored: bool
) -> None:
    """Pressing takes the shopper out of the field: what that changes waits, and an error that was mended is gone."""
    offered = {"registrations[0].id": store(api)} if stored else {}
    options = {"registrations": {"requireCvv": True}}
    widget = open_widget(390, 900).open(shop_site.widget(site, checkout(api, **offered), options=options))
    box = widget.page.locator(".wpwl-form-registrations" if stored else ".wpwl-form-card")
    button, hint, code = box.locator(".wpwl-button-pay"), box.locator(".wpwl-hint-cvvError"), box.locator("iframe").last
    field = code.content_frame.locator("#field")
    if not stored:
        widget.number.fill("4200000000000000")
        widget.expiry.press_sequentially("0534")
        widget.heard()
    button.click()
    expect(hint).to_be_visible()
    expect(field).to_be_focused()
    press_slowly(widget, button)
    expect(field).to_be_focused()
    field.press_sequentially("12")
    expect(hint).to_be_hidden()
    field.press_sequentially("3")
    press_slowly(widget, button)
    widget.lands()


def test_an_error_goes_after_a_press_that_slid_off_the_button(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Nothing was pressed: what is typed then is judged as ever."""
    widget = open_widget(390, 900).open(shop_site.widget(site, checkout(api)))
    hint = widget.page.locator(".wpwl-hint-cvvError")
    widget.number.fill("4200000000000000")
    widget.expiry.press_sequentially("0534")
    widget.press()
    expect(hint).to_be_visible()
    widget.pay.hover()
    widget.page.mouse.down()
    widget.page.mouse.move(2, 890)
    widget.page.mouse.up()
    widget.page.wait_for_timeout(600)
    widget.cvv.press_sequentially("12")
    expect(hint).to_be_hidden()


@pytest.mark.parametrize(("width", "lang"), [(390, "en"), (1280, "de"), (390, "ar")])
def test_an_expired_card_is_renewed_in_place(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, width: int, lang: str
) -> None:
    """Its row asks for the new date; date and code pay, and what is stored is good from then on."""
    old, other = store(api), store(api, **{"card.number": "4242424242424242"})
    expire(old)
    offered = {"registrations[0].id": old, "registrations[1].id": other}
    widget = open_widget(width, 900).open(shop_site.widget(site, checkout(api, **offered), lang=lang))
    page = widget.page
    box = page.locator(f"#wpwl-container-registration-{old}")
    expect(page.get_by_role("radio").nth(1)).to_be_checked()
    box.get_by_role("radio").check()
    picture(page, f"expired-card-{lang}")
    box.locator(".wpwl-button-pay").click()
    expect(box.locator(".wpwl-hint-expiryError")).to_be_visible()
    expect(box.locator(".wpwl-hint-cvvError")).to_be_visible()
    assert Axe().run(page, context=".wpwl-widget", options={"resultTypes": ["violations"]}).response["violations"] == []
    box.locator(".wpwl-control-expiry").press_sequentially("0534")
    box.frame_locator("iframe").locator("#field").fill("123")
    picture(page, f"expired-card-filled-{lang}")
    widget.heard()
    box.locator(".wpwl-button-pay").click()
    widget.lands()
    card = Registration.objects.get(pk=old).details["card"]
    assert (card["expiryMonth"], card["expiryYear"]) == ("05", "2034")
    again = open_widget().open(shop_site.widget(site, checkout(api, **offered)))
    expect(again.page.get_by_role("radio").first).to_be_checked()
    expect(again.page.locator(".wpwl-method").first).to_contain_text("Expires")


def answered(widget: Widget, code: str) -> None:
    """The bank's answer to the next payment is a decline with this code."""
    body = {"result": {"code": code}, "state": "open", "attempts": 1}
    widget.page.route(
        PAYMENT, lambda route: route.fulfill(json=body, headers={"Access-Control-Allow-Origin": "*"}), times=1
    )


@pytest.mark.parametrize(
    ("code", "offered"),
    [
        ("800.100.155", "Visa ending in \u20684242\u2069"),  # too little money: another card
        ("800.100.151", "Visa ending in \u20684242\u2069"),
        ("100.400.311", "Direct debit"),  # refused for risk: no other card either
        ("800.100.153", ""),  # a wrong code: the same card, its code anew
        ("100.390.112", ""),  # not authenticated: the same card may do
        ("900.100.300", ""),
    ],
)
def test_after_a_decline_the_next_best_means_is_one_press_away(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, code: str, offered: str
) -> None:
    first, second, old = store(api), store(api, **{"card.number": "4242424242424242"}), store(api)
    expire(old)
    stored = {f"registrations[{at}].id": one for at, one in enumerate((old, first, second))}
    options = {"registrations": {"requireCvv": True}}
    url = shop_site.widget(site, checkout(api, **stored), brands="VISA DIRECTDEBIT_SEPA", options=options)
    widget = open_widget(390, 900).open(url)
    page = widget.page
    box = page.locator(f"#wpwl-container-registration-{first}")
    box.frame_locator("iframe").locator("#field").fill("123")
    answered(widget, code)
    widget.heard()
    box.locator(".wpwl-button-pay").click()
    note = page.locator(".wpwl-note-error")
    expect(note).to_be_visible()
    if not offered:
        expect(note.get_by_role("button")).to_have_count(0)
        expect(box.get_by_role("radio")).to_be_checked()
        if code == "800.100.153":
            expect(box.frame_locator("iframe").locator("#field")).to_be_focused()
        return
    picture(page, f"declined-next-{code}")
    note.get_by_role("button", name=re.compile(offered)).click()
    expect(page.get_by_role("radio", name=re.compile(offered))).to_be_checked()
    expect(page.get_by_role("radio", name=re.compile(offered))).to_be_focused()
    expect(note).to_have_count(0)


def test_a_means_that_was_refused_is_not_offered_again(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """From the stored card to the form, from there to the account: never back, and at the end nothing."""
    widget = open_widget(390, 900).open(
        shop_site.widget(site, checkout(api, **{"registrations[0].id": store(api)}), brands="VISA DIRECTDEBIT_SEPA")
    )
    page = widget.page
    offer = page.locator(".wpwl-note-error").get_by_role("button")
    answered(widget, "800.100.151")
    page.locator(".wpwl-form-registrations .wpwl-button-pay").click()
    expect(offer).to_have_text("Another card")
    offer.click()
    widget.fill()
    answered(widget, "800.100.151")
    widget.press()
    expect(offer).to_contain_text("Direct debit")


def test_a_stored_card_that_the_bank_calls_expired_is_asked_for_its_date(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Here it is good, at the bank it is not: a new card was sent before the old one ended."""
    stored = store(api)
    checkout_id = checkout(api, **{"registrations[0].id": stored})
    widget = open_widget(390, 900).open(shop_site.widget(site, checkout_id))
    page = widget.page
    answered(widget, "100.100.303")
    page.locator(".wpwl-form-registrations .wpwl-button-pay").click()
    expiry = page.locator(".wpwl-form-registrations .wpwl-control-expiry")
    expect(expiry).to_be_focused()
    expiry.press_sequentially("0842")
    page.frame_locator(".wpwl-form-registrations iframe").locator("#field").fill("123")
    picture(page, "renewed-after-decline")
    widget.heard()
    page.locator(".wpwl-form-registrations .wpwl-button-pay").click()
    widget.lands()
    assert Registration.objects.get(pk=stored).details["card"]["expiryYear"] == "2042"


def test_a_lost_decline_is_told_as_one(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The answer got lost, the state has it: the bank's reason, not a word about the network."""
    widget = open_widget()
    widget.page.route(PAYMENT, lose)
    widget.open(shop_site.widget(site, checkout(api))).fill(FUNDS)
    widget.press()
    expect(widget.page.locator(".wpwl-note-error")).to_contain_text("The limit or balance is too low.")


def test_while_nobody_knows_the_shopper_is_told_to_wait(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Neither answer nor state: no word that nothing was charged; when the state comes, it decides."""
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.page.route(PAYMENT, lose)
    widget.page.route(re.compile("/state$"), lambda route: route.abort())
    widget.press()
    note = widget.page.locator(".wpwl-note")
    expect(note).to_contain_text("Please do not pay again: we keep checking.")
    expect(note).not_to_contain_text("not charged")
    picture(widget.page, "unsure")
    widget.page.unroute(re.compile("/state$"))
    note.get_by_role("button", name="Check now").click()
    widget.lands()
    assert Payment.objects.get().status == Status.APPROVED


def test_who_paid_is_not_told_that_the_time_ran_out(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Back in the browser after the half hour: paid is paid."""
    checkout_id = checkout(shop.api)
    url = shop_site.widget(site, checkout_id)
    widget = open_widget().open(url).fill()
    widget.press()
    widget.lands()
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(minutes=31))
    widget.page.goto(url)
    expect(widget.page.locator(".wpwl-end")).to_contain_text("This order is already paid")
