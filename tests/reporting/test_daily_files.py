"""Reconciliation files: their content, their day, and that they can be made again.

Source: Part B, Reconciliation file; decisions, section 8; decision 0026.
"""

from __future__ import annotations

import csv
import io
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command

from config.timers import TIMERS
from gateway.core import clock
from gateway.models import Merchant
from reporting.models import ClearingInstitute, Match, Settlement, SettlementRecord
from reporting.reconciliation import daily_files, file_columns, period_files
from reporting.reconciliation.file_columns import (
    CSV_HEADER,
    RECONCILIATION_COLUMNS,
    format_decimal,
    render_csv_blocks,
)
from reporting.reconciliation.models import ReconciliationFile
from reporting.settlement import exception_queue
from reporting.settlement.record_queries import DisplayNames, SettlementLine
from tests.support import books, settlement
from tests.support.clock import pass_time
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.subscriptions import store_card
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
FIRST_36 = (
    "ReconciliationType;PaymentType;Cashflow;ClearingInstituteMerchantId;MerchantAccountId;MerchantAccountName;PspId;"
    "DivisionId;MerchantId;SettlementTxId;UniqueID;ShortId;ConnectorTxId1;ConnectorTxId2;ConnectorTxId3;Amount;Currency;"
    "Brand;TxRequestTime;SettlementAmount;SettlementCurrency;SettlementFee;SettlementFxRate;SettlementDate;"
    "SettlementStatus;Descriptor;AccountNumberLast4;BankCode;AccountHolder;ReasonCode;ReasonDesc;SettlementFileFormat;"
    "ClearingInsitituteName;MatchingStatus;MatchedTransactions;ChargebackId"
)


@pytest.fixture(autouse=True)
def outbox(settings: Any, tmp_path: Path) -> Path:
    settings.GATEWAY_OUTBOX = str(tmp_path / "outbox")
    return tmp_path / "outbox"


@pytest.fixture
def institute(db: None) -> ClearingInstitute:
    return books.institute(name="Acme Clearing", time_zone="Asia/Tokyo")


@pytest.fixture
def where(shop: Shop, institute: ClearingInstitute) -> Settlement:
    return books.settlement(shop, institute)


def forward(shop: Shop, **by: float) -> Merchant:
    """Move the merchant's clock on."""
    merchant = books.merchant_of(shop)
    merchant.clock_offset += timedelta(**by)
    merchant.save(update_fields=["clock_offset"])
    return merchant


def written(merchant: Merchant) -> list[ReconciliationFile]:
    return list(ReconciliationFile.objects.filter(merchant=merchant).order_by("day"))


def text_of(file: ReconciliationFile) -> str:
    return daily_files.build_outbox_path(file).read_bytes().decode("utf-8")


def rows_of(file: ReconciliationFile) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of(file), newline=""), delimiter=";"))


def only_file(shop: Shop) -> ReconciliationFile:
    """The file of today, when the day is over."""
    merchant = books.overnight(shop)
    assert daily_files.write_due_daily_files(merchant) == 1
    [file] = written(merchant)
    return file


# --- what stands in it ----------------------------------------------------------------------------------------------


def test_the_header_is_the_contracts() -> None:
    """B19.1, B19.2."""
    assert ";".join(CSV_HEADER[:36]) == FIRST_36
    assert CSV_HEADER[36:] == ("TransactionId", "InvoiceId")
    assert sum(column.need == "R" for column in RECONCILIATION_COLUMNS) == 17


def test_the_docs_have_the_same_columns() -> None:
    """One table that the file, the report and the docs read."""
    lines = ["| CSV column | API name | format | required | what it says |", "|---|---|---|---|---|"]
    for column in RECONCILIATION_COLUMNS:
        name = " or ".join(f"`{one}`" for one in column.api) if column.api[0] else "none"
        lines.append(f"| {column.csv} | {name} | {column.words} | {column.need} | {column.about} |")
    page = Path(__file__).parents[2] / "docs" / "reporting.md"
    assert "\n".join(lines) + "\n" in page.read_text(encoding="utf-8")


def test_a_file_is_semicolons_crlf_quotes_and_utf_8(shop: Shop, where: Settlement) -> None:
    """A7.18; decisions, section 8; B19.10."""
    file = books.file_of(ClearingInstitute.objects.get())
    paid = books.payment_of(shop.api.pay(merchantTransactionId="order-4711", card__holder="Zoë O'Neil").id)
    books.record(where, file, paid, descriptor='Shop; the "best"', merchant_invoice_id="=1+1")
    made = only_file(shop)
    raw = daily_files.build_outbox_path(made).read_bytes()
    assert raw.startswith(f"{FIRST_36};TransactionId;InvoiceId\r\n".encode())
    assert raw.endswith(b"\r\n")
    assert raw.count(b"\n") == raw.count(b"\r\n") == 2
    assert "Zoë O'Neil".encode() in raw
    assert b'"Shop; the ""best"""' in raw
    assert b";=1+1\r\n" in raw  # escaped in spreadsheets for people only
    assert b"4200000000000000" not in raw
    [row] = rows_of(made)
    tree = paid.merchant
    assert row == {
        **dict.fromkeys(CSV_HEADER, ""),
        "ReconciliationType": "SETTLED",
        "PaymentType": "DEBIT",
        "Cashflow": "POS",
        "ClearingInstituteMerchantId": shop.channel.entity_id,
        "MerchantAccountId": shop.channel.entity_id,
        "MerchantAccountName": shop.channel.name,
        "PspId": tree.division.psp_id.hex,
        "DivisionId": tree.division_id.hex,
        "MerchantId": tree.id.hex,
        "UniqueID": paid.id.hex,
        "ShortId": shop.api.get(f"/v1/query/{paid.id.hex}").body["shortId"],
        "Amount": "92.00",
        "Currency": "EUR",
        "Brand": "VISA",
        "TxRequestTime": "2026-05-14 03:00:00+0900",
        "SettlementAmount": "90.50",
        "SettlementCurrency": "EUR",
        "SettlementFee": "1.50",
        "SettlementFxRate": "1.00",
        "SettlementDate": "2026-05-14",
        "SettlementStatus": "SUCCESS",
        "Descriptor": 'Shop; the "best"',
        "AccountNumberLast4": "0000",
        "AccountHolder": "Zoë O'Neil",
        "SettlementFileFormat": "CSV",
        "ClearingInsitituteName": "Acme Clearing",
        "MatchingStatus": "MATCHED",
        "MatchedTransactions": paid.id.hex,
        "TransactionId": "order-4711",
        "InvoiceId": "=1+1",
    }
    assert (made.lines, made.size) == (1, len(raw))


def test_every_kind_of_record_has_its_required_columns(shop: Shop, where: Settlement) -> None:
    """A26.7, A26.8, B19.5, B19.6, B19.8, B19.9: fallbacks where neither institute nor payment says anything."""
    file = books.file_of(ClearingInstitute.objects.get())
    paid, other = (books.payment_of(shop.api.pay().id) for _ in range(2))
    lost = paid.id
    books.record(where, file, paid)
    books.record(where, file, settlement_tx_id="TX-1", account=None)
    books.record(where, file, record_type="FEE", transaction_type="AUTH_FEE", cashflow="NEG")
    books.record(where, file, candidates=[paid, other], transaction_type="REFUND", cashflow="NEG")
    books.record(
        where,
        file,
        paid,
        record_type="CHARGEBACK",
        cashflow="NEG",
        reason_code="000.100.204",
        chargeback=lost,
        chargeback_at=clock.real_now() - timedelta(seconds=20),
    )
    books.record(where, file, record_type="CHARGEBACK REVERSAL", fx_rate="0.0091230000", settlement_fee="0.2575")
    rows = rows_of(only_file(shop))
    required = [column.csv for column in RECONCILIATION_COLUMNS if column.need == "R"]
    for row in rows:
        assert [name for name in required if not row[name]] == [], row
    matched, unknown, fee, many, dispute, reversal = rows
    assert matched["TransactionId"] == matched["UniqueID"] == paid.id.hex
    assert (unknown["TransactionId"], unknown["UniqueID"], unknown["ShortId"]) == ("TX-1", "", "")
    assert unknown["MerchantAccountId"] == shop.merchant.entity_id
    record = SettlementRecord.objects.get(record_type="FEE")
    assert (fee["TransactionId"], fee["MatchingStatus"], fee["UniqueID"]) == (record.id.hex, "", "")
    assert [row["MatchingStatus"] for row in rows] == [
        "MATCHED",
        "NOT_MATCHED",
        "",
        "MULTIPLE_MATCHES",
        "MATCHED",
        "NOT_MATCHED",
    ]
    assert many["MatchedTransactions"] == ",".join(sorted([paid.id.hex, other.id.hex]))
    assert (dispute["ReasonCode"], dispute["ChargebackId"]) == ("000.100.204", lost.hex)
    assert dispute["ReasonDesc"]
    assert [row["ReasonCode"] for row in (matched, unknown, fee, many, reversal)] == [""] * 5
    assert (reversal["SettlementFxRate"], reversal["SettlementFee"]) == ("0.009123", "0.2575")


def test_a_bank_accounts_columns_are_filled(shop: Shop, where: Settlement) -> None:
    no_card = dict.fromkeys(("card__number", "card__expiryMonth", "card__expiryYear", "card__cvv", "card__holder"))
    account = {"bankAccount__holder": "Jane Jones", "bankAccount__iban": "DE23100000001234567890"}
    debit = shop.api.pay(paymentBrand="DIRECTDEBIT_SEPA", **no_card, **account, bankAccount__bic="MARKDEF1100")
    file = books.file_of(ClearingInstitute.objects.get())
    books.record(where, file, books.payment_of(debit.id), bank_code="10000000")
    [row] = rows_of(only_file(shop))
    assert (row["AccountNumberLast4"], row["AccountHolder"], row["BankCode"]) == ("7890", "Jane Jones", "10000000")
    [told] = shop.api.get(f"/v1/reports/reconciliations/{where.id.hex}").body["reconciliations"]
    assert told["bankAccount"] == {"last4Digits": "7890", "holder": "Jane Jones", "bankCode": "10000000"}
    assert "card" not in told


@pytest.mark.parametrize("how", ["one payment", "follow-ups", "registration"])
def test_a_line_has_the_descriptor_and_the_means_of_its_chain(shop: Shop, where: Settlement, how: str) -> None:
    """Part B, Reconciliation file: what an institute's file leaves out is that of the payment, as its answer shows it,
    and a capture and a refund have the means of the payment before them."""
    if how == "registration":
        stored = store_card(shop.api, "4200000000000000", **{"card.holder": "Jane Jones"})
        money = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
        first = shop.api.post(f"/v1/registrations/{stored}/payments", money)
    else:
        first = shop.api.pay(paymentType="DB" if how == "one payment" else "PA")
    paid = [first]
    if how == "follow-ups":
        capture = shop.api.follow(first.id, "CP", "92.00")
        paid = [capture, shop.api.follow(capture.id, "RF", "1.00")]
    file = books.file_of(ClearingInstitute.objects.get())
    for payment in paid:
        books.record(where, file, books.payment_of(payment.id))
    expected = (first.body["descriptor"], "0000", "Jane Jones")
    for row in rows_of(only_file(shop)):
        assert (row["Descriptor"], row["AccountNumberLast4"], row["AccountHolder"]) == expected
    for line in shop.api.get(f"/v1/reports/reconciliations/{where.id.hex}").body["reconciliations"]:
        assert (line["descriptor"], *line["card"].values()) == expected


@pytest.mark.parametrize(
    ("value", "text"), [("92", "92.00"), ("0.2500", "0.25"), ("1.0842000000", "1.0842"), ("1E+2", "100.00")]
)
def test_decimals_have_two_places_at_least(value: str, text: str) -> None:
    assert format_decimal(Decimal(value)) == text


def line_of(**values: Any) -> SettlementLine:
    """A line with nothing in it but ``values``."""
    names = DisplayNames(psp="", division="", accounts={}, institutes={"": ""})
    nothing = {**dict.fromkeys(SettlementLine._fields, ""), "number": None, "payment": None, "chargeback": None}
    times = {"presented_at": 0, "time_zone": "UTC"}
    return SettlementLine(**{**nothing, **times, **values, "names": names})


@pytest.mark.parametrize(
    ("moment", "zone", "told"),
    [
        ("2026-05-14T18:00:59+00:00", "Asia/Kolkata", "2026-05-14 23:30:59+0530"),
        ("2026-10-25T00:30:15+00:00", "Europe/Berlin", "2026-10-25 02:30:15+0200"),
        ("2026-10-25T01:30:15+00:00", "Europe/Berlin", "2026-10-25 02:30:15+0100"),
        ("1890-01-01T00:00:30+00:00", "Europe/Berlin", "1890-01-01 00:53:58+005328"),
    ],
)
def test_the_time_of_an_order_is_its_zones_with_the_offset(moment: str, zone: str, told: str) -> None:
    """B19.7. Also where clocks are put back, and where a zone was off by seconds."""
    line = line_of(presented_at=int(datetime.fromisoformat(moment).timestamp()), time_zone=zone)
    [row] = csv.DictReader(io.StringIO(b"".join(render_csv_blocks([line])).decode(), newline=""), delimiter=";")
    assert row["TxRequestTime"] == told


@pytest.mark.parametrize("odd", ["Shop; the best", 'the "best"', "two\nlines", "a\rb", "plain"])
def test_quotes_stand_where_the_csv_writer_puts_them(odd: str) -> None:
    """RFC 4180; rows that need none are written without it."""
    lines = [line_of(descriptor="plain"), line_of(descriptor=odd), line_of()]
    expected = io.StringIO(newline="")
    rows = [CSV_HEADER, *([column.cell(line) for column in RECONCILIATION_COLUMNS] for line in lines)]
    csv.writer(expected, delimiter=";", lineterminator="\r\n").writerows(rows)
    assert b"".join(render_csv_blocks(lines)).decode() == expected.getvalue()


def test_lines_are_fetched_by_the_callers_thread_and_blocks_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database connection belongs to its thread; what renders the blocks is another one."""
    monkeypatch.setattr(file_columns, "CSV_BLOCK_LINES", 2)
    fetching: set[int] = set()

    def lines() -> Iterator[SettlementLine]:
        for number in range(7):
            fetching.add(threading.get_ident())
            yield line_of(settlement_tx_id=f"TX-{number}")

    blocks = list(render_csv_blocks(lines()))
    assert fetching == {threading.get_ident()}
    assert [block.count(b"\r\n") for block in blocks] == [1, 2, 2, 2, 1]
    rows = csv.DictReader(io.StringIO(b"".join(blocks).decode(), newline=""), delimiter=";")
    assert [row["SettlementTxId"] for row in rows] == [f"TX-{number}" for number in range(7)]


def test_the_thread_rests_while_a_block_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """It works while the next lines are fetched; beside the writing it would keep the next query waiting."""
    monkeypatch.setattr(file_columns, "CSV_BLOCK_LINES", 2)
    render, begun = file_columns._render_block, []

    def noted(*arguments: Any) -> bytes:
        begun.append(1)
        return render(*arguments)

    monkeypatch.setattr(file_columns, "_render_block", noted)
    blocks = render_csv_blocks(line_of(settlement_tx_id=f"TX-{number}") for number in range(7))
    assert next(blocks).count(b"\r\n") == 1
    for written, _block in enumerate(blocks, 1):
        assert len(begun) == written
    assert len(begun) == 4


def test_a_fault_of_the_thread_ends_the_file_behind_the_blocks_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_columns, "CSV_BLOCK_LINES", 2)
    fetched: list[int] = []

    def lines() -> Iterator[SettlementLine]:
        for number in range(9):
            fetched.append(number)
            yield line_of(institute="unknown") if number == 3 else line_of()

    blocks = render_csv_blocks(lines())
    assert [next(blocks).count(b"\r\n") for _ in range(2)] == [1, 2]
    with pytest.raises(KeyError, match="unknown"):
        next(blocks)
    assert len(fetched) == 6  # no more than the lines of one block were fetched in vain


def test_a_line_that_cannot_be_rendered_ends_the_file() -> None:
    """An institute without a name in what the file's row fixed: no file is better than one without the line."""
    with pytest.raises(KeyError, match="unknown"):
        list(render_csv_blocks([line_of(), line_of(institute="unknown")]))


def test_the_report_and_the_file_say_the_same(shop: Shop, where: Settlement) -> None:
    """B19.4; issue: sums equal to the rows, always."""
    file = books.file_of(ClearingInstitute.objects.get())
    for number in range(3):
        books.record(where, file, settlement_amount=Decimal(number) + Decimal("0.10"))
    rows = rows_of(only_file(shop))
    records = shop.api.get(f"/v1/reports/reconciliations/{where.id.hex}").body["reconciliations"]
    for row, record in zip(rows, records, strict=True):
        for column in RECONCILIATION_COLUMNS:
            if column.api[0] and "[n]" not in column.api[0]:
                value: Any = record
                for step in column.api[0].split("."):
                    value = value.get(step, "") if isinstance(value, dict) else ""
                assert row[column.csv] == value, column.csv
    assert sum(Decimal(row["SettlementAmount"]) for row in rows) == Decimal("3.30")


# --- of which day ---------------------------------------------------------------------------------------------------


def test_a_day_is_the_merchants_and_every_record_stands_in_one_file(
    shop: Shop, where: Settlement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: written daily per merchant."""
    monkeypatch.setattr(daily_files, "MAX_DAYS_PER_RUN", 4)
    institute = ClearingInstitute.objects.get()
    merchant = books.merchant_of(shop)
    merchant.time_zone = "Asia/Tokyo"
    merchant.save()
    midnight = datetime(2026, 5, 13, 15, tzinfo=UTC)  # in Tokyo
    for moment in (midnight - timedelta(seconds=1), midnight, midnight + timedelta(hours=30)):
        books.record(where, books.file_of(institute, done=moment + timedelta(seconds=30)), settlement_tx_id=str(moment))
    assert daily_files.create_due_daily_files(merchant, most=4)
    daily_files.write_due_daily_files(merchant)
    files = written(merchant)[:4]
    assert [file.day for file in files] == [date(2026, 5, day) for day in (13, 14, 15, 16)]
    assert files[1].begins_at == files[0].ends_at == midnight
    found = [[row["SettlementTxId"] for row in rows_of(file)] for file in files]
    # Done half a minute after it was recorded: the first one belongs to the day in which its file was done.
    moments = [midnight - timedelta(seconds=1), midnight, midnight + timedelta(hours=30)]
    assert found == [[], [str(one) for one in moments[:2]], [str(moments[2])], []]


def test_nothing_is_written_before_the_day_is_over(shop: Shop, stranger: Shop, where: Settlement) -> None:
    merchant = books.merchant_of(shop)
    assert daily_files.next_daily_file_at(merchant) is None
    assert daily_files.write_due_daily_files(None) == 0
    books.record(where, books.file_of(ClearingInstitute.objects.get()))
    due = daily_files.next_daily_file_at(merchant)
    assert due is not None
    assert due > clock.merchant_now(merchant)
    assert (due - daily_files.DAY_END_GRACE).time() == datetime.min.time()
    assert daily_files.write_due_daily_files(merchant) == daily_files.write_due_daily_files(None) == 0
    merchant = books.overnight(shop)
    assert daily_files.write_due_daily_files(None) == 1
    assert daily_files.write_due_daily_files(None) == 0
    assert daily_files.next_daily_file_at(merchant) == due + timedelta(days=1)
    assert written(books.merchant_of(stranger)) == []


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=8), timedelta(days=400)])
def test_the_first_and_every_later_file_is_a_day_of_the_merchants_clock(
    shop: Shop, where: Settlement, zone: str, ahead: timedelta
) -> None:
    """A clock that was moved on before the first line was settled; and one that is moved on after it."""
    merchant = books.merchant_of(shop)
    merchant.time_zone, merchant.clock_offset = zone, ahead
    merchant.save()
    institute = ClearingInstitute.objects.get()
    today = clock.merchant_now(merchant).astimezone(ZoneInfo(zone)).date()
    books.record(where, books.file_of(institute), settlement_tx_id="FIRST")
    merchant = books.overnight(shop)
    assert daily_files.write_due_daily_files(merchant) == 1
    books.record(where, books.file_of(institute), settlement_tx_id="SECOND")
    merchant = forward(shop, days=1)
    assert daily_files.write_due_daily_files(merchant) == 1
    found = [(file.day, [row["SettlementTxId"] for row in rows_of(file)]) for file in written(merchant)]
    assert found == [(today, ["FIRST"]), (today + timedelta(days=1), ["SECOND"])]


def test_a_month_that_is_passed_at_once_begins_with_the_day_of_the_first_line(shop: Shop) -> None:
    """Over HTTP: a settlement file is taken in on the moved clock, and the clock goes on in one step."""
    # At noon, at whatever hour this runs: in the minutes after midnight the day before has no file yet.
    past_midnight = clock.real_now() - clock.real_now().replace(hour=0, minute=0, second=0, microsecond=0)
    pass_time(shop.api, days=8, seconds=int((timedelta(hours=36) - past_midnight).total_seconds()))
    merchant = books.merchant_of(shop)
    first = clock.merchant_now(merchant).astimezone(ZoneInfo(merchant.time_zone)).date()
    paid = books.payment_of(shop.api.pay().id)
    settlement.take_in(settlement.csv([settlement.line(paid, SettlementTxId="LINE")]), settlement.institute())
    pass_time(shop.api, days=3)
    made = written(merchant)
    assert [file.day for file in made] == [first + timedelta(days=number) for number in range(3)]
    assert [[row["SettlementTxId"] for row in rows_of(file)] for file in made] == [["LINE"], [], []]
    pass_time(shop.api, days=2)
    made = written(merchant)
    assert [[row["SettlementTxId"] for row in rows_of(file)] for file in made] == [["LINE"], [], [], [], []]
    assert [file.begins_at for file in made[1:]] == [file.ends_at for file in made[:-1]]
    assert all(file.begins_at <= file.ends_at for file in made), "none ends before it begins, or lines stand in two"
    midnight = datetime.combine(first, time(), ZoneInfo(merchant.time_zone))
    assert made[0].begins_at == midnight - merchant.clock_offset


def test_a_clock_that_is_moved_between_two_files_leaves_each_line_in_one(shop: Shop, where: Settlement) -> None:
    """The days that it skips are over at once. None ends before it begins, else the next has the lines again."""
    books.record(where, books.file_of(ClearingInstitute.objects.get()), settlement_tx_id="LINE")
    daily_files.record_first_days()
    for days in (3, 1, 1):
        daily_files.write_due_daily_files(forward(shop, days=days, minutes=10))
    made = written(books.merchant_of(shop))
    assert len(made) >= 5
    assert [row["SettlementTxId"] for file in made for row in rows_of(file)] == ["LINE"]
    assert all(file.begins_at <= file.ends_at for file in made)


def test_a_run_for_one_merchant_writes_the_files_of_no_other(shop: Shop, stranger: Shop, where: Settlement) -> None:
    institute = ClearingInstitute.objects.get()
    books.record(where, books.file_of(institute))
    books.record(books.settlement(stranger, institute), books.file_of(institute))
    daily_files.record_first_days()
    for one in (books.overnight(shop), books.overnight(stranger)):
        assert daily_files.create_due_daily_files(one, 1)
    assert daily_files.write_due_daily_files(books.merchant_of(shop)) == 1
    assert [file.written_at is not None for file in written(books.merchant_of(stranger))] == [False]
    assert daily_files.write_due_daily_files(None) == 1


# --- of a period ------------------------------------------------------------------------------------------------------


class Folder:
    """Keeps what is written, as the folder of background work does."""

    def __init__(self) -> None:
        self.text = b""

    def append(self, parts: list[str], name: str, content: bytes) -> list[str]:
        self.text += content
        return [*parts, name]


@pytest.mark.parametrize(
    ("currency", "expected"), [("", ["eur", "usd as eur", "usd"]), ("EUR", ["eur", "usd as eur"]), ("USD", ["usd"])]
)
def test_a_period_has_the_lines_that_were_paid_out_in_a_currency(
    shop: Shop, where: Settlement, currency: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of payments in it. In pieces, with one header."""
    monkeypatch.setattr(period_files, "PERIOD_CHUNK_LINES", 1)
    file = books.file_of(ClearingInstitute.objects.get())
    books.record(where, file, settlement_tx_id="eur")
    books.record(where, file, settlement_tx_id="usd as eur", currency="USD", fx_rate="0.9")
    books.record(where, file, settlement_tx_id="usd", currency="USD", settlement_currency="USD")
    assert daily_files.write_due_daily_files(books.overnight(shop)) == 1
    (day,) = written(books.merchant_of(shop))
    folder, alive = Folder(), []
    cursor: dict[str, Any] = {"parts": [], "rows": 0}
    period_files._write_day(day, currency, folder, cursor, lambda: alive.append(1))  # type: ignore[arg-type]
    rows = list(csv.DictReader(io.StringIO(folder.text.decode()), delimiter=";"))
    assert sorted(row["SettlementTxId"] for row in rows) == sorted(expected)
    assert (cursor["rows"], len(alive)) == (len(expected), len(expected) + 1)


def test_a_period_goes_on_behind_the_day_and_the_merchant_that_it_ended_with(shop: Shop, stranger: Shop) -> None:
    shops = sorted((books.merchant_of(shop), books.merchant_of(stranger)), key=lambda one: one.pk)
    first = date(2026, 5, 1)
    days = [first + timedelta(days=number) for number in range(-1, 4)]
    for merchant in shops:
        for day in days:
            at = datetime.combine(day, time(), UTC)
            ReconciliationFile.objects.create(
                merchant=merchant, day=day, begins_at=at, ends_at=at, names={}, offset=timedelta()
            )
    period = period_files.list_period_files([one.pk for one in shops], first, first + timedelta(days=2))
    found = [(file.merchant_id, file.day) for file in period]
    assert found == [(one.pk, day) for one in shops for day in days[1:4]]
    for place, (merchant_id, day) in enumerate(found):
        rest = period_files._behind(period, [merchant_id.hex, day.isoformat()])
        assert [(file.merchant_id, file.day) for file in rest] == found[place + 1 :]
    assert period_files._behind(period, None).count() == 6


def test_days_without_records_have_files_too_and_a_long_gap_is_not_filled(
    shop: Shop, where: Settlement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is missing must be a fault."""
    monkeypatch.setattr(daily_files, "MAX_DAYS_PER_RUN", 4)
    books.record(where, books.file_of(ClearingInstitute.objects.get()))
    merchant = forward(shop, days=3, minutes=10)
    assert daily_files.write_due_daily_files(merchant) == 3
    assert [file.lines for file in written(merchant)] == [1, 0, 0]
    merchant = forward(shop, days=20_000)
    assert daily_files.write_due_daily_files(merchant) == daily_files.MAX_DAYS_PER_RUN
    today = clock.merchant_now(merchant).date()
    assert written(merchant)[3].day == today - daily_files.MAX_BACKFILL
    assert written(merchant)[3].begins_at == written(merchant)[2].ends_at


def test_the_timers_are_listed(shop: Shop) -> None:
    assert {"reconciliation files", "reconciliation deliveries"} <= {timer.name for timer in TIMERS}


# --- again ----------------------------------------------------------------------------------------------------------


def test_a_file_is_made_again_byte_for_byte_whatever_came_later(shop: Shop, where: Settlement, tmp_path: Path) -> None:
    """Issue: rebuilt byte for byte for any past day."""
    institute = ClearingInstitute.objects.get()
    file = books.file_of(institute)
    paid = books.payment_of(shop.api.pay().id)
    matched = books.record(where, file, paid)
    open_one = books.record(where, file)
    made = only_file(shop)
    before = daily_files.build_outbox_path(made).read_bytes()
    later = made.ends_at + timedelta(seconds=1)
    matched.matches.update(undone_at=later)
    Match.objects.create(
        record=open_one, payment=paid.pk, record_type="SETTLED", chosen=True, rule="clerk", made_at=later
    )
    SettlementRecord.objects.update(chargeback=paid.pk, chargeback_at=later, state="NOT_MATCHED")
    books.record(where, books.file_of(institute, done=later))
    institute.name = "Renamed Clearing"
    institute.save()
    shop.channel.name = "renamed"
    shop.channel.save()
    daily_files.build_outbox_path(made).unlink()
    assert daily_files.rewrite_daily_file(made).read_bytes() == before
    assert b"".join(daily_files.render_daily_file(made)) == before
    out = io.StringIO()
    call_command("reconciliation_file", merchant=shop.merchant.entity_id, date=f"{made.day}", output="-", stdout=out)
    assert out.getvalue().encode() == before
    target = tmp_path / "elsewhere.csv"
    call_command("reconciliation_file", merchant=shop.merchant.entity_id, date=f"{made.day}", output=str(target))
    assert target.read_bytes() == before


def test_a_file_that_would_differ_is_not_put_in_its_place(shop: Shop, where: Settlement) -> None:
    record = books.record(where, books.file_of(ClearingInstitute.objects.get()))
    made = only_file(shop)
    before = daily_files.build_outbox_path(made).read_bytes()
    SettlementRecord.objects.filter(pk=record.pk).update(amount="1.00")
    with pytest.raises(daily_files.FileContentChangedError):
        daily_files.rewrite_daily_file(made)
    assert daily_files.build_outbox_path(made).read_bytes() == before
    with pytest.raises(CommandError, match="would not be what it was"):
        call_command("reconciliation_file", merchant=shop.merchant.entity_id, date=f"{made.day}")


def test_the_command_says_what_is_wrong(shop: Shop, where: Settlement) -> None:
    def told(merchant: str, day: str) -> str:
        with pytest.raises(CommandError) as fault:
            call_command("reconciliation_file", merchant=merchant, date=day)
        return str(fault.value)

    own = shop.merchant.entity_id
    assert "no merchant" in told("0" * 32, "2026-05-14")
    assert "yyyy-MM-dd" in told(own, "14.05.2026")
    assert "nothing was settled" in told(own, "2026-05-14")
    books.record(where, books.file_of(ClearingInstitute.objects.get()))
    today = clock.merchant_now(books.merchant_of(shop)).date()
    assert "is over for" in told(own, f"{today}")
    assert "before the first record" in told(own, f"{today - timedelta(days=1)}")
    books.overnight(shop)
    out = io.StringIO()
    call_command("reconciliation_file", merchant=own, date=f"{today}", stdout=out)
    assert "1 lines" in out.getvalue()


def test_a_file_appears_whole_or_not_at_all(outbox: Path) -> None:
    """Issue: atomically."""
    target = outbox / "here" / "file.csv"

    def broken() -> Iterator[bytes]:
        yield b"one\r\n"
        assert not target.exists()
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        daily_files.write_atomically(target, broken())
    assert list(target.parent.iterdir()) == []
    done = daily_files.write_atomically(target, iter([b"header\r\n", b"one\r\ntwo\r\n"]))
    assert (target.read_bytes(), done.lines, done.size) == (b"header\r\none\r\ntwo\r\n", 2, 18)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_many_lines_are_asked_for_a_few_at_a_time(shop: Shop, where: Settlement, monkeypatch: Any) -> None:
    """Issue: streaming."""
    monkeypatch.setattr("reporting.settlement.record_queries.FETCH_SIZE", 2)
    monkeypatch.setattr(file_columns, "CSV_BLOCK_LINES", 2)
    file = books.file_of(ClearingInstitute.objects.get())
    made = [books.record(where, file, settlement_tx_id=f"TX-{number}") for number in range(5)]
    outgoing = only_file(shop)
    with statements() as seen:
        blocks = list(daily_files.render_daily_file(outgoing))
    assert len(blocks) == 4
    assert len([sql for sql in seen if "reporting_settlementrecord" in sql]) == 4  # and once for lines linked late
    assert [row["SettlementTxId"] for row in rows_of(outgoing)] == [record.settlement_tx_id for record in made]


@pytest.mark.django_db(transaction=True)
def test_two_that_write_at_once_write_one_file(committed: Shop) -> None:
    institute = books.institute()
    books.record(books.settlement(committed, institute), books.file_of(institute))
    merchant = books.overnight(committed)
    assert sorted(
        at_once(
            lambda: daily_files.write_due_daily_files(merchant), lambda: daily_files.write_due_daily_files(merchant)
        )
    ) == [0, 1]
    [file] = written(merchant)
    assert [path.name for path in daily_files.build_outbox_path(file).parent.iterdir()] == [file.name]
    assert len(rows_of(file)) == 1


def test_a_line_that_is_linked_after_its_day_stands_in_the_file_of_the_day_of_its_link(shop: Shop) -> None:
    """Decision 0038: the files of days that are over stay what they were."""
    of, paid = settlement.institute(), books.payment_of(shop.api.pay().id)
    nobodys = settlement.line(ClearingInstituteMerchantId="UNKNOWNACC", ConnectorTxId1="unknown", SettlementTxId="LATE")
    settlement.take_in(settlement.csv([settlement.line(paid, SettlementTxId="GOOD"), nobodys]), of)
    made = only_file(shop)
    record = SettlementRecord.objects.select_related("file").get(settlement_tx_id="LATE")
    exception_queue.link_payment(record, paid, settlement.BY)
    again = SettlementRecord.objects.select_related("file").get(pk=record.pk)
    exception_queue.undo_resolution(again, settlement.BY)
    assert again.merchant_id is None
    exception_queue.link_payment(again, paid, settlement.BY)
    assert daily_files.rewrite_daily_file(made).read_bytes() == daily_files.build_outbox_path(made).read_bytes()
    merchant = forward(shop, days=1)
    assert daily_files.write_due_daily_files(merchant) == 1
    _, following = written(merchant)
    assert [row["SettlementTxId"] for row in rows_of(made)] == ["GOOD"]
    assert [row["SettlementTxId"] for row in rows_of(following)] == ["LATE"]
    exception_queue.undo_resolution(SettlementRecord.objects.select_related("file").get(pk=record.pk), settlement.BY)
    assert (
        daily_files.rewrite_daily_file(following).read_bytes() == daily_files.build_outbox_path(following).read_bytes()
    )


def test_a_file_that_was_changed_in_the_outbox_is_made_again_before_anybody_gets_it(
    shop: Shop, where: Settlement
) -> None:
    books.record(where, books.file_of(ClearingInstitute.objects.get()))
    made = only_file(shop)
    before = daily_files.build_outbox_path(made).read_bytes()
    daily_files.build_outbox_path(made).write_bytes(b"something else")
    answer = signed_in(person("max", "manager", shop.merchant)).get(
        f"/admin/reporting/reconciliationfile/{made.pk}/download/"
    )
    assert b"".join(answer.streaming_content) == before
    SettlementRecord.objects.update(descriptor="changed by hand")
    daily_files.build_outbox_path(made).write_bytes(b"something else")
    with pytest.raises(CommandError, match="would not be what it was"):
        call_command("reconciliation_file", merchant=shop.merchant.entity_id, date=f"{made.day}", output="-")
