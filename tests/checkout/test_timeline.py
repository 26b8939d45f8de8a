"""A checkout's page and its row of the list, in the reader's language."""

from __future__ import annotations

import pytest
from django.conf import settings

from checkout.models import Checkout
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.shopper import open_checkout


@pytest.mark.django_db
def test_amount_and_title_are_written_in_the_readers_language(shop: Shop) -> None:
    """A German page said "checkout of" and 1234.50."""
    open_checkout(shop.api, amount="1234.50")
    client = signed_in(person("clara", "clerk", shop.merchant))
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    page = client.get(f"/admin/checkout/checkout/{Checkout.objects.get().pk}/change/").content.decode()
    assert "Checkout 1.234,50 EUR" in page
    assert "Checkout vom " in page
    assert "1.234,50 EUR" in client.get("/admin/checkout/checkout/").content.decode()
