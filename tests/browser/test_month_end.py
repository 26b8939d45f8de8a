"""Month end in a real browser: one person finds what keeps the balance from zero and prepares, another signs."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import override_settings
from playwright.sync_api import Page, expect

from gateway.background import queue
from gateway.core import clock
from gateway.models import Division, Psp
from reporting.models import MonthClosing
from tests.browser.conftest import picture
from tests.browser.patience import follow, resize
from tests.browser.test_clerks import PASSWORD, fits, serious, sign_in, somebody
from tests.support.clock import jump
from tests.support.fixtures import Shop, open_shop
from tests.support.settlement import csv, institute, line, payment_of, take_in

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Open = Callable[..., Page]
TILL_THE_MONTH_IS_OVER_S = 40 * 86_400


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


def test_a_month_is_closed_by_two_people(shop: Shop, site: str, open_page: Open, tmp_path: Path) -> None:
    """J11: from a balance that is not 0.00, along the links, to a signed month and its files."""
    somebody("fina", "clerk", shop)
    somebody("max", "manager", shop)
    of = institute()
    paid = [payment_of(shop.api.pay(amount=amount).id) for amount in ("92.00", "50.00")]
    today = f"{clock.real_now():%Y-%m-%d}"
    unknown = {"ClearingInstituteMerchantId": shop.channel.pk.hex, "ConnectorTxId1": "unknown-1", "Amount": "7.77"}
    rows = [line(paid[0], SettlementFee="1.50", SettlementAmount="90.50"), line(paid[1])]
    take_in(csv([*rows, line(**unknown, SettlementDate=today)]), of, "november.csv")
    jump(TILL_THE_MONTH_IS_OVER_S)
    clerk, manager = open_page(), open_page()

    def look(page: Page, name: str) -> None:
        assert serious(page) == [], name
        picture(page, f"month-{name}-1280")
        resize(page, 390, 844)
        assert fits(page), name
        picture(page, f"month-{name}-390")
        resize(page, 1280, 800)

    month = f"{site}/admin/reporting/monthclosing/month/{shop.merchant.pk.hex}/{today[:7]}/"
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        sign_in(clerk, site, "fina")
        clerk.goto(f"{site}/admin/reporting/monthclosing/?month={today[:7]}")
        look(clerk, "list")
        follow(clerk, clerk.locator("tbody a", has_text="Shop"))
        expect(clerk.get_by_role("link", name="7.77", exact=True)).to_be_visible()
        look(clerk, "open")
        # The path to what keeps the balance from 0.00.
        follow(clerk, clerk.get_by_role("link", name="Lines without exactly one payment: 1"))
        look(clerk, "lines")
        follow(clerk, clerk.locator("tbody a").first)
        clerk.get_by_label("Why is no payment to be looked for?").fill("a terminal that is not ours")
        follow(clerk, clerk.get_by_role("button", name="Mark it"))
        clerk.goto(month)
        expect(clerk.get_by_text("Every line has its payment, and every payment its line.")).to_be_visible()
        clerk.get_by_label("Note (optional)").fill("all there")
        follow(clerk, clerk.get_by_role("button", name="Prepare the closing"))
        expect(clerk.get_by_role("button", name="Sign and close the month")).to_have_count(0)
        follow(clerk, clerk.get_by_role("button", name="Make the month's files (ZIP)"))
        queue.run_background_work(None)
        clerk.reload()
        with clerk.expect_download() as download:
            clerk.locator("a.ck-button.primary").click()
        assert any(name.endswith(".xlsx") for name in zipfile.ZipFile(download.value.path()).namelist())
        sign_in(manager, site, "max")
        manager.goto(month)
        look(manager, "prepared")
        follow(manager, manager.get_by_role("button", name="Sign and close the month"))
        if manager.get_by_label("Password").count():
            manager.get_by_label("Password").fill(PASSWORD)
            follow(manager, manager.get_by_role("button", name="Confirm"))
            follow(manager, manager.get_by_role("button", name="Sign and close the month"))
    expect(manager.locator(".ck-pill.good", has_text="closed").first).to_be_visible()
    look(manager, "signed")
    row = MonthClosing.objects.get()
    assert (row.state, row.prepared_by_name, row.signed_by_name) == ("SIGNED", "fina", "max")
