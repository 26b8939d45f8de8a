"""How long a key is kept, and for whom: to the moment, by token, method and path. Source: ruling D20."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.core import clock
from gateway.models import IdempotencyKey, Payment
from gateway.payments.idempotency import IDEMPOTENCY_RETENTION
from tests.support.client import payment
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
STEP = timedelta(microseconds=1)


def pay(shop: Shop, key: str = "key-1", token: str | None = None, path: str = "/v1/payments") -> str:
    api = shop.api.with_token(token) if token else shop.api
    answer = api.post(path, payment(), **{"Idempotency-Key": key})
    assert answer.status == 200, answer
    return answer.id


@pytest.mark.parametrize(
    ("age", "same"),
    [(IDEMPOTENCY_RETENTION - STEP, True), (IDEMPOTENCY_RETENTION, True), (IDEMPOTENCY_RETENTION + STEP, False)],
)
def test_a_key_is_kept_for_a_day_of_real_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, age: timedelta, same: bool
) -> None:
    first = pay(shop)
    made = IdempotencyKey.objects.get().created_at
    monkeypatch.setattr(clock, "real_now", lambda: made + age)
    assert (pay(shop) == first) is same
    assert Payment.objects.count() == (1 if same else 2)


def test_a_key_is_one_tokens_own(shop: Shop) -> None:
    _, another = shop.issue()
    first = pay(shop)
    assert pay(shop, token=another) != first
    assert pay(shop, "key-2") != first
    assert pay(shop) == first


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
