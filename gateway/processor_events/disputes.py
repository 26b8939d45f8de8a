"""Dispute events: record a dispute as a chargeback (CB), a won one as its reversal (CR), and an inquiry as an alert;
what the processor decides moves the case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gateway.connectors.card_api import mapping, result_mapping
from gateway.connectors.card_api.client import fetch_object
from gateway.core import clock
from gateway.core.compact_json import get_json_object
from gateway.core.money import Money
from gateway.core.result_codes import CHARGEBACK_WITHOUT_REASON
from gateway.models import Payment
from gateway.payments.stored_answer import ReportedDispute
from gateway.processor_events.dispute_hooks import DISPUTE_HOOKS, ReportedInquiry
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
"""Prefix of the states of an inquiry, which takes no money. It becomes a dispute under the same id, or is closed."""
_INQUIRY_ANSWERED, _INQUIRY_CLOSED = "warning_under_review", "warning_closed"
PREVENTED: Final = "prevented"
DISPUTE_WON: Final = "won"
DISPUTE_LOST: Final = "lost"
IS_LOST_BY_STATE: Final[Mapping[str, bool]] = {"under_review": False, DISPUTE_LOST: True}
"""States of a dispute that move its case: evidence was submitted at the processor, or the dispute is lost. Source: the
processor's public reference, Dispute, status."""
MAX_ANSWER_TIME: Final = timedelta(days=3650)
"""How far from now evidence may be due; a time beyond is none."""
_NETWORK_REASON: Final = re.compile("[A-Z0-9.]{1,16}")


def handle_dispute_event(event: EventContext) -> EventOutcome:
    """Record an inquiry or the chargeback of a dispute, and move its case; record its reversal once it is won."""
    dispute = fetch_object(event.account, f"/v1/disputes/{event.row.object_id}")
    ident, status = mapping.parse_object_id(dispute.get("id")), str(dispute.get("status"))
    if status == PREVENTED:
        return build_ignored_outcome(f"a dispute that was {status}: no money was taken")
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
        if status.startswith(_INQUIRY):
            return _record_inquiry(event, target, money, dispute, reason)
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
    if recorded is not None and status == DISPUTE_LOST and find_recorded_payment(event, f"{ident}:won") is not None:
        why = f"{ident} was won, and its money is back here; now it is lost: ask the processor where the money is"
        return build_flagged_outcome(why, payment=first.pk)
    if recorded is not None and (is_lost := IS_LOST_BY_STATE.get(status)) is not None:
        moved = DISPUTE_HOOKS.get().move_case(recorded, lost=is_lost)
        why = f"{outcome.why if outcome is not None else 'recorded before'}; {status}"
        return build_done_outcome(why if moved else f"{why}, as its case says", payment=first.pk, recorded=recorded)
    if status != DISPUTE_WON or recorded is None:
        return outcome or build_done_outcome("recorded before", payment=first.pk, recorded=recorded)
    chargeback = Payment.objects.select_related("merchant").get(pk=recorded)
    return record_processor_follow_up(
        event, "CR", chargeback, money, chain=chain, reference=f"{ident}:won", ident=ident
    )


def _record_inquiry(
    event: EventContext, target: Payment, money: Money, dispute: Mapping[str, Any], reason: str
) -> EventOutcome:
    """Record an inquiry about ``target``, or move the one that is there by its state."""
    ident, status = mapping.parse_object_id(dispute.get("id")), str(dispute.get("status"))
    told = _read_dispute(dispute, clock.real_now())
    inquiry = ReportedInquiry(
        provider=event.row.account.connector,
        reference=ident,
        money=money,
        reason=reason,
        scheme_reason=told.scheme_reason,
        answer_by=datetime.fromisoformat(told.answer_by) if told.answer_by else None,
        answered=status == _INQUIRY_ANSWERED,
        closed=status == _INQUIRY_CLOSED,
    )
    if why := DISPUTE_HOOKS.get().record_inquiry(target, inquiry):
        return build_flagged_outcome(f"{ident}, an inquiry: {why}", payment=target.pk)
    return build_done_outcome(f"an inquiry ({status}): no money was taken", payment=target.pk)


def _read_dispute(dispute: Mapping[str, Any], now: datetime) -> ReportedDispute:
    """What a dispute's case needs to know: until when the processor takes evidence, and the card network's reason code.
    The processor's time is the one that counts: it is shorter than the network's. Source: the processor's public
    reference, Dispute, evidence_details.due_by (0: no answer is possible) and
    payment_method_details.card.network_reason_code."""
    due: Any = get_json_object(dispute, "evidence_details").get("due_by")
    furthest = MAX_ANSWER_TIME.total_seconds()
    is_time = type(due) is int and due > 0 and now.timestamp() - furthest < due < now.timestamp() + furthest
    card = get_json_object(get_json_object(dispute, "payment_method_details"), "card")
    code = str(card.get("network_reason_code") or "")
    return ReportedDispute(
        answer_by=datetime.fromtimestamp(due, UTC).isoformat() if is_time else "",
        scheme_reason=code if _NETWORK_REASON.fullmatch(code) else "",
    )
