"""Everybody can pay: axe finds no serious fault in any language and state; narrow, zoomed, dark, touched, still.

Source: decisions, section 7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from gateway.core.languages import LANGUAGE_CODES
from gateway.models import Division, Psp
from tests.browser.conftest import picture
from tests.browser.widget import Widget, checkout, held, let_go
from tests.support.client import Api
from tests.support.fixtures import open_shop
from tests.support.shopfront import Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]

Open = Callable[..., Widget]
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
ALL = "VISA MASTER AMEX DIRECTDEBIT_SEPA VIRTUALACCOUNT ONLINETRANSFER WALLET2"
TOUCH_PX = 44
# axe needs the page's own script to run; the policy under test is another test's matter.
OPEN_POLICY = ""
ARRIVED = """() => Promise.allSettled(document.getAnimations()
  .filter((one) => Number.isFinite(one.effect.getComputedTiming().endTime)).map((one) => one.finished))"""


@pytest.fixture
def api(transactional_db: None) -> Api:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop").api


def serious(page: Page) -> list[str]:
    """What axe calls serious or critical, frames included; colours on their way to others have arrived."""
    page.evaluate(ARRIVED)
    found = Axe().run(page, options=RULES)
    return [
        f"{one['id']}: {json.dumps([node['target'] for node in one['nodes']])[:300]}"
        for one in found.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("locale", LANGUAGE_CODES)
def test_every_language_is_drawn_for_everybody(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, locale: str
) -> None:
    """A8.8, A8.10: the form and its errors, on a phone of 320 px; Arabic from right to left, its numbers from left."""
    url = shop_site.widget(site, checkout(api), options={"locale": locale}, csp=OPEN_POLICY)
    widget = open_widget(320, 800).open(url)
    page = widget.page
    assert widget.root.get_attribute("dir") == ("rtl" if locale == "ar" else "ltr")
    widget.number.fill("4200000000000001")
    widget.press()
    expect(widget.hint("expiry")).to_be_visible()
    assert serious(page) == []
    assert overflow(page) <= 0
    expect(widget.number).to_have_css("direction", "ltr")
    picture(page, f"language-{locale}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rows_of_ways_to_pay(api: Api, site: str, shop_site: Shopfront, open_widget: Open, scheme: str) -> None:
    """Every row opened in turn, on light and dark pages."""
    head = '<meta name="color-scheme" content="light dark">'
    url = shop_site.widget(site, checkout(api), brands=ALL, head=head, csp=OPEN_POLICY)
    widget = open_widget(390, 900, color_scheme=scheme).open(url)
    page = widget.page
    expect(widget.root).to_have_class(re.compile("wpwl-dark" if scheme == "dark" else "wpwl-widget"))
    for row in page.get_by_role("radio").all():
        row.check()
        assert serious(page) == [], row
    picture(page, f"rows-{scheme}")
    page.locator(".wpwl-form-WALLET2 .wpwl-button-pay").click()
    expect(page.locator(".wpwl-sheet-wallet")).to_be_visible()
    assert serious(page) == []
    picture(page, f"sheet-{scheme}")


def test_dark_card_form(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The frames follow the scheme of the form."""
    head = '<meta name="color-scheme" content="light dark">'
    url = shop_site.widget(site, checkout(api), head=head, csp=OPEN_POLICY)
    widget = open_widget(390, 800, color_scheme="dark").open(url)
    widget.number.fill("4200000000000001")
    widget.press()
    expect(widget.hint("expiry")).to_be_visible()
    assert serious(widget.page) == []
    expect(widget.number).to_have_css("color", "rgb(238, 242, 248)")
    picture(widget.page, "dark-errors")
    widget.page.emulate_media(color_scheme="light")
    expect(widget.number).to_have_css("color", "rgb(16, 24, 40)")


def test_targets_are_large_enough(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """44 px for everything that is tapped."""
    widget = open_widget(320, 900).open(shop_site.widget(site, checkout(api), brands=ALL))
    for target in widget.page.locator(".wpwl-button:visible, .wpwl-method:visible, .wpwl-control:visible").all():
        box = target.bounding_box()
        assert box, target
        assert box["height"] >= TOUCH_PX, (target, box)


def test_four_hundred_per_cent(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A window of 1280 px at 400 % is one of 320 × 256: nothing is cut off, the whole flow works."""
    widget = open_widget(320, 256).open(shop_site.widget(site, checkout(api), options={"locale": "de"}))
    assert overflow(widget.page) <= 0
    widget.fill()
    widget.press()
    widget.lands()


def test_who_wants_no_motion_gets_none(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """prefers-reduced-motion."""
    widget = open_widget(390, 800, reduced_motion="reduce").open(shop_site.widget(site, checkout(api)))
    expect(widget.expiry).to_have_css("transition-property", "none")


def test_expired_and_loading_states(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The skeleton is announced as busy; the end is readable."""
    widget = open_widget(390, 800)
    waiting = held(widget, "/config")
    widget.page.goto(shop_site.widget(site, checkout(api), csp=OPEN_POLICY))
    expect(widget.root).to_have_attribute("aria-busy", "true")
    let_go(widget, waiting)
    widget.ready()
    expect(widget.root).not_to_have_attribute("aria-busy", "true")
    widget.page.unroute_all()
    widget.open(shop_site.widget(site, "0" * 32 + "-node01", csp=OPEN_POLICY))
    expect(widget.page.locator(".wpwl-end")).to_be_visible()
    expect(widget.page.locator(".wpwl-button-pay")).to_have_count(0)
    assert serious(widget.page) == []
    picture(widget.page, "expired")


@pytest.mark.parametrize(
    "asked,locale,lang", [("da-DK", "dk", "da"), ("zh_Hans_CN", "cn", "zh"), ("nb", "no", "nb"), ("xx", "en", "en")]
)
def test_iso_codes_are_understood(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, asked: str, locale: str, lang: str
) -> None:
    """decisions, section 7: the lang attribute carries ISO."""
    widget = open_widget().open(shop_site.widget(site, checkout(api), options={"locale": asked}))
    assert widget.root.get_attribute("lang") == lang
