"""What a bank's message says of orders, as values: rejected, accepted, booked, returned. Pure.

Source: ISO 20022 pain.002, camt.052 to 054, pacs.004; EPC 131-17.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final
from uuid import UUID

from gateway.connectors.sepa.reading import Message, Record

_OURS: Final = re.compile("[0-9a-f]{32}")
_AMOUNT: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,5})?")
_ACCEPTED: Final = frozenset({"ACCP", "ACSP", "ACSC", "ACTC", "ACWC", "ACCC", "ACFC"})
_RETURN_FAMILIES: Final = frozenset({"UPDD", "RRTN", "PRDD", "RPBC"})
"""Sub-families of a bank transaction code that say: this gives back what was booked before."""


class Word(enum.StrEnum):
    """What is said."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    IN = "in"
    OUT = "out"
    BACK_IN = "back in"
    BACK_OUT = "back out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One statement. It speaks of one order (``order``), of a batch (``batch``, our PmtInfId), or of a whole file
    (``file``, our MsgId). IN and OUT: money that came to the account or left it; BACK_IN, BACK_OUT: what was booked
    before, given back. ``account``: the IBAN it was booked on. ``reason``: an ISO external code. ``status``: a
    whole file's, as the bank has it."""

    word: Word
    file: str = ""
    batch: str = ""
    order: UUID | None = None
    reason: str = ""
    amount: Decimal | None = None
    currency: str = ""
    on: date | None = None
    account: str = ""
    status: str = ""
    where: str = ""


def said(message: Message) -> Iterator[Said]:
    """The statements of a message, in its order. Raises NotReadable."""
    tell = {"pain.002": _status, "pacs.004": _return}.get(message.kind, _booking)
    for record in message.records:
        yield from tell(record)


def message_id(record: Record) -> str:
    """The message's own id, of its group header."""
    return record.first("MsgId")[:35] if record.level == "GrpHdr" else ""


def _status(record: Record) -> Iterator[Said]:
    if record.level == "OrgnlGrpInfAndSts":
        if group := record.first("GrpSts")[:4]:
            # Of a file that is refused in part, the orders have words of their own.
            yield Said(
                word=_word(group) or Word.ACCEPTED, file=record.first("OrgnlMsgId"), reason=_reason(record),
                status=group, where="the file",
            )  # fmt: skip
    elif record.level == "OrgnlPmtInfAndSts":
        word = _word(record.first("PmtInfSts"))
        # Where transactions are named, each has its own word.
        if word is not None and not record.within.get("TxInfAndSts"):
            yield Said(word=word, batch=record.first("OrgnlPmtInfId"), reason=_reason(record), where="a batch")
    elif record.level == "TxInfAndSts":
        batch = record.up("OrgnlPmtInfAndSts")
        word = _word(record.first("TxSts") or batch.first("PmtInfSts"))
        if word is not None:
            named = record.first("OrgnlEndToEndId")
            yield Said(
                word=word, order=_order(named), reason=_reason(record) or _reason(batch), where=f"order {named[:35]}"
            )  # fmt: skip


def _booking(record: Record) -> Iterator[Said]:
    if record.level == "TxDtls":
        yield from _booked(record, record.up("Ntry"))
    elif record.level == "Ntry" and not record.within.get("TxDtls"):
        yield from _booked(Record(level="TxDtls", above=(*record.above, record)), record)


def _booked(details: Record, entry: Record) -> Iterator[Said]:
    if entry.first("Sts/Cd", "Sts") not in ("BOOK", ""):
        return
    named = details.first("Refs/EndToEndId")
    order = _order(named)
    batch = details.first("Refs/PmtInfId") or entry.first("NtryDtls/Btch/PmtInfId")
    if order is None and not batch:
        return  # somebody else's money: other things happen on an account, too
    into = (details.first("CdtDbtInd") or entry.first("CdtDbtInd")) == "CRDT"
    family = details.first("BkTxCd/Domn/Fmly/SubFmlyCd") or entry.first("BkTxCd/Domn/Fmly/SubFmlyCd")
    back = (
        entry.first("RvslInd") in ("true", "1") or family in _RETURN_FAMILIES
        or any(path.startswith("RtrInf") for path in details.found)
    )  # fmt: skip
    above = details.above[0] if details.above else entry
    money = details if details.found.get("Amt") else entry
    if money is entry and details.found.get("AmtDtls/TxAmt/Amt"):
        amount, currency = details.first("AmtDtls/TxAmt/Amt"), details.first("AmtDtls/TxAmt/Amt@")
    else:
        amount, currency = money.first("Amt"), money.first("Amt@")
    yield Said(
        word=(Word.BACK_IN if back else Word.IN) if into else (Word.BACK_OUT if back else Word.OUT),
        order=order, batch="" if order is not None else batch,
        reason=details.first("RtrInf/Rsn/Cd", "RtrInf/Rsn/Prtry")[:35],
        amount=_amount(amount), currency=currency, on=_date(entry.first("BookgDt/Dt", "BookgDt/DtTm")),
        account=above.first("Acct/Id/IBAN"), where=f"order {named}" if order is not None else f"batch {batch[:35]}",
    )  # fmt: skip


def _return(record: Record) -> Iterator[Said]:
    if record.level != "TxInf":
        return
    named = record.first("OrgnlEndToEndId")
    yield Said(
        word=Word.BACK_OUT, order=_order(named), reason=record.first("RtrRsnInf/Rsn/Cd", "RtrRsnInf/Rsn/Prtry")[:35],
        amount=_amount(record.first("OrgnlIntrBkSttlmAmt", "RtrdIntrBkSttlmAmt")),
        currency=record.first("OrgnlIntrBkSttlmAmt@", "RtrdIntrBkSttlmAmt@"),
        on=_date(record.first("IntrBkSttlmDt")), where=f"order {named[:35]}",
    )  # fmt: skip


def _word(status: str) -> Word | None:
    """PART, PDNG and what is not known say nothing by themselves."""
    if status == "RJCT":
        return Word.REJECTED
    return Word.ACCEPTED if status in _ACCEPTED else None


def _reason(record: Record) -> str:
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


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10]) if text else None
    except ValueError:
        return None
