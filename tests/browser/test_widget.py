"""The widget on a merchant's page of another origin, under the spec's policy: pays, is declined, is challenged, stores.

Source: Part A, What the service does, 8 and 10; decisions, section 7; journeys J2, J8.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Division, Payment, Psp, Status
from tests.browser.conftest import picture
from tests.browser.widget import GOOD, Widget, checkout, result
from tests.support.client import Api
from tests.support.fixtures import Shop, open_shop
from tests.support.shopfront import Shopfront, policy
from tests.support.threeds import CODE, PASS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
DECLINED = "4000000000000002"


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "The Corner Bookshop")


@pytest.fixture
def api(shop: Shop) -> Api:
    return shop.api


def test_a_page_with_integrity_and_the_strict_policy_pays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.2, A8.13, A8.23-27, A10.4: the amount on the button is the checkout's; the shop's address gets id and path."""
    answer = api.post("/v1/checkouts", {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "integrity": "true"})
    widget = open_widget()
    widget.open(shop_site.widget(site, answer.id, integrity=answer.body["integrity"]))
    expect(widget.pay).to_have_text(re.compile("€92.00"))
    widget.fill()
    widget.pay.click()
    url = widget.lands()
    assert f"resourcePath=%2Fv1%2Fcheckouts%2F{answer.id}%2Fpayment" in url
    assert not widget.faults
    assert result(api, answer.id).code == "000.100.110"
    assert Payment.objects.get().amount == 92
