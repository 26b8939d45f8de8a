"""Breakers and bulkheads: an acquirer that does not answer is left alone, and holds no more than its share.

Source: issue 9; goals, P5; docs/routing.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client, override_settings

from gateway.connectors import guarded
from gateway.connectors.breaker import MOST_PAUSES, PROBES, Breaker, Limits, State
from gateway.connectors.guarded import OUT_OF_REACH
from gateway.connectors.port import Account, AcquirerReply, AcquirerRequest, Silence
from gateway.models import BreakerChange, Payment
from gateway.money import Money
from tests.support.acquirers import APPROVED, Acquirer, account, known
from tests.support.fixtures import Shop
from tests.support.threads import PATIENCE_S, at_once

LIMITS = Limits(share=0.5, least=4, window_s=30.0, pause_s=10.0)
OFTEN = {"GATEWAY_BREAKER_LEAST": 3, "GATEWAY_BREAKER_PAUSE_S": 0.0}


class Time:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def breaker(now: Time) -> Breaker:
    return Breaker(lambda: LIMITS, now)


def let_in(found: Breaker) -> int:
    """The turn of a payment that is sent."""
    turn, _moved = found.enter()
    assert turn is not None
    return turn


def opened(now: Time) -> Breaker:
    found = breaker(now)
    for _ in range(LIMITS.least):
        moved = found.failed("no line", let_in(found))
    assert moved is not None
    assert moved.state is State.OPEN
    assert "no line" in moved.why
    return found


def test_a_breaker_opens_by_the_share_of_questions_that_found_nobody() -> None:
    """Issue 9: opens after a share of silences and unreachables within a window."""
    now = Time()
    assert opened(now).enter() == (None, None)
    mixed = breaker(now)
    for _ in range(3):
        mixed.answered(let_in(mixed))
    assert [mixed.failed("x", let_in(mixed)) for _ in range(2)] == [None, None]
    assert mixed.failed("x", let_in(mixed)) is not None


def test_a_few_questions_and_old_ones_open_nothing() -> None:
    """Issue 9: within a window, of at least so many."""
    now = Time()
    found = breaker(now)
    for _ in range(20):
        assert found.failed("x", let_in(found)) is None
        now.at += LIMITS.window_s / 2
    assert found.state is State.CLOSED


def test_after_its_pause_single_payments_try_and_two_answers_close_it() -> None:
    """Issue 9: half-open probes, closes again."""
    now = Time()
    found = opened(now)
    now.at += LIMITS.pause_s
    turn, moved = found.enter()
    assert turn is not None
    assert moved is not None
    assert moved.state is State.HALF_OPEN
    assert found.enter() == (None, None)
    assert found.answered(turn) is None
    moved = found.answered(let_in(found))
    assert PROBES == 2
    assert moved is not None
    assert moved.state is State.CLOSED
    assert found.enter()[0] is not None


def test_a_try_that_finds_nobody_opens_it_again_and_one_that_says_nothing_frees_the_place() -> None:
    """Issue 9: half-open probes."""
    now = Time()
    found = opened(now)
    now.at += LIMITS.pause_s
    found.gave_up(let_in(found))
    moved = found.failed("still nobody", let_in(found))
    assert moved is not None
    assert moved.state is State.OPEN
    assert found.enter() == (None, None)


def test_inquiries_are_counted_and_decide_nothing_while_payments_try() -> None:
    """Issue 9: recovery's inquiries are not blocked, and feed it."""
    now = Time()
    found = breaker(now)
    moves = [found.failed("x") for _ in range(LIMITS.least)]
    assert moves[-1] is not None
    now.at += LIMITS.pause_s - 1
    assert found.failed("x") is None
    now.at += 2
    assert found.enter() == (None, None)
    now.at += LIMITS.pause_s
    assert found.enter()[0] is not None
    for _ in range(PROBES):
        assert found.answered() is None
    assert found.failed("x") is None
    assert found.state is State.HALF_OPEN


def test_inquiries_that_find_nobody_for_ever_keep_no_account_shut() -> None:
    """A payment that its host never gives a word about is asked about without end."""
    now = Time()
    found = opened(now)
    for _ in range(10 * MOST_PAUSES):
        now.at += LIMITS.pause_s / 2
        found.failed("the host did not take it back: 21")
        if found.enter()[0] is not None:
            break
    assert found.state is State.HALF_OPEN
    assert now.at == MOST_PAUSES * LIMITS.pause_s


def test_payments_sent_before_it_opened_are_no_tries_and_open_nothing_once_it_is_closed() -> None:
    """Review of issue 9, 12: forty wait while it opens; what they come to says how the acquirer was before."""
    now = Time()
    found = breaker(now)
    early = [let_in(found) for _ in range(40)]
    for _ in range(LIMITS.least):
        found.failed("no line", let_in(found))
    now.at += LIMITS.pause_s
    turn = let_in(found)
    # Neither an answer, nor a silence, nor a fault of ours of the early ones changes anything, or lets another try.
    assert [found.answered(early.pop()) for _ in range(PROBES + 1)] == [None] * (PROBES + 1)
    assert found.failed("late silence", early.pop()) is None
    found.gave_up(early.pop())
    assert found.enter() == (None, None)
    assert found.state is State.HALF_OPEN
    found.answered(turn)
    moved = found.answered(let_in(found))
    assert moved is not None
    assert moved.state is State.CLOSED
    assert [found.failed("late silence", turn) for turn in early] == [None] * len(early)
    assert found.state is State.CLOSED


# --- around a connector -------------------------------------------------------------------------------------------


def request(merchant: str = "M-1", channel: uuid.UUID | None = None) -> AcquirerRequest:
    return AcquirerRequest(
        payment=uuid.uuid4(), operation="DB", money=Money.parse("92.00", "EUR"), brand="VISA",
        at=datetime.now(UTC), account=Account(merchant=merchant, channel=channel or uuid.uuid4()),
    )  # fmt: skip


@pytest.mark.django_db
def test_declines_never_open_a_breaker() -> None:
    """Issue 9: never counts declines."""
    inner, asked = Acquirer("one", "declines"), request()
    with override_settings(**OFTEN):
        for _ in range(20):
            assert not guarded.guarded(inner).submit(asked).elsewhere
    assert not BreakerChange.objects.exists()


@pytest.mark.django_db
def test_each_account_has_a_breaker_of_its_own() -> None:
    """Issue 9: per connector and account."""
    one, channel = guarded.guarded(Acquirer("one", "down")), uuid.uuid4()
    other = request("M-2", channel)
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(4):
            reply = one.submit(request("M-1", channel))
        assert (reply.code, reply.elsewhere, dict(reply.sent)) == (OUT_OF_REACH, True, {})
        assert "breaker" in reply.received
        assert one.submit(other).received == {"unreachable": "no line"}
    [change] = BreakerChange.objects.all()
    assert (change.connector, change.account, change.channel, change.state) == ("one", "M-1", channel, "open")
    assert "no line" in change.why


@pytest.mark.django_db
def test_inquiries_and_voids_pass_an_open_breaker() -> None:
    """Issue 9: recovery's inquiries are not blocked by an open breaker."""
    inner, asked = Acquirer("one", "silent"), request()
    one = guarded.guarded(inner)
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(3):
            with pytest.raises(Silence):
                one.submit(asked)
        assert one.submit(asked).elsewhere
        one.inquire(asked)
        one.void(asked)
    assert inner.kinds == ["submit", "submit", "submit", "inquire", "void"]


@pytest.mark.django_db
def test_a_payment_that_is_asked_about_for_ever_opens_no_breaker() -> None:
    """A host that refuses a void for good has answered; each try of it is no new sign that nobody is there."""
    inner, stuck = Acquirer("one"), request()
    inner.void = silent  # type: ignore[method-assign]
    one = guarded.guarded(inner)
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(20):
            with pytest.raises(Silence):
                one.void(stuck)
        assert one.submit(replace(stuck, payment=uuid.uuid4())).code == APPROVED
        for _ in range(3):
            with pytest.raises(Silence):
                one.void(replace(stuck, payment=uuid.uuid4()))
        assert one.submit(replace(stuck, payment=uuid.uuid4())).elsewhere
    assert not guarded.gate("one", stuck.account).breaker.enter()[0]


def silent(asked: AcquirerRequest) -> AcquirerReply:
    raise Silence("the host did not take it back: 21", {})


@pytest.mark.django_db
def test_a_fault_of_ours_says_nothing_about_the_acquirer_and_frees_its_place() -> None:
    """Issue 9: bounded in flight."""
    inner, asked = Acquirer("one"), request()
    inner.before = lambda: 1 / 0
    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=1, **OFTEN):
        for _ in range(5):
            with pytest.raises(ZeroDivisionError):
                guarded.guarded(inner).submit(asked)
        inner.before = lambda: None
        assert guarded.guarded(inner).submit(asked).code == APPROVED


@pytest.mark.django_db
def test_an_account_that_answers_fast_takes_a_burst_one_after_the_other() -> None:
    """A burst of payments is no reason to decline any of them."""
    fast = guarded.guarded(Acquirer("quick"))
    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=1):
        replies = at_once(*[partial(fast.submit, request()) for _ in range(4)])
    assert [reply.code for reply in replies] == [APPROVED] * 4


@pytest.mark.django_db
def test_an_account_that_is_slow_is_not_waited_for() -> None:
    """Whoever waited for it would hold a thread that others need."""
    slow, asked = guarded.guarded(Acquirer("sluggish")), request()
    own = guarded.gate("sluggish", asked.account)
    own.usual_s, own.waiting = 2 * guarded.FAST_S, 1
    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=1):
        reply = slow.submit(asked)
    own.waiting = 0
    assert (reply.code, reply.elsewhere) == (guarded.OUT_OF_REACH, True)


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
    assert guarded.gate("slow", Account(merchant="at slow", channel=committed.channel.pk)).waiting == 0


@pytest.mark.django_db
def test_an_open_breaker_sends_payments_elsewhere_and_closes_when_the_acquirer_is_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 9: circuit breaker, over HTTP."""
    first, second = Acquirer("first", "down"), Acquirer("second")
    known(monkeypatch, first, second, guard=True)
    account(shop.channel, "first")
    account(shop.channel, "second")
    with override_settings(GATEWAY_BREAKER_LEAST=3, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(5):
            assert shop.api.pay(testMode="EXTERNAL").code == APPROVED
    assert (len(first.asked), len(second.booked)) == (3, 5)
    first.behaviour = "approves"
    own = guarded.gate("first", Account(merchant="at first", channel=shop.channel.pk))
    own.breaker._until = 0.0  # the pause is over
    for _ in range(3):
        assert shop.api.pay(testMode="EXTERNAL").code == APPROVED
    assert len(first.booked) == 3
    states = BreakerChange.objects.order_by("id").values_list("state", flat=True)
    assert list(states) == ["open", "half-open", "closed"]


@pytest.mark.django_db
def test_figures_tell_of_breakers_failovers_and_what_was_not_sent(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 9: health as metrics."""
    known(monkeypatch, Acquirer("figures-down", "down"), Acquirer("figures-up"), guard=True)
    account(shop.channel, "figures-down")
    account(shop.channel, "figures-up")
    with override_settings(GATEWAY_BREAKER_LEAST=2, GATEWAY_BREAKER_PAUSE_S=1_000.0):
        for _ in range(3):
            assert shop.api.pay(testMode="EXTERNAL").code == APPROVED
    told = Client().get("/metrics").content.decode()
    for line in (
        'tollhouse_breaker_state{account="at figures-down",connector="figures-down"} 2.0',
        'tollhouse_acquirer_refused_total{by="breaker",connector="figures-down"} 1.0',
        'tollhouse_failovers_total{from_connector="figures-down",to_connector="figures-up"} 3.0',
        'tollhouse_acquirer_in_flight{account="at figures-up",connector="figures-up"} 0.0',
        'tollhouse_acquirer_seconds_count{connector="figures-down",outcome="elsewhere"} 3.0',
    ):
        assert line in told, line


def test_limits_of_time_that_do_not_nest_are_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """House: timeouts nest: acquirer < web worker."""
    monkeypatch.setenv("GATEWAY_WEB_TIMEOUT_S", "30")
    for within, wrong in ((9.0, False), (10.0, True)):
        with override_settings(GATEWAY_FAILOVER_WITHIN_S=within, GATEWAY_ACQUIRER_TIMEOUT_S=10.0):
            assert any(fault.id == "tollhouse.E019" for fault in run_checks()) is wrong


@pytest.mark.parametrize(
    "given, found",
    [({}, "4"), ({"GATEWAY_WEB_THREADS": "200"}, "100"), ({"GATEWAY_WEB_THREADS": "1"}, "1"),
     ({"GATEWAY_ACQUIRER_MAX_IN_FLIGHT": "6"}, "6")],
)  # fmt: skip
def test_one_account_gets_half_of_a_web_processs_threads(given: dict[str, str], found: str) -> None:
    """Goals, P5: with the defaults too, a slow acquirer leaves threads to the others."""
    ask = "import config.wsgi; from django.conf import settings as s; print(s.GATEWAY_ACQUIRER_MAX_IN_FLIGHT)"
    ours = ("GATEWAY_WEB_THREADS", "GATEWAY_ACQUIRER_MAX_IN_FLIGHT")
    bare = {name: value for name, value in os.environ.items() if name not in ours}
    told = subprocess.run([sys.executable, "-c", ask], env=bare | given, capture_output=True, text=True, check=True)
    assert told.stdout.split() == [found]


@pytest.mark.parametrize(
    "most, threads, warns", [("", "", False), ("8", "", True), ("7", "", False), ("8", "16", False)]
)
def test_an_account_that_may_hold_every_thread_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, most: str, threads: str, warns: bool
) -> None:
    """Goals, P5."""
    monkeypatch.setenv("GATEWAY_ACQUIRER_MAX_IN_FLIGHT", most)
    monkeypatch.setenv("GATEWAY_WEB_THREADS", threads)
    with override_settings(GATEWAY_ACQUIRER_MAX_IN_FLIGHT=int(most or 64)):
        assert any(fault.id == "tollhouse.W020" for fault in run_checks()) is warns
