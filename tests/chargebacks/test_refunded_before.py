"""A chargeback of what was refunded, or above the amount, is entered; a partial one blocks what is disputed.

Source: docs/decisions/0065.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client

from chargebacks import cases, evidence, ledger
from chargebacks.models import Chargeback
from gateway.backoffice.payments.chain_sums import summarize_chain
from gateway.core import clock
from gateway.models import Payment, Status
from gateway.payments.follow_ups import load_chain
from gateway.payments.refusal import RequestRefusedError
from reporting.models import Finding, SettlementRecord
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db
LIST = "/admin/chargebacks/chargeback/"


def paid(shop: Shop) -> Payment:
    return payment_of(shop.api.pay(amount="100.00").id)


def refund(shop: Shop, payment: Payment, amount: str, *, pending: bool = False) -> None:
    answer = shop.api.follow(payment.id.hex, "RF", amount)
    assert answer.status == 200
    if pending:
        Payment.objects.filter(pk=answer.id).update(status=Status.PENDING, approved_amount=None)


@pytest.mark.parametrize("refunded", ["100.00", "30.00"])
@pytest.mark.parametrize("pending", [False, True])
def test_a_line_about_a_refunded_payment_is_entered_and_its_case_says_so(
    shop: Shop, refunded: str, pending: bool
) -> None:
    payment = paid(shop)
    refund(shop, payment, refunded, pending=pending)
    take_in(csv([line(payment, ReconciliationType="CHARGEBACK", Amount="100.00")]), institute())
    assert not Finding.objects.filter(kind="NOT_BOOKED").exists()
    case = Chargeback.objects.get()
    assert SettlementRecord.objects.get().chargeback == case.id
    assert (case.amount, case.refunded_before, case.state) == (Decimal("100.00"), Decimal(refunded), "OPEN")
    assert evidence.list_missing_evidence(case)[0].key == "refund"
    chain = load_chain(payment.id, shop.merchant, None)
    assert chain is not None
    sums = {row.name: row.amount for row in summarize_chain(chain)}
    assert sums["Returned above what was paid"] == Decimal(refunded)
    assert sums["Still to refund"] == 0
    assert shop.api.follow(payment.id.hex, "RF", "1.00").status == 400


def test_the_schemes_exchange_rate_takes_more_than_was_paid_and_gives_it_back(shop: Shop) -> None:
    payment, of = paid(shop), institute()
    row = line(payment, ReconciliationType="CHARGEBACK", Amount="101.17", SettlementTxId="D-1")
    back = line(payment, ReconciliationType="CHARGEBACK REVERSAL", Amount="101.17", SettlementTxId="R-1")
    take_in(csv([row, back]), of)
    assert Chargeback.objects.get().recovered == Decimal("101.17")
    take_in(csv([{**row, "Amount": "101.20", "SettlementAmount": "101.20", "SettlementTxId": "D-2"}]), of)
    again = Chargeback.objects.exclude(previous=None).get()
    assert again.amount == Decimal("101.20")
    assert set(Finding.objects.values_list("kind", flat=True)) == {"AMOUNT"}


def test_a_chargeback_of_what_is_charged_back_already_is_the_same_one(shop: Shop) -> None:
    payment = paid(shop)
    ledger.record_chargeback(payment, Decimal("100.00"), by=BY)
    take_in(csv([line(payment, ReconciliationType="CHARGEBACK", Amount="99.00")]), institute())
    assert Finding.objects.get().found.startswith("700.400.400")
    with pytest.raises(RequestRefusedError):
        ledger.record_chargeback(payment, Decimal("1.00"), by=BY)


def test_by_api_the_ceiling_stays(shop: Shop) -> None:
    payment = paid(shop)
    refund(shop, payment, "30.00")
    assert shop.api.follow(payment.id.hex, "CB", "100.00").code == "700.400.400"
    assert shop.api.follow(payment.id.hex, "CB", "70.00").status == 200
    cases.adopt_recent_payments()
    assert Chargeback.objects.get().refunded_before == Decimal("30.00")


def test_a_clerk_is_warned_and_confirms_what_the_acquirer_takes(shop: Shop) -> None:
    max_: Client = signed_in(person("max", "manager", shop.merchant))
    payment = paid(shop)
    refund(shop, payment, "30.00")
    address = f"{LIST}by-hand/{payment.pk}/"
    assert "30.00 EUR of this payment were refunded" in max_.get(address).content.decode()
    form = {"seen": "1", "amount": "100.00", "reason": "000.100.220"}
    refused = max_.post(address, form)
    assert refused.status_code == 400
    assert "Only 70.00 EUR of this payment" in refused.content.decode()
    assert not Chargeback.objects.exists()
    max_.post(address, {**form, "above": "yes"})
    case = Chargeback.objects.get()
    page = max_.get(f"{LIST}{case.pk}/change/").content.decode()
    assert "Refunded before: 30.00 EUR" in page


def test_a_partial_chargeback_blocks_what_is_disputed(shop: Shop) -> None:
    payment = paid(shop)
    ledger.record_chargeback(payment, Decimal("30.00"), by=BY)
    own = payment.id.hex
    assert shop.api.follow(own, "RF", "70.01").code == "700.300.600"
    assert shop.api.follow(own, "RF", "100.01").code == "700.400.200"
    assert shop.api.follow(own, "RV", "70.01").code == "700.300.600"
    assert shop.api.follow(own, "RB", "70.01").code == "700.300.600"
    assert shop.api.follow(own, "RB", "70.00").code == "000.100.110"
    assert shop.api.follow(own, "RF", "70.00").code == "000.100.110"
    assert shop.api.follow(own, "RF", "0.01").code == "700.300.600"


@pytest.mark.parametrize("ended", ["accepted", "lost"])
def test_what_an_ended_dispute_left_is_refundable(shop: Shop, ended: str) -> None:
    payment = paid(shop)
    case = ledger.record_chargeback(payment, Decimal("30.00"), by=BY)
    if ended == "accepted":
        cases.accept_dispute(case, BY, "")
    else:
        shop.merchant.clock_offset = case.due_at - clock.real_now()
        shop.merchant.save()
        assert cases.expire_overdue_cases() == 1
    assert shop.api.follow(payment.id.hex, "RF", "70.00").code == "000.100.110"
