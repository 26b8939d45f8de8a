"""Dispute events: record a dispute as a chargeback (CB) and a won one as its reversal (CR)."""

from __future__ import annotations

from typing import Final

from gateway.connectors.card_api import mapping, result_mapping
from gateway.connectors.card_api.client import fetch_object
from gateway.core.result_codes import CHARGEBACK_WITHOUT_REASON
from gateway.models import Payment
from gateway.processor_events.event_outcomes import (
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
)

_INQUIRY: Final = "warning_"
"""Prefix of the states of an early fraud warning, which takes no money."""
DISPUTE_WON: Final = "won"


def handle_dispute_event(event: EventContext) -> EventOutcome:
    """Record the chargeback of a dispute, and its reversal once it is won."""
    dispute = fetch_object(event.account, f"/v1/disputes/{event.row.object_id}")
    ident, status = mapping.parse_object_id(dispute.get("id")), str(dispute.get("status"))
    if status.startswith(_INQUIRY) or status == "prevented":
        return build_ignored_outcome(f"an inquiry ({status}): no money was taken")
    intent = fetch_intent(event, dispute.get("payment_intent"))
    chain = find_event_chain(event, intent)
    if chain is None:
        return build_ignored_outcome("not one of ours")
    if is_of_earlier_attempt(event, chain, intent):
        return build_flagged_outcome(f"{ident} is of an attempt that was declined here", payment=chain.first.pk)
    first = chain.first
    money = mapping.money_from_units(dispute.get("amount"), first.currency)
    if not ident or money is None or str(dispute.get("currency", "")).upper() != first.currency:
        return build_flagged_outcome(f"{ident} has another currency than the payment, or no amount", payment=first.pk)
    recorded = find_recorded_payment(event, ident)
    outcome = None
    if recorded is None:
        target = find_debited_payment(chain, mapping.parse_object_id(dispute.get("charge")), money.amount)
        if target is None:
            return flag_unless_open(chain, f"{ident} of {money}: no single payment it could be of", first.pk)
        reason = result_mapping.CHARGEBACK_REASON_BY_DISPUTE.get(str(dispute.get("reason")), CHARGEBACK_WITHOUT_REASON)
        outcome = record_processor_follow_up(
            event, "CB", target, money, chain=chain, reference=ident, code=reason, ident=ident
        )
        recorded = outcome.recorded
    if status != DISPUTE_WON or recorded is None:
        return outcome or build_done_outcome("recorded before", payment=first.pk, recorded=recorded)
    chargeback = Payment.objects.select_related("merchant").get(pk=recorded)
    return record_processor_follow_up(
        event, "CR", chargeback, money, chain=chain, reference=f"{ident}:won", ident=ident
    )
