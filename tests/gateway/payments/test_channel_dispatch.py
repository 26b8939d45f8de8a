"""Which channel of a merchant takes a payment: the first, by position, that takes its brand and its currency."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from gateway.core.secret import Secret
from gateway.models import Channel
from gateway.payments.channel_dispatch import choose_channel
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
VISA, MASTER = Secret("4200000000000000"), Secret("5454545454545454")
CO_BADGED = Secret("4970100000000154")


def choose(shop: Shop, **sent: str | Secret) -> str:
    found = choose_channel(shop.merchant, [(name.replace("__", "."), value) for name, value in sent.items()])
    if found is None:
        return ""
    assert found.merchant is shop.merchant
    return found.name


def open_channels(shop: Shop, **channels: dict[str, Any]) -> None:
    Channel.objects.filter(pk=shop.channel.pk).update(active=False)
    for name, values in channels.items():
        shop.open_channel(name, **values)


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ({"paymentBrand": "VISA", "currency": "EUR"}, "visa"),
        ({"paymentBrand": "MASTER", "currency": "EUR"}, "euros"),
        ({"paymentBrand": "VISA", "currency": "USD"}, "visa"),
        ({"paymentBrand": "MASTER", "currency": "USD"}, "any"),
        ({"paymentBrand": "MASTER"}, "any"),
        ({"currency": "EUR"}, "euros"),
        ({}, "any"),
        ({"card__number": VISA, "currency": "USD"}, "visa"),
        ({"card__number": MASTER, "currency": "USD"}, "any"),
        # The brand that was sent counts, whatever the number says.
        ({"paymentBrand": "MASTER", "card__number": VISA, "currency": "USD"}, "any"),
        # A number in clear is none that was parsed.
        ({"card__number": "4200000000000000", "currency": "USD"}, "any"),
    ],
)
def test_the_first_channel_that_takes_brand_and_currency_takes_the_payment(
    shop: Shop, sent: dict[str, str | Secret], name: str
) -> None:
    open_channels(
        shop,
        any={"position": 3},
        euros={"position": 2, "currencies": ["EUR", "CHF"]},
        visa={"position": 1, "brands": ["VISA"]},
    )
    assert choose(shop, **sent) == name


def test_a_channel_that_takes_a_brand_in_a_currency_takes_neither_alone(shop: Shop) -> None:
    open_channels(shop, both={"brands": ["VISA"], "currencies": ["EUR"]})
    assert choose(shop, paymentBrand="VISA", currency="EUR") == "both"
    assert choose(shop, paymentBrand="VISA", currency="USD") == ""
    assert choose(shop, paymentBrand="MASTER", currency="EUR") == ""


def test_of_equal_positions_the_oldest_goes_first_and_none_that_is_not_active(shop: Shop, stranger: Shop) -> None:
    open_channels(shop, younger={"position": 5}, older={"position": 5}, closed={"position": 1, "active": False})
    older = Channel.objects.filter(name="older")
    older.update(created_at=older.get().created_at - timedelta(days=1))
    assert choose(shop, paymentBrand="VISA", currency="EUR") == "older"
    Channel.objects.filter(merchant=shop.merchant).update(active=False)
    assert choose(shop, paymentBrand="VISA", currency="EUR") == ""
    assert choose(stranger, paymentBrand="VISA", currency="EUR") == stranger.channel.name


@pytest.mark.parametrize(
    ("order", "brands", "name"),
    [
        (["CARTEBANCAIRE", "VISA"], ["CARTEBANCAIRE"], "own"),
        (["CARTEBANCAIRE", "VISA"], [], "own"),
        ([], ["VISA"], "own"),
        # The card is a Visa card for a channel that has no order; an order's brand that is not taken is passed over.
        ([], ["CARTEBANCAIRE"], "any"),
        (["CARTEBANCAIRE"], ["VISA"], "own"),
        (["MASTER"], ["MASTER"], "any"),
    ],
)
def test_a_co_badged_card_has_the_brand_of_the_channels_own_order(
    shop: Shop, order: list[str], brands: list[str], name: str
) -> None:
    open_channels(shop, own={"position": 1, "brand_order": order, "brands": brands}, any={"position": 2})
    assert choose(shop, card__number=CO_BADGED, currency="EUR") == name


def test_a_parameter_that_was_sent_twice_counts_as_it_was_sent_last(shop: Shop) -> None:
    open_channels(shop, visa={"brands": ["VISA"]}, master={"brands": ["MASTER"], "position": 9})
    found = choose_channel(shop.merchant, [("paymentBrand", "VISA"), ("paymentBrand", "MASTER")])
    assert found is not None
    assert found.name == "master"
    assert choose_channel(shop.merchant, []) is None
