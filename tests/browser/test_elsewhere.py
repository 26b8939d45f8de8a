"""Paying elsewhere in a real browser: every page, every outcome one click, two tabs, back, double click, phones.

Source: Part A, What the service does, 6, Events, 1; look.md, Simulator pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest
from playwright.sync_api import Page, expect

from gateway.connectors.simulator import orders
from gateway.models import Division, PaymentEvent, Psp, SimulatedOrder
from tests.browser.conftest import picture
from tests.browser.patience import resize
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop, open_shop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]

Open = Callable[..., Page]
PHONE = (390, 844)
BACK = "**/result?order=7&id=*"
BRANDS = [brand for brand, kind in orders.ORDER_KIND_BY_BRAND.items() if kind.has_page]
BUTTONS = {"approve": 0, "decline": 1, "cancel": 2, "leave": 3}


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "The Corner Bookshop")


@pytest.fixture
def api(shop: Shop, site: str) -> Api:
    return shop.api


def buy(api: Api, brand: str, **more: str) -> Answer:
    fields = {
        "amount": "1092.00",
        "currency": "EUR",
        "paymentBrand": brand,
        "paymentType": "DB",
        "merchantTransactionId": "order-2026-000017",
        "shopperResultUrl": "http://shop.example/result?order=7",
    }
    return api.post("/v1/payments", fields | more)


def go(page: Page, answer: Answer) -> None:
    page.goto(answer.body["redirect"]["url"])


def click(page: Page, outcome: str) -> None:
    page.get_by_role("button").nth(BUTTONS[outcome]).click()


@pytest.mark.parametrize("brand", BRANDS)
@pytest.mark.parametrize("outcome", orders.ORDER_OUTCOMES)
def test_one_click_decides_and_leads_back_to_the_shop(api: Api, open_page: Open, brand: str, outcome: str) -> None:
    """A6.3, A6.4."""
    answer = buy(api, brand)
    page = open_page(*PHONE)
    go(page, answer)
    expect(page.get_by_text("Test page")).to_be_visible()
    expect(page.get_by_text("1092.00")).to_be_visible()
    click(page, outcome)
    page.wait_for_url(BACK)
    assert f"resourcePath=%2Fv1%2Fpayments%2F{answer.id}" in page.url
    assert api.read(answer.id).code == orders.ORDER_KIND_BY_BRAND[brand].code(orders.ORDER_OUTCOMES[outcome])


@pytest.mark.parametrize("brand", BRANDS)
def test_the_page_fits_its_window_and_fingers_hit_its_buttons(api: Api, open_page: Open, brand: str) -> None:
    """look.md, Grid: one column on phones, targets of 44 px, no sideways scrolling; light and dark."""
    page = open_page()
    go(page, buy(api, brand))
    for scheme, width in product(("light", "dark"), (320, 390, 1440)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no colour in transition
        resize(page, width, 844)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for button in page.get_by_role("button").all():
            box = button.bounding_box()
            assert box is not None
            assert box["height"] >= 44
        picture(page, f"{brand.lower()}-{width}-{scheme}")


def test_a_double_click_pays_once(api: Api, open_page: Open) -> None:
    answer = buy(api, "ONLINETRANSFER")
    page = open_page()
    go(page, answer)
    page.get_by_role("button").nth(0).dblclick()
    expect(page).to_have_url(re.compile(r"/result\?order=7&id="))  # the second click may have ended the first's way
    assert api.read(answer.id).code == "000.100.110"
    assert PaymentEvent.objects.filter(payment=answer.id).count() == 3


def test_two_tabs_and_the_back_button_make_one_payment(api: Api, open_page: Open) -> None:
    """The first decision counts, whatever the second tab says."""
    answer = buy(api, "WEBWALLET")
    first, second = open_page(), open_page()
    go(first, answer)
    go(second, answer)
    click(first, "approve")
    first.wait_for_url(BACK)
    click(second, "cancel")
    second.wait_for_url(BACK)
    first.go_back()
    expect(first.get_by_role("heading", name="This order is decided")).to_be_visible()
    picture(first, "decided")
    first.get_by_role("link", name="Back to the shop").click()
    first.wait_for_url(BACK)
    assert api.read(answer.id).code == "000.100.110"
    assert PaymentEvent.objects.filter(payment=answer.id).count() == 3


def test_who_leaves_may_come_back_to_the_order(api: Api, open_page: Open) -> None:
    answer = buy(api, "INVOICE", locale="de-DE")
    page = open_page(*PHONE)
    go(page, answer)
    click(page, "leave")
    expect(page.get_by_role("heading", name="Sie sind gegangen")).to_be_visible()
    picture(page, "left")
    assert SimulatedOrder.objects.get(pk=answer.id).state == "OPEN"
    page.get_by_role("link", name="Zurück zum Auftrag").click()
    click(page, "approve")
    page.wait_for_url(BACK)
    assert api.read(answer.id).code == "000.100.110"


def test_the_pages_work_by_keyboard(api: Api, open_page: Open) -> None:
    """look.md: the focus is always visible, and it goes where the eye goes."""
    answer = buy(api, "SHOPWALLET")
    page = open_page()
    go(page, answer)
    page.keyboard.press("Tab")
    expect(page.get_by_role("button").nth(0)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(BACK)
    assert api.read(answer.id).code == "000.100.110"
