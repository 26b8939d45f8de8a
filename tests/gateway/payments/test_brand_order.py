"""A channel's order of the brands of co-badged cards: for requests that name none; what is sent is never changed.

Source: docs/decisions/0109.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.core.document import InvalidDocumentError
from gateway.models import Channel
from tests.support import shopper
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

CO_BADGED = "4970100000000154"


def order_brands(channel: Channel, *order: str, **more: Any) -> None:
    target = find_configuration_target(channel.id)
    assert target is not None
    document = {"channel": {"brandOrder": list(order), **more}}
    apply_configuration(target, document, by=audit_log.COMMAND_LINE_ACTOR)


@pytest.mark.parametrize(
    "order, brand", [([], "VISA"), (["CARTEBANCAIRE", "VISA"], "CARTEBANCAIRE"), (["VISA"], "VISA")]
)
def test_a_request_without_a_brand_takes_the_channels_first(shop: Shop, order: list[str], brand: str) -> None:
    order_brands(shop.channel, *order)
    answer = shop.api.pay(card__number=CO_BADGED, paymentBrand=None)
    assert (answer.status, answer.body["paymentBrand"], answer.body["brandResult"]) == (200, brand, brand)


@pytest.mark.parametrize("brand", ["VISA", "CARTEBANCAIRE"])
def test_a_brand_that_is_sent_is_the_shoppers_choice(shop: Shop, brand: str) -> None:
    order_brands(shop.channel, *{"VISA", "CARTEBANCAIRE"} - {brand})
    answer = shop.api.pay(card__number=CO_BADGED, paymentBrand=brand)
    assert (answer.status, answer.body["paymentBrand"], "brandResult" in answer.body) == (200, brand, False)


def test_a_brand_that_the_channel_does_not_take_is_passed_over(shop: Shop) -> None:
    order_brands(shop.channel, "CARTEBANCAIRE", brands=["VISA", "MASTER"])
    assert shop.api.pay(card__number=CO_BADGED, paymentBrand=None).body["paymentBrand"] == "VISA"


def test_a_card_of_one_brand_is_paid_with_as_before(shop: Shop) -> None:
    order_brands(shop.channel, "CARTEBANCAIRE")
    assert shop.api.pay(paymentBrand=None).body["paymentBrand"] == "VISA"


def test_a_merchants_channel_is_chosen_by_its_own_order(shop: Shop) -> None:
    shop.merchant.dispatching = True
    shop.merchant.save()
    Channel.objects.filter(pk=shop.channel.pk).update(brands=["VISA"], position=2)
    first = shop.open_channel("cards of France", position=1, brands=["CARTEBANCAIRE"])
    api = shop.api.as_entity(shop.merchant.entity_id)
    assert api.pay(card__number=CO_BADGED, paymentBrand=None).body["paymentBrand"] == "VISA"
    order_brands(first, "CARTEBANCAIRE")
    assert api.pay(card__number=CO_BADGED, paymentBrand=None).body["paymentBrand"] == "CARTEBANCAIRE"


@pytest.mark.parametrize(
    "order, reason",
    [(["VIZA"], "VISA"), (["WALLET1"], "must be one of"), (["VISA", "VISA"], "twice"), ("VISA", "list")],
)
def test_an_order_of_anything_but_card_brands_is_refused_by_name(shop: Shop, order: Any, reason: str) -> None:
    target = find_configuration_target(shop.channel.id)
    assert target is not None
    with pytest.raises(InvalidDocumentError) as refused:
        apply_configuration(target, {"channel": {"brandOrder": order}}, by=audit_log.COMMAND_LINE_ACTOR)
    said = str(refused.value)
    assert "brandOrder" in said
    assert reason in said
    shop.channel.refresh_from_db()
    assert shop.channel.brand_order == []


def test_the_form_is_told_the_order_of_the_brands_that_the_channel_takes(shop: Shop) -> None:
    order_brands(shop.channel, "CARTEBANCAIRE", "AMEX", "VISA", brands=["VISA", "CARTEBANCAIRE"])
    form = shopper.open_checkout(shop.api).config("VISA CARTEBANCAIRE")
    assert form.body["brandOrder"] == ["CARTEBANCAIRE", "VISA"]
