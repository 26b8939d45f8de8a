"""A card grants a part of the amount: the form tells what is held, and the shopper pays the rest or has it given back.

Source: docs/decisions/0129; docs/approval.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from gateway.models import Channel, Payment, Status, ThreeDSecureConfiguration
from gateway.payments.shopper_return import expire_due_suspensions
from tests.browser.conftest import picture
from tests.browser.patience import PATIENCE_MS, until
from tests.browser.widget import GOOD, Widget, checkout, held, result
from tests.support.client import Api
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.shopfront import Shopfront
from tests.support.shopper import Browser
from tests.support.threeds import CODE, FRICTIONLESS, PASS, Shopper

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
HALF = "4000050000000007"
CORS = {"Access-Control-Allow-Origin": "*"}
PART = "\u2068€46.00\u2069"
"""An amount as the form writes it into a sentence of any direction."""


@pytest.fixture
def collecting(shop: Shop, api: Api) -> Api:
    Channel.objects.filter(pk=shop.channel.pk).update(partial_approvals=Channel.PartialApprovals.COLLECT)
    return api


def pay_half(collecting: Api, site: str, shop_site: Shopfront, open_widget: Open, *size: int) -> tuple[str, Widget]:
    checkout_id = checkout(collecting)
    widget = open_widget(*size)
    widget.open(shop_site.widget(site, checkout_id)).fill(HALF)
    widget.press()
    offer = widget.page.locator(".wpwl-held")
    expect(offer).to_contain_text(f"Reserved: {PART}, Visa ending in \u20680007\u2069.", timeout=PATIENCE_MS)
    expect(offer).to_contain_text(f"Pay the remaining {PART} with another card")
    expect(offer).to_be_focused()
    return checkout_id, widget


SHOW_AGAIN = 'dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))'
"""What a browser says as it shows a page again that it kept when the shopper went on or back."""
TWO_FORMS = (
    '<form action="/result?order=7" class="paymentWidgets" data-brands="VISA MASTER"></form>'
    '<form action="/result?order=7" class="paymentWidgets" data-brands="DIRECTDEBIT_SEPA"></form>'
)


def test_the_rest_is_paid_with_another_card(
    collecting: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    checkout_id, widget = pay_half(collecting, site, shop_site, open_widget, 390, 844)
    picture(widget.page, "held")
    expect(widget.pay).to_contain_text(f"Pay {PART}")
    assert result(collecting, checkout_id).code == "000.200.000"
    widget.fill(GOOD)
    widget.press()
    widget.lands()
    assert result(collecting, checkout_id).code == "000.100.110"
    paid = Payment.objects.filter(status=Status.APPROVED).order_by("id").values_list("approved_amount", flat=True)
    assert [f"{amount:.2f}" for amount in paid] == ["46.00", "46.00"]


def test_what_is_held_is_given_back_and_the_whole_is_paid_otherwise(
    collecting: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    checkout_id, widget = pay_half(collecting, site, shop_site, open_widget)
    page = widget.page
    page.reload()
    expect(page.locator(".wpwl-held")).to_contain_text(f"Reserved: {PART}", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Give it back").click()
    until(page, lambda: Payment.objects.filter(status=Status.IN_DOUBT).exists())
    assert recover_after(2.0).settled == 1
    expect(widget.root).to_contain_text("The reserved amount is given back. You were not charged.", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Try again").click()
    expect(widget.pay).to_contain_text("Pay \u2068€92.00\u2069", timeout=PATIENCE_MS)
    expect(page.locator(".wpwl-held")).to_have_count(0)
    widget.fill(GOOD)
    widget.press()
    widget.lands()
    assert result(collecting, checkout_id).code == "000.100.110"
    assert Payment.objects.get(status=Status.DECLINED).result_code == "800.100.155"


def test_a_form_that_is_loaded_while_a_part_is_given_back_waits_and_says_so(
    collecting: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    checkout_id = checkout(collecting)
    browser = Browser(checkout_id)
    browser.pay(card__number=HALF)
    assert browser.release().body["state"] == "processing"
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout_id))
    page = widget.page
    expect(widget.pay).to_have_attribute("aria-disabled", "true", timeout=PATIENCE_MS)
    expect(page.locator(".wpwl-held")).to_have_count(0)
    assert recover_after(2.0).settled == 1
    expect(widget.root).to_contain_text("The reserved amount is given back. You were not charged.", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Try again").click()
    expect(widget.pay).to_contain_text("€92.00", timeout=PATIENCE_MS)
    widget.ready().fill(GOOD)
    widget.press()
    widget.lands()
    assert not widget.faults


def test_who_pays_with_another_card_while_a_part_is_given_back_is_not_told_that_it_has_too_little(
    collecting: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """In a form that was loaded before the part was held."""
    checkout_id = checkout(collecting)
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout_id)).fill(GOOD)
    browser = Browser(checkout_id)
    browser.pay(card__number=HALF)
    browser.release()
    widget.press()
    expect(widget.pay).to_have_attribute("aria-disabled", "true", timeout=PATIENCE_MS)
    assert recover_after(2.0).settled == 1
    expect(widget.root).to_contain_text("The payment was not finished. You were not charged.", timeout=PATIENCE_MS)
    assert Payment.objects.count() == 1


def test_a_form_without_cards_says_what_is_held_and_both_forms_know_what_was_given_back(
    collecting: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    checkout_id = checkout(collecting)
    assert Browser(checkout_id).pay(card__number=HALF).body["held"]["rest"] == "46.00"
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout_id, body=TWO_FORMS))
    page = widget.page
    expect(page.locator(".wpwl-held")).to_have_count(2)
    expect(page.locator(".wpwl-widget").nth(1)).to_contain_text(f"Reserved: {PART}", timeout=PATIENCE_MS)
    expect(page.locator(".wpwl-end")).to_have_count(0)
    assert not widget.faults
    page.get_by_role("button", name="Give it back").nth(1).click()
    until(page, lambda: Payment.objects.filter(status=Status.IN_DOUBT).exists())
    assert recover_after(2.0).settled == 1
    expect(page.locator(".wpwl-end-done")).to_have_count(2, timeout=PATIENCE_MS)
    expect(page.locator(".wpwl-button-pay")).to_have_count(0)
    page.get_by_role("button", name="Try again").first.click()
    expect(page.locator(".wpwl-button-pay")).to_have_count(2, timeout=PATIENCE_MS)
    for button in page.locator(".wpwl-button-pay").all():
        expect(button).to_contain_text("€92.00")


def test_who_pays_the_rest_too_late_is_told_and_not_charged_the_whole(
    collecting: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The form stood open until the part was given back: its button still says the rest."""
    checkout_id, widget = pay_half(collecting, site, shop_site, open_widget)
    Browser(checkout_id).release()
    assert recover_after(2.0).settled == 1
    widget.ready().fill(GOOD)
    expect(widget.pay).to_contain_text(f"Pay {PART}")
    # An invalid field shows its error, and the message about the held part stays as it was.
    wrong = {"state": "open", "result": {"code": "200.300.404", "parameterErrors": [{"name": "card.cvv"}]}}
    widget.page.route(
        re.compile("/payment$"), lambda route: route.fulfill(status=400, json=wrong, headers=CORS), times=1
    )
    widget.press()
    expect(widget.hint("cvv")).to_be_visible(timeout=PATIENCE_MS)
    expect(widget.page.locator(".wpwl-held")).to_contain_text(f"Reserved: {PART}")
    widget.cvv.fill("123")
    widget.press()
    expect(widget.root).to_contain_text("The reserved amount is given back. You were not charged.", timeout=PATIENCE_MS)
    assert Payment.objects.filter(status=Status.APPROVED).count() == 0
    widget.page.get_by_role("button", name="Try again").click()
    expect(widget.pay).to_contain_text("€92.00", timeout=PATIENCE_MS)
    widget.ready().fill(GOOD)
    widget.press()
    widget.lands()
    assert Payment.objects.get(status=Status.APPROVED).approved_amount == 92


def test_after_the_end_a_form_does_not_say_that_nothing_was_charged_while_a_part_is_held(
    collecting: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    _, widget = pay_half(collecting, site, shop_site, open_widget)
    jump(31 * 60)
    widget.page.evaluate(SHOW_AGAIN)
    widget.page.wait_for_timeout(1_500)
    expect(widget.root).not_to_contain_text("You were not charged")
    expire_due_suspensions()
    assert recover_after(60).settled == 1
    widget.page.evaluate(SHOW_AGAIN)
    expect(widget.root).to_contain_text("You were not charged", timeout=PATIENCE_MS)


def test_a_page_that_the_browser_kept_shows_what_is_held_now(
    collecting: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    checkout_id = checkout(collecting)
    elsewhere = Browser(checkout_id)
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout_id))
    page, offer = widget.page, widget.page.locator(".wpwl-held")
    elsewhere.pay(card__number=HALF)
    page.evaluate(SHOW_AGAIN)
    expect(offer).to_contain_text(f"Reserved: {PART}", timeout=PATIENCE_MS)
    expect(widget.ready().pay).to_contain_text(f"Pay {PART}")
    page.evaluate(SHOW_AGAIN)
    expect(offer).to_have_count(1)
    elsewhere.release()
    assert recover_after(2.0).settled == 1
    page.evaluate(SHOW_AGAIN)
    expect(offer).to_have_count(0, timeout=PATIENCE_MS)
    expect(widget.ready().pay).to_contain_text("€92.00")
    elsewhere.pay()
    page.evaluate(SHOW_AGAIN)
    expect(widget.root).to_contain_text("This order is already paid", timeout=PATIENCE_MS)


@pytest.fixture
def challenging(shop: Shop) -> Api:
    """Cards are taken in part, and their banks ask."""
    channel = shop.open_channel("asking", three_d_secure=True)
    channel.partial_approvals = Channel.PartialApprovals.COLLECT
    channel.save()
    ThreeDSecureConfiguration.objects.create(channel=channel, challenge_indicator="04")
    return shop.api_of(channel)


ADDRESS = {"billing.street1": "12 Main Street", "billing.city": "Berlin", "billing.postcode": "10115",
           "billing.country": "DE"}  # fmt: skip


def test_a_challenge_that_is_closed_leaves_the_part_held(
    challenging: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The bank of the card that pays the rest is left: the form is back, with what is held and the rest to pay."""
    ThreeDSecureConfiguration.objects.update(challenge_indicator="")
    checkout_id = checkout(challenging, **ADDRESS)
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout_id)).fill(HALF)
    widget.press()
    offer = widget.page.locator(".wpwl-held")
    expect(offer).to_contain_text(f"Reserved: {PART}", timeout=PATIENCE_MS)
    widget.ready().fill(PASS)
    widget.press()
    bank = widget.page.frame_locator(".wpwl-sheet-frame")
    expect(bank.get_by_label("Code")).to_be_visible(timeout=PATIENCE_MS)
    widget.page.locator(".wpwl-sheet-challenge").get_by_role("button", name="Close").click()
    expect(widget.page.locator(".wpwl-notes")).to_contain_text("The payment was not finished", timeout=PATIENCE_MS)
    expect(offer).to_contain_text(f"Reserved: {PART}")
    expect(widget.pay).to_contain_text(f"Pay {PART}")
    widget.emptied().number.fill(FRICTIONLESS)
    widget.cvv.fill("123")
    widget.press()
    widget.lands()
    assert result(challenging, checkout_id).code == "000.100.110"
    paid = Payment.objects.filter(status=Status.APPROVED).order_by("id").values_list("approved_amount", flat=True)
    assert [f"{amount:.2f}" for amount in paid] == ["46.00", "46.00"]


@pytest.mark.parametrize("closed", [False, True], ids=["the bank leads back", "closed as the part was granted"])
def test_a_challenge_after_which_a_part_is_held_offers_the_rest(
    challenging: Api, site: str, shop_site: Shopfront, open_widget: Open, closed: bool
) -> None:
    checkout_id = checkout(challenging, **ADDRESS)
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout_id)).fill(HALF)
    widget.press()
    bank = widget.page.frame_locator(".wpwl-sheet-frame")
    expect(bank.get_by_label("Code")).to_be_visible(timeout=PATIENCE_MS)
    if closed:
        waiting = held(widget, "/state")
        redirect = Browser(checkout_id).state().body["redirect"]
        Shopper(redirect).enter()
        widget.page.locator(".wpwl-sheet-challenge").get_by_role("button", name="Close").click()
        until(widget.page, lambda: waiting)
        widget.page.unroute_all()  # those that wait go on
    else:
        bank.get_by_label("Code").fill(CODE)
        bank.get_by_role("button", name="Confirm").click()
    offer = widget.page.locator(".wpwl-held")
    expect(offer).to_contain_text(f"Reserved: {PART}", timeout=PATIENCE_MS)
    expect(offer).to_be_focused()
    expect(widget.page.locator(".wpwl-sheet-challenge")).to_have_count(0)
    expect(widget.ready().pay).to_contain_text(f"Pay {PART}")
    assert Payment.objects.get().status == Status.PENDING
