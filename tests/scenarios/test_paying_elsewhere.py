"""A shop whose shoppers pay at their bank, with a wallet, with another shop's account, or by invoice.

Source: Part A, What the service does, 6; Part B, Asynchronous payment parameters; decisions, section 5; checks A6, B13.
"""

from __future__ import annotations

import pytest

from tests.support.client import Api
from tests.support.clock import pass_time
from tests.support.redirected_shopper import Visitor, order

pytestmark = pytest.mark.django_db

PAID, PENDING = "000.100.110", "000.200.000"
CANCELLED, RAN_OUT = "100.396.101", "100.396.103"
DECLINES = {
    "ONLINETRANSFER": "100.395.102",
    "WEBWALLET": "800.100.203",
    "SHOPWALLET": "800.100.172",
    "INVOICE": "100.396.106",
}
each_way = pytest.mark.parametrize("brand", DECLINES)


@each_way
def test_a_shopper_goes_there_agrees_and_comes_back_having_paid(api: Api, brand: str) -> None:
    """A6.1 to A6.4: pending with a redirect, the page, the way back, the result."""
    answer = order(api, brand)
    assert (answer.status, answer.code) == (200, PENDING)
    shopper = Visitor.of(answer)
    page = shopper.look()
    assert "92.00" in page
    assert "order-17" in page
    assert shopper.choices >= {"approve", "decline", "cancel"}
    back = shopper.decide("approve")
    assert back == {"order": "17", "id": answer.id, "resourcePath": f"/v1/payments/{answer.id}"}
    paid = api.get(back["resourcePath"])
    assert (paid.status, paid.code, paid.body["paymentBrand"]) == (200, PAID, brand)
    assert "redirect" not in paid.body
    assert api.follow(answer.id, "RF", "92.00").status == 200


@each_way
def test_a_shopper_who_is_turned_down_or_turns_back_has_not_paid(api: Api, brand: str) -> None:
    """Decisions, section 5: a code for each ending; the next order is a payment of its own."""
    for outcome, code in (("decline", DECLINES[brand]), ("cancel", CANCELLED)):
        answer = order(api, brand)
        assert Visitor.of(answer).decide(outcome)["id"] == answer.id
        result = api.read(answer.id)
        assert (result.status, result.code) == (400, code)
        assert api.follow(answer.id, "RF", "92.00").code == "700.400.520"
    again = order(api, brand)
    Visitor.of(again).decide("approve")
    assert api.read(again.id).code == PAID


@each_way
def test_a_shopper_who_leaves_is_waited_for_until_the_deadline(api: Api, brand: str) -> None:
    """Issue: leaving makes it decline at its deadline; whoever comes later finds it ended."""
    answer = order(api, brand)
    shopper = Visitor.of(answer)
    assert shopper.press("leave").status_code == 200
    pass_time(api, minutes=29)
    assert api.read(answer.id).code == PENDING
    pass_time(api, minutes=1, seconds=1)
    result = api.read(answer.id)
    assert (result.status, result.code) == (400, RAN_OUT)
    assert shopper.choices == set()
    assert shopper.decide("approve")["id"] == answer.id
    assert api.read(answer.id).code == RAN_OUT


@each_way
def test_a_shopper_who_agreed_and_closed_the_browser_has_paid(api: Api, brand: str) -> None:
    """The bank is asked before a deadline ends anything."""
    answer = order(api, brand)
    assert Visitor.of(answer).press("approve").status_code == 303
    assert api.read(answer.id).code == PENDING
    pass_time(api, minutes=30, seconds=1)
    assert api.read(answer.id).code == PAID


@each_way
def test_two_tabs_and_the_back_button_make_one_payment(api: Api, brand: str) -> None:
    """Issue: the first decision counts, and only once."""
    answer = order(api, brand)
    one, other = Visitor.of(answer), Visitor.of(answer)
    assert one.choices == other.choices != set()
    one.decide("approve")
    assert other.decide("cancel")["id"] == answer.id
    assert one.decide("approve")["id"] == answer.id
    assert other.choices == set()
    assert api.read(answer.id).code == PAID
    assert api.follow(answer.id, "RF", "92.00").status == 200
    assert api.follow(answer.id, "RF", "0.01").code == "700.400.200"


def test_an_invoice_is_authorized_at_the_order_and_captured_when_it_ships(api: Api) -> None:
    """Part A, paymentType: PA → CP; RV gives up what is not shipped."""
    held = order(api, "INVOICE", paymentType="PA")
    assert api.follow(held.id, "CP", "60.00").code == "700.400.570"
    Visitor.of(held).decide("approve")
    assert api.read(held.id).body["paymentType"] == "PA"
    assert api.follow(held.id, "CP", "60.00").status == 200
    assert api.follow(held.id, "RV").body["amount"] == "32.00"


def test_a_shop_that_tells_no_way_back_is_told_so(api: Api) -> None:
    """A29.1."""
    for brand in DECLINES:
        answer = order(api, brand, shopperResultUrl="")
        assert (answer.status, list(answer.errors)) == (400, ["shopperResultUrl"])
