"""A card grants a part of the amount: the form tells what is held, and the shopper pays the rest or has it given back.

Source: docs/decisions/0129; docs/approval.md.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from gateway.models import Channel, Payment, Status
from tests.browser.conftest import picture
from tests.browser.patience import PATIENCE_MS, until
from tests.browser.widget import GOOD, Widget, checkout, result
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.shopfront import Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
HALF = "4000050000000007"
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
