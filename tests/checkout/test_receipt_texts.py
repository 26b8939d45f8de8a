"""What a receipt says: the day in the merchant's zone, the lines of the order, the amount that was approved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from checkout.models import Checkout
from checkout.receipts import RECEIPT_RETENTION, build_receipt, is_receipt_shown, list_order_lines
from gateway.core import languages
from gateway.models import Merchant, Payment
from tests.support.fixtures import Shop
from tests.support.shopper import open_checkout

EVENING = datetime(2036, 5, 14, 20, 30, tzinfo=UTC)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2036-05-14 20:30 UTC"),
        ("Asia/Tokyo", "2036-05-15 05:30 JST"),
        ("America/Los_Angeles", "2036-05-14 13:30 PDT"),
    ],
)
def test_the_moment_is_that_of_the_approval_in_the_merchants_zone(shop: Shop, zone: str, shown: str) -> None:
    assert open_checkout(shop.api).pay().status == 200
    Merchant.objects.update(time_zone=zone)
    row = Checkout.objects.select_related("merchant", "payment").get()
    payment = row.payment
    assert payment is not None
    payment.created_at, payment.completed_at = EVENING - timedelta(hours=9), EVENING
    t = languages.load_page_texts("en")
    facts = dict(build_receipt(row, payment, t, "en").facts)
    assert facts[t["date"]] == shown
    payment.created_at, payment.completed_at = EVENING, None
    assert dict(build_receipt(row, payment, t, "en").facts)[t["date"]] == shown


@pytest.mark.django_db
@pytest.mark.parametrize(("approved", "shown"), [(None, "€92.00"), ("60.00", "€60.00"), ("0.00", "€0.00")])
def test_the_amount_is_what_was_approved(shop: Shop, approved: str | None, shown: str) -> None:
    assert open_checkout(shop.api).pay().status == 200
    row = Checkout.objects.select_related("merchant", "payment").get()
    assert row.payment is not None
    row.payment.approved_amount = None if approved is None else Decimal(approved)
    assert build_receipt(row, row.payment, languages.load_page_texts("en"), "en").amount == shown


@pytest.mark.parametrize(
    ("item", "quantity", "total"),
    [
        ({"price": "9.52"}, "1", "€9.52"),
        ({"price": "9.52", "quantity": "3"}, "3", "€28.56"),
        ({"price": "0.33", "quantity": "1.50"}, "1.5", "€0.50"),
        ({"price": "9.52", "quantity": "3", "totalAmount": "25.00"}, "3", "€25.00"),
        ({"totalAmount": "4.90"}, "1", "€4.90"),
        ({"price": "920", "quantity": "2", "currency": "JPY"}, "2", "¥1,840"),
        ({"quantity": "100"}, "100", ""),
    ],
)
def test_a_line_has_its_total_or_its_price_times_its_quantity(item: dict[str, str], quantity: str, total: str) -> None:
    sent = {f"cart.items[0].{name}": value for name, value in {"name": "Mug", **item}.items()}
    nameless = {"cart.items[1].price": "1.00"}
    (line,) = list_order_lines(sent | nameless, "EUR", "en")
    assert (line.name, line.quantity, line.total) == ("Mug", quantity, total)


@pytest.mark.parametrize(("later", "shown"), [(-timedelta(microseconds=1), True), (timedelta(0), False)])
def test_the_page_shows_it_for_a_day(later: timedelta, shown: bool) -> None:
    assert is_receipt_shown(Payment(completed_at=EVENING), EVENING + RECEIPT_RETENTION + later) is shown
    assert is_receipt_shown(Payment(completed_at=None), EVENING) is False
