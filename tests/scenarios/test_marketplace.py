"""A marketplace: one payment, many sellers; goods with tax data, flights, and buyers who are companies.

Source: Part B, Corporate, Marketplace, Cart items, Cart payments, Airline; rulings D16, D17, D31; checks B1, B3 to B8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.client import Answer, Api, payment

pytestmark = pytest.mark.django_db

PAID = "000.100.110"
SELLERS = {
    "marketPlace.sellers[0].id": "potter",
    "marketPlace.sellers[0].amount": "50.00",
    "marketPlace.sellers[1].id": "weaver",
    "marketPlace.sellers[1].amount": "42.00",
}
MUGS = {
    "cart.items[0].name": "Blue mug", "cart.items[0].sellerId": "potter", "cart.items[0].quantity": "5",
    "cart.items[0].price": "10.00", "cart.items[0].totalAmount": "50.00", "cart.items[0].currency": "EUR",
    "cart.items[0].tax": "19.00", "cart.items[0].taxCategory": "S", "cart.items[0].totalTaxAmount": "7.98",
    "cart.items[0].commodityCode": "50202306", "cart.items[0].commodityDescription": "Mugs",
    "cart.items[0].productCode": "MUG-1", "cart.items[0].itemNumber": "1",
    "cart.items[0].vatReferenceNumber": "DE123456789",
}  # fmt: skip
CLOTH = {
    "cart.items[1].name": "Cloth", "cart.items[1].sellerId": "weaver", "cart.items[1].quantity": "1.500",
    "cart.items[1].quantityUnit": "M", "cart.items[1].price": "28.00", "cart.items[1].totalAmount": "42.00",
    "cart.items[1].taxCategory": "Z",
}  # fmt: skip
FLIGHT = {
    "airline.bookingtype": "ONLINE", "airline.bookingRefNum": "X7KQ2P", "airline.totalFareAmount": "72.00",
    "airline.totalTaxAmount": "14.00", "airline.totalFeesAmount": "6.00", "airline.agentName": "Example Travel",
    "airline.passengers[0].name": "Jane Jones", "airline.passengers[0].ticketNumber": "2201234567890",
    "airline.passengers[0].legs[0].departureAirport": "MUC", "airline.passengers[0].legs[0].arrivalAirport": "MAD",
    "airline.passengers[0].legs[1].departureAirport": "MAD", "airline.passengers[0].legs[1].arrivalAirport": "MUC",
    "airline.passengers[1].name": "Ravi Mehta", "airline.passengers[1].type": "CHILD",
}  # fmt: skip
COMPANY = {
    "corporate.name": "Arch Works", "corporate.purchase": "Y", "corporate.vatId": "DE123456789",
    "corporate.street": "Main Street 12", "corporate.city": "Munich", "corporate.phone": "49891234567",
}  # fmt: skip


def buy(api: Api, *parts: Mapping[str, str]) -> Answer:
    fields = payment()
    for part in parts:
        fields |= part
    return api.post("/v1/payments", fields)


def sent_on(api: Api, answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/test/acquirer/messages", {"id": answer.id}).body["messages"][0]["sent"]
    return found


def test_one_payment_is_split_between_a_potter_and_a_weaver(api: Api) -> None:
    """B7.1: the split comes back, is read again, and goes on to the acquirer."""
    paid = buy(api, SELLERS, MUGS, CLOTH)
    assert paid.code == PAID, paid
    split = [{"id": "potter", "amount": "50.00"}, {"id": "weaver", "amount": "42.00"}]
    for where in (paid.body, api.read(paid.id).body, sent_on(api, paid)):
        assert where["marketPlace"]["sellers"] == split
        assert [item["sellerId"] for item in where["cart"]["items"]] == ["potter", "weaver"]


def test_a_split_that_does_not_add_up_is_refused(api: Api) -> None:
    """B5.10, B7.1: more than the amount, a seller twice, goods of nobody: all of it, each at its field."""
    broken = {
        "marketPlace.sellers[1].amount": "42.01",
        "marketPlace.sellers[1].id": "potter",
        "cart.items[1].sellerId": "smith",
    }
    answer = buy(api, SELLERS, MUGS, CLOTH, broken)
    assert (answer.status, "id" in answer.body) == (400, False)
    assert set(answer.errors) == set(broken)
    assert buy(api, SELLERS, MUGS, CLOTH).code == PAID


def test_the_tax_office_sees_every_line(api: Api) -> None:
    """B5.4, B5.5, B5.6: L3 data, and the count as the unit where none was named."""
    paid = buy(api, MUGS, CLOTH)
    mug, cloth = paid.body["cart"]["items"]
    sent = {name.removeprefix("cart.items[0]."): value for name, value in MUGS.items()}
    assert mug == sent | {"quantityUnit": "COUNT"}
    assert (cloth["quantityUnit"], cloth["quantity"]) == ("M", "1.500")
    assert sent_on(api, paid)["cart"]["items"][0]["taxCategory"] == "S"
    wrong = {
        "cart.items[0].taxCategory": "X",
        "cart.items[0].tax": "100.01",
        "cart.items[0].commodityCode": "123456789",
    }
    assert set(buy(api, MUGS, wrong).errors) == set(wrong)


def test_a_cart_that_was_paid_for_in_part_says_with_what(api: Api) -> None:
    """A26.4, B6.2, B6.3: cart payments, one of them primary at most."""
    part = {
        "cart.payments[0].type": "GIFTCARD",
        "cart.payments[0].amount": "10.00",
        "cart.payments[0].currency": "EUR",
        "cart.payments[0].status": "captured",
        "cart.payments[0].primary": "true",
    }
    paid = buy(api, part)
    assert paid.body["cart"]["payments"][0]["status"] == "captured"
    two = buy(api, part, {"cart.payments[1].type": "PROMOTION", "cart.payments[1].primary": "true"})
    assert (two.status, list(two.errors)) == (400, ["cart.payments[1].primary"])


def test_a_flight_for_two_there_and_back(api: Api) -> None:
    """B8.1, B8.2: booking, passengers, legs; the spec's small t."""
    paid = buy(api, FLIGHT)
    assert paid.code == PAID, paid
    for where in (paid.body, sent_on(api, paid)):
        airline = where["airline"]
        assert (airline["bookingtype"], airline["bookingRefNum"]) == ("ONLINE", "X7KQ2P")
        jane, ravi = airline["passengers"]
        assert [leg["arrivalAirport"] for leg in jane["legs"]] == ["MAD", "MUC"]
        assert ravi == {"name": "Ravi Mehta", "type": "CHILD"}
    spelt = buy(api, {"airline.bookingType": "ONLINE"})
    assert (spelt.status, list(spelt.errors)) == (400, ["airline.bookingType"])
    assert "airline.bookingtype" in spelt.errors["airline.bookingType"]


def test_a_company_buys_with_its_own_card(api: Api) -> None:
    """B1.1, B1.2: corporate data is kept, echoed, sent on, and is there at the refund's chain too."""
    paid = buy(api, COMPANY)
    named = {name.removeprefix("corporate."): value for name, value in COMPANY.items()}
    assert paid.body["corporate"] == named
    assert api.read(paid.id).body["corporate"] == named
    assert sent_on(api, paid)["corporate"] == named
    wrong = {"corporate.purchase": "yes", "corporate.phone": "+49 89"}
    assert set(buy(api, COMPANY, wrong).errors) == set(wrong)
    assert api.follow(paid.id, "RF", "92.00").status == 200
