"""Cancellation requests (camt.055): a collection whose file is with the bank is taken back before its day, or a
transfer is recalled (recalls.py).

The request goes out at once, in a file of its own that names the original file; the bank's answer (camt.029) decides.
Without one, the collection does: booked, it was too late; rejected, nothing was collected. Banks offer the service one
by one. Source: EPC 016-06 (request for cancellation); ISO 20022 camt.055, camt.029; docs/decisions/0087, 0120.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Final
from uuid import UUID
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

from django.db.models import Q
from django.utils.translation import gettext_noop as noop

from gateway.connectors.sepa.creditor import Creditor
from gateway.connectors.sepa.xml_elements import add_element, render_xml_message, start_xml_message
from gateway.core.money import format_amount
from gateway.models import BankFile, BankOrder

CANCELLATION_SCHEMAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pain.008.001.08": "camt.055.001.08",
        "pain.001.001.09": "camt.055.001.08",
        "pain.008.001.02": "camt.055.001.01",
        "pain.001.001.03": "camt.055.001.01",
    }
)
"""Schema of the original file → the cancellation request's that the same banks accept, unless the account names
another one (cancelSchema)."""
WITH_BIC: Final = frozenset({"camt.055.001.01"})
"""Versions that name a bank by ``BIC``, not by ``BICFI``."""
WITH_PLAIN_DATE: Final = frozenset({"camt.055.001.01", "camt.055.001.05"})
"""Versions in which the day of execution is a date, not one of date and time."""
CLOSED_REASONS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "camt.055.001.01": frozenset({"AGNT", "CURR", "CUST", "CUTA", "DUPL", "UPAY"}),
        "camt.055.001.05": frozenset({"AGNT", "CURR", "CUST", "CUTA", "DUPL", "UPAY", "TECH", "FRAD"}),
    }
)
"""Versions with a closed list of reasons (CancellationReason4Code, 5Code): any other one goes as the bank's own
(Prtry)."""
REQUESTED_BY_CUSTOMER: Final = "CUST"
"""The reason sent."""
AFTER_CUT_OFF: Final = "TM01"
"""Reason of a request that could not leave before the day of collection."""
REFUSED_CANCELLATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "": noop("it was settled before the bank answered"),
        "AC04": noop("the account is closed"),
        "AGNT": noop("a bank refuses"),
        "AM04": noop("there is not enough money on the account"),
        "ARDT": noop("it has been returned already"),
        "CUST": noop("a customer's decision"),
        "LEGL": noop("regulatory rules"),
        "NARR": noop("the reason is in words"),
        "NOAS": noop("no answer from the other side"),
        "NOOR": noop("the bank has had no such order"),
        "PTNA": noop("it has gone on to the next bank"),
        "RR04": noop("regulatory rules"),
        "TM01": noop("after the bank's cut-off"),
    }
)
"""Why a bank did not cancel or give back (ISO 20022 ExternalPaymentCancellationRejection1Code); empty: no reason
known."""
_State = BankOrder.State


def is_cancellable(target: BankOrder, creditor: Creditor, now: datetime) -> bool:
    """Whether the bank can still be asked to cancel the collection ``target``: it has the file, and its day has not
    come."""
    filed = target.kind == BankFile.Kind.COLLECT and target.state == _State.FILED
    return creditor.cancels and filed and _is_before_its_day(target, now.astimezone(creditor.zone).date())


def can_be_sent(target: BankOrder, today: date) -> bool:
    """Whether a request is decided about now: the bank has the file of its order, or it is too late to wait."""
    delivered = target.file is not None and target.file.state == BankFile.State.DELIVERED
    return delivered or not _is_before_its_day(target, today)


def find_state_without_bank(target: BankOrder | None, today: date) -> tuple[BankOrder.State, str] | None:
    """State and reason of a request that need not be sent any more; None for one that the bank has to be asked."""
    if target is None:
        return _State.REJECTED, ""
    if (settled := find_settled_state(target)) is not None:
        return settled, ""
    is_late = target.kind == BankFile.Kind.COLLECT and not _is_before_its_day(target, today)
    return (_State.REJECTED, AFTER_CUT_OFF) if is_late else None


def find_settled_state(target: BankOrder) -> BankOrder.State | None:
    """What the request about ``target`` is by the state of that order, whether the bank answers it or not; None while
    only the bank can decide. A transfer may be given back long after it was booked."""
    return _SETTLED_REQUESTS.get((BankFile.Kind(target.kind), _State(target.state)))


_SETTLED_REQUESTS: Final[Mapping[tuple[BankFile.Kind, BankOrder.State], BankOrder.State]] = MappingProxyType(
    {
        (BankFile.Kind.COLLECT, _State.BOOKED): _State.REJECTED,
        (BankFile.Kind.COLLECT, _State.RETURNED): _State.REJECTED,
        (BankFile.Kind.COLLECT, _State.WON_BACK): _State.REJECTED,
        (BankFile.Kind.COLLECT, _State.REJECTED): _State.CONFIRMED,
        (BankFile.Kind.COLLECT, _State.WITHDRAWN): _State.CONFIRMED,
        (BankFile.Kind.PAY, _State.RETURNED): _State.CONFIRMED,
        (BankFile.Kind.PAY, _State.REJECTED): _State.CONFIRMED,
        (BankFile.Kind.PAY, _State.WITHDRAWN): _State.CONFIRMED,
    }
)
REQUEST_KINDS: Final = (BankFile.Kind.CANCEL, BankFile.Kind.RECALL)
"""Kinds of orders that ask for another one's cancellation."""


def list_requests(*, order: UUID | None, batch: str, file: str, case: str) -> list[tuple[UUID, UUID]]:
    """(order, request) of the requests that the bank has, about an order, a batch of the original file, or a file: the
    original one or the request's own; or those of a ``case``, which banks name by an id of our message: its own
    (Assgnmt/Id), that of a batch in it (PmtCxlId) or of one request (CxlId). Of several about one order, the newest.
    About a batch or a file: those that the bank has not answered, and none if they are of several request files, since
    the answer does not say to which it belongs."""
    rows = BankOrder.objects.filter(kind__in=REQUEST_KINDS, file__isnull=False)
    if order is not None:
        rows = rows.filter(original_payment=order)
    elif case:
        one = UUID(hex=case) if re.fullmatch("[0-9a-f]{32}", case) else None
        rows = rows.filter(Q(file__message_id=case) | Q(batch=case) | Q(pk=one))
    else:
        original = {"batch": batch} if batch else {"file__message_id": file}
        related = rows.filter(original_payment__in=BankOrder.objects.filter(**original).values("pk"))
        rows = related if batch or related.exists() else rows.filter(file__message_id=file)
        waiting = rows.filter(state=_State.FILED)
        if waiting.values("file").distinct().count() > 1:
            return []
        rows = waiting if waiting.exists() else rows  # an answer that is read again changes nothing
    newest = dict(rows.order_by("created_at", "pk").values_list("original_payment", "pk"))
    return [(collection, ident) for collection, ident in newest.items() if collection is not None]


def render_cancellation_file(file: BankFile, orders: Sequence[BankOrder], name: str) -> bytes:
    """The camt.055 of ``file``; ``name``: the creditor's, as banks write it."""
    creditor = file.creditor
    root = start_xml_message(creditor["schema"])
    message = add_element(root, "CstmrPmtCxlReq")
    head = add_element(message, "Assgnmt")
    add_element(head, "Id", file.message_id)
    add_element(head, "Assgnr/Pty/Nm", name)
    bank = add_element(head, "Assgne/Agt/FinInstnId")
    if creditor["bic"]:
        add_element(bank, "BIC" if creditor["schema"] in WITH_BIC else "BICFI", creditor["bic"])
    else:
        add_element(bank, "Othr/Id", "NOTPROVIDED")
    stamped = file.stamped_at.astimezone(ZoneInfo(creditor["zone"]))
    add_element(head, "CreDtTm", f"{stamped:%Y-%m-%dT%H:%M:%S}")
    underlying = add_element(message, "Undrlyg")
    collections = BankOrder.objects.in_bulk([order.original_payment for order in orders])
    for batch in dict.fromkeys(order.batch for order in orders):
        pairs = [
            (order, collections[order.original_payment])
            for order in orders
            if order.batch == batch and order.original_payment
        ]
        part = add_element(underlying, "OrgnlPmtInfAndCxl")
        add_element(part, "PmtCxlId", batch)
        add_element(part, "OrgnlPmtInfId", pairs[0][1].batch)
        original = add_element(part, "OrgnlGrpInf")
        add_element(original, "OrgnlMsgId", creditor["originalMessage"])
        add_element(original, "OrgnlMsgNmId", creditor["originalSchema"])
        add_element(part, "NbOfTxs", str(len(pairs)))
        total = sum((order.amount for order, _ in pairs), start=Decimal(0))
        add_element(part, "CtrlSum", format_amount(total))
        add_element(part, "PmtInfCxl", "false")
        for order, target in pairs:
            _add_transaction(part, order, target, name, creditor["schema"])
    return render_xml_message(root)


def _add_transaction(part: ElementTree.Element, order: BankOrder, target: BankOrder, name: str, schema: str) -> None:
    one = add_element(part, "TxInf")
    add_element(one, "CxlId", order.payment.hex)
    add_element(one, "OrgnlEndToEndId", target.payment.hex)
    add_element(one, "OrgnlInstdAmt", format_amount(target.amount)).set("Ccy", target.currency)
    assert target.due_on is not None
    executed = "OrgnlReqdExctnDt" if schema in WITH_PLAIN_DATE else "OrgnlReqdExctnDt/Dt"
    is_transfer = target.kind == BankFile.Kind.PAY
    add_element(one, executed if is_transfer else "OrgnlReqdColltnDt", target.due_on.isoformat())
    reason = add_element(one, "CxlRsnInf")
    add_element(reason, "Orgtr/Nm", name)
    code = order.recall_reason or REQUESTED_BY_CUSTOMER
    add_element(reason, "Rsn/Cd" if code in CLOSED_REASONS.get(schema, {code}) else "Rsn/Prtry", code)


def _is_before_its_day(target: BankOrder, today: date) -> bool:
    return target.due_on is not None and today < target.due_on
