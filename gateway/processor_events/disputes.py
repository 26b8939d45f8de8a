"""Disputes become chargebacks (CB), and those that are won their reversals (CR); cases follow from the payments."""

from __future__ import annotations

from typing import Final

from gateway.connectors.stripe import mapping, table
from gateway.connectors.stripe.asking import look
from gateway.models import Payment
from gateway.processor_events.ledger import chain_of, intent_of, record, taker, told_before
from gateway.processor_events.verdict import Event, Verdict, done, flagged, ignored

_INQUIRY: Final = "warning_"
"""How the states of an early warning begin: no money was taken."""
WON: Final = "won"


def about_dispute(event: Event) -> Verdict:
    dispute = look(event.account, f"/v1/disputes/{event.row.object_id}")
    ident, status = mapping.text_of(dispute.get("id")), str(dispute.get("status"))
    if status.startswith(_INQUIRY) or status == "prevented":
        return ignored(f"an inquiry ({status}): no money was taken")
    chain = chain_of(event, intent_of(event, dispute.get("payment_intent")))
    if chain is None:
        return ignored("not one of ours")
    first = chain.first
    money = mapping.money_of(dispute.get("amount"), first.currency)
    if not ident or money is None or str(dispute.get("currency", "")).upper() != first.currency:
        return flagged(f"{ident} has another currency than the payment, or no amount", payment=first.pk)
    charged = told_before(event, ident)
    verdict = None
    if charged is None:
        target = taker(chain, mapping.text_of(dispute.get("charge")), money.amount)
        if target is None:
            return flagged(f"{ident} of {money}: no single payment it could be of", payment=first.pk)
        reason = table.DISPUTES.get(str(dispute.get("reason")), table.NO_REASON)
        verdict = record(event, "CB", target, money, reference=ident, code=reason, ident=ident)
        charged = verdict.made
    if status != WON or charged is None:
        return verdict or done("recorded before", payment=first.pk, made=charged)
    chargeback = Payment.objects.select_related("merchant").get(pk=charged)
    return record(event, "CR", chargeback, money, reference=f"{ident}:won", ident=ident)
