"""Approvals in part that are held until the rest is paid with other means, or given back.

A payment of a form whose channel collects parts, and that is approved for less than was asked for, stays PENDING with
its approval: nobody is told success before the whole amount is there. A payment of the rest knows the parts before it.
As it is approved in full they are approved with it, in one transaction; given back, a part is in doubt until its void
is confirmed, like an approval that the channel does not take (docs/decisions/0113). When a part is given back is its
checkout's to know, which registers itself here. Source: docs/decisions/0129.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway.connectors.port import AcquirerReply
from gateway.core.hook import Hook
from gateway.core.money import Money
from gateway.core.result_codes import AWAITING_SHOPPER_CODE, OUTCOME_UNKNOWN_CODE
from gateway.models import Payment, Status, Suspension
from gateway.payments.outcomes import Approved, OutcomeUnknown, PaymentOutcome, Suspended
from gateway.payments.payment_request import PartCollection
from gateway.payments.risk_screening import PARTIAL_APPROVAL_DETAIL, PARTIAL_APPROVAL_REFUSED_CODE
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import (
    HeldPart,
    PrivateFacts,
    drop_held_part,
    end_collection,
    read_collection_end,
    read_earlier_parts,
    read_held_part,
    read_private_facts,
    read_transaction_link,
)

PART_HOLD_TIME: Final = timedelta(minutes=15)
"""How long a part is held without an attempt to pay the rest."""
MAX_HELD_PARTS: Final = 3
"""Parts of one amount. What is then missing has to be approved in full."""
PARTS_DETAIL: Final = "Parts"
"""The member of resultDetails that names the payments of the other parts."""


def list_collection_facts(collection: PartCollection | None) -> dict[str, Any]:
    """The private facts of a payment that begins under ``collection``."""
    if collection is None:
        return {}
    until = collection.until.isoformat() if collection.takes_part else ""
    return {"collect_until": until, "earlier_parts": tuple(ident.hex for ident in collection.earlier)}


def is_held(payment: Payment) -> bool:
    """Whether a payment holds a part at its acquirer, and waits for the rest."""
    return payment.status == Status.PENDING and read_held_part(payment.answer) is not None


def was_held(payment: Payment | None) -> bool:
    """Whether a payment that holds no part any more, and is not approved, once held one."""
    if payment is None or payment.status == Status.APPROVED or is_held(payment):
        return False
    return read_held_part(payment.answer) is not None


def get_held_amount(payment: Payment) -> Money:
    """What a held payment holds."""
    part = read_held_part(payment.answer)
    assert part is not None
    return Money(Decimal(part.amount), payment.currency)


def hold_part(payment: Payment, outcome: PaymentOutcome) -> PaymentOutcome:
    """``outcome``, or the suspension of a payment that is approved in part and collects the rest. What a shopper was
    sent away for is not held: its part is given back, since a rest may be final there later than a part is held. So is
    one of a payment that only the whole amount ends, whenever its shopper comes back.
    Raises PaymentTransitionError for the approval of a payment that holds a part."""
    if not isinstance(outcome, Approved):
        return outcome
    if is_held(payment):
        # A late answer: recovery has found the approval, and the checkout counts on it.
        raise PaymentTransitionError(f"payment {payment.id} holds a part already")
    granted = outcome.reply.approved
    if granted is None or granted >= payment.money:
        return outcome
    until = read_collection_end(payment.answer)
    if payment.status == Status.PENDING and (until or read_private_facts(payment.answer).whole_amount_only):
        return _begin_voiding(payment, granted, outcome)
    if not until or payment.status not in (Status.STARTED, Status.IN_DOUBT):
        return outcome
    reply = outcome.reply
    part = HeldPart(
        amount=granted.text(),
        granted_at=outcome.at.isoformat(),
        code=reply.code,
        network_reference=reply.network_reference,
        valid_for_s=reply.valid_for.total_seconds() if reply.valid_for is not None else None,
        trace_number=_get_trace_number(payment),
    )
    payment.answer = payment.answer | PrivateFacts(held_part=part, transaction_link=reply.transaction_link).as_json()
    told = f"approved for {granted.text()} of {payment.money.text()} {payment.currency}; held until the rest is paid"
    details = {**reply.details, PARTIAL_APPROVAL_DETAIL: told}
    return Suspended(
        reply=replace(reply, code=AWAITING_SHOPPER_CODE, approved=None, details=details),
        at=outcome.at,
        duration_ms=outcome.duration_ms,
        deadline=min(outcome.at + PART_HOLD_TIME, datetime.fromisoformat(until)),
        stage=Suspension.Stage.PART,
    )


def _get_trace_number(payment: Payment) -> int:
    """The number of the payment's message. Recovery has not sent it: there it is kept beside the payment."""
    opened = getattr(payment, "open", None)  # none once recovery has completed the payment meanwhile
    return opened.trace_number if payment.status == Status.IN_DOUBT and opened is not None else payment.trace_number


def load_earlier_parts(payment: Payment) -> list[Payment]:
    """The payments of the parts before this one, in order; empty, without a query, for any other payment."""
    idents = [UUID(text) for text in read_earlier_parts(payment.answer)]
    if not idents:
        return []
    found = Payment.objects.select_related("merchant", "channel").in_bulk(idents)
    return [found[ident] for ident in idents if ident in found]


def build_part_approval(part: Payment, others: Iterable[Payment], at: datetime) -> Approved:
    """The outcome of a held part as the whole amount is there. ``others``: the payments of the other parts."""
    held = read_held_part(part.answer)
    assert held is not None
    part.answer = drop_held_part(part.answer)
    granted = Money(Decimal(held.amount), part.currency)
    told = f"approved for {granted.text()} of {part.money.text()} {part.currency}; the rest was paid"
    details = {**part.answer.get("resultDetails", {}), PARTIAL_APPROVAL_DETAIL: told, **name_parts(others)}
    reply = AcquirerReply(
        code=held.code,
        approved=granted,
        connector_tx_id=part.connector_tx_id,
        network_reference=held.network_reference,
        transaction_link=read_transaction_link(part.answer),
        avs=part.answer.get("avs", ""),
        cvv=part.answer.get("cvv", ""),
        details=details,
        valid_for=_resolve_rest_of_validity(held, at),
    )
    return Approved(reply=reply, at=at)


def _resolve_rest_of_validity(held: HeldPart, at: datetime) -> timedelta | None:
    """How long the acquirer holds the part from ``at`` on: it counts from its own approval."""
    if held.valid_for_s is None:
        return None
    return timedelta(seconds=held.valid_for_s) - (at - datetime.fromisoformat(held.granted_at))


def name_parts(parts: Iterable[Payment]) -> dict[str, str]:
    """resultDetails of a payment that is one of several of an amount: id, brand and amount of each other one."""
    named = [f"{one.id.hex} {one.brand} {_get_amount(one).text()}" for one in parts]
    return {PARTS_DETAIL: ", ".join(named)} if named else {}


def _get_amount(payment: Payment) -> Money:
    if is_held(payment):
        return get_held_amount(payment)
    return Money(payment.amount if payment.approved_amount is None else payment.approved_amount, payment.currency)


def begin_giving_back(part: Payment, at: datetime) -> OutcomeUnknown:
    """The outcome by which a held part is given back: in doubt until recovery has voided it, declined from then on."""
    held = read_held_part(part.answer)
    assert held is not None
    part.trace_number = held.trace_number
    known = AcquirerReply(
        code=held.code, connector_tx_id=part.connector_tx_id, details=part.answer.get("resultDetails", {})
    )
    return _begin_voiding(part, Money(Decimal(held.amount), part.currency), OutcomeUnknown(reply=known, at=at))


def _begin_voiding(payment: Payment, granted: Money, known: PaymentOutcome) -> OutcomeUnknown:
    """The outcome of a payment whose approval in part is not kept. ``known``: what the acquirer answered, and when."""
    told = f"approved for {granted.text()} of {payment.money.text()} {payment.currency}; the approval was reversed"
    details = {**known.reply.details, PARTIAL_APPROVAL_DETAIL: told}
    refused = PrivateFacts(
        whole_amount_only=True,
        refused_code=PARTIAL_APPROVAL_REFUSED_CODE,
        refused_details=details,
        transaction_link=known.reply.transaction_link,
    )
    payment.answer = end_collection(payment.answer) | refused.as_json()
    reply = replace(known.reply, code=OUTCOME_UNKNOWN_CODE, approved=None, details=details)
    return OutcomeUnknown(reply=reply, at=known.at, duration_ms=known.duration_ms)


PartExpiry = Callable[[Payment], bool]
"""Gives a held part back whose time has passed, or lets it wait for the payment of the rest that is being made. Returns
whether it is given back."""
PART_EXPIRY: Final[Hook[PartExpiry]] = Hook("checkout")


def sum_held(parts: Sequence[Payment]) -> Decimal:
    """What held payments hold together."""
    return sum((get_held_amount(one).amount for one in parts), Decimal(0))
