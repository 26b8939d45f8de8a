"""Shops with our plug-ins, in a real browser: a shopper buys in the shop's own pages, pays on ours, and is led back.

What the plug-ins make of every other outcome is tried without a browser (tests/plugins).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from gateway.models import Payment
from tests.browser.conftest import picture
from tests.browser.widget import DECLINED_AT_THE_BANK, Widget
from tests.plugins.installing import install_here
from tests.plugins.test_django_payments import open_till
from tests.plugins.test_pretix import EVENT, install_pretix, sell_tickets
from tests.support.fixtures import Shop

Open = Callable[..., Widget]


@pytest.mark.django_db(transaction=True)
@pytest.mark.xdist_group("browser-2")
def test_an_order_of_django_payments_is_paid_after_a_decline(
    site: str, committed: Shop, open_widget: Open, tmp_path: Path
) -> None:
    python = install_here(tmp_path, "django-payments")
    with open_till(python, tmp_path, site, committed) as till:
        order = till.order(billing_first_name="Jane", billing_last_name="Jones")
        widget = open_widget(390, 844)
        widget.page.goto(f"{till.server.url}/orders/{order}/pay")
        widget.ready().fill(DECLINED_AT_THE_BANK).press()
        expect(widget.page.get_by_text("You were not charged").first).to_be_visible()
        widget.emptied().fill().press()
        widget.page.wait_for_url(f"{till.server.url}/thanks/{order}")
        assert till.look(order)["status"] == "confirmed"
    assert sorted(Payment.objects.values_list("status", flat=True)) == ["APPROVED", "DECLINED"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.xdist_group("pretix")
def test_an_order_of_pretix_is_paid_by_its_own_pages(
    site: str, committed: Shop, open_widget: Open, tmp_path: Path
) -> None:
    """The order's page, its button, the payment page, and the order's page again: it says that it is paid."""
    python = install_pretix(tmp_path)
    with sell_tickets(python, tmp_path, site, committed) as tickets:
        order = tickets.orders.pop()
        widget = open_widget(390, 844)
        page = widget.page
        page.goto(f"{tickets.server.url}{EVENT}/order/{order['code']}/{order['secret']}/")
        picture(page, "pretix-order")
        page.locator("a[href*='/pay/']").first.click()
        picture(page, "pretix-choice")
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Pay now").click()
        page.wait_for_url(f"{site}/pay/**")
        widget.ready().fill().press()
        page.wait_for_url(f"{tickets.server.url}{EVENT}/order/{order['code']}/{order['secret']}/?paid=yes")
        picture(page, "pretix-paid")
        found = tickets.ask(f"{order['code']}/")
        assert (found["status"], found["payments"][-1]["state"]) == ("p", "confirmed")
    assert Payment.objects.get().amount == 92
