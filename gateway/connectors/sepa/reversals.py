"""Reversals by the creditor (pain.007): a collection that was booked goes back whole, as a reversal of that very debit.

The rulebook lets a creditor reverse within five inter-bank business days of the collection; later, and in part, money
goes back as a transfer. A message reverses collections of one original file, which it names. Source: EPC 016-06, 4.3
(reversals); EPC 130-08 (Customer to Bank Payment Reversal).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final
from uuid import UUID
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

from gateway.connectors.sepa import target_calendar
from gateway.connectors.sepa.creditor import Creditor
from gateway.core.money import format_amount
from gateway.models import BankFile, BankOrder

REVERSAL_TARGET_DAYS: Final = 4
"""TARGET days after the day of collection on which the file may still be made: the bank settles on the next one."""
REVERSAL_SCHEMAS: Final[Mapping[str, str]] = MappingProxyType(
    {"pain.008.001.08": "pain.007.001.09", "pain.008.001.02": "pain.007.001.02"}
)
"""Schema of collections → the reversal's that the same banks accept."""
NO_REASON_GIVEN: Final = "MS02"
"""The reason sent: the customer names none. A booking without a reason, or with this one, is the reversal's."""


def is_reversible(behind: BankOrder, creditor: Creditor, now: datetime) -> bool:
    """Whether the next file of the account is in time to reverse the collection ``behind``."""
    if not creditor.reverses or behind.state != BankOrder.State.BOOKED or behind.file is None or behind.due_on is None:
        return False
    run = creditor.next_run(now).astimezone(creditor.zone).date()
    return run <= target_calendar.target_day_after(behind.due_on, REVERSAL_TARGET_DAYS)


def find_original_files(orders: Sequence[BankOrder]) -> dict[UUID, BankFile]:
    """Collection → the file that it was sent in, of the collections that ``orders`` reverse."""
    rows = BankOrder.objects.filter(pk__in=[order.about for order in orders]).select_related("file")
    return {row.pk: row.file for row in rows if row.file is not None}


def find_reversal(collection: UUID, file: BankFile | None = None) -> UUID | None:
    """The reversal of a collection that is with the bank or booked; with ``file``, the one in it."""
    rows = BankOrder.objects.filter(about=collection, kind=BankFile.Kind.REVERSE)
    rows = rows.filter(file=file) if file is not None else rows.filter(state__in=_KNOWN_TO_BANK)
    return rows.order_by("-created_at").values_list("pk", flat=True).first()


_KNOWN_TO_BANK: Final = (BankOrder.State.FILED, BankOrder.State.BOOKED, BankOrder.State.RETURNED)


def render_reversal_file(file: BankFile, orders: Sequence[BankOrder], name: str) -> bytes:
    """The pain.007 of ``file``; ``name``: the creditor's, as banks write it. Its schema is not at hand, so it is not
    validated."""
    schema, amounts = file.creditor["schema"], sum((order.amount for order in orders), start=orders[0].amount * 0)
    root = ElementTree.Element("Document", {"xmlns": f"urn:iso:std:iso:20022:tech:xsd:{schema}"})
    message = ElementTree.SubElement(root, "CstmrPmtRvsl")
    header = ElementTree.SubElement(message, "GrpHdr")
    stamped = file.stamped_at.astimezone(ZoneInfo(file.creditor["zone"]))
    _add(header, "MsgId", file.message_id)
    _add(header, "CreDtTm", f"{stamped:%Y-%m-%dT%H:%M:%S}")
    _add(header, "NbOfTxs", str(len(orders)))
    _add(header, "CtrlSum", format_amount(amounts))
    _add(header, "GrpRvsl", "false")
    _add(ElementTree.SubElement(header, "InitgPty"), "Nm", name)
    original = ElementTree.SubElement(message, "OrgnlGrpInf")
    _add(original, "OrgnlMsgId", file.creditor["originalMessage"])
    _add(original, "OrgnlMsgNmId", file.creditor["originalSchema"])
    collections = BankOrder.objects.in_bulk([order.about for order in orders])
    parts: dict[str, ElementTree.Element] = {}
    for order in orders:
        assert order.about is not None
        behind = collections[order.about]
        if order.batch not in parts:
            part = parts[order.batch] = ElementTree.SubElement(message, "OrgnlPmtInfAndRvsl")
            _add(part, "RvslPmtInfId", order.batch)
            _add(part, "OrgnlPmtInfId", behind.batch)
        _add_transaction(parts[order.batch], order, behind, name)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + bytes(ElementTree.tostring(root, "utf-8"))


def _add_transaction(part: ElementTree.Element, order: BankOrder, behind: BankOrder, name: str) -> None:
    one = ElementTree.SubElement(part, "TxInf")
    _add(one, "RvslId", order.payment.hex)
    _add(one, "OrgnlEndToEndId", behind.payment.hex)
    for tag, amount in (("OrgnlInstdAmt", behind.amount), ("RvsdInstdAmt", order.amount)):
        _add(one, tag, format_amount(amount)).set("Ccy", order.currency)
    _add(one, "ChrgBr", "SLEV")
    reason = ElementTree.SubElement(one, "RvslRsnInf")
    _add(ElementTree.SubElement(reason, "Orgtr"), "Nm", name)
    _add(ElementTree.SubElement(reason, "Rsn"), "Cd", NO_REASON_GIVEN)


def _add(parent: ElementTree.Element, tag: str, text: str) -> ElementTree.Element:
    one = ElementTree.SubElement(parent, tag)
    one.text = text
    return one
