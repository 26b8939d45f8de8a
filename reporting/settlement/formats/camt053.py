"""camt.053 adapter: a bank's statement in XML (ISO 20022), any version of the message, parsed as a stream.

One entry at a time is in memory. gateway.core.xml refuses document types and deep nesting, which no statement has.
Every TxDtls is a line; an entry without any is one line itself; pending entries are skipped. docs/settlement-files.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, Final

from gateway.connectors.sepa.bank_reasons import find_bank_reason
from gateway.connectors.sepa.statement_entries import RETURN_FAMILIES
from gateway.core.camt_amounts import CamtAmounts, parse_camt_amount, read_camt_amounts
from gateway.core.xml import MAX_VALUES_PER_PATH, XML_CHUNK_BYTES, XmlStreamReader
from reporting.settlement.formats.port import FileFormat, OpenedFile, ParsedLine, UnreadableFileError
from reporting.settlement.layout import COLUMN_INDEX, COLUMN_NAMES

_NAMESPACE: Final = re.compile(r"urn:iso:std:iso:20022:tech:xsd:camt\.053\.[0-9.]+")

FEE_TYPE_BY_SUBFAMILY: Final[Mapping[str, str]] = MappingProxyType(
    {"CHRG": "MONTHLY", "FEES": "BATCH", "COMM": "CAPTURE_FEE"}
)
"""Sub-family of the bank transaction code → type of a fee."""
CREDITORS_REVERSAL: Final = "PRDD"
"""Sub-family of a collection that its creditor gives back (pain.007): a refund, and no return of the debtor's bank."""
ISSUED_DIRECT_DEBITS: Final = "IDDT"
"""Family of what a creditor's account has of its collections."""
_RETURNED_COLLECTION: Final = frozenset({"UPDD", "RCDD"})
_RETURNED_TRANSFER: Final = frozenset({"RRTN", "RPCR", CREDITORS_REVERSAL})


def _begins(head: bytes) -> bool:
    return b"camt.053" in head and b"<" in head


def _open(stream: BinaryIO, after: int, _at: int) -> OpenedFile:
    """Open the statement. Resuming parses from the start and skips lines that were read: XML has no other way."""
    totals: dict[str, Any] = {}
    return OpenedFile(present=COLUMN_NAMES, lines=_lines(stream, after, totals), totals=totals)


def _lines(stream: BinaryIO, after: int, totals: dict[str, Any]) -> Iterator[ParsedLine]:
    stream.seek(0)
    reading = _Statement(totals)
    position = 0
    while True:
        chunk = stream.read(XML_CHUNK_BYTES)
        position += len(chunk)
        reading.feed(chunk)
        for values in reading.taken():
            reading.number += 1
            if reading.number > after:
                yield ParsedLine(reading.number, position, values)
        if not chunk:
            break
    totals["read"] = totals.get("entries", 0)


class _Statement:
    """Parser state: the statement's account, one entry, one transaction of it."""

    def __init__(self, totals: dict[str, Any]) -> None:
        self.number = 0
        self._totals = totals
        self._account: dict[str, list[str]] = {}
        self._entry: dict[str, list[str]] | None = None
        self._details: dict[str, list[str]] | None = None
        self._detailed = 0
        self._without_amount: list[dict[str, list[str]]] = []
        self._found: list[list[str]] = []
        elements = XmlStreamReader(self._start, self._end, UnreadableFileError)
        self._path, self.feed = elements.path, elements.feed

    def taken(self) -> list[list[str]]:
        found, self._found = self._found, []
        return found

    def _start(self, local: str, space: str, currency: str | None) -> None:
        if len(self._path) == 1 and (local != "Document" or not _NAMESPACE.fullmatch(space)):
            raise UnreadableFileError("the XML is no camt.053 document")
        if local == "Stmt":
            self._account = {}
        elif local == "Ntry":
            self._entry, self._detailed, self._without_amount = {}, 0, []
        elif local == "TxDtls" and self._entry is not None:
            self._details, self._detailed = {}, self._detailed + 1
        if currency is not None:
            self._keep(f"{self._key()}@", currency)

    def _end(self, local: str, text: str) -> None:
        if text:
            self._keep(self._key(), text)
        if local == "TxDtls" and self._entry is not None and self._details is not None:
            if "Amt" in self._details or "AmtDtls/TxAmt/Amt" in self._details:
                self._emit(self._details, alone=False)
            else:
                self._without_amount.append(self._details)
            self._details = None
        elif local == "Ntry" and self._entry is not None:
            self._totals["entries"] = self._totals.get("entries", 0) + 1
            # The entry's amount stands for a transaction only if it is the only one: of several, none is guessed.
            for details in self._without_amount if self._detailed else [{}]:
                self._emit(details, alone=self._detailed <= 1)
            self._entry = None
        elif local == "NbOfNtries" and text.isdecimal() and self._path[-2:-1] == ["TtlNtries"]:
            self._totals["said"] = self._totals.get("said", 0) + int(text[:9])

    def _key(self) -> str:
        """The element's path within the innermost of transaction, entry and statement."""
        for mark in ("TxDtls", "Ntry", "Stmt"):
            if mark in self._path:
                return "/".join(self._path[self._path.index(mark) + 1 :])
        return "/".join(self._path)

    def _keep(self, key: str, text: str) -> None:
        place = (
            self._details if self._details is not None else self._entry if self._entry is not None else (self._account)
        )
        kept = place.setdefault(key, [])
        if len(kept) < MAX_VALUES_PER_PATH:
            kept.append(text)

    def _emit(self, details: dict[str, list[str]], *, alone: bool) -> None:
        entry = self._entry or {}
        if _first(entry, "Sts/Cd", "Sts") not in ("BOOK", ""):
            self._totals["pending"] = self._totals.get("pending", 0) + 1
            return
        self._found.append(_values(self._account, entry, details, alone))


def _first(found: Mapping[str, list[str]], *paths: str) -> str:
    """The first value present, in the order of ``paths``."""
    return next((found[path][0] for path in paths if path in found), "")


def _values(
    account: Mapping[str, list[str]], entry: Mapping[str, list[str]], details: Mapping[str, list[str]], alone: bool
) -> list[str]:
    """One transaction in the columns of the layout."""
    values = [""] * len(COLUMN_NAMES)

    def put(column: str, text: str, most: int = 255) -> None:
        values[COLUMN_INDEX[column]] = text[:most]

    away = (_first(details, "CdtDbtInd") or _first(entry, "CdtDbtInd")) == "DBIT"
    reversed_ = (_first(details, "RvslInd") or _first(entry, "RvslInd")) in ("true", "1")
    sub_family = _first(details, "BkTxCd/Domn/Fmly/SubFmlyCd") or _first(entry, "BkTxCd/Domn/Fmly/SubFmlyCd")
    told = any(path.startswith("RtrInf") for path in details)
    returned = reversed_ or told or sub_family in RETURN_FAMILIES - {CREDITORS_REVERSAL}
    kind, transaction = "SETTLED", "REFUND" if away else "DEBIT"
    if sub_family in FEE_TYPE_BY_SUBFAMILY:
        kind, transaction = "FEE", FEE_TYPE_BY_SUBFAMILY[sub_family]
    elif returned and away:
        kind, transaction = "CHARGEBACK", "DEBIT"
        put("ReasonCode", find_bank_reason(_first(details, "RtrInf/Rsn/Cd")).returned)
        put("ReasonDesc", _first(details, "RtrInf/AddtlInf") or _first(details, "RtrInf/Rsn/Cd"), 128)
    elif returned and _is_about_collection(details, entry, sub_family):
        kind, transaction = "CHARGEBACK REVERSAL", "DEBIT"  # the debtor's bank paid the return back
    elif returned:
        transaction = "REFUND"
        put("SettlementStatus", "FAILED")
    put("ReconciliationType", kind)
    put("PaymentType", transaction)
    put("Cashflow", "NEG" if away else "POS")
    put("ClearingInstituteMerchantId", _first(account, "Acct/Id/IBAN", "Acct/Id/Othr/Id"), 64)
    put("SettlementReference", _first(account, "Id"), 64)
    put("SettlementTxId", _first(details, "Refs/AcctSvcrRef") or _first(entry, "AcctSvcrRef", "NtryRef"), 64)
    _references(details, put)
    _money(read_camt_amounts(details, entry, into=not away, alone=alone), put)
    put("SettlementDate", _first(entry, "BookgDt/Dt", "BookgDt/DtTm", "ValDt/Dt", "ValDt/DtTm"), 10)
    put("TxRequestTime", _time(_first(details, "RltdDts/AccptncDtTm")))
    put("Descriptor", " ".join(details.get("RmtInf/Ustrd", ())), 128)
    party = "Cdtr" if away and not returned else "Dbtr"
    put("AccountHolder", _first(details, f"RltdPties/{party}/Nm", f"RltdPties/{party}/Pty/Nm"), 128)
    put("AccountNumberLast4", _first(details, f"RltdPties/{party}Acct/Id/IBAN")[-4:])
    put("BankCode", _first(details, f"RltdAgts/{party}Agt/FinInstnId/BICFI", f"RltdAgts/{party}Agt/FinInstnId/BIC"), 12)
    return values


def _is_about_collection(details: Mapping[str, list[str]], entry: Mapping[str, list[str]], sub_family: str) -> bool:
    """Whether a return is of a collection, not of a transfer."""
    if sub_family in _RETURNED_TRANSFER:
        return False
    family = _first(details, "BkTxCd/Domn/Fmly/Cd") or _first(entry, "BkTxCd/Domn/Fmly/Cd")
    return family == ISSUED_DIRECT_DEBITS or sub_family in _RETURNED_COLLECTION or "Refs/MndtId" in details


def _references(details: Mapping[str, list[str]], put: Any) -> None:
    own = _first(details, "Refs/EndToEndId")
    if re.fullmatch("[0-9a-f]{32}", own):
        put("UniqueID", own)
    elif own not in ("", "NOTPROVIDED"):
        put("TransactionId", own)
    put("ConnectorTxId1", _first(details, "Refs/TxId"), 64)
    put("ConnectorTxId2", _first(details, "Refs/InstrId"), 64)
    put("ConnectorTxId3", _first(details, "Refs/PmtInfId", "Refs/MndtId"), 64)


def _money(amounts: CamtAmounts, put: Any) -> None:
    """Booked amount, amount of the payment, the fee taken off, and the exchange rate between the two currencies."""
    amount, currency = amounts.instructed or amounts.booked, amounts.instructed_currency or amounts.booked_currency
    put("SettlementAmount", amounts.booked)
    put("SettlementCurrency", amounts.booked_currency)
    put("Amount", amount)
    put("Currency", currency)
    put("SettlementFee", amounts.charges)
    rate = amounts.rate
    if currency != amounts.booked_currency and not rate:
        # The layout reports what is wrong with numbers that give no rate.
        paid, ordered = parse_camt_amount(amounts.booked), parse_camt_amount(amount)
        rate = f"{paid / ordered:.10f}" if paid is not None and ordered else ""
    put("SettlementFxRate", rate)


def _time(text: str) -> str:
    """A date and time without its fraction of a second."""
    return re.sub(r"\.[0-9]+", "", text)


CAMT053_FORMAT: Final = FileFormat(
    name="CAMT.053", about="ISO 20022 XML, a bank's statement", begins=_begins, open=_open
)
