"""The columns of settlement files: one row per column, with the values it allows.

Every format is read into these columns first, so that one place defines a valid line. The names are those of the
reconciliation file; a valid line is written to the database unchanged, so checks are exact. Source: Part B,
Reconciliation file; docs/settlement-files.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from zoneinfo import ZoneInfo

from chargebacks.evidence_checklist import OTHER_CHARGEBACK_REASON, is_chargeback_reason
from chargebacks.stages import DisputeStage, resolve_scheme_reason
from gateway.core import identifiers
from gateway.core.masking import mask_text
from gateway.core.money import CURRENCY_CODES, currency_exponent
from reporting.settlement.models import RecordType, TransactionType

MAX_FAULT_VALUE_CHARS: Final = 64
"""Characters of a faulty value that are stored and shown."""
_DIGITS: Final = re.compile(r"[0-9](?:[ +-]?[0-9]){11}")
"""A pattern that every card number matches; most lines do not, and are not examined further."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
ValueTest = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class SettlementColumn:
    """One column. ``test``: true for an allowed value; ``expects``: the same in words, for the error and the docs."""

    name: str
    test: ValueTest
    expects: str
    _: KW_ONLY
    required: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFault:
    """A fault in one column of a line; ``value`` is masked and shortened."""

    column: str
    value: str
    message: str


def _matches(pattern: str) -> ValueTest:
    return re.compile(pattern).fullmatch


@lru_cache(maxsize=4096)
def _is_date(text: str) -> bool:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return "1970" <= text < "2100"


_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:?[0-9]{2})?")


_FARTHEST: Final = timedelta(hours=14)
"""Largest offset from UTC; PostgreSQL accepts none above 15:59."""


def _is_time(text: str) -> bool:
    if _TIME.fullmatch(text) is None or not "1970" <= text < "2100":
        return False
    try:
        offset = datetime.fromisoformat(text).utcoffset()
    except ValueError:
        return False
    return offset is None or abs(offset) <= _FARTHEST


PAYMENT_TRANSACTION_TYPES: Final = frozenset(
    {TransactionType.DEBIT.value, TransactionType.CREDIT.value, TransactionType.REFUND.value}
)
FEE_TRANSACTION_TYPES: Final = frozenset(TransactionType.values) - PAYMENT_TRANSACTION_TYPES
CHARGEBACK_TYPE_VALUES: Final = frozenset({RecordType.CHARGEBACK.value, RecordType.CHARGEBACK_REVERSAL.value})
THREE_DECIMALS: Final = 3
_MONEY = _matches(r"[0-9]{1,12}(\.[0-9]{1,3}0{0,4})?")
_FINER_THAN_CENTS = re.compile(r"\.[0-9]{2}0*[1-9]")
_MONEY_WORDS = "must be digits with up to two decimals and no sign, e.g. 92.10"
_MONEY_IN_THREE_WORDS = f"{_MONEY_WORDS}; paid out, or a fee, in a currency of three decimals: up to three"
_TEXT = r"[^\x00-\x1f\x7f]"

SETTLEMENT_COLUMNS: Final = (
    SettlementColumn("ReconciliationType",
        frozenset(RecordType.values).__contains__, f"must be one of {', '.join(RecordType.values)}",
        required=True, about="What the line is."),
    SettlementColumn("PaymentType",
        frozenset(TransactionType.values).__contains__, f"must be one of {', '.join(TransactionType.values)}",
        required=True, about="DEBIT, CREDIT, REFUND of payments and chargebacks; the others of fees."),
    SettlementColumn("Cashflow", frozenset({"POS", "NEG"}).__contains__, "must be POS or NEG",
        about="Towards the merchant or away. Without it: by the two above."),
    SettlementColumn("ClearingInstituteMerchantId", _matches(rf"{_TEXT}{{5,64}}"), "must be 5 to 64 characters",
        required=True, about="The merchant's account at the institute."),
    SettlementColumn("SettlementReference", _matches(rf"{_TEXT}{{1,64}}"), "must be 1 to 64 characters",
        about="The payout or batch that the line is part of."),
    SettlementColumn("SettlementTxId", _matches(rf"{_TEXT}{{1,64}}"), "must be up to 64 characters",
        about="The institute's id of the line."),
    SettlementColumn("UniqueID", _matches(r"[0-9a-f]{32}"), "must be 32 lower-case hex digits",
        about="Our payment's id, if the institute sends it back."),
    SettlementColumn("ConnectorTxId1", _matches(rf"{_TEXT}{{1,64}}"), "must be up to 64 characters",
        about="The institute's ids of the payment; chargebacks: of the payment that is charged back."),
    SettlementColumn("ConnectorTxId2", _matches(rf"{_TEXT}{{1,64}}"), "must be up to 64 characters"),
    SettlementColumn("ConnectorTxId3", _matches(rf"{_TEXT}{{1,64}}"), "must be up to 64 characters"),
    SettlementColumn("TransactionId", _matches(rf"{_TEXT}{{1,255}}"), "must be up to 255 characters",
        about="The merchantTransactionId."),
    SettlementColumn("InvoiceId", _matches(rf"{_TEXT}{{1,255}}"), "must be up to 255 characters",
        about="The merchantInvoiceId."),
    SettlementColumn("Amount", _MONEY, _MONEY_IN_THREE_WORDS, required=True, about="Of the payment, or of the fee."),
    SettlementColumn("Currency", CURRENCY_CODES.__contains__, "must be a currency of ISO 4217, e.g. EUR",
        required=True),
    SettlementColumn("Brand", _matches(r"[A-Za-z0-9_]{1,16}"), "must be up to 16 letters, digits, _"),
    SettlementColumn("TxRequestTime", _is_time, "must be yyyy-MM-dd HH:mm:ss, e.g. 2026-05-14 17:00:00",
        about="When the order came, in the institute's zone or with an offset. Without it: when the file came."),
    SettlementColumn("SettlementAmount", _MONEY, _MONEY_IN_THREE_WORDS,
        required=True,
        about="What is paid out for the line: Amount × SettlementFxRate, less the fee; of NEG: more the fee."),
    SettlementColumn("SettlementCurrency", CURRENCY_CODES.__contains__, "must be a currency of ISO 4217, e.g. EUR",
        required=True),
    SettlementColumn("SettlementFee",
        _matches(r"[0-9]{1,12}(\.[0-9]{1,4})?"), "must be digits with up to four decimals and no sign, e.g. 0.2500",
        about="In the settlement currency; already taken off SettlementAmount."),
    SettlementColumn("SettlementFxRate",
        _matches(r"(?=.*[1-9])[0-9]{1,9}(\.[0-9]{1,10})?"),
        "must be a number above 0 with up to ten decimals, e.g. 1.0842",
        about="Settlement currency for one of Currency; required where they differ, else 1."),
    SettlementColumn("SettlementDate", _is_date, "must be a date yyyy-MM-dd, e.g. 2026-05-14",
        required=True, about="When the institute paid out, in its time zone."),
    SettlementColumn("SettlementStatus", frozenset({"SUCCESS", "FAILED"}).__contains__, "must be SUCCESS or FAILED",
        about="Without it: SUCCESS."),
    SettlementColumn("Descriptor", _matches(rf"{_TEXT}{{1,128}}"), "must be up to 128 characters"),
    SettlementColumn("AccountNumberLast4",
        _matches(r"[0-9A-Za-z]{4}"), "must be the last four characters of the account, no more"),
    SettlementColumn("BankCode", _matches(r"[0-9A-Za-z]{1,12}"), "must be up to 12 letters and digits"),
    SettlementColumn("AccountHolder", _matches(rf"{_TEXT}{{1,128}}"), "must be up to 128 characters"),
    SettlementColumn("ReasonCode", is_chargeback_reason,
        "must be the reason of a chargeback, 000.100.2 and two digits, e.g. 000.100.206, or a scheme's code, e.g. 10.4",
        about="Chargebacks only. A scheme's code is looked up in the institute's table, then in the schemes'."),
    SettlementColumn("ReasonDesc", _matches(rf"{_TEXT}{{1,128}}"), "must be up to 128 characters",
        about="Chargebacks only."),
    SettlementColumn("RespondBy", _is_date, "must be a date yyyy-MM-dd, e.g. 2026-05-14",
        about="Chargebacks only: until when the institute takes evidence."),
    SettlementColumn("SchemeReasonCode",
        _matches(r"[0-9A-Za-z.]{1,16}"), "must be up to 16 letters, digits and dots, e.g. 13.1",
        about="Chargebacks only: the scheme's own code."),
    SettlementColumn("SchemeCaseId", _matches(rf"{_TEXT}{{1,64}}"), "must be up to 64 characters",
        about="Chargebacks only: the scheme's id of the case."),
    SettlementColumn("AcquirerReferenceNumber",
        _matches(r"[0-9A-Za-z]{11,24}"), "must be 11 to 24 letters and digits (usually 23 digits)",
        about="Chargebacks only: the ARN of the disputed transaction."),
    SettlementColumn("DisputeStage",
        frozenset(DisputeStage.values).__contains__, f"must be one of {', '.join(DisputeStage.values)}",
        about="Chargebacks only. Without it: by what came before in the chain."),
)  # fmt: skip
COLUMN_NAMES: Final = tuple(column.name for column in SETTLEMENT_COLUMNS)
COLUMN_INDEX: Final[Mapping[str, int]] = MappingProxyType({name: place for place, name in enumerate(COLUMN_NAMES)})
REQUIRED_COLUMNS: Final = tuple(column.name for column in SETTLEMENT_COLUMNS if column.required)

STAGED_COLUMNS: Final = (
    ("line", "integer"), ("id", "uuid"), ("record_type", "text"), ("transaction_type", "text"), ("cashflow", "text"),
    ("institute_merchant_id", "text"), ("reference", "text"), ("settlement_tx_id", "text"), ("our_id", "uuid"),
    ("tx_id1", "text"), ("tx_id2", "text"), ("tx_id3", "text"), ("merchant_transaction_id", "text"),
    ("merchant_invoice_id", "text"), ("amount", "numeric"), ("currency", "text"), ("brand", "text"),
    ("presented_at", "timestamptz"), ("settlement_amount", "numeric"), ("settlement_currency", "text"),
    ("settlement_fee", "numeric"), ("fx_rate", "numeric"), ("settlement_date", "date"), ("settlement_status", "text"),
    ("descriptor", "text"), ("last4", "text"), ("bank_code", "text"), ("account_holder", "text"),
    ("reason_code", "text"), ("reason_text", "text"), ("respond_by", "date"),
    ("scheme_reason", "text"), ("scheme_case", "text"), ("arn", "text"), ("dispute_stage", "text"),
)  # fmt: skip
"""Columns of the staging table: those above in their order, after a line number and an id."""
NULL_TEXT: Final = r"\N"
"""NULL in the texts of COPY."""
_FIRST: Final = 2
FILE_COLUMN_BY_STAGED: Final[Mapping[str, str]] = MappingProxyType(
    {staged: name for (staged, _), name in zip(STAGED_COLUMNS[_FIRST:], COLUMN_NAMES, strict=True)}
)
"""Staged column → column of the file."""

_AWAY: Final[Mapping[tuple[str, str], bool]] = MappingProxyType(
    {
        (RecordType.SETTLED.value, "DEBIT"): False,
        (RecordType.SETTLED.value, "CREDIT"): True,
        (RecordType.SETTLED.value, "REFUND"): True,
        **{(RecordType.CHARGEBACK.value, kind): kind == "DEBIT" for kind in sorted(PAYMENT_TRANSACTION_TYPES)},
        **{(RecordType.CHARGEBACK_REVERSAL.value, kind): kind != "DEBIT" for kind in sorted(PAYMENT_TRANSACTION_TYPES)},
        **{(RecordType.FEE.value, kind): True for kind in sorted(FEE_TRANSACTION_TYPES)},
    }
)
"""Pairs of types that take money from the merchant (true) or pay it out; any other pair is invalid."""


def infer_cashflow(record_type: str, transaction_type: str) -> str:
    """POS or NEG, the usual direction of such a record."""
    return "NEG" if _AWAY[record_type, transaction_type] else "POS"


NO_REASONS: Final[Mapping[str, str]] = MappingProxyType({})


class LineReader:
    """Checks the lines of one file. ``present``: the columns that the file has; ``zone``: of times without an offset.
    ``reasons``: the institute's own table of reason codes → result code.

    ``values`` everywhere: one text per column, in the order of SETTLEMENT_COLUMNS, '' if empty.
    """

    def __init__(self, present: Sequence[str], zone: ZoneInfo, reasons: Mapping[str, str] = NO_REASONS) -> None:
        self._reasons = reasons
        self._tests = [
            (place, column.test, column) for place, column in enumerate(SETTLEMENT_COLUMNS) if column.name in present
        ]
        self._zone = zone
        self._offsets: dict[str, str] = {}

    def read(self, line: int, values: Sequence[str]) -> list[str] | list[LineFault]:
        """The line in the order of STAGED_COLUMNS, as texts of COPY, or all of its faults."""
        faults: list[LineFault] | None = None
        if values[_REASON] and not is_chargeback_reason(values[_REASON]):
            values = self._translate_reason(values)
        for place, test, column in self._tests:
            value = values[place]
            if column.required if not value else not test(value):
                message = column.expects if value else f"is required; {column.expects}"
                faults = [
                    *(faults or ()),
                    LineFault(column=column.name, value=mask_faulty_value(value), message=message),
                ]
        if faults is None:
            faults = _check_conditions(values)
        if faults:
            return faults
        return self._staged(line, values)

    def _translate_reason(self, values: Sequence[str]) -> Sequence[str]:
        """The line with a result code in place of a scheme's or the institute's reason code, which is kept beside it.
        An unknown code of a scheme's shape is a chargeback without a reason: its deadline must not be missed."""
        code = values[_REASON]
        known = resolve_scheme_reason(code, values[_DESCRIPTION])
        result = self._reasons.get(code) or (known.result if known is not None else "")
        if not result and _SCHEME_CODE.fullmatch(code):
            result = OTHER_CHARGEBACK_REASON
        if not result:
            return values
        found = list(values)
        found[_REASON] = result
        found[_SCHEME_REASON] = found[_SCHEME_REASON] or code[:16]
        return found

    def _staged(self, line: int, values: Sequence[str]) -> list[str]:
        row = [str(line), identifiers.row_id().hex, *values]
        if not values[_CASHFLOW]:
            row[_FIRST + _CASHFLOW] = infer_cashflow(values[0], values[1])
        if not values[_STATUS]:
            row[_FIRST + _STATUS] = "SUCCESS"
        if not values[_RATE]:
            row[_FIRST + _RATE] = "1"
        if values[_TIME_AT]:
            row[_FIRST + _TIME_AT] = self._with_offset(values[_TIME_AT])
        for place in _NULLABLE:
            if not values[place]:
                row[_FIRST + place] = NULL_TEXT
        free = "\x1f".join([values[place] for place in _FREE])
        if _DIGITS.search(free) and (masked := mask_text(free)) is not free:
            for place, text in zip(_FREE, masked.split("\x1f"), strict=True):
                row[_FIRST + place] = text
        if "\\" in free or any("\\" in values[place] for place in _IDS):
            for place in (*_FREE, *_IDS):
                row[_FIRST + place] = row[_FIRST + place].replace("\\", "\\\\")
        return row

    def _with_offset(self, text: str) -> str:
        """The time with an offset. Offsets change at full hours only, so one per hour is cached."""
        if len(text) > 19:
            return text
        hour = text[:13]
        offset = self._offsets.get(hour)
        if offset is None:
            moment = datetime.fromisoformat(text).replace(tzinfo=self._zone)
            offset = self._offsets[hour] = moment.strftime("%z")
            if len(self._offsets) > 100_000:
                self._offsets.clear()
        return text + offset


_CASHFLOW, _STATUS, _RATE, _TIME_AT = (
    COLUMN_INDEX[name] for name in ("Cashflow", "SettlementStatus", "SettlementFxRate", "TxRequestTime")
)
_SCHEME_REASON: Final = COLUMN_INDEX["SchemeReasonCode"]
_DESCRIPTION: Final = COLUMN_INDEX["ReasonDesc"]
_SCHEME_CODE: Final = re.compile(r"[0-9]{2}\.[0-9]{1,2}(\.[0-9])?|[0-9]{4}|[A-Z]{1,2}[0-9]{0,2}|[A-Z]{2}[0-9]?")
_CURRENCY, _PAID_IN, _REASON = (COLUMN_INDEX[name] for name in ("Currency", "SettlementCurrency", "ReasonCode"))
_AMOUNT, _PAID_AMOUNT = COLUMN_INDEX["Amount"], COLUMN_INDEX["SettlementAmount"]
_NULLABLE: Final = tuple(COLUMN_INDEX[name] for name in ("UniqueID", "TxRequestTime", "SettlementFee", "RespondBy"))
_FREE: Final = tuple(
    COLUMN_INDEX[name] for name in ("TransactionId", "InvoiceId", "Descriptor", "AccountHolder", "ReasonDesc")
)
"""Free texts: card numbers in them are masked before they are stored."""
_IDS: Final = tuple(
    COLUMN_INDEX[name]
    for name in (
        "ClearingInstituteMerchantId",
        "SettlementReference",
        "SettlementTxId",
        "ConnectorTxId1",
        "ConnectorTxId2",
        "ConnectorTxId3",
        "SchemeCaseId",
    )
)
_ONLY_CHARGEBACKS: Final = tuple(
    (name, COLUMN_INDEX[name])
    for name in (
        "ReasonCode",
        "ReasonDesc",
        "RespondBy",
        "SchemeReasonCode",
        "SchemeCaseId",
        "AcquirerReferenceNumber",
        "DisputeStage",
    )
)


def _check_conditions(values: Sequence[str]) -> list[LineFault]:
    """Check conditions between columns."""
    faults: list[LineFault] = []
    kind = values[0]
    if (kind, values[1]) not in _AWAY:
        allowed = sorted(FEE_TRANSACTION_TYPES if kind == RecordType.FEE else PAYMENT_TRANSACTION_TYPES)
        faults.append(
            LineFault(column="PaymentType", value=values[1], message=f"with {kind} must be {', '.join(allowed)}")
        )
    faults += _check_decimals(values)
    if values[_CURRENCY] != values[_PAID_IN] and not values[_RATE]:
        faults.append(
            LineFault(column="SettlementFxRate", value="", message="is required where the two currencies differ")
        )
    if kind not in CHARGEBACK_TYPE_VALUES:
        faults += [
            LineFault(
                column=name, value=mask_faulty_value(values[place]), message=f"is for chargebacks only, not for {kind}"
            )
            for name, place in _ONLY_CHARGEBACKS
            if values[place]
        ]
    return faults


def _check_decimals(values: Sequence[str]) -> list[LineFault]:
    """Three decimals are for what is paid out in a currency that has them, and for fees; payments have two (D26)."""
    faults = []
    for name, place, currency, may in (
        ("Amount", _AMOUNT, values[_CURRENCY], values[0] == RecordType.FEE),
        ("SettlementAmount", _PAID_AMOUNT, values[_PAID_IN], True),
    ):
        fine = may and currency in CURRENCY_CODES and currency_exponent(currency) >= THREE_DECIMALS
        if not fine and _FINER_THAN_CENTS.search(values[place]):
            faults.append(LineFault(column=name, value=values[place], message=_MONEY_WORDS))
    return faults


def mask_faulty_value(value: str) -> str:
    """A faulty value for storage and display: masked, on one line, shortened."""
    text = _CONTROL.sub("�", mask_text(value))
    return text if len(text) <= MAX_FAULT_VALUE_CHARS else f"{text[: MAX_FAULT_VALUE_CHARS - 1]}…"
