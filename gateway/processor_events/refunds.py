"""Refund events: record refunds made in the processor's own pages, and refunds that failed after they were approved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import Q

from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.client import fetch_object, list_objects
from gateway.connectors.card_api.inquiry import VOID_MARK
from gateway.connectors.card_api.operation import REFUNDS_PATH
from gateway.core import clock, identifiers
from gateway.models import Payment, ProcessorEvent, Status
from gateway.payments import store
from gateway.payments.chain_amounts import OPEN_STATUSES
from gateway.payments.states import PaymentTransitionError
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
    flag_unless_open,
    is_of_earlier_attempt,
    record_processor_follow_up,
    wake_open_inquiries,
)
from gateway.processor_events.releases import is_release

_FAILED: Final = ("failed", "canceled")
MAX_FAILURE_REASON_CHARS: Final = 35
"""Characters of a processor's reason: as many as the wire has for a bank's."""


def handle_refund_event(event: EventContext) -> EventOutcome:
    """Handle an event about one refund."""
    if not event.row.object_id.startswith("re_"):
        # Older versions of the API send the charge with the event.
        return handle_charge_event(event)
    return _handle_refund(event, fetch_object(event.account, f"{REFUNDS_PATH}/{event.row.object_id}"))


def handle_charge_event(event: EventContext) -> EventOutcome:
    """Handle every refund of a charge; of their outcomes the one that needs a person is returned first. One that has
    to wait stops none of the others: afterwards the whole event is tried again."""
    outcomes: list[EventOutcome] = []
    still_open: ChainStillOpenError | None = None
    for refund in list_objects(event.account, REFUNDS_PATH, [("charge", event.row.object_id)]):
        try:
            outcomes.append(_handle_refund(event, refund))
        except ChainStillOpenError as fault:
            still_open = fault
    if still_open is not None:
        raise still_open
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
    if is_release(event, intent, refund):
        return build_done_outcome("it let go of what was authorized and not captured", payment=chain.first.pk)
    if is_of_earlier_attempt(event, chain, intent):
        return build_flagged_outcome(f"{ident} is of an attempt that was declined here", payment=chain.first.pk)
    member = chain.find(ours) if ours is not None else None
    if member is not None:
        wake_open_inquiries(chain)
        if failed and member.status in OPEN_STATUSES:
            raise ChainStillOpenError("the refund has no final result")
        return _record_failure(event, member, refund) if failed else build_done_outcome(payment=member.pk)
    if (before := find_recorded_payment(event, ident)) is not None:
        recorded = chain.find(before)
        if recorded is None:
            raise ChainStillOpenError("the refund was recorded just now")
        return _record_failure(event, recorded, refund) if failed else build_done_outcome(recorded=before)
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
        return flag_unless_open(chain, f"{ident} of {money}: no single payment it could be of", chain.first.pk)
    return record_processor_follow_up(event, "RF", target, money, chain=chain, reference=ident, ident=ident)


def _record_failure(event: EventContext, refunded: Payment, refund: Mapping[str, Any]) -> EventOutcome:
    """Record that a refund (or a reversal, which is one there) failed after it was approved here: its money can be
    refunded again, and the merchant is told. Flagged for a person, since the shopper waits for the money: by one event,
    also where the worker that recorded the failure died before its event was flagged."""
    if refunded.status != Status.APPROVED:
        return build_done_outcome(payment=refunded.pk)
    ident, reason = mapping.parse_object_id(refund.get("id")), str(refund.get("failure_reason") or refund["status"])
    why = f"{ident} failed at the processor after it was approved ({reason}): its money can be refunded again"
    if refunded.returned_at is not None:
        if _was_flagged(event, refunded, [ident, mapping.parse_object_id(refund.get("charge"))], why):
            return build_done_outcome("recorded before", payment=refunded.pk)
        return build_flagged_outcome(why, payment=refunded.pk)
    try:
        store.record_returned_transfer(
            refunded, reason[:MAX_FAILURE_REASON_CHARS], at=clock.merchant_now(event.merchant)
        )
    except PaymentTransitionError:
        raise ChainStillOpenError("the refund changed meanwhile") from None
    return build_flagged_outcome(why, payment=refunded.pk)


def _was_flagged(event: EventContext, refunded: Payment, objects: Sequence[str], why: str) -> bool:
    """Whether another event about this refund, or its charge, was flagged for its failure; a person may have settled it
    since."""
    others = ProcessorEvent.objects.filter(
        account=event.row.account_id, object_id__in=objects, payment=refunded.pk
    ).exclude(pk=event.row.pk)
    settled = Q(state=ProcessorEvent.State.DONE, why=why[:255])
    return others.filter(Q(state=ProcessorEvent.State.FLAGGED) | settled).exists()
