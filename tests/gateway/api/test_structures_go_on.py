"""What belongs to a payment beside its means is validated, stored, echoed and sent on: who sends and who receives,
foreign exchange, splits, cart, airline, corporate.

Source: Part A, Forex, Basic payment (transactionPurposeCode, transactionProcessingCode); Part B, Corporate … Airline;
checks A14, A13.19, A13.22, B1–B8; ruling D37.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.models import Payment
from tests.support.client import Api

pytestmark = pytest.mark.django_db

STRUCTURES = (
    "corporate",
    "sender",
    "recipient",
    "merchant",
    "marketPlace",
    "airline",
    "forex",
    "cart",
    "customer",
    "billing",
    "shipping",
)
SENT: dict[str, dict[str, str]] = {
    "forex": {"forex.amount": "101.20", "forex.currency": "USD"},
    "corporate": {"corporate.name": "Arch Works", "corporate.purchase": "Y", "corporate.phone": "49301234567"},
    "sender": {"sender.name": "Jane Jones", "sender.country": "DEU", "sender.accountNumberType": "IBAN",
               "sender.sourceOfFunds": "02", "sender.birthDate": "1980-05-01"},
    "recipient": {"recipient.country": "IND", "recipient.accountNumberType": "BAN_AND_BIC",
                  "transactionProcessingCode": "PAYMENT", "transactionPurposeCode": "ISRENT"},
    "merchant": {"merchant.name": "Tollhouse", "merchant.city": "Berlin", "merchant.countryCode": "276",
                 "merchant.data[till.no]": "7"},
    "marketplace": {"marketPlace.sellers[0].id": "s-1", "marketPlace.sellers[0].amount": "50.00",
                    "marketPlace.sellers[1].id": "s-2", "marketPlace.sellers[1].amount": "42.00",
                    "cart.items[0].name": "Book", "cart.items[0].sellerId": "s-2"},
    "cart": {"cart.items[0].name": "Book", "cart.items[0].price": "46.00", "cart.items[0].quantity": "2",
             "cart.items[999].name": "Bag", "cart.items[999].taxCategory": "S",
             "cart.payments[0].type": "GIFTCARD", "cart.payments[0].status": "pending"},
    "airline": {"airline.bookingtype": "WEB", "airline.passengers[0].name": "Jane Jones",
                "airline.passengers[1].legs[3].departureAirport": "TXL"},
    "bai and tti": {"transactionBai": "AA", "transactionTti": "C07", "transactionProcessingCode": "FUNDING"},
}  # fmt: skip


def held(node: Any) -> set[str]:
    """Every value inside."""
    if isinstance(node, dict):
        return {value for one in node.values() for value in held(one)}
    return {value for one in node for value in held(one)} if isinstance(node, list) else {str(node)}


@pytest.mark.parametrize("name", SENT)
def test_a_structure_is_stored_echoed_and_sent_on(api: Api, name: str) -> None:
    """A7.11, A7.12, A14.1, B1–B8: visible at GET /v1/test/acquirer/messages."""
    fields = SENT[name]
    answer = api.pay(**{key.replace(".", "__"): value for key, value in fields.items()})
    assert answer.code == "000.100.110", answer
    sent = api.get("/v1/test/acquirer/messages", {"id": answer.id}).body["messages"][0]["sent"]
    stored = Payment.objects.get(pk=answer.id).request
    for where in (answer.body, stored, sent):
        assert set(fields.values()) <= held(where), name


@pytest.mark.parametrize(
    "fields, fault",
    [
        ({"forex__amount": "10.00"}, "forex.currency"),
        ({"forex__currency": "USD"}, "forex.amount"),
        ({"transactionProcessingCode": "PAYMENT", "recipient__country": "IND"}, "transactionPurposeCode"),
        ({"transactionProcessingCode": "REFUND"}, "transactionProcessingCode"),
        ({"corporate__purchase": "Z"}, "corporate.purchase"),
        ({"sender__country": "DE"}, "sender.country"),
        ({"merchant__countryCode": "DE"}, "merchant.countryCode"),
        (
            {"marketPlace.sellers[0].id": "s-1", "marketPlace.sellers[0].amount": "92.01"},
            "marketPlace.sellers[0].amount",
        ),
        ({"airline.bookingType": "WEB"}, "airline.bookingType"),
        ({"cart.items[1000].name": "x"}, "cart.items[1000].name"),
    ],
)
def test_a_breach_names_its_field(api: Api, fields: dict[str, str], fault: str) -> None:
    """D10, D37."""
    answer = api.pay(**fields)
    assert answer.status == 400
    assert fault in answer.errors


@pytest.mark.parametrize("country", ["ARG", "BGD", "CHL", "COL", "EGY", "IND"])
@pytest.mark.parametrize("code", ["FUNDING", "PAYMENT"])
def test_money_transfers_to_six_countries_say_what_for(api: Api, country: str, code: str) -> None:
    """A13.19, D37."""
    fields = {"transactionProcessingCode": code, "recipient__country": country}
    assert "transactionPurposeCode" in api.pay(**fields).errors
    assert api.pay(**fields, transactionPurposeCode="ISRENT").status == 200
    assert api.pay(transactionProcessingCode=code, recipient__country="DEU").status == 200


def test_without_a_processing_code_it_is_a_purchase(api: Api) -> None:
    """A13.22."""
    answer = api.pay()
    assert answer.body["transactionProcessingCode"] == "PURCHASE"


def test_what_stays_in_the_house_is_never_sent_on(api: Api) -> None:
    """A13.12, A13.13, D17."""
    answer = api.pay(merchantInvoiceId="invoice-4711", merchantMemo="a memo for us", descriptor="Order 17")
    messages = api.get("/v1/test/acquirer/messages", {"id": answer.id})
    assert "invoice-4711" not in messages.text
    assert "a memo for us" not in messages.text
    assert "Order 17" in messages.text
    assert "a memo for us" not in answer.text


def test_every_structure_of_the_specification_is_taken_by_a_payment() -> None:
    prefixes = {structure.prefix.split(".")[0].split("[")[0] for structure in PAYMENT_ENDPOINT.structures}
    assert set(STRUCTURES) | {"bankAccount", "virtualAccount", "tokenAccount", "giftCard"} <= prefixes
