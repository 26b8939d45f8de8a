"""A merchant's own id as entityId (dispatching) opens what is the merchant's, and nothing of another merchant.

Beside tests/gateway/api/test_strangers.py, which asks with channels: here the other half of the same guard is alone.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.core import identifiers
from gateway.models import Merchant, Payment
from tests.gateway.api.test_strangers import STORED, Naming, ask, each_that_names_a_payment, told
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _unlimited(settings: Any) -> None:
    """A merchant's own id is throttled by the settings; what remains would differ from answer to answer."""
    settings.GATEWAY_THROTTLE_LIMIT = 0


@each_that_names_a_payment
def test_with_the_merchants_own_id_another_merchants_payment_is_answered_like_none(
    shop: Shop, stranger: Shop, naming: Naming
) -> None:
    Merchant.objects.update(dispatching=True)
    entity, nothing = shop.merchant.entity_id, identifiers.row_id().hex
    theirs = [stranger.api.pay(paymentType="PA").id, stranger.api.post("/v1/registrations", STORED).id]
    before = Payment.objects.filter(merchant=stranger.merchant).count()
    expected = told(ask(shop.api, naming, payment=nothing, entity=entity), nothing)
    for ident in theirs:
        assert told(ask(shop.api, naming, payment=ident, entity=entity), ident) == expected
    assert Payment.objects.filter(merchant=stranger.merchant).count() == before


def test_with_the_merchants_own_id_ones_own_payments_of_every_channel_are_read(shop: Shop) -> None:
    """The comparison above would see a difference."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    other = shop.api_of(shop.open_channel()).pay().id
    for ident in (shop.api.pay().id, other):
        answer = shop.api.as_entity(shop.merchant.entity_id).read(ident)
        assert (answer.status, answer.id) == (200, ident)
    assert shop.api.read(other).status == 404, "a channel sees its own only"
