"""A bank's message and another mover of the same orders at the same moment, on two connections, stepped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection, transaction

from gateway.connectors.sepa import collection_finality, file_planning, mandates
from gateway.connectors.sepa.connector import SEPA
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import BankFile, BankMessage, BankOrder, BankOrderEvent, SepaMandate
from gateway.payments import bank_order_outcomes
from tests.support import sepa
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.sepa import Entry
from tests.support.threads import PATIENCE_S, InThread

pytestmark = pytest.mark.django_db(transaction=True)
State = BankOrder.State


class Message(threading.Thread):
    """A message that another connection takes in."""

    def __init__(self, xml: str) -> None:
        super().__init__(daemon=True)
        self.xml, self.row, self.fault = xml, BankMessage(), ""

    def run(self) -> None:
        try:
            self.row = sepa.take(self.xml)
        except Exception as fault:
            self.fault = repr(fault)
        finally:
            connection.close()

    def ended(self) -> BankMessage:
        self.join(PATIENCE_S)
        assert not self.is_alive()
        assert self.fault == ""
        return self.row


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def waiting_for_locks() -> int:
    """Connections to this database that wait for a lock now."""
    execute_sql("SELECT pg_stat_clear_snapshot()", {})
    (found,) = execute_sql(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", {}
    )
    return int(found[0])


def filed(shop: Shop, *amounts: str) -> tuple[list[str], BankFile]:
    """Collections that are with the bank, and by the days that passed could be counted as paid."""
    paid = [sepa.debit(shop.api, amount).id for amount in amounts]
    sepa.pass_to_file(shop.api)
    BankOrder.objects.update(final_at=clock.real_now() - timedelta(days=1))
    return paid, BankFile.objects.get()


def states() -> set[str]:
    return set(BankOrder.objects.values_list("state", flat=True))


RETURNED_BY = {
    "one order": lambda paid, file: sepa.notification([Entry(order=paid, into=False, reason="MD06")]),
    "its batch": lambda paid, file: sepa.status(
        file.message_id, batches={BankOrder.objects.get(pk=paid).batch: ("RJCT", "MD06")}
    ),
    "its file": lambda paid, file: sepa.status(file.message_id, group="RJCT", reason="MD06"),
}


@pytest.mark.parametrize("about", RETURNED_BY)
def test_a_message_that_waits_for_another_mover_is_judged_by_the_state_that_it_finds(
    banked: Shop, outbox: Path, about: str
) -> None:
    """The days count the collection as paid and have not committed yet, when the bank gives it back."""
    (paid,), file = filed(banked, "92.00")
    message = Message(RETURNED_BY[about](paid, file))
    with transaction.atomic():
        assert collection_finality.finalize_due_collections() == 1
        message.start()
        until(lambda: waiting_for_locks() == 1)
    row = message.ended()
    assert (row.orders_changed, row.findings) == (1, [])
    assert states() == {State.RETURNED}
    assert list(BankOrderEvent.objects.order_by("id").values_list("state", "reason")) == [
        (State.BOOKED, ""),
        (State.RETURNED, "MD06"),
    ]


def test_an_event_that_another_worker_has_applied_is_not_counted_again(banked: Shop, outbox: Path) -> None:
    filed(banked, "92.00")
    assert collection_finality.finalize_due_collections() == 1
    assert bank_order_outcomes.apply_bank_order_events() == 1
    read_before = BankOrderEvent.objects.select_related("order").get()
    assert not bank_order_outcomes._apply_event(read_before)


@pytest.mark.parametrize("committed", [True, False])
def test_an_id_that_two_mandates_are_given_at_once_is_given_to_one(banked: Shop, committed: bool) -> None:
    """The other request is refused by name, and no fault that recovery has to clear up."""
    for name in ("M-A", "M-B"):
        sepa.debit(banked.api, bankAccount__mandate__id=name)
    renamed = {"bankAccount__mandate__id": "M-C", "customParameters[SEPA_formerMandateId]": "M-B"}
    second = InThread(lambda: banked.api.pay(**{**sepa.JANE, "amount": "92.00", **renamed}))
    with transaction.atomic():
        assert mandates.amend_mandate(SepaMandate.objects.get(mandate="M-A"), reference="M-C")
        second.start()
        until(lambda: waiting_for_locks() == 1)
        transaction.set_rollback(not committed)
    answer = second.end()
    assert isinstance(answer, Answer), answer
    names = set(SepaMandate.objects.values_list("mandate", flat=True))
    if committed:
        why = answer.body["resultDetails"]["ExtendedDescription"]
        assert (answer.code, why) == ("800.100.205", "bankAccount.mandate.id: another mandate has that id")
        assert names == {"M-B", "M-C"}
    else:
        assert (answer.status, names) == (200, {"M-A", "M-C"})


@pytest.mark.parametrize("state", [one for one in BankFile.State if one != BankFile.State.DELIVERED])
def test_no_days_count_while_the_file_has_not_come_to_the_bank(banked: Shop, outbox: Path, state: str) -> None:
    """A bank that was told nothing rejects nothing."""
    filed(banked, "92.00")
    assert collection_finality.next_collection_finality(banked.merchant) is not None
    BankFile.objects.update(state=state)
    assert collection_finality.finalize_due_collections() == 0
    assert collection_finality.next_collection_finality(banked.merchant) is None
    assert states() == {State.FILED}


def test_days_that_wait_for_a_message_book_nothing_that_the_bank_gave_back(banked: Shop, outbox: Path) -> None:
    (paid,), _ = filed(banked, "92.00")
    finished: list[int] = []

    def finish() -> None:
        finished.append(collection_finality.finalize_due_collections())
        connection.close()

    days = threading.Thread(target=finish, daemon=True)
    with transaction.atomic():
        sepa.take(sepa.notification([Entry(order=paid, into=False, reason="AM04")]))
        days.start()
        until(lambda: waiting_for_locks() == 1)
    days.join(PATIENCE_S)
    assert (finished, states()) == ([0], {State.REJECTED})


def test_a_rejected_file_gives_back_what_was_counted_as_paid_before(banked: Shop, outbox: Path) -> None:
    paid, file = filed(banked, "1.00", "2.00")
    BankOrder.objects.filter(pk=paid[0]).update(final_at=None)
    assert collection_finality.finalize_due_collections() == 1
    assert sepa.take(sepa.status(file.message_id, group="RJCT", reason="AG01")).orders_changed == 2
    assert [BankOrder.objects.get(pk=one).state for one in paid] == [State.REJECTED, State.RETURNED]


def test_two_messages_that_name_the_same_orders_in_two_orders_do_not_lock_each_other_out(
    banked: Shop, outbox: Path
) -> None:
    paid, _ = filed(banked, "1.00", "2.00")
    entries = [Entry(order=one, amount=amount) for one, amount in zip(paid, ("1.00", "2.00"), strict=True)]
    there = Message(sepa.notification(entries))
    back = Message(sepa.statement([Entry(order=one.order, amount=one.amount) for one in reversed(entries)], number=2))
    with transaction.atomic():
        list(BankOrder.objects.select_for_update().order_by("pk"))
        for number, message in enumerate((there, back), 1):
            message.start()
            until(lambda number=number: waiting_for_locks() == number)  # type: ignore[misc]
    assert sorted([there.ended().orders_changed, back.ended().orders_changed]) == [0, 2]
    assert states() == {State.BOOKED}


def test_a_message_and_a_file_that_is_planned_do_not_lock_each_other_out(banked: Shop, outbox: Path) -> None:
    """Planning holds the orders that wait and asks for their mandates; the message has rejected the first collection of
    such a mandate, and then names an order that waits."""
    (first,), _ = filed(banked, "1.00")
    mandate = SepaMandate.objects.get()
    SepaMandate.objects.update(first_payment=UUID(first), recurring=True)
    second = sepa.debit(banked.api, "2.00").id
    BankOrder.objects.filter(pk=second).update(mandate=mandate)
    message = Message(
        sepa.notification(
            [Entry(order=first, amount="1.00", into=False, reason="AM04"), Entry(order=second, amount="2.00")]
        )
    )
    with transaction.atomic():
        BankOrder.objects.select_for_update().get(pk=second)
        message.start()
        until(lambda: waiting_for_locks() == 1)
        SepaMandate.objects.select_for_update(nowait=True).get(pk=mandate.pk)
    assert len(message.ended().findings) == 1
    assert SepaMandate.objects.get(pk=mandate.pk).first_payment is None


@pytest.fixture
def cancelling(shop: Shop, outbox: Path) -> Shop:
    sepa.account_at_bank(shop.channel, cancelBy="request", leadDays="10")
    return shop


def test_a_cancellation_that_is_asked_for_while_the_bank_books_comes_too_late(cancelling: Shop, outbox: Path) -> None:
    (paid,), _ = filed(cancelling, "92.00")
    answers: list[str] = []

    def reverse() -> None:
        answers.append(cancelling.api.follow(paid, "RV").code)
        connection.close()

    asking = threading.Thread(target=reverse, daemon=True)
    with transaction.atomic():
        sepa.take(sepa.statement([Entry(order=paid)]))
        asking.start()
        until(lambda: waiting_for_locks() == 1)
    asking.join(PATIENCE_S)
    assert (answers, states()) == (["700.300.700"], {State.BOOKED})


def test_a_booking_that_waits_for_the_file_of_the_request_decides_the_request(cancelling: Shop, outbox: Path) -> None:
    """Planning holds the request and its collection; the message comes after it, and finds the request filed."""
    (paid,), _ = filed(cancelling, "92.00")
    asked = cancelling.api.follow(paid, "RV").id
    message = Message(sepa.statement([Entry(order=paid)]))
    with transaction.atomic():
        assert file_planning.plan_due_bank_files(SEPA) == 1
        message.start()
        until(lambda: waiting_for_locks() == 1)
    assert (message.ended().orders_changed, message.row.findings) == (2, [])
    found = dict(BankOrder.objects.values_list("payment", "state"))
    assert found == {UUID(paid): State.BOOKED, UUID(asked): State.REJECTED}


def test_days_that_wait_for_a_request_do_not_count_its_collection_as_paid(cancelling: Shop, outbox: Path) -> None:
    (paid,), _ = filed(cancelling, "92.00")
    finished: list[int] = []

    def finish() -> None:
        finished.append(collection_finality.finalize_due_collections())
        connection.close()

    days = threading.Thread(target=finish, daemon=True)
    with transaction.atomic():
        assert cancelling.api.follow(paid, "RV").code == "800.400.500"
        BankOrder.objects.select_for_update().get(pk=paid)
        days.start()
        until(lambda: waiting_for_locks() == 1)
    days.join(PATIENCE_S)
    assert (finished, BankOrder.objects.get(pk=paid).state) == ([0], State.FILED)
