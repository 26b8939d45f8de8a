"""What a processor's dispute events need of disputes, which are a package above: inquiries, and what became of a case.

chargebacks registers the functions when it is loaded. Source: docs/decisions/0156.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from gateway.core.hook import Hook
from gateway.core.money import Money
from gateway.models import Payment


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedInquiry:
    """An inquiry (retrieval request) of a processor.

    - ``provider``: the connector.
    - ``reference``: its id there.
    - ``reason``: a chargeback's result code.
    - ``scheme_reason``: the network's code.
    - ``answer_by``: real time until which documents are taken, None where it names none.
    - ``answered``: documents were sent.
    - ``closed``: it has ended.
    """

    provider: str
    reference: str
    money: Money
    reason: str
    scheme_reason: str = ""
    answer_by: datetime | None = None
    answered: bool = False
    closed: bool = False


class InquiryRecord(Protocol):
    """Record an inquiry about ``disputed``, which comes with its merchant, or move the one that is there. Returns why
    it cannot be recorded, '' if it is."""

    def __call__(self, disputed: Payment, inquiry: ReportedInquiry) -> str: ...


class CaseMove(Protocol):
    """Move the case of a chargeback (its payment's id) that is under review, or lost, and open it first if it is not
    there yet. False if it does not wait for that."""

    def __call__(self, chargeback: UUID, *, lost: bool) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeHooks:
    """The functions that chargebacks registers."""

    record_inquiry: InquiryRecord
    move_case: CaseMove


DISPUTE_HOOKS: Final[Hook[DisputeHooks]] = Hook("chargebacks")
