"""Refunds: ours that failed later are flagged, others, made in the processor's own pages, are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway import identifiers
from gateway.connectors.stripe import mapping
from gateway.connectors.stripe.asking import listed, look
from gateway.connectors.stripe.looking import VOIDS
from gateway.connectors.stripe.question import REFUNDS
from gateway.models import Payment, ProcessorEvent, Status
from gateway.processor_events.ledger import chain_of, intent_of, record, taker, told_before, wake_open
from gateway.processor_events.verdict import Event, Verdict, done, flagged, ignored

_FAILED: Final = ("failed", "canceled")


def about_refund(event: Event) -> Verdict:
    if not event.row.object_id.startswith("re_"):
        # Older versions of the API send the charge with the event.
        return about_charge(event)
    return _placed(event, look(event.account, f"{REFUNDS}/{event.row.object_id}"))


def about_charge(event: Event) -> Verdict:
    """Every refund of a charge; what needs a person comes first."""
    found = [_placed(event, one) for one in listed(event.account, REFUNDS, [("charge", event.row.object_id)])]
    if not found:
        return ignored("the charge has no refunds")
    return min(found, key=lambda one: _ORDER.index(one.state))


_ORDER: Final = (
    ProcessorEvent.State.FLAGGED, ProcessorEvent.State.DONE, ProcessorEvent.State.IGNORED, ProcessorEvent.State.NEW,
)  # fmt: skip


def _placed(event: Event, refund: Mapping[str, Any]) -> Verdict:
    ident, failed = mapping.text_of(refund.get("id")), refund.get("status") in _FAILED
    if mapping.mark_of(refund, VOIDS):
        return flagged(f"{ident}, which took a payment back, failed") if failed else done("it took a payment back")
    ours = identifiers.parse_id(mapping.mark_of(refund, mapping.OURS))
    chain = chain_of(event, intent_of(event, refund.get("payment_intent")))
    if chain is None:
        return ignored("not one of ours")
    member = chain.find(ours) if ours is not None else None
    if member is not None:
        return _ours(member, ident, failed=failed) if not wake_open(chain) else done(payment=member.pk)
    if (before := told_before(event, ident)) is not None:
        return flagged(f"{ident}, which was recorded, failed", payment=before) if failed else done(made=before)
    if failed:
        return done("it failed, and nothing was recorded of it", payment=chain.first.pk)
    currency = str(refund.get("currency", "")).upper()
    money = mapping.money_of(refund.get("amount"), chain.first.currency)
    if money is None or currency != chain.first.currency or not ident:
        return flagged(f"{ident} has another currency than the payment, or no amount", payment=chain.first.pk)
    target = taker(chain, mapping.text_of(refund.get("charge")), money.amount)
    if target is None:
        return flagged(f"{ident} of {money}: no single payment it could be of", payment=chain.first.pk)
    return record(event, "RF", target, money, reference=ident, ident=ident)


def _ours(member: Payment, ident: str, *, failed: bool) -> Verdict:
    if failed and member.status == Status.APPROVED:
        return flagged(f"{ident} failed at the processor after it was approved", payment=member.pk)
    return done(payment=member.pk)
