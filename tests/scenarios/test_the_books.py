"""Four days in the books, over HTTP, the back office's pages and the files alone: the month's end, a dispute, a line
without its payment, a file that did not come. Source: Part B, Reconciliation file."""

from __future__ import annotations

import csv
import io
import re
from datetime import datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from gateway.core import clock
from gateway.timers import registry
from reporting.models import ClearingInstitute
from tests.support import settlement
from tests.support.browser import send_file
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
FILES, LINES = "/admin/reporting/settlementfile/", "/admin/reporting/settlementrecord/"
PAYOUTS, OUTGOING = "/admin/reporting/settlement/", "/admin/reporting/reconciliationfile/"
DISPUTES: Final = "/admin/chargebacks/chargeback/"
REPORTS: Final = "/reports/v1/reconciliations/aggregations"
JANE: Final = {"customer.givenName": "Jane", "customer.surname": "Jones", "customer.email": "jane@example.org"}
PDF: Final = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> None:
    settings.GATEWAY_WORK_DIR, settings.GATEWAY_OUTBOX = str(tmp_path / "work"), str(tmp_path / "outbox")


@pytest.fixture
def of(db: None) -> ClearingInstitute:
    return settlement.institute(name="Acme Clearing")


@pytest.fixture
def max_(shop: Shop) -> Client:
    return signed_in(person("max", "manager", shop.merchant))


def page(client: Client, address: str, **asked: str) -> str:
    answer = client.get(address, asked)
    assert answer.status_code == 200, (address, answer.status_code)
    return str(answer.content.decode())


def said(client: Client, address: str, **form: Any) -> str:
    answer: Any
    if "file" in form:
        answer = send_file(client, address.replace("do/", "change/"), form, follow=True)
    else:
        answer = client.post(address, form, follow=True)
    assert answer.status_code == 200, (address, answer.status_code)
    return str(answer.content.decode())


def line(shop: Shop, tx_id: str, amount: str, **changes: str) -> dict[str, str]:
    """What the acquirer writes: it knows its own ids and the merchant's account."""
    return settlement.line(
        **{
            "ClearingInstituteMerchantId": shop.channel.pk.hex,
            "ConnectorTxId1": tx_id,
            "Amount": amount,
            "SettlementDate": f"{clock.real_now():%Y-%m-%d}",
            **changes,
        }
    )


def acquirers_id(client: Client, payment: str) -> str:
    """As the payment's page tells it."""
    found = re.search(r"SIM[0-9A-F]{8,}", page(client, f"/admin/gateway/payment/{payment}/change/"))
    assert found, payment
    return found[0]


def uploaded(client: Client, lines: list[dict[str, str]], name: str = "may.csv") -> str:
    """Upload, look, say yes; the reading is done by whoever wakes up. The file's page."""
    content = SimpleUploadedFile(name, settlement.csv(lines))
    looked = send_file(client, f"{FILES}upload/", {"institute": "simulated", "file": content})
    assert looked.status_code == 302, looked.content
    assert name in page(client, looked["Location"])
    file: str = client.post(looked["Location"], {"verb": "read"})["Location"]
    registry.run_all_timers()
    return file


def links(text: str, base: str) -> list[str]:
    """Addresses of rows on a page, in their order, each once."""
    return list(dict.fromkeys(re.findall(rf"{base}[0-9a-f-]{{36}}/change/", text)))


def day_is_over(shop: Shop, client: Client) -> list[dict[str, str]]:
    """Half past midnight: the day's reconciliation file, fetched from its page."""
    shop.merchant.refresh_from_db()
    now = clock.merchant_now(shop.merchant).astimezone(ZoneInfo(shop.merchant.time_zone))
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
    pass_time(shop.api, minutes=30, seconds=int((midnight - now).total_seconds()))
    listed = page(client, OUTGOING)
    rows: list[dict[str, str]] = []
    # All days: just after midnight, the day before may end when the clock is moved.
    for address in dict.fromkeys(re.findall(rf"{OUTGOING}[0-9a-f-]{{36}}/download/", listed)):
        fetched: Any = client.get(address)
        text = b"".join(fetched.streaming_content).decode()
        rows += csv.DictReader(io.StringIO(text, newline=""), delimiter=";")
    return rows


def paid_out(rows: list[tuple[str, str]]) -> Decimal:
    """Cashflow and settlement amount."""
    return sum((Decimal(amount) * (1 if flow == "POS" else -1) for flow, amount in rows), Decimal(0))


def reported(shop: Shop) -> list[dict[str, Any]]:
    """All records of all settlements of the API's reports, and that their sums are those of their records."""
    today = {"date.from": f"{clock.real_now() - timedelta(days=3):%Y-%m-%d}", "date.to": f"{clock.real_now():%Y-%m-%d}"}
    found: list[dict[str, Any]] = []
    for one in shop.api.get(REPORTS, today).body["aggregations"]:
        records = shop.api.get(f"{REPORTS}/{one['id']}").body["reconciliations"]
        sums = paid_out([(each["settlement"]["cashflow"], each["settlement"]["amount"]) for each in records])
        assert Decimal(one["amount"]) == sums
        found += records
    return found


def test_the_month_ends(shop: Shop, of: ClearingInstitute, max_: Client) -> None:
    """The acquirer's file is uploaded, two payments that look alike are told apart, and the sums on the screen, of
    the API and in the file are one."""
    paid = [shop.api.pay(amount="92.00", merchantTransactionId=f"order-{number:04d}").id for number in range(3)]
    twins = [shop.api.pay(amount="15.50", merchantTransactionId="order-twin").id for _ in range(2)]
    back = shop.api.follow(paid[0], "RF", "12.00").id
    lines = [
        line(shop, acquirers_id(max_, one), "92.00", SettlementAmount="90.46", SettlementFee="1.54") for one in paid
    ]
    lines += [
        line(shop, "", "12.00", PaymentType="REFUND", UniqueID=back),
        line(shop, "", "15.50", TransactionId="order-twin"),
        line(shop, "", "9.90", ReconciliationType="FEE", PaymentType="MONTHLY"),
    ]
    file = page(max_, uploaded(max_, lines))
    paid_by_hand = Decimal("90.46") * 3 - 12 + Decimal("15.50") - Decimal("9.90")
    assert f"<strong>{paid_by_hand}</strong>" in file
    several = links(page(max_, LINES, list="multiple"), LINES)
    assert len(several) == 1
    assert all(one in page(max_, several[0]) for one in twins)
    do = several[0].replace("change/", "do/")
    assert "Linked." in said(max_, do, verb="link", payment=twins[1])
    assert "Taken back" in said(max_, do, verb="undo")
    assert "Linked." in said(max_, do, verb="link", payment=twins[0])
    assert links(page(max_, LINES), LINES) == links(page(max_, LINES, list="findings"), LINES) == []
    # Sums of CSV = sums on screen = sums of the API.
    on_screen = re.findall(r"<dd><a [^>]*>([0-9.]+)</a></dd>", page(max_, PAYOUTS))
    assert Decimal(on_screen[0]) == paid_by_hand
    assert Decimal(on_screen[1]) == Decimal("4.62")
    records = reported(shop)
    assert paid_out([(one["settlement"]["cashflow"], one["settlement"]["amount"]) for one in records]) == paid_by_hand
    rows = day_is_over(shop, max_)
    assert paid_out([(row["Cashflow"], row["SettlementAmount"]) for row in rows]) == paid_by_hand
    assert sum(Decimal(row["SettlementFee"] or 0) for row in rows) == Decimal("4.62")
    assert sorted(row["UniqueID"] for row in rows if row["UniqueID"]) == sorted([*paid, back, twins[0]])
    assert {record["matchedTransactions"]["status"] for record in records if "matchedTransactions" in record} == {
        "MATCHED"
    }


def test_a_shopper_disputes_and_the_merchant_wins(shop: Shop, of: ClearingInstitute, max_: Client) -> None:
    """A letter comes before the acquirer's file does; evidence is submitted, the bank gives the money back."""
    order = shop.api.pay(merchantTransactionId="order-4711", **JANE, **{"merchant.country": "DE"})
    settled = acquirers_id(max_, order.id)
    uploaded(max_, [line(shop, settled, "92.00")], "monday.csv")
    by_hand = re.findall(rf"{DISPUTES}by-hand/[0-9a-f-]+/", page(max_, f"/admin/gateway/payment/{order.id}/change/"))[0]
    seen = re.findall(r'name="seen" value="([0-9]+)"', page(max_, by_hand))[0]
    entered = said(max_, by_hand, seen=seen, amount="92.00", reason="000.100.221", respond_by="", reference="letter 7")
    assert "12 days left" in entered
    assert "jane@example.org" in entered
    registry.run_all_timers()
    case = links(page(max_, DISPUTES), DISPUTES)[0]
    chargeback = case.split("/")[-3].replace("-", "")
    pass_time(shop.api, days=10)
    assert re.search(r"gavel.{0,900}?>\s*1\s*<", page(max_, "/admin/"), re.S)
    do = case.replace("change/", "do/")
    note = SimpleUploadedFile("delivery.pdf", PDF)
    assert "The file was added" in said(max_, do, verb="add", item="delivery", file=note)
    assert "Packet as PDF" in said(max_, case.replace("change/", "packet/"))
    assert "it is submitted once" in said(max_, do, verb="submit")
    assert "The bank decides now" in said(max_, do, verb="submit", sure="yes")
    assert 'type="file"' not in page(max_, case), "nothing is added to what the bank decides on"
    more = {"verb": "add", "item": "order", "file": SimpleUploadedFile("more.pdf", PDF)}
    assert max_.post(do, more).status_code in (403, 415), "nor is a file read that is sent all the same"
    assert "The simulated bank has decided" in said(max_, do, verb="win")
    registry.run_all_timers()
    # The acquirer's file tells of both, later: nothing is entered twice.
    disputed = {"ReasonCode": "000.100.221", "ReconciliationType": "CHARGEBACK", "SettlementTxId": "D-1"}
    won = {"ReconciliationType": "CHARGEBACK REVERSAL", "SettlementTxId": "D-2"}
    uploaded(max_, [line(shop, settled, "92.00", **disputed), line(shop, settled, "92.00", **won)], "friday.csv")
    linked = shop.api.get(f"/v1/query/{order.id}", {"includeLinkedTransactions": "true"}).body["payments"]
    ledger = [one for one in linked if one["paymentType"] in ("CB", "CR")]
    assert [(one["paymentType"], one["amount"]) for one in sorted(ledger, key=lambda one: one["paymentType"])] == [
        ("CB", "92.00"),
        ("CR", "92.00"),
    ]
    reversal = next(one["id"] for one in ledger if one["paymentType"] == "CR")
    assert "Won" in page(max_, case)
    rows = day_is_over(shop, max_)
    told = [(row["ReconciliationType"], row["Amount"], row["SettlementAmount"], row["ChargebackId"]) for row in rows]
    by_file = {("CHARGEBACK", "92.00", "92.00", chargeback), ("CHARGEBACK REVERSAL", "92.00", "92.00", reversal)}
    assert by_file <= set(told)
    records = reported(shop)
    of_api = paid_out([(one["settlement"]["cashflow"], one["settlement"]["amount"]) for one in records])
    assert of_api == Decimal("92.00")  # what was settled; taken and given back


def test_a_line_comes_without_its_payment(shop: Shop, of: ClearingInstitute, max_: Client) -> None:
    """A line names an id that nobody knows: it is found by its order number, and linked; another one is
    nobody's, and marked."""
    paid = shop.api.pay(amount="31.00", merchantTransactionId="order-lost-7").id
    uploaded(max_, [line(shop, "TYPO-1", "31.00"), line(shop, "TYPO-2", "1.00")])
    waiting = links(page(max_, LINES, list="unmatched"), LINES)
    assert len(waiting) == 2
    assert re.search(r"rule_folder.{0,900}?>\s*2\s*<", page(max_, "/admin/"), re.S)
    lost, nobodys = sorted(waiting, key=lambda one: "TYPO-2" in page(max_, one))
    assert paid in page(max_, lost, q="order-lost-7")
    assert "Linked." in said(max_, lost.replace("change/", "do/"), verb="link", payment=paid)
    assert "Marked" in said(max_, nobodys.replace("change/", "do/"), verb="mark", note="a test of the bank's")
    assert links(page(max_, LINES), LINES) == []
    rows = {row["ConnectorTxId1"]: row for row in day_is_over(shop, max_)}
    assert (rows["TYPO-1"]["MatchingStatus"], rows["TYPO-1"]["MatchedTransactions"]) == ("MATCHED", paid)
    assert rows["TYPO-2"]["MatchingStatus"] == "NOT_MATCHED"
    assert len(reported(shop)) == 2


def test_a_file_does_not_come(shop: Shop, of: ClearingInstitute, max_: Client) -> None:
    """A file is expected every day. Yesterday's did not come: its day is told, and which payments wait for it; when it
    comes at last they are settled."""
    yesterday = clock.real_now() - timedelta(days=1)
    ClearingInstitute.objects.update(
        expects_files_on=[1, 2, 3, 4, 5, 6, 7], created_at=yesterday - timedelta(days=3), settles_within_days=0
    )
    paid = shop.api.pay(amount="44.00", merchantTransactionId="order-waits").id
    came = shop.api.pay(amount="45.00", merchantTransactionId="order-came").id
    uploaded(max_, [line(shop, acquirers_id(max_, came), "45.00")], "today.csv")
    listed = page(max_, FILES)
    assert re.search("[45] files are missing", listed)  # midnight may pass in between
    assert f"{yesterday:%Y-%m-%d}" in listed
    lacking = re.findall(rf"{FILES}missing/[0-9a-f-]{{36}}/", listed)[0]
    asked = {"from": f"{yesterday:%Y-%m-%d}", "to": f"{clock.real_now():%Y-%m-%d}"}
    found = page(max_, lacking, **asked)
    assert "order-waits" in found
    assert "order-came" not in found
    assert "<dd>44.00 EUR</dd>" in found
    for odd in ({"from": "x"}, {"to": "0001-01-01"}, {"from": "2030-01-01", "to": "2020-01-01"}):
        assert page(max_, lacking, **odd)
    uploaded(max_, [line(shop, acquirers_id(max_, paid), "44.00")], "late.csv")
    assert "order-waits" not in page(max_, lacking, **asked)
    assert {row["UniqueID"] for row in day_is_over(shop, max_)} == {paid, came}
