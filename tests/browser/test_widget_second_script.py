"""The widget's second script: loaded by its hash when a page wants more than a card form; what happens without it.

Source: goal P12; docs/decisions/0063.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from gateway.models import Division, Psp
from tests.browser.patience import until
from tests.browser.widget import Widget, checkout, result
from tests.support.fixtures import Shop, open_shop
from tests.support.shopfront import NONCE, Shopfront
from tests.support.threeds import CODE, PASS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
SECOND = re.compile(r"/v1/paymentWidgets/[0-9a-f]{96}\.js$")


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


def requests_of(widget: Widget) -> list[str]:
    found: list[str] = []
    widget.page.on("request", lambda request: found.append(request.url))
    return found


def test_a_card_form_needs_three_requests_and_pays_without_the_second_script(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """P12: script, configuration, hosted fields; none more until the card is paid."""
    checkout_id = checkout(shop.api)
    widget = open_widget()
    asked = requests_of(widget)
    widget.open(shop_site.widget(site, checkout_id)).fill()
    assert len({url.partition("?")[0] for url in asked if url.startswith(site)}) == 3, asked
    widget.press()
    widget.lands()
    assert not [url for url in asked if SECOND.search(url)]
    assert result(shop.api, checkout_id).code == "000.100.110"
    assert not widget.faults


def test_it_carries_the_page_s_nonce(shop: Shop, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A policy that names no host, but a nonce for every script, lets it in; its hash is checked by the browser."""
    csp = (
        f"default-src 'none'; script-src 'nonce-{NONCE}'; style-src {site}; frame-src {site}; connect-src {site}; "
        f"img-src {site}"
    )
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout(shop.api), brands="VISA VIRTUALACCOUNT", csp=csp))
    expect(widget.page.locator(".wpwl-form-virtualAccount")).to_have_count(1)
    assert not widget.faults


def test_one_that_was_changed_on_the_way_does_not_run(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The integrity attribute of the page's script speaks for the second one as well."""
    widget = open_widget()
    widget.page.route(
        SECOND,
        lambda route: route.fulfill(
            body="window.skimmed = true",
            content_type="application/javascript",
            headers={"Access-Control-Allow-Origin": "*"},
        ),
    )
    widget.page.goto(shop_site.widget(site, checkout(shop.api), brands="VISA VIRTUALACCOUNT"))
    expect(widget.page.locator(".wpwl-end-error")).to_contain_text("could not be loaded")
    assert widget.page.evaluate("window.skimmed") is None


def test_without_it_the_form_says_so_and_tries_again(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """As where the configuration does not come."""
    widget = open_widget()
    widget.page.route(SECOND, lambda route: route.abort())
    widget.page.goto(shop_site.widget(site, checkout(shop.api), brands="VISA VIRTUALACCOUNT"))
    expect(widget.page.locator(".wpwl-end-error")).to_contain_text("could not be loaded")
    assert widget.says("paymentWidgets/", "did not load")
    widget.page.unroute(SECOND)
    widget.page.get_by_role("button", name="Try again").click()
    widget.ready()
    expect(widget.page.locator(".wpwl-form-virtualAccount")).to_have_count(1)


def test_buttons_before_a_checkout_say_so_too(shop: Shop, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """Fast checkout is all in the second script."""
    widget = open_widget()
    widget.page.route(SECOND, lambda route: route.abort())
    code = f"window.widgetOptions.createCheckout = () => '{checkout(shop.api)}';"
    widget.page.goto(shop_site.widget(site, "", brands="WALLET2", code=code))
    expect(widget.page.locator(".wpwl-end-error")).to_contain_text("could not be loaded")
    widget.page.unroute(SECOND)
    widget.page.get_by_role("button", name="Try again").click()
    expect(widget.page.locator(".wpwl-wallet-WALLET2")).to_be_visible()


def test_a_challenge_without_it_takes_the_whole_page(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The payment has begun: the shopper is led to the bank all the same, and from there to the shop."""
    api = shop.api_of(shop.open_channel("authenticating", three_d_secure=True))
    address = {f"billing.{name}": text for name, text in {"street1": "Main St 1", "city": "London"}.items()}
    address |= {"billing.postcode": "W1A1AA", "billing.country": "GB"}
    checkout_id = checkout(api, **address)
    widget = open_widget()
    widget.page.route(SECOND, lambda route: route.abort())
    widget.open(shop_site.widget(site, checkout_id)).fill(PASS)
    widget.press()
    until(widget.page, lambda: widget.page.url.startswith(site))
    widget.page.get_by_label("Code", exact=True).fill(CODE)
    widget.page.get_by_role("button", name="Confirm").click()
    widget.lands()
    assert result(api, checkout_id).code == "000.100.110"
