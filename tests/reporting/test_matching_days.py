"""How many days a line may be away from its payment when only the amount tells which it is: to the day, both ways.

Source: Part B, Reconciliation file; docs/settlement.md.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.models import Payment
from reporting.models import Match, SettlementRecord
from reporting.settlement.matching import MAX_PRESENTMENT_DAYS_APART, RECENT_PAYMENTS_WINDOW
from tests.support.fixtures import Shop
from tests.support.settlement import csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db
ZONES = {"UTC": 12, "Asia/Tokyo": 20, "America/Los_Angeles": 3}
"""Zone → an hour in UTC; in the second and third it is another day there."""


def state_of(shop: Shop, zone: str, **fields: str) -> str:
    """Where a line without any id ends up, of the one payment there is."""
    of = institute(time_zone=zone)
    take_in(csv([line(ClearingInstituteMerchantId=shop.channel.id.hex, **fields)]), of)
    return SettlementRecord.objects.get().state


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("days", "state"),
    [
        (0, "MATCHED"),
        (MAX_PRESENTMENT_DAYS_APART, "MATCHED"),
        (-MAX_PRESENTMENT_DAYS_APART, "MATCHED"),
        (MAX_PRESENTMENT_DAYS_APART + 1, "NOT_MATCHED"),
        (-MAX_PRESENTMENT_DAYS_APART - 1, "NOT_MATCHED"),
    ],
)
def test_a_line_may_be_so_many_days_before_or_after_its_payment_and_no_more(
    shop: Shop, zone: str, days: int, state: str
) -> None:
    """Days of the institute's calendar."""
    payment = payment_of(shop.api.pay().id)
    at = (payment.created_at.astimezone(UTC) - timedelta(days=10)).replace(hour=ZONES[zone])
    Payment.objects.filter(pk=payment.pk).update(created_at=at)
    wanted = (at + timedelta(days=days)).astimezone(ZoneInfo(zone))
    assert state_of(shop, zone, TxRequestTime=f"{wanted:%Y-%m-%d %H:%M:%S}", SettlementDate=f"{at:%Y-%m-%d}") == state


@pytest.mark.parametrize(
    ("days", "state"),
    [
        (0, "MATCHED"),
        (RECENT_PAYMENTS_WINDOW.days, "MATCHED"),
        (RECENT_PAYMENTS_WINDOW.days + 1, "NOT_MATCHED"),
        (-1, "NOT_MATCHED"),
    ],
)
def test_without_its_moment_the_day_of_settlement_counts_backwards_only(shop: Shop, days: int, state: str) -> None:
    payment = payment_of(shop.api.pay().id)
    at = payment.created_at.astimezone(UTC) - timedelta(days=3)
    Payment.objects.filter(pk=payment.pk).update(created_at=at)
    found = state_of(shop, "UTC", SettlementDate=f"{at + timedelta(days=days):%Y-%m-%d}")
    assert found == state
    assert Match.objects.count() == (1 if state == "MATCHED" else 0)


@pytest.mark.parametrize(
    "change",
    [
        {"Amount": "91.99"},
        {"Amount": "92.01"},
        {"Currency": "USD", "SettlementFxRate": "1"},
        {"Cashflow": "NEG"},
        {"PaymentType": "REFUND"},
    ],
)
def test_what_differs_in_anything_else_is_not_the_payment(shop: Shop, change: dict[str, str]) -> None:
    payment = payment_of(shop.api.pay().id)
    day = f"{payment.created_at.astimezone(UTC):%Y-%m-%d}"
    expected = "MATCHED" if "Cashflow" in change else "NOT_MATCHED"  # a finding of its own: DIRECTION
    assert state_of(shop, "UTC", SettlementDate=day, **change) == expected
