"""A shop whose channel has an account at a running processor, and little patience."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings

from tests.support.card_api import CardApi, account_at, card_api
from tests.support.fixtures import Shop

TIMEOUT_S = 1.0


@pytest.fixture
def processor() -> Iterator[CardApi]:
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=TIMEOUT_S), card_api() as running:
        yield running


@pytest.fixture
def card_shop(shop: Shop, processor: CardApi) -> Shop:
    account_at(shop.channel, processor.url)
    return shop
