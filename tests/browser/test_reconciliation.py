"""J5, month end, in a real browser: files are read, matched by hand, written daily, sent by SFTP, exported."""

from __future__ import annotations

import csv as tables
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.test import override_settings
from playwright.sync_api import Locator, Page, expect

from gateway.background import queue
from gateway.core import clock
from gateway.models import BackgroundWork, Division, Psp
from gateway.timers import registry
from reporting.models import SettlementFile
from reporting.settlement import intake
from tests.browser.conftest import picture
from tests.browser.patience import follow, resize
from tests.browser.test_clerks import PASSWORD, fits, serious, sign_in, somebody
from tests.support import sshd
from tests.support.clock import jump
from tests.support.fixtures import Shop, open_shop
from tests.support.settlement import csv, institute, line, payment_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]
Open = Callable[..., Page]
TWO_DAYS_S = 2 * 86_400
RECORD = "/admin/reporting/settlementrecord/"


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


def look(page: Page, name: str) -> None:
    assert serious(page) == [], name
    picture(page, f"reconciliation-{name}-1280")
    resize(page, 375, 812)
    assert fits(page), name
    picture(page, f"reconciliation-{name}-375")
    resize(page, 1280, 800)


def read_rows(content: str) -> list[dict[str, str]]:
    return list(tables.DictReader(content.splitlines(), delimiter=";"))


def download(within: Locator, page: Page, name: str | re.Pattern[str]) -> str:
    with page.expect_download() as started:
        within.get_by_role("link", name=name).first.click()
    return started.value.path().read_text(encoding="utf-8-sig")


def test_a_months_files_are_read_matched_written_and_sent(
    shop: Shop, site: str, open_page: Open, tmp_path: Path, mailoutbox: list[EmailMessage]
) -> None:
    """J5: a file with faults, several candidates and strangers; undone and done; the sums that leave are the page's."""
    sshd.needed()
    User.objects.filter(pk=somebody("max", "manager", shop).pk).update(email="max@shop.example")
    institute()
    paid = payment_of(shop.api.pay(amount="50.00", merchantTransactionId="order-4711").id)
    for _ in range(2):
        shop.api.pay(merchantTransactionId="order-twin")
    lost = payment_of(shop.api.pay(amount="30.00", merchantTransactionId="order-lost").id)
    # One day for all lines: the payouts' page shows a month.
    ours = {"ClearingInstituteMerchantId": shop.channel.pk.hex, "SettlementDate": f"{paid.created_at:%Y-%m-%d}"}
    good = line(paid, **ours, SettlementAmount="48.50", SettlementFee="1.50")
    rows = [
        good,
        line(**ours, ConnectorTxId1="", TransactionId="order-twin"),
        line(**ours, ConnectorTxId1="x-1", TransactionId="", Amount="30.00", SettlementAmount="30.00"),
        line(**ours, ConnectorTxId1="x-2", TransactionId="", Amount="7.77", SettlementAmount="7.77"),
        {**good, "Amount": "much"},
    ]
    (tmp_path / "november.csv").write_bytes(csv(rows))
    page = open_page()
    work = override_settings(GATEWAY_WORK_DIR=str(tmp_path), GATEWAY_OUTBOX=str(tmp_path / "outbox"))
    with work, sshd.serving(tmp_path / "sshd") as server:
        sign_in(page, site, "max")
        upload(page, site, tmp_path / "november.csv")
        match_by_hand(page, site, str(lost.pk))
        set_up_delivery(page, site, shop, server)
        jump(TWO_DAYS_S)
        registry.run_timer_now("reconciliation files")
        registry.run_timer_now("reconciliation deliveries")
        written = compare_with_the_page(page, site)
        sent = [one.read_text(encoding="utf-8-sig") for one in server.inbox.iterdir()]
        assert written in sent
        export_in_spite_of_a_restart(page, site, mailoutbox)


def upload(page: Page, site: str, file: Path) -> None:
    """The file is dropped on the page, its format guessed, each fault names its line and column; it is read while the
    page is closed, and then shown by what became of its lines, with sums by currency."""
    page.goto(f"{site}/admin/reporting/settlementfile/upload/")
    drop(page.get_by_label("File", exact=True), page, file)
    follow(page, page.get_by_role("button", name="Show what is in it"))
    expect(page.locator("dt", has_text="Format, as guessed").locator("xpath=../dd")).to_have_text("CSV")
    expect(page.locator("section", has_text="Errors").locator("tr", has_text="much")).to_contain_text("Amount")
    expect(page.locator(".ck-lines tbody tr")).to_have_count(5)
    look(page, "preview")
    follow(page, page.get_by_role("button", name="Read this file"))
    expect(page.locator("progress")).to_be_visible()
    row = SettlementFile.objects.get()
    # As it is while a large file is read: a fifth of it in some seconds.
    begun = {"state": SettlementFile.State.READING, "started_at": clock.real_now() - timedelta(seconds=10)}
    SettlementFile.objects.update(**begun, lines=1_000, position=row.size // 5)
    expect(page.locator("[data-message]")).to_have_text(re.compile("lines a second, about .* left"))
    expect(page.locator("[data-done]")).to_have_text(re.compile("1,?000"))
    SettlementFile.objects.update(state=row.state, started_at=None, lines=0, position=0)
    page.goto(f"{site}/admin/")
    assert intake.process_file(row.pk)
    page.goto(f"{site}/admin/reporting/settlementfile/{row.pk}/change/")
    expect(page.locator("[data-ended] [data-state]")).to_have_text("Done")
    for name, count in (("Matched", 1), ("Several candidates", 1), ("Not matched", 2), ("Faulty lines", 1)):
        tile = page.locator(".ck-sum", has=page.locator("dt", has_text=re.compile(f"^{name}")))
        expect(tile.locator("dd")).to_have_text(str(count))
    expect(page.locator("figure")).to_be_visible()
    expect(page.locator("section", has_text="Sums").locator("tr", has_text="EUR")).to_contain_text("178.27")
    look(page, "file")


def drop(field: Locator, page: Page, file: Path) -> None:
    """Let a file of the desktop fall on a field."""
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    mouse = page.context.new_cdp_session(page)
    for step in ("dragEnter", "dragOver", "drop"):
        data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
        mouse.send("Input.dispatchDragEvent", {"type": step, **at, "data": data})


def match_by_hand(page: Page, site: str, lost: str) -> None:
    """Several candidates: one is chosen. None: searched and linked, marked; the last act is undone and done again."""
    page.goto(f"{site}{RECORD}?list=multiple")
    follow(page, page.locator("tbody a").first)
    look(page, "candidates")
    follow(page, page.get_by_role("button", name=re.compile("Choose this one")).first)
    page.goto(f"{site}{RECORD}?list=unmatched")
    expect(page.locator("tbody tr")).to_have_count(2)
    look(page, "not-matched")
    follow(page, page.locator("tbody tr", has_text="30.00").get_by_role("link").first)
    page.locator("#q").fill("order-lost")
    follow(page, page.get_by_role("button", name="Find", exact=True))
    follow(page, page.get_by_role("button", name="Link to this"))
    page.goto(f"{site}{RECORD}?list=unmatched")
    mark_the_stranger(page)
    follow(page, page.get_by_role("button", name="Undo"))
    page.goto(f"{site}{RECORD}?list=unmatched")
    mark_the_stranger(page)
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.goto(f"{site}{RECORD}?list=unmatched")
    expect(page.get_by_text("Nothing to do")).to_be_visible()


def mark_the_stranger(page: Page) -> None:
    follow(page, page.locator("tbody tr", has_text="7.77").get_by_role("link").first)
    page.get_by_label("Why is no payment to be looked for?").fill("a terminal that is not ours")
    follow(page, page.get_by_role("button", name="Mark it"))


def set_up_delivery(page: Page, site: str, shop: Shop, server: sshd.Server) -> None:
    """A server, its key and a login; the button says that it works before the first file is due."""
    page.goto(f"{site}/admin/reporting/reconciliationfile/daily/")
    follow(page, page.get_by_role("link", name="Set up SFTP…"))

    def fill_in() -> None:
        for label, value in (
            ("Host", "127.0.0.1"), ("Port", str(server.port)), ("User name", server.user),
            ("Folder", str(server.inbox)),
            ("Host key", server.host_key), ("Password or private key", server.private_key),
        ):  # fmt: skip
            page.get_by_label(label, exact=True).fill(value)
        page.get_by_label("Kind of secret").select_option("key")
        follow(page, page.get_by_role("button", name="Save"))

    fill_in()
    if page.get_by_label("Password", exact=True).count():
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        follow(page, page.get_by_role("button", name="Confirm"))
        fill_in()
    follow(page, page.get_by_role("button", name="Try it"))
    expect(page.get_by_text("Logged in; the folder is there.")).to_be_visible()
    look(page, "target")


def compare_with_the_page(page: Page, site: str) -> str:
    """The day's file and the file of the period have the same lines, which add up to what the payouts' page says."""
    page.goto(f"{site}/admin/reporting/reconciliationfile/")
    expect(page.locator(".ck-pill", has_text="Sent").first).to_be_visible()
    look(page, "written")
    written = page.locator("tbody tr", has_text=re.compile(r"Lines\s*4"))
    day = written.get_by_role("link").first.inner_text()
    follow(page, written.get_by_role("link").first)
    expect(page.locator("dt", has_text="Day").locator("xpath=../dd")).to_have_text(f"{day} (UTC)")
    page.go_back()
    daily = download(written, page, "Download")
    rows = read_rows(daily)
    assert {len(row) for row in rows} == {38}
    page.get_by_label("From").fill(day)
    page.get_by_label("To", exact=True).fill(day)
    follow(page, page.get_by_role("button", name="Make it"))
    queue.run_background_work()
    expect(page.locator("main").get_by_role("link", name=re.compile("Download"))).to_be_visible()
    period = download(page.locator("main"), page, re.compile("Download"))
    assert read_rows(period) == rows
    total = sum((Decimal(row["SettlementAmount"]) for row in rows), Decimal(0))
    page.goto(f"{site}/admin/reporting/settlement/")
    expect(page.get_by_text(f"{total:,.2f}").first).to_be_visible()
    return daily


def export_in_spite_of_a_restart(page: Page, site: str, mails: list[EmailMessage]) -> None:
    """The worker dies in the middle; the page is left, the next worker goes on, and a mail has the link to the file."""
    page.goto(f"{site}/admin/gateway/payment/")
    listed = page.locator("[data-rows] tbody tr").count()
    follow(page, page.get_by_role("button", name="CSV"))
    expect(page.get_by_role("progressbar")).to_be_visible()
    died = clock.real_now() - timedelta(minutes=2)
    work = BackgroundWork.objects.filter(state=BackgroundWork.State.WAITING)
    assert work.update(state=BackgroundWork.State.RUNNING, slices=1, lease_until=died, asked_at=died) == 1
    page.goto(f"{site}/admin/")
    with override_settings(EMAIL_HOST="mail.example"):
        queue.run_background_work()
    (mail,) = mails
    assert mail.to == ["max@shop.example"]
    link = re.search(r"https?://\S+", str(mail.body))
    assert link is not None
    page.goto(link[0])
    rows = tables.DictReader(download(page.locator("main"), page, re.compile("Download")).splitlines())
    assert len(list(rows)) == listed == 4
