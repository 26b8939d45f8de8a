"""Which outcomes of batched captures are applied, and what does not keep others waiting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.iso8583.batched_capture import WITHDRAWN
from gateway.connectors.iso8583.response_codes import map_declined_code
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AcquirerExchange, BatchedCapture, CaptureBatch, Merchant, Notification, Payment, Status
from gateway.payments import batched_captures
from gateway.payments.batched_captures import apply_capture_outcomes, find_next_capture_outcome
from gateway.payments.states import PaymentTransitionError
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
State = BatchedCapture.State
NOW, AHEAD = datetime(2033, 11, 15, tzinfo=UTC), timedelta(hours=9)
BY_ALL, BY_VISA = map_declined_code("39", ""), map_declined_code("39", "VISA")
"""The codes of a refusal with 39: Visa's means something else."""


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


@pytest.fixture
def now(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> datetime:
    """The time by the clock of the merchant, who is ahead."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=AHEAD)
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    return NOW + AHEAD


def batch_of(shop: Shop) -> CaptureBatch:
    return CaptureBatch.objects.create(
        merchant=shop.merchant, channel=shop.channel, number=4711, currency="EUR", count=1, total=1, opened_at=NOW
    )


@pytest.mark.parametrize(
    ("state", "brand", "in_batch", "status", "code", "sent"),
    [
        (State.TAKEN, "VISA", True, Status.APPROVED, external_success_code(), 4711),
        (State.REFUSED, "VISA", True, Status.DECLINED, BY_VISA, 4711),
        (State.REFUSED, "AMEX", True, Status.DECLINED, BY_ALL, 4711),
        (State.WITHDRAWN, "VISA", False, Status.DECLINED, WITHDRAWN, "taken out"),
    ],
)
def test_a_capture_that_waited_ends_as_its_batch_did(
    shop: Shop, now: datetime, state: str, brand: str, in_batch: bool, status: Status, code: str, sent: object
) -> None:
    """By its brand's codes, with the number of its batch, now by the merchant's clock."""
    assert BY_ALL != BY_VISA
    payment = outcome(shop, state, status=Status.PENDING)
    other = outcome(shop, State.WAITING, status=Status.PENDING)
    Payment.objects.filter(pk=payment).update(brand=brand)
    BatchedCapture.objects.filter(pk=payment).update(
        batch=batch_of(shop) if in_batch else None, reference="there", code="39"
    )
    Notification.objects.all().delete()
    assert apply_capture_outcomes() == 1
    paid = Payment.objects.get(pk=payment)
    assert (paid.status, paid.result_code, paid.completed_at) == (status, code, now)
    assert paid.approved_amount == (Decimal("1.00") if status == Status.APPROVED else None)
    [exchange] = AcquirerExchange.objects.filter(payment=payment, kind="batch")
    assert (exchange.sent, exchange.at) == ({"batch": sent}, now)
    assert [one.payment_id for one in Notification.objects.all()] == [payment]
    assert unapplied() == {other}
    assert Payment.objects.get(pk=other).status == Status.PENDING


@pytest.mark.parametrize("status", [Status.APPROVED, Status.DECLINED])
@pytest.mark.parametrize("state", [State.TAKEN, State.REFUSED])
def test_a_payment_that_has_ended_stays_as_it_is(shop: Shop, status: Status, state: str) -> None:
    payment = outcome(shop, state, status=status)
    before = Payment.objects.get(pk=payment)
    assert apply_capture_outcomes() == 1
    after = Payment.objects.get(pk=payment)
    assert (after.status, after.sequence, after.result_code) == (status, before.sequence, before.result_code)
    assert not AcquirerExchange.objects.filter(payment=payment, kind="batch").exists()


@pytest.mark.parametrize("fault", [PaymentTransitionError("moved"), ValueError("broken")], ids=["moved", "broken"])
def test_an_outcome_that_cannot_be_applied_is_due_again_and_keeps_no_other_waiting(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    """One that moved meanwhile is no fault to look at."""
    bad, good = (outcome(shop, State.TAKEN, status=Status.PENDING) for _ in range(2))
    complete = batched_captures.store.complete_payment

    def fail(payment: Payment, *arguments: Any, **named: Any) -> None:
        if payment.pk == bad:
            raise fault
        complete(payment, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(batched_captures.store, "complete_payment", fail)
        assert apply_capture_outcomes() == 1
    assert (Payment.objects.get(pk=good).status, unapplied()) == (Status.APPROVED, {bad})
    assert ("capture_result_not_applied" in caplog.text) is isinstance(fault, ValueError)
    assert apply_capture_outcomes() == 1
    assert (Payment.objects.get(pk=bad).status, unapplied()) == (Status.APPROVED, set())


def test_an_outcome_that_another_worker_applied_is_not_counted(shop: Shop) -> None:
    rows = [BatchedCapture.objects.get(pk=outcome(shop, State.TAKEN)) for _ in range(2)]
    BatchedCapture.objects.filter(pk=rows[0].pk).update(applied=True)
    assert batched_captures._apply_capture_outcome(rows[0]) is False
    assert unapplied() == {rows[1].pk}
    assert batched_captures._apply_capture_outcome(rows[1]) is True


@pytest.mark.parametrize(
    ("batch", "rounds", "looked"), [(2, 30, 5), (2, 2, 4), (2, 1, 2), (5, 1, 5), (5, 30, 5), (6, 1, 5), (1, 30, 5)]
)
def test_a_run_looks_at_each_outcome_once_in_the_order_of_payments_and_is_bounded(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, batch: int, rounds: int, looked: int
) -> None:
    """Five that wait, and one that was applied before."""
    waiting = sorted(outcome(shop, State.TAKEN, status=Status.STARTED) for _ in range(5))
    outcome(shop, State.TAKEN, applied=True)
    seen: list[UUID] = []
    apply = batched_captures._apply_capture_outcome

    def note(row: BatchedCapture) -> bool:
        seen.append(row.payment)
        return apply(row)

    monkeypatch.setattr(batched_captures, "_apply_capture_outcome", note)
    monkeypatch.setattr(batched_captures, "CAPTURE_OUTCOME_BATCH_SIZE", batch)
    monkeypatch.setattr(batched_captures, "MAX_CAPTURE_OUTCOME_ROUNDS", rounds)
    assert apply_capture_outcomes() == 0
    assert seen == waiting[:looked]


@pytest.mark.parametrize("state", State.values)
@pytest.mark.parametrize("applied", [False, True])
def test_the_timer_is_due_while_a_final_outcome_waits(shop: Shop, now: datetime, state: str, applied: bool) -> None:
    timer = batched_captures.TIMER
    assert (timer.run, timer.next_at) == (apply_capture_outcomes, find_next_capture_outcome)
    outcome(shop, state, applied=applied)
    due = state in batched_captures.FINAL_CAPTURE_STATES and not applied
    assert len(execute_sql(timer.earliest_due, {})) == int(due)
    merchant = Merchant.objects.get(pk=shop.merchant.pk)
    assert find_next_capture_outcome(merchant) == (now if due else None)
