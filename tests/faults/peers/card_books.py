"""What a card API's own books hold, held against ours. Pure; the books are the lists that its API gives to anybody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from tests.faults.books import Payment, chains, hold
from tests.faults.finding import DOUBLED, LOST, NO_EVIDENCE, Finding

OURS: Final = "tollhouse_payment"
VOIDS: Final = "tollhouse_void"
CLOSED: Final = "tollhouse_closed"
UNFOUNDED_WITHOUT: Final = frozenset({"900.100.301", "900.100.600", "900.100.200", "700.600.002"})
"""Declines that say that nothing stands there: it was never sent, was turned away, is taken back, or a rule of ours
stopped it."""
ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardBooks:
    """The processor's objects as its API shows them."""

    intents: Sequence[Mapping[str, Any]]
    refunds: Sequence[Mapping[str, Any]]


def compare(payments: Mapping[str, Payment], theirs: CardBooks) -> list[Finding]:
    """``payments``: all of the channel. One intent for each first payment, and what stands of it is what stands here;
    one refund for each of ours; a decline by the processor is one there."""
    found: list[Finding] = []
    intents: dict[str, Mapping[str, Any]] = {}
    for intent in theirs.intents:
        ident = intent["metadata"].get(OURS, "")
        if ident in intents:
            found.append(Finding(kind=DOUBLED, what="two intents of one payment", payment=ident))
        if ident:
            intents[ident] = intent
    found += [
        Finding(kind=LOST, what="the card API has an intent, we know nothing of it", payment=ident)
        for ident in intents
        if ident not in payments
    ]
    given = _given(theirs.refunds)
    members = chains(payments.values())
    for payment in payments.values():
        if payment.referenced and payment.kind == "RF":
            found += _of_refund(payment, theirs.refunds)
    for ident, payment in payments.items():
        if not payment.referenced:
            found += _of_first(payment, members[payment.chain], intents.get(ident), given)
    return found


def stands(intent: Mapping[str, Any] | None, given: Mapping[str, Decimal]) -> Decimal:
    """What an intent holds or took, less what was given back of it."""
    if intent is None or intent["status"] not in ("requires_capture", "succeeded"):
        return ZERO
    charge = intent.get("latest_charge") or {}
    if "amount_capturable" in intent and "amount_received" in intent:
        units = Decimal(intent["amount_capturable"] + intent["amount_received"])
    else:
        units = Decimal(charge["amount"])
        # Captured in part: the rest was let go, which is written down as a refund by some.
    return units.scaleb(-2) - given.get(intent["id"], ZERO) - given.get(charge.get("id", ""), ZERO)


def held(intent: Mapping[str, Any] | None) -> Decimal:
    """What an intent holds and has not captured."""
    if intent is None or intent["status"] != "requires_capture":
        return ZERO
    units = intent.get("amount_capturable", intent["amount"])
    return Decimal(units).scaleb(-2)


def _given(refunds: Iterable[Mapping[str, Any]]) -> dict[str, Decimal]:
    """Charge or intent → what was given back of it; each refund counts once."""
    given: dict[str, Decimal] = defaultdict(Decimal)
    for refund in refunds:
        if refund["status"] in ("succeeded", "pending"):
            of = refund.get("charge") or refund.get("payment_intent")
            given[str(of)] += Decimal(refund["amount"]).scaleb(-2)
    return given


def _of_first(
    first: Payment, members: Sequence[Payment], intent: Mapping[str, Any] | None, given: Mapping[str, Decimal]
) -> Iterable[Finding]:
    def fault(kind: str, what: str) -> Finding:
        return Finding(kind=kind, what=f"{first.kind} {first.status} {first.code}: {what}", payment=first.id)

    there, here = stands(intent, given), net(first, members)
    if there != here:
        yield fault(LOST, f"at the card API {there} stands, here {here}")
    # A capture without multicapture lets go of the rest at the processor.
    if (kept := held(intent)) not in (ZERO, ours := hold(first, members)):
        yield fault(LOST, f"the card API holds {kept}, here it is {ours}")
    if first.status == "APPROVED" and (intent is None or Decimal(intent["amount"]).scaleb(-2) != first.approved):
        yield fault(LOST, f"the card API has {intent and intent['amount']}, here it is {first.approved}")
    if first.status == "DECLINED" and first.code not in UNFOUNDED_WITHOUT and _asked(first):
        failed = intent is not None and bool(intent.get("last_payment_error"))
        if not failed and not (intent is not None and intent["status"] in ("canceled", "requires_payment_method")):
            yield fault(NO_EVIDENCE, f"the card API says {intent and intent['status']}")


def _asked(payment: Payment) -> bool:
    return bool(payment.moves) and payment.moves[-1].event != "refuse"


def net(first: Payment, members: Sequence[Payment]) -> Decimal:
    """What stands of a chain by our books: held or taken, less what was given back."""
    approved = {
        kind: sum((one.approved or ZERO for one in members if one.kind == kind and one.status == "APPROVED"), ZERO)
        for kind in ("PA", "DB", "CP", "RF", "RV")
    }
    held = approved["PA"] - approved["RV"] if first.kind == "PA" else approved["DB"] - approved["RV"]
    return (approved["CP"] or held) - approved["RF"]


def _of_refund(payment: Payment, refunds: Iterable[Mapping[str, Any]]) -> Iterable[Finding]:
    mine = [one for one in refunds if one["metadata"].get(OURS) == payment.id and one["status"] != "failed"]
    if len(mine) > 1:
        yield Finding(kind=DOUBLED, what=f"{len(mine)} refunds at the card API", payment=payment.id)
    amounts = [Decimal(one["amount"]).scaleb(-2) for one in mine]
    if payment.status == "APPROVED" and amounts != [payment.approved]:
        yield Finding(kind=LOST, what=f"given back there {amounts}, here {payment.approved}", payment=payment.id)
    if payment.status == "DECLINED" and mine:
        yield Finding(kind=LOST, what=f"declined here, given back there: {amounts}", payment=payment.id)
