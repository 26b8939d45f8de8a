"""Hostile pages in a browser: they frame our pages, forge messages, redirect our frames, and put markup in names.

Source: docs/security.md, Who might attack.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Dialog, Route, expect

from gateway.models import Division, Merchant, Payment, Psp
from tests.browser.patience import in_no_hurry, until
from tests.browser.widget import Widget, checkout
from tests.support.fixtures import Shop, open_shop
from tests.support.shopfront import WIDGET, Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
Open = Callable[..., Widget]
REFUSED = "chrome-error://chromewebdata/"
MARKUP = "<img src=x onerror=alert(1)>{{7*7}}\"'><script>alert(2)</script>"
LISTEN = """() => {
  window.heard = [];
  addEventListener("message", ({ data, origin }) => heard.push([origin, data]));
}"""
FORGE = """([group, origin]) => {
  const words = [
    { t: "leave", n: 1 }, { t: "clear" }, { t: "only", code: "AMEX" }, { t: "describe", error: "Call 555" },
    { t: "post", n: 2, path: "v1/checkouts/00000000000000000000000000000000/payment", fields: {} },
    { t: "answer", n: 1, status: 200, body: { state: "done", returnTo: "https://evil.example/" } },
    { t: "change", valid: true, empty: false, codes: ["VISA"] }, { t: "fill", holder: "Mallory" },
  ];
  const others = Array.from({ length: parent.length }, (_, at) => parent[at]).filter((one) => one !== self);
  for (const window of [parent, ...others]) {
    for (const word of words) window.postMessage({ tollhouse: group, ...word }, "*");
    window.postMessage({ source: "tollhouse", event: "ended", id: "0" }, "*");
  }
}"""


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


def test_no_page_of_ours_stands_in_a_frame_of_another_site(
    shop: Shop, site: str, shop_site: Shopfront, chromium: Browser
) -> None:
    """Clickjacking: only the hosted fields are framed, and only by the page that their address names."""
    page = in_no_hurry(chromium.new_context()).new_page()
    sent = {"amount": "9.00", "currency": "EUR", "paymentType": "DB", "paymentPage": "true"}
    hosted = str(shop.api.post("/v1/checkouts", sent).body["paymentPage"])
    fields = f"{site}/v1/widget/frame.html?parent=https%3A%2F%2Fother.example"
    addresses = (f"{site}/admin/login/", hosted, fields, f"{site}/docs/", f"{site}/demo/", f"{site}/testdata")
    frames = "".join(f'<iframe src="{address}"></iframe>' for address in addresses)
    page.goto(shop_site.show("/frames", f"<!doctype html><title>Win</title>{frames}", ""))
    assert until(page, lambda: [frame.url for frame in page.frames[1:]] == [REFUSED] * len(addresses))
    page.context.close()


def test_a_frame_beside_the_form_changes_nothing_by_messages(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """An advertisement of another origin, which has even learned the name of the pair of frames."""
    sent = checkout(shop.api)
    body = WIDGET + '<iframe id="ad" src="https://ad.example/"></iframe>'
    widget = open_widget()
    widget.page.route(
        "https://ad.example/**", lambda route: route.fulfill(body="<title>Ad</title>", content_type="text/html")
    )
    widget.open(shop_site.widget(site, sent, body=body, csp="")).fill()
    widget.page.evaluate(LISTEN)
    name = str(widget.page.locator(".wpwl-frame").first.get_attribute("src")).rpartition(".")[2]
    advertisement = next(frame for frame in widget.page.frames if frame.url.startswith("https://ad."))
    advertisement.evaluate(FORGE, [name, site])
    widget.heard()
    expect(widget.number).to_have_value("4200 0000 0000 0000")
    expect(widget.hint("cardNumber")).to_be_hidden()
    expect(widget.page.locator(".wpwl-control-cardHolder")).to_have_value("")
    assert not Payment.objects.exists()
    assert not [
        one for one in widget.page.evaluate("heard") if one[0] == site and one[1].get("t") in ("left", "answer")
    ]
    widget.press()
    widget.lands()


def test_a_hosted_field_that_is_led_elsewhere_is_told_nothing_and_believed_nothing(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    widget, asked = open_widget(), list[str]()

    def answer(route: Route) -> None:
        asked.append(route.request.method)
        told = "<script>onmessage = ({ data }) => (document.title += JSON.stringify(data))</script>"
        route.fulfill(body=f"<title></title>{told}", content_type="text/html")

    widget.page.route("https://evil.example/**", answer)
    widget.open(shop_site.widget(site, checkout(shop.api), csp="")).fill()
    widget.page.evaluate("document.querySelector('.wpwl-frame').src = 'https://evil.example/'")
    expect(widget.page.frame_locator(".wpwl-frame >> nth=0").locator("title")).to_have_count(1)
    led = next(frame for frame in widget.page.frames if frame.url.startswith("https://evil."))
    name = str(widget.page.locator(".wpwl-frame").nth(1).get_attribute("src")).rpartition(".")[2]
    led.evaluate(FORGE, [name, site])
    widget.pay.click()
    expect(widget.hint("cardNumber")).to_have_count(1)
    widget.page.wait_for_timeout(2500)  # the form waits so long for a field that says nothing
    assert led.title() == ""
    assert not Payment.objects.exists()
    assert asked == ["GET"]


def test_markup_in_names_is_text(shop: Shop, site: str, open_widget: Open) -> None:
    """Of the merchant, of its goods and of its link, on the payment page."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(name=MARKUP)
    sent = {
        "amount": "9.00", "currency": "EUR", "paymentType": "DB", "paymentPage": "true",
        "cart.items[0].name": MARKUP, "cart.items[0].quantity": "1", "cart.items[0].price": "9.00",
        "merchantTransactionId": MARKUP,
    }  # fmt: skip
    answer = shop.api.post("/v1/checkouts", sent)
    assert answer.status == 200, answer
    widget = open_widget()
    alerts: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        alerts.append(dialog.message)
        dialog.dismiss()

    widget.page.on("dialog", dismiss)
    widget.open(str(answer.body["paymentPage"]))
    assert widget.page.locator("main").inner_text().count("<img src=x onerror=alert(1)>") >= 1
    assert widget.page.locator("img[src=x]").count() == 0
    assert not alerts
