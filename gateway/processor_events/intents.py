"""Intent events: inquire at once about a payment IN_DOUBT; record captures and cancellations made at the processor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.client import fetch_object, list_objects
from gateway.connectors.card_api.operation import REFUNDS_PATH, SETUPS_PATH
from gateway.core.money import Money
from gateway.models import Payment, Status
from gateway.payments.chain_amounts import OPEN_STATUSES, Chain, compute_capturable_amount
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
    find_event_chain,
    is_of_earlier_attempt,
    record_processor_follow_up,
    wake_open_inquiries,
)
from gateway.processor_events.releases import is_release


def handle_intent_event(event: EventContext) -> EventOutcome:
    """Compare a payment intent with its chain: wake recovery, or record what was done at the processor. Raises
    ChainStillOpenError: what is under way may be what the event is about, or not."""
    intent = fetch_intent(event, event.row.object_id)
    chain = find_event_chain(event, intent)
    if chain is None:
        return build_ignored_outcome("not one of ours")
    first = chain.first
    if is_of_earlier_attempt(event, chain, intent):
        return _check_declined_intent(event, first, intent, "declined")
    wake_open_inquiries(chain)
    if any(member.status in OPEN_STATUSES for member in chain.members):
        raise ChainStillOpenError("a payment of the chain has no final result")
    if first.status != Status.APPROVED:
        return _check_declined_intent(event, first, intent, str(first.status))
    if first.payment_type != "PA":
        return build_done_outcome(payment=first.pk)
    return _record_authorization_change(event, chain, intent)


def handle_setup_event(event: EventContext) -> EventOutcome:
    """Wake recovery for a registration IN_DOUBT."""
    setup = fetch_object(event.account, f"{SETUPS_PATH}/{event.row.object_id}")
    chain = find_event_chain(event, setup)
    if chain is None:
        return build_ignored_outcome("not one of ours")
    wake_open_inquiries(chain)
    return build_done_outcome(payment=chain.first.pk)


def _check_declined_intent(
    event: EventContext, first: Payment, intent: Mapping[str, Any], own_status: str
) -> EventOutcome:
    """Flag an intent that holds money at the processor though its payment, or its attempt of it, is declined here
    (``own_status``); refunded money does not count."""
    held = intent.get("status") == "requires_capture"
    if intent.get("status") == "succeeded" and (received := intent.get("amount_received")):
        refunds = list_objects(event.account, REFUNDS_PATH, [("payment_intent", event.row.object_id)])
        given = [refund for refund in refunds if refund.get("status") in ("succeeded", "pending")]
        refunded = [refund.get("amount") for refund in given if not is_release(event, intent, refund)]
        held = sum(amount for amount in refunded if isinstance(amount, int)) < received
    if held:
        return build_flagged_outcome(f"stands at the processor, {own_status} here", payment=first.pk)
    return build_done_outcome(payment=first.pk)


def _record_authorization_change(event: EventContext, chain: Chain, intent: Mapping[str, Any]) -> EventOutcome:
    """Record a reversal (RV) of an authorization that expired or was cancelled at the processor, or a capture (CP) that
    was made there."""
    first, ident = chain.first, mapping.parse_object_id(intent.get("id"))
    if intent.get("status") == "canceled" and (left := compute_capturable_amount(chain, first)) > 0:
        return record_processor_follow_up(
            event, "RV", first, Money(left, first.currency), chain=chain, reference=f"{ident}:canceled", ident=ident
        )
    received = mapping.money_from_units(intent.get("amount_received"), first.currency)
    known = chain.sum_of(first, "CP")
    if received is not None and received.amount > known:
        more = Money(received.amount - known, first.currency)
        charge = mapping.parse_charge(intent).id
        reference = f"{ident}:captured:{intent.get('amount_received')}"
        return record_processor_follow_up(
            event, "CP", first, more, chain=chain, reference=reference, ident=charge or ident
        )
    return build_done_outcome(payment=first.pk)
