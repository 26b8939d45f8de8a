"""A refusal before any payment names the parameter, what was sent, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.connectors.routing import CONNECTORS
from gateway.models import Merchant, Payment
from tests.support.bin_files import write_bin_file
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


@pytest.mark.parametrize(("taken", "brand"), [(["MASTER"], "MASTER"), ([], "MASTERDEBIT")])
def test_a_table_of_bins_refuses_no_card_that_its_channel_took_before(
    shop: Shop, tmp_path: Path, taken: list[str], brand: str
) -> None:
    shop.channel.brands = taken
    shop.channel.save()
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    card = payment(paymentBrand=None, card__number="5454545454545454")
    with write_bin_file(tmp_path, "545454\t\t\t\t\t\t\tMASTERDEBIT"):
        answers = [api.post("/v1/payments", card) for api in (shop.api, shop.api.as_entity(shop.merchant.entity_id))]
    assert [(one.status, one.body.get("paymentBrand")) for one in answers] == [(200, brand)] * 2, answers


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
