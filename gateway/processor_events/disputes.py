"""Disputes become chargebacks (CB), and those that are won their reversals (CR); cases follow from the payments."""

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
    record_processor_follow_up,
)

_INQUIRY: Final = "warning_"
"""How the states of an early warning begin: no money was taken."""
DISPUTE_WON: Final = "won"


def handle_dispute_event(event: EventContext) -> EventOutcome:
    dispute = fetch_object(event.account, f"/v1/disputes/{event.row.object_id}")
    ident, status = mapping.parse_object_id(dispute.get("id")), str(dispute.get("status"))
    if status.startswith(_INQUIRY) or status == "prevented":
        return build_ignored_outcome(f"an inquiry ({status}): no money was taken")
    chain = find_event_chain(event, fetch_intent(event, dispute.get("payment_intent")))
    if chain is None:
        return build_ignored_outcome("not one of ours")
    first = chain.first
    money = mapping.money_from_units(dispute.get("amount"), first.currency)
    if not ident or money is None or str(dispute.get("currency", "")).upper() != first.currency:
        return build_flagged_outcome(f"{ident} has another currency than the payment, or no amount", payment=first.pk)
    charged = find_recorded_payment(event, ident)
    verdict = None
    if charged is None:
        target = find_debited_payment(chain, mapping.parse_object_id(dispute.get("charge")), money.amount)
        if target is None:
            return build_flagged_outcome(f"{ident} of {money}: no single payment it could be of", payment=first.pk)
        reason = result_mapping.CHARGEBACK_REASON_BY_DISPUTE.get(str(dispute.get("reason")), CHARGEBACK_WITHOUT_REASON)
        verdict = record_processor_follow_up(event, "CB", target, money, reference=ident, code=reason, ident=ident)
        charged = verdict.made
    if status != DISPUTE_WON or charged is None:
        return verdict or build_done_outcome("recorded before", payment=first.pk, made=charged)
    chargeback = Payment.objects.select_related("merchant").get(pk=charged)
    return record_processor_follow_up(event, "CR", chargeback, money, reference=f"{ident}:won", ident=ident)
