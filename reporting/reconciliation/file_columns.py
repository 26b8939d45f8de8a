"""The columns of reconciliation as one table, read by the CSV file, the detail report and the docs.

Spellings are the contract's, ClearingInsitituteName among them. A required column is never empty: where institute and
payment have no value, the fallbacks here apply. Source: Part B, Reconciliation file; decisions, section 8; decision
0026.
"""

from __future__ import annotations

import csv
import io
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, Final
from zoneinfo import ZoneInfo

from gateway.core import identifiers, result_codes
from reporting.models import RecordType
from reporting.settlement.record_queries import SettlementLine

CHARGEBACK_RECORD_TYPES: Final = (RecordType.CHARGEBACK, RecordType.CHARGEBACK_REVERSAL)
CSV_BLOCK_LINES: Final = 2_000
"""Lines of CSV rendered at a time: a file of a million needs no more memory than one of a thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationColumn:
    """One column. ``api``: the dotted name in the detail report, of a card and of a bank account where they differ; ''
    for none. ``need``: R required, O optional, C conditional."""

    csv: str
    api: tuple[str, ...]
    words: str
    need: str
    cell: Callable[[SettlementLine], str]
    about: str

    def api_of(self, line: SettlementLine) -> str:
        return self.api[-1] if line.is_bank_account else self.api[0]


def format_decimal(value: Decimal) -> str:
    """A decimal with at least two decimals and no trailing zeros behind them: 92.00, 0.2575."""
    return _decimal(f"{value:f}")


@lru_cache(maxsize=10_000)
def _decimal(text: str) -> str:
    whole, _, part = text.partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"


def _time(line: SettlementLine) -> str:
    minute, second = divmod(line.presented_at, 60)
    minute_text, offset = _format_minute(minute, line.time_zone)
    # Historic offsets include seconds, so a UTC minute need not begin with a local one.
    if len(offset) > len("+0000"):
        return _format_moment(line.presented_at, line.time_zone).strftime("%Y-%m-%d %H:%M:%S%z")
    return f"{minute_text}:{second:02}{offset}"


@lru_cache(maxsize=20_000)
def _format_minute(minute: int, zone: str) -> tuple[str, str]:
    """The zone's time and offset at ``minute``. Cached: the lines of a file are of few days, so most minutes repeat."""
    moment = _format_moment(minute * 60, zone)
    return f"{moment:%Y-%m-%d %H:%M}", f"{moment:%z}"


def _format_moment(seconds: int, zone: str) -> datetime:
    return datetime.fromtimestamp(seconds, ZoneInfo(zone))


def _transaction_id(line: SettlementLine) -> str:
    return line.paid_transaction_id or line.merchant_transaction_id or line.payment or line.settlement_tx_id or line.id


def _reason_text(line: SettlementLine) -> str:
    if line.record_type not in CHARGEBACK_RECORD_TYPES:
        return ""
    if line.reason_text or not line.reason_code:
        return line.reason_text
    return result_codes.find_result_code(line.reason_code).description[:128]


def _last4(line: SettlementLine) -> str:
    if known := line.last4 or line.paid_card_last4:
        return known
    end = line.paid_account_end
    return end if len(end) == 4 and end.isalnum() else ""


def _holder(line: SettlementLine) -> str:
    paid = line.paid_account_holder if line.is_bank_account else line.paid_card_holder
    return line.account_holder or paid[:128]


def _rows(*rows: tuple[str, str, str, str, Callable[[SettlementLine], str], str]) -> tuple[ReconciliationColumn, ...]:
    return tuple(
        ReconciliationColumn(
            csv=csv, api=tuple(api.split(" or ")) if api else ("",), words=words, need=need, cell=cell, about=about
        )
        for csv, api, words, need, cell, about in rows
    )


def _plain_cell(name: str) -> Callable[[SettlementLine], str]:
    """A cell that is one field of the line, unchanged."""
    return operator.attrgetter(name)


_AN64: Final = "AN 64"
RECONCILIATION_COLUMNS: Final = _rows(
    (
        "ReconciliationType",
        "recordType",
        "SETTLED, CHARGEBACK, CHARGEBACK REVERSAL, FEE",
        "R",
        _plain_cell("record_type"),
        "What the line is.",
    ),
    (
        "PaymentType",
        "transactionType",
        "DEBIT, CREDIT, REFUND, BATCH, MONTHLY, SUBMERCHANT, PAYMENT_FACILITATOR, "
        "AUTH_FEE, CAPTURE_FEE, CANCEL_FEE, REFUND_FEE",
        "R",
        _plain_cell("transaction_type"),
        "DB and CP are DEBIT, CD is CREDIT, RF is REFUND; the others are fees.",
    ),
    ("Cashflow", "settlement.cashflow", "POS or NEG", "R", _plain_cell("cashflow"), "Towards you, or away from you."),
    (
        "ClearingInstituteMerchantId",
        "clearingInstitute.merchantId",
        "AN 5-64",
        "R",
        _plain_cell("institute_merchant_id"),
        "Your account at the institute.",
    ),
    (
        "MerchantAccountId",
        "merchantAccount.id",
        "AN 32",
        "R",
        lambda line: line.account or line.channel or line.merchant,
        "The same account here; where it is not known, the payment's channel, else the merchant.",
    ),
    ("MerchantAccountName", "merchantAccount.name", "AN", "O", _plain_cell("account_name"), "Its name."),
    ("PspId", "pspEntityId", "AN 32", "R", _plain_cell("psp"), "The payment service provider."),
    ("DivisionId", "divisionEntityId", "AN 32", "O", _plain_cell("division"), "The division."),
    ("MerchantId", "merchantEntityId", "AN 32", "R", _plain_cell("merchant"), "The merchant."),
    (
        "SettlementTxId",
        "settlement.id",
        "AN 0-64",
        "O",
        _plain_cell("settlement_tx_id"),
        "The institute's id of the line.",
    ),
    ("UniqueID", "payment.id", "AN 32", "O", lambda line: line.payment or "", "The payment, once it is matched."),
    (
        "ShortId",
        "",
        "AN 14",
        "O",
        lambda line: identifiers.format_short_id(line.number) if line.number is not None else "",
        "Its short id.",
    ),
    (
        "ConnectorTxId1",
        "clearingInstitute.txId1",
        _AN64,
        "O",
        _plain_cell("tx_id1"),
        "The institute's ids of the payment.",
    ),
    ("ConnectorTxId2", "clearingInstitute.txId2", _AN64, "O", _plain_cell("tx_id2"), ""),
    ("ConnectorTxId3", "clearingInstitute.txId3", _AN64, "O", _plain_cell("tx_id3"), ""),
    ("Amount", "amount", "decimal", "R", lambda line: _decimal(line.amount), "Of the payment or the fee, unsigned."),
    ("Currency", "currency", "A3 ISO 4217", "R", _plain_cell("currency"), ""),
    ("Brand", "paymentBrand", "A up to 16", "O", lambda line: line.brand or line.paid_brand[:16], ""),
    (
        "TxRequestTime",
        "presentmentDate",
        "time of order",
        "O",
        _time,
        "In the institute's time zone, which it names; where the institute gives none, when its file came.",
    ),
    (
        "SettlementAmount",
        "settlement.amount",
        "decimal",
        "R",
        lambda line: _decimal(line.settlement_amount),
        "What is paid out for the line, unsigned: Cashflow tells the direction.",
    ),
    ("SettlementCurrency", "settlement.currency", "A3 ISO 4217", "R", _plain_cell("settlement_currency"), ""),
    (
        "SettlementFee",
        "settlement.fee",
        "decimal",
        "O",
        lambda line: "" if line.settlement_fee is None else _decimal(line.settlement_fee),
        "Taken off already, in the settlement currency.",
    ),
    (
        "SettlementFxRate",
        "settlement.fxRate",
        "decimal",
        "R",
        lambda line: _decimal(line.fx_rate),
        "Settlement currency for one of Currency.",
    ),
    (
        "SettlementDate",
        "settlement.date",
        "date",
        "R",
        _plain_cell("settlement_date"),
        "When the institute paid, in its time zone.",
    ),
    ("SettlementStatus", "settlement.status", "SUCCESS, FAILED", "R", _plain_cell("settlement_status"), ""),
    (
        "Descriptor",
        "descriptor",
        "AN 128",
        "O",
        lambda line: line.descriptor or line.paid_descriptor,
        "Text on the shopper's statement.",
    ),
    ("AccountNumberLast4", "card.last4Digits or bankAccount.last4Digits", "AN 4", "O", _last4, "Never more."),
    ("BankCode", "bankAccount.bankCode", "AN 12", "O", lambda line: line.bank_code or line.paid_bank_code, ""),
    ("AccountHolder", "card.holder or bankAccount.holder", "AN 128", "O", _holder, ""),
    (
        "ReasonCode",
        "result.code",
        "AN 2-11 digits and dots",
        "O",
        lambda line: line.reason_code if line.record_type in CHARGEBACK_RECORD_TYPES else "",
        "Chargebacks only: 000.100.2nn.",
    ),
    ("ReasonDesc", "result.description", "AN 128", "O", _reason_text, "Chargebacks only."),
    ("SettlementFileFormat", "settlement.format", "AN 32", "R", _plain_cell("format"), "Of the institute's file."),
    (
        "ClearingInsitituteName",
        "clearingInstitute.name",
        _AN64,
        "R",
        _plain_cell("institute_name"),
        "The institute. Spelt as the contract spells it.",
    ),
    (
        "MatchingStatus",
        "matchedTransactions.status",
        "MATCHED, MULTIPLE_MATCHES, NOT_MATCHED",
        "C",
        _plain_cell("matching"),
        "Empty for fees: no payment is behind them.",
    ),
    (
        "MatchedTransactions",
        "matchedTransactions.payment[n].id",
        "AN 32",
        "C",
        lambda line: ",".join(line.matched),
        "Joined by commas, where several may be meant.",
    ),
    (
        "ChargebackId",
        "chargebackTransaction.id",
        "AN 32",
        "C",
        lambda line: line.chargeback or "",
        "The CB or CR payment that a matched chargeback led to.",
    ),
    (
        "TransactionId",
        "merchantTransactionId",
        "AN 8-255",
        "R",
        _transaction_id,
        "Your reference; without one the payment's id, else SettlementTxId, else the record's own id.",
    ),
    (
        "InvoiceId",
        "merchantInvoiceId",
        "AN 8-255",
        "O",
        lambda line: line.paid_invoice_id or line.merchant_invoice_id,
        "Your invoice number.",
    ),
)
CSV_HEADER: Final = tuple(column.csv for column in RECONCILIATION_COLUMNS)
_CELLS: Final = tuple(column.cell for column in RECONCILIATION_COLUMNS)
_LIST: Final = "[n]."


def render_csv_blocks(
    lines: Iterable[SettlementLine], *, escape: Callable[[str], str] | None = None
) -> Iterator[bytes]:
    """The CSV file in blocks: UTF-8, header, semicolons, CRLF, quotes of RFC 4180, dot decimals. ``escape``: of each
    cell, in a file for people (docs/decisions/0119).

    A thread renders one block while the caller's thread, which has the database connection, fetches the next one. It
    rests while a block is written: the writer would wait for the interpreter's lock, and the next query for the writer.
    """
    yield _render_rows(lambda: [CSV_HEADER])
    following = iter(lines)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="csv") as thread:
        rendered: Future[bytes] | None = None
        while block := list(islice(following, CSV_BLOCK_LINES)):
            if rendered is not None:
                yield rendered.result()
            rendered = thread.submit(_render_block, block, escape)
        if rendered is not None:
            yield rendered.result()


def _render_block(block: Sequence[SettlementLine], escape: Callable[[str], str] | None) -> bytes:
    def rows() -> Iterator[Sequence[str]]:
        for line in block:
            row = [cell(line) for cell in _CELLS]
            yield row if escape is None else [escape(cell) for cell in row]

    return _render_rows(rows)


def _render_rows(rows: Callable[[], Iterable[Sequence[str]]]) -> bytes:
    """Rows as CSV text. Nearly no block needs quotes, and the csv writer checks every character, which costs more than
    all the rest: it is used only where a block has a delimiter or quote inside a value."""
    joined = [";".join(row) for row in rows()]
    text = "\r\n".join((*joined, ""))
    delimiters, breaks = len(joined) * (len(RECONCILIATION_COLUMNS) - 1), len(joined)
    if '"' in text or (text.count(";"), text.count("\r"), text.count("\n")) != (delimiters, breaks, breaks):
        written = io.StringIO(newline="")
        csv.writer(written, delimiter=";", lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL).writerows(rows())
        text = written.getvalue()
    return text.encode()


def render_record(line: SettlementLine) -> dict[str, Any]:
    """A record in the detail report: API names, nested at the dots; empty fields are left out.

    merchantMemo is added if the payment has one: it appears in reporting only (ruling D17).
    """
    rendered: dict[str, Any] = {}
    for column in RECONCILIATION_COLUMNS:
        if not (name := column.api_of(line)):
            continue
        if _LIST in name:
            if line.matched:
                place, _, leaf = name.partition(_LIST)
                _put_nested(rendered, place, [{leaf: payment} for payment in line.matched])
        elif value := column.cell(line):
            _put_nested(rendered, name, value)
    if line.memo:
        rendered["merchantMemo"] = line.memo
    return rendered


def _put_nested(target: dict[str, Any], name: str, value: Any) -> None:
    *path, leaf = name.split(".")
    for step in path:
        target = target.setdefault(step, {})
    target[leaf] = value
