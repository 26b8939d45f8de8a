"""Month end and a dispute in a real browser, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from chargebacks import ledger
from gateway.models import Division, Psp
from reporting.models import SettlementFile
from reporting.settlement import intake
from tests.browser.conftest import picture
from tests.browser.patience import follow
from tests.browser.test_clerks import fits, serious, sign_in, somebody
from tests.support.fixtures import Shop, open_shop
from tests.support.settlement import BY, csv, institute, line, payment_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Open = Callable[..., Page]
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_books_are_closed_and_a_dispute_is_answered(
    shop: Shop, site: str, open_page: Open, tmp_path: Path, width: int, height: int
) -> None:
    somebody("max", "manager", shop)
    of = institute()
    twins = [payment_of(shop.api.pay(merchantTransactionId="twin-4711").id) for _ in range(2)]
    paid = payment_of(shop.api.pay(merchantTransactionId="order-4711").id)
    good = line(paid, SettlementAmount="90.50", SettlementFee="1.50")
    unknown = line(ClearingInstituteMerchantId=shop.channel.pk.hex, ConnectorTxId1="unknown-1", Amount="7.77")
    rows = [good, line(twins[0], ConnectorTxId1="", TransactionId="twin-4711"), {**good, "Amount": "much"}, unknown]
    (tmp_path / "march.csv").write_bytes(csv(rows))
    (tmp_path / "delivery.pdf").write_bytes(PDF)
    page = open_page(width, height)

    def look(name: str) -> None:
        assert fits(page), name
        assert serious(page) == [], name
        picture(page, f"books-{name}-{width}")

    sign_in(page, site, "max")
    page.goto(f"{site}/admin/reporting/settlementfile/upload/")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "march.csv")
    look("upload")
    follow(page, page.get_by_role("button", name="Show what is in it"))
    expect(page.get_by_text("much").first).to_be_visible()
    look("preview")
    follow(page, page.get_by_role("button", name="Read this file"))
    expect(page.locator("progress")).to_be_visible()
    look("progress")
    assert intake.process_file(SettlementFile.objects.get().pk)
    expect(page.locator("[data-ended] [data-state]")).to_have_text("Done")
    look("file")
    page.goto(f"{site}/admin/reporting/settlementfile/")
    look("files")
    page.goto(f"{site}/admin/reporting/settlementfile/source/{of.pk}/")
    look("source")
    page.goto(f"{site}/admin/reporting/settlementfile/missing/{of.pk}/?to=2099-12-31")
    look("missing")
    page.goto(f"{site}/admin/reporting/settlementrecord/?list=multiple")
    follow(page, page.locator("tbody a").first)
    look("candidates")
    follow(page, page.get_by_role("button", name="Choose this one").first)
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    look("exceptions")
    page.goto(f"{site}/admin/reporting/settlement/")
    look("payouts")
    page.goto(f"{site}/admin/reporting/reconciliationfile/")
    look("outgoing")
    page.goto(f"{site}/admin/reporting/reconciliationfile/target/{shop.merchant.pk}/")
    look("target")
    page.goto(f"{site}/admin/chargebacks/chargeback/by-hand/{paid.pk}/")
    look("by-hand")
    case = ledger.record_chargeback(paid, Decimal("92.00"), reason="000.100.221", by=BY)
    page.goto(f"{site}/admin/chargebacks/chargeback/")
    look("disputes")
    page.goto(f"{site}/admin/chargebacks/chargeback/{case.pk}/change/")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "delivery.pdf")
    follow(page, page.get_by_role("button", name="Add it"))
    Image.new("RGB", (600, 400), "teal").save(tmp_path / "photo.png")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "photo.png")
    follow(page, page.get_by_role("button", name="Add it"))
    expect(page.locator("img.ck-small")).to_have_js_property("naturalWidth", 160)
    look("dispute")
    page.get_by_label("I have looked at every file").check()
    follow(page, page.get_by_role("button", name="Submit the evidence"))
    follow(page, page.get_by_role("button", name="For the merchant"))
    expect(page.get_by_text("Won", exact=True).first).to_be_visible()
    look("dispute-won")
