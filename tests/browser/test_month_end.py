"""Month end in a real browser: one person finds what keeps the balance from zero and prepares, another signs."""

from __future__ import annotations

import csv as tables
import hashlib
import io
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest
from django.test import override_settings
from playwright.sync_api import Page, expect
from pypdf import PdfReader

from gateway.background import queue
from gateway.core import clock
from gateway.models import Division, Psp
from reporting.models import ClearingInstitute, MonthClosing, SettlementRecord
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
    """J11: from a balance that is not 0.00, along the links, to a signed month, its files, and its reopening."""
    somebody("fina", "clerk", shop)
    somebody("max", "manager", shop)
    of = institute(expects_files_on=[1, 2, 3, 4, 5, 6, 7])
    today = clock.real_now().date()
    ClearingInstitute.objects.update(created_at=clock.real_now() - timedelta(days=3))
    paid = [payment_of(shop.api.pay(amount=amount).id) for amount in ("92.00", "50.00", "30.00")]
    refund = payment_of(shop.api.follow(paid[1].pk.hex, "RF", "20.00").id)
    account = {"ClearingInstituteMerchantId": shop.channel.pk.hex, "SettlementDate": f"{today}"}
    rows = [
        line(paid[0], SettlementFee="1.50", SettlementAmount="90.50"),
        line(paid[1], SettlementAmount="45.00"),
        line(paid[2]),
        line(refund),
        line(paid[2], ReconciliationType="CHARGEBACK", ReasonCode="000.100.221", SettlementTxId="D-1"),
        line(ReconciliationType="FEE", PaymentType="MONTHLY", Cashflow="NEG", Amount="3.00", **account),
        line(ConnectorTxId1="unknown-1", Amount="7.77", **account),
    ]
    take_in(csv(rows), of, "november.csv")
    jump(TILL_THE_MONTH_IS_OVER_S)
    clerk, manager = open_page(), open_page()

    def look(page: Page, name: str) -> None:
        assert serious(page) == [], name
        picture(page, f"month-{name}-1280")
        resize(page, 390, 844)
        assert fits(page), name
        picture(page, f"month-{name}-390")
        resize(page, 1280, 800)

    month = f"{site}/admin/reporting/monthclosing/month/{shop.merchant.pk.hex}/{today:%Y-%m}/"
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        sign_in(clerk, site, "fina")
        clerk.goto(f"{site}/admin/reporting/monthclosing/?month={today:%Y-%m}")
        look(clerk, "list")
        follow(clerk, clerk.locator("tbody a", has_text="Shop"))
        expect(clerk.get_by_role("link", name="7.77", exact=True)).to_be_visible()
        payouts = clerk.locator("section", has=clerk.get_by_role("heading", name="Payouts EUR"))
        for part, amount in (
            ("Taken from shoppers", "179.77"), ("Refunds and credits", "-20.00"), ("Chargebacks", "-30.00"),
            ("Fees of these lines", "-1.50"), ("Fees charged apart", "-3.00"), ("Held back (reserve)", "-5.00"),
            ("Paid out", "120.27 EUR"),
        ):  # fmt: skip
            figure = payouts.locator("tr", has=clerk.get_by_role("link", name=part, exact=True))
            expect(figure.locator("td").last).to_have_text(amount)
        expect(clerk.get_by_text("1 file with lines of this month")).to_be_visible()
        look(clerk, "open")
        # The path to what keeps the balance from 0.00.
        follow(clerk, clerk.get_by_role("link", name="Lines without exactly one payment: 1"))
        look(clerk, "lines")
        follow(clerk, clerk.locator("tbody a").first)
        clerk.get_by_label("Why is no payment to be looked for?").fill("a terminal that is not ours")
        follow(clerk, clerk.get_by_role("button", name="Mark it"))
        clerk.goto(month)
        follow(clerk, clerk.get_by_role("link", name="Other lines with open findings: 1"))
        follow(clerk, clerk.locator("tbody a").first)
        clerk.get_by_label("How was it dealt with?").fill("5.00 are their reserve, as agreed")
        follow(clerk, clerk.get_by_role("button", name="Close the finding"))
        clerk.goto(month)
        expect(clerk.get_by_text("Every line has its payment, and every payment its line.")).to_be_visible()
        clerk.get_by_label("Note (optional)").fill("all there")
        follow(clerk, clerk.get_by_role("button", name="Prepare the closing"))
        expect(clerk.get_by_role("button", name="Sign and close the month")).to_have_count(0)
        follow(clerk, clerk.get_by_role("button", name="Make the month's files (ZIP)"))
        queue.run_background_work()
        with clerk.expect_download() as download:
            clerk.locator("a.ck-button.primary").click()
        compare_with_the_page(zipfile.ZipFile(download.value.path()))
        sign_in(manager, site, "max")
        manager.goto(f"{site}/admin/gateway/approval/")
        follow(manager, manager.get_by_role("link", name=f"{today:%Y-%m}"))
        assert manager.url == month
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

    # What is closed stays as it is, until it is reopened with a reason.
    record = SettlementRecord.objects.get(tx_id1="unknown-1")
    undo = f"{site}/admin/reporting/settlementrecord/{record.pk}/change/"
    clerk.goto(undo)
    follow(clerk, clerk.get_by_role("button", name="Undo"))
    expect(clerk.get_by_text("is closed", exact=False).first).to_be_visible()
    assert SettlementRecord.objects.get(pk=record.pk).without_payment
    manager.goto(month)
    manager.get_by_text("Reopen the month").click()
    manager.get_by_role("button", name="Reopen it").click()
    expect(manager.locator("#note:invalid")).to_be_focused()
    manager.get_by_label("Reason").fill("the institute sent another file")
    follow(manager, manager.get_by_role("button", name="Reopen it"))
    expect(manager.get_by_text("the institute sent another file")).to_be_visible()
    look(manager, "reopened")
    clerk.goto(undo)
    follow(clerk, clerk.get_by_role("button", name="Undo"))
    assert not SettlementRecord.objects.get(pk=record.pk).without_payment


def compare_with_the_page(made: zipfile.ZipFile) -> None:
    """The month's files: lines by currency, a workbook with real dates, the statement, checksums that are right."""
    names = made.namelist()
    (lines,) = [name for name in names if name.endswith("EUR.csv")]
    (book,) = [name for name in names if name.endswith(".xlsx")]
    (paper,) = [name for name in names if name.endswith(".pdf")]
    rows = list(tables.DictReader(made.read(lines).decode("utf-8-sig").splitlines(), delimiter=";"))
    signed = [Decimal(row["SettlementAmount"]) * (1 if row["Cashflow"] == "POS" else -1) for row in rows]
    assert (len(rows), sum(signed)) == (7, Decimal("120.27"))
    sheets = openpyxl.load_workbook(io.BytesIO(made.read(book)), read_only=True).worksheets
    cells = [cell for sheet in sheets for each in sheet.iter_rows(values_only=True) for cell in each]
    assert any(isinstance(cell, datetime) for cell in cells)
    text = "".join(page.extract_text() for page in PdfReader(io.BytesIO(made.read(paper))).pages)
    assert "120.27" in text
    for name in (lines, book):
        assert hashlib.sha256(made.read(name)).hexdigest() in "".join(text.split())
