"""What a page may ask of the form, and what the form tells the page; stored cards replaced and taken away.

Source: decisions, section 7; Part A, What the service does, 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import expect

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


def test_an_expired_card_leads_to_a_new_one_that_is_kept(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Marked, with the way to another in its place."""
    old = Registration.objects.get(pk=store(api))
    old.details["card"] |= {"expiryMonth": "01", "expiryYear": "2024"}
    old.save(update_fields=["details"])
    checkout_id = checkout(api, **{"registrations[0].id": old.id.hex, "customer.merchantCustomerId": "17"})
    widget = open_widget(390, 900).open(shop_site.widget(site, checkout_id))
    page = widget.page
    page.get_by_role("radio", name=re.compile("ending in")).check()
    picture(page, "expired-card")
    page.get_by_role("button", name="Enter a new card").click()
    expect(page.get_by_label("Save this card for next time")).to_be_checked()
    widget.fill().press()
    widget.lands()
    assert result(api, checkout_id).body["registrationId"] != old.id.hex


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
