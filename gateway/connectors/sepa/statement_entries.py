"""Parses entries of bank messages about orders: rejected, accepted, booked, returned, cancelled. Pure.

Source: ISO 20022 pain.002, camt.029, camt.052 to 054, pacs.004; EPC 131-17.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Final
from uuid import UUID

from gateway.connectors.sepa.bank_message_parser import BankXmlMessage, MessageRecord
from gateway.core.camt_amounts import parse_camt_amount, read_camt_amounts

_OURS: Final = re.compile("[0-9a-f]{32}")
_AMOUNT: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,5})?")
_ACCEPTED: Final = frozenset({"ACCP", "ACSP", "ACSC", "ACTC", "ACWC", "ACCC", "ACFC"})
RETURN_FAMILIES: Final = frozenset({"UPDD", "RRTN", "PRDD", "RPBC", "RCDD", "RPCR"})
"""Sub-families of a bank transaction code for the return of an earlier booking; the last two after a request for
cancellation."""


class EntryType(enum.StrEnum):
    """The kind of an entry."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    IN = "in"
    OUT = "out"
    BACK_IN = "back in"
    BACK_OUT = "back out"
    CANCELLED = "cancelled"
    NOT_CANCELLED = "not cancelled"


_CANCELLATION_STATUSES: Final = {
    "ACCR": EntryType.CANCELLED,
    "CNCL": EntryType.CANCELLED,
    "RJCR": EntryType.NOT_CANCELLED,
}
"""Others, such as PDCR (pending) and PACR (some of them), decide nothing."""
_ANSWER_LEVELS: Final = {
    "OrgnlGrpInfAndSts": ("GrpCxlSts", ""),
    "OrgnlPmtInfAndSts": ("PmtInfCxlSts", "TxInfAndSts"),
    "TxInfAndSts": ("TxCxlSts", ""),
}
"""Level of a camt.029 → its status, and the level within that has statuses of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementEntry:
    """One entry about an order (``order``), a batch (``batch``, our PmtInfId), or a whole file (``file``, our MsgId).

    IN and OUT: money was credited or debited; BACK_IN, BACK_OUT: an earlier booking was returned. CANCELLED,
    NOT_CANCELLED: the answer to a cancellation request; file and batch are the original's then, ``case`` is the case
    that it closes.

    - ``account``: the IBAN of the booking.
    - ``amount``: of the order, without ``charges``, which the bank booked with it.
    - ``reason``: an ISO external code.
    - ``status``: a whole file's, as the bank sends it.
    - ``rest``: what is said of a batch holds for those of its orders that the message does not name.
    - ``spared``: of a rejection, the orders of which the same report says that they are not rejected, and whether it
      accepts them; complete when its last entry has been read.
    - ``original``: the file of an order that a status report names.
    - ``on``: the day of the booking; of a status, the day on which its message was made, ``made_at``; of a return
      between banks, the day of its settlement, which is that of the whole message where the return has none.
    - ``is_return``: of a message between banks (pacs.004), which returns a collection or a transfer and does not say
      which.
    """

    entry_type: EntryType
    file: str = ""
    batch: str = ""
    order: UUID | None = None
    reason: str = ""
    amount: Decimal | None = None
    currency: str = ""
    charges: Decimal | None = None
    on: date | None = None
    made_at: datetime | None = None
    account: str = ""
    status: str = ""
    rest: bool = False
    spared: Mapping[UUID, bool] = field(default_factory=dict, repr=False)
    original: str = ""
    case: str = ""
    where: str = ""
    is_return: bool = False


def parse_statement_entries(message: BankXmlMessage) -> Iterator[StatementEntry]:
    """The entries of a message, in its order. Raises UnreadableBankMessageError."""
    if message.kind == "camt.029":
        yield from _resolution(message)
        return
    tell = {"pain.002": _status, "pacs.004": _return}.get(message.kind, _booking)
    original, made_at, made_on, settled_on = "", None, None, None
    spared: dict[UUID, bool] = {}
    for record in message.records:
        if record.level == "GrpHdr" and message.kind == "pain.002":
            made_at, made_on = _time(record.first("CreDtTm")), _date(record.first("CreDtTm"))
        if record.level == "GrpHdr" and message.kind == "pacs.004":
            settled_on = _date(record.first("IntrBkSttlmDt"))
        if record.level == "OrgnlGrpInfAndSts":
            original = record.first("OrgnlMsgId")
        if record.level == "TxInfAndSts" and (order := _spared_order(record)) is not None:
            spared[order] = _entry_type_of_status(record.first("TxSts")) is EntryType.ACCEPTED
        for one in tell(record):
            dated = replace(one, on=made_on, made_at=made_at) if made_on is not None else one
            if dated.on is None and settled_on is not None:
                dated = replace(dated, on=settled_on)
            if one.order is not None:
                yield replace(dated, original=original)
            else:
                yield replace(dated, spared=spared) if one.entry_type is EntryType.REJECTED else dated


def read_message_id(record: MessageRecord) -> str:
    """The message's own id, from its group header."""
    return record.first({"GrpHdr": "MsgId", "Assgnmt": "Id"}.get(record.level, ""))[:35]


def _status(record: MessageRecord) -> Iterator[StatementEntry]:
    if record.level == "OrgnlGrpInfAndSts":
        if group := record.first("GrpSts")[:4]:
            # In a partly rejected file, the orders have their own entries.
            yield StatementEntry(
                entry_type=_entry_type_of_status(group) or EntryType.ACCEPTED,
                file=record.first("OrgnlMsgId"),
                reason=_reason(record),
                status=group,
                where="the file",
            )
    elif record.level == "OrgnlPmtInfAndSts":
        entry_type, listed = _entry_type_of_status(record.first("PmtInfSts")), "TxInfAndSts" in record.within
        # Where transactions are listed, each has its own status. But a batch is rejected with all of them, also with
        # those that the bank does not list because nothing is wrong with them.
        if entry_type is EntryType.REJECTED or (entry_type is not None and not listed):
            yield StatementEntry(
                entry_type=entry_type,
                batch=record.first("OrgnlPmtInfId"),
                reason=_reason(record),
                rest=listed,
                where="a batch",
            )
    elif record.level == "TxInfAndSts":
        batch = record.find_ancestor("OrgnlPmtInfAndSts")
        entry_type = _entry_type_of_status(record.first("TxSts") or batch.first("PmtInfSts"))
        if entry_type is not None:
            named = record.first("OrgnlEndToEndId")
            yield StatementEntry(
                entry_type=entry_type,
                order=_order(named),
                reason=_reason(record) or _reason(batch),
                where=f"order {named[:35]}",
            )


def _spared_order(record: MessageRecord) -> UUID | None:
    """The order of a status of its own that is no rejection, such as PDNG; None for another one."""
    status = record.first("TxSts")
    is_spared = bool(status) and _entry_type_of_status(status) is not EntryType.REJECTED
    return _order(record.first("OrgnlEndToEndId")) if is_spared else None


def _resolution(message: BankXmlMessage) -> Iterator[StatementEntry]:
    """The answers of a camt.029: of single orders, else of their batch, their file, or the message as a whole."""
    whole, case, is_answered, says_more = "", "", False, False
    batches: list[str] = []
    files: list[str] = []
    for record in message.records:
        if record.level == "Sts":
            whole = record.first("Conf")
        elif record.level == "RslvdCase":
            case = record.first("Id")[:35]
        elif record.level == "TxInfAndSts":
            says_more = True
        elif record.level == "OrgnlPmtInfAndSts":
            batches += filter(None, [record.first("OrgnlPmtInfId")])
            says_more |= bool(record.first("PmtInfCxlSts"))
        elif record.level == "OrgnlGrpInfAndSts":
            files += filter(None, [record.first("OrgnlMsgId")])
            says_more |= bool(record.first("GrpCxlSts"))
        for one in _answer(record, whole):
            is_answered = True
            yield one
    entry_type = _CANCELLATION_STATUSES.get(whole)
    if is_answered or entry_type is None:
        return
    # Where no detail has a status of its own, such as PDCR, the confirmation is about what the details name, else about
    # the case that it closes.
    told = StatementEntry(entry_type=entry_type, where="the answer to a cancellation request")
    if says_more or not (batches or files or case):
        yield told
    elif batches:
        yield from (replace(told, batch=batch) for batch in batches)
    elif files:
        yield from (replace(told, file=file) for file in files)
    else:
        yield replace(told, case=case)


def _answer(record: MessageRecord, whole: str) -> Iterator[StatementEntry]:
    path, inner = _ANSWER_LEVELS.get(record.level, ("", ""))
    batch = record.find_ancestor("OrgnlPmtInfAndSts")
    status = record.first(path)
    if record.level == "TxInfAndSts":
        status = status or batch.first("PmtInfCxlSts") or whole
    entry_type = _CANCELLATION_STATUSES.get(status)
    if entry_type is None or (inner and record.within.get(inner)):
        return
    named = record.first("OrgnlEndToEndId")
    reasons = ("CxlStsRsnInf/Rsn/Cd", "CxlStsRsnInf/Rsn/Prtry")
    yield StatementEntry(
        entry_type=entry_type,
        order=_order(named),
        batch=record.first("OrgnlPmtInfId") if record.level == "OrgnlPmtInfAndSts" else "",
        file=record.first("OrgnlMsgId") if record.level == "OrgnlGrpInfAndSts" else "",
        reason=(record.first(*reasons) or batch.first(*reasons))[:35],
        where=f"order {named[:35]}" if named else "the answer to a cancellation request",
    )


def _booking(record: MessageRecord) -> Iterator[StatementEntry]:
    if record.level == "TxDtls":
        yield from _booked(record, record.find_ancestor("Ntry"))
    elif record.level == "Ntry" and not record.within.get("TxDtls"):
        yield from _booked(MessageRecord(level="TxDtls", ancestors=(*record.ancestors, record)), record)


def _booked(details: MessageRecord, entry: MessageRecord) -> Iterator[StatementEntry]:
    if entry.first("Sts/Cd", "Sts") not in ("BOOK", ""):
        return
    named = details.first("Refs/EndToEndId")
    order = _order(named)
    batch = details.first("Refs/PmtInfId") or entry.first("NtryDtls/Btch/PmtInfId")
    if order is None and not batch:
        return  # not about our orders: the account has other bookings, too
    into = (details.first("CdtDbtInd") or entry.first("CdtDbtInd")) == "CRDT"
    family = details.first("BkTxCd/Domn/Fmly/SubFmlyCd") or entry.first("BkTxCd/Domn/Fmly/SubFmlyCd")
    back = (
        entry.first("RvslInd") in ("true", "1")
        or family in RETURN_FAMILIES
        or any(path.startswith("RtrInf") for path in details.found)
    )
    ancestors = details.ancestors[0] if details.ancestors else entry
    # An entry of several transactions has their sum, and charges for all of them.
    own = details.first("Amt", "AmtDtls/TxAmt/Amt")
    alone = not own or parse_camt_amount(own) == parse_camt_amount(entry.first("Amt"))
    amounts = read_camt_amounts(details.found, entry.found, into=into, alone=alone)
    amount, currency = amounts.order_amount
    yield StatementEntry(
        entry_type=(EntryType.BACK_IN if back else EntryType.IN)
        if into
        else (EntryType.BACK_OUT if back else EntryType.OUT),
        order=order,
        batch="" if order is not None else batch,
        reason=details.first("RtrInf/Rsn/Cd", "RtrInf/Rsn/Prtry")[:35],
        amount=_amount(amount),
        currency=currency,
        charges=_amount(amounts.charges) if order is not None else None,
        on=_date(entry.first("BookgDt/Dt", "BookgDt/DtTm")),
        account=ancestors.first("Acct/Id/IBAN"),
        where=f"order {named}" if order is not None else f"batch {batch[:35]}",
    )


def _return(record: MessageRecord) -> Iterator[StatementEntry]:
    if record.level != "TxInf":
        return
    named = record.first("OrgnlEndToEndId")
    yield StatementEntry(
        entry_type=EntryType.BACK_OUT,
        order=_order(named),
        reason=record.first("RtrRsnInf/Rsn/Cd", "RtrRsnInf/Rsn/Prtry")[:35],
        amount=_amount(record.first("OrgnlIntrBkSttlmAmt", "RtrdIntrBkSttlmAmt")),
        currency=record.first("OrgnlIntrBkSttlmAmt@", "RtrdIntrBkSttlmAmt@"),
        on=_date(record.first("IntrBkSttlmDt")),
        where=f"order {named[:35]}",
        is_return=True,
    )


def _entry_type_of_status(status: str) -> EntryType | None:
    """None for PART, PDNG and unknown statuses, which say nothing by themselves."""
    if status == "RJCT":
        return EntryType.REJECTED
    return EntryType.ACCEPTED if status in _ACCEPTED else None


def _reason(record: MessageRecord) -> str:
    return record.first("StsRsnInf/Rsn/Cd", "StsRsnInf/Rsn/Prtry")[:35]


def _order(named: str) -> UUID | None:
    return UUID(hex=named) if _OURS.fullmatch(named) else None


def _amount(text: str) -> Decimal | None:
    if not _AMOUNT.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _time(text: str) -> datetime | None:
    """A time; one without a zone, as many banks send it, counts as UTC: it is compared with the same bank's others."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10]) if text else None
    except ValueError:
        return None
