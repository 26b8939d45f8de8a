"""What is a finding and what is not yet one: each limit from both sides, both directions of money, rates and fees.

Source: docs/settlement.md; docs/decisions/0027.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.models import Payment
from reporting.models import Finding
from tests.support.fixtures import Shop
from tests.support.settlement import csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db
Case = tuple[str, dict[str, str], set[str]]
USD = {"SettlementCurrency": "USD", "SettlementFxRate": "1.0842"}

# what, the line's changes, the kinds of findings; of a debit of 92.00 EUR
DEBITS: list[Case] = [
    ("as it is", {}, set()),
    ("less its fee", {"SettlementFee": "1.5000", "SettlementAmount": "90.50"}, set()),
    ("and its fee", {"SettlementFee": "1.5000", "SettlementAmount": "93.50"}, {"ARITHMETIC"}),
    ("a cent more", {"SettlementAmount": "92.01"}, {"ARITHMETIC"}),
    ("a cent less", {"SettlementAmount": "91.99"}, {"ARITHMETIC"}),
    ("at a rate", {**USD, "SettlementAmount": "99.75"}, set()),
    ("a cent beside the rate, which is rounded", {**USD, "SettlementAmount": "99.76"}, set()),
    ("two cents beside it", {**USD, "SettlementAmount": "99.77"}, {"ARITHMETIC"}),
    ("two cents below it", {**USD, "SettlementAmount": "99.73"}, {"ARITHMETIC"}),
    ("another amount", {"Amount": "91.99"}, {"AMOUNT"}),
    ("a higher amount", {"Amount": "92.01"}, {"AMOUNT"}),
    ("the other way", {"Cashflow": "NEG"}, {"DIRECTION"}),
    ("of another type", {"PaymentType": "REFUND", "Cashflow": "NEG"}, {"TYPE"}),
    ("that failed", {"SettlementStatus": "FAILED"}, {"FAILED"}),
]
REFUNDS: list[Case] = [
    ("as it is", {}, set()),
    ("and its fee", {"SettlementFee": "0.2500", "SettlementAmount": "10.25"}, set()),
    ("less its fee", {"SettlementFee": "0.2500", "SettlementAmount": "9.75"}, {"ARITHMETIC"}),
    ("the other way", {"Cashflow": "POS"}, {"DIRECTION"}),
    ("of another type", {"PaymentType": "DEBIT"}, {"TYPE"}),
]


def told(about: list[tuple[Payment, Case]], **of: Any) -> dict[str, set[str]]:
    """What was found of each line, all of them in one file."""
    rows = [line(payment, SettlementTxId=f"TX-{at}", **changes) for at, (payment, (_, changes, _)) in enumerate(about)]
    take_in(csv(rows), institute(**of))
    found: dict[str, set[str]] = {case[0]: set() for _, case in about}
    for number, kind in Finding.objects.values_list("record__line", "kind"):
        found[about[number - 1][1][0]].add(kind)
    return found


def test_findings_of_money_that_came_in(shop: Shop) -> None:
    about = [(payment_of(shop.api.pay().id), case) for case in DEBITS]
    assert told(about) == {name: kinds for name, _, kinds in DEBITS}


def test_findings_of_money_that_went_out(shop: Shop) -> None:
    """A fee is taken from what comes in, and added to what goes out."""
    about = [(payment_of(shop.api.follow(shop.api.pay().id, "RF", "10.00").id), case) for case in REFUNDS]
    assert told(about) == {name: kinds for name, _, kinds in REFUNDS}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_days_that_do_not_fit(shop: Shop, zone: str) -> None:
    """A payment of 20:00 UTC, on the fourth day before this one: in Tokyo it is the next day."""
    payments = [payment_of(shop.api.pay().id) for _ in range(6)]
    at = (payments[0].created_at.astimezone(UTC) - timedelta(days=4)).replace(hour=20)
    Payment.objects.filter(pk__in=[one.pk for one in payments]).update(created_at=at)
    day = at + timedelta(days=1 if zone == "Asia/Tokyo" else 0)

    def on(settled: int, presented: int | None = None) -> dict[str, str]:
        found = {"SettlementDate": f"{day + timedelta(days=settled):%Y-%m-%d}"}
        if presented is not None:
            found["TxRequestTime"] = f"{day + timedelta(days=presented):%Y-%m-%d} 12:00:00"
        return found

    cases: list[Case] = [
        ("that day", on(0, 0), set()),
        ("the day before", on(-1), {"DATE"}),
        ("a day on", on(3, 1), set()),
        ("two days on", on(3, 2), {"DATE"}),
        ("a day back", on(3, -1), set()),
        ("two days back", on(3, -2), {"DATE"}),
    ]
    assert told(list(zip(payments, cases, strict=True)), time_zone=zone) == {name: kinds for name, _, kinds in cases}


def test_a_fee_that_was_not_agreed_on(shop: Shop) -> None:
    """1.5 % and 0.10 of 92.00 are 1.48; a cent beside it is told, less than one is not."""
    cases: list[Case] = [
        (fee, {"SettlementFee": fee, "SettlementAmount": f"{Decimal(92) - Decimal(fee):.2f}"}, kinds)
        for fee, kinds in (
            ("1.4800", set()),
            ("1.4899", set()),
            ("1.4701", set()),
            ("1.4900", {"FEE"}),
            ("1.4700", {"FEE"}),
        )
    ]
    about = [(payment_of(shop.api.pay().id), case) for case in cases]
    found = told(about, fee_percent=Decimal("1.5"), fee_fixed=Decimal("0.10"))
    assert found == {name: kinds for name, _, kinds in cases}


FEE = {
    "ReconciliationType": "FEE", "PaymentType": "MONTHLY", "Cashflow": "NEG", "Amount": "9.90",
    "SettlementTxId": "FEE-1",
}  # fmt: skip


@pytest.mark.parametrize("ident", ["FEE-1", ""])
@pytest.mark.parametrize(
    ("changes", "twice"),
    [
        ({}, True),
        ({"PaymentType": "AUTH_FEE"}, False),
        ({"Amount": "9.91", "SettlementAmount": "9.91"}, False),
        ({"Currency": "USD", "SettlementCurrency": "USD"}, False),
        ({"ClearingInstituteMerchantId": "account-2"}, False),
        # By its own id a fee is the same in whatever payout it is told of; without one it is another payout's.
        ({"SettlementReference": "payout-2"}, None),
        ({"SettlementDate": "2030-01-03"}, None),
    ],
    ids=str,
)
def test_a_fee_is_told_twice_by_its_institute_alone_and_with_all_that_it_says(
    db: None, ident: str, changes: dict[str, str], twice: bool | None
) -> None:
    """Each of the others is the same but for one thing."""
    fee = {**FEE, "SettlementTxId": ident}
    of, another = institute(), institute(key="another", name="Another")
    take_in(csv([line(**fee)]), another)
    take_in(csv([line(**fee)]), of, "first.csv")
    take_in(csv([line(**{**fee, **changes})], end="# again\r\n"), of, "second.csv")
    found = Finding.objects.filter(kind="TWICE").values_list("record__file__name", flat=True)
    assert list(found) == (["second.csv"] if (bool(ident) if twice is None else twice) else [])


def test_a_settled_line_with_the_id_of_a_fee_is_no_fee(shop: Shop) -> None:
    of = institute()
    paid = payment_of(shop.api.pay(amount="9.90").id)
    take_in(csv([line(paid, SettlementTxId="FEE-1")]), of)
    held_at = paid.acquirer_merchant_id or paid.channel_id.hex
    take_in(csv([line(**FEE, ClearingInstituteMerchantId=held_at)]), of, "later.csv")
    assert not Finding.objects.filter(kind="TWICE").exists()
