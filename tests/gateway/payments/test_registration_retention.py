"""Which stored accounts are erased when their retention has ended: each condition by itself.

Source: Part B, Tokenization and registration; goals R8.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from gateway.core import clock
from gateway.models import Merchant, NetworkToken, Registration
from gateway.payments import registration_retention
from gateway.payments.registration_retention import erase_expired_registrations, withdraw_unowned_tokens
from tests.support.fixtures import Shop
from tests.support.subscriptions import store_card

pytestmark = pytest.mark.django_db
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """The time that stands still."""
    at = clock.real_now()
    monkeypatch.setattr(clock, "real_now", lambda: at)
    return at


def store(shop: Shop, until: datetime | None, **values: Any) -> Registration:
    """A stored card whose retention ends then."""
    ident = store_card(shop.api)
    Registration.objects.filter(pk=ident).update(retain_until=until, **values)
    return Registration.objects.get(pk=ident)


def kept(*rows: Registration) -> list[bool]:
    found = Registration.objects.in_bulk([row.pk for row in rows])
    return [found[row.pk].means_sealed is not None for row in rows]


@pytest.mark.parametrize("ahead", [timedelta(0), 40 * DAY, -40 * DAY])
@pytest.mark.parametrize(("ago", "erased"), [(DAY - SECOND, 0), (DAY, 1), (DAY + SECOND, 1)])
def test_an_account_goes_a_day_after_its_retention_by_its_merchants_clock(
    shop: Shop, stranger: Shop, now: datetime, ahead: timedelta, ago: timedelta, erased: int
) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    own = store(shop, now + ahead - ago)
    others = store(shop, None), store(shop, now + ahead + DAY), store(stranger, now)
    assert erase_expired_registrations() == erased
    assert kept(own, *others) == [not erased, True, True, True]


def test_the_clock_of_another_merchant_ends_no_retention(shop: Shop, stranger: Shop, now: datetime) -> None:
    Merchant.objects.filter(pk=stranger.merchant.pk).update(clock_offset=400 * DAY)
    assert kept(store(shop, now + DAY)) == [True]
    assert erase_expired_registrations() == 0


def test_of_all_merchants(shop: Shop, stranger: Shop, now: datetime) -> None:
    own, other = store(shop, now - 2 * DAY), store(stranger, now - 2 * DAY)
    assert erase_expired_registrations() == 2
    assert kept(own, other) == [False, False]


def test_one_that_is_erased_already_is_not_counted_again(shop: Shop, now: datetime) -> None:
    store(shop, now - 2 * DAY, means_sealed=None)
    assert erase_expired_registrations() == 0


def test_a_run_goes_on_until_none_is_left_or_its_rounds_are_over(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose retention ended first go first."""
    monkeypatch.setattr(registration_retention, "ERASURE_BATCH_SIZE", 2)
    monkeypatch.setattr(registration_retention, "MAX_ERASURE_ROUNDS", 2)
    rows = [store(shop, now - days * DAY) for days in (9, 5, 7, 6, 8)]
    assert erase_expired_registrations() == 4
    assert kept(*rows) == [False, True, False, False, False]
    assert erase_expired_registrations() == 1


@pytest.mark.parametrize("status", ["REQUESTED", "ACTIVE", "SUSPENDED", "REFUSED"])
def test_a_token_goes_with_the_account_it_stands_for(shop: Shop, now: datetime, status: str) -> None:
    rows = [store(shop, now - 2 * DAY), store(shop, None), store(shop, None, means_sealed=None)]
    for row in rows:
        NetworkToken.objects.update_or_create(
            registration=row, defaults={"status": status, "number_sealed": b"sealed", "changed_at": now, "due_at": None}
        )
    deleted = NetworkToken.objects.get(registration=rows[2])
    NetworkToken.objects.filter(pk=deleted.pk).update(status="DELETED", due_at=now - DAY)
    assert erase_expired_registrations() == 1
    found = {one.registration_id: (one.status, one.number_sealed, one.due_at) for one in NetworkToken.objects.all()}
    assert found[rows[0].pk] == ("DELETED", None, now)
    assert (found[rows[1].pk][0], found[rows[1].pk][2]) == (status, None)
    assert found[rows[2].pk][2] == now - DAY, "its network was told already"
    assert withdraw_unowned_tokens() == 0
