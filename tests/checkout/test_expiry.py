"""What of a checkout falls due by itself. Source: decisions, section 7; D3."""

from __future__ import annotations

from datetime import timedelta

import pytest

from checkout.expiry import CHECKOUT_EXPIRY_TIMER
from checkout.models import Checkout
from config.timers import TIMERS
from gateway.models import Merchant
from gateway.timers.registry import TIMERS as KNOWN
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.shopper import open_checkout

pytestmark = pytest.mark.django_db
PASSPORT = {
    "customer__givenName": "Jane",
    "customer__surname": "Jones",
    "customer__identificationDocType": "PASSPORT",
    "customer__identificationDocId": "C01X00T47",
}


def sealed() -> int:
    return Checkout.objects.filter(request_sealed__isnull=False).count()


def test_secrets_go_when_the_checkout_ends_by_its_merchant_s_clock(shop: Shop, stranger: Shop) -> None:
    """A moved clock ends one merchant's checkouts, and nobody else's; once."""
    for api in (shop.api, stranger.api):
        open_checkout(api, **PASSPORT)
    plain = open_checkout(shop.api)
    due = CHECKOUT_EXPIRY_TIMER.next_at
    assert due is not None
    assert sealed() == 2
    assert due(shop.merchant) == Checkout.objects.get(merchant=shop.merchant, request_sealed__isnull=False).expires_at
    assert CHECKOUT_EXPIRY_TIMER.run() == 0
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(minutes=30))
    assert CHECKOUT_EXPIRY_TIMER.run(stranger.merchant) == 0
    assert CHECKOUT_EXPIRY_TIMER.run() == 1
    assert (sealed(), due(shop.merchant)) == (1, None)
    assert CHECKOUT_EXPIRY_TIMER.run(shop.merchant) == 0
    assert plain.checkout


def test_a_run_for_one_merchant_deletes_no_unused_checkout_of_another(shop: Shop, stranger: Shop) -> None:
    for api in (shop.api, stranger.api):
        open_checkout(api)
    Merchant.objects.update(clock_offset=timedelta(days=401))
    assert CHECKOUT_EXPIRY_TIMER.run(Merchant.objects.get(pk=stranger.merchant.pk)) == 1
    assert Checkout.objects.get().merchant_id == shop.merchant.pk


def test_the_timer_is_known(api: Api) -> None:
    assert CHECKOUT_EXPIRY_TIMER in TIMERS
    assert KNOWN[CHECKOUT_EXPIRY_TIMER.name] is CHECKOUT_EXPIRY_TIMER
