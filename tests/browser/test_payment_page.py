"""A clerk makes a link, a shopper pays by it on a phone; a shop without a page has its shopper pay on ours.

Source: docs/decisions/0083.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Page, expect

from checkout.models import PaymentLink, PaymentPageStyle
from checkout.page_style import render_logo
from gateway.models import Division, Psp
from tests.browser.conftest import picture
from tests.browser.patience import follow
from tests.browser.test_clerks import fits, sign_in, somebody
from tests.browser.test_clerks import serious as serious_in_office
from tests.browser.test_widget_accessible import overflow, serious
from tests.browser.widget import DECLINED_AT_THE_BANK, Widget
from tests.support.fixtures import Shop, open_shop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Open = Callable[..., Page]
OpenWidget = Callable[..., Widget]
CART = {
    "cart.items[0].name": "Harbour mug, stoneware, glazed by hand",
    "cart.items[0].quantity": "2",
    "cart.items[0].price": "18.00",
    "cart.items[1].name": "Field notebook",
    "cart.items[1].quantity": "1",
    "cart.items[1].price": "12.00",
}


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "The Corner Bookshop")


def dress(shop: Shop) -> None:
    """A logo and two colours."""
    drawn = Image.new("RGB", (300, 120), "#7a1f3d")
    ImageDraw.Draw(drawn).ellipse((100, 10, 200, 110), fill="#ffd166")
    written = io.BytesIO()
    drawn.save(written, "PNG")
    PaymentPageStyle.objects.create(
        channel=shop.channel, accent="#ffd166", header="#7a1f3d", logo=render_logo(written.getvalue())
    )


def address_of(shop: Shop, site: str, **more: str) -> str:
    """The page of a new checkout."""
    fields = {"amount": "48.00", "currency": "EUR", "paymentType": "DB", "paymentPage": "true", **CART, **more}
    found = str(shop.api.post("/v1/checkouts", fields).body["paymentPage"])
    assert found.startswith(f"{site}/pay/")
    return found


def test_a_clerk_makes_a_link_and_a_shopper_pays_by_it_on_a_phone(
    shop: Shop, site: str, open_page: Open, open_widget: OpenWidget
) -> None:
    somebody("clara", "clerk", shop)
    desk = open_page()
    sign_in(desk, site, "clara")
    desk.goto(f"{site}/admin/checkout/paymentlink/add/")
    desk.get_by_label("Description").fill("Deposit for your stay in May")
    desk.locator("#id_amount").fill("92.00")
    desk.locator("#id_currency").fill("EUR")
    desk.get_by_label("Your reference").fill("order-4711")
    picture(desk, "link-form")
    follow(desk, desk.get_by_role("button", name="Save", exact=True))
    expect(desk.get_by_role("heading", name="QR code")).to_be_visible()
    assert serious_in_office(desk) == []
    address = desk.locator("#address").inner_text()
    desk.set_viewport_size({"width": 390, "height": 844})
    assert fits(desk)
    picture(desk, "link-narrow")
    desk.set_viewport_size({"width": 1280, "height": 800})

    phone = open_widget(390, 844).open(address)
    expect(phone.page).to_have_url(re.compile(f"{re.escape(site)}/pay/[0-9A-F]{{32}}-"))
    expect(phone.page.get_by_text("Deposit for your stay in May")).to_be_visible()
    picture(phone.page, "page-form-narrow")
    other = open_widget(390, 844).open(address)
    phone.fill(DECLINED_AT_THE_BANK).press()
    expect(phone.page.get_by_text("You were not charged").first).to_be_visible()
    phone.emptied().fill().press()
    expect(phone.page.get_by_role("heading", name="Paid")).to_be_visible()
    expect(phone.page.get_by_text("Visa •••• 0000")).to_be_visible()
    expect(phone.page.get_by_role("button", name="Print")).to_be_visible()
    picture(phone.page, "page-receipt-narrow")
    assert serious(phone.page) == []
    phone.page.get_by_label("E-mail address").fill("jane@mail.example")
    follow(phone.page, phone.page.get_by_role("button", name="Send"))
    expect(phone.page.get_by_text("The receipt is on its way.")).to_be_visible()

    other.fill().press()
    expect(other.page.get_by_text("You were not charged").first).to_be_visible()
    other.page.goto(address)
    expect(other.page.get_by_role("heading", name="This order is already paid")).to_be_visible()
    picture(other.page, "page-already-paid")

    follow(desk, desk.get_by_role("link", name="Payment links").first)
    expect(desk.get_by_text("1 ×")).to_be_visible()
    picture(desk, "link-list")
    desk.goto(f"{site}/admin/checkout/paymentlink/{PaymentLink.objects.get().pk}/change/")
    expect(desk.get_by_text("Paid 1 time: 92.00 EUR")).to_be_visible()
    picture(desk, "link-paid")


def test_a_merchant_by_api_gets_a_page_and_is_paid(shop: Shop, site: str, open_widget: OpenWidget) -> None:
    dress(shop)
    address = address_of(shop, site)
    widget = open_widget(1280, 900).open(address)
    expect(widget.page.get_by_text("€36.00")).to_be_visible()
    picture(widget.page, "page-form-wide")
    widget.fill().press()
    expect(widget.page.get_by_role("heading", name="Paid")).to_be_visible()
    picture(widget.page, "page-receipt-wide")
    checkout = address.rpartition("/")[2]
    paid = shop.api.get(f"/v1/checkouts/{checkout}/payment")
    assert (paid.code, paid.body["amount"]) == ("000.100.110", "48.00")
    assert widget.faults == []


def test_the_bank_asks_and_the_shopper_comes_back_to_the_page(shop: Shop, site: str, open_widget: OpenWidget) -> None:
    """3-D Secure from the hosted page: away, and back to the receipt."""
    type(shop.channel).objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    billing = {"billing.street1": "Main 1", "billing.city": "Munich", "billing.postcode": "80331"}
    address = address_of(shop, site, **billing, **{"billing.country": "DE"})
    widget = open_widget(390, 844).open(address)
    widget.fill("4200000000000042").press()
    widget.page.frame_locator(".wpwl-sheet-frame").get_by_role("button", name="Pass").click()
    expect(widget.page.get_by_role("heading", name="Paid")).to_be_visible()
    expect(widget.page).to_have_url(re.compile(f"{re.escape(address)}\\?locale=en&id="))


@pytest.mark.parametrize(("locale", "currency", "amount", "shown"), [
    ("hu", "HUF", "4990.50", "4990,50\u00a0Ft"), ("hu", "HUF", "14990.00", "14\u00a0990\u00a0Ft"),
    ("ja", "JPY", "5000", "\uffe55,000"), ("de", "KWD", "12.50", "12,500\u00a0KWD"),
])  # fmt: skip
def test_page_button_and_receipt_name_one_amount(
    shop: Shop, site: str, open_widget: OpenWidget, locale: str, currency: str, amount: str, shown: str
) -> None:
    """Nothing that is charged is rounded away, though a currency is usually written without decimals."""
    fields = {"amount": amount, "currency": currency, "paymentType": "DB", "paymentPage": "true"}
    address = shop.api.post("/v1/checkouts", fields).body["paymentPage"]
    widget = open_widget(390, 844).open(f"{address}?locale={locale}")
    assert widget.page.locator(".total").text_content() == shown
    assert shown in (widget.pay.text_content() or "")
    widget.fill().press()
    expect(widget.page.locator(".receipt")).to_be_visible()
    assert widget.page.locator(".receipt .total").text_content() == shown


@pytest.mark.parametrize(("locale", "scheme"), [("en", "light"), ("de", "dark"), ("ar", "light")])
def test_the_page_is_for_everybody_at_320_px(
    shop: Shop, site: str, open_widget: OpenWidget, locale: str, scheme: str
) -> None:
    dress(shop)
    link = shop.api.post(
        "/v1/paymentLinks",
        {"currency": "EUR", "paymentType": "DB", "link.openAmount": "true", "link.maxAmount": "500.00",
         "link.description": "Donation"},
    ).body["url"]  # fmt: skip
    widget = open_widget(320, 800, color_scheme=scheme)
    page = widget.page
    page.goto(f"{link}?locale={locale}")
    assert (serious(page), overflow(page)) == ([], 0)
    picture(page, f"page-amount-{locale}")
    page.locator("#amount").fill("5000")
    page.locator("button").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert (serious(page), overflow(page)) == ([], 0)
    page.locator("#amount").fill("25")
    page.locator("button").click()
    widget.ready()
    assert page.locator("html").get_attribute("dir") == ("rtl" if locale == "ar" else "ltr")
    assert (serious(page), overflow(page)) == ([], 0)
    assert page.locator(".total").inner_text() in widget.pay.inner_text()
    picture(page, f"page-form-{locale}")
    page.locator(".languages summary").click()
    assert (serious(page), overflow(page)) == ([], 0)
    widget.fill().press()
    expect(page.locator(".receipt")).to_be_visible()
    assert (serious(page), overflow(page)) == ([], 0)
    picture(page, f"page-receipt-{locale}")


def test_a_manager_finds_colours_and_logo(shop: Shop, site: str, open_page: Open) -> None:
    somebody("maria", "manager", shop)
    dress(shop)
    page = open_page()
    sign_in(page, site, "maria")
    page.goto(f"{site}/admin/checkout/paymentpagestyle/{shop.channel.pk}/change/")
    expect(page.get_by_role("link", name="Change the logo")).to_be_visible()
    picture(page, "looks-form")
    follow(page, page.get_by_role("link", name="Change the logo"))
    assert serious_in_office(page) == []
    picture(page, "looks-logo")
