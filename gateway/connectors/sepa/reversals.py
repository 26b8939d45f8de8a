"""Reversals by the creditor (pain.007): a collection that was booked goes back whole, as a reversal of that very debit.

The rulebook lets a creditor reverse within five inter-bank business days of the collection; later, and in part, money
goes back as a transfer. A message reverses collections of one original file, which it names. Source: EPC 016-06, 4.3
(reversals); EPC 130-08 (Customer to Bank Payment Reversal).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Final
from uuid import UUID
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

from gateway.connectors.sepa import target_calendar
from gateway.connectors.sepa.creditor import Creditor
from gateway.connectors.sepa.xml_elements import add_element, render_xml_message, start_xml_message
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


def is_reversible(target: BankOrder, creditor: Creditor, now: datetime) -> bool:
    """Whether the next file of the account is in time to reverse the collection ``target``."""
    if not creditor.reverses or target.state != BankOrder.State.BOOKED or target.file is None or target.due_on is None:
        return False
    run = creditor.next_run(now).astimezone(creditor.zone).date()
    return run <= target_calendar.target_day_after(target.due_on, REVERSAL_TARGET_DAYS)


def find_original_orders(orders: Sequence[BankOrder]) -> dict[UUID, BankOrder]:
    """The orders, each with the file that it was sent in, that ``orders`` reverse, cancel or recall."""
    rows = BankOrder.objects.filter(pk__in=[order.original_payment for order in orders], file__isnull=False)
    return {row.pk: row for row in rows.select_related("file")}


def find_reversal(collection: UUID, file: BankFile | None = None) -> UUID | None:
    """The reversal of a collection that is with the bank or booked; with ``file``, the order about it in that file."""
    rows = BankOrder.objects.filter(original_payment=collection)
    rows = (
        rows.filter(file=file)
        if file is not None
        else rows.filter(kind=BankFile.Kind.REVERSE, state__in=_KNOWN_TO_BANK)
    )
    return rows.order_by("-created_at").values_list("pk", flat=True).first()


def find_rejected_reversal(collection: UUID) -> UUID | None:
    """The newest reversal of a collection that was sent and that the bank rejected."""
    rows = BankOrder.objects.filter(
        original_payment=collection,
        kind=BankFile.Kind.REVERSE,
        state=BankOrder.State.REJECTED,
        file__state=BankFile.State.DELIVERED,
    )
    return rows.order_by("-created_at").values_list("pk", flat=True).first()


_KNOWN_TO_BANK: Final = (BankOrder.State.FILED, BankOrder.State.BOOKED, BankOrder.State.RETURNED)


def render_reversal_file(file: BankFile, orders: Sequence[BankOrder], name: str) -> bytes:
    """The pain.007 of ``file``; ``name``: the creditor's, as banks write it."""
    root, total = start_xml_message(file.creditor["schema"]), sum((order.amount for order in orders), start=Decimal(0))
    message = add_element(root, "CstmrPmtRvsl")
    header = add_element(message, "GrpHdr")
    stamped = file.stamped_at.astimezone(ZoneInfo(file.creditor["zone"]))
    add_element(header, "MsgId", file.message_id)
    add_element(header, "CreDtTm", f"{stamped:%Y-%m-%dT%H:%M:%S}")
    add_element(header, "NbOfTxs", str(len(orders)))
    add_element(header, "CtrlSum", format_amount(total))
    add_element(header, "GrpRvsl", "false")
    add_element(header, "InitgPty/Nm", name)
    original = add_element(message, "OrgnlGrpInf")
    add_element(original, "OrgnlMsgId", file.creditor["originalMessage"])
    add_element(original, "OrgnlMsgNmId", file.creditor["originalSchema"])
    collections = BankOrder.objects.in_bulk([order.original_payment for order in orders])
    parts: dict[str, ElementTree.Element] = {}
    for order in orders:
        assert order.original_payment is not None
        target = collections[order.original_payment]
        if order.batch not in parts:
            part = parts[order.batch] = add_element(message, "OrgnlPmtInfAndRvsl")
            add_element(part, "RvslPmtInfId", order.batch)
            add_element(part, "OrgnlPmtInfId", target.batch)
        _add_transaction(parts[order.batch], order, target, name)
    return render_xml_message(root)


def _add_transaction(part: ElementTree.Element, order: BankOrder, target: BankOrder, name: str) -> None:
    one = add_element(part, "TxInf")
    add_element(one, "RvslId", order.payment.hex)
    add_element(one, "OrgnlEndToEndId", target.payment.hex)
    for tag, amount in (("OrgnlInstdAmt", target.amount), ("RvsdInstdAmt", order.amount)):
        add_element(one, tag, format_amount(amount)).set("Ccy", order.currency)
    add_element(one, "ChrgBr", "SLEV")
    reason = add_element(one, "RvslRsnInf")
    add_element(reason, "Orgtr/Nm", name)
    add_element(reason, "Rsn/Cd", NO_REASON_GIVEN)
