"""Amounts of one transaction in an account statement (ISO 20022 camt.052 to 054): booked, ordered, charged. Pure.

A return with charges is often one entry: 103.00 is booked, 100.00 was collected (AmtDtls/InstdAmt), 3.00 are charges
(Chrgs). Source: ISO 20022 camt.053, AmountAndCurrencyExchange4 and Charges6; EPC 130-08 (return of a collection).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

CamtValues = Mapping[str, Sequence[str]]
"""Path within a transaction or entry → its texts; a currency is at the path of its amount and '@'."""
_INSTRUCTED: Final = "AmtDtls/InstdAmt/Amt"
_TRANSACTION: Final = "AmtDtls/TxAmt/Amt"
_RATES: Final = tuple(f"AmtDtls/{one}/CcyXchg/XchgRate" for one in ("InstdAmt", "TxAmt", "CntrValAmt"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CamtAmounts:
    """Texts as the bank sent them. ``booked``: moved on the account; ``instructed``: of the order behind it, '' if the
    bank does not say; ``charges``: those within ``booked``, '' for none; ``rate``: booked currency for one of the
    instructed."""

    booked: str
    booked_currency: str
    instructed: str
    instructed_currency: str
    charges: str
    rate: str

    into: bool

    @property
    def order_amount(self) -> tuple[str, str]:
        """Amount and currency of the order behind the booking. What the bank booked, where it took less back or gave
        more than was instructed: charges explain the opposite only."""
        if not self.instructed or self.instructed_currency != self.booked_currency:
            return (self.instructed or self.booked, self.instructed_currency or self.booked_currency)
        booked, instructed = parse_camt_amount(self.booked), parse_camt_amount(self.instructed)
        if booked is None or instructed is None or (booked > instructed if self.into else booked < instructed):
            return self.booked, self.booked_currency
        return self.instructed, self.instructed_currency


def read_camt_amounts(details: CamtValues, entry: CamtValues, *, into: bool, alone: bool = True) -> CamtAmounts:
    """The amounts of a transaction ``details`` of ``entry``. ``into``: credited; ``alone``: the entry has no other one,
    so that the entry's own amount and charges are the transaction's."""
    whole = entry if alone else {}
    booked, currency = _first_amount((details, "Amt"), (details, _TRANSACTION), (whole, "Amt"))
    instructed, instructed_in = _first_amount((details, _INSTRUCTED), (whole, _INSTRUCTED))
    charged = next((values for values in (details, whole) if any(path.startswith("Chrgs/") for path in values)), {})
    charges = _included_charges(charged)
    if not instructed and charges and "Chrgs/Rcrd/ChrgInclInd" in charged:
        instructed, instructed_in = _without_charges(booked, charges, into=into), currency
    if instructed and instructed_in == currency and not charges:
        charges = _difference(booked, instructed, into=into)
    rate = next((details[path][0] for path in _RATES if path in details), "")
    return CamtAmounts(
        booked=booked,
        booked_currency=currency,
        instructed=instructed,
        instructed_currency=instructed_in,
        charges=charges,
        rate=rate,
        into=into,
    )


def parse_camt_amount(text: str) -> Decimal | None:
    """A finite amount; None if it is none."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and -20 < amount.adjusted() < 20 else None


def _first_amount(*places: tuple[CamtValues, str]) -> tuple[str, str]:
    for values, path in places:
        if path in values:
            return values[path][0], values.get(f"{path}@", ("",))[0]
    return "", ""


def _included_charges(values: CamtValues) -> str:
    """The charges that are part of the booked amount: the bank's total, else the sum of those that are not booked
    apart (ChrgInclInd)."""
    if "Chrgs/TtlChrgsAndTaxAmt" in values:
        return values["Chrgs/TtlChrgsAndTaxAmt"][0]
    amounts = values.get("Chrgs/Rcrd/Amt") or values.get("Chrgs/Amt") or ()
    marks = values.get("Chrgs/Rcrd/ChrgInclInd", ())
    if len(marks) == len(amounts):
        amounts = [amount for amount, mark in zip(amounts, marks, strict=True) if mark in ("true", "1")]
    parsed = [parse_camt_amount(amount) for amount in amounts]
    if None in parsed:
        return str(amounts[parsed.index(None)])
    total = sum((amount for amount in parsed if amount is not None), Decimal(0))
    return str(total) if total else ""


def _without_charges(booked: str, charges: str, *, into: bool) -> str:
    """What was ordered: a charge is taken off a credit and added to a debit."""
    amount, charged = parse_camt_amount(booked), parse_camt_amount(charges)
    if amount is None or charged is None:
        return ""
    return str(amount + charged if into else amount - charged)


def _difference(booked: str, instructed: str, *, into: bool) -> str:
    """What the bank kept without naming it, such as interest of a refund; '' if nothing."""
    amount, ordered = parse_camt_amount(booked), parse_camt_amount(instructed)
    if amount is None or ordered is None:
        return ""
    kept = ordered - amount if into else amount - ordered
    return str(kept) if kept > 0 else ""
