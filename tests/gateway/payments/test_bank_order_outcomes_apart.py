"""What a bank's word does beside its payment: whose events are looked at, how often, what is told, when it counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import (
    AcquirerExchange,
    BankOrder,
    BankOrderEvent,
    BankOrderFollowUp,
    Merchant,
    Notification,
    Payment,
    Status,
)
from gateway.payments import bank_order_outcomes, payment_archive
from gateway.payments.bank_order_outcomes import TIMER, apply_bank_order_events, find_next_bank_order_event
from gateway.payments.refusal import RequestRefusedError
from gateway.personal_data import payment_archiving
from tests.gateway.payments.test_bank_order_outcomes import (
    State,
    follow_ups,
    message_of,
    order_of,
    payment_of,
    tell,
)
from tests.support.chains import after, chain, first
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
NOW = datetime(2033, 11, 15, tzinfo=UTC)
AHEAD = timedelta(hours=9)


@pytest.fixture
def now(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> datetime:
    """The time by the clock of the merchant, who is ahead."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=AHEAD)
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    return NOW + AHEAD


def is_applied(event: BankOrderEvent) -> bool:
    return BankOrderEvent.objects.get(pk=event.pk).applied


# --- whose events, and how often -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "most", "applied"), [(2, 3, 3), (2, 4, 4), (4, 3, 3), (2, 5, 5), (3, 6, 6), (3, 9, 6), (6, 6, 6)]
)
def test_a_run_ends_at_its_bound_whatever_is_read_at_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, batch: int, most: int, applied: int
) -> None:
    """Six orders with one event each."""
    events = [tell(order_of(shop, status=Status.DECLINED), State.REJECTED) for _ in range(6)]
    monkeypatch.setattr(bank_order_outcomes, "BANK_ORDER_EVENT_BATCH_SIZE", batch)
    monkeypatch.setattr(bank_order_outcomes, "MAX_BANK_ORDER_EVENTS_PER_RUN", most)
    assert apply_bank_order_events() == applied
    assert [is_applied(event) for event in events] == [True] * applied + [False] * (6 - applied)


@pytest.mark.parametrize(("most", "applied"), [(3, 3), (4, 4), (5, 5), (6, 6)])
def test_the_rounds_of_a_run_have_one_bound_together(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, most: int, applied: int
) -> None:
    """Two orders with three events each, of which a round applies one each."""
    orders = [order_of(shop, status=Status.DECLINED) for _ in range(2)]
    for _ in range(3):
        for order in orders:
            tell(order, State.REJECTED)
    monkeypatch.setattr(bank_order_outcomes, "MAX_BANK_ORDER_EVENTS_PER_RUN", most)
    assert apply_bank_order_events() == applied
    assert BankOrderEvent.objects.filter(applied=True).count() == applied


@pytest.mark.parametrize("batch", [1, 2, 200])
def test_an_event_that_waits_is_looked_at_once_in_a_run(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Later rounds go on with the orders of the one before; a later event of its order waits for it."""
    waiting, other = order_of(shop, status=Status.STARTED), order_of(shop, status=Status.DECLINED)
    late = order_of(shop, status=Status.STARTED)
    held, behind = tell(waiting, State.BOOKED), tell(waiting, State.RETURNED)
    moved = [tell(other, State.REJECTED) for _ in range(3)]
    last = tell(late, State.BOOKED)
    looked: list[int] = []
    apply = bank_order_outcomes._apply_event

    def note(event: BankOrderEvent) -> bool:
        looked.append(event.pk)
        return apply(event)

    monkeypatch.setattr(bank_order_outcomes, "_apply_event", note)
    monkeypatch.setattr(bank_order_outcomes, "BANK_ORDER_EVENT_BATCH_SIZE", batch)
    assert apply_bank_order_events() == 3
    assert sorted(looked) == [held.pk, *(event.pk for event in moved), last.pk]
    assert not is_applied(behind)


def test_events_that_were_applied_are_passed_over(shop: Shop) -> None:
    order = order_of(shop, status=Status.PENDING)
    tell(order, State.REJECTED, applied=True)
    tell(order, State.BOOKED)
    assert apply_bank_order_events() == 1
    assert payment_of(order).status == Status.APPROVED


def test_an_event_that_another_worker_applied_is_not_counted(shop: Shop) -> None:
    order = order_of(shop)
    event, other = tell(order, State.BOOKED), tell(order, State.REJECTED)
    assert bank_order_outcomes._mark_applied(event) is True
    assert (is_applied(event), is_applied(other)) == (True, False)
    assert bank_order_outcomes._mark_applied(event) is False


def test_the_timer_is_due_while_any_event_waits(shop: Shop, now: datetime) -> None:
    def earliest() -> list[Any]:
        return [row[0] for row in execute_sql(TIMER.earliest_due, {})]

    assert (TIMER.run, TIMER.next_at) == (apply_bank_order_events, find_next_bank_order_event)
    order = order_of(shop)
    tell(order, State.BOOKED, applied=True)
    assert earliest() == []
    tell(order, State.BOOKED)
    assert len(earliest()) == 1
    assert find_next_bank_order_event(Merchant.objects.get(pk=shop.merchant.pk)) == now


# --- when it counts, and what is kept --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "state", "reason", "on", "sent"),
    [
        (Status.PENDING, State.BOOKED, "", date(2033, 11, 14), "2033-11-14"),
        (Status.PENDING, State.BOOKED, "", None, "by the books"),
        (Status.PENDING, State.REJECTED, "AM04", None, "by the books"),
        (Status.DECLINED, State.BOOKED, "", None, "by the books"),
    ],
)
def test_a_banks_word_counts_from_now_by_the_merchants_clock_with_its_day_if_it_gave_one(
    shop: Shop, now: datetime, status: Status, state: State, reason: str, on: date | None, sent: str
) -> None:
    order = order_of(shop, status=status)
    tell(order, state, reason, on=on)
    assert apply_bank_order_events() == 1
    [exchange] = AcquirerExchange.objects.filter(payment=order.payment, kind="bank")
    assert exchange.sent == {"booked": sent}
    assert exchange.received["order"] == state.lower()
    assert exchange.received.get("reason", "") == reason
    assert (exchange.at, payment_of(order).completed_at) == (now, now)


@pytest.mark.parametrize(("reason", "told"), [("AC04", "(AC04)"), ("", "(no reason told)")])
@pytest.mark.parametrize("kind", ["PAY", "REVERSE"])
def test_a_transfer_that_came_back_is_told_to_the_merchant_and_to_the_clerk(
    shop: Shop, now: datetime, kind: str, reason: str, told: str
) -> None:
    order, message = order_of(shop, kind=kind), message_of()
    Notification.objects.all().delete()
    event = tell(order, State.RETURNED, reason, message=message)
    assert apply_bank_order_events() == 1
    paid = payment_of(order)
    assert (paid.returned_at, paid.status, is_applied(event)) == (now, Status.APPROVED, True)
    assert [(one.payment_id, one.action) for one in Notification.objects.all()] == [(paid.pk, "UPDATED")]
    message.refresh_from_db()
    what = f"{paid.payment_type} 92.00 EUR to the shopper came back {told}"
    assert message.findings == [f"order {order.payment.hex}: {what}"]


def test_a_late_booking_is_known_to_the_schedules_run_in_the_same_transaction(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the run cannot be written, the payment stays declined, and the event is due again."""
    order = order_of(shop, status=Status.DECLINED)
    event = tell(order, State.BOOKED)
    told: list[tuple[Any, ...]] = []

    def record(payment: Payment, at: datetime) -> None:
        told.append((payment.pk, payment.status, at))
        if len(told) == 1:
            raise ValueError("the run is not to be had")

    monkeypatch.setattr(bank_order_outcomes.JOB_HOOKS, "get", lambda: SimpleNamespace(record_late_booking=record))
    assert apply_bank_order_events() == 0
    assert (payment_of(order).status, is_applied(event)) == (Status.DECLINED, False)
    assert apply_bank_order_events() == 1
    assert (payment_of(order).status, is_applied(event)) == (Status.APPROVED, True)
    assert told == [(order.payment, Status.APPROVED, now)] * 2


def test_an_event_of_an_archived_payment_brings_its_chain_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = payment_archive.MIN_PAYMENT_HOT_DAYS
    order, other = order_of(shop), shop.api.pay().id
    AcquirerExchange.objects.all().delete()
    BankOrder.objects.update(state=State.BOOKED)
    at = clock.real_now() + timedelta(days=settings.GATEWAY_PAYMENT_HOT_DAYS + 1)
    with monkeypatch.context() as patch:
        patch.setattr(payment_archiving.clock, "real_now", lambda: at)
        assert payment_archiving.archive_old_payments() == 2
    event = tell(order, State.RETURNED, "AC04")
    assert apply_bank_order_events() == 1
    assert [one.payment_type for one in follow_ups(order)] == ["CB"]
    assert is_applied(event)
    assert not Payment.objects.filter(pk=other).exists()


# --- chargebacks and their reversals ---------------------------------------------------------------------------------


def report(shop: Shop, target: str, kind: str, amount: str) -> str:
    """What a clerk or a settlement file enters."""
    answer = shop.api.follow(target, kind, amount)
    assert answer.status == 200, answer
    return answer.id


def test_a_return_that_was_entered_already_disputes_nothing_that_was_won_back_before(shop: Shop) -> None:
    """Charged back in part, won back, and charged back whole, all by clerks: the bank's return is that last one."""
    order, message = order_of(shop), message_of()
    paid = order.payment.hex
    won = report(shop, report(shop, paid, "CB", "50.00"), "CR", "50.00")
    report(shop, paid, "CB", "92.00")
    event = tell(order, State.RETURNED, "AC04", message=message)
    assert apply_bank_order_events() == 1
    assert [one.payment_type for one in follow_ups(order)] == ["CB", "CR", "CB"]
    assert not Payment.objects.filter(referenced=won).exists()
    message.refresh_from_db()
    assert (is_applied(event), message.findings) == (True, [])


def test_a_return_disputes_what_was_won_back_and_where_nothing_was_the_collection(shop: Shop) -> None:
    order, other = order_of(shop), order_of(shop)
    won = report(shop, report(shop, order.payment.hex, "CB", "92.00"), "CR", "92.00")
    for one in (order, other):
        tell(one, State.RETURNED, "AC04")
    assert apply_bank_order_events() == 2
    assert [one.referenced.hex for one in follow_ups(order)[2:] if one.referenced] == [won]
    assert [one.referenced for one in follow_ups(other)] == [other.payment]


def test_a_return_that_was_reversed_wins_back_the_chargeback_that_stands(shop: Shop) -> None:
    """Entered by a clerk; with none that stands nothing is entered."""
    order, other = order_of(shop), order_of(shop)
    dispute = report(shop, order.payment.hex, "CB", "92.00")
    events = [tell(one, State.WON_BACK) for one in (order, other)]
    assert apply_bank_order_events() == 2
    [_, made] = follow_ups(order)
    assert (made.payment_type, made.referenced and made.referenced.hex) == ("CR", dispute)
    assert "chargebackResultCode" not in made.request
    assert follow_ups(other) == []
    assert [is_applied(event) for event in events] == [True, True]


@pytest.mark.parametrize("of", ["its own", "another's", "nobody's"])
def test_a_follow_up_that_another_worker_wrote_is_written_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    """Any other row that is not taken is a fault: the event is told, and due again."""
    message = message_of()
    order = order_of(shop)
    event, other = tell(order, State.RETURNED, message=message), tell(order_of(shop), State.BOOKED, applied=True)
    if of != "nobody's":
        BankOrderFollowUp.objects.create(event=event if of == "its own" else other, payment=order.payment)

    def collide(*_: Any, **__: Any) -> None:
        raise IntegrityError("duplicate key")

    monkeypatch.setattr(bank_order_outcomes.acquirer_reported, "record_acquirer_reported_follow_up", collide)
    assert bank_order_outcomes._apply_events([event.pk]) == ([order.payment] if of == "its own" else [])
    message.refresh_from_db()
    words = (
        f"order {order.payment.hex}: returned could not be applied to its payment (IntegrityError): it is tried again"
    )
    assert message.findings == ([] if of == "its own" else [words])


@pytest.mark.parametrize(
    ("kind", "follow", "recorded"),
    [
        ("CB", lambda debit: [after(debit, "CB", "92.00")], True),
        # Of a chargeback only what its reversals did not win back was taken.
        ("CB", lambda debit: (lambda one: [one, after(one, "CR", "0.01")])(after(debit, "CB", "92.00")), False),
        ("CB", lambda debit: [after(debit, "CB", "92.00", status=Status.DECLINED)], False),
        ("CB", lambda debit: [after(debit, "RF", "92.00")], False),
        ("CB", lambda debit: [after(debit, "CB", "93.00")], True),
    ],
)
def test_what_stands_of_the_chargebacks_is_what_was_recorded(
    kind: str, follow: Callable[[Payment], list[Payment]], recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    debit = first("DB", merchant=Merchant())
    whole = chain(debit, *follow(debit))
    monkeypatch.setattr(bank_order_outcomes, "load_chain", lambda *_: whole)
    assert bank_order_outcomes._is_recorded(kind, debit, Decimal("92.00")) is recorded
    monkeypatch.setattr(bank_order_outcomes, "load_chain", lambda *_: None)
    assert bank_order_outcomes._is_recorded(kind, debit, Decimal("92.00")) is False


@pytest.mark.parametrize(
    ("kind", "state", "target", "words"),
    [
        ("CB", State.RETURNED, "order", "returned, but a CB of 92.00 EUR does not fit into our books (700.400.400)"),
        ("CR", State.WON_BACK, "dispute",
         "return reversed, but a CR of 92.00 EUR does not fit into our books (700.400.400)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_with_the_state_that_the_bank_gave(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, kind: str, state: State, target: str, words: str
) -> None:
    order, message = order_of(shop), message_of()
    if target == "dispute":
        report(shop, order.payment.hex, "CB", "92.00")
    event = tell(order, state, message=message)

    def refuse(*_: Any, **__: Any) -> None:
        raise RequestRefusedError("700.400.400")

    monkeypatch.setattr(bank_order_outcomes.acquirer_reported, "record_acquirer_reported_follow_up", refuse)
    assert apply_bank_order_events() == 1
    message.refresh_from_db()
    said = f"order {order.payment.hex}: {words}: the money may have been given back twice"
    assert (is_applied(event), message.findings) == (True, [said])


@pytest.mark.parametrize(("won", "answered"), [("49.99", False), ("50.00", True), ("50.01", True), ("60.00", True)])
def test_a_chargeback_is_answered_by_reversals_of_all_of_it_or_more(won: str, answered: bool) -> None:
    """More by the scheme's exchange rates."""
    debit = first("DB", number=1, merchant=Merchant())
    dispute = after(debit, "CB", "50.00", number=2)
    whole = chain(debit, dispute, after(dispute, "CR", won, number=3))
    found = bank_order_outcomes._find_unanswered(whole, debit, "CB", "CR")
    assert found is (None if answered else dispute)


# --- findings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2, 3])
def test_of_too_many_findings_the_oldest_go(shop: Shop, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(bank_order_outcomes, "MAX_MESSAGE_FINDINGS", most)
    message = message_of()
    event = tell(order_of(shop), State.RETURNED, message=message)
    for number in range(5):
        bank_order_outcomes._add_finding(event, f"{number}")
    message.refresh_from_db()
    assert [words[-1] for words in message.findings] == ["2", "3", "4"][-most:]


def test_the_word_of_a_failed_event_names_its_state_and_its_fault(shop: Shop) -> None:
    message = message_of()
    order = order_of(shop)
    event, other = (tell(order, state, message=message) for state in (State.WITHDRAWN, State.BOOKED))
    bank_order_outcomes._add_failure_finding(event.pk, KeyError("card"))
    message.refresh_from_db()
    what = "taken back could not be applied to its payment (KeyError): it is tried again"
    assert message.findings == [f"order {order.payment.hex}: {what}"]
    assert BankOrder.objects.get().state == State.FILED
    assert [is_applied(one) for one in (event, other)] == [False, False]
