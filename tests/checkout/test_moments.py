"""When a checkout ends, and when its merchant is called: to the microsecond, by the merchant's clock.

Source: Part A, What the service does, 8; States and transitions; Events, 2.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout import session
from checkout.models import Checkout
from gateway.core import clock
from gateway.models import Merchant
from gateway.payments.refusal import RequestRefusedError
from tests.support.client import Api
from tests.support.fixtures import Shop

AT = datetime(2026, 5, 14, 10, 2, 3, tzinfo=UTC)
STEP = timedelta(microseconds=1)
AHEAD = (timedelta(0), timedelta(hours=5), -timedelta(hours=5))


def checkout(offset: timedelta) -> Checkout:
    return Checkout(merchant=Merchant(clock_offset=offset), created_at=AT, expires_at=AT + session.CHECKOUT_LIFETIME)


@pytest.mark.parametrize("offset", AHEAD)
@pytest.mark.parametrize(
    ("past", "over", "left"),
    [
        (-timedelta(seconds=1), False, 1),
        (-STEP, False, 0),
        (timedelta(0), True, 0),
        (timedelta(hours=1), True, 0),
        (-session.CHECKOUT_LIFETIME, False, 1800),
    ],
)
def test_a_checkout_ends_at_30_minutes_exactly(
    monkeypatch: pytest.MonkeyPatch, offset: timedelta, past: timedelta, over: bool, left: int
) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: AT + session.CHECKOUT_LIFETIME + past - offset)
    assert (session.is_checkout_expired(checkout(offset)), session.count_seconds_left(checkout(offset))) == (over, left)


@given(st.integers(0, 1800), st.integers(-7200, 7200))
def test_the_seconds_left_never_fall_below_none(past: int, offset: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "real_now", lambda: AT + timedelta(seconds=past - offset))
        assert session.count_seconds_left(checkout(timedelta(seconds=offset))) == 1800 - past


def made(api: Api) -> str:
    answer = api.post("/v1/checkouts", {"amount": "92.00", "currency": "EUR", "paymentType": "DB"})
    assert answer.status == 200, answer
    return answer.id


@pytest.mark.django_db
def test_an_id_is_found_by_its_whole_self_only(shop: Shop, stranger: Shop) -> None:
    """Number and node, in their own letters; of a channel, a merchant, a division and a psp that work."""
    ident = made(shop.api)
    assert session.find_open_checkout(ident).public_id == ident
    number, _, node = ident.partition("-")
    others = made(stranger.api).partition("-")[0]
    for wrong in (
        number,
        f"{number}-",
        f"{number}-{node}x",
        f"{number}-x{node[1:]}",
        ident.lower(),
        f" {ident}",
        f"{ident}\n",
        f"{number[:-1]}-{node}",
        f"{others}-{node}x",
    ):
        assert session.find_checkout(wrong) is None, wrong
    assert session.find_checkout(ident, merchant=stranger.merchant) is None
    merchant = shop.merchant
    for one in (shop.channel, merchant, merchant.division, merchant.division.psp):
        type(one)._default_manager.filter(pk=one.pk).update(active=False)
        with pytest.raises(RequestRefusedError) as refused:
            session.find_open_checkout(ident)
        assert refused.value.status == 404
        type(one)._default_manager.filter(pk=one.pk).update(active=True)
    assert session.find_open_checkout(ident).public_id == ident
