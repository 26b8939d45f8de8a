"""Amounts in account statements. Source: ISO 20022 camt.053, AmountAndCurrencyExchange4 and Charges6."""

from __future__ import annotations

import pytest

from gateway.core.camt_amounts import read_camt_amounts

Values = dict[str, list[str]]


def amount(path: str, text: str, currency: str = "EUR") -> Values:
    return {path: [text], f"{path}@": [currency]}


BOOKED = amount("Amt", "103.00")
ORDERED = amount("AmtDtls/InstdAmt/Amt", "100.00")
INCLUDED = {"Chrgs/Rcrd/Amt": ["2.00", "1.00"], "Chrgs/Rcrd/ChrgInclInd": ["true", "true"]}


@pytest.mark.parametrize(
    ("details", "entry", "ordered", "charges"),
    [
        (BOOKED, {}, "103.00", ""),
        (ORDERED | INCLUDED, BOOKED, "100.00", "3.00"),
        (ORDERED, BOOKED, "100.00", "3.00"),
        (BOOKED | INCLUDED, {}, "100.00", "3.00"),
        (BOOKED, INCLUDED, "100.00", "3.00"),
        (BOOKED | {"Chrgs/Rcrd/Amt": ["3.00"], "Chrgs/Rcrd/ChrgInclInd": ["false"]}, {}, "103.00", ""),
        (BOOKED | {"Chrgs/Amt": ["3.00"]}, {}, "103.00", "3.00"),
        (amount("AmtDtls/TxAmt/Amt", "103.00") | ORDERED, amount("Amt", "500.00"), "100.00", "3.00"),
        (amount("Amt", "60.00") | ORDERED, {}, "60.00", ""),
        (amount("Amt", "x") | ORDERED, {}, "x", ""),
        ({}, {}, "", ""),
    ],
)
def test_a_debit_is_what_was_ordered_and_the_charges(
    details: Values, entry: Values, ordered: str, charges: str
) -> None:
    found = read_camt_amounts(details, entry, into=False)
    assert (found.order_amount[0], found.charges) == (ordered, charges)


def test_a_charge_is_taken_off_a_credit() -> None:
    found = read_camt_amounts(amount("Amt", "99.70") | ORDERED, {}, into=True)
    assert (found.order_amount, found.charges, found.booked) == (("100.00", "EUR"), "0.30", "99.70")


def test_an_amount_of_an_entry_with_several_transactions_is_none_of_theirs() -> None:
    found = read_camt_amounts({}, BOOKED | INCLUDED, into=False, alone=False)
    assert (found.booked, found.order_amount, found.charges) == ("", ("", ""), "")


def test_an_order_in_another_currency_is_not_compared_with_what_was_booked() -> None:
    """Neither is taken for the other, and their difference is no charge."""
    for text in ("80.00", "120.00"):
        for into in (True, False):
            found = read_camt_amounts(BOOKED | amount("AmtDtls/InstdAmt/Amt", text, "USD"), {}, into=into)
            assert (found.order_amount, found.booked_currency, found.charges) == ((text, "USD"), "EUR", "")


@pytest.mark.parametrize(
    ("mark", "ordered"), [("true", "100.00"), ("1", "100.00"), ("false", "103.00"), ("0", "103.00")]
)
def test_a_charge_is_within_the_amount_however_the_bank_writes_yes(mark: str, ordered: str) -> None:
    details = BOOKED | {"Chrgs/Rcrd/Amt": ["3.00"], "Chrgs/Rcrd/ChrgInclInd": [mark]}
    assert read_camt_amounts(details, {}, into=False).order_amount == (ordered, "EUR")
