"""Pages that name an older build's hash: it is served for ever, and pays against the gateway as it is now.

Source: Part A, What the service does, 10; issue: old builds still served by hash.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from checkout.widget.build import SECOND_SCRIPT_START, WIDGET_BUILDS_DIR
from gateway.models import Division, Psp
from tests.browser.widget import Widget, checkout, result
from tests.support.fixtures import open_shop
from tests.support.shopfront import Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

RELEASES = sorted(
    path.stem for path in WIDGET_BUILDS_DIR.glob("*.js") if not path.read_text().startswith(SECOND_SCRIPT_START)
)
"""A second script is kept there too: the first one that was served with it loads it."""


def test_there_is_a_release() -> None:
    assert RELEASES


@pytest.mark.parametrize("digest", RELEASES, ids=lambda digest: digest[:12])
def test_a_page_with_an_older_hash_still_pays(
    transactional_db: None, site: str, shop_site: Shopfront, open_widget: Callable[..., Widget], digest: str
) -> None:
    """The integrity attribute holds, the form stands, a card and a stored one pay."""
    api = open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop").api
    integrity = f"sha384-{base64.b64encode(bytes.fromhex(digest)).decode()}"
    shopper = {"customer.merchantCustomerId": "17"}

    def page(checkout_id: str) -> str:
        url = shop_site.widget(site, checkout_id, integrity=integrity)
        html, csp = shop_site.pages["/pay"]
        shop_site.show("/pay", html.replace("/paymentWidgets.js", f"/paymentWidgets/{digest}.js"), csp)
        return url

    first = checkout(api, **shopper)
    widget = open_widget(390, 844).open(page(first)).fill()
    widget.page.get_by_label("Save this card for next time").check()
    widget.press()
    widget.lands()
    stored = result(api, first).body["registrationId"]
    second = checkout(api, **shopper, **{"registrations[0].id": stored})
    widget.open(page(second))
    widget.page.locator(".wpwl-form-registrations .wpwl-button-pay").click()
    widget.lands()
    assert result(api, second).code == "000.100.110"
    assert not widget.faults
