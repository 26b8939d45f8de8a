"""Recovery step by step: what is claimed and how much of it, what an acquirer is asked, when it is asked to void, and
what is written of its answers. Acquirers answer by a script; nothing is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace, TracebackType
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import override_settings

from gateway import tracing
from gateway.connectors.means import Card
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorAccount,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
    ReversalReason,
    VoidRefusedError,
)
from gateway.connectors.routing import CONNECTORS
from gateway.connectors.simulator.connector import SimulatorConnector
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.models import AcquirerExchange, Merchant, OpenPayment, Payment, PaymentEvent, Status
from gateway.payments import late_outcomes, recovery, step_up, store
from gateway.payments.chain_amounts import Chain
from gateway.payments.points_of_service import find_point_of_service
from gateway.payments.recovery import InquiryExchange, InquiryResult, RecoverySummary
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import EarlierDecline, PrivateFacts
from gateway.vault.sealing import VaultError
from tests.gateway.payments.test_store import begun, complete
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

UNKNOWN, REVERSED, NO_FUNDS, SOFT = "000.200.001", "900.100.301", "800.100.155", "300.100.100"
NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def waiting(shop: Shop, due_s: float = -1, **values: Any) -> Payment:
    """A payment in doubt with an inquiry due in ``due_s`` seconds."""
    payment = begun(shop)
    change(payment, **{"status": Status.IN_DOUBT, "result_code": UNKNOWN, **values})
    OpenPayment.objects.filter(pk=payment.pk).update(recover_at=Now() + timedelta(seconds=due_s))
    return again(payment)


def change(payment: Payment, **values: Any) -> None:
    Payment.objects.filter(pk=payment.pk).update(**values)


def again(payment: Payment) -> Payment:
    return Payment.objects.select_related("merchant", "open").get(pk=payment.pk)


def is_about(at: datetime, delay: timedelta) -> bool:
    return abs(at - clock.real_now() - delay) < MINUTE


# What is claimed.


def test_the_longest_due_are_claimed_and_nothing_that_has_its_result(shop: Shop) -> None:
    last, middle, first = (waiting(shop, due) for due in (-1, -2, -3))
    later = waiting(shop, 60)
    assert recovery.claim_due_inquiries(2) == [middle, first]
    assert recovery.claim_due_inquiries(2) == [last]
    assert recovery.claim_due_inquiries(2) == []
    assert list(OpenPayment.objects.filter(inquiries=0)) == [later.open]


@pytest.mark.parametrize(
    ("values", "claimed"),
    [
        ({"status": Status.STARTED, "result_code": ""}, True),
        ({}, True),
        ({"status": Status.DECLINED, "result_code": NO_FUNDS, "completed_at": NOW}, True),
        ({"status": Status.PENDING, "result_code": "000.200.000"}, False),
        ({"status": Status.APPROVED, "result_code": "000.100.110", "approved_amount": 92, "completed_at": NOW}, False),
    ],
    ids=str,
)
def test_only_what_may_still_be_undecided_or_void_is_claimed(shop: Shop, values: dict[str, Any], claimed: bool) -> None:
    payment = waiting(shop, **values)
    assert recovery.claim_due_inquiries(5) == [payment] * claimed


def test_a_claim_comes_with_all_that_an_inquiry_reads(shop: Shop, django_assert_num_queries: Any) -> None:
    waiting(shop)
    [claimed] = recovery.claim_due_inquiries(1)
    with django_assert_num_queries(0):
        assert claimed.merchant.clock_offset == timedelta(0)
        assert claimed.open.inquiries == 1


@override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=1_000)
def test_a_lease_lasts_for_an_inquiry_and_a_void(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "ANSWER_GRACE", timedelta(seconds=300))
    waiting(shop)
    [claimed] = recovery.claim_due_inquiries(1)
    assert is_about(claimed.open.recover_at, timedelta(seconds=2_300))


@pytest.mark.parametrize(("before", "after"), [(0, 1), (7, 8), (31_999, 32_000), (32_000, 32_000)])
def test_inquiries_are_counted_as_far_as_their_column_goes(shop: Shop, before: int, after: int) -> None:
    waiting(shop)
    OpenPayment.objects.update(inquiries=before)
    [claimed] = recovery.claim_due_inquiries(1)
    assert claimed.open.inquiries == after


@pytest.mark.parametrize(
    ("busy", "claimed"),
    [
        ([], ["own", "account", "channel", "connector"]),
        ([("stub", None, "")], ["connector"]),
        ([("stub", "main", "M-1")], ["account", "channel", "connector"]),
        ([("stub", "main", "M-1"), ("iso8583", None, "")], ["account", "channel"]),
        ([("stub", "main", "M-2"), ("stub", "other", "M-1")], ["own", "connector"]),
        ([("iso8583", "other", "M-1")], ["own", "account", "channel", "connector"]),
    ],
)
def test_what_is_busy_is_left_for_later(shop: Shop, busy: list[Any], claimed: list[str]) -> None:
    channels = {"main": shop.channel.pk, "other": shop.open_channel().pk, None: None}
    at = {
        "own": ("stub", "main", "M-1"), "account": ("stub", "main", "M-2"), "channel": ("stub", "other", "M-1"),
        "connector": ("iso8583", "main", "M-1"),
    }  # fmt: skip
    names = {
        waiting(shop, connector=connector, channel=channels[channel], acquirer_merchant_id=merchant).pk: name
        for name, (connector, channel, merchant) in at.items()
    }
    targets = [(connector, channels[channel], merchant) for connector, channel, merchant in busy]
    assert [names[one.pk] for one in recovery.claim_due_inquiries(9, excluding=targets)] == claimed


# How much one tick takes.


class Tick:
    """A tick over ``due`` payments. ``times``: of its clock, one a round, the first as it begins; ``done``: how many
    inquiries end in each round, all in a round beyond. Of the payments every third ends at once, of the inquiries
    every second is settled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, due: int, times: Sequence[float], done: Sequence[int]) -> None:
        self.due = [Payment(connector="stub", acquirer_merchant_id=f"M-{number}") for number in range(due)]
        self.times, self.done = list(times), list(done)
        self.limits: list[int] = []
        self.excluded: list[int] = []
        self.begun = self.recorded = self.rounds = 0
        for name, instead in (
            ("claim_due_inquiries", self.claim), ("_begin_recovery_safely", self.begin), ("wait", self.wait),
            ("_record_outcome_safely", self.record), ("_list_busy_targets", self.list_busy),
            ("time", SimpleNamespace(monotonic=self.tell_time)),
        ):  # fmt: skip
            monkeypatch.setattr(recovery, name, instead)

    def tell_time(self) -> float:
        self.rounds += 1
        assert self.rounds < 100, "it never ends"
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]

    def list_busy(self, inquiries: Any, free: int) -> list[Any]:
        return [len(list(inquiries)), free]

    def claim(self, limit: int, *, excluding: list[int]) -> list[Payment]:
        self.limits.append(limit)
        self.excluded = excluding
        claimed, self.due = self.due[:limit], self.due[limit:]
        return claimed

    def begin(self, payment: Payment, pool: Any, inquiries: dict[Any, Payment]) -> bool:
        self.begun += 1
        if self.begun % 3 == 0:
            return True
        inquiries[Future()] = payment
        return False

    def wait(self, inquiries: dict[Any, Payment], *, timeout: float, return_when: str) -> Any:
        assert (timeout, return_when) == (recovery.INQUIRY_POLL_S, FIRST_COMPLETED)
        number = self.done.pop(0) if self.done else len(inquiries)
        return SimpleNamespace(done=list(inquiries)[:number])

    def record(self, payment: Payment, future: Any) -> bool:
        assert isinstance(payment, Payment)
        assert isinstance(future, Future)
        self.recorded += 1
        return self.recorded % 2 == 1


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_OPEN_INQUIRIES", 10), ("RECOVERY_BATCH_SIZE", 8), ("FREE_SHARE_DIVISOR", 4)):
        monkeypatch.setattr(recovery, name, value)


@pytest.mark.usefixtures("few")
def test_a_claim_takes_a_share_of_what_is_free_and_nothing_where_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tick = Tick(monkeypatch, 100, [0] * 13 + [99], [0] * 12)
    recovery.recover_due_payments()
    # 10 free, then 8, 6, 5, 4, 3, 2, 2, 1, 0: of every three payments one ends at once.
    assert tick.limits == [3, 2, 2, 2, 1, 1, 1, 1, 1]
    tick = Tick(monkeypatch, 3, [0], [])
    assert recovery.recover_due_payments() == RecoverySummary(claimed=3, settled=2)
    assert tick.limits == [3, 3]
    assert tick.excluded == [0, 10]


@pytest.mark.usefixtures("few")
def test_a_claim_takes_no_more_than_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "RECOVERY_BATCH_SIZE", 2)
    tick = Tick(monkeypatch, 3, [0], [1, 0])
    assert recovery.recover_due_payments() == RecoverySummary(claimed=3, settled=2)
    assert tick.limits == [2, 2, 2, 2]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("times", "claims"),
    [
        ([0, 0, 1, 99], 2),
        ([0, 4.9, 99], 1),
        ([0, 5, 99], 0),
        ([100, 104.9, 199], 1),
        ([100, 105, 199], 0),
        # While an inquiry is on its way.
        ([0, 0, 5, 99], 2),
        ([0, 0, 29.9, 99], 2),
        ([0, 0, 30, 99], 1),
        ([0, 0, 10, 20, 30, 99], 3),
    ],
)
def test_a_tick_claims_for_its_time_and_longer_while_an_acquirer_is_silent(
    monkeypatch: pytest.MonkeyPatch, times: list[float], claims: int
) -> None:
    tick = Tick(monkeypatch, 100, times, [0] * (len(times) - 2))
    recovery.recover_due_payments()
    assert len(tick.limits) == claims


def test_a_tick_without_anything_on_its_way_ends_with_a_claim_that_found_less_than_it_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tick = Tick(monkeypatch, 0, [0], [])
    assert recovery.recover_due_payments() == RecoverySummary(claimed=0, settled=0)
    assert tick.limits == [32]


def test_there_is_a_thread_for_every_inquiry_of_the_last_claim_too() -> None:
    with recovery._build_inquiry_pool() as pool:
        assert pool._max_workers == recovery.MAX_OPEN_INQUIRIES + recovery.RECOVERY_BATCH_SIZE
        assert pool.submit(lambda: 7).result(60) == 7


# One payment begins.


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("unfinished", [True, False])
def test_only_an_undecided_payment_is_ended_by_a_challenge_that_never_began(
    monkeypatch: pytest.MonkeyPatch, status: Status, unfinished: bool
) -> None:
    ended: list[Payment] = []
    payment = Payment(status=status, merchant=Merchant())
    monkeypatch.setattr(step_up, "has_unfinished_challenge", lambda one: unfinished and one is payment)
    monkeypatch.setattr(store, "complete_payment", lambda one, outcome: ended.append(one))
    ends = unfinished and status in (Status.STARTED, Status.IN_DOUBT)
    assert recovery._end_unfinished_step_up(payment) is ends
    assert ended == [payment] * ends


@pytest.mark.parametrize(
    ("earlier", "code", "details"),
    [
        (EarlierDecline(code=NO_FUNDS, details={"AcquirerResponse": "51"}), NO_FUNDS, {"AcquirerResponse": "51"}),
        (None, SOFT, None),
    ],
)
def test_a_challenge_that_never_began_leaves_the_issuers_decline(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, earlier: EarlierDecline | None, code: str, details: Any
) -> None:
    shop.merchant.clock_offset = timedelta(days=40)
    shop.merchant.save()
    payment = waiting(shop, answer=PrivateFacts(earlier_decline=earlier).as_json())
    monkeypatch.setattr(step_up, "has_unfinished_challenge", lambda one: True)
    stale = again(payment)
    assert recovery._end_unfinished_step_up(payment)
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, kept.result_code, kept.answer.get("resultDetails")) == (Status.DECLINED, code, details)
    assert kept.completed_at is not None
    assert is_about(kept.completed_at, timedelta(days=40))
    assert recovery._end_unfinished_step_up(stale), "its worker was only slow"


class Pool:
    def __init__(self) -> None:
        self.submitted: list[Any] = []

    def submit(self, *call: Any) -> Any:
        self.submitted.append(call)
        return "a future"


def build_pool() -> Any:
    return Pool()


def test_an_inquiry_is_submitted_with_its_request(shop: Shop) -> None:
    payment, pool = waiting(shop), build_pool()
    submitted: Any = recovery._submit_inquiry(payment, pool)
    assert submitted == "a future"
    simulator = CONNECTORS["simulator"]
    request = recovery.build_inquiry(payment, simulator)
    assert pool.submitted == [(recovery.resolve_outcome_in_thread, simulator, request, payment)]


@pytest.mark.parametrize("why", ["no connector", "completed", "shut"])
def test_an_inquiry_that_cannot_be_made_now_is_not_submitted(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    payment, pool = waiting(shop), build_pool()

    def shut(*_: Any) -> Any:
        raise VaultError("shut")

    if why == "no connector":
        payment.connector = "gone"
    elif why == "completed":
        monkeypatch.setattr(recovery, "mark_outcome_unknown", lambda one: False)
    else:
        monkeypatch.setattr(recovery, "build_inquiry", shut)
    inquiries: dict[Any, Payment] = {}
    assert recovery._submit_inquiry(payment, pool) is None
    assert recovery._begin_recovery_safely(payment, pool, inquiries) is False
    assert (pool.submitted, inquiries) == ([], {})


def test_a_payment_ends_at_once_or_has_an_inquiry_and_a_fault_is_its_own(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment, inquiries = waiting(shop), dict[Any, Payment]()
    assert recovery._begin_recovery_safely(payment, build_pool(), inquiries) is False
    assert inquiries == {"a future": payment}
    monkeypatch.setattr(recovery, "_end_unfinished_step_up", lambda one: True)
    assert recovery._begin_recovery_safely(payment, build_pool(), {}) is True
    monkeypatch.setattr(recovery, "_end_unfinished_step_up", lambda one: 1 // 0)
    assert recovery._begin_recovery_safely(payment, build_pool(), {}) is False


def test_an_answer_is_recorded_and_a_fault_is_its_payments_own(monkeypatch: pytest.MonkeyPatch) -> None:
    payment, finding = Payment(), InquiryResult(exchanges=[], reply=None)
    answered, failed = Future[InquiryResult](), Future[InquiryResult]()
    answered.set_result(finding)
    failed.set_exception(RuntimeError())
    for recorded in (True, False):
        monkeypatch.setattr(
            recovery, "record_outcome", lambda *call, said=recorded: call == (payment, finding) and said
        )
        assert recovery._record_outcome_safely(payment, answered) is recorded
        assert recovery._record_outcome_safely(payment, failed) is False


@pytest.mark.parametrize("fails", [True, False])
def test_an_inquirys_thread_closes_its_connection(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    closed: list[bool] = []

    def resolve(*call: Any) -> Any:
        if fails:
            raise RuntimeError
        return call

    monkeypatch.setattr(recovery, "resolve_outcome", resolve)
    monkeypatch.setattr(recovery, "connection", SimpleNamespace(close=lambda: closed.append(True)))
    call: Any = ("connector", "request", "payment")
    if fails:
        with pytest.raises(RuntimeError):
            recovery.resolve_outcome_in_thread(*call)
    else:
        found: Any = recovery.resolve_outcome_in_thread(*call)
        assert found == call
    assert closed == [True]


# A payment whose worker died.


@pytest.mark.parametrize("status", [Status.IN_DOUBT, Status.DECLINED])
def test_what_is_in_doubt_or_declined_already_is_not_marked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    payment = waiting(shop, status=status, result_code=NO_FUNDS, completed_at=NOW)
    monkeypatch.setattr(store, "complete_payment", lambda *call, **names: 1 // 0)
    assert late_outcomes.mark_outcome_unknown(payment) is True


def test_a_dead_workers_payment_is_marked_with_what_it_had_not_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.merchant.clock_offset = timedelta(days=40)
    shop.merchant.save()
    payment = waiting(shop, 600, status=Status.STARTED, result_code="")
    due, stale = payment.open.recover_at, again(payment)
    for name, member in (("restore_authentication_facts", "facts"), ("restore_token_use", "networkToken")):
        monkeypatch.setattr(late_outcomes, name, lambda one, member=member: one.answer.update({member: {"a": "b"}}))
    assert late_outcomes.mark_outcome_unknown(payment) is True
    kept = again(payment)
    assert (kept.status, kept.result_code, kept.open.recover_at) == (Status.IN_DOUBT, UNKNOWN, due)
    assert (kept.answer["facts"], kept.answer["networkToken"]) == ({"a": "b"}, {"a": "b"})
    event = PaymentEvent.objects.get(payment=payment, sequence=2)
    assert event.event == "lose"
    assert is_about(event.at, timedelta(days=40))
    assert late_outcomes.mark_outcome_unknown(stale) is False


# What an acquirer is asked.


class Asking(SimulatorConnector):
    """A connector whose acquirer has to be told the card again."""

    asks_with_means = True


def test_an_inquiry_names_a_first_payment_as_it_was_sent(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    payment = waiting(
        shop, amount=Decimal("17.50"), currency="USD", payment_type="PA", brand="MASTER", connector_tx_id="T-1",
        acquirer_merchant_id="M-1", answer=PrivateFacts(attempt=2).as_json(), route={"cascades": 1},
    )  # fmt: skip
    payment.open.trace_number = 77
    expected = AcquirerRequest(
        payment=payment.id,
        operation="PA",
        money=Money(Decimal("17.50"), "USD"),
        brand="MASTER",
        at=payment.created_at,
        known_transaction_id="T-1",
        trace_number=77,
        account=ConnectorAccount(merchant="M-1", channel=shop.channel.pk),
        attempt=3,
        asked_for=timedelta(0),
    )
    assert recovery.build_inquiry(payment, SimulatorConnector()) == expected
    payment.merchant.clock_offset = timedelta(days=2)
    monkeypatch.setattr(store, "find_call_time", lambda one: NOW)
    called = replace(expected, at=NOW, called_at=NOW - timedelta(days=2))
    assert recovery.build_inquiry(payment, SimulatorConnector()) == called


def test_an_inquiry_about_a_payment_with_a_result_has_no_message_number(shop: Shop) -> None:
    payment = begun(shop)
    complete(payment)
    read = Payment.objects.get(pk=payment.pk)
    assert recovery.build_inquiry(read, SimulatorConnector()).trace_number == 0


def test_an_inquiry_with_the_card_has_what_was_sent_with_it(shop: Shop) -> None:
    paid = shop.api.pay(descriptor="Shop of Jane", merchantMemo="not for banks")
    assert paid.status == 200, paid
    payment = Payment.objects.get(pk=paid.id)
    reference = {"standingInstruction.initialTransactionId": "SCHEME-1"}
    payment.answer = payment.answer | PrivateFacts(agreement_references=reference).as_json()
    request = recovery.build_inquiry(payment, Asking())
    assert isinstance(request.means, Card)
    assert request.means.number.reveal() == "4200000000000000"
    assert request.parameters["descriptor"] == "Shop of Jane"
    assert request.parameters["standingInstruction.initialTransactionId"] == "SCHEME-1"
    assert "merchantMemo" not in request.parameters
    assert request.original == find_point_of_service(Chain([payment]), payment)
    assert request.reference == ""


@pytest.mark.parametrize("connector", [SimulatorConnector(), Asking()])
def test_an_inquiry_about_a_follow_up_names_what_it_followed(shop: Shop, connector: SimulatorConnector) -> None:
    held = Payment.objects.get(pk=shop.api.pay(paymentType="PA", amount="100.00", numberOfCaptures="3").id)
    shop.api.follow(held.id.hex, "CP", "10.00")
    capture = Payment.objects.get(pk=shop.api.follow(held.id.hex, "CP", "20.00").id)
    request = recovery.build_inquiry(capture, connector)
    assert (request.payment, request.reference, request.clearing) == (capture.id, held.connector_tx_id, (2, 3))
    assert request.money == Money(Decimal("20.00"), "EUR")
    assert (request.means is None, request.original is None) == (not connector.asks_with_means,) * 2
    refund = Payment.objects.get(pk=shop.api.follow(capture.id.hex, "RF", "5.00").id)
    request = recovery.build_inquiry(refund, connector)
    assert (request.reference, request.operation) == (capture.connector_tx_id, "RF")
    if connector.asks_with_means:
        assert isinstance(request.means, Card)
        assert request.means.number.reveal() == "4200000000000000"


def test_an_inquiry_about_a_rebill_has_the_card_of_its_first_payment(shop: Shop) -> None:
    first = shop.api.pay(**{"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"})
    rebill = Payment.objects.get(pk=shop.api.follow(first.id, "RB", "5.00").id)
    request = recovery.build_inquiry(rebill, Asking())
    assert isinstance(request.means, Card)
    assert request.means.number.reveal() == "4200000000000000"


# When it is asked to void.


class Scripted(SimulatorConnector):
    """Gives its answers one after the other. ``heard``: what it was asked, and why it was to void."""

    name = "scripted"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.heard: list[tuple[str, ReversalReason]] = []

    def inquire(self, request: AcquirerRequest) -> Any:
        return self._answer("inquire", request)

    def void(self, request: AcquirerRequest) -> Any:
        return self._answer("void", request)

    def _answer(self, kind: str, request: AcquirerRequest) -> Any:
        self.heard.append((kind, request.reversal_reason))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


EUR_92 = Money(Decimal("92.00"), "EUR")
ASKED: dict[str, Any] = {"sent": {"asked": "a"}, "received": {"said": "b"}}
APPROVED = AcquirerReply(code="000.100.110", approved=EUR_92, connector_tx_id="T-1", **ASKED)
PART = replace(APPROVED, approved=Money(Decimal("50.00"), "EUR"))
DECLINED = AcquirerReply(code=NO_FUNDS, **ASKED)
PENDING = AcquirerReply(code="000.200.000", **ASKED)
NOT_FOUND = NotFoundAtAcquirer(**ASKED)
SILENCE = OutcomeUnknownError("no line", {"asked": "c"})
VOIDED = AcquirerReply(
    code="000.100.110", approved=EUR_92, details={"a": "void", "b": "void"}, sent={"void": "d"}, received={"said": "e"}
)
STAYS = VoidRefusedError("it stays", {"void": "f"})
KEPT = VoidRefusedError("it stays", {"void": "f"}, ask_again_after=timedelta(minutes=7))
INQUIRED = ("inquire", {"asked": "a"}, {"said": "b"})
UNANSWERED = ("inquire", {"asked": "c"}, {"silence": "no line"})
WAS_VOIDED = ("void", {"void": "d"}, {"said": "e"})
VOID_UNANSWERED = ("void", {"asked": "c"}, {"silence": "no line"})
VOID_REFUSED = ("void", {"void": "f"}, {"silence": "it stays"})
WAITS = ("wait", {"void": "f"}, {"silence": "it stays"})
WHOLE_ONLY = PrivateFacts(whole_amount_only=True).as_json()
REFUSED = PrivateFacts(refused_code="100.400.500", refused_details={"b": "kept", "c": "kept"}).as_json()
TIMEOUT, FRAUD, CUSTOMER = ReversalReason.TIMEOUT, ReversalReason.SUSPECTED_FRAUD, ReversalReason.CUSTOMER


@pytest.fixture
def one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is 2.5 seconds after the one before; the time of day stands still."""
    looks = iter(range(1_000))
    monkeypatch.setattr(recovery, "time", SimpleNamespace(perf_counter=lambda: 40 + 2.5 * next(looks)))
    monkeypatch.setattr(clock, "real_now", lambda: NOW)


@pytest.mark.usefixtures("one_step")
@pytest.mark.parametrize(
    ("attempted", "answer", "answers", "exchanges", "code", "reason"),
    [
        (False, {}, [APPROVED], [INQUIRED], "000.100.110", None),
        (False, {}, [DECLINED], [INQUIRED], NO_FUNDS, None),
        (False, {}, [PENDING], [INQUIRED], "000.200.000", None),
        (False, {}, [SILENCE], [UNANSWERED], None, None),
        (True, {}, [DECLINED], [INQUIRED], NO_FUNDS, None),
        (True, {}, [APPROVED, VOIDED], [INQUIRED, WAS_VOIDED], REVERSED, TIMEOUT),
        (True, {}, [PENDING, VOIDED], [INQUIRED, WAS_VOIDED], REVERSED, TIMEOUT),
        (False, {}, [NOT_FOUND, VOIDED], [INQUIRED, WAS_VOIDED], REVERSED, TIMEOUT),
        (True, {}, [NOT_FOUND, VOIDED], [INQUIRED, WAS_VOIDED], REVERSED, TIMEOUT),
        (False, {}, [NOT_FOUND, SILENCE], [INQUIRED, VOID_UNANSWERED], None, TIMEOUT),
        (False, {}, [NOT_FOUND, STAYS, APPROVED], [INQUIRED, VOID_REFUSED, INQUIRED], "000.100.110", TIMEOUT),
        (False, {}, [NOT_FOUND, STAYS, NOT_FOUND], [INQUIRED, VOID_REFUSED, INQUIRED], None, TIMEOUT),
        (False, {}, [NOT_FOUND, STAYS, SILENCE], [INQUIRED, VOID_REFUSED, UNANSWERED], None, TIMEOUT),
        (False, {}, [NOT_FOUND, KEPT], [WAITS], None, TIMEOUT),
        (False, WHOLE_ONLY, [APPROVED], [INQUIRED], "000.100.110", None),
        (False, WHOLE_ONLY, [DECLINED], [INQUIRED], NO_FUNDS, None),
        (False, WHOLE_ONLY, [PART, SILENCE], [INQUIRED, VOID_UNANSWERED], None, CUSTOMER),
        (False, WHOLE_ONLY, [PART, KEPT], [INQUIRED, VOID_REFUSED], None, CUSTOMER),
        (True, REFUSED, [APPROVED, VOIDED], [INQUIRED, WAS_VOIDED], "100.400.500", FRAUD),
    ],
)
def test_an_inquiry_ends_with_an_answer_a_void_or_neither(
    shop: Shop, attempted: bool, answer: dict[str, Any], answers: list[Any], exchanges: list[Any], code: str | None,
    reason: ReversalReason | None,
) -> None:  # fmt: skip
    """``attempted``: a void was tried before; ``reason``: of the void."""
    payment, other = waiting(shop, answer=answer), waiting(shop)
    payment.open.void_attempted = attempted
    payment.open.save()
    acquirer = Scripted(*answers)
    request = recovery.build_inquiry(payment, acquirer)
    result = recovery.resolve_outcome(acquirer, request, payment)
    assert [(one.kind, one.sent, one.received) for one in result.exchanges] == exchanges
    assert {(one.at, one.duration_ms) for one in result.exchanges} == {(NOW, 2_500)}
    assert (result.reply.code if result.reply is not None else None) == code
    assert result.was_taken_back is False
    assert result.ask_again_after == (timedelta(minutes=7) if KEPT in answers and not answer else None)
    assert [one for kind, one in acquirer.heard if kind == "void"] == [reason] * (reason is not None)
    heard = ["inquire", "void"] if exchanges == [WAITS] else [kind for kind, _, _ in exchanges]
    assert [kind for kind, _ in acquirer.heard] == heard
    assert OpenPayment.objects.get(pk=payment.pk).void_attempted is (attempted or reason is not None)
    assert OpenPayment.objects.get(pk=other.pk).void_attempted is False
    if result.reply is not None and exchanges[-1][0] == "void":
        assert result.reply.approved is None
        assert result.reply.details == {"a": "void", "b": "void"} | answer.get("refusedDetails", {})
    elif result.reply is not None:
        assert result.reply is answers[-1]


@pytest.mark.usefixtures("one_step")
def test_an_approval_that_is_refused_becomes_the_refusal_once_it_is_void(shop: Shop) -> None:
    payment = waiting(shop, answer=WHOLE_ONLY)
    acquirer = Scripted(PART, VOIDED)
    result = recovery.resolve_outcome(acquirer, recovery.build_inquiry(payment, acquirer), payment)
    assert [(one.kind, one.sent, one.duration_ms) for one in result.exchanges] == [
        ("inquire", {"asked": "a"}, 2_500),
        ("void", {"void": payment.id.hex}, 2_500),
    ]
    assert result.exchanges[1].received == {"said": "b", "takenBack": {"said": "e"}}
    assert result.reply is not None
    assert (result.reply.code, result.reply.approved, result.reply.connector_tx_id) == (NO_FUNDS, None, "T-1")
    assert "PartialApproval" in result.reply.details
    assert OpenPayment.objects.get(pk=payment.pk).void_attempted


@pytest.mark.usefixtures("one_step")
@pytest.mark.parametrize(
    ("said", "exchange", "reply", "again_after"),
    [
        (VOIDED, WAS_VOIDED, VOIDED, None),
        (SILENCE, VOID_UNANSWERED, None, None),
        (STAYS, VOID_REFUSED, None, None),
        (KEPT, WAITS, None, timedelta(minutes=7)),
    ],
)
def test_an_approval_that_came_too_late_is_voided_and_not_asked_about(
    shop: Shop, said: Any, exchange: Any, reply: AcquirerReply | None, again_after: timedelta | None
) -> None:
    payment = waiting(shop, status=Status.DECLINED, result_code=REVERSED, completed_at=NOW)
    acquirer = Scripted(said)
    result = recovery.resolve_outcome(acquirer, recovery.build_inquiry(payment, acquirer), payment)
    assert acquirer.heard == [("void", TIMEOUT)]
    assert [(one.kind, one.sent, one.received, one.duration_ms) for one in result.exchanges] == [(*exchange, 2_500)]
    assert (result.reply, result.ask_again_after) == (reply, again_after)


@pytest.mark.parametrize("answer, said", [({}, NOT_FOUND), (WHOLE_ONLY, PART)])
def test_a_payment_that_was_completed_meanwhile_is_not_voided(shop: Shop, answer: dict[str, Any], said: Any) -> None:
    payment = waiting(shop, answer=answer)
    acquirer = Scripted(said)
    request = recovery.build_inquiry(payment, acquirer)
    complete(again(payment))
    result = recovery.resolve_outcome(acquirer, request, payment)
    assert [one.kind for one in result.exchanges] == ["inquire"]
    assert (result.reply, [kind for kind, _ in acquirer.heard]) == (None, ["inquire"])


@pytest.mark.parametrize(
    ("known", "has_row", "status", "voids"),
    [
        (False, True, Status.IN_DOUBT, True),
        (True, False, Status.APPROVED, True),
        (False, False, Status.APPROVED, False),
        (False, False, Status.IN_DOUBT, True),
    ],
)
def test_a_void_is_marked_before_it_is_sent(
    shop: Shop, known: bool, has_row: bool, status: Status, voids: bool
) -> None:
    """``known``: a void was tried before this payment was read."""
    payment, other = waiting(shop), waiting(shop)
    if status == Status.APPROVED:
        complete(again(payment))
    elif not has_row:
        OpenPayment.objects.filter(pk=payment.pk).delete()
    complete(again(other))
    payment.open.void_attempted = known
    assert recovery._mark_void_attempted(payment) is voids
    assert list(OpenPayment.objects.values_list("void_attempted", flat=True)) == [True] * has_row


@pytest.mark.parametrize("answers, answered", [([APPROVED], True), ([SILENCE], False)])
def test_a_trace_says_who_was_asked_about_what_and_whether_it_answered(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, answers: list[Any], answered: bool
) -> None:
    spans: list[tuple[str, str, dict[str, Any]]] = []

    class Span:
        def __init__(self, name: str, ndc: Any) -> None:
            spans.append((name, ndc(), {}))

        def __enter__(self) -> Span:
            return self

        def __exit__(self, kind: type[BaseException] | None, fault: object, trail: TracebackType | None) -> None: ...

        def set(self, **values: Any) -> None:
            spans[-1][2].update(values)

    monkeypatch.setattr(tracing, "trace_span", lambda name, *, ndc: Span(name, ndc))
    payment, acquirer = waiting(shop), Scripted(*answers)
    recovery.resolve_outcome(acquirer, recovery.build_inquiry(payment, acquirer), payment)
    [(name, ndc, values)] = spans
    assert name == "recovery"
    assert ndc == identifiers.format_ndc(payment.request_id, shop.channel.pk.hex)
    assert values == {"connector": "scripted", "payment": payment.id.hex, "answered": answered}


def test_an_attempt_that_was_voided_tells_the_decline_before_it(shop: Shop) -> None:
    earlier = EarlierDecline(code=NO_FUNDS, details={"AcquirerResponse": "51"})
    payment = waiting(shop, answer=PrivateFacts(earlier_decline=earlier).as_json())
    acquirer = Scripted(NOT_FOUND, VOIDED)
    result = recovery.resolve_outcome(acquirer, recovery.build_inquiry(payment, acquirer), payment)
    assert result.reply is not None
    assert (result.reply.code, result.was_taken_back) == (NO_FUNDS, True)


# What is written.


def exchange(kind: str, number: int) -> InquiryExchange:
    at = NOW + timedelta(seconds=number)
    return InquiryExchange(kind=kind, at=at, sent={"s": number}, received={"r": number}, duration_ms=100 + number)


EXCHANGES = [exchange("inquire", 1), exchange("void", 2), exchange("inquire", 3)]
OFFSET = timedelta(days=3)


def written(payment: Payment) -> list[tuple[str, Any, Any, datetime, int]]:
    found = AcquirerExchange.objects.filter(payment=payment.pk).order_by("id")
    return [(one.kind, one.sent, one.received, one.at - OFFSET, one.duration_ms) for one in found]


ALL_WRITTEN = [(one.kind, one.sent, one.received, one.at, one.duration_ms) for one in EXCHANGES]


@pytest.fixture
def ahead(shop: Shop) -> Shop:
    """A merchant whose clock is three days ahead."""
    shop.merchant.clock_offset = OFFSET
    shop.merchant.save()
    return shop


@pytest.mark.parametrize(
    ("again_after", "delay_s"),
    [(None, 2_000), (timedelta(seconds=7_000), 7_000)],
)
def test_without_an_answer_the_exchanges_are_written_and_when_to_ask_again(
    ahead: Shop, monkeypatch: pytest.MonkeyPatch, again_after: timedelta | None, delay_s: int
) -> None:
    monkeypatch.setattr(recovery, "INQUIRY_BACKOFF_S", (1_000, 2_000, 3_000))
    payment = waiting(ahead)
    payment.open.inquiries = 2
    finding = InquiryResult(exchanges=EXCHANGES, reply=None, ask_again_after=again_after)
    assert recovery.record_outcome(payment, finding) is False
    assert written(payment) == ALL_WRITTEN
    kept = again(payment)
    assert (kept.status, kept.sequence) == (Status.IN_DOUBT, payment.sequence)
    assert is_about(kept.open.recover_at, timedelta(seconds=delay_s))


def test_a_payment_that_moved_meanwhile_is_not_asked_about_again(ahead: Shop) -> None:
    payment = waiting(ahead)
    change(payment, sequence=9)
    assert recovery.record_outcome(payment, InquiryResult(exchanges=EXCHANGES, reply=None)) is False
    assert written(payment) == ALL_WRITTEN
    assert again(payment).open.recover_at == payment.open.recover_at


def test_an_answer_moves_the_payment_at_its_own_time(ahead: Shop) -> None:
    payment = waiting(ahead)
    stale = again(payment)
    reply = replace(APPROVED, sent={"s": 3}, received={"r": 3})
    assert recovery.record_outcome(payment, InquiryResult(exchanges=EXCHANGES, reply=reply)) is True
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, kept.completed_at) == (Status.APPROVED, EXCHANGES[-1].at + OFFSET)
    assert written(payment) == ALL_WRITTEN
    assert not OpenPayment.objects.exists()
    assert recovery.record_outcome(stale, InquiryResult(exchanges=EXCHANGES, reply=DECLINED)) is False
    assert written(payment) == [*ALL_WRITTEN, *ALL_WRITTEN]
    assert Payment.objects.get(pk=payment.pk).status == Status.APPROVED


def test_a_reversal_that_is_accepted_after_a_person_entered_paid_is_told(
    ahead: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    payment = waiting(ahead)
    stale = again(payment)
    assert recovery.record_outcome(payment, InquiryResult(exchanges=EXCHANGES, reply=APPROVED)) is True
    taken_back = AcquirerReply(code=REVERSED, **ASKED)
    finding = InquiryResult(exchanges=[exchange("inquire", 1), exchange("void", 2)], reply=taken_back)
    assert recovery.record_outcome(stale, finding) is False
    kinds = list(AcquirerExchange.objects.filter(payment=payment).order_by("id").values_list("kind", flat=True))
    assert kinds[-2:] == ["inquire", "denied"]
    assert "declined_after_approval" in caplog.text
    assert Payment.objects.get(pk=payment.pk).status == Status.APPROVED


@pytest.mark.parametrize("was_taken_back", [True, False])
def test_a_decline_of_the_account_before_makes_the_payment_its(ahead: Shop, was_taken_back: bool) -> None:
    before = {"name": "one", "connector": "stub", "account": "M-1", "code": NO_FUNDS, "declined": True}
    payment = waiting(ahead, route={"name": "last", "tried": [before]})
    finding = InquiryResult(exchanges=EXCHANGES, reply=DECLINED, was_taken_back=was_taken_back)
    assert recovery.record_outcome(payment, finding) is True
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, kept.result_code) == (Status.DECLINED, NO_FUNDS)
    assert kept.connector == ("stub" if was_taken_back else "simulator")


@pytest.mark.parametrize("moved", [True, False])
def test_a_late_approval_that_is_void_leaves_the_payment_declined(ahead: Shop, moved: bool) -> None:
    payment = waiting(ahead, status=Status.DECLINED, result_code=REVERSED, completed_at=NOW)
    if moved:
        change(payment, sequence=9)
    assert recovery.record_outcome(payment, InquiryResult(exchanges=EXCHANGES, reply=VOIDED)) is not moved
    assert written(payment) == ALL_WRITTEN
    kept = Payment.objects.get(pk=payment.pk)
    assert (kept.status, kept.result_code, kept.completed_at) == (Status.DECLINED, REVERSED, NOW)
    assert OpenPayment.objects.exists() is moved


@pytest.mark.parametrize("status", [Status.DECLINED, Status.IN_DOUBT])
@pytest.mark.parametrize("moved", [True, False])
def test_a_late_approval_that_may_stand_is_told_once_and_not_asked_about_again(
    ahead: Shop, caplog: pytest.LogCaptureFixture, status: Status, moved: bool
) -> None:
    payment = waiting(ahead, status=status, result_code=REVERSED)
    if moved:
        change(payment, sequence=9)
    finding = InquiryResult(exchanges=EXCHANGES, reply=replace(VOIDED, may_stand=True))
    assert recovery.record_outcome(payment, finding) is not moved
    kinds = list(AcquirerExchange.objects.filter(payment=payment).order_by("id").values_list("kind", flat=True))
    assert kinds == [*(one.kind for one in EXCHANGES[:-1]), "unproven"]
    assert OpenPayment.objects.exists() is moved
    assert ("late_approval_may_stand" in caplog.text) is not moved
    assert "late_approval_voided" not in caplog.text


@pytest.mark.parametrize(
    ("inquiries", "delay_s"), [(-1, 1), (0, 1), (1, 1), (2, 2), (3, 4), (6, 30), (7, 45), (8, 45), (32_000, 45)]
)
def test_the_delay_grows_with_the_inquiries_to_its_last(inquiries: int, delay_s: int) -> None:
    assert recovery.get_inquiry_backoff(inquiries) == timedelta(seconds=delay_s)


def test_the_timer_counts_what_recovery_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "recover_due_payments", lambda: RecoverySummary(claimed=5, settled=3))
    assert recovery.TIMER.run() == 5


def test_a_transition_that_another_worker_made_is_no_fault(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(*_: Any, **__: Any) -> None:
        raise PaymentTransitionError("moved")

    payment = waiting(shop)
    monkeypatch.setattr(store, "complete_payment", moved)
    assert recovery.record_outcome(payment, InquiryResult(exchanges=EXCHANGES, reply=APPROVED)) is False
