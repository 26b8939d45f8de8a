"""A merchant's developer on the first day: the first payment, and what can be done with it.

Source: Part B, Payment response.
"""

from __future__ import annotations

import re

import pytest

from tests.support.client import Api

pytestmark = pytest.mark.django_db


def test_the_first_payment_succeeds_and_tells_everything(api: Api) -> None:
    """A27.1, B18.5, B18.9, A1.1, A7.1, A12.2."""
    paid = api.pay(merchantTransactionId="order-4711", customer__givenName="Jane", customer__surname="Jones")
    assert (paid.status, paid.code) == (200, "000.100.110")
    assert paid.description.startswith("Request successfully processed")
    body = paid.body
    assert re.fullmatch("[0-9a-f]{32}", body["id"])
    assert (body["paymentType"], body["paymentBrand"]) == ("DB", "VISA")
    assert (body["amount"], body["currency"]) == ("92.00", "EUR")
    assert body["merchantTransactionId"] == "order-4711"
    assert body["customer"] == {"givenName": "Jane", "surname": "Jones"}
    assert body["card"]["bin"] == "420000"
    assert body["card"]["last4Digits"] == "0000"
    assert body["card"]["holder"] == "Jane Jones"
    assert (body["card"]["expiryMonth"], body["card"]["expiryYear"]) == ("05", "2034")
    assert "number" not in body["card"]
    assert "cvv" not in body["card"]
    assert body["result"]["cvvResponse"] == "M"
    assert body["resultDetails"]["AcquirerResponse"] == "00"
    assert "referencedId" not in body


def test_the_payment_is_read_as_it_was_answered(api: Api) -> None:
    """A27.2; Part A, Endpoints: the same object."""
    paid = api.pay(**{"cart.items[0].name": "Shirt", "customParameters[orderRef]": "7"})
    read = api.read(paid.id)
    assert read.status == 200
    own = {"ndc", "timestamp"}
    assert {name: value for name, value in read.body.items() if name not in own} == {
        name: value for name, value in paid.body.items() if name not in own
    }


def test_a_request_with_faults_is_told_all_of_them_and_works_when_they_are_mended(api: Api) -> None:
    broken = api.pay(paymentBrand=None, paymentBrnad="VISA", amount="92.1", card__expiryMonth="13")
    assert broken.status == 400
    assert set(broken.errors) == {"paymentBrnad", "amount", "card.expiryMonth"}
    assert broken.errors["paymentBrnad"].endswith("did you mean paymentBrand?")
    assert api.pay().status == 200


def test_a_decline_says_why_and_another_card_pays(api: Api) -> None:
    declined = api.pay(card__number="4000015500000005")
    assert (declined.status, declined.code) == (400, "800.100.155")
    assert declined.body["resultDetails"] == {
        "AcquirerResponse": "51",
        "ExtendedDescription": declined.body["result"]["description"],
        "MerchantAdviceCode": "02",
    }
    assert api.read(declined.id).status == 400
    assert api.read(declined.id).id == declined.id
    assert api.follow(declined.id, "RF", "92.00").code == "700.400.520"
    again = api.pay(card__number="5454545454545454", paymentBrand="MASTER")
    assert again.status == 200
    assert again.id != declined.id


def test_the_payment_is_refunded_in_two_parts_and_no_further(api: Api) -> None:
    """Decisions, section 4."""
    paid = api.pay()
    part = api.follow(paid.id, "RF", "50.00")
    assert (part.status, part.body["amount"]) == (200, "50.00")
    assert part.body["referencedId"] == paid.id
    assert part.body["paymentBrand"] == "VISA"
    assert api.follow(paid.id, "RF", "42.00").status == 200
    over = api.follow(paid.id, "RF", "0.01")
    assert (over.status, over.code) == (400, "700.400.200")
    assert over.body["referencedId"] == paid.id
    assert api.read(over.id).code == "700.400.200"


def test_the_brand_is_found_from_the_number(api: Api) -> None:
    """B18.13, A13.5, D30."""
    for number, brand in (("5454545454545454", "MASTER"), ("4111111111111111", "VISA")):
        paid = api.pay(paymentBrand=None, card__number=number)
        assert (paid.status, paid.body["paymentBrand"], paid.body["brandResult"]) == (200, brand, brand)


def test_half_of_the_amount_is_granted_and_half_can_be_given_back(api: Api) -> None:
    """B18.5; Part B, Payment response: partial approval."""
    paid = api.pay(card__number="4000050000000007")
    assert (paid.status, paid.body["amount"]) == (200, "46.00")
    assert api.follow(paid.id, "RF", "46.01").code == "700.400.200"
    assert api.follow(paid.id, "RF", "46.00").status == 200


def test_an_acquirer_that_is_silent_leaves_the_payment_in_doubt(api: Api) -> None:
    """House, 4: a lost answer is a state; nothing is built on it."""
    lost = api.pay(card__number="4000090003000000")
    assert (lost.status, lost.code[:7]) == (200, "000.200")
    assert api.read(lost.id).code == lost.code
    assert api.follow(lost.id, "RF", "1.00").code == "700.400.570"
