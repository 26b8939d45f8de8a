"""Recalls of credit transfers (camt.055): a refund or payout whose file is with the bank is asked back.

Before the bank has executed it, the transfer is cancelled; afterwards the bank asks the bank of the account that was
paid (camt.056 between banks), which gives the money back (pacs.004, ``FOCR``) or says why not. Both answers come as
camt.029 or as a booking. A recall is made by a user and has no payment: the money that comes back is the transfer's
return. Source: EPC 125-05 (SCT Recall; Request for Recall by the Originator); docs/decisions/0120.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Final

from gateway.connectors.sepa import target_calendar
from gateway.connectors.sepa.creditor import Creditor
from gateway.models import BankFile, BankOrder, BankOrderEvent

RECALL_TARGET_DAYS: Final = 10
"""Banking business days after the execution in which a bank recalls what was sent twice or by a technical fault."""
RECALL_MONTHS: Final = 13
"""Months after the execution in which a transfer is recalled for any other reason."""
CANCELLATION_ANSWER: Final = "camt.029"
_State = BankOrder.State


RECALL_REASONS: Final[Mapping[str, int | None]] = MappingProxyType(
    {
        "DUPL": RECALL_TARGET_DAYS,  # sent twice
        "TECH": RECALL_TARGET_DAYS,  # sent by a technical fault
        "FRAD": None,  # fraud
        "AC03": None,  # wrong account
        "AM09": None,  # wrong amount
        "CUST": None,  # the merchant names none
    }
)
"""Why a transfer is recalled (ISO 20022 ExternalCancellationReason1Code) → TARGET days after its execution in which it
may be; None: RECALL_MONTHS. The first three are the bank's recall, the others the originator's request, to which the
holder of the account has to agree."""


class RecallRefusal(enum.StrEnum):
    """Why a transfer cannot be recalled."""

    UNKNOWN_REASON = f"the reason is one of {', '.join(RECALL_REASONS)}"
    NO_TRANSFER = "only a credit transfer is recalled"
    NO_REQUESTS = "the account says cancelBy=none: its bank takes no requests"
    NOT_SENT = "its file is not with the bank yet"
    REJECTED = "the bank has rejected it: nothing was paid"
    RETURNED = "its money came back already"
    WITHDRAWN = "it was taken back: nothing was paid"
    TOO_LATE = "the scheme's time for this reason has passed"
    RECALLED_BEFORE = "it was recalled before: the scheme has one recall of a transfer"
    NO_ACCOUNT = "the account cannot be used: its settings are wrong or its secrets do not open"


class RecallRefusedError(Exception):
    """The transfer cannot be recalled, for ``refusal``."""

    def __init__(self, refusal: RecallRefusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


def check_recall(transfer: BankOrder, reason: str, creditor: Creditor, now: datetime) -> None:
    """Raise RecallRefusedError where ``transfer``, which is locked, cannot be recalled for ``reason``."""
    if (refusal := _find_refusal(transfer, reason, creditor, now)) is not None:
        raise RecallRefusedError(refusal)


def _find_refusal(transfer: BankOrder, reason: str, creditor: Creditor, now: datetime) -> RecallRefusal | None:
    if reason not in RECALL_REASONS:
        return RecallRefusal.UNKNOWN_REASON
    if transfer.kind != BankFile.Kind.PAY:
        return RecallRefusal.NO_TRANSFER
    if not creditor.cancels:
        return RecallRefusal.NO_REQUESTS
    if (ended := _REFUSAL_BY_STATE.get(_State(transfer.state))) is not None:
        return ended
    if transfer.file is None or transfer.file.state != BankFile.State.DELIVERED:
        return RecallRefusal.NOT_SENT
    assert transfer.due_on is not None
    if now.astimezone(creditor.zone).date() > _last_recall_day(transfer.due_on, RECALL_REASONS[reason]):
        return RecallRefusal.TOO_LATE
    return RecallRefusal.RECALLED_BEFORE if _has_recall(transfer) else None


_REFUSAL_BY_STATE: Final[Mapping[BankOrder.State, RecallRefusal]] = MappingProxyType(
    {
        _State.REJECTED: RecallRefusal.REJECTED,
        _State.RETURNED: RecallRefusal.RETURNED,
        _State.WITHDRAWN: RecallRefusal.WITHDRAWN,
    }
)


def _last_recall_day(executed: date, bank_days: int | None) -> date:
    if bank_days is not None:
        return target_calendar.target_day_after(executed, bank_days)
    return target_calendar.add_months(executed, RECALL_MONTHS)


def _has_recall(transfer: BankOrder) -> bool:
    """Whether a recall is on its way or was answered. One whose file the bank rejected was none."""
    recalls = BankOrder.objects.filter(original_payment=transfer.pk, kind=BankFile.Kind.RECALL)
    answers = BankOrderEvent.objects.filter(order__in=recalls, message__kind=CANCELLATION_ANSWER)
    return recalls.exclude(state=_State.REJECTED).exists() or answers.exists()
