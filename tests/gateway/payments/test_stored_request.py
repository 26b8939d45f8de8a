"""What of a request is stored with its payment, and how it is made again. No database."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.models import Payment
from gateway.payments.stored_request import build_stored_request, drop_stored_columns, restore_sent_parameters

SENT = {
    "amount": "92.00", "currency": "EUR", "paymentType": "DB", "paymentBrand": "VISA",
    "merchantTransactionId": "order-4711",
    "customer.givenName": "Jane", "customer.surname": "Jones", "entityId": "0" * 32,
}  # fmt: skip


def test_what_a_row_has_columns_for_is_not_stored_twice() -> None:
    pairs = [
        *SENT.items(),
        ("card.number", "4200000000000000"),
        ("card.expiryMonth", "05"),
        ("card.expiryYear", "2034"),
    ]
    stored = build_stored_request(PAYMENT_ENDPOINT.catalogue.parse(pairs))
    assert not {"amount", "currency", "paymentType"} & stored.keys()
    assert (stored["paymentBrand"], stored["merchantTransactionId"]) == ("VISA", "order-4711")
    assert stored["customer"] == {"givenName": "Jane", "surname": "Jones"}
    assert "4200000000000000" not in str(stored)


@pytest.mark.parametrize("name", ["amount", "currency", "paymentType"])
def test_each_column_is_left_out_by_itself(name: str) -> None:
    assert drop_stored_columns({name: "x", "other": "y"}) == {"other": "y"}


def test_a_payment_says_again_what_it_was_made_by() -> None:
    """Of an approval in part: what was asked for."""
    payment = Payment(
        amount=Decimal("92"), approved_amount=Decimal("40"), currency="EUR", payment_type="DB",
        request={"customer": {"givenName": "Jane"}, "merchantTransactionId": "order-4711"},
    )  # fmt: skip
    assert restore_sent_parameters(payment) == {
        "amount": "92.00", "currency": "EUR", "paymentType": "DB", "customer.givenName": "Jane",
        "merchantTransactionId": "order-4711",
    }  # fmt: skip
