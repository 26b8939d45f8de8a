"""Bank direct debits behind the connector port: accepted into the books, filed by a timer, decided by the bank.

Nothing here speaks to a bank: a question is answered out of the books, pending until the bank has told. What leaves and
what comes in are files (files.py, intake.py). Source: Part A, Bank account; docs/connectors/sepa.md; decision 0035.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.connectors.means import BankAccount
from gateway.connectors.message import masked_message, success_code
from gateway.connectors.port import AcquirerReply, AcquirerRequest, NeverArrived, NotTakenBack
from gateway.connectors.sepa import books
from gateway.connectors.sepa.creditor import (
    SETTINGS,
    Creditor,
    NotSetUp,
    creditor_of,
    faults_of,
    is_iban,
    is_reachable,
    is_writable_bic,
)
from gateway.connectors.sepa.reasons import REASONS, reason_of
from gateway.models import BankOrder
from gateway.money import Money
from gateway.vault import vault

COLLECTION_OUTSTANDING: Final = "800.400.501"
TRANSFER_OUTSTANDING: Final = "800.400.502"
WITHDRAWN: Final = "100.396.201"
REVERSED: Final = "900.100.301"
WRONG_CURRENCY: Final = "800.100.173"
WRONG_ACCOUNT: Final = "100.200.104"
WRONG_BIC: Final = "100.200.103"
TOO_MUCH: Final = "100.550.301"
MOST: Final = Decimal("999999999.99")
"""Of one order: what the messages' schemas have room for."""
NOT_REACHABLE: Final = "800.100.208"
OTHER_MANDATE: Final = "600.200.500"
NOT_SET_UP: Final = "600.200.501"
WRONG_TYPE: Final = "600.200.310"
TOO_LATE: Final = "700.300.700"
WHOLE_ONLY: Final = "700.100.200"
UNKNOWN: Final = "700.100.100"

State = BankOrder.State
Kind = books.Kind

_PENDING: Final[Mapping[Kind, str]] = MappingProxyType(
    {Kind.COLLECT: COLLECTION_OUTSTANDING, Kind.PAY: TRANSFER_OUTSTANDING}
)


class Sepa:
    """Takes collections under a mandate (DB, RB, and RG to store an account), refunds and payouts by transfer (RF, CD),
    and RV while the file is not made."""

    name = "sepa"
    operations = frozenset({"RG", "DB", "RB", "CD", "RF", "RV"})
    takes = frozenset({"", BankAccount.kind})
    required: frozenset[str] = frozenset()
    redirects = False
    settings = SETTINGS
    asks_with_means = False

    def faults_of(self, settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What is wrong with an account's settings taken together: (setting, why)."""
        return faults_of(settings)

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        sent = masked_message(request)
        if request.operation not in self.operations:
            return _refused(WRONG_TYPE, sent, "this way of paying has no such operation")
        if request.operation == "RV":
            return _reversed(request, sent)
        try:
            creditor = creditor_of(request.account)
        except NotSetUp as fault:
            return _refused(NOT_SET_UP, sent, str(fault))
        if request.operation == "RF":
            return _refund(request, creditor, sent)
        return _from_account(request, creditor, sent)

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NeverArrived:
        sent = {"inquiry": request.payment.hex}
        if request.operation == "RV":
            # It has no order of its own: what it did stands in the one that it speaks of.
            if (behind := _behind(request)) is not None and books.was_withdrawn(behind.payment):
                return _taken_out(request, sent)
            return NeverArrived(sent=sent, received={"order": "not taken out"})
        order = books.find(request.payment)
        if order is None:
            return NeverArrived(sent=sent, received={"order": "unknown"})
        return answer_of(order, sent)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Takes an order out that is not filed yet. Raises NotTakenBack for one that is: its bank alone decides; and
        for a reversal that took its order out."""
        sent = {"void": request.payment.hex}
        if request.operation == "RV":
            if (behind := _behind(request)) is not None and books.was_withdrawn(behind.payment, settled=True):
                raise NotTakenBack("the order is taken out and does not come back", sent)
            return AcquirerReply(code=REVERSED, sent=sent, received={"order": "not taken out"})
        if books.withdraw(request.payment, reason="", told=True):
            return AcquirerReply(code=REVERSED, sent=sent, received={"order": "withdrawn"})
        order = books.refuse_late(request)
        if order.state in (State.WITHDRAWN, State.REJECTED):
            return AcquirerReply(code=REVERSED, sent=sent, received=books.evidence(order))
        raise NotTakenBack("the order is with the bank and is not taken back", sent)


SEPA: Final = Sepa()


def answer_of(order: BankOrder, sent: Mapping[str, Any]) -> AcquirerReply:
    """What an order says by now. A collection that was returned was paid before: its chargeback tells of that."""
    code = code_of(order)
    paid = order.state in (State.BOOKED, State.RETURNED, State.WON_BACK)
    details = {"ConnectorTxID1": order.file.message_id if order.file else "", "AcquirerResponse": order.reason}
    if order.reason in REASONS:
        details["ExtendedDescription"] = REASONS[order.reason].meaning
    return AcquirerReply(
        code=code, approved=Money(order.amount, order.currency) if paid else None, connector_tx_id=order.payment.hex,
        details={name: value for name, value in details.items() if value},
        sent=dict(sent), received=books.evidence(order), until=_until(order) if code in _PENDING.values() else None,
    )  # fmt: skip


def code_of(order: BankOrder) -> str:
    """The result code of an order as it stands."""
    match State(order.state):
        case State.WAITING | State.FILED:
            return _PENDING[Kind(order.kind)]
        case State.BOOKED | State.RETURNED | State.WON_BACK:
            return success_code()
        case State.REJECTED:
            return reason_of(order.reason).declined
        case State.WITHDRAWN:
            return WITHDRAWN


def _until(order: BankOrder) -> datetime | None:
    """Until when a bank may take its time: days after the order is due, or after it counts as paid anyway."""
    if order.due_on is None or order.file_at is None:
        return None
    due = datetime.combine(order.due_on, time(0), order.file_at.tzinfo)
    return max(due, order.file_at) + timedelta(days=settings.GATEWAY_SEPA_ANSWER_DAYS)


def _from_account(request: AcquirerRequest, creditor: Creditor, sent: dict[str, Any]) -> AcquirerReply:
    means = request.means
    if not isinstance(means, BankAccount) or not means.is_iban or not is_iban(means.account.reveal()):
        return _refused(WRONG_ACCOUNT, sent, "an IBAN is needed")
    if not is_reachable(means.account.reveal()):
        return _refused(NOT_REACHABLE, sent, "the country of the account takes no part in the scheme")
    means = replace(means, bic=means.bic.upper())
    # One order that does not fit its message's schema would keep the whole file of the day here.
    if means.bic and not is_writable_bic(means.bic):
        return _refused(WRONG_BIC, sent, "the BIC has not the form of one")
    if request.money.currency != "EUR":
        return _refused(WRONG_CURRENCY, sent, "the scheme moves euros only")
    if request.money.amount > MOST:
        return _refused(TOO_MUCH, sent, f"an order moves {MOST} at most")
    try:
        if request.operation == "RG":
            return _stored(request, means, creditor, sent)
        if request.operation == "CD":
            order = books.pay(request, creditor, name=means.holder, iban=means.account, bic=means.bic)
        else:
            order = books.collect(request, means, creditor)
    except books.OtherAccount:
        return _refused(OTHER_MANDATE, sent, "the mandate was given for another account")
    return answer_of(order, sent)


def _stored(request: AcquirerRequest, means: BankAccount, creditor: Creditor, sent: dict[str, Any]) -> AcquirerReply:
    """An account to be stored: nobody is asked, its mandate is noted."""
    mandate = books.noted_mandate(request, means, creditor)
    return AcquirerReply(
        code=success_code(), approved=request.money, sent=sent, received={"mandate": mandate.mandate, "stored": "yes"}
    )


def _refund(request: AcquirerRequest, creditor: Creditor, sent: dict[str, Any]) -> AcquirerReply:
    """A transfer to the account that was collected from."""
    behind = _behind(request)
    if behind is None or behind.iban_sealed is None or behind.kind != Kind.COLLECT:
        return _refused(UNKNOWN, sent, "there is no collection to give back")
    iban = vault().open(behind.iban_sealed, behind.payment)
    order = books.pay(request, creditor, name=behind.name, iban=iban, bic=behind.bic, about=behind.payment)
    return answer_of(order, sent)


def _reversed(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    """A collection or a payout that no file has yet is taken out, whole; afterwards it is too late."""
    behind = _behind(request)
    if behind is None:
        return _refused(UNKNOWN, sent, "there is no order to take back")
    if request.money != Money(behind.amount, behind.currency):
        return _refused(WHOLE_ONLY, sent, "an order is taken back as a whole")
    if not books.reverse(behind.payment, by=request.payment) and not books.was_withdrawn(behind.payment):
        return _refused(TOO_LATE, sent, "the order is in a file already, or the reversal was itself taken back")
    return _taken_out(request, sent)


def _taken_out(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    return AcquirerReply(
        code=success_code(), approved=request.money, connector_tx_id=request.payment.hex, sent=sent,
        received={"order": "withdrawn"},
    )  # fmt: skip


def _behind(request: AcquirerRequest) -> BankOrder | None:
    try:
        return books.find(UUID(hex=request.reference))
    except ValueError:
        return None


def _refused(code: str, sent: dict[str, Any], why: str) -> AcquirerReply:
    return AcquirerReply(code=code, sent=sent, received={"refused": why})
