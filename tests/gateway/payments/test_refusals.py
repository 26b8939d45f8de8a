"""A refusal before any payment names the parameter, what was sent, and what is allowed."""

from __future__ import annotations

import pytest

from gateway.connectors.routing import CONNECTORS
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


def test_a_follow_up_whose_acquirer_cannot_be_sent_what_binds_it_is_not_made(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docs/decisions/0070: without it, it would be another payment."""
    paid = shop.api.pay(paymentType="PA").id
    binding = {"merchant.payFacId": "12345678901"}
    monkeypatch.setattr(CONNECTORS["simulator"], "sends", ())
    refused = shop.api.follow(paid, "CP", "10.00", **binding)
    assert (refused.status, refused.code, list(refused.errors)) == (400, "600.200.400", list(binding)), refused
    assert Payment.objects.count() == 1
    monkeypatch.undo()
    assert shop.api.follow(paid, "CP", "10.00", **binding).status == 200
