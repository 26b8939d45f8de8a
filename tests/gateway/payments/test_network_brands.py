"""By which network's rules a payment goes, where its brand is a wallet's."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.models import Payment
from gateway.payments.network_brands import find_network_brand, resolve_network_brand
from tests.support.client import Api

VISA, MASTER = {"card": {"bin": "420000"}}, {"card": {"bin": "545454"}}


@pytest.mark.parametrize(
    ("brand", "answer", "network"),
    [
        ("VISA", MASTER, "VISA"),
        ("VISADEBIT", VISA, "VISADEBIT"),
        ("WALLET1", VISA, "VISA"),
        ("WALLET2", MASTER, "MASTER"),
        ("WALLET1", {"card": {"bin": "000000"}}, "WALLET1"),
        ("WALLET1", {"card": {"bin": ""}}, "WALLET1"),
        ("WALLET1", {"card": {}}, "WALLET1"),
        ("WALLET1", {}, "WALLET1"),
    ],
)
def test_a_wallets_brand_is_that_of_its_card(brand: str, answer: dict[str, Any], network: str) -> None:
    assert resolve_network_brand(brand, answer) == network


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "network"),
    [
        ({"means": "card", "brand": "WALLET1"}, "MASTER"),
        ({"means": "card", "brand": "WALLET1", "follows": True}, "VISA"),
        ({"means": "card", "brand": "MASTER", "follows": True}, "MASTER"),
        ({"means": "bankAccount", "brand": "WALLET1"}, "WALLET1"),
        ({"means": "bankAccount", "brand": "WALLET1", "follows": True}, "WALLET1"),
    ],
    ids=str,
)
def test_a_follow_up_has_the_card_of_its_chain(api: Api, values: dict[str, Any], network: str) -> None:
    """A Mastercard was paid with last, a Visa card by the payment that is followed."""
    first = Payment.objects.get(pk=api.pay(card__number="4200000000000000").id)
    api.pay(paymentBrand="MASTER", card__number="5454545454545454")
    assert first.answer["card"]["bin"] == "420000"
    follows = {"referenced": first.pk, "chain": first.pk} if values.pop("follows", False) else {}
    row = Payment(**values, **follows, answer=MASTER if not follows else {})
    assert find_network_brand(row) == network


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "reads"),
    [
        ({"brand": "WALLET1"}, 1),
        ({"brand": "MASTER"}, 0),
        ({"brand": "WALLET1", "referenced": None}, 0),
        ({"brand": "WALLET1", "means": "bankAccount"}, 0),
    ],
    ids=str,
)
def test_only_a_wallets_follow_up_costs_a_read(
    values: dict[str, Any], reads: int, django_assert_num_queries: Any
) -> None:
    row = Payment(**{"means": "card", "referenced": UUID(int=1), "chain": UUID(int=1), **values})
    with django_assert_num_queries(reads):
        assert find_network_brand(row) == values["brand"]


@pytest.mark.django_db
def test_a_follow_up_whose_chain_is_not_there_has_its_own_brand() -> None:
    row = Payment(means="card", brand="WALLET1")
    row.referenced = row.chain = row.id
    assert find_network_brand(row) == "WALLET1"
