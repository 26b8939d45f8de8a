"""Settlement files are read to their end, whatever is in them and whichever worker dies. Source:
docs/settlement-files.md; B19."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from chargebacks.stages import DisputeStage
from gateway.core import clock
from gateway.vault.sealing import VaultError
from reporting.models import (
    ClearingInstitute,
    FilePiece,
    Finding,
    LineError,
    Match,
    Settlement,
    SettlementFile,
    SettlementRecord,
)
from reporting.settlement import files, intake, layout, watched_folder
from reporting.settlement.formats import delimited
from reporting.settlement.formats.port import UnreadableFileError
from reporting.settlement.matching import MatchingRun
from tests.support.database import every_cell, places_of
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, HEADER, csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db


CAMT = (
    b'<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02">'
    b"<BkToCstmrStmt><Stmt><Id>S1</Id></Stmt></BkToCstmrStmt></Document>"
)


def receive(content: bytes, of: ClearingInstitute, name: str = "a.csv") -> SettlementFile:
    return files.receive_file(io.BytesIO(content), name=name, institute=of, by=BY, source=SettlementFile.Source.UPLOAD)


def test_every_column_of_a_line_is_kept(shop: Shop) -> None:
    of = institute(time_zone="Asia/Tokyo")
    payment = payment_of(shop.api.pay().id)
    said = line(
        payment,
        Cashflow="POS",
        SettlementReference="P-1",
        SettlementTxId="S-1",
        UniqueID=payment.id.hex,
        ConnectorTxId2="two",
        ConnectorTxId3="three",
        TransactionId="order-0001",
        InvoiceId="invoice-0001",
        Brand="VISA",
        TxRequestTime="2030-01-01 08:30:00",
        SettlementAmount="98.63",
        SettlementCurrency="USD",
        SettlementFee="1.1000",
        SettlementFxRate="1.084",
        SettlementDate="2030-01-02",
        Descriptor="SHOP*ORDER",
        AccountNumberLast4="0000",
        BankCode="12345678",
        AccountHolder="Jane Jones",
        Currency="EUR",
    )
    take_in(csv([said]), of)
    record = SettlementRecord.objects.get()
    assert f"{record.presented_at:%Y-%m-%d %H:%M:%S}" == "2029-12-31 23:30:00"
    kept = (
        record.settlement_tx_id,
        record.tx_id2,
        record.tx_id3,
        record.merchant_transaction_id,
        record.brand,
        record.settlement_currency,
        str(record.settlement_fee),
        str(record.fx_rate),
        str(record.settlement_date),
        record.descriptor,
        record.last4,
        record.bank_code,
        record.account_holder,
        record.our_id,
    )
    assert kept == (
        "S-1",
        "two",
        "three",
        "order-0001",
        "VISA",
        "USD",
        "1.1000",
        "1.0840000000",
        "2030-01-02",
        "SHOP*ORDER",
        "0000",
        "12345678",
        "Jane Jones",
        payment.id,
    )
    settlement = Settlement.objects.get()
    assert (settlement.reference, settlement.merchant_id, settlement.currency) == ("P-1", shop.merchant.id, "USD")
    assert record.findings.count() == 1  # the settlement date lies far after the payment: only the time does not fit


def test_a_time_that_is_not_said_is_that_of_the_file(shop: Shop) -> None:
    """B19.7: defaults to the time the acquirer file was parsed."""
    file = take_in(csv([line(payment_of(shop.api.pay().id))]), institute())
    record = SettlementRecord.objects.get()
    assert (record.presented_at_known, record.presented_at) == (False, file.received_at)


@pytest.mark.parametrize(
    "column, value",
    [
        ("ReconciliationType", "SETTLE"),
        ("PaymentType", "SALE"),
        ("PaymentType", "MONTHLY"),
        ("Cashflow", "+"),
        ("ClearingInstituteMerchantId", "1234"),
        ("UniqueID", "ABC"),
        ("Amount", "-1.00"),
        ("Amount", "1e3"),
        ("Amount", "1.005"),
        ("SettlementAmount", "1.005"),
        ("Amount", "١"),
        ("Amount", ""),
        ("Currency", "EURO"),
        ("Currency", "XXX"),
        ("TxRequestTime", "2030-02-30 00:00:00"),
        ("TxRequestTime", "01.02.2030"),
        ("SettlementDate", "2030-13-01"),
        ("TxRequestTime", "2026-11-21 10:00:00+23:00"),
        ("SettlementDate", ""),
        ("SettlementFee", "1,20"),
        ("SettlementFxRate", "0"),
        ("SettlementFxRate", "NaN"),
        ("SettlementStatus", "OK"),
        ("AccountNumberLast4", "4200000000000000"),
        ("ReasonCode", "000.100.206"),
        ("RespondBy", "2030-01-01"),
        ("Descriptor", "a\x07b"),
        ("SettlementCurrency", "USD"),
        ("Brand", "VI SA"),
    ],
)
def test_a_faulty_line_is_kept_and_shown_and_does_not_stop_the_others(shop: Shop, column: str, value: str) -> None:
    good = line(payment_of(shop.api.pay().id))
    file = take_in(csv([good, {**good, column: value}, {**good, "SettlementTxId": "after"}]), institute())
    assert (file.state, file.lines, file.records, file.faults) == ("DONE", 3, 2, 1)
    error = LineError.objects.get()
    assert error.line == 2
    assert error.column in (column, "SettlementFxRate")
    assert "4200000000000000" not in error.value
    assert list(SettlementRecord.objects.order_by("line").values_list("line", flat=True)) == [1, 3]


def test_an_institute_pays_out_in_three_decimals_where_the_currency_has_them(shop: Shop) -> None:
    """1.5 % of 12.50 KWD are 0.188: what is paid out has three decimals, the payment two (ruling D26)."""
    dinars = {"Currency": "KWD", "SettlementCurrency": "KWD", "Amount": "12.50"}
    paid = line(payment_of(shop.api.pay().id), **dinars, SettlementAmount="12.312", SettlementFee="0.188")
    fee = {**paid, "ReconciliationType": "FEE", "PaymentType": "MONTHLY", "SettlementFee": ""}
    fee |= {"Cashflow": "NEG", "Amount": "1.125", "SettlementAmount": "1.125", "SettlementTxId": "fee"}
    finer = {**paid, "Amount": "12.505", "SettlementTxId": "finer"}
    file = take_in(csv([paid, fee, finer]), institute())
    assert (file.records, file.faults) == (2, 1)
    rows = SettlementRecord.objects.order_by("line")
    assert [(row.amount, row.settlement_amount) for row in rows] == [
        (Decimal("12.50"), Decimal("12.312")),
        (Decimal("1.125"), Decimal("1.125")),
    ]
    assert [str(row.amount) for row in rows] == ["12.50", "1.125"]
    assert not Finding.objects.filter(kind="ARITHMETIC").exists()
    assert LineError.objects.get().column == "Amount"


@pytest.mark.parametrize(
    "raw, why",
    [
        (b"\xff\xfe;broken", "is not UTF-8"),
        (b'SETTLED;"never closed;x', "quote"),
        (b"SETTLED;DEBIT", "has 2 fields where the header has 29"),
        (b"x" * 70_000, "is longer than"),
    ],
)
def test_a_broken_line_spoils_only_itself(shop: Shop, raw: bytes, why: str) -> None:
    payment = payment_of(shop.api.pay().id)
    content = csv([line(payment)]) + raw + b"\r\n" + csv([line(payment)]).split(b"\r\n")[1] + b"\r\n"
    file = take_in(content, institute())
    assert (file.lines, file.records, file.faults) == (3, 2, 1)
    assert why in LineError.objects.get().message


def test_a_line_that_the_database_does_not_take_spoils_only_itself(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout is as strict as the database; if it ever is not, the others of the file come in all the same."""
    monkeypatch.setattr(layout, "_FARTHEST", timedelta(hours=23))
    good = line(payment_of(shop.api.pay().id))
    bad = {**good, "TxRequestTime": "2026-11-21 10:00:00+22:00"}
    file = take_in(csv([bad, good, {**good, "SettlementTxId": "2"}, bad]), institute())
    assert (file.state, file.lines, file.records, file.faults) == ("DONE", 4, 2, 2)
    told = LineError.objects.order_by("line").values_list("line", "column", "message")
    assert list(told) == [(at, "TxRequestTime", "has a value that cannot be kept") for at in (1, 4)]


@pytest.mark.parametrize("refused", [{3}, {4}, {3, 4}, {1, 2}, {5}, {1, 2, 3, 4, 5}])
def test_a_line_that_the_database_does_not_take_spoils_no_batch_before_or_after_its_own(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, refused: set[int]
) -> None:
    """Batches of two lines, also where none of a batch is taken; the next one is read before that is known."""
    monkeypatch.setattr(intake, "INTAKE_BATCH_LINES", 2)
    monkeypatch.setattr(layout, "_FARTHEST", timedelta(hours=23))
    good = line(payment_of(shop.api.pay().id))
    bad = {**good, "TxRequestTime": "2026-11-21 10:00:00+22:00"}
    rows = [{**(bad if at in refused else good), "SettlementTxId": f"L{at}"} for at in range(1, 6)]
    file = take_in(csv(rows), institute())
    assert (file.state, file.lines, file.records, file.faults) == ("DONE", 5, 5 - len(refused), len(refused))
    assert set(LineError.objects.values_list("line", flat=True)) == refused
    assert set(SettlementRecord.objects.values_list("line", flat=True)) == {1, 2, 3, 4, 5} - refused


@pytest.mark.parametrize(
    "content, why",
    [
        (b"", "is empty"),
        (b"hello\r\n", "the format is none of"),
        (b"ReconciliationType;PaymentType\r\nSETTLED;DEBIT\r\n", "the header lacks ClearingInstituteMerchantId"),
        (b"ReconciliationType;Amount;Amount\r\n", "the header names Amount twice"),
        (b"\xff\xfeR\0e\0", "UTF-16"),
        (b'"ReconciliationType;PaymentType\r\nSETTLED;DEBIT\r\n', "the header has a quote"),
        (CAMT.replace(b"UTF-8", b"foo"), "encoding"),
        (CAMT.replace(b"UTF-8", b"shift_jis"), "encoding"),
        ((";".join(HEADER) + "\r\n").encode(), "has no lines"),
    ],
)
def test_what_is_no_settlement_file_is_refused_and_nothing_of_it_is_kept(db: None, content: bytes, why: str) -> None:
    with pytest.raises(UnreadableFileError, match=why):
        receive(content, institute())
    assert not SettlementFile.objects.exists()
    assert not FilePiece.objects.exists()


def test_the_names_of_a_long_header_are_counted_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """65,000 names of 64 KiB: comparing each with all of them took three seconds of a web process."""
    compared = 0

    class Name(str):
        __slots__ = ()

        def strip(self, chars: str | None = None, /) -> Name:
            return self

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    monkeypatch.setattr(delimited, "_fields", lambda text, delimiter: [Name(one) for one in text.split(delimiter)])
    with pytest.raises(UnreadableFileError, match="twice"):
        delimited.CSV_FORMAT.open(io.BytesIO(b"ReconciliationType" + b";x" * 500 + b"\n"), 0, 0)
    assert 0 < compared < 5 * 500


def test_the_same_bytes_are_seen_and_refused_under_any_name(shop: Shop) -> None:
    of = institute()
    content = csv([line(payment_of(shop.api.pay().id))])
    first = receive(content, of, "monday.csv")
    with pytest.raises(files.DuplicateFileError) as seen:
        receive(content, of, "tuesday.csv")
    assert seen.value.file == first
    assert "monday.csv" in str(seen.value)


def test_quotes_other_separators_and_columns_in_any_order_are_read(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    names = tuple(reversed(HEADER))
    row = {**line(payment), "Descriptor": '"SHOP, ""THE"" ONE"', "Extra": "x"}
    content = b"\xef\xbb\xbf" + csv([row], (*names, "Extra")).replace(b";", b",")
    file = take_in(content, institute())
    assert (file.records, file.faults) == (1, 0)
    assert SettlementRecord.objects.get().descriptor == 'SHOP, "THE" ONE'


def test_a_preview_shows_twenty_lines_and_counts_all_errors(shop: Shop) -> None:
    good = line(payment_of(shop.api.pay().id))
    rows = [{**good, "Amount": "x" if number >= 25 else "1.00", "SettlementAmount": "1.00"} for number in range(40)]
    content = csv(rows, (*HEADER, "Mystery"), end="#END;41\r\n")
    found = files.preview_file(io.BytesIO(content), institute())
    assert (len(found.first), found.lines, found.faults, found.format) == (20, 40, 15, "CSV")
    assert (found.unused, found.totals) == (["Mystery"], {"said": 41, "read": 40})
    assert found.first_faults[0].number == 26
    assert found.first_faults[0].faults[0].column == "Amount"
    assert not SettlementFile.objects.exists()


def test_a_preview_adds_up_what_settled_in_and_out_by_currency(db: None) -> None:
    """A fee of a line is a part of its amount, whichever way that went; what failed moves nothing."""
    usd = {"Currency": "USD", "SettlementCurrency": "USD"}
    rows = [
        line(Amount="100.00", SettlementAmount="98.00", SettlementFee="2.00"),
        line(Amount="30.00", SettlementAmount="31.00", SettlementFee="1.00", PaymentType="REFUND"),
        line(Amount="7.00", Cashflow="NEG"),
        line(Amount="50.00", SettlementFee="9.00", SettlementStatus="FAILED"),
        line(Amount="4.00", **usd),
        line(Amount="5.00", **{**usd, "Currency": "EUR"}, SettlementFxRate="1.1"),
        line(Amount="x"),
    ]
    found = files.preview_file(io.BytesIO(csv(rows)), institute())
    sums = {one.currency: (one.lines, one.failed, one.pos, one.neg, one.paid, one.fees) for one in found.sums.values()}
    assert sums == {
        "EUR": (4, 1, Decimal("98.00"), Decimal("38.00"), Decimal("60.00"), Decimal("3.00")),
        "USD": (2, 0, Decimal("9.00"), Decimal(0), Decimal("9.00"), Decimal(0)),
    }
    assert (found.lines, found.faults) == (7, 1)


@pytest.mark.parametrize(("most", "read", "cut"), [(None, 3, False), (3, 3, False), (2, 2, True)])
def test_a_preview_says_when_it_read_not_all(db: None, most: int | None, read: int, cut: bool) -> None:
    found = files.preview_file(io.BytesIO(csv([line()] * 3)), institute(), most)
    assert (found.lines, found.cut) == (read, cut)


def test_two_institutes_may_send_the_same_bytes(db: None) -> None:
    content = csv([line()])
    first, second = receive(content, institute()), receive(content, institute(key="other", name="Other"))
    assert first.pk != second.pk


@pytest.mark.parametrize(("spare", "taken"), [(0, True), (-1, False)])
def test_a_file_may_have_as_many_bytes_as_the_setting_says(db: None, settings: Any, spare: int, taken: bool) -> None:
    content = csv([line()])
    settings.GATEWAY_SETTLEMENT_MAX_BYTES = len(content) + spare
    if taken:
        assert receive(content, institute()).size == len(content)
    else:
        with pytest.raises(UnreadableFileError, match="larger than"):
            receive(content, institute())


def read_line(zone: str = "Europe/Berlin", reasons: dict[str, str] | None = None, **changes: str) -> dict[str, str]:
    """A line as it is staged: column of the table → text; what is wrong by column of the file."""
    reader = layout.LineReader(layout.COLUMN_NAMES, ZoneInfo(zone), reasons or {})
    values = line(**changes)
    row = reader.read(1, [values.get(name, "") for name in layout.COLUMN_NAMES])
    if isinstance(row[0], layout.LineFault):
        return {one.column: one.message for one in row if isinstance(one, layout.LineFault)}
    return dict(zip((name for name, _ in layout.STAGED_COLUMNS), map(str, row), strict=True))


@pytest.mark.parametrize(
    ("zone", "text", "kept"),
    [
        ("Europe/Berlin", "2026-01-15 12:00:00", "2026-01-15 12:00:00+0100"),
        ("Europe/Berlin", "2026-07-15T12:00:00", "2026-07-15T12:00:00+0200"),
        ("America/New_York", "2026-07-15 12:00:00", "2026-07-15 12:00:00-0400"),
        ("Asia/Kathmandu", "2026-07-15 12:00:00", "2026-07-15 12:00:00+0545"),
        ("Europe/Berlin", "2026-07-15 12:00:00Z", "2026-07-15 12:00:00Z"),
        ("Europe/Berlin", "2026-07-15 12:00:00-03:00", "2026-07-15 12:00:00-03:00"),
    ],
)
def test_a_time_without_an_offset_is_the_institutes(zone: str, text: str, kept: str) -> None:
    assert read_line(zone, TxRequestTime=text)["presented_at"] == kept


def test_the_offset_is_that_of_the_hour_within_a_day_of_a_clock_change() -> None:
    reader = layout.LineReader(layout.COLUMN_NAMES, ZoneInfo("Europe/Berlin"))
    place = layout.COLUMN_INDEX["TxRequestTime"] + 2
    found = []
    for hour in ("01", "03", "01"):
        values = line(TxRequestTime=f"2026-03-29 {hour}:30:00")
        found.append(str(reader.read(1, [values.get(name, "") for name in layout.COLUMN_NAMES])[place])[-5:])
    assert found == ["+0100", "+0200", "+0100"]


@pytest.mark.parametrize(
    ("text", "faulty"),
    [
        ("1970-01-01", False), ("2099-12-31", False), ("1969-12-31", True), ("2100-01-01", True), ("2026-02-29", True),
        ("2026-2-01", True), ("20260201", True),
    ],
)  # fmt: skip
def test_a_day_of_settlement_is_of_these_times(text: str, faulty: bool) -> None:
    assert ("SettlementDate" in read_line(SettlementDate=text)) == faulty


@pytest.mark.parametrize(("offset", "faulty"), [("+14:00", 0), ("-14:00", 0), ("+14:01", 1), ("-14:01", 1)])
def test_an_offset_is_one_that_there_is(offset: str, faulty: int) -> None:
    assert len({"TxRequestTime"} & set(read_line(TxRequestTime=f"2026-07-15 12:00:00{offset}"))) == faulty


@pytest.mark.parametrize(
    "column",
    [
        "ReasonCode", "ReasonDesc", "RespondBy", "SchemeReasonCode", "SchemeCaseId", "AcquirerReferenceNumber",
        "DisputeStage",
    ],
)  # fmt: skip
def test_what_is_for_chargebacks_stands_in_no_other_line(column: str) -> None:
    value = {
        "ReasonCode": "000.100.206", "RespondBy": "2030-01-01", "SchemeReasonCode": "10.4",
        "AcquirerReferenceNumber": "1" * 23, "DisputeStage": min(DisputeStage.values),
    }.get(column, "text")  # fmt: skip
    assert read_line(**{column: value}) == {column: "is for chargebacks only, not for SETTLED"}
    assert column not in read_line(ReconciliationType="CHARGEBACK", **{column: value})


@pytest.mark.parametrize(
    ("reasons", "scheme", "expected"),
    [
        ({}, "", ("000.100.220", "10.4")),
        ({"10.4": "000.100.206"}, "", ("000.100.206", "10.4")),
        ({}, "4837", ("000.100.220", "4837")),
    ],
)
def test_a_schemes_code_is_translated_by_the_institutes_table_first_and_kept(
    reasons: dict[str, str], scheme: str, expected: tuple[str, str]
) -> None:
    sent = {"ReconciliationType": "CHARGEBACK", "ReasonCode": "10.4", "SchemeReasonCode": scheme}
    row = read_line(reasons=reasons, **sent)
    assert (row.get("reason_code"), row.get("scheme_reason")) == expected


@pytest.mark.parametrize(
    ("column", "staged"),
    [("Descriptor", "descriptor"), ("SettlementTxId", "settlement_tx_id"), ("SchemeCaseId", "scheme_case")],
)
def test_a_backslash_anywhere_is_one_for_copy(column: str, staged: str) -> None:
    assert read_line(ReconciliationType="CHARGEBACK", **{column: "a\\N"})[staged] == "a\\\\N"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_and_remarks_are_no_lines(db: None, end: str) -> None:
    header, first, second = csv([line(), line()]).decode().split("\r\n")[:3]
    content = end.join([header, "", "# a remark", first, "", second, "", "#END;2", ""]).encode()
    found = files.preview_file(io.BytesIO(content), institute())
    assert (found.lines, found.faults, found.totals) == (2, 0, {"read": 2, "said": 2})


@pytest.mark.parametrize(("more", "faults"), [(0, 0), (1, 1)])
def test_a_line_may_have_its_longest(db: None, monkeypatch: pytest.MonkeyPatch, more: int, faults: int) -> None:
    """What is behind one that is too long is read as ever."""
    header, *rows = csv([line()] * 3).splitlines(keepends=True)
    monkeypatch.setattr(delimited, "MAX_CSV_LINE_BYTES", len(header))
    last, space = HEADER[-1], len(header) + more - len(rows[1])
    rows[1] = csv([line(**{last: "x" * space})]).splitlines(keepends=True)[1]
    assert len(rows[1]) == len(header) + more
    read = list(delimited.CSV_FORMAT.open(io.BytesIO(b"".join([header, *rows])), 0, 0).lines)
    assert [bool(one.faults) for one in read] == [False, bool(faults), False]
    assert [one.number for one in read] == [1, 2, 3]


def test_a_file_that_was_read_in_part_is_not_read_on_in_another_format(shop: Shop) -> None:
    of, content = institute(format="CSV"), csv([line(payment_of(shop.api.pay().id))])
    file = receive(content, of)
    SettlementFile.objects.update(state="FAILED", why="why", lines=1, format="CAMT.053")
    with pytest.raises(files.DuplicateFileError):
        receive(content, of)
    file.refresh_from_db()
    assert (file.state, file.format) == ("FAILED", "CAMT.053")
    SettlementFile.objects.update(lines=0)
    assert receive(content, of).pk == file.pk
    file.refresh_from_db()
    assert (file.state, file.format, file.why) == ("RECEIVED", "CSV", "")


def test_card_numbers_in_a_file_are_nowhere_in_the_database(shop: Shop) -> None:
    """R8. The file's own bytes are sealed while they wait, and gone when it is done."""
    of, number = institute(), "4111111111111111"
    row = line(payment_of(shop.api.pay().id), Descriptor=f"PAID {number}", AccountHolder=number, ReasonDesc="")
    bad = {**row, "AccountNumberLast4": number, "Amount": number}
    file = receive(csv([row, bad]), of, f"{number}.csv")
    assert places_of(number) == set()
    assert intake.process_file(file.pk)
    assert places_of(number) == set()
    assert not FilePiece.objects.exists()


def test_text_that_means_something_to_copy_is_kept_as_it_is(shop: Shop) -> None:
    row = line(
        payment_of(shop.api.pay().id), Descriptor="C:\\new\\table \\N", TransactionId="\\.", SettlementTxId="\\t"
    )
    take_in(csv([row]), institute())
    record = SettlementRecord.objects.get()
    kept = (record.descriptor, record.merchant_transaction_id, record.settlement_tx_id)
    assert kept == ("C:\\new\\table \\N", "\\.", "\\t")


def test_what_was_done_by_hand_while_a_file_was_read_is_counted(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clerk has undone a match, of which the worker that reads the file knows nothing."""
    match_file = intake._match_file

    def undo_and_match(file: SettlementFile) -> None:
        assert (file.matched, file.unmatched) == (1, 0)
        SettlementRecord.objects.filter(file=file).update(state="NOT_MATCHED")
        Match.objects.update(chosen=False, undone_at=clock.real_now())
        match_file(file)

    monkeypatch.setattr(intake, "_match_file", undo_and_match)
    file = take_in(csv([line(payment_of(shop.api.pay().id))]), institute())
    file.refresh_from_db()
    states = list(SettlementRecord.objects.values_list("state", flat=True))
    assert (file.matched, file.multiple, file.unmatched) == tuple(
        states.count(state) for state in ("MATCHED", "MULTIPLE_MATCHES", "NOT_MATCHED")
    )


def test_a_file_is_left_to_whoever_has_its_lease(shop: Shop) -> None:
    file = receive(csv([line(payment_of(shop.api.pay().id))]), institute())
    SettlementFile.objects.filter(pk=file.pk).update(lease_until=clock.real_now() + timedelta(minutes=1))
    assert (intake.process_file(file.pk), intake.process_due_files()) == (False, 0)
    SettlementFile.objects.filter(pk=file.pk).update(lease_until=clock.real_now() - timedelta(minutes=1))
    assert (intake.process_due_files(), intake.process_due_files()) == (1, 0)
    assert SettlementRecord.objects.count() == 1


def test_a_worker_whose_lease_ran_out_writes_nothing_more(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "INTAKE_BATCH_LINES", 2)
    monkeypatch.setattr(files, "delete_content", lambda file: None)
    payment = payment_of(shop.api.pay().id)
    file = receive(csv([line(payment, SettlementTxId=f"L{number}") for number in range(10)]), institute())
    held = intake._lease_file(file.pk)
    assert held is not None
    SettlementFile.objects.filter(pk=file.pk).update(lease_until=clock.real_now() - timedelta(seconds=1))
    assert intake.process_file(file.pk)
    with pytest.raises(intake.IntakeLeaseLostError):
        intake._read_file(held)
    assert SettlementRecord.objects.count() == 10


def test_reading_goes_on_behind_the_last_batch(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every place where a worker can die between two batches; a quarter of the lines is faulty."""
    monkeypatch.setattr(intake, "INTAKE_BATCH_LINES", 3)
    payment = payment_of(shop.api.pay().id)
    rows = [
        line(payment, SettlementTxId=f"L{number}", Amount="x" if number % 4 == 3 else "92.00", SettlementAmount="1")
        for number in range(20)
    ]
    file = receive(csv(rows), institute())
    write, batches = intake._write_batch, []

    class KilledError(Exception):
        pass

    def dies_after_one(*arguments: object) -> None:
        write(*arguments)  # type: ignore[arg-type]
        batches.append(1)
        raise KilledError

    monkeypatch.setattr(intake, "_write_batch", dies_after_one)
    for _ in range(7):
        assert intake.process_file(file.pk) is False
        SettlementFile.objects.filter(pk=file.pk).update(lease_until=None)
    monkeypatch.setattr(intake, "_write_batch", write)
    assert intake.process_file(file.pk)
    file.refresh_from_db()
    assert (file.state, file.lines, file.records, file.faults, len(batches)) == ("DONE", 20, 15, 5, 7)
    assert list(SettlementRecord.objects.order_by("line").values_list("settlement_tx_id", flat=True)) == [
        f"L{number}" for number in range(20) if number % 4 != 3
    ]


def test_a_batch_that_was_sent_and_not_written_is_sent_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread reads on while the database works on a batch; what it has read is lost with the worker, no more."""
    monkeypatch.setattr(intake, "INTAKE_BATCH_LINES", 3)
    payment = payment_of(shop.api.pay().id)
    file = receive(csv([line(payment, SettlementTxId=f"L{number}") for number in range(10)]), institute())
    match, sent = MatchingRun.match_batch, []

    def dies_in_the_second(*arguments: Any) -> tuple[Any, ...]:
        sent.append(1)
        counted = match(*arguments)
        if len(sent) == 2:
            raise RuntimeError("died")
        return counted

    monkeypatch.setattr(MatchingRun, "match_batch", dies_in_the_second)
    assert intake.process_file(file.pk) is False
    file.refresh_from_db()
    assert (file.state, file.lines, file.records, SettlementRecord.objects.count()) == ("READING", 3, 3, 3)
    SettlementFile.objects.filter(pk=file.pk).update(lease_until=None)
    assert intake.process_file(file.pk)
    file.refresh_from_db()
    assert (file.state, file.lines, file.records, len(sent)) == ("DONE", 10, 10, 5)
    assert list(SettlementRecord.objects.order_by("line").values_list("settlement_tx_id", flat=True)) == [
        f"L{number}" for number in range(10)
    ]


def test_a_fault_of_the_thread_fails_the_file_behind_the_batches_before_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read, in the third batch, is told; a mended reader goes on there."""
    monkeypatch.setattr(intake, "INTAKE_BATCH_LINES", 3)
    payment = payment_of(shop.api.pay().id)
    content = csv([line(payment, SettlementTxId=f"L{number}") for number in range(10)])
    file = receive(content, institute())
    read = layout.LineReader.read

    def breaks(reader: layout.LineReader, number: int, values: Any) -> Any:
        if number == 8:
            raise LookupError(number)
        return read(reader, number, values)

    with monkeypatch.context() as broken:
        broken.setattr(layout.LineReader, "read", breaks)
        intake.process_file(file.pk)
    file.refresh_from_db()
    assert (file.state, file.lines, file.records, SettlementRecord.objects.count()) == ("FAILED", 6, 6, 6)
    assert "the file cannot be read (LookupError)" in file.why
    assert receive(content, file.institute).pk == file.pk
    assert intake.process_file(file.pk)
    file.refresh_from_db()
    assert (file.state, file.lines, file.records) == ("DONE", 10, 10)


def test_every_batch_renews_the_lease(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may take longer than the lease, a batch may not."""
    monkeypatch.setattr(intake, "INTAKE_BATCH_LINES", 2)
    payment = payment_of(shop.api.pay().id)
    file = receive(csv([line(payment, SettlementTxId=f"L{number}") for number in range(6)]), institute())
    write, leases = intake._write_batch, []

    def noted(*arguments: Any) -> None:
        leases.append(SettlementFile.objects.get(pk=file.pk).lease_until)
        write(*arguments)
        leases.append(SettlementFile.objects.get(pk=file.pk).lease_until)

    monkeypatch.setattr(intake, "_write_batch", noted)
    assert intake.process_file(file.pk)
    before, after = leases[::2], leases[1::2]
    assert len(after) == 3
    assert all(now > then for then, now in zip(before, after, strict=True))
    assert before[1:] == after[:-1]


def test_a_file_that_fails_again_and_again_is_left_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    file = receive(csv([line(payment_of(shop.api.pay().id))]), institute())

    def fails(*_: object) -> None:
        raise RuntimeError("of ours")

    monkeypatch.setattr(intake, "_write_batch", fails)
    for _ in range(intake.MAX_INTAKE_TRIES):
        intake.process_file(file.pk)
        SettlementFile.objects.filter(pk=file.pk).update(lease_until=None)
    file.refresh_from_db()
    assert (file.state, file.why) == ("FAILED", "an internal error; the log has it")


def test_the_command_says_what_it_did_and_refuses_in_words(shop: Shop, tmp_path: Path, capsys: object) -> None:
    path = tmp_path / "one.csv"
    path.write_bytes(csv([line(payment_of(shop.api.pay().id))]))
    with pytest.raises(CommandError, match="none yet: make one with"):
        call_command("settlement_file", str(path))
    call_command("clearing_institute", "--key", "sim", "--name", "Simulated", "--connector", "simulator")
    call_command("settlement_file", str(path), "--preview")
    call_command("settlement_file", str(path), "--institute", "sim")
    said = capsys.readouterr().out  # type: ignore[attr-defined]
    assert "1 lines, 0 of them faulty; nothing is written" in said
    assert "one.csv: DONE, 1 lines, 1 records, 0 faulty lines; 1 matched" in said
    with pytest.raises(CommandError, match="has the same content"):
        call_command("settlement_file", str(path))
    with pytest.raises(CommandError, match="known are simulator, stub, nobody"):
        call_command("clearing_institute", "--key", "x", "--connector", "y")
    with pytest.raises(CommandError, match="No such file"):
        call_command("settlement_file", str(tmp_path / "none.csv"))


@pytest.mark.parametrize("by, read", [("sent again", 0), ("sent again", 2), ("button", 0)])
def test_a_file_that_failed_is_read_on_and_nobody_sees_it_before_it_is_whole(shop: Shop, by: str, read: int) -> None:
    """The API's sums are those of the CSV, always: neither tells of a file that is not read to its end."""
    paid, paid_on = payment_of(shop.api.pay().id), {"SettlementDate": "2030-01-02"}
    of, content = institute(), csv([line(paid, **paid_on), line(payment_of(shop.api.pay().id), **paid_on)])
    file = receive(content, of)
    if read:
        assert intake.process_file(file.pk)
    SettlementFile.objects.filter(pk=file.pk).update(state="FAILED", why="an internal error; the log has it")
    day = {"date.from": "2030-01-02", "date.to": "2030-01-02"}
    assert shop.api.get("/v1/reports/reconciliations", day).body["aggregations"] == []
    client = signed_in(person("max", "manager", shop.merchant))
    page = f"/admin/reporting/settlementfile/{file.pk}/"
    if by == "button":
        assert "Read it again" in client.get(f"{page}change/").content.decode()
        client.post(f"{page}again/")
    else:
        assert receive(content, of).pk == file.pk
    assert intake.process_file(file.pk)
    with pytest.raises(files.DuplicateFileError):
        receive(content, of)
    [told] = shop.api.get("/v1/reports/reconciliations", day).body["aggregations"]
    assert (told["count"], SettlementRecord.objects.count()) == (2, 2)


def test_a_file_that_has_fewer_lines_than_it_says_is_told_of(shop: Shop, tmp_path: Path) -> None:
    """What was cut on its way must not pass for the whole."""
    of, path = institute(), tmp_path / "cut.csv"
    path.write_bytes(csv([line(payment_of(shop.api.pay().id))], end="#END;99\r\n"))
    out = io.StringIO()
    call_command("settlement_file", str(path), stdout=out)
    file = SettlementFile.objects.get(institute=of)
    assert (file.state, file.why) == ("DONE", "the file says that it has 99 lines; 1 were there")
    assert file.why in out.getvalue()
    page = signed_in(person("max", "manager", shop.merchant)).get("/admin/reporting/settlementfile/")
    assert file.why in page.content.decode()


def test_no_file_and_no_leftovers_keep_the_other_files_of_a_folder_waiting(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    institute(key="another", name="Another")
    institute()
    monkeypatch.setattr(watched_folder, "MAX_FOLDER_FILES_PER_RUN", 3)
    good = csv([line(payment_of(shop.api.pay().id))])
    for key in ("another", "simulated"):
        (tmp_path / key).mkdir()
        for number in range(4):
            (tmp_path / key / f".{number}.part").write_bytes(b"x")
        (tmp_path / key / "0.csv").write_bytes(b'"ReconciliationType;PaymentType\r\nSETTLED;DEBIT\r\n')
        (tmp_path / key / "1.xml").write_bytes(CAMT.replace(b"UTF-8", b"foo"))
        (tmp_path / key / "2.csv").write_bytes(good)
        for path in (tmp_path / key).iterdir():
            os.utime(path, (time.time() - 60, time.time() - 60))
    with override_settings(GATEWAY_SETTLEMENT_FOLDER=str(tmp_path)):
        assert watched_folder.take_in_folder_files() == 6
    for key in ("another", "simulated"):
        assert [path.name for path in (tmp_path / key / "done").iterdir()] == ["2.csv"]
        assert "quote" in (tmp_path / key / "failed" / "0.csv.txt").read_text()
        assert "encoding" in (tmp_path / key / "failed" / "1.xml.txt").read_text()


def test_files_of_the_watched_folder_are_taken_in_and_moved_away(shop: Shop, tmp_path: Path) -> None:
    of, content = institute(), csv([line(payment_of(shop.api.pay().id))])
    inbox = tmp_path / of.key
    inbox.mkdir()
    old = time.time() - 60
    for name, octets in (
        ("a.csv", content),
        ("b.csv", content),
        ("c.csv", b"nonsense"),
        ("d.csv.part", content),
        (".e.csv", content),
    ):
        (inbox / name).write_bytes(octets)
        os.utime(inbox / name, (old, old))
    (inbox / "growing.csv").write_bytes(content)
    (tmp_path / "outside.csv").write_bytes(content + b"\r\n")
    (inbox / "link.csv").symlink_to(tmp_path / "outside.csv")
    with override_settings(GATEWAY_SETTLEMENT_FOLDER=str(tmp_path)):
        assert (watched_folder.take_in_folder_files(), watched_folder.take_in_folder_files()) == (3, 0)
    assert sorted(path.name for path in (inbox / "done").iterdir()) == ["a.csv"]
    assert sorted(path.name for path in (inbox / "failed").iterdir()) == [
        "b.csv",
        "b.csv.txt",
        "c.csv",
        "c.csv.txt",
    ]
    assert "same content" in (inbox / "failed" / "b.csv.txt").read_text()
    left = {path.name for path in inbox.iterdir() if not path.is_dir()}
    assert left == {"d.csv.part", ".e.csv", "growing.csv", "link.csv"}
    assert intake.process_due_files() == 1


def test_the_layout_has_the_names_of_the_reconciliation_file() -> None:
    header = (Path(__file__).parents[1] / "spec" / "reconciliation_header.txt").read_text().strip().split(";")
    own = {"SettlementReference", "RespondBy", "TransactionId", "InvoiceId"}
    own |= {"SchemeReasonCode", "SchemeCaseId", "AcquirerReferenceNumber", "DisputeStage"}
    assert set(layout.COLUMN_NAMES) - own <= set(header)
    told_by_us = {
        "MerchantAccountId",
        "MerchantAccountName",
        "PspId",
        "DivisionId",
        "MerchantId",
        "ShortId",
        "SettlementFileFormat",
        "ClearingInsitituteName",
        "MatchingStatus",
        "MatchedTransactions",
        "ChargebackId",
    }
    assert set(header) - set(layout.COLUMN_NAMES) == told_by_us


@pytest.mark.parametrize("size", [1, 1_000, 10_000])
def test_the_pieces_of_a_file_are_its_bytes_in_order(shop: Shop, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """A thread seals each while the one before is stored."""
    monkeypatch.setattr(files, "FILE_PIECE_BYTES", size)
    content = csv([line(payment_of(shop.api.pay().id), Descriptor=f"ORDER {number}") for number in range(9)])
    file = receive(content, institute())
    stored = files.load_pieces(file, 0, len(content) + 1)
    assert sorted(stored) == list(range(-(-len(content) // size)))
    assert b"".join(files.read_piece(stored[number]) for number in sorted(stored)) == content
    assert files.load_pieces(file, 1, 3).keys() == {1, 2} & stored.keys()


@pytest.mark.parametrize("broken", [0, 1, 3])
def test_a_piece_that_cannot_be_sealed_leaves_nothing_of_the_file(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    monkeypatch.setattr(files, "FILE_PIECE_BYTES", 500)
    content = csv([line(payment_of(shop.api.pay().id), Descriptor=f"ORDER {number}") for number in range(9)])
    seal, sealed = files.seal_piece, []

    def breaks(octets: bytes, ident: UUID) -> bytes:
        sealed.append(ident)
        if len(sealed) == broken + 1:
            raise VaultError("no key")
        return seal(octets, ident)

    monkeypatch.setattr(files, "seal_piece", breaks)
    with pytest.raises(VaultError, match="no key"):
        receive(content, institute())
    assert (SettlementFile.objects.count(), FilePiece.objects.count()) == (0, 0)


def test_no_cell_of_the_database_holds_a_piece_in_clear(shop: Shop) -> None:
    receive(csv([line(payment_of(shop.api.pay().id), Descriptor="VERY-SPECIAL-WORD")]), institute())
    assert not any("VERY-SPECIAL-WORD" in text for _, text in every_cell())


_KILLED = """
import django, os; django.setup()
from reporting.settlement import intake
intake.INTAKE_BATCH_LINES = 50
write, left = intake._write_batch, [int(os.environ["BATCHES"])]
def dies(*arguments):
    if left[0] == 0:
        os.kill(os.getpid(), 9)
    left[0] -= 1
    write(*arguments)
intake._write_batch = dies
intake.process_file(__import__("uuid").UUID(os.environ["FILE"]))
"""


@pytest.mark.django_db(transaction=True)
def test_a_process_that_is_killed_loses_and_doubles_no_line(committed: Shop) -> None:
    """kill -9 after two batches, in a process of its own; another one goes on when the lease ends."""
    of = institute()
    payment = payment_of(committed.api.pay().id)
    file = receive(csv([line(payment, SettlementTxId=f"L{number}") for number in range(180)]), of)
    url = connection.settings_dict
    address = f"postgres://{url['USER']}:{url['PASSWORD']}@{url['HOST']}:{url['PORT']}/{url['NAME']}"
    environment = {**os.environ, "DATABASE_URL": address, "FILE": file.id.hex, "BATCHES": "2"}
    done = subprocess.run([sys.executable, "-c", _KILLED], env=environment, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()
    file.refresh_from_db()
    assert (file.state, file.lines, SettlementRecord.objects.count()) == ("READING", 100, 100)
    assert intake.process_file(file.pk) is False
    SettlementFile.objects.filter(pk=file.pk).update(lease_until=clock.real_now())
    assert intake.process_file(file.pk)
    file.refresh_from_db()
    assert (file.state, file.lines, file.records) == ("DONE", 180, 180)
    lines = sorted(SettlementRecord.objects.values_list("line", flat=True))
    assert lines == list(range(1, 181))


def test_a_file_that_stops_its_worker_each_time_is_left_alone(shop: Shop) -> None:
    """kill -9 counts nothing at its end, so a try counts at its beginning; getting further begins anew."""
    file = receive(csv([line(payment_of(shop.api.pay().id))]), institute())
    behind = receive(csv([line(payment_of(shop.api.pay().id))]), file.institute, "b.csv")
    for number in range(intake.MAX_INTAKE_TRIES):
        assert intake._lease_file(file.pk) is not None
        SettlementFile.objects.filter(pk=file.pk).update(lease_until=None)
        assert SettlementFile.objects.get(pk=file.pk).tries == number + 1
    waiting = [file.pk for file in SettlementFile.objects.order_by("tries", "received_at")]
    assert waiting == [behind.pk, file.pk]
    assert intake.process_due_files() == 1
    file.refresh_from_db()
    assert (file.state, file.tries) == ("FAILED", intake.MAX_INTAKE_TRIES + 1)
    assert "begun 5 times" in file.why
    assert files.retry_failed_file(file, BY)
    assert intake.process_file(file.pk)
    file.refresh_from_db()
    assert (file.state, file.records) == ("DONE", 1)


def test_the_second_pass_goes_on_behind_its_last_slice(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every slice is a transaction; a worker that is killed loses the one it was at."""
    monkeypatch.setattr(intake, "MATCHING_SLICE_RECORDS", 2)
    paid = [payment_of(shop.api.pay(merchantTransactionId=f"order-number-{number}").id) for number in range(5)]
    none = {"ConnectorTxId1": ""}
    rows = [line(one, TransactionId=f"order-number-{number}", **none) for number, one in enumerate(paid)]
    file = receive(csv(rows), institute())
    rematch, seen = intake.rematch_file, []

    class KilledError(BaseException):
        pass

    def killed_in_the_second(*arguments: object, **more: object) -> int:
        seen.append((more["after"], more["last"]))
        changed = rematch(*arguments, **more)  # type: ignore[arg-type]
        if len(seen) == 2:
            raise KilledError
        return changed

    monkeypatch.setattr(intake, "rematch_file", killed_in_the_second)
    with pytest.raises(KilledError):
        intake.process_file(file.pk)
    file.refresh_from_db()
    assert (file.state, file.match_line, file.tries) == ("MATCHING", seen[0][1], 0)
    assert SettlementRecord.objects.filter(state="MATCHED").count() == 2
    SettlementFile.objects.filter(pk=file.pk).update(lease_until=None)
    assert intake.process_file(file.pk)
    assert seen[1] == seen[2]
    assert [after for after, _ in seen] == [0, seen[0][1], seen[0][1], seen[1][1]]
    file.refresh_from_db()
    assert (file.state, file.matched, file.unmatched) == ("DONE", 5, 0)
