"""The retention of idempotency keys, exact to the moment, and their scope: token, method and path. Source: ruling
D20."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from gateway.core import clock
from gateway.models import IdempotencyKey, Payment
from gateway.payments import store
from gateway.payments.idempotency import IDEMPOTENCY_RETENTION, delete_expired_idempotency_keys
from tests.support.acquirers import Acquirer, account, known
from tests.support.client import payment
from tests.support.fixtures import Shop
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def pay(shop: Shop, key: str = "key-1", token: str | None = None, path: str = "/v1/payments") -> str:
    api = shop.api.with_token(token) if token else shop.api
    answer = api.post(path, payment(), **{"Idempotency-Key": key})
    assert answer.status == 200, answer
    return answer.id


@pytest.mark.parametrize(
    ("age", "same"),
    [(IDEMPOTENCY_RETENTION - MINUTE, True), (IDEMPOTENCY_RETENTION, False), (IDEMPOTENCY_RETENTION + MINUTE, False)],
)
def test_a_key_is_kept_for_a_day_of_the_databases_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, age: timedelta, same: bool
) -> None:
    """Whatever the clock of the machine that reads it says."""
    first = pay(shop)
    IdempotencyKey.objects.update(created_at=Now() - age)
    right = clock.real_now
    for ahead in (timedelta(days=2), timedelta(days=-2)):
        with monkeypatch.context() as patch:
            patch.setattr(clock, "real_now", lambda ahead=ahead: right() + ahead)
            assert delete_expired_idempotency_keys(limit=10) == (0 if same else int(ahead > timedelta(0)))
    assert (pay(shop) == first) is same
    assert Payment.objects.count() == (1 if same else 2)


def test_a_key_is_one_tokens_own(shop: Shop) -> None:
    _, another = shop.issue()
    first = pay(shop)
    assert pay(shop, token=another) != first
    assert pay(shop, "key-2") != first
    assert pay(shop) == first


def test_the_sweep_takes_the_oldest_keys_each_with_all_of_its_name(shop: Shop) -> None:
    """Keys of one name at two paths, and of two tokens, are keys of their own."""
    _, another = shop.issue()
    card = {name: value for name, value in payment().items() if name.startswith("card.")}
    first = pay(shop)
    assert pay(shop, token=another) != first
    assert shop.api.post("/v1/registrations", card, **{"Idempotency-Key": "key-1"}).status == 200
    assert pay(shop, "key-2")
    ages = {"payments": 26, "another": 27, "registrations": 1, "second": 25}
    rows = {
        "payments": IdempotencyKey.objects.filter(key="key-1", path="/v1/payments", token=shop.token.pk),
        "another": IdempotencyKey.objects.filter(key="key-1").exclude(token=shop.token.pk),
        "registrations": IdempotencyKey.objects.filter(path="/v1/registrations"),
        "second": IdempotencyKey.objects.filter(key="key-2"),
    }
    for name, hours in ages.items():
        assert rows[name].update(created_at=Now() - timedelta(hours=hours)) == 1
    for gone in ("another", "payments", "second"):
        assert rows.pop(gone).exists()
        assert delete_expired_idempotency_keys(limit=1) == 1
        assert all(row.exists() for row in rows.values()), gone
    assert delete_expired_idempotency_keys(limit=1) == 0


def test_the_merchants_clock_does_not_age_a_key(shop: Shop) -> None:
    first = pay(shop)
    shop.api.post("/v1/test/clock", {"advance": str(int(IDEMPOTENCY_RETENTION.total_seconds()) + 3600)})
    assert pay(shop) == first


def test_a_key_whose_answer_was_lost_waits_for_its_own_payment_and_no_other(shop: Shop) -> None:
    """Its payment ended; another one of the merchant is still being made."""
    first = pay(shop)
    other = pay(shop, "key-2")
    IdempotencyKey.objects.update(answer=None, status=None)
    Payment.objects.filter(pk=other).update(status="STARTED")
    assert pay(shop) == first
    still = shop.api.post("/v1/payments", payment(), **{"Idempotency-Key": "key-2"})
    assert (still.status, still.code) == (409, "800.120.402")


def test_a_late_answer_is_stored_with_no_newer_payment_of_the_same_key(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first payment's acquirer answers after the key has expired and was used for another payment."""
    account(committed.channel, "slow")
    known(monkeypatch, Acquirer("slow"))
    complete = store.complete_payment
    second: list[str] = []

    def outlasts_its_key(paid: Payment, *arguments: Any, **more: Any) -> None:
        if not second:
            second.append("")
            IdempotencyKey.objects.update(created_at=Now() - IDEMPOTENCY_RETENTION)
            second[0] = at_once(lambda: pay(committed))[0]
        complete(paid, *arguments, **more)

    monkeypatch.setattr(store, "complete_payment", outlasts_its_key)
    shown = committed.api.post("/v1/payments", payment(testMode="EXTERNAL"), **{"Idempotency-Key": "key-1"})
    assert second[0] not in ("", shown.id)
    assert pay(committed) == second[0]
