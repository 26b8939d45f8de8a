"""A debit is reversed until its settlement, and refunded after it. Source: rulings, section 4; docs/decisions/0069."""

from __future__ import annotations

import pytest

from gateway.models import Channel
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.settlement import csv, institute, line, payment_of, take_in

TOO_LATE = "700.300.700"
OK = "000.100.110"
HOUR = 3600


def pay(shop: Shop, kind: str) -> str:
    if kind != "CP":
        return shop.api.pay(paymentType=kind).id
    return shop.api.follow(shop.api.pay(paymentType="PA").id, "CP", "92.00").id


@pytest.mark.parametrize("kind", ["DB", "CP", "CD"])
def test_a_debit_is_reversed_within_a_day(shop: Shop, kind: str) -> None:
    paid = pay(shop, kind)
    jump(23 * HOUR)
    assert shop.api.follow(paid, "RV", "10.00").code == OK
    jump(2 * HOUR)
    late = shop.api.follow(paid, "RV", "10.00")
    assert (late.status, late.code) == (400, TOO_LATE)
    assert "paymentType=RF" in late.body["resultDetails"]["ExtendedDescription"]


def test_it_is_refunded_then(shop: Shop) -> None:
    paid = pay(shop, "DB")
    jump(92 * 24 * HOUR)
    assert shop.api.follow(paid, "RV").code == TOO_LATE
    assert shop.api.follow(paid, "RF", "92.00").code == OK


@pytest.mark.parametrize("hours, code", [(1, TOO_LATE), (100, OK), (0, OK)])
def test_a_channel_may_set_other_hours(shop: Shop, hours: int, code: str) -> None:
    Channel.objects.update(reversal_hours=hours)
    paid = pay(shop, "DB")
    jump(30 * HOUR)
    assert shop.api.follow(paid, "RV").code == code


def test_what_a_settlement_file_tells_of_is_not_reversed(shop: Shop) -> None:
    Channel.objects.update(reversal_hours=0)
    paid, other = pay(shop, "DB"), pay(shop, "DB")
    take_in(csv([line(payment_of(paid))]), institute())
    assert shop.api.follow(paid, "RV").code == TOO_LATE
    assert shop.api.follow(other, "RV").code == OK


def test_an_authorization_is_reversed_whenever(shop: Shop) -> None:
    held = shop.api.pay(paymentType="PA").id
    jump(5 * 24 * HOUR)
    assert shop.api.follow(held, "RV", "10.00").code == OK
