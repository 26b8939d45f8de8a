"""Which outcomes of batched captures are applied, and what does not keep others waiting."""

from __future__ import annotations

from uuid import UUID

import pytest

from gateway.core import clock
from gateway.models import BatchedCapture, Payment, Status
from gateway.payments import batched_captures
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
State = BatchedCapture.State


def outcome(shop: Shop, state: str, *, status: Status = Status.APPROVED, applied: bool = False) -> UUID:
    """A capture in this state whose payment has this status."""
    held = shop.api.pay(paymentType="PA").id
    made = Payment.objects.filter(pk=shop.api.follow(held, "CP", "1.00").id)
    made.update(status=status)
    payment = made.get()
    BatchedCapture.objects.create(
        payment=payment.pk,
        merchant=shop.merchant,
        channel=shop.channel,
        state=state,
        amount=payment.amount,
        currency="EUR",
        created_at=payment.created_at,
        applied=applied,
    )
    return payment.pk


def unapplied() -> set[UUID]:
    return set(BatchedCapture.objects.filter(applied=False).values_list("pk", flat=True))


@pytest.mark.parametrize("state", State.values)
def test_only_a_final_outcome_is_applied_and_once(shop: Shop, state: str) -> None:
    final = state in (State.TAKEN, State.REFUSED, State.WITHDRAWN)
    outcome(shop, state)
    assert (batched_captures.find_next_capture_outcome(shop.merchant) is not None) is final
    assert batched_captures.apply_capture_outcomes() == int(final)
    assert batched_captures.apply_capture_outcomes() == 0
    assert batched_captures.find_next_capture_outcome(shop.merchant) is None


def test_one_merchants_run_leaves_the_outcomes_of_others_alone(shop: Shop, stranger: Shop) -> None:
    mine, theirs = outcome(shop, State.TAKEN), outcome(stranger, State.TAKEN)
    assert batched_captures.find_next_capture_outcome(shop.merchant) is not None
    assert batched_captures.apply_capture_outcomes(shop.merchant) == 1
    assert unapplied() == {theirs}
    assert batched_captures.find_next_capture_outcome(shop.merchant) is None
    due = batched_captures.find_next_capture_outcome(stranger.merchant)
    assert due is not None
    assert due <= clock.merchant_now(stranger.merchant)
    assert mine != theirs


@pytest.mark.parametrize("status", [Status.STARTED, Status.IN_DOUBT])
def test_payments_without_an_answer_wait_and_keep_no_later_one_waiting(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    """A page full of them is not read again and again in place of the next."""
    monkeypatch.setattr(batched_captures, "CAPTURE_OUTCOME_BATCH_SIZE", 2)
    waiting = {outcome(shop, State.TAKEN, status=status) for _ in range(2)}
    outcome(shop, State.TAKEN, applied=True)
    for _ in range(3):
        outcome(shop, State.REFUSED)
    assert batched_captures.apply_capture_outcomes() == 3
    assert unapplied() == waiting
    Payment.objects.filter(pk__in=waiting).update(status=Status.DECLINED)
    assert batched_captures.apply_capture_outcomes() == 2
