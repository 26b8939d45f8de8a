"""In doubt: an acquirer that is silent, late, repeats itself or answers nonsense, and workers that die.

The stub acquirer is a real process and PostgreSQL is real; its books are compared with ours. Source: goals, R1, R3.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pgtrigger
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from config.web_worker import RequestThreadPool
from gateway import tasks
from gateway.connectors import routing
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
    VoidRefusedError,
)
from gateway.connectors.simulator.connector import SimulatorConnector
from gateway.connectors.stub.connector import STUB
from gateway.core import clock
from gateway.db import sessions
from gateway.models import AcquirerExchange, Notification, OpenPayment, Payment, PaymentEvent, Status
from gateway.payments import late_outcomes, outcomes, process, recovery, step_up, store
from gateway.payments.states import LifecycleEvent
from gateway.vault.sealing import VaultError
from tests.support import emptying
from tests.support.client import payment as fields
from tests.support.database import recover_at, until_somebody_waits_for_a_lock
from tests.support.fixtures import Shop
from tests.support.recovery import claim_after, recover_after
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

SILENT_CARD = "4000090003000000"
PENDING = "000.200.001"
REVERSED = "900.100.301"


@pytest.fixture
def shop(committed: Shop) -> Shop:
    """A merchant whose channel has an account at the stub acquirer."""
    account_at_stub(committed.channel)
    return committed


def pay(shop: Shop, behaviour: str = "", **more: str) -> Payment:
    steering = {"customParameters[STUB_behaviour]": behaviour} if behaviour else {}
    answer = shop.api.pay(testMode="EXTERNAL", **steering, **more)
    return Payment.objects.get(pk=answer.id)


def recover(after_s: float = 2.0) -> recovery.RecoverySummary:
    """A tick ``after_s`` from now."""
    return recover_after(after_s)


def kinds(payment: Payment) -> list[str]:
    return list(AcquirerExchange.objects.filter(payment=payment.pk).order_by("id").values_list("kind", flat=True))


def events(payment: Payment) -> list[str]:
    return list(PaymentEvent.objects.filter(payment=payment.pk).order_by("sequence").values_list("event", flat=True))


def agree(acquirer: StubProcess) -> None:
    """What we call approved the acquirer has booked, with the same amount; what we call declined moved nothing."""
    booked = acquirer.control.transactions()
    ours = {payment.id.hex: payment for payment in Payment.objects.all()}
    assert not [row for row in ours.values() if row.status not in (Status.APPROVED, Status.DECLINED)]
    assert {key: payment.approved_amount for key, payment in ours.items() if payment.status == Status.APPROVED} == {
        key: Decimal(row["approved"]) for key, row in booked.items() if row["outcome"] == "approved"
    }


ACCEPTED = ("silent_after", "disconnect_after", "nonsense", "late")
NEVER_ARRIVED = ("silent_before", "disconnect_before", "held")


@pytest.mark.parametrize("behaviour", ACCEPTED)
def test_what_the_acquirer_accepted_in_silence_becomes_approved(
    shop: Shop, acquirer: StubProcess, behaviour: str
) -> None:
    """R1: the acquirer times out after accepting, or answers late."""
    acquirer.control.steer(late_ms=2_000)
    payment = pay(shop, behaviour)
    assert (payment.status, payment.result_code) == (Status.IN_DOUBT, PENDING)
    assert recover_at(payment) is not None
    OpenPayment.objects.update(recover_at=clock.real_now() + timedelta(seconds=60))
    assert recover(after_s=20).claimed == 0
    assert recover(after_s=40) == recovery.RecoverySummary(claimed=1, settled=1)
    payment.refresh_from_db()
    assert (payment.status, payment.result_code, recover_at(payment)) == (Status.APPROVED, "000.100.112", None)
    assert payment.connector_tx_id
    assert payment.answer["cvv"] == "M"
    assert (kinds(payment), events(payment)) == (["submit", "inquire"], ["begin", "lose", "approve"])
    agree(acquirer)
    assert shop.api.follow(payment.id.hex, "RF", "92.00").code == "000.100.112"


@pytest.mark.parametrize("behaviour", NEVER_ARRIVED)
def test_what_never_arrived_is_taken_back_and_declined_on_the_acquirers_word(
    shop: Shop, acquirer: StubProcess, behaviour: str
) -> None:
    """R1: the acquirer times out before accepting; R3: nothing declined without evidence."""
    acquirer.control.steer(late_ms=2_000)
    payment = pay(shop, behaviour)
    assert payment.status == Status.IN_DOUBT
    assert recover() == recovery.RecoverySummary(claimed=1, settled=1)
    payment.refresh_from_db()
    assert (payment.status, payment.result_code, recover_at(payment)) == (Status.DECLINED, REVERSED, None)
    assert kinds(payment) == ["submit", "inquire", "void"]
    word = AcquirerExchange.objects.get(payment=payment.pk, kind="void")
    assert (word.sent["key"], word.received["outcome"]) == (payment.id.hex, "voided")
    if behaviour == "held":
        acquirer.wait_for(key=payment.id.hex, outcome="tombstoned")
    agree(acquirer)


class _LateVoid(SimulatorConnector):
    """An acquirer that gets the question after it said that it never came, and says nothing to the first void."""

    name = "latevoid"

    def __init__(self) -> None:
        self.heard: list[str] = []

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        raise OutcomeUnknownError("nothing came back", {"key": request.payment.hex})

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        self.heard.append("inquire")
        if "void" not in self.heard:
            return NotFoundAtAcquirer(sent={"kind": "inquire"}, received={"outcome": "unknown"})
        sent, received = {"kind": "inquire"}, {"outcome": "approved"}
        return AcquirerReply(code="000.100.112", approved=request.money, sent=sent, received=received)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        self.heard.append("void")
        if self.heard.count("void") == 1:
            raise OutcomeUnknownError("the void is under way", {"kind": "void"})
        return AcquirerReply(code=REVERSED, sent={"kind": "void"}, received={"outcome": "voided"})


def test_a_void_without_an_answer_is_carried_through_whatever_an_inquiry_says_meanwhile(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: the void may still arrive after an approval, so the approval cannot be the last word."""
    slow = _LateVoid()
    monkeypatch.setattr(routing, "SIMULATOR", slow)
    monkeypatch.setattr(recovery, "CONNECTORS", {slow.name: slow})
    payment = Payment.objects.get(pk=shop.api.pay(testMode="INTERNAL").id)
    assert payment.connector == slow.name
    assert recover().settled == 0
    assert OpenPayment.objects.get(pk=payment.pk).void_attempted
    assert recover(60).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code, payment.approved_amount) == (Status.DECLINED, REVERSED, None)
    assert slow.heard == ["inquire", "void", "inquire", "void"]


def test_a_decline_in_silence_becomes_that_decline(shop: Shop, acquirer: StubProcess) -> None:
    """R3."""
    payment = pay(shop, "silent_after", card__number="4000015500000005")
    recover()
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, "800.100.155")
    agree(acquirer)


def test_a_follow_up_in_doubt_is_asked_about_like_a_first_payment(shop: Shop, acquirer: StubProcess) -> None:
    """R1; decisions, section 4."""
    pa = pay(shop, paymentType="PA")
    acquirer.control.steer(silent_after=1, next=1)
    capture = shop.api.follow(pa.id.hex, "CP", "50.00")
    assert (capture.status, capture.code) == (200, PENDING)
    assert shop.api.follow(pa.id.hex, "CP", "50.00").code == "700.400.100"
    recover()
    read = shop.api.read(capture.id)
    assert (read.status, read.code) == (200, "000.100.112")
    agree(acquirer)


def test_a_merchant_is_told_first_of_the_doubt_and_then_of_the_answer(shop: Shop, acquirer: StubProcess) -> None:
    """Decisions, section 6."""
    payment = pay(shop, "silent_after")
    recover()
    told = Notification.objects.filter(payment=payment.pk).order_by("sequence").values_list("action", "sequence")
    assert list(told) == [("CREATED", 2), ("UPDATED", 3)]


def test_an_acquirer_that_repeats_itself_books_once(shop: Shop, acquirer: StubProcess) -> None:
    """R1: answers twice."""
    payments = [pay(shop, "duplicate") for _ in range(3)]
    assert [payment.status for payment in payments] == [Status.APPROVED] * 3
    assert len(acquirer.entries(kind="submit", outcome="duplicate")) == 3
    agree(acquirer)


def test_without_contact_it_is_asked_again_ever_more_rarely_and_never_declined(
    shop: Shop, acquirer: StubProcess
) -> None:
    """R3: nothing declined without evidence."""
    payment = pay(shop, "silent_after")
    acquirer.kill()
    for inquiry in range(1, 10):
        asked = clock.real_now()
        assert recover(after_s=100) == recovery.RecoverySummary(claimed=1, settled=0)
        payment.refresh_from_db()
        assert (payment.status, OpenPayment.objects.get(pk=payment.pk).inquiries) == (Status.IN_DOUBT, inquiry)
        due = recover_at(payment)
        assert due is not None
        assert due >= asked + recovery.get_inquiry_backoff(inquiry)
    assert recovery.get_inquiry_backoff(1) == timedelta(seconds=1)
    assert recovery.get_inquiry_backoff(1_000) < timedelta(seconds=60)
    assert kinds(payment) == ["submit"] + ["inquire"] * 9
    acquirer.start()
    assert recover(after_s=100).settled == 1
    payment.refresh_from_db()
    assert payment.status == Status.APPROVED
    agree(acquirer)


def test_an_acquirer_silent_to_inquiries_too_is_no_evidence(shop: Shop, acquirer: StubProcess) -> None:
    """R3. Lost questions about a payment that never arrived, then a lost word for its void."""
    payment = pay(shop, "silent_before")
    for lost in ("inquire", "void"):
        acquirer.control.steer(disconnect_after=1, kinds=[lost])
        assert recover(after_s=100).settled == 0
        payment.refresh_from_db()
        assert payment.status == Status.IN_DOUBT
    acquirer.control.steer()
    assert recover(after_s=100).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, REVERSED)
    assert kinds(payment) == ["submit", "inquire", "inquire", "void", "inquire"]
    agree(acquirer)


def begun(shop: Shop) -> Payment:
    """A payment whose worker died before it asked, or before it wrote the answer: STARTED and nothing else."""
    donor = pay(shop)
    donor.status = Status.STARTED
    OpenPayment.objects.create(payment=donor, recover_at=clock.real_now() + store.get_recovery_delay())
    changes: dict[str, Any] = {
        "status": Status.STARTED,
        "result_code": "",
        "approved_amount": None,
        "connector_tx_id": "",
        "sequence": 1,
        "answer": {},
        "completed_at": None,
    }
    [(_, only_moved)] = pgtrigger.registered("gateway.PaymentEvent:only_moved")
    with connection.cursor() as cursor:
        # That one alone: tests empty tables between them, and the trigger against it is off (tests/conftest.py).
        only_moved.disable(PaymentEvent)
        for table in ("paymentevent", "notification"):
            cursor.execute(f"DELETE FROM gateway_{table} WHERE payment_id = %s AND sequence > 1", [donor.pk])
        only_moved.enable(PaymentEvent)
        cursor.execute("DELETE FROM gateway_acquirerexchange WHERE payment_id = %s", [donor.pk])
    Payment.objects.filter(pk=donor.pk).update(**changes)
    donor.refresh_from_db()
    return donor


def test_a_worker_killed_after_the_acquirer_accepted_loses_nothing(shop: Shop, acquirer: StubProcess) -> None:
    """R1: kill -9 of web."""
    payment = begun(shop)
    assert recover(after_s=1).claimed == 0
    assert recover(after_s=10).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.APPROVED, "000.100.112")
    assert (kinds(payment), events(payment)) == (["inquire"], ["begin", "lose", "approve"])
    agree(acquirer)


def test_a_started_payment_is_in_doubt_before_it_is_asked_about_and_its_claim_holds(
    shop: Shop, acquirer: StubProcess
) -> None:
    """R3. Asking may take a while: the row says IN_DOUBT meanwhile, and no other tick takes it."""
    payment = begun(shop)
    (claimed,) = claim_after(12)
    assert late_outcomes.mark_outcome_unknown(claimed)
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.IN_DOUBT, PENDING)
    due = recover_at(payment)
    assert due is not None
    assert due > clock.real_now()
    assert recovery.claim_due_inquiries(10) == []


def test_a_worker_killed_before_it_asked_leaves_a_decline_with_evidence(shop: Shop, acquirer: StubProcess) -> None:
    """R1: kill -9 of web."""
    payment = begun(shop)
    acquirer.kill()
    acquirer.log.unlink()  # an acquirer that never heard of it
    acquirer.start()
    assert recover(after_s=10).settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.DECLINED, REVERSED)
    assert kinds(payment) == ["inquire", "void"]
    agree(acquirer)


def test_every_started_payment_says_when_it_is_looked_after_and_a_final_one_does_not(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R3."""
    seen: list[Payment] = []

    class Looking(SimulatorConnector):
        """Looks at the row while the acquirer thinks."""

        def submit(self, request: AcquirerRequest) -> AcquirerReply:
            assert not connection.in_atomic_block
            seen.append(Payment.objects.select_related("open").get(pk=request.payment))
            return super().submit(request)

    monkeypatch.setattr(routing, "SIMULATOR", Looking())
    before = clock.real_now()
    answer = shop.api.pay()
    assert answer.status == 200
    row = seen[0]
    assert row.status == Status.STARTED
    assert row.open.recover_at > before + timedelta(seconds=0.5)
    assert recover_at(Payment.objects.get(pk=answer.id)) is None


def test_the_silent_card_of_the_simulator_ends_the_same_way(shop: Shop) -> None:
    """Decisions, section 5; R3."""
    answer = shop.api.pay(card__number=SILENT_CARD)
    assert (answer.status, answer.code) == (200, PENDING)
    assert recover().settled == 1
    read = shop.api.read(answer.id)
    assert (read.status, read.code) == (400, REVERSED)
    assert kinds(Payment.objects.get()) == ["submit", "inquire", "void"]


def test_an_acquirer_killed_while_payments_run_loses_and_doubles_nothing(shop: Shop, acquirer: StubProcess) -> None:
    """R1: kill -9 of the acquirer between and during payments."""
    acquirer.control.steer(delay_ms=20)
    gate, begun = threading.Event(), itertools.count()

    def pay_many() -> None:
        try:
            for _ in range(12):
                # Four of them have no answer yet: the others were approved, whatever a breaker says to those after.
                if next(begun) == 20:
                    gate.set()
                pay(shop)
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=4) as pool:
        workers = [pool.submit(pay_many) for _ in range(4)]
        gate.wait(60)
        acquirer.kill()
        acquirer.start()
        for worker in workers:
            worker.result(60)
    while recover(after_s=100).claimed:
        pass
    assert Payment.objects.count() == 48
    assert Payment.objects.filter(status=Status.APPROVED).count() > 10
    agree(acquirer)


def test_two_ticks_at_once_ask_once(shop: Shop, acquirer: StubProcess) -> None:
    """R3. Each on a connection of its own; a row that one of them holds is skipped."""
    payments = [pay(shop, "silent_after") for _ in range(4)]
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=60):
        acquirer.control.steer(delay_ms=500)
        done = at_once(recover, recover, recover)
    assert sum(tick.claimed for tick in done) == len(payments)
    assert sum(tick.settled for tick in done) == len(payments)
    assert len(acquirer.entries(kind="inquire")) == len(payments)
    agree(acquirer)


def test_a_payment_that_fails_as_it_is_claimed_stops_no_other(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers about the others are recorded, and it is due again once its lease has run out."""
    failing, other = pay(shop, "silent_after"), pay(shop, "silent_after")
    looked_at = step_up.has_unfinished_challenge

    def fail_for_one(payment: Payment) -> bool:
        if payment.pk == failing.pk:
            raise RuntimeError
        return looked_at(payment)

    with monkeypatch.context() as fault:
        fault.setattr(step_up, "has_unfinished_challenge", fail_for_one)
        assert recover(after_s=60) == recovery.RecoverySummary(claimed=2, settled=1)
    other.refresh_from_db()
    assert other.status == Status.APPROVED
    assert recover(after_s=60).settled == 1
    agree(acquirer)


@pytest.mark.parametrize(
    ("where", "fault", "asked"), [("build_inquiry", VaultError("shut"), 1), ("record_outcome", RuntimeError(), 2)]
)
def test_a_payment_that_cannot_be_asked_about_or_recorded_stops_no_other(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch, where: str, fault: Exception, asked: int
) -> None:
    """It stays in doubt, and is due again once its lease has run out: the vault's key may be back by then."""
    failing, other = pay(shop, "silent_after"), pay(shop, "silent_after")
    real = getattr(recovery, where)

    def fail_for_one(payment: Payment, *more: Any) -> Any:
        if payment.pk == failing.pk:
            raise fault
        return real(payment, *more)

    with monkeypatch.context() as patched:
        patched.setattr(recovery, where, fail_for_one)
        assert recover(after_s=60) == recovery.RecoverySummary(claimed=2, settled=1)
    assert len(acquirer.entries(kind="inquire")) == asked
    failing.refresh_from_db()
    other.refresh_from_db()
    assert (failing.status, other.status) == (Status.IN_DOUBT, Status.APPROVED)
    assert recover(after_s=60).settled == 1
    agree(acquirer)


def test_a_tick_that_died_leaves_its_claim_to_the_next(shop: Shop, acquirer: StubProcess) -> None:
    """R1: kill -9 of the worker."""
    payment = pay(shop, "silent_after")
    assert [row.pk for row in claim_after(2)] == [payment.pk]
    assert recovery.claim_due_inquiries(10) == []
    assert recover(after_s=30).settled == 1
    agree(acquirer)


def test_an_answer_that_comes_while_recovery_asks_is_taken_and_one_after_it_changes_nothing(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: a worker that was only slow. What it heard is kept as evidence either way."""
    asked: list[bool] = []

    class Slow:
        """Recovery runs while the answer is on its way."""

        name, operations, required = STUB.name, STUB.operations, STUB.required

        settings, asks_with_means = STUB.settings, STUB.asks_with_means
        whole = False

        def submit(self, request: AcquirerRequest) -> AcquirerReply:
            reply = STUB.submit(request)
            payment = Payment.objects.select_related("merchant").get(pk=request.payment)
            if self.whole:
                asked.append(recover(after_s=60).settled == 1)
            else:
                asked.append(late_outcomes.mark_outcome_unknown(payment))
            return reply

    slow = Slow()
    monkeypatch.setattr(process, "route_payment", lambda *args, **names: routing.Route(connector=slow))  # type: ignore[arg-type]
    first = shop.api.pay(testMode="EXTERNAL")
    slow.whole = True
    second = shop.api.pay(testMode="EXTERNAL")
    assert asked == [True, True]
    assert (first.code, second.code) == ("000.100.112", "000.100.112")
    assert events(Payment.objects.get(pk=first.id)) == ["begin", "lose", "approve"]
    assert kinds(Payment.objects.get(pk=second.id)) == ["inquire", "submit"]
    agree(acquirer)


@pytest.mark.parametrize("keyed", [False, True])
def test_an_approval_that_comes_after_recovery_began_to_take_it_back_changes_nothing(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch, keyed: bool
) -> None:
    """R1: the void is on its way, and would undo what we say now. With an idempotency key the answer was made before it
    was written, and is not told."""

    class Slow:
        name, operations, required = STUB.name, STUB.operations, STUB.required
        settings, asks_with_means = STUB.settings, STUB.asks_with_means

        def submit(self, request: AcquirerRequest) -> AcquirerReply:
            reply = STUB.submit(request)
            late_outcomes.mark_outcome_unknown(
                Payment.objects.select_related("merchant", "open").get(pk=request.payment)
            )
            OpenPayment.objects.update(void_attempted=True)
            return reply

    monkeypatch.setattr(process, "route_payment", lambda *args, **names: routing.Route(connector=Slow()))  # type: ignore[arg-type]
    key = {"Idempotency_Key": "a-slow-one"} if keyed else {}
    answer = shop.api.post("/v1/payments", fields(testMode="EXTERNAL"), **key)
    payment = Payment.objects.get(pk=answer.id)
    assert (answer.code, payment.status) == ("000.200.001", Status.IN_DOUBT)
    assert kinds(payment) == ["submit"]
    assert recover(after_s=60).settled == 1
    payment.refresh_from_db()
    assert payment.status == Status.DECLINED
    if keyed:
        again = shop.api.post("/v1/payments", fields(testMode="EXTERNAL"), **key)
        assert (again.code, again.id) == (payment.result_code, answer.id)
    agree(acquirer)


def test_no_transaction_is_open_while_the_acquirer_thinks(shop: Shop, acquirer: StubProcess) -> None:
    """House rule 3; goals, P4."""
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=60), ThreadPoolExecutor(max_workers=1) as pool:
        acquirer.control.steer(delay_ms=4_000)

        def run() -> Payment:
            try:
                return pay(shop)
            finally:
                connection.close()

        paying = pool.submit(run)
        acquirer.wait_for(kind="submit")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT state, query FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND application_name <> %s",
                [emptying.NAME],
            )
            others = cursor.fetchall()
        assert not paying.done()
        assert others
        assert {state for state, _ in others} == {"idle"}
        assert paying.result().status == Status.APPROVED


def test_payments_that_wait_for_their_acquirer_need_no_session_each(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 0161; goals, P5: as in a web process, whose threads share their sessions."""

    def count_sessions() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            return int(cursor.fetchone()[0])

    monkeypatch.setattr(sessions, "_pools", {})
    pool = RequestThreadPool(12, 2)
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=60), pool:
        pay(shop)
        before = count_sessions()
        acquirer.control.steer(delay_ms=8_000)

        def run() -> Payment:
            try:
                return pay(shop)
            finally:
                sessions.end_request()

        paying = [pool.submit(run) for _ in range(12)]
        until = time.monotonic() + 60
        while len(acquirer.entries(kind="submit")) < 13:
            assert time.monotonic() < until
            time.sleep(0.02)
        waiting = count_sessions() - before
        assert [one.exception() for one in paying if one.done()] == []
        assert Payment.objects.filter(status=Status.STARTED).count() == 12
        assert 1 <= waiting <= 2
        assert {one.result().status for one in paying} == {Status.APPROVED}
    for one in sessions._pools.values():
        one.close_idle()
        assert one.open == 0


def test_a_payment_whose_connector_is_gone_stays_in_doubt(shop: Shop, acquirer: StubProcess) -> None:
    """R3: nothing declined without evidence."""
    payment = pay(shop, "silent_after")
    Payment.objects.filter(pk=payment.pk).update(connector="gone")
    assert recover() == recovery.RecoverySummary(claimed=1, settled=0)
    payment.refresh_from_db()
    assert payment.status == Status.IN_DOUBT
    assert recover_at(payment) is not None


def test_the_command_and_the_celery_tick_do_the_same_without_a_broker(shop: Shop, acquirer: StubProcess) -> None:
    """House rule 6: the database is the schedule."""
    now = clock.real_now()
    for run in (lambda: tasks.run_timer("recovery"), lambda: call_command("tick")):
        payment = pay(shop, "silent_after")
        OpenPayment.objects.filter(pk=payment.pk).update(recover_at=now)
        run()
        payment.refresh_from_db()
        assert payment.status == Status.APPROVED


def test_silence_of_both_kinds_is_told_apart_from_an_answer(shop: Shop) -> None:
    """An exchange of an inquiry without an answer says so."""

    class Deaf:
        name, operations, required = "deaf", STUB.operations, STUB.required
        settings, asks_with_means = STUB.settings, STUB.asks_with_means

        def submit(self, request: AcquirerRequest) -> AcquirerReply:
            raise AssertionError("not asked")

        def inquire(self, request: AcquirerRequest) -> AcquirerReply:
            raise OutcomeUnknownError("no line", {"key": request.payment.hex})

        def void(self, request: AcquirerRequest) -> AcquirerReply:
            raise AssertionError("nothing is taken back before it is known not to have arrived")

    payment = Payment.objects.get(pk=shop.api.pay().id)
    finding = recovery.resolve_outcome(Deaf(), recovery.build_inquiry(payment, Deaf()), payment)
    assert finding.reply is None
    assert [(row.kind, row.received) for row in finding.exchanges] == [("inquire", {"silence": "no line"})]
    assert outcomes.resolve_event(AcquirerReply(code=REVERSED)) is LifecycleEvent.DECLINE


class _Hole(SimulatorConnector):
    """An acquirer that says nothing until somebody lets go of it."""

    name = "hole"

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def inquire(self, request: AcquirerRequest) -> AcquirerReply:
        if not self.let_go.wait(60):
            raise AssertionError("the payment of the other acquirer had to wait for this one")
        raise OutcomeUnknownError("nothing was said", {"transaction": request.payment.hex})


class _Alive(SimulatorConnector):
    """An acquirer that answers inquiries, and lets go of the other one then."""

    name = "alive"

    def __init__(self, hole: _Hole) -> None:
        self.hole = hole

    def inquire(self, request: AcquirerRequest) -> AcquirerReply:
        self.hole.let_go.set()
        return AcquirerReply(code="800.100.155", sent={"asked": True}, received={"said": "no"})


def test_an_acquirer_that_says_nothing_keeps_no_other_acquirers_payments_waiting(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R3: one tick, more payments due at the silent acquirer than are asked about at once, and one at another."""
    hole = _Hole()
    alive = _Alive(hole)
    monkeypatch.setattr(recovery, "CONNECTORS", {"hole": hole, "alive": alive})
    monkeypatch.setattr(recovery, "RECOVERY_BATCH_SIZE", 4)
    monkeypatch.setattr(recovery, "INQUIRY_POLL_S", 0.01)
    paid = [Payment.objects.get(pk=committed.api.pay().id) for _ in range(6)]
    due = clock.real_now() - timedelta(minutes=1)
    for number, payment in enumerate(paid):
        connector = "alive" if number == 5 else "hole"
        Payment.objects.filter(pk=payment.pk).update(
            status=Status.IN_DOUBT, result_code=PENDING, connector=connector, approved_amount=None
        )
        OpenPayment.objects.create(payment=payment, recover_at=due + timedelta(seconds=number), inquiries=0)
    done = recovery.recover_due_payments()
    assert done.settled == 1
    assert Payment.objects.get(pk=paid[5].pk).status == Status.DECLINED
    assert set(Payment.objects.filter(connector="hole").values_list("status", flat=True)) == {Status.IN_DOUBT}


class _HalfDeaf(_Hole):
    """One processor, at which one account says nothing until the other one's payment was asked about."""

    def inquire(self, request: AcquirerRequest) -> AcquirerReply:
        if request.account.merchant == "silent":
            return super().inquire(request)
        self.let_go.set()
        return AcquirerReply(code="800.100.155", sent={"asked": True}, received={"said": "no"})


def test_a_silent_account_keeps_no_other_account_of_its_processor_waiting(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R3: the limit is each account's, as that of payments is."""
    monkeypatch.setattr(recovery, "CONNECTORS", {"hole": _HalfDeaf()})
    monkeypatch.setattr(recovery, "RECOVERY_BATCH_SIZE", 4)
    monkeypatch.setattr(recovery, "INQUIRY_POLL_S", 0.01)
    paid = [Payment.objects.get(pk=committed.api.pay().id) for _ in range(6)]
    due = clock.real_now() - timedelta(minutes=1)
    for number, payment in enumerate(paid):
        Payment.objects.filter(pk=payment.pk).update(
            status=Status.IN_DOUBT,
            result_code=PENDING,
            connector="hole",
            approved_amount=None,
            acquirer_merchant_id="alive" if number == 5 else "silent",
        )
        OpenPayment.objects.create(payment=payment, recover_at=due + timedelta(seconds=number), inquiries=0)
    assert recovery.recover_due_payments().settled == 1
    assert Payment.objects.get(pk=paid[5].pk).status == Status.DECLINED


def test_however_many_acquirers_are_silent_the_others_are_asked(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R3: three silent processors have more due, and for longer, than is asked at once; then one that answers."""
    hole = _Hole()
    silent = ("hole", "pit", "gap")
    monkeypatch.setattr(recovery, "CONNECTORS", {**dict.fromkeys(silent, hole), "alive": _Alive(hole)})
    monkeypatch.setattr(recovery, "RECOVERY_BATCH_SIZE", 4)
    monkeypatch.setattr(recovery, "MAX_OPEN_INQUIRIES", 8)
    monkeypatch.setattr(recovery, "INQUIRY_POLL_S", 0.01)
    paid = [Payment.objects.get(pk=committed.api.pay().id) for _ in range(13)]
    due = clock.real_now() - timedelta(minutes=1)
    for number, payment in enumerate(paid):
        Payment.objects.filter(pk=payment.pk).update(
            status=Status.IN_DOUBT, result_code=PENDING, connector=[*silent, "alive"][number // 4], approved_amount=None
        )
        OpenPayment.objects.create(payment=payment, recover_at=due + timedelta(seconds=number), inquiries=0)
    assert recovery.recover_due_payments().settled == 1
    assert Payment.objects.get(pk=paid[12].pk).status == Status.DECLINED


class _Between(SimulatorConnector):
    """Asked, it never got the question; by the time of the void somebody else has done something."""

    name = "between"

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile
        self.heard: list[str] = []

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        self.heard.append("inquire")
        if self.heard == ["inquire"]:
            self.meanwhile()
            return NotFoundAtAcquirer(sent={"asked": True})
        return AcquirerReply(code="000.100.110", approved=request.money, sent={"asked": True})

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        self.heard.append("void")
        raise VoidRefusedError("what was given back is not taken again", {"void": True})


def _lost(shop: Shop, connector: str) -> Payment:
    """A payment that is in doubt since its worker died, and due."""
    payment = Payment.objects.get(pk=shop.api.pay().id)
    Payment.objects.filter(pk=payment.pk).update(
        status=Status.IN_DOUBT, result_code=PENDING, connector=connector, approved_amount=None, completed_at=None
    )
    OpenPayment.objects.create(payment=payment, recover_at=clock.real_now(), inquiries=0)
    payment.refresh_from_db()
    return payment


def test_what_came_between_the_inquiry_and_a_void_that_is_refused_stands(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R3: a stalled reversal that is carried out after all, where reversals are not undone; not in doubt for ever."""
    between = _Between(lambda: None)
    monkeypatch.setattr(recovery, "CONNECTORS", {"between": between})
    payment = _lost(shop, "between")
    assert recover().settled == 1
    payment.refresh_from_db()
    assert (payment.status, payment.result_code) == (Status.APPROVED, "000.100.110")
    assert between.heard == kinds(payment)[-3:] == ["inquire", "void", "inquire"]


def test_nothing_is_taken_back_of_a_payment_that_got_its_answer_meanwhile(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: its worker was only slow, and its merchant has been told that it is approved."""

    def answered() -> None:
        late = Payment.objects.select_related("merchant").get(pk=payment.pk)
        reply = AcquirerReply(code="000.100.110", approved=late.money)
        store.complete_payment(late, outcomes.Approved(reply=reply, at=clock.real_now(), duration_ms=1))

    between = _Between(answered)
    monkeypatch.setattr(recovery, "CONNECTORS", {"between": between})
    payment = _lost(shop, "between")
    assert recover().settled == 0
    payment.refresh_from_db()
    assert (payment.status, between.heard) == (Status.APPROVED, ["inquire"])


def test_a_slow_worker_and_recoverys_mark_do_not_pass_each_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1: recovery begins to take back between the worker's look and its write; the mark waits, and finds an answer."""
    marked: list[bool] = []
    written = threading.Event()
    complete = store.complete_payment

    class Slow(SimulatorConnector):
        def submit(self, request: AcquirerRequest) -> AcquirerReply:
            late_outcomes.mark_outcome_unknown(
                Payment.objects.select_related("merchant", "open").get(pk=request.payment)
            )
            return super().submit(request)

    def mark(ident: UUID) -> None:
        marked.append(recovery._mark_void_attempted(Payment.objects.select_related("open").get(pk=ident)))
        connection.close()

    def completing(payment: Payment, outcome: outcomes.PaymentOutcome, **names: Any) -> None:
        if connection.in_atomic_block and not written.is_set():
            written.set()
            marking.append(pool.submit(mark, payment.pk))
            until_somebody_waits_for_a_lock()
        complete(payment, outcome, **names)

    marking: list[Future[None]] = []
    monkeypatch.setattr(routing, "SIMULATOR", Slow())
    monkeypatch.setattr(store, "complete_payment", completing)
    with ThreadPoolExecutor(1) as pool:
        answer = shop.api.pay()
        marking[0].result(60)
    assert (answer.code, marked) == ("000.100.110", [False])


def test_every_question_to_the_acquirer_has_its_own_time(shop: Shop, acquirer: StubProcess) -> None:
    """R3: an inquiry comes before the reversal that follows from it."""
    payment = pay(shop, "silent_before")
    assert recover().settled == 1
    times = list(AcquirerExchange.objects.filter(payment=payment.pk).order_by("id").values_list("at", flat=True))
    assert len(times) == 3
    assert times == sorted(set(times))
