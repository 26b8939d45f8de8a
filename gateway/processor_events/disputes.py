"""Dispute events: record a dispute as a chargeback (CB) and a won one as its reversal (CR)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway.connectors.card_api import mapping, result_mapping
from gateway.connectors.card_api.client import fetch_object
from gateway.core import clock
from gateway.core.result_codes import CHARGEBACK_WITHOUT_REASON
from gateway.models import Payment
from gateway.payments.stored_answer import ReportedDispute
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
MAX_ANSWER_TIME: Final = timedelta(days=3650)
"""How far from now evidence may be due; a time beyond is none."""
_NETWORK_REASON: Final = re.compile("[A-Z0-9.]{1,16}")


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
            event,
            "CB",
            target,
            money,
            chain=chain,
            reference=ident,
            code=reason,
            ident=ident,
            dispute=_read_dispute(dispute, clock.real_now()),
        )
        recorded = outcome.recorded
    if status != DISPUTE_WON or recorded is None:
        return outcome or build_done_outcome("recorded before", payment=first.pk, recorded=recorded)
    chargeback = Payment.objects.select_related("merchant").get(pk=recorded)
    return record_processor_follow_up(
        event, "CR", chargeback, money, chain=chain, reference=f"{ident}:won", ident=ident
    )


def _read_dispute(dispute: Mapping[str, Any], now: datetime) -> ReportedDispute:
    """What a dispute's case needs to know: until when the processor takes evidence, and the card network's reason code.
    The processor's time is the one that counts: it is shorter than the network's. Source: the processor's public
    reference, Dispute, evidence_details.due_by (0: no answer is possible) and
    payment_method_details.card.network_reason_code."""
    due: Any = _read_member(dispute, "evidence_details").get("due_by")
    furthest = MAX_ANSWER_TIME.total_seconds()
    is_time = type(due) is int and due > 0 and now.timestamp() - furthest < due < now.timestamp() + furthest
    card = _read_member(_read_member(dispute, "payment_method_details"), "card")
    code = str(card.get("network_reason_code") or "")
    return ReportedDispute(
        answer_by=datetime.fromtimestamp(due, UTC).isoformat() if is_time else "",
        scheme_reason=code if _NETWORK_REASON.fullmatch(code) else "",
    )


def _read_member(resource: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = resource.get(name)
    return found if isinstance(found, dict) else {}
