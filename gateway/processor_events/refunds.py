"""Refund events: record refunds made in the processor's own pages; flag refunds of ours that failed later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.client import fetch_object, list_objects
from gateway.connectors.card_api.inquiry import VOID_MARK
from gateway.connectors.card_api.operation import REFUNDS_PATH
from gateway.core import identifiers
from gateway.models import Payment, ProcessorEvent, Status
from gateway.payments.chain_amounts import OPEN_STATUSES
from gateway.processor_events.event_outcomes import (
    ChainStillOpenError,
    EventContext,
    EventOutcome,
    build_done_outcome,
    build_flagged_outcome,
    build_ignored_outcome,
)
from gateway.processor_events.recording import (
    fetch_intent,
    find_debited_payment,
    find_event_chain,
    find_recorded_payment,
    is_of_earlier_attempt,
    record_processor_follow_up,
    wake_open_inquiries,
)

_FAILED: Final = ("failed", "canceled")


def handle_refund_event(event: EventContext) -> EventOutcome:
    """Handle an event about one refund."""
    if not event.row.object_id.startswith("re_"):
        # Older versions of the API send the charge with the event.
        return handle_charge_event(event)
    return _handle_refund(event, fetch_object(event.account, f"{REFUNDS_PATH}/{event.row.object_id}"))


def handle_charge_event(event: EventContext) -> EventOutcome:
    """Handle every refund of a charge; of their outcomes the one that needs a person is returned first."""
    outcomes = [
        _handle_refund(event, refund)
        for refund in list_objects(event.account, REFUNDS_PATH, [("charge", event.row.object_id)])
    ]
    if not outcomes:
        return build_ignored_outcome("the charge has no refunds")
    return min(outcomes, key=lambda outcome: _STATE_PRIORITY.index(outcome.state))


_STATE_PRIORITY: Final = (
    ProcessorEvent.State.FLAGGED, ProcessorEvent.State.DONE, ProcessorEvent.State.IGNORED, ProcessorEvent.State.NEW,
)  # fmt: skip


def _handle_refund(event: EventContext, refund: Mapping[str, Any]) -> EventOutcome:
    ident, failed = mapping.parse_object_id(refund.get("id")), refund.get("status") in _FAILED
    if mapping.read_mark(refund, VOID_MARK):
        return (
            build_flagged_outcome(f"{ident}, which took a payment back, failed")
            if failed
            else build_done_outcome("it took a payment back")
        )
    ours = identifiers.parse_id(mapping.read_mark(refund, mapping.PAYMENT_MARK))
    intent = fetch_intent(event, refund.get("payment_intent"))
    chain = find_event_chain(event, intent)
    if chain is None:
        return build_ignored_outcome("not one of ours")
    if is_of_earlier_attempt(event, chain, intent):
        return build_flagged_outcome(f"{ident} is of an attempt that was declined here", payment=chain.first.pk)
    member = chain.find(ours) if ours is not None else None
    if member is not None:
        wake_open_inquiries(chain)
        if failed and member.status in OPEN_STATUSES:
            raise ChainStillOpenError("the refund has no final result")
        return _check_own_refund(member, ident, failed=failed)
    if (before := find_recorded_payment(event, ident)) is not None:
        return (
            build_flagged_outcome(f"{ident}, which was recorded, failed", payment=before)
            if failed
            else build_done_outcome(made=before)
        )
    if failed:
        return build_done_outcome("it failed, and nothing was recorded of it", payment=chain.first.pk)
    currency = str(refund.get("currency", "")).upper()
    money = mapping.money_from_units(refund.get("amount"), chain.first.currency)
    if money is None or currency != chain.first.currency or not ident:
        return build_flagged_outcome(
            f"{ident} has another currency than the payment, or no amount", payment=chain.first.pk
        )
    target = find_debited_payment(chain, mapping.parse_object_id(refund.get("charge")), money.amount)
    if target is None:
        return build_flagged_outcome(f"{ident} of {money}: no single payment it could be of", payment=chain.first.pk)
    return record_processor_follow_up(event, "RF", target, money, reference=ident, ident=ident)


def _check_own_refund(member: Payment, ident: str, *, failed: bool) -> EventOutcome:
    """Flag a refund of ours that was approved here and failed at the processor later."""
    if failed and member.status == Status.APPROVED:
        return build_flagged_outcome(f"{ident} failed at the processor after it was approved", payment=member.pk)
    return build_done_outcome(payment=member.pk)
