"""The SEPA connector: payments become bank orders, which a timer sends in files and the bank's messages decide.

No bank is called here: requests are answered from the order records, pending until the bank's answer is imported. Files
are made in file_planning.py, answers are read in bank_message_intake.py. Source: Part A, Bank account;
docs/connectors/sepa.md; decision 0035.
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

from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.accounts import load_connector_account
from gateway.connectors.acquirer_message import external_success_code, mask_request
from gateway.connectors.capabilities import PAYOUT_TRANSFER, TRANSFER_PARAMETER, SentParameter
from gateway.connectors.means import BankAccount
from gateway.connectors.port import AcquirerReply, AcquirerRequest, NotFoundAtAcquirer, VoidRefusedError
from gateway.connectors.reply_codes import PARTIAL_REVERSAL_NOT_POSSIBLE, REVERSAL_TOO_LATE, WITHDRAWN
from gateway.connectors.sepa import order_records
from gateway.connectors.sepa.bank_reasons import BANK_REASONS, find_bank_reason
from gateway.connectors.sepa.cancellations import REFUSED_CANCELLATIONS
from gateway.connectors.sepa.creditor import (
    SEPA_SETTINGS,
    Creditor,
    check_creditor_settings,
    find_bic,
    is_outside_eea,
    is_sepa_reachable,
    is_valid_iban,
    is_writable_bic,
    parse_creditor,
)
from gateway.connectors.sepa.mandates import MandateError
from gateway.connectors.sepa.recalls import RecallRefusal, RecallRefusedError
from gateway.core.money import Money
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE
from gateway.models import BankFile, BankOrder
from gateway.vault.sealing import VaultError, current_vault

COLLECTION_OUTSTANDING: Final = "800.400.501"
TRANSFER_OUTSTANDING: Final = "800.400.502"
CANCELLATION_OUTSTANDING: Final = "800.400.500"
WRONG_CURRENCY: Final = "800.100.173"
WRONG_ACCOUNT: Final = "100.200.104"
WRONG_BIC: Final = "100.200.103"
ORDER_AMOUNT_TOO_HIGH: Final = "100.550.301"
MAX_ORDER_AMOUNT: Final = Decimal("999999999.99")
"""Largest amount of one order that the messages' schemas allow."""
COUNTRY_NOT_REACHABLE: Final = "800.100.208"
CREDITOR_NOT_CONFIGURED: Final = "600.200.501"
REFERENCE_WRONG_TYPE: Final = "600.200.310"
REFERENCE_UNKNOWN: Final = "700.100.100"


_PENDING: Final[Mapping[BankFile.Kind, str]] = MappingProxyType(
    {
        BankFile.Kind.COLLECT: COLLECTION_OUTSTANDING,
        BankFile.Kind.PAY: TRANSFER_OUTSTANDING,
        BankFile.Kind.REVERSE: TRANSFER_OUTSTANDING,
        BankFile.Kind.CANCEL: CANCELLATION_OUTSTANDING,
    }
)


SEPA_PARAMETERS: Final[tuple[SentParameter, ...]] = (
    SentParameter(
        name=TRANSFER_PARAMETER,
        values=frozenset({PAYOUT_TRANSFER}),
        operations=frozenset({"CD"}),
        place="the credit transfer itself (pain.001)",
    ),
)
"""A collection is no account funding: the scheme has one kind of debit."""


class SepaConnector:
    """Accepts collections under a mandate (DB, RB, and RG to store an account), refunds and payouts by transfer (RF,
    CD), and RV until the order is in a file; of a collection also later, where the bank takes cancellation requests."""

    name = "sepa"
    operations = frozenset({"RG", "DB", "RB", "CD", "RF", "RV"})
    takes = frozenset({"", BankAccount.kind})
    required: frozenset[str] = frozenset()
    sends = SEPA_PARAMETERS
    redirects = False
    settings = SEPA_SETTINGS
    asks_with_means = False

    def faults_of(self, settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Errors in an account's settings taken together: (setting, reason)."""
        return check_creditor_settings(settings)

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Record an order, or withdraw one for a reversal."""
        sent = mask_request(request)
        if request.operation not in self.operations:
            return _declined_reply(REFERENCE_WRONG_TYPE, sent, "this way of paying has no such operation")
        if request.operation == "RV":
            return _reverse_order(request, sent)
        try:
            creditor = parse_creditor(request.account)
        except AccountSettingError as fault:
            return _declined_reply(CREDITOR_NOT_CONFIGURED, sent, str(fault))
        if request.operation == "RF":
            return _submit_refund(request, creditor, sent)
        return _submit_from_account(request, creditor, sent)

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Outcome of an order, from the order records."""
        sent = {"inquiry": request.payment.hex}
        if request.operation == "RV" and not order_records.find_bank_order(request.payment):
            # Unless it asked the bank, a reversal has no order of its own: its outcome stands in what it reverses.
            if (behind := _referenced_order(request)) is not None and order_records.was_order_withdrawn(behind.payment):
                return _withdrawn_reply(request, sent)
            return NotFoundAtAcquirer(sent=sent, received={"order": "not taken out"})
        order = order_records.find_bank_order(request.payment)
        if order is None:
            return NotFoundAtAcquirer(sent=sent, received={"order": "unknown"})
        return reply_from_bank_order(order, sent)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Withdraw an order that is in no file yet.

        Raises VoidRefusedError for a filed order, which only the bank can decide, and for a reversal that has withdrawn
        its order.
        """
        sent = {"void": request.payment.hex}
        if request.operation == "RV":
            behind = _referenced_order(request)
            if behind is not None and order_records.was_order_withdrawn(behind.payment, settled=True):
                raise VoidRefusedError("the order is taken out and does not come back", sent)
            if not order_records.find_bank_order(request.payment):
                return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent=sent, received={"order": "not taken out"})
        if order_records.withdraw_bank_order(request.payment, reason="", applied=True):
            return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent=sent, received={"order": "withdrawn"})
        order = order_records.refuse_late_order(request)
        if order.state in (BankOrder.State.WITHDRAWN, BankOrder.State.REJECTED):
            return AcquirerReply(
                code=TIMEOUT_REVERSED_CODE, sent=sent, received=order_records.describe_bank_order(order)
            )
        raise VoidRefusedError("the order is with the bank and is not taken back", sent)


SEPA: Final = SepaConnector()


def reply_from_bank_order(order: BankOrder, sent: Mapping[str, Any]) -> AcquirerReply:
    """The present reply of an order. A returned collection stays paid here: the return is recorded as a chargeback."""
    code = result_code_of_order(order)
    done = code == external_success_code()
    details = {"ConnectorTxID1": order.file.message_id if order.file else "", "AcquirerResponse": order.reason}
    if order.mandate is not None and order.due_on is not None:
        # What a merchant needs to notify the shopper before the day of collection (EPC 016-06, 4.3.4).
        details |= {
            "MandateId": order.mandate_reference or order.mandate.mandate,
            "CreditorId": order.mandate.creditor,
            "CollectionDate": order.due_on.isoformat(),
        }
    if order.kind == BankFile.Kind.CANCEL:
        if order.state == BankOrder.State.REJECTED:
            why = REFUSED_CANCELLATIONS.get(order.reason, REFUSED_CANCELLATIONS[""])
            details["ExtendedDescription"] = f"The bank did not cancel the collection: {why}."
    elif order.reason in BANK_REASONS:
        details["ExtendedDescription"] = BANK_REASONS[order.reason].meaning
    return AcquirerReply(
        code=code,
        approved=Money(order.amount, order.currency) if done else None,
        connector_tx_id=order.payment.hex,
        details={name: value for name, value in details.items() if value},
        sent=dict(sent),
        received=order_records.describe_bank_order(order),
        pending_until=_pending_deadline(order) if code in _PENDING.values() else None,
    )


def recall_transfer(transfer: BankOrder, reason: str) -> BankOrder:
    """Ask the bank to give a transfer back; ``reason``: a key of RECALL_REASONS. Returns the recall. Raises
    RecallRefusedError."""
    try:
        creditor = parse_creditor(load_connector_account(SEPA, transfer.channel_id, transfer.acquirer_merchant_id))
    except (AccountSettingError, VaultError):
        raise RecallRefusedError(RecallRefusal.NO_ACCOUNT) from None
    return order_records.create_recall(transfer.pk, reason, creditor)


def result_code_of_order(order: BankOrder) -> str:
    """The present result code of an order."""
    match BankOrder.State(order.state):
        case BankOrder.State.WAITING | BankOrder.State.FILED:
            return _PENDING[BankFile.Kind(order.kind)]
        case BankOrder.State.BOOKED | BankOrder.State.RETURNED | BankOrder.State.WON_BACK | BankOrder.State.CONFIRMED:
            return external_success_code()
        case BankOrder.State.REJECTED if order.kind == BankFile.Kind.CANCEL:
            return REVERSAL_TOO_LATE
        case BankOrder.State.REJECTED:
            return find_bank_reason(order.reason).declined
        case BankOrder.State.WITHDRAWN:
            return WITHDRAWN


def _pending_deadline(order: BankOrder) -> datetime | None:
    """How long the bank may take: some days after the order is due, or after it becomes final."""
    if order.due_on is None or order.file_at is None:
        return None
    due = datetime.combine(order.due_on, time(0), order.file_at.tzinfo)
    return max(due, order.file_at) + timedelta(days=settings.GATEWAY_SEPA_ANSWER_DAYS)


def _submit_from_account(request: AcquirerRequest, creditor: Creditor, sent: dict[str, Any]) -> AcquirerReply:
    means = request.means
    if not isinstance(means, BankAccount) or not means.is_iban or not is_valid_iban(means.account.reveal()):
        return _declined_reply(WRONG_ACCOUNT, sent, "an IBAN is needed")
    if not is_sepa_reachable(means.account.reveal()):
        return _declined_reply(COUNTRY_NOT_REACHABLE, sent, "the country of the account takes no part in the scheme")
    iban, bic = means.account.reveal(), means.bic.upper()
    if is_outside_eea(iban) and not (bic := bic or find_bic(iban)):
        why = f"bankAccount.bic is required: the account's bank is in {iban[:2]}, outside the EEA"
        return _declined_reply(WRONG_BIC, sent, why, explained=True)
    means = replace(means, bic=bic)
    # One order that does not fit the schema would block the day's whole file.
    if means.bic and not is_writable_bic(means.bic):
        return _declined_reply(WRONG_BIC, sent, "the BIC has not the form of one")
    if request.money.currency != "EUR":
        return _declined_reply(WRONG_CURRENCY, sent, "the scheme moves euros only")
    if request.money.amount > MAX_ORDER_AMOUNT:
        return _declined_reply(ORDER_AMOUNT_TOO_HIGH, sent, f"an order moves {MAX_ORDER_AMOUNT} at most")
    try:
        if request.operation == "RG":
            return _store_account(request, means, creditor, sent)
        if request.operation == "CD":
            order = order_records.create_transfer(
                request, creditor, name=means.holder, iban=means.account, bic=means.bic
            )
        else:
            order = order_records.create_collection(request, means, creditor)
    except MandateError as fault:
        return _declined_reply(fault.code, sent, str(fault), explained=True)
    return reply_from_bank_order(order, sent)


def _store_account(
    request: AcquirerRequest, means: BankAccount, creditor: Creditor, sent: dict[str, Any]
) -> AcquirerReply:
    """Store an account: only its mandate is recorded."""
    mandate = order_records.resolve_stored_mandate(request, means, creditor)
    return AcquirerReply(
        code=external_success_code(),
        approved=request.money,
        sent=sent,
        received={"mandate": mandate.mandate, "stored": "yes"},
    )


def _submit_refund(request: AcquirerRequest, creditor: Creditor, sent: dict[str, Any]) -> AcquirerReply:
    """A transfer to the account that was collected from; the collection's reversal, where the account says so."""
    behind = _referenced_order(request)
    if behind is None or behind.iban_sealed is None or behind.kind != BankFile.Kind.COLLECT:
        return _declined_reply(REFERENCE_UNKNOWN, sent, "there is no collection to give back")
    iban = current_vault().open(behind.iban_sealed, behind.payment)
    whole = request.money == Money(behind.amount, behind.currency)
    order = order_records.create_transfer(
        request,
        creditor,
        name=behind.name,
        iban=iban,
        bic=behind.bic,
        collection=behind.payment,
        reversible=behind if whole else None,
    )
    return reply_from_bank_order(order, sent)


def _reverse_order(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    """Withdraw a collection or payout that is in no file, in full. Afterwards the bank is asked to cancel a collection,
    where it takes such requests; else it is too late."""
    if (known := order_records.find_bank_order(request.payment)) is not None:
        return reply_from_bank_order(known, sent)
    behind = _referenced_order(request)
    if behind is None:
        return _declined_reply(REFERENCE_UNKNOWN, sent, "there is no order to take back")
    if request.money != Money(behind.amount, behind.currency):
        return _declined_reply(PARTIAL_REVERSAL_NOT_POSSIBLE, sent, "an order is taken back as a whole")
    if not order_records.reverse_bank_order(
        behind.payment, by=request.payment
    ) and not order_records.was_order_withdrawn(behind.payment):
        if (asked := _ask_to_cancel(request, behind)) is not None:
            return reply_from_bank_order(asked, sent)
        return _declined_reply(
            REVERSAL_TOO_LATE, sent, "the order is in a file already, or the reversal was itself taken back"
        )
    return _withdrawn_reply(request, sent)


def _ask_to_cancel(request: AcquirerRequest, behind: BankOrder) -> BankOrder | None:
    try:
        creditor = parse_creditor(request.account)
    except AccountSettingError:
        return None
    return order_records.create_cancellation(request, creditor, behind.payment)


def _withdrawn_reply(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    return AcquirerReply(
        code=external_success_code(),
        approved=request.money,
        connector_tx_id=request.payment.hex,
        sent=sent,
        received={"order": "withdrawn"},
    )


def _referenced_order(request: AcquirerRequest) -> BankOrder | None:
    try:
        return order_records.find_bank_order(UUID(hex=request.reference))
    except ValueError:
        return None


def _declined_reply(code: str, sent: dict[str, Any], why: str, *, explained: bool = False) -> AcquirerReply:
    """``explained``: the answer says why, besides the text of its result code."""
    details = {"ExtendedDescription": why} if explained else {}
    return AcquirerReply(code=code, sent=sent, received={"refused": why}, details=details)
