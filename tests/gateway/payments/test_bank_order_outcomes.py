"""What a bank's word about an order does to its payment: each state of both, whose events are applied, and when."""

from __future__ import annotations

import itertools
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import OperationalError

from gateway.connectors.acquirer_message import external_success_code
from gateway.connectors.sepa.bank_reasons import find_bank_reason
from gateway.core import clock
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.models import (
    AcquirerExchange,
    BankMessage,
    BankOrder,
    BankOrderEvent,
    BankOrderFollowUp,
    Merchant,
    Payment,
    RequestLog,
    Status,
)
from gateway.payments import bank_order_outcomes
from gateway.payments.bank_order_outcomes import (
    _find_unanswered,
    _is_recorded,
    apply_bank_order_events,
    find_next_bank_order_event,
)
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.states import PaymentTransitionError
from tests.support.chains import after, chain, first
from tests.support.fixtures import Shop

State = BankOrder.State
NUMBERS = itertools.count(1)


def order_of(
    shop: Shop, *, status: Status = Status.APPROVED, kind: str = "COLLECT", amount: str = "92.00"
) -> BankOrder:
    """An order of a payment of 92.00 with this status."""
    made = Payment.objects.get(pk=shop.api.pay(paymentType="CD" if kind == "PAY" else "DB").id)
    Payment.objects.filter(pk=made.pk).update(status=status)
    return BankOrder.objects.create(
        payment=made.pk, merchant=shop.merchant, channel=shop.channel, kind=kind, amount=Decimal(amount),
        currency="EUR", created_at=made.created_at, state=State.FILED,
    )  # fmt: skip


def tell(order: BankOrder, state: str, reason: str = "", **values: Any) -> BankOrderEvent:
    return BankOrderEvent.objects.create(order=order, state=state, reason=reason, at=order.created_at, **values)


def message_of() -> BankMessage:
    number = next(NUMBERS)
    return BankMessage.objects.create(
        name="bank.xml", kind="camt.053", source="COMMAND", sha256=f"{number:064}", size=1, received_at=clock.real_now()
    )


def payment_of(order: BankOrder) -> Payment:
    return Payment.objects.get(pk=order.payment)


def follow_ups(order: BankOrder) -> list[Payment]:
    return list(Payment.objects.filter(chain=order.payment).exclude(pk=order.payment).order_by("number"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "before", "told", "after_", "made"),
    [
        *[("COLLECT", status, told, status, "waits") for status in (Status.STARTED, Status.IN_DOUBT)
          for told in (State.BOOKED, State.REJECTED, State.RETURNED)],
        ("COLLECT", Status.PENDING, State.BOOKED, Status.APPROVED, ""),
        ("COLLECT", Status.PENDING, State.REJECTED, Status.DECLINED, ""),
        ("COLLECT", Status.PENDING, State.WITHDRAWN, Status.DECLINED, ""),
        ("COLLECT", Status.APPROVED, State.RETURNED, Status.APPROVED, "CB"),
        ("REVERSE", Status.APPROVED, State.RETURNED, Status.APPROVED, "returned"),
        ("PAY", Status.APPROVED, State.RETURNED, Status.APPROVED, "returned"),
        ("COLLECT", Status.APPROVED, State.BOOKED, Status.APPROVED, ""),
        ("COLLECT", Status.APPROVED, State.REJECTED, Status.APPROVED, ""),
        ("COLLECT", Status.APPROVED, State.WON_BACK, Status.APPROVED, ""),
        ("COLLECT", Status.DECLINED, State.BOOKED, Status.APPROVED, "finding"),
        ("COLLECT", Status.DECLINED, State.RETURNED, Status.DECLINED, ""),
        ("COLLECT", Status.DECLINED, State.REJECTED, Status.DECLINED, ""),
    ],
)  # fmt: skip
def test_a_banks_word_moves_a_payment_by_the_states_of_both(
    shop: Shop, kind: str, before: Status, told: State, after_: Status, made: str
) -> None:
    order, message = order_of(shop, kind=kind, status=before), message_of()
    event = tell(order, told, "AC04", message=message)
    assert apply_bank_order_events() == (made != "waits")
    event.refresh_from_db()
    message.refresh_from_db()
    paid = payment_of(order)
    assert event.applied is (made != "waits")
    assert paid.status == after_
    assert [one.payment_type for one in follow_ups(order)] == ["CB"] * (made == "CB")
    assert (paid.returned_at is not None) is (made == "returned")
    assert len(message.findings) == (made in ("finding", "returned"))
    if before == Status.PENDING or made == "finding":
        assert AcquirerExchange.objects.filter(payment=paid, kind="bank").count() == 1
    assert apply_bank_order_events() == 0


@pytest.mark.django_db
def test_a_recall_has_no_payment_to_move(shop: Shop) -> None:
    """What it brings back is the transfer's own event."""
    order = order_of(shop, kind="RECALL")
    paid = payment_of(order)
    event = tell(order, State.RETURNED)
    assert apply_bank_order_events() == 1
    event.refresh_from_db()
    assert event.applied
    assert (payment_of(order).sequence, follow_ups(order)) == (paid.sequence, [])


@pytest.mark.django_db
def test_a_return_is_a_chargeback_with_the_orders_amount_and_the_banks_reason(shop: Shop) -> None:
    order = order_of(shop, amount="90.00")
    event = tell(order, State.RETURNED, "AC04")
    apply_bank_order_events()
    [made] = follow_ups(order)
    code = find_bank_reason("AC04").returned
    assert (made.payment_type, made.status, made.amount, made.approved_amount) == (
        "CB", Status.APPROVED, Decimal("90.00"), Decimal("90.00")
    )  # fmt: skip
    assert (made.result_code, made.request["chargebackResultCode"]) == (code, code)
    assert (made.referenced, made.connector_tx_id, made.currency) == (order.payment, order.payment.hex, "EUR")
    assert BankOrderFollowUp.objects.get().payment == made.id
    assert BankOrderFollowUp.objects.get().event_id == event.pk
    log = RequestLog.objects.get(payment=made.id)
    assert (log.method, log.path, log.entity_id) == ("ENTER", "bank", shop.channel.pk)


@pytest.mark.django_db
def test_returns_and_their_reversals_follow_each_other(shop: Shop) -> None:
    """Returned, won back, returned again: a chargeback, its reversal, and a chargeback of that."""
    order = order_of(shop)
    for state in (State.RETURNED, State.WON_BACK, State.RETURNED, State.WON_BACK):
        tell(order, state, "AC04")
    assert apply_bank_order_events() == 4
    made = follow_ups(order)
    assert [one.payment_type for one in made] == ["CB", "CR", "CB", "CR"]
    assert [one.referenced for one in made] == [order.payment, made[0].id, made[1].id, made[2].id]
    assert made[1].result_code == external_success_code()


@pytest.mark.django_db
def test_a_late_booking_says_so_to_the_clerk_and_keeps_the_code_it_was_declined_with(shop: Shop) -> None:
    message = message_of()
    order = order_of(shop, status=Status.DECLINED)
    Payment.objects.filter(pk=order.payment).update(result_code="800.100.202")
    tell(order, State.BOOKED, message=message, on=date(2026, 1, 5))
    apply_bank_order_events()
    message.refresh_from_db()
    [words] = message.findings
    assert order.payment.hex in words
    assert "800.100.202" in words
    [exchange] = AcquirerExchange.objects.filter(payment=order.payment, kind="bank")
    assert exchange.sent == {"booked": "2026-01-05"}


@pytest.mark.django_db
def test_a_payment_goes_by_the_state_of_the_event_and_not_by_a_later_one_of_its_order(shop: Shop) -> None:
    order = order_of(shop, status=Status.PENDING)
    BankOrder.objects.update(state=State.RETURNED, reason="AC04")
    tell(order, State.REJECTED, "AM04")
    assert apply_bank_order_events() == 1
    paid = payment_of(order)
    assert (paid.status, paid.result_code) == (Status.DECLINED, find_bank_reason("AM04").declined)


@pytest.mark.django_db
def test_one_merchants_run_leaves_the_events_of_others_alone(shop: Shop, stranger: Shop) -> None:
    mine, theirs = order_of(shop, status=Status.PENDING), order_of(stranger, status=Status.PENDING)
    tell(mine, State.BOOKED, applied=True)
    assert find_next_bank_order_event(shop.merchant) is None
    for order in (mine, theirs):
        tell(order, State.BOOKED)
    due = find_next_bank_order_event(shop.merchant)
    assert due is not None
    assert abs(due - clock.merchant_now(shop.merchant)) < timedelta(minutes=1)
    assert apply_bank_order_events(shop.merchant) == 1
    assert (payment_of(mine).status, payment_of(theirs).status) == (Status.APPROVED, Status.PENDING)
    assert find_next_bank_order_event(shop.merchant) is None
    assert find_next_bank_order_event(stranger.merchant) is not None
    assert apply_bank_order_events() == 1
    assert payment_of(theirs).status == Status.APPROVED


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("limit", "most", "applied"),
    [
        ("MAX_BANK_ORDER_EVENTS_PER_RUN", 4, 4),
        ("MAX_BANK_ORDER_EVENTS_PER_RUN", 3, 3),
        ("BANK_ORDER_EVENT_BATCH_SIZE", 1, 6),
        ("BANK_ORDER_EVENT_BATCH_SIZE", 2, 6),
    ],
)
def test_a_run_is_bounded_and_the_next_one_goes_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, applied: int
) -> None:
    """Three orders with two events each: of every order the oldest first."""
    orders = [order_of(shop, status=Status.PENDING) for _ in range(3)]
    for state in (State.BOOKED, State.RETURNED):
        for order in orders:
            tell(order, state, "AC04")
    monkeypatch.setattr(bank_order_outcomes, limit, most)
    assert apply_bank_order_events() == applied
    assert BankOrderEvent.objects.filter(applied=True, state=State.BOOKED).count() == 3
    assert apply_bank_order_events() == 6 - applied
    assert BankOrderEvent.objects.filter(applied=False).count() == 0
    assert [[one.payment_type for one in follow_ups(order)] for order in orders] == [["CB"]] * 3


@pytest.mark.django_db
@pytest.mark.parametrize(("most", "applied"), [(1, 2), (2, 3)])
def test_a_run_looks_at_an_order_a_bounded_number_of_times(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, most: int, applied: int
) -> None:
    """Its second event is older than what was applied last, so it is of the next round."""
    order, other = order_of(shop, status=Status.PENDING), order_of(shop, status=Status.PENDING)
    for state in (State.BOOKED, State.RETURNED):
        tell(order, state)
    tell(other, State.BOOKED)
    monkeypatch.setattr(bank_order_outcomes, "MAX_BANK_ORDER_EVENT_ROUNDS", most)
    assert apply_bank_order_events() == applied


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fault", "told"), [(ValueError("broken"), 1), (OperationalError("server closed the connection"), 0)]
)
def test_an_event_that_fails_is_told_once_and_keeps_no_other_waiting(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, fault: Exception, told: int
) -> None:
    """Where the database is away it is no fault of the event."""
    monkeypatch.setattr(bank_order_outcomes, "is_database_away", lambda one: isinstance(one, OperationalError))
    message = message_of()
    bad, good = order_of(shop, status=Status.PENDING), order_of(shop, status=Status.PENDING)
    for order in (bad, good):
        tell(order, State.BOOKED, message=message)
    complete = bank_order_outcomes.store.complete_payment

    def fail(payment: Payment, *arguments: Any, **named: Any) -> None:
        if payment.pk == bad.payment:
            raise fault
        complete(payment, *arguments, **named)

    monkeypatch.setattr(bank_order_outcomes.store, "complete_payment", fail)
    assert apply_bank_order_events() == 1
    assert apply_bank_order_events() == 0
    message.refresh_from_db()
    assert len(message.findings) == told
    assert payment_of(good).status == Status.APPROVED
    assert all("tried again" in words and bad.payment.hex in words for words in message.findings)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "status", "state"),
    [
        ("COLLECT", Status.PENDING, State.BOOKED),
        ("COLLECT", Status.DECLINED, State.BOOKED),
        ("PAY", Status.APPROVED, State.RETURNED),
    ],
)
def test_an_event_whose_payment_moves_meanwhile_is_due_again(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    status: Status,
    state: State,
) -> None:
    """That is no fault to look at."""
    order = order_of(shop, kind=kind, status=status)
    event = tell(order, state)

    def lose(*_: Any, **__: Any) -> None:
        raise PaymentTransitionError

    with monkeypatch.context() as patched:
        for name in ("complete_payment", "record_returned_transfer"):
            patched.setattr(bank_order_outcomes.store, name, lose)
        assert apply_bank_order_events() == 0
        event.refresh_from_db()
        assert not event.applied
    assert "bank_order_event_not_applied" not in caplog.text
    assert apply_bank_order_events() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("code", "amount", "applied", "told"),
    [
        (CONCURRENT_UPDATE_CODE, "92.00", False, 0),
        ("700.400.400", "92.00", True, 1),
    ],
)
def test_a_chargeback_that_does_not_fit_is_told_and_one_that_came_between_is_due_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, code: str, amount: str, applied: bool, told: int
) -> None:
    message = message_of()
    event = tell(order_of(shop, amount=amount), State.RETURNED, "AC04", message=message)

    def refuse(*_: Any, **__: Any) -> None:
        raise RequestRefusedError(code)

    monkeypatch.setattr(bank_order_outcomes.acquirer_reported, "record_acquirer_reported_follow_up", refuse)
    assert apply_bank_order_events() == applied
    event.refresh_from_db()
    message.refresh_from_db()
    assert event.applied is applied
    assert len(message.findings) == told
    assert all(code in words and "CB of 92.00 EUR" in words for words in message.findings)


@pytest.mark.django_db
@pytest.mark.parametrize(("amount", "told"), [("92.00", 0), ("92.01", 1)])
def test_a_chargeback_that_was_entered_before_is_not_entered_again_and_told_only_if_it_was_less(
    shop: Shop, amount: str, told: int
) -> None:
    message = message_of()
    order = order_of(shop, amount=amount)
    assert shop.api.follow(order.payment.hex, "CB", "92.00").status == 200
    event = tell(order, State.RETURNED, "AC04", message=message)
    assert apply_bank_order_events() == 1
    event.refresh_from_db()
    message.refresh_from_db()
    assert (event.applied, len(message.findings), len(follow_ups(order))) == (True, told, 1)


@pytest.mark.django_db
def test_a_finding_is_added_once_to_its_own_message_and_without_one_to_none(shop: Shop) -> None:
    message, other = message_of(), message_of()
    BankMessage.objects.filter(pk=other.pk).update(findings=["of another"])
    order = order_of(shop)
    event = tell(order, State.RETURNED, message=message)
    for words in ("first", "first", "second"):
        bank_order_outcomes._add_finding(event, words)
    bank_order_outcomes._add_finding(tell(order, State.RETURNED), "nowhere")
    found = [BankMessage.objects.get(pk=one.pk).findings for one in (message, other)]
    assert found == [[f"order {order.payment.hex}: {words}" for words in ("first", "second")], ["of another"]]


def test_the_newest_chargeback_that_no_reversal_takes_back_in_full_is_answered() -> None:
    debit, other = first("DB", number=1, merchant=Merchant()), first("DB", number=2)
    early = after(debit, "CB", "20.00", number=3)
    late = after(debit, "CB", "30.00", number=4)
    members = [debit, late, early]
    assert _find_unanswered(chain(*members), debit, "CB", "CR") == late
    part = after(late, "CR", "29.99", number=5)
    assert _find_unanswered(chain(*members, part), debit, "CB", "CR") == late
    rest = after(late, "CR", "0.01", number=6)
    assert _find_unanswered(chain(*members, part, rest), debit, "CB", "CR") == early
    declined = after(late, "CR", "0.01", number=6, status=Status.DECLINED)
    assert _find_unanswered(chain(*members, part, declined), debit, "CB", "CR") == late
    pending = after(debit, "CB", "1.00", number=7, status=Status.PENDING)
    elsewhere = after(other, "CB", "1.00", number=8)
    refund = after(debit, "RF", "1.00", number=9)
    assert _find_unanswered(chain(*members, other, pending, elsewhere, refund), debit, "CB", "CR") == late
    assert _find_unanswered(chain(debit, refund), debit, "CB", "CR") is None
    assert _find_unanswered(chain(*members, part), debit, "CR", "CB") == part


@pytest.mark.parametrize(
    ("kind", "amounts", "recorded"),
    [
        ("CB", (), False),
        ("CB", ("91.99",), False),
        ("CB", ("92.00",), True),
        ("CB", ("50.00", "42.00"), True),
        ("CR", (), False),
        ("CR", ("91.99",), False),
        ("CR", ("92.00",), True),
    ],
)
def test_a_chargeback_or_its_reversal_is_recorded_when_the_whole_amount_is(
    kind: str, amounts: tuple[str, ...], recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    debit = first("DB")
    target = debit if kind == "CB" else after(debit, "CB", "92.00")
    whole = chain(debit, target, *[after(target, kind, amount) for amount in amounts])
    monkeypatch.setattr(bank_order_outcomes, "load_chain", lambda *_: whole)
    target.merchant = Merchant()
    assert _is_recorded(kind, target, Decimal("92.00")) is recorded
