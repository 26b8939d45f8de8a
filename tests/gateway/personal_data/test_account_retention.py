"""Sealed account numbers leave old payments, their fingerprints stay. Source: PCI DSS 3.2.1; docs/decisions/0102."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.checks import run_checks

from config.checks import MIN_PAYMENT_ACCOUNT_DAYS
from gateway.core import clock
from gateway.core.authorization_validity import MAX_AUTHORIZATION_DAYS
from gateway.core.identifiers import first_id_at
from gateway.models import AccountErasurePosition, Payment
from gateway.payments.authorization_expiry import RENEWAL_GRACE
from gateway.personal_data import account_retention
from gateway.personal_data.account_retention import erase_old_accounts
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


def age(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """So many days from now."""
    at = clock.real_now() + timedelta(days=days)
    monkeypatch.setattr(account_retention.clock, "real_now", lambda: at)


def sealed(*ids: str) -> list[bool]:
    rows = dict(Payment.objects.values_list("pk", "means_sealed"))
    return [rows[UUID(one)] is not None for one in ids]


def test_account_numbers_leave_after_their_days(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = shop.api.pay().id, shop.api.pay().id
    with monkeypatch.context() as patch:
        age(patch, 539.9)
        assert erase_old_accounts() == 0
    assert sealed(first, second) == [True, True]
    with monkeypatch.context() as patch:
        age(patch, 540.1)
        assert erase_old_accounts() == 2
        assert erase_old_accounts() == 0
    third = shop.api.pay().id
    assert sealed(first, second, third) == [False, False, True]
    assert all(row.means_fingerprint is not None for row in Payment.objects.all())
    with monkeypatch.context() as patch:
        age(patch, 541)
        assert erase_old_accounts() == 1, "the position goes on from where it was"


def test_one_run_takes_many_batches(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [shop.api.pay().id for _ in range(3)]
    monkeypatch.setattr(account_retention, "ACCOUNT_ERASURE_BATCH", 1)
    age(monkeypatch, 541)
    assert erase_old_accounts() == 3
    assert sealed(*ids) == [False] * 3
    assert AccountErasurePosition.objects.get().position == UUID(ids[-1])


def test_the_same_card_is_still_known_and_what_needs_the_number_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = shop.api.pay()
    with monkeypatch.context() as patch:
        age(patch, 541)
        erase_old_accounts()
    known = {bytes(one) for one in Payment.objects.values_list("means_fingerprint", flat=True) if one}
    shop.api.pay()
    assert {bytes(one) for one in Payment.objects.values_list("means_fingerprint", flat=True) if one} == known
    assert shop.api.follow(paid.id, "RF", "5.00").status == 200
    again = shop.api.follow(paid.id, "RB", "5.00")
    assert (again.status, again.code) == (400, "700.500.004")


def test_the_first_id_of_a_moment_is_below_every_id_made_then(shop: Shop) -> None:
    before = first_id_at(clock.real_now() - timedelta(seconds=1))
    paid = UUID(shop.api.pay().id)
    assert before < paid < first_id_at(clock.real_now() + timedelta(seconds=1))


@pytest.mark.parametrize(
    ("name", "days", "fault"),
    [
        ("GATEWAY_PAYMENT_ACCOUNT_DAYS", 399, "tollhouse.E045"),
        ("GATEWAY_PAYMENT_ACCOUNT_DAYS", 1096, "tollhouse.E045"),
        ("GATEWAY_PAYMENT_ACCOUNT_DAYS", 400, ""),
        ("GATEWAY_REQUEST_LOG_DAYS", 0, "tollhouse.E044"),
        ("GATEWAY_REQUEST_LOG_DAYS", 1, ""),
        ("GATEWAY_ACQUIRER_MESSAGE_DAYS", 539, "tollhouse.E050"),
        ("GATEWAY_ACQUIRER_MESSAGE_DAYS", 540, ""),
    ],
)
def test_a_wrong_number_of_days_is_told(settings: Any, name: str, days: int, fault: str) -> None:
    setattr(settings, name, days)
    found = {message.id for message in run_checks()} & {"tollhouse.E044", "tollhouse.E045", "tollhouse.E050"}
    assert found == ({fault} if fault else set())


def test_an_account_outlives_every_authorization_and_the_release_of_its_rest() -> None:
    """A late capture, a renewal and a reversal may need the number."""
    assert timedelta(days=MIN_PAYMENT_ACCOUNT_DAYS) > timedelta(days=MAX_AUTHORIZATION_DAYS) + RENEWAL_GRACE
