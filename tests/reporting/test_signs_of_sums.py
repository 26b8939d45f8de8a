"""A settlement's own sums count what was paid out: lines that succeeded, each by its sign; its fee the same lines'.

Source: ruling D7; docs/reporting.md.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporting.reports.settlement_reports import apply_cashflow_sign
from tests.reporting.test_settlement_reports import MAY, SUMS, V1, V2, listed
from tests.support import books
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", [SUMS, V1, V2])
def test_what_failed_is_in_neither_sum_of_a_settlement(shop: Shop, path: str) -> None:
    of = books.institute()
    where, file = books.settlement(shop, of), books.file_of(of)
    for status, cashflow, amount, fee in (
        ("SUCCESS", "POS", "90.50", "1.5000"),
        ("SUCCESS", "NEG", "10.25", "0.2500"),
        ("FAILED", "POS", "7.00", "0.1250"),
        ("FAILED", "NEG", "3.00", "0.0625"),
        ("SUCCESS", "NEG", "0.01", None),
    ):
        books.record(
            where, file, settlement_status=status, cashflow=cashflow, settlement_amount=amount, settlement_fee=fee
        )
    (one,) = listed(shop.api.get(path, MAY))
    assert (Decimal(one["amount"]), Decimal(one["fee"])) == (Decimal("80.24"), Decimal("1.75"))
    parts = {(p["settlement"]["status"], p["settlement"]["cashflow"]): p["settlement"] for p in one["records"]}
    assert {key: (Decimal(p["amount"]), Decimal(p["fee"])) for key, p in parts.items()} == {
        ("SUCCESS", "POS"): (Decimal("90.50"), Decimal("1.5")),
        ("SUCCESS", "NEG"): (Decimal("10.26"), Decimal("0.25")),
        ("FAILED", "POS"): (Decimal("7"), Decimal("0.125")),
        ("FAILED", "NEG"): (Decimal("3"), Decimal("0.0625")),
    }


@given(st.decimals("0.01", "9999999999.99", places=2))
def test_money_in_adds_and_money_out_takes_away(amount: Decimal) -> None:
    assert (apply_cashflow_sign("POS", amount), apply_cashflow_sign("NEG", amount)) == (amount, -amount)
