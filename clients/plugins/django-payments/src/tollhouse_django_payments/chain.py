"""How a payment stands: the sums of its chain (captures, refunds, reversals) as the gateway lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from payments import PaymentStatus
from tollhouse.models import Listed

_FIRST = ("DB", "PA")
_ACCEPTED = ("approved", "review", "pending")
"""Outcomes of follow-ups that count: an acquirer with batches answers a capture or refund as pending, and does it."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A debit or capture of which ``amount`` is left to refund."""

    id: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class ChainState:
    """The state of all payments with one reference. ``status``: of django-payments, None before a first attempt;
    ``payment_id``: of the debit or authorization that counts; ``amount``: its amount; ``collected``: what was captured
    and not refunded, by debit or capture; ``refunds``: sums by their own reference."""

    status: str | None = None
    payment_id: str = ""
    payment_type: str = ""
    amount: Decimal = Decimal(0)
    currency: str = ""
    in_review: bool = False
    message: str = ""
    collected: tuple[Collected, ...] = ()
    refunds: Mapping[str, Decimal] = field(default_factory=dict)
    paid_twice: bool = False

    @property
    def captured_amount(self) -> Decimal:
        """What was captured and not refunded."""
        return sum((one.amount for one in self.collected), Decimal(0))


def sum_up_chain(records: Iterable[Listed]) -> ChainState:
    """The state that the gateway's records of one reference come to. The oldest approved payment counts; without one
    the newest that is pending; without that the newest decline."""
    rows = sorted(records, key=lambda one: one.id)  # ids rise with time
    firsts = [one for one in rows if one.paymentType in _FIRST and "referencedId" not in one]
    paid = [one for one in firsts if one.outcome in ("approved", "review")]
    if paid:
        return _sum_up_paid(paid[0], rows, paid_twice=len(paid) > 1)
    waiting = [one for one in firsts if one.outcome == "pending"]
    if waiting:
        return _describe(waiting[-1], PaymentStatus.WAITING)
    return _describe(firsts[-1], PaymentStatus.REJECTED) if firsts else ChainState()


def _describe(first: Listed, status: str, **sums: Any) -> ChainState:
    return ChainState(
        status=status,
        payment_id=first.id,
        payment_type=first.paymentType or "",
        amount=first.amount or Decimal(0),
        currency=first.currency or "",
        in_review=first.outcome == "review",
        message=first.result.description or "",
        **sums,
    )


def _sum_up_paid(first: Listed, rows: list[Listed], *, paid_twice: bool) -> ChainState:
    takings = [first] if first.paymentType == "DB" else _follow(rows, first.id, "CP")
    given_back = {one.id: _follow(rows, one.id, "RF", "RV") for one in takings}
    collected = (Collected(one.id, _total([one]) - _total(given_back[one.id])) for one in takings)
    left = tuple(one for one in collected if one.amount > 0)
    if left:
        status = PaymentStatus.CONFIRMED
    elif takings or _total(_follow(rows, first.id, "RV")) >= _total([first]):
        status = PaymentStatus.REFUNDED
    else:
        status = PaymentStatus.PREAUTH
    refunds: dict[str, Decimal] = {}
    for one in (row for several in given_back.values() for row in several):
        if "merchantTransactionId" in one:
            name = one["merchantTransactionId"]
            refunds[name] = refunds.get(name, Decimal(0)) + _total([one])
    return _describe(first, status, collected=left, refunds=refunds, paid_twice=paid_twice)


def _follow(rows: list[Listed], target: str, *types: str) -> list[Listed]:
    """The accepted follow-ups of one payment."""
    return [
        one
        for one in rows
        if one.paymentType in types
        and one.outcome in _ACCEPTED
        and "referencedId" in one
        and one["referencedId"] == target
    ]


def _total(rows: list[Listed]) -> Decimal:
    return sum((one.amount or Decimal(0) for one in rows), Decimal(0))
