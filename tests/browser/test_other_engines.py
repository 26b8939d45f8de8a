"""The form in Firefox and in WebKit, the engine of Safari, Debian's own builds: drawn, readable, and paid as in
Chromium.

Each is skipped where it is not installed (apt-get install firefox-esr; webkit2gtk-driver xvfb).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.models import Division, Payment, Psp, Registration
from tests.browser.test_host_pages import HOSTS, Host, show
from tests.browser.test_widget_means import store
from tests.browser.test_widget_page import CONTRAST
from tests.browser.widget import DECLINED_AT_THE_BANK, GOOD, checkout, result
from tests.support.client import Api
from tests.support.driven_browser import DrivenBrowser, Installed
from tests.support.fixtures import Shop, open_shop
from tests.support.marionette import INSTALLED as FIREFOX
from tests.support.marionette import Firefox
from tests.support.shopfront import NONCE, WIDGET, Shopfront
from tests.support.threeds import CODE, PASS
from tests.support.webkit import INSTALLED as WEBKIT

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("browser"),
]

NUMBER, CVV = ".wpwl-control-cardNumber iframe", ".wpwl-control-cvv iframe"
PAY = ".wpwl-form-card .wpwl-button-pay"
READY = "return document.querySelector('.wpwl-widget') && !document.querySelector('.wpwl-waiting, .wpwl-loading')"
FREE = f"return document.querySelector('{PAY}').getAttribute('aria-disabled') === 'false'"


@dataclass(frozen=True, slots=True)
class Open:
    """A browser that runs, its name and its profile."""

    name: str
    profile: Path
    window: DrivenBrowser


@pytest.fixture(scope="module", params=[FIREFOX, WEBKIT], ids=lambda installed: installed.name)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    installed: Installed = request.param
    if not installed.present:
        pytest.skip(installed.missing)
    profile = tmp_path_factory.mktemp(installed.name)
    with installed.start(profile) as window:
        yield Open(installed.name, profile, window)


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


@pytest.fixture
def api(shop: Shop) -> Api:
    return shop.api


def go(opened: Open, url: str, name: str = "") -> DrivenBrowser:
    browser = opened.window
    browser.open(url)
    browser.wait_for(READY)
    if name and (folder := os.environ.get("SCREENSHOTS")):
        browser.picture(Path(folder) / f"{opened.name}-{name}.png")
    return browser


def fill(browser: DrivenBrowser, number: str = GOOD) -> None:
    browser.type("#field", number, frame=NUMBER)
    browser.type(".wpwl-control-expiry", "0534")
    browser.type("#field", "123", frame=CVV)


def come_back(browser: DrivenBrowser) -> None:
    """The form is back and says so: by then its security code has been told to empty itself."""
    browser.wait_for("return document.querySelector('.wpwl-note')?.textContent.includes('You were not charged')")
    browser.wait_for(FREE)


def test_firefox_takes_a_port_itself(opened: Open) -> None:
    """One chosen for it beforehand may be taken by another test before Firefox listens."""
    if not isinstance(opened.window, Firefox):
        pytest.skip("WebKit's driver is given its port")
    profile = opened.profile
    assert 'user_pref("marionette.port", 0);' in (profile / "user.js").read_text(encoding="utf-8")
    port = int((profile / "MarionetteActivePort").read_text(encoding="ascii"))
    assert opened.window.line.getpeername()[1] == port


def lands(browser: DrivenBrowser) -> None:
    browser.wait_for("return location.pathname === '/result' && location.search.includes('resourcePath')")


@pytest.mark.parametrize("name", ["tailwindcss-4", "bootstrap-5", "old-shop", "right-to-left", "dark", "narrow-column"])
def test_the_form_is_readable_and_pays_in_other_engines(
    opened: Open, api: Api, site: str, shop_site: Shopfront, name: str
) -> None:
    """Pages of others under a policy without 'unsafe-inline'."""
    browser = go(opened, show(shop_site, site, api, HOSTS[name]), name)
    browser.click(".wpwl-method-radio")
    for selector in (".wpwl-label", ".wpwl-method-words > span", PAY, ".wpwl-control-expiry"):
        contrast = browser.run(f"return ({CONTRAST})(document.querySelector(arguments[0]))", selector)
        assert contrast >= 4.5, selector
    assert browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    fill(browser)
    browser.click(PAY)
    lands(browser)
    assert Payment.objects.get().status == "APPROVED"


def test_a_decline_and_another_card_in_other_engines(opened: Open, api: Api, site: str, shop_site: Shopfront) -> None:
    browser = go(opened, show(shop_site, site, api, Host()))
    browser.click(".wpwl-method-radio")
    fill(browser, DECLINED_AT_THE_BANK)
    browser.click(PAY)
    come_back(browser)
    browser.type("#field", GOOD, frame=NUMBER, anew=True)
    browser.type("#field", "123", frame=CVV)
    browser.click(PAY)
    lands(browser)
    assert sorted(Payment.objects.values_list("status", flat=True)) == ["APPROVED", "DECLINED"]


def test_the_banks_page_opens_in_place_in_other_engines(
    opened: Open, shop: Shop, site: str, shop_site: Shopfront
) -> None:
    """Frames of three documents speak to each other; closed, the form is back with the card and without its code."""
    secure = shop.api_of(shop.open_channel("secure", three_d_secure=True))
    address = {"billing.street1": "12 Main Street", "billing.city": "Berlin", "billing.postcode": "10115"}
    browser = go(opened, shop_site.widget(site, checkout(secure, **address, **{"billing.country": "DE"})))
    fill(browser, PASS)
    browser.click(PAY)
    browser.click(".wpwl-sheet-challenge .wpwl-close")
    come_back(browser)
    browser.type("#field", "123", frame=CVV)
    browser.click(PAY)
    browser.enter_frame(browser.find(".wpwl-sheet-frame"))
    browser.wait_for("return document.querySelector('#code')")
    browser.run("document.querySelector('#code').value = arguments[0]", CODE)
    browser.run("document.querySelector('button[value=code]').click()")
    browser.enter_frame(None)
    lands(browser)
    assert Payment.objects.get(status="APPROVED").brand == "VISA"


def test_a_wallets_sheet_pays_in_other_engines(opened: Open, api: Api, site: str, shop_site: Shopfront) -> None:
    browser = go(opened, shop_site.widget(site, checkout(api), brands="WALLET2 VISA"))
    for _ in range(2):
        browser.click(".wpwl-form-WALLET2 .wpwl-button-pay")
        browser.click(".wpwl-sheet-wallet .wpwl-close")
        browser.wait_for("return !document.querySelector('.wpwl-sheet-wallet')")
    browser.click(".wpwl-form-WALLET2 .wpwl-button-pay")
    browser.click(".wpwl-sheet-wallet .wpwl-button-pay")
    lands(browser)
    assert Payment.objects.get().brand == "WALLET2"


def test_an_expired_card_is_renewed_in_other_engines(opened: Open, api: Api, site: str, shop_site: Shopfront) -> None:
    old = Registration.objects.get(pk=store(api))
    old.details["card"] |= {"expiryMonth": "01", "expiryYear": "2024"}
    old.save(update_fields=["details"])
    browser = go(opened, shop_site.widget(site, checkout(api, **{"registrations[0].id": old.id.hex})))
    row = f"#wpwl-container-registration-{old.id.hex}"
    browser.click(f"{row} .wpwl-method-radio")
    browser.type(f"{row} .wpwl-control-expiry", "0842")
    browser.type("#field", "123", frame=f"{row} iframe")
    browser.click(f"{row} .wpwl-button-pay")
    lands(browser)
    old.refresh_from_db()
    assert old.details["card"]["expiryYear"] == "2042"


def test_a_page_changes_the_form_in_other_engines(opened: Open, api: Api, site: str, shop_site: Shopfront) -> None:
    """docs/decisions/0173: its own box and text are sent, and groups that it moves stay what they were."""
    own = f"""<script nonce="{NONCE}">const wpwlOptions = {{
        maskCvv: true,
        onReady() {{
          const box = document.createElement("div");
          document.querySelector(".wpwl-group-cardNumber").before(box);
          box.append(...document.querySelectorAll(".wpwl-group-cvv, .wpwl-group-cardNumber"));
          document.querySelector(".wpwl-wrapper-submit").insertAdjacentHTML("beforebegin", `
            <input name="customParameters[SHOPPER_gift]" value="yes">
            <input type="checkbox" name="createRegistration" checked>`);
        }}
      }}</script>"""
    checkout_id = checkout(api, **{"customer.merchantCustomerId": "17"})
    body = own.replace("{", "{{").replace("}", "}}") + WIDGET
    browser = go(opened, shop_site.widget(site, checkout_id, code="delete window.widgetOptions", body=body))
    assert (
        browser.run("return getComputedStyle(document.querySelector('.wpwl-group-createRegistration')).display")
        == "none"
    )
    browser.enter_frame(browser.find(CVV))
    browser.wait_for("return document.querySelector('#field').placeholder === '•••'")
    assert browser.run("return document.documentElement.className") == "masked"
    browser.enter_frame(None)
    fill(browser)
    browser.click(PAY)
    lands(browser)
    told = result(api, checkout_id).body
    assert told["customParameters"] == {"SHOPPER_gift": "yes"}
    assert "registrationId" in told
