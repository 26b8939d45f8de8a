"""Breakers and bulkheads: an acquirer that does not answer is left alone, and holds no more than its share.

Source: goals, P5; docs/routing.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client, override_settings

from gateway.connectors import circuit
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.connectors.circuit_breaker import MAX_PAUSES, PROBES_TO_CLOSE, BreakerLimits, BreakerState, CircuitBreaker
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorAccount,
    OutcomeUnknownError,
    VoidRefusedError,
)
from gateway.core.money import Money
from gateway.models import BreakerChange, Payment
from tests.support.acquirers import APPROVED, Acquirer, account, known
from tests.support.fixtures import Shop
from tests.support.threads import PATIENCE_S, at_once

LIMITS = BreakerLimits(share=0.5, least=4, window_s=30.0, pause_s=10.0)
OFTEN = {"GATEWAY_BREAKER_LEAST": 3, "GATEWAY_BREAKER_PAUSE_S": 0.0}


class Time:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def breaker(now: Time) -> CircuitBreaker:
    return CircuitBreaker(lambda: LIMITS, now)


def let_in(found: CircuitBreaker) -> int:
    """The turn of a payment that is sent."""
    permit, _moved = found.acquire()
    assert permit is not None
    return permit


def opened(now: Time) -> CircuitBreaker:
    found = breaker(now)
    for _ in range(LIMITS.least):
        moved = found.record_failure("no line", let_in(found))
    assert moved is not None
    assert moved.state is BreakerState.OPEN
    assert "no line" in moved.why
    return found


def test_a_breaker_opens_by_the_share_of_questions_that_found_nobody() -> None:
    """Opens after a share of silences and unreachables within a window."""
    now = Time()
    assert opened(now).acquire() == (None, None)
    mixed = breaker(now)
    for _ in range(3):
        mixed.record_success(let_in(mixed))
    assert [mixed.record_failure("x", let_in(mixed)) for _ in range(2)] == [None, None]
    assert mixed.record_failure("x", let_in(mixed)) is not None


def test_a_few_questions_and_old_ones_open_nothing() -> None:
    """Within a window, of at least so many."""
    now = Time()
    found = breaker(now)
    for _ in range(20):
        assert found.record_failure("x", let_in(found)) is None
        now.at += LIMITS.window_s / 2
    assert found.state is BreakerState.CLOSED


def test_after_its_pause_single_payments_try_and_two_answers_close_it() -> None:
    """Half-open probes, closes again."""
    now = Time()
    found = opened(now)
    now.at += LIMITS.pause_s
    permit, moved = found.acquire()
    assert permit is not None
    assert moved is not None
    assert moved.state is BreakerState.HALF_OPEN
    assert found.acquire() == (None, None)
    assert found.record_success(permit) is None
    moved = found.record_success(let_in(found))
    assert PROBES_TO_CLOSE == 2
    assert moved is not None
    assert moved.state is BreakerState.CLOSED
    assert found.acquire()[0] is not None


def test_a_try_that_finds_nobody_opens_it_again_and_one_that_says_nothing_frees_the_place() -> None:
    """Half-open probes."""
    now = Time()
    found = opened(now)
    now.at += LIMITS.pause_s
    found.release(let_in(found))
    moved = found.record_failure("still nobody", let_in(found))
    assert moved is not None
    assert moved.state is BreakerState.OPEN
    assert found.acquire() == (None, None)


def test_inquiries_are_counted_and_decide_nothing_while_payments_try() -> None:
    """Recovery's inquiries are not blocked, and feed it."""
    now = Time()
    found = breaker(now)
    moves = [found.record_failure("x") for _ in range(LIMITS.least)]
    assert moves[-1] is not None
    now.at += LIMITS.pause_s - 1
    assert found.record_failure("x") is None
    now.at += 2
    assert found.acquire() == (None, None)
    now.at += LIMITS.pause_s
    assert found.acquire()[0] is not None
    for _ in range(PROBES_TO_CLOSE):
        assert found.record_success() is None
    assert found.record_failure("x") is None
    assert found.state is BreakerState.HALF_OPEN


def test_inquiries_that_find_nobody_for_ever_keep_no_account_shut() -> None:
    """A payment that its host never gives a word about is asked about without end."""
    now = Time()
    found = opened(now)
    for _ in range(10 * MAX_PAUSES):
        now.at += LIMITS.pause_s / 2
        found.record_failure("the host did not take it back: 21")
        if found.acquire()[0] is not None:
            break
    assert found.state is BreakerState.HALF_OPEN
    assert now.at == MAX_PAUSES * LIMITS.pause_s


def test_payments_sent_before_it_opened_are_no_tries_and_open_nothing_once_it_is_closed() -> None:
    """Forty wait while it opens; what they come to says how the acquirer was before."""
    now = Time()
    found = breaker(now)
    early = [let_in(found) for _ in range(40)]
    for _ in range(LIMITS.least):
        found.record_failure("no line", let_in(found))
    now.at += LIMITS.pause_s
    permit = let_in(found)
    # Neither an answer, nor a silence, nor a fault of ours of the early ones changes anything, or lets another try.
    assert [found.record_success(early.pop()) for _ in range(PROBES_TO_CLOSE + 1)] == [None] * (PROBES_TO_CLOSE + 1)
    assert found.record_failure("late silence", early.pop()) is None
    found.release(early.pop())
    assert found.acquire() == (None, None)
    assert found.state is BreakerState.HALF_OPEN
    found.record_success(permit)
    moved = found.record_success(let_in(found))
    assert moved is not None
    assert moved.state is BreakerState.CLOSED
    assert [found.record_failure("late silence", permit) for permit in early] == [None] * len(early)
    assert found.state is BreakerState.CLOSED


# --- around a connector -------------------------------------------------------------------------------------------


def request(merchant: str = "M-1", channel: uuid.UUID | None = None) -> AcquirerRequest:
    return AcquirerRequest(
        payment=uuid.uuid4(),
        operation="DB",
        money=Money.parse("92.00", "EUR"),
        brand="VISA",
        at=datetime.now(UTC),
        account=ConnectorAccount(merchant=merchant, channel=channel or uuid.uuid4()),
    )


@pytest.mark.django_db
def test_declines_never_open_a_breaker() -> None:
    """Never counts declines."""
    inner, asked = Acquirer("one", "declines"), request()
    with override_settings(**OFTEN):
        for _ in range(20):
            assert not circuit.guard_connector(inner).submit(asked).retryable_elsewhere
    assert not BreakerChange.objects.exists()


@pytest.mark.django_db
def test_each_account_has_a_breaker_of_its_own() -> None:
    """Per connector and account."""
    one, channel = circuit.guard_connector(Acquirer("one", "down")), uuid.uuid4()
    other = request("M-2", channel)
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(4):
            reply = one.submit(request("M-1", channel))
        assert (reply.code, reply.retryable_elsewhere, dict(reply.sent)) == (ACQUIRER_UNREACHABLE, True, {})
        assert "breaker" in reply.received
        assert one.submit(other).received == {"unreachable": "no line"}
    [change] = BreakerChange.objects.all()
    assert (change.connector, change.acquirer_merchant_id, change.channel, change.state) == (
        "one",
        "M-1",
        channel,
        "open",
    )
    assert "no line" in change.why


@pytest.mark.django_db
def test_inquiries_and_voids_pass_an_open_breaker() -> None:
    """Recovery's inquiries are not blocked by an open breaker."""
    inner, asked = Acquirer("one", "silent"), request()
    one = circuit.guard_connector(inner)
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(3):
            with pytest.raises(OutcomeUnknownError):
                one.submit(asked)
        assert one.submit(asked).retryable_elsewhere
        one.inquire(asked)
        one.void(asked)
    assert inner.kinds == ["submit", "submit", "submit", "inquire", "void"]


@pytest.mark.django_db
def test_a_payment_that_is_asked_about_for_ever_opens_no_breaker() -> None:
    """A host that refuses a void for good has answered; each try of it is no new sign that nobody is there."""
    inner, stuck = Acquirer("one"), request()
    inner.void = silent  # type: ignore[method-assign]
    one = circuit.guard_connector(inner)
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(20):
            with pytest.raises(OutcomeUnknownError):
                one.void(stuck)
        assert one.submit(replace(stuck, payment=uuid.uuid4())).code == APPROVED
        for _ in range(3):
            with pytest.raises(OutcomeUnknownError):
                one.void(replace(stuck, payment=uuid.uuid4()))
        assert one.submit(replace(stuck, payment=uuid.uuid4())).retryable_elsewhere
    assert not circuit.get_account_circuit("one", stuck.account).breaker.acquire()[0]


@pytest.mark.django_db
def test_a_void_that_was_never_sent_is_no_sign_that_somebody_is_there() -> None:
    """Of a payout to a card nothing is sent: the silence of the payouts counts."""
    inner, asked = Acquirer("one", "silent"), request()

    def refuse(_asked: AcquirerRequest) -> AcquirerReply:
        raise VoidRefusedError("a person asks", {}, ask_again_after=timedelta(days=1))

    inner.void = refuse  # type: ignore[method-assign]
    one = circuit.guard_connector(inner)
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(3):
            payout = replace(asked, payment=uuid.uuid4())
            with pytest.raises(OutcomeUnknownError):
                one.submit(payout)
            for _ in range(3):
                with pytest.raises(VoidRefusedError):
                    one.void(payout)
        assert one.submit(replace(asked, payment=uuid.uuid4())).retryable_elsewhere


def silent(asked: AcquirerRequest) -> AcquirerReply:
    raise OutcomeUnknownError("the host did not take it back: 21", {})


@pytest.mark.django_db
def test_a_fault_of_ours_says_nothing_about_the_acquirer_and_frees_its_place() -> None:
    """Bounded in flight."""
    inner, asked = Acquirer("one"), request()
    inner.before = lambda: 1 / 0
    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=1, **OFTEN):
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                circuit.guard_connector(inner).submit(asked)
        inner.before = lambda: None
        assert circuit.guard_connector(inner).submit(asked).code == APPROVED


@pytest.mark.django_db
def test_an_account_that_answers_fast_takes_a_burst_one_after_the_other() -> None:
    """A burst of payments is no reason to decline any of them."""
    fast = circuit.guard_connector(Acquirer("quick"))
    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=1):
        replies = at_once(*[partial(fast.submit, request()) for _ in range(4)])
    assert [reply.code for reply in replies] == [APPROVED] * 4


@pytest.mark.django_db
def test_an_account_that_is_slow_is_not_waited_for() -> None:
    """Whoever waited for it would hold a thread that others need."""
    slow, asked = circuit.guard_connector(Acquirer("sluggish")), request()
    own = circuit.get_account_circuit("sluggish", asked.account)
    own.average_answer_s, own.waiting = 2 * circuit.FAST_ANSWER_S, 1
    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=1):
        reply = slow.submit(asked)
    own.waiting = 0
    assert (reply.code, reply.retryable_elsewhere) == (circuit.ACQUIRER_UNREACHABLE, True)


@pytest.mark.django_db(transaction=True)
def test_a_full_account_sends_the_next_payment_elsewhere_at_once(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goals, P5: an acquirer that takes its time holds no more than its share."""
    slow, fast = Acquirer("slow"), Acquirer("fast")
    known(monkeypatch, slow, fast, guard=True)
    account(committed.channel, "slow")
    account(committed.channel, "fast")
    arrived, go = threading.Semaphore(0), threading.Event()
    slow.before = lambda: (arrived.release(), go.wait(PATIENCE_S))
    pay: Any = lambda: committed.api.pay(testMode="EXTERNAL").code  # noqa: E731

    def watch() -> str:
        for _ in range(2):
            assert arrived.acquire(timeout=PATIENCE_S)
        try:
            return str(pay())
        finally:
            go.set()

    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=2):
        assert at_once(pay, pay, watch) == [APPROVED] * 3
    assert (len(slow.booked), len(fast.booked)) == (2, 1)
    third = Payment.objects.get(connector="fast")
    assert third.route is not None
    assert third.route["tried"][0]["why"].startswith("full: ")
    assert (
        circuit.get_account_circuit("slow", ConnectorAccount(merchant="at slow", channel=committed.channel.pk)).waiting
        == 0
    )


@pytest.mark.django_db
def test_an_open_breaker_sends_payments_elsewhere_and_closes_when_the_acquirer_is_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Circuit breaker, over HTTP."""
    first, second = Acquirer("first", "down"), Acquirer("second")
    known(monkeypatch, first, second, guard=True)
    account(shop.channel, "first")
    account(shop.channel, "second")
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(5):
            assert shop.api.pay(testMode="EXTERNAL").code == APPROVED
    assert (len(first.asked), len(second.booked)) == (3, 5)
    first.behaviour = "approves"
    own = circuit.get_account_circuit("first", ConnectorAccount(merchant="at first", channel=shop.channel.pk))
    own.breaker._until = 0.0  # the pause is over
    for _ in range(3):
        assert shop.api.pay(testMode="EXTERNAL").code == APPROVED
    assert len(first.booked) == 3
    states = BreakerChange.objects.order_by("id").values_list("state", flat=True)
    assert list(states) == ["open", "half-open", "closed"]


@pytest.mark.django_db
def test_figures_tell_of_breakers_failovers_and_what_was_not_sent(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Health as metrics."""
    known(monkeypatch, Acquirer("figures-down", "down"), Acquirer("figures-up"), guard=True)
    account(shop.channel, "figures-down")
    account(shop.channel, "figures-up")
    with override_settings(GATEWAY_BREAKER_LEAST=2, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(3):
            assert shop.api.pay(testMode="EXTERNAL").code == APPROVED
    told = Client().get("/metrics").content.decode()
    for line in (
        'tollhouse_circuit_breaker_state{account="at figures-down",connector="figures-down"} 2.0',
        'tollhouse_payments_not_sent_total{by="breaker",connector="figures-down"} 1.0',
        'tollhouse_failovers_total{from_connector="figures-down",to_connector="figures-up"} 3.0',
        'tollhouse_acquirer_in_flight{account="at figures-up",connector="figures-up"} 0.0',
        'tollhouse_acquirer_seconds_count{connector="figures-down",outcome="retryable"} 3.0',
    ):
        assert line in told, line


def test_limits_of_time_that_do_not_nest_are_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """House: timeouts nest: two calls of a 3DS server, acquirers, the void of an approval < web worker."""
    monkeypatch.setenv("GATEWAY_WEB_TIMEOUT_S", "50")
    for within, wrong in ((9.0, False), (10.0, True)):
        with override_settings(GATEWAY_FAILOVER_WITHIN_S=within, GATEWAY_ACQUIRER_TIMEOUT_S=10.0):
            assert any(fault.id == "tollhouse.E019" for fault in run_checks()) is wrong


@pytest.mark.processes
@pytest.mark.parametrize(
    "given, found",
    [
        ({}, "32"),
        ({"GATEWAY_WEB_THREADS": "200"}, "100"),
        ({"GATEWAY_WEB_THREADS": "1"}, "1"),
        ({"GATEWAY_ACQUIRER_MAX_IN_FLIGHT": "6"}, "6"),
    ],
)
def test_one_account_gets_half_of_a_web_processs_threads(given: dict[str, str], found: str) -> None:
    """Goals, P5: with the defaults too, a slow acquirer leaves threads to the others."""
    ask = "import config.wsgi; from django.conf import settings as s; print(s.GATEWAY_ACQUIRER_MAX_IN_FLIGHT)"
    ours = ("GATEWAY_WEB_THREADS", "GATEWAY_ACQUIRER_MAX_IN_FLIGHT")
    bare = {name: value for name, value in os.environ.items() if name not in ours}
    told = subprocess.run([sys.executable, "-c", ask], env=bare | given, capture_output=True, text=True, check=True)
    assert told.stdout.split() == [found]


@pytest.mark.parametrize(
    "most, threads, warns", [("", "", False), ("64", "", True), ("63", "", False), ("64", "128", False)]
)
def test_an_account_that_may_hold_every_thread_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, most: str, threads: str, warns: bool
) -> None:
    """Goals, P5."""
    monkeypatch.setenv("GATEWAY_ACQUIRER_MAX_IN_FLIGHT", most)
    monkeypatch.setenv("GATEWAY_WEB_THREADS", threads)
    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=int(most or 64)):
        assert any(fault.id == "tollhouse.W020" for fault in run_checks()) is warns
