"""Many payments at once in a real browser: picking, a dry run, confirming; and the list's columns and views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from django.test import override_settings
from playwright.sync_api import Page, expect

from gateway.background import queue
from gateway.models import Division, Payment, Psp
from tests.browser.conftest import picture
from tests.browser.patience import follow, resize
from tests.browser.test_clerks import fits, serious, sign_in, somebody
from tests.support.fixtures import Shop, open_shop

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Open = Callable[..., Page]


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


def test_two_payments_are_picked_looked_at_and_refunded(shop: Shop, site: str, open_page: Open, tmp_path: Path) -> None:
    """From a list that was put in order to a refund of each; the third is left as it is."""
    somebody("clara", "clerk", shop)
    for amount in ("10.00", "20.00", "30.00"):
        shop.api.pay(amount=amount, customer__givenName="Jane", customer__surname="Jones")
    page = open_page()

    def look(name: str) -> None:
        assert serious(page) == [], name
        picture(page, f"many-{name}-1280")
        resize(page, 390, 844)
        assert fits(page), name
        picture(page, f"many-{name}-390")
        resize(page, 1280, 800)

    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        sign_in(page, site, "clara")
        page.goto(f"{site}/admin/gateway/payment/?cols=when,amount,state,shopper&order=-amount")
        boxes = page.locator("tbody input[name=pick]")
        expect(boxes).to_have_count(3)
        refund = page.get_by_role("button", name="Refund…")
        expect(refund).to_be_disabled()
        expect(page.get_by_text("Select payments in the list first")).to_be_visible()
        page.get_by_label("all of this list").check()
        expect(refund).to_be_enabled()
        boxes.nth(0).check()
        boxes.nth(1).check()
        boxes.nth(1).uncheck()
        boxes.nth(0).uncheck()
        expect(refund).to_be_disabled()
        boxes.nth(0).check()
        boxes.nth(1).check()
        expect(page.get_by_text("Select payments in the list first")).to_be_hidden()
        expect(page.locator("[data-picked]")).to_be_checked()
        page.get_by_text("Views", exact=True).click()
        page.get_by_text("Columns", exact=True).click()
        look("list")
        page.select_option("#many-reason", "requested")
        refund.click()
        expect(page.get_by_text("nothing is sent", exact=False).first).to_be_visible()
        queue.run_background_work()
        page.reload()
        expect(page.get_by_role("button", name="Confirm and send")).to_be_visible()
        look("dry-run")
        assert Payment.objects.filter(payment_type="RF").count() == 0
        page.get_by_role("button", name="Confirm and send").click()
        queue.run_background_work()
        page.reload()
        look("done")
    made = Payment.objects.filter(payment_type="RF").order_by("amount").values_list("amount", flat=True)
    assert [f"{amount}" for amount in made] == ["20.00", "30.00"]


def test_captures_of_many_payments_are_taken_back(shop: Shop, site: str, open_page: Open, tmp_path: Path) -> None:
    """All of a list is captured, and taken back after a dry run of its own. The simulator ends the reservation, too."""
    somebody("clara", "clerk", shop)
    held = [
        shop.api.pay(paymentType="PA", amount=amount, merchantTransactionId="fair-2026").id
        for amount in ("10.00", "20.00")
    ]
    page = open_page()

    def confirm() -> None:
        queue.run_background_work()
        page.reload()
        follow(page, page.get_by_role("button", name="Confirm and send"))
        queue.run_background_work()
        page.reload()

    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        sign_in(page, site, "clara")
        page.goto(f"{site}/admin/gateway/payment/")
        page.get_by_label("all of this list").check()
        follow(page, page.get_by_role("button", name="Capture…"))
        confirm()
        assert Payment.objects.filter(payment_type="CP", status="APPROVED").count() == 2
        follow(page, page.get_by_role("button", name="Take it back (dry run first)"))
        expect(page.get_by_role("link", name="It takes back what this did")).to_be_visible()
        confirm()
    expect(page.locator("[data-rows] tbody tr", has_text="accepted").filter(has_text="fair-2026")).to_have_count(2)
    picture(page, "many-taken-back")
    expect(page.get_by_role("button", name="Take it back (dry run first)")).to_have_count(0)
    for ident in held:
        page.goto(f"{site}/admin/gateway/payment/{UUID(ident)}/change/")
        expect(page.locator(".ck-head .ck-pill").first).to_have_text("Voided")
