"""What a card API's processor says of disputes: its inquiries become alerts, and its decisions move the cases.

Called by gateway.processor_events through the functions that are registered there. Source: docs/decisions/0156.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from chargebacks import alerts, cases
from chargebacks.models import Chargeback, DisputeAlert
from chargebacks.notes import INQUIRY_ANSWERED_NOTE, INQUIRY_CLOSED_NOTE, LOST_NOTE, SUBMITTED_NOTE
from chargebacks.states import DisputeEvent, DisputeTransitionError
from gateway.access import audit_log
from gateway.core import clock
from gateway.models import Payment
from gateway.processor_events.dispute_hooks import ReportedInquiry

PROCESSOR: Final = audit_log.Actor(name="the processor")


def record_inquiry(disputed: Payment, inquiry: ReportedInquiry) -> str:
    """Record a processor's inquiry as an alert, or move the one that is there by what became of it. Returns why it
    cannot be recorded, '' if it is."""
    answer_by = inquiry.answer_by + disputed.merchant.clock_offset if inquiry.answer_by is not None else None
    facts = alerts.AlertFacts(
        provider=inquiry.provider,
        reference=inquiry.reference,
        amount=inquiry.money.amount,
        currency=inquiry.money.currency,
        kind=DisputeAlert.Kind.INQUIRY,
        reason=inquiry.reason,
        scheme_reason=inquiry.scheme_reason,
        respond_by=answer_by,
    )
    try:
        alert, _made = alerts.record_alert(disputed, facts, PROCESSOR)
    except alerts.AlertNotPossibleError as fault:
        return str(fault)
    if inquiry.answered:
        alerts.close_inquiry(alert, DisputeAlert.State.ANSWERED, INQUIRY_ANSWERED_NOTE)
    elif inquiry.closed:
        alerts.close_inquiry(alert, DisputeAlert.State.LET_GO, INQUIRY_CLOSED_NOTE)
    return ""


def move_reported_case(chargeback: UUID, *, lost: bool) -> bool:
    """Move the case of a chargeback that is under review at the processor, with the evidence submitted there, or that
    the processor calls lost. False if the case does not wait for that."""
    event, note = (DisputeEvent.LOSE, LOST_NOTE) if lost else (DisputeEvent.SUBMIT, SUBMITTED_NOTE)
    if not Chargeback.objects.filter(pk=chargeback).exists():
        cases.adopt_payment(Payment.objects.select_related("merchant").get(pk=chargeback))
    for _try in range(cases.MAX_CASE_UPDATE_TRIES):
        case = Chargeback.objects.select_related("merchant").get(pk=chargeback)
        at = clock.merchant_now(case.merchant)
        submitted: dict[str, Any] = {} if lost else {"submitted_at": at}
        try:
            if cases.move_case(case, event, at=at, by=PROCESSOR.name, note=note, **submitted):
                return True
        except DisputeTransitionError:
            return False
    return False
