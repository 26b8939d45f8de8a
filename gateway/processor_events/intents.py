"""Intents: a payment in doubt is asked about at once; what was done to one in the processor's own pages is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.connectors.stripe import mapping
from gateway.connectors.stripe.asking import listed, look
from gateway.connectors.stripe.question import REFUNDS, SETUPS
from gateway.models import Payment, Status
from gateway.money import Money
from gateway.payments.chain import OPEN, Chain, capturable
from gateway.processor_events.ledger import chain_of, intent_of, record, wake_open
from gateway.processor_events.verdict import Event, Verdict, done, flagged, ignored


def about_intent(event: Event) -> Verdict:
    intent = intent_of(event, event.row.object_id)
    chain = chain_of(event, intent)
    if chain is None:
        return ignored("not one of ours")
    first = chain.first
    if wake_open(chain):
        return done("asked about at once", payment=first.pk)
    if any(member.status in OPEN for member in chain.members):
        # Somebody is asking at this moment, and will know.
        return done("is being asked about", payment=first.pk)
    if first.status != Status.APPROVED:
        return _of_a_declined_one(event, first, intent)
    if first.payment_type != "PA":
        return done(payment=first.pk)
    return _of_an_authorization(event, chain, intent)


def about_setup(event: Event) -> Verdict:
    setup = look(event.account, f"{SETUPS}/{event.row.object_id}")
    chain = chain_of(event, setup)
    if chain is None:
        return ignored("not one of ours")
    wake_open(chain)
    return done(payment=chain.first.pk)


def _of_a_declined_one(event: Event, first: Payment, intent: Mapping[str, Any]) -> Verdict:
    """Nothing may stand there of a payment that we call declined; what we took back does not."""
    held = intent.get("status") == "requires_capture"
    if intent.get("status") == "succeeded" and (received := intent.get("amount_received")):
        refunds = listed(event.account, REFUNDS, [("payment_intent", event.row.object_id)])
        given = [one.get("amount") for one in refunds if one.get("status") in ("succeeded", "pending")]
        held = sum(amount for amount in given if isinstance(amount, int)) < received
    if held:
        return flagged(f"stands at the processor, {first.status} here", payment=first.pk)
    return done(payment=first.pk)


def _of_an_authorization(event: Event, chain: Chain, intent: Mapping[str, Any]) -> Verdict:
    """It may have run out or been given up there, or been captured there."""
    first, ident = chain.first, mapping.text_of(intent.get("id"))
    if intent.get("status") == "canceled" and (left := capturable(chain, first)) > 0:
        return record(event, "RV", first, Money(left, first.currency), reference=f"{ident}:canceled", ident=ident)
    received = mapping.money_of(intent.get("amount_received"), first.currency)
    known = chain.sum_of(first, "CP")
    if received is not None and received.amount > known:
        more = Money(received.amount - known, first.currency)
        charge = mapping.charge_of(intent).id
        reference = f"{ident}:captured:{intent.get('amount_received')}"
        return record(event, "CP", first, more, reference=reference, ident=charge or ident)
    return done(payment=first.pk)
