"""The form in pages of others: their resets, directions, colours, sizes and policies. It is readable and pays in each.

`host_styles` has what CSS frameworks say of elements; what they say of classes does not meet a form with classes of its
own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from gateway.models import Division, Payment, Psp
from tests.browser.conftest import picture
from tests.browser.test_widget_page import CONTRAST
from tests.browser.widget import Widget, checkout
from tests.support.client import Api
from tests.support.fixtures import open_shop
from tests.support.shopfront import NONCE, WIDGET, Shopfront, policy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
STYLES = sorted(Path(__file__).with_name("host_styles").glob("*.css"))
BRANDS = "VISA MASTER DIRECTDEBIT_SEPA"
MIN_CONTRAST = 4.5
MIN_TARGET_PX = 44
MIN_BORDER_CONTRAST = 3.0
BORDER_CONTRAST = CONTRAST.replace("(node).color", "(node).borderTopColor")


@dataclass(frozen=True, kw_only=True)
class Host:
    """A page: its CSS, direction and language, the width of its window, and what stands around the form. ``sized``: its
    own rules say how high fields are, by !important."""

    css: str = ""
    direction: str = "ltr"
    lang: str = "en"
    width: int = 390
    body: str = WIDGET
    sized: bool = False


IMPORTANT = """
* { box-sizing: content-box !important; font-family: Georgia, serif !important; }
input, select { height: 30px !important; padding: 2px !important; margin: 0 0 15px !important; border: 1px solid #767676 !important }
button { text-transform: uppercase !important; border-radius: 0 !important; letter-spacing: 2px !important; width: auto !important }
label { display: inline-block !important; font-size: 12px !important; float: left !important }
iframe { max-width: 100% !important; margin: 0 !important }
"""  # noqa: E501
OLD_SHOP = """
body { font: 11px/1 Verdana, sans-serif; color: #666; text-align: center; background: #fff }
table, td, div, form { text-align: center } form { margin: 0; display: inline }
img, iframe { border: 0; max-width: 100% } label { float: left; width: 120px }
input { width: 100px; border: inset 2px; background: #ffffe0; text-transform: uppercase }
button, input[type=submit] { background: #c00; color: #fff; font-weight: bold; border: 0; padding: 2px }
a { color: #00f } legend { font-size: 20px; color: #c00 } fieldset { border: 2px groove; padding: 12px; margin: 12px }
span { color: #999 } svg { width: 10px; height: 10px; fill: red } small { font-size: 7px } p { margin: 0 0 3em }
"""
HOSTS = {path.stem: Host(css=path.read_text(encoding="utf-8")) for path in STYLES} | {
    "important": Host(css=IMPORTANT, sized=True),
    "old-shop": Host(css=OLD_SHOP, width=1280),
    "right-to-left": Host(direction="rtl", lang="ar"),
    "right-to-left-reset": Host(css=(STYLES[0].read_text(encoding="utf-8")), direction="rtl", lang="ar", width=1280),
    "english-form-in-arabic-page": Host(direction="rtl", body=f'<section lang="en">{WIDGET}</section>'),
    "dark": Host(css="body { background: #101418; color: #e8e8e8 }"),
    "dark-scheme": Host(css=":root { color-scheme: dark } body { background: #000; color: #fff }", width=1280),
    "dark-card-in-light-page": Host(
        css="body { background: #fff } .panel { background: #14213d; padding: 12px }",
        body=f'<section class="panel">{WIDGET}</section>',
    ),
    "text-at-200-per-cent": Host(css="html { font-size: 200% }"),
    "large-text-german": Host(css="html, body { font-size: 28px }", lang="de", width=320),
    "narrow-column": Host(
        css=".grid { display: grid; grid-template-columns: 1fr 300px; gap: 8px } .grid > * { min-width: 0 }",
        body=f'<section class="grid"><p>Order</p>{WIDGET}</section>',
        width=1280,
    ),
    "scaled-and-cut": Host(
        css=".box { transform: translateZ(0); overflow: hidden; contain: layout paint; max-width: 600px }",
        body=f'<section class="box">{WIDGET}</section>',
        width=1280,
    ),
}


@pytest.fixture
def api(transactional_db: None) -> Api:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop").api


def show(shop_site: Shopfront, site: str, api: Api, host: Host, **more: Any) -> str:
    """The address of the page, under a policy without 'unsafe-inline'."""
    csp = policy(site).replace("style-src", f"style-src 'nonce-{NONCE}'")
    head = f'<style nonce="{NONCE}">{host.css}</style>'
    return shop_site.widget(
        site, checkout(api), brands=BRANDS, head=head, csp=csp, lang=host.lang, direction=host.direction,
        body=host.body, **more,
    )  # fmt: skip


def read(widget: Widget) -> list[Locator]:
    """Everything with words that a shopper reads before paying."""
    inside = (".wpwl-label", ".wpwl-method-words > span", ".wpwl-button-pay", ".wpwl-control-expiry", ".wpwl-optional")
    return [one for each in inside for one in widget.page.locator(f".wpwl-widget {each}").all() if one.is_visible()]


@pytest.mark.parametrize("name", HOSTS)
def test_the_form_is_readable_and_pays_in_a_page_of_others(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, name: str
) -> None:
    host = HOSTS[name]
    widget = open_widget(host.width, 900).open(show(shop_site, site, api, host))
    page = widget.page
    page.get_by_role("radio").first.check()
    picture(page, f"host-{name}")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    for one in read(widget):
        assert one.evaluate(CONTRAST) >= MIN_CONTRAST, one.inner_text()
    for field in (widget.expiry, page.locator(".wpwl-control-cardNumber"), widget.pay):
        box = field.bounding_box()
        assert box is not None
        assert host.sized or box["height"] >= MIN_TARGET_PX
    # The two fields of a row stand side by side, or one above the other: never one over the other.
    first, second = widget.expiry.bounding_box(), page.locator(".wpwl-control-cvv").bounding_box()
    assert first is not None
    assert second is not None
    apart = first["y"] + first["height"] <= second["y"] or first["x"] + first["width"] <= second["x"]
    assert apart or second["x"] + second["width"] <= first["x"]
    assert widget.expiry.evaluate(BORDER_CONTRAST) >= MIN_BORDER_CONTRAST
    found = Axe().run(page, context=".wpwl-widget", options={"resultTypes": ["violations"]}).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    widget.fill().press()
    widget.lands()
    assert widget.faults == []


def test_an_english_form_in_an_arabic_page_runs_from_left_to_right(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The form's own language decides, not the page's."""
    widget = open_widget(390, 900).open(
        show(shop_site, site, api, Host(direction="rtl", lang="ar"), options={"locale": "en"})
    )
    expect(widget.root).to_have_attribute("dir", "ltr")
    expect(widget.expiry).to_have_css("text-align", "start")
    widget.open(show(shop_site, site, api, Host(lang="en"), options={"locale": "ar"}))
    expect(widget.root).to_have_attribute("dir", "rtl")
    expect(widget.expiry).to_have_css("text-align", "right")


def test_a_form_in_a_tab_that_opens_later_stands_and_pays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Built in a hidden tab: fields and sizes are right when it is shown."""
    host = Host(css="[hidden] { display: none }", body=f'<section id="tab" hidden>{WIDGET}</section>')
    widget = open_widget(390, 900).open(show(shop_site, site, api, host))
    expect(widget.pay).to_be_hidden()
    widget.page.evaluate("document.getElementById('tab').hidden = false; 0")
    widget.page.get_by_role("radio").first.check()
    expect(widget.number).to_be_visible()
    widget.fill().press()
    widget.lands()


MOUNT = """([source, brands]) => {
  document.querySelector("main").innerHTML = `<form action="/result?order=7" class="paymentWidgets" data-brands="${brands}"></form>`;
  const script = Object.assign(document.createElement("script"), { src: source });
  document.body.append(script);
}"""  # noqa: E501
LEFT = """() => ({
  frames: document.querySelectorAll("iframe").length, sheets: document.adoptedStyleSheets.length,
  parts: document.querySelectorAll("[class*=wpwl]").length, published: "wpwl" in window,
})"""


def test_a_page_of_one_address_mounts_and_unmounts_it_often(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A single-page shop: each visit of its till has another checkout; nothing of the ones before is left."""
    widget = open_widget(390, 900).open(show(shop_site, site, api, Host()))
    for _ in range(3):
        widget.page.evaluate("wpwl.unload(); document.querySelector('main').innerHTML = '<h1>Cart</h1>'; 0")
        assert widget.page.evaluate(LEFT) == {"frames": 0, "sheets": 0, "parts": 0, "published": False}
        last = checkout(api)
        widget.page.evaluate(MOUNT, [f"{site}/v1/paymentWidgets.js?checkoutId={last}", BRANDS])
        expect(widget.page.locator(".wpwl-widget")).to_have_count(1)
        widget.ready()
        expect(widget.page.locator(".wpwl-widget")).to_have_count(1)
    widget.page.get_by_role("radio").first.check()
    widget.fill().press()
    assert last in widget.lands()
    assert Payment.objects.count() == 1
    assert widget.faults == []


def test_a_till_that_forgets_to_unload_still_pays_the_checkout_it_shows(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The page threw the form away with its container and put another there."""
    widget = open_widget(390, 900).open(show(shop_site, site, api, Host()))
    last = checkout(api)
    widget.page.evaluate(MOUNT, [f"{site}/v1/paymentWidgets.js?checkoutId={last}", BRANDS])
    expect(widget.page.locator(".wpwl-widget")).to_have_count(1)
    widget.ready()
    widget.page.get_by_role("radio").first.check()
    widget.fill().press()
    assert last in widget.lands()


def test_on_a_slow_line_the_form_keeps_its_place_and_pays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """50 kB a second and 400 ms of way: the skeleton stands first, and nothing jumps when the words come."""
    widget = open_widget(390, 900)
    network = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
    widget.page.context.new_cdp_session(widget.page).send("Network.emulateNetworkConditions", network)
    widget.page.add_init_script(
        "window.shifts = [];"
        "new PerformanceObserver((list) => shifts.push(...list.getEntries().map((one) => one.value)))"
        ".observe({ type: 'layout-shift', buffered: true })"
    )
    url = shop_site.widget(site, checkout(api), brands="VISA MASTER")
    widget.page.goto(url, wait_until="commit")
    expect(widget.root).to_have_class(re.compile("wpwl-waiting"))
    widget.ready()
    assert sum(widget.page.evaluate("shifts")) < 0.1
    widget.fill().press()
    widget.lands()
