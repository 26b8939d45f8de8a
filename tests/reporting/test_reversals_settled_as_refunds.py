"""A processor that makes a refund of a void settles both: the debit as it was, and the refund. Source: finding kinds of
reporting.settlement.findings; docs/decisions/0069."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.core import clock
from gateway.models import AcquirerAccount, Payment
from reporting.models import ClearingInstitute, Finding, Match, SettlementRecord
from reporting.settlement import missing_settlements
from tests.support.fixtures import Shop
from tests.support.settlement import csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db


def void(shop: Shop, kind: str, amount: str, connector: str) -> tuple[Payment, Payment]:
    """A debit, an authorization or a capture of 92.00 and its reversal, at a connector."""
    paid = shop.api.pay(paymentType="DB" if kind == "DB" else "PA").id
    if kind == "CP":
        paid = shop.api.follow(paid, "CP", "92.00").id
    reversed_ = shop.api.follow(paid, "RV", amount)
    assert reversed_.status == 200, reversed_
    AcquirerAccount.objects.create(channel=shop.channel, connector=connector, acquirer_merchant_id="account-1")
    Payment.objects.update(connector=connector, acquirer_merchant_id="account-1")
    return payment_of(paid), payment_of(reversed_.id)


def unsettled() -> list[str]:
    today = clock.real_now().date()
    found = missing_settlements.list_unsettled_payments(
        ClearingInstitute(connectors=["stripe", "simulator"]), today - timedelta(days=1), today
    )
    return sorted(payment.payment_type for payment in found)


@pytest.mark.parametrize("kind", ["DB", "CP"])
@pytest.mark.parametrize("amount", ["92.00", "30.00"])
@pytest.mark.parametrize("later", [False, True])
def test_a_debit_and_the_refund_of_its_void_are_settled_without_a_finding(
    shop: Shop, kind: str, amount: str, later: bool
) -> None:
    """M11: in one file, or the refund some days later."""
    paid, voided = void(shop, kind, amount, "stripe")
    processor = institute(connectors=["stripe"])
    assert unsettled() == [kind, "RV"]
    lines = [line(paid), line(voided, PaymentType="REFUND")]
    for number, rows in enumerate([[lines[0]], [lines[1]]] if later else [lines]):
        take_in(csv([row | {"SettlementReference": f"payout-{number}"} for row in rows]), processor)
    assert list(Finding.objects.values_list("kind", "expected", "found")) == []
    assert set(Match.objects.values_list("payment", flat=True)) == {paid.id, voided.id}
    assert set(SettlementRecord.objects.values_list("state", flat=True)) == {"MATCHED"}
    assert unsettled() == []


def test_without_ids_the_refund_of_a_void_is_matched_by_its_amount(shop: Shop) -> None:
    _, voided = void(shop, "DB", "30.00", "stripe")
    take_in(csv([line(voided, PaymentType="REFUND", ConnectorTxId1="")]), institute(connectors=["stripe"]))
    assert Match.objects.get().payment == voided.id


def test_elsewhere_a_void_leaves_less_to_be_settled(shop: Shop) -> None:
    """As before: an acquirer that reverses clears the difference."""
    paid, _ = void(shop, "DB", "30.00", "simulator")
    take_in(csv([line(paid, Amount="62.00")]), institute())
    assert not Finding.objects.exists()
    assert unsettled() == []


def test_the_reversal_of_an_authorization_is_settled_nowhere(shop: Shop) -> None:
    held = shop.api.pay(paymentType="PA").id
    shop.api.follow(held, "RV")
    Payment.objects.update(connector="stripe")
    assert unsettled() == []


def test_a_refund_line_is_not_about_the_reversal_of_an_authorization(shop: Shop) -> None:
    """Nothing was taken, so nothing is given back."""
    _, released = void(shop, "PA", "92.00", "stripe")
    take_in(csv([line(released, PaymentType="REFUND", ConnectorTxId1="")]), institute(connectors=["stripe"]))
    assert SettlementRecord.objects.get().state == "NOT_MATCHED"
