"""A refusal before any payment names the parameter, what was sent, and what is allowed."""

from __future__ import annotations

import pytest

from gateway.models import Payment
from tests.support.client import payment
from tests.support.fixtures import Shop

CASES = {
    "unknown brand": ({}, {"paymentBrand": "VIZA"}, "paymentBrand", "VIZA", "VISA"),
    "brand of another means": ({}, {"paymentBrand": "DIRECTDEBIT_SEPA"}, "paymentBrand", "DIRECTDEBIT_SEPA", "card"),
    "brand not set up": ({"brands": ["MASTER"]}, {}, "paymentBrand", "VISA", "MASTER"),
    "currency not set up": ({"currencies": ["CHF"]}, {}, "currency", "EUR", "CHF"),
    "type that begins no chain": ({}, {"paymentType": "CP"}, "paymentType", "CP", "POST /v1/payments/{id}"),
}


@pytest.mark.parametrize(("channel", "changed", "name", "value", "allowed"), CASES.values(), ids=CASES)
def test_a_refusal_names_what_was_sent_and_what_is_allowed(
    shop: Shop,
    channel: dict[str, list[str]],
    changed: dict[str, str],
    name: str,
    value: str,
    allowed: str,
) -> None:
    for column, allows in channel.items():
        setattr(shop.channel, column, allows)
    shop.channel.save()
    answer = shop.api.post("/v1/payments", payment(**changed))
    assert answer.status == 400, answer
    (error,) = answer.body["result"]["parameterErrors"]
    assert (error["name"], error["value"]) == (name, value)
    assert allowed in error["message"]
    assert not Payment.objects.exists()
