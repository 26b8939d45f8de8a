"""Ceilings with two bounds, each bound apart from the other, and both sides of it.

Source: decisions, section 4; Part A, Basic payment; docs/decisions/0065.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway.models import Status
from gateway.payments.chain_amounts import can_be_charged_back, compute_disputed_amount
from tests.gateway.payments.test_operation_table import code_of
from tests.support.chains import after, chain, first

RC_OVER, CB_OVER, RF_OVER, CP_OVER, STANDING = (
    "700.100.300",
    "700.400.400",
    "700.400.200",
    "700.400.100",
    "700.300.600",
)


@pytest.mark.parametrize(("kind", "amount", "most"), [("RF", "40.00", "60.00"), ("RC", "30.00", "70.00")])
def test_a_receipt_records_what_was_neither_returned_nor_received(kind: str, amount: str, most: str) -> None:
    debit = first("DB")
    members = [debit, after(debit, kind, amount)]
    assert code_of("RC", members, debit, most) == ""
    assert code_of("RC", members, debit, str(Decimal(most) + Decimal("0.01"))) == RC_OVER


def test_a_second_chargeback_takes_no_more_than_was_won_back() -> None:
    """Although more of the payment could be returned."""
    debit = first("DB")
    dispute = after(debit, "CB", "40.00")
    won = after(dispute, "CR", "40.00")
    members = [debit, dispute, won]
    assert code_of("CB", members, won, "40.00") == ""
    assert code_of("CB", members, won, "40.01") == CB_OVER
    again = after(won, "CB", "25.00")
    assert code_of("CB", [*members, again], won, "15.00") == ""
    assert code_of("CB", [*members, again], won, "15.01") == CB_OVER


def test_a_second_chargeback_takes_no_more_than_was_left_of_the_payment() -> None:
    """Although more was won back: a part was refunded since."""
    debit = first("DB")
    dispute = after(debit, "CB", "100.00")
    won = after(dispute, "CR", "100.00")
    members = [debit, dispute, won, after(debit, "RF", "30.00")]
    assert code_of("CB", members, won, "70.00") == ""
    assert code_of("CB", members, won, "70.01") == CB_OVER


@pytest.mark.parametrize("status", [Status.STARTED, Status.PENDING, Status.IN_DOUBT])
def test_a_reversal_of_a_chargeback_gives_back_only_what_was_approved(status: Status) -> None:
    debit = first("DB")
    dispute = after(debit, "CB", "100.00")
    won = after(dispute, "CR", "100.00", status=status)
    assert compute_disputed_amount(chain(debit, dispute, won), dispute) == Decimal("100.00")
    assert code_of("RF", [debit, dispute, won], debit, "0.01") == STANDING


def test_a_rebill_may_be_as_much_as_a_chargeback_left() -> None:
    debit = first("DB")
    members = [debit, after(debit, "CB", "40.00")]
    assert code_of("RB", members, debit, "60.00") == ""
    assert code_of("RB", members, debit, "60.01") == STANDING


@pytest.mark.parametrize(("taken", "possible"), [("99.99", True), ("100.00", False), ("100.01", False)])
def test_what_is_charged_back_in_full_is_not_charged_back_again(taken: str, possible: bool) -> None:
    debit = first("DB")
    dispute = after(debit, "CB", taken)
    assert can_be_charged_back(chain(debit, dispute), debit) is possible


def test_captures_of_an_increment_count_as_captures_of_its_authorization() -> None:
    """A13.16: numberOfCaptures is that of the whole authorization."""
    authorization = first("PA", max_captures=2)
    increment = after(authorization, "PA", "20.00", practice="INCREMENTAL_AUTH")
    one, two = after(authorization, "CP", "10.00"), after(increment, "CP", "10.00")
    assert code_of("CP", [authorization, increment, two], authorization) == ""
    assert code_of("CP", [authorization, increment, one, two], authorization) == CP_OVER
    assert code_of("CP", [authorization, increment, one, two], increment) == CP_OVER


def test_refunds_of_a_receipt_and_of_its_payment_take_from_the_same_money() -> None:
    debit = first("DB")
    receipt = after(debit, "RC", "80.00")
    by_receipt, by_payment = after(receipt, "RF", "30.00"), after(debit, "RF", "50.00")
    assert code_of("RF", [debit, receipt, by_receipt], debit, "70.00") == ""
    assert code_of("RF", [debit, receipt, by_receipt], debit, "70.01") == RF_OVER
    assert code_of("RF", [debit, receipt, by_payment], receipt, "50.00") == ""
    assert code_of("RF", [debit, receipt, by_payment], receipt, "50.01") == RF_OVER
    assert code_of("RF", [debit, receipt, by_receipt], receipt, "50.01") == RF_OVER
