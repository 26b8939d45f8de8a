"""Wake-ups: sent soon, together, and never waited for. The broker here is a real one."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.test import override_settings
from kombu import Connection

from config.launcher.broker import Broker
from gateway.core import clock
from gateway.models import Payment
from gateway.risk import risk_store
from gateway.risk.evaluation import RiskOutcome, RiskVerdict
from gateway.timers import wakeup
from tests.support.fixtures import Shop

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("broker")
    (folder / "log").mkdir()
    broker = Broker(folder)
    try:
        yield broker.start()
    finally:
        broker.stop()


@pytest.fixture
def broker(url: str) -> Iterator[str]:
    """An empty broker, with wake-ups switched on and a sender that knows nothing yet."""
    with BrokerAt(url):
        purge()
        yield url


class BrokerAt:
    """The application speaks with the broker at ``url`` for the time of the block."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._settings = override_settings(GATEWAY_WAKE_UPS=True)

    def __enter__(self) -> None:
        conf = current_app.conf
        self._before: tuple[Any, ...] = (conf.broker_write_url, wakeup._sender)
        conf.broker_write_url = self._url
        wakeup._sender = wakeup._Sender()  # type: ignore[misc]
        self._settings.enable()

    def __exit__(self, *_: object) -> None:
        self._settings.disable()
        current_app.conf.broker_write_url, wakeup._sender = self._before  # type: ignore[misc]


def purge() -> None:
    with wakeup.open_broker_connection() as line:
        line.default_channel.queue_purge(current_app.conf.task_default_queue)


def waiting() -> int:
    with wakeup.open_broker_connection() as line:
        return wakeup.count_queued_tasks(line)


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def test_a_wake_up_arrives_as_the_timers_task(broker: str) -> None:
    """gateway.timers.wakeup."""
    wakeup.notify_timer("recovery")
    assert eventually(lambda: waiting() == 1)
    with wakeup.open_broker_connection() as line:
        message = line.SimpleQueue(current_app.conf.task_default_queue).get(timeout=PATIENCE_S)
        message.ack()
    assert message.headers["task"] == "gateway.tasks.run_timer"
    assert message.payload[0] == ["recovery"]
    assert message.headers["expires"]


def test_a_thousand_wake_ups_are_a_few_messages(broker: str) -> None:
    """Coalesced: under load the worker takes many rows at a time."""
    for _ in range(1_000):
        wakeup.notify_timer("recovery")
    wakeup.notify_timer("shopper deadlines")
    assert eventually(lambda: waiting() >= 2)
    assert waiting() < 20


def test_what_waits_is_asked_for_again_and_again_over_one_connection(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while nothing waits, and once more after the broker was away: nothing waits then, and nothing is raised."""
    opened: list[Connection] = []
    open_one = wakeup.open_broker_connection

    def note() -> Connection:
        opened.append(open_one())
        return opened[-1]

    monkeypatch.setattr(wakeup, "open_broker_connection", note)
    queued = wakeup.QueuedTasks()
    try:
        assert [queued.count(), queued.count()] == [0, 0]
        with open_one() as line, line.Producer() as producer:
            current_app.send_task(wakeup.RUN_TIMER_TASK, args=["recovery"], producer=producer)
        assert [queued.count(), queued.count()] == [1, 1]
        assert len(opened) == 1
        with monkeypatch.context() as away:
            away.setattr(queued._channel, "queue_declare", refuse)
            assert queued.count() == 0
        assert [queued.count(), queued.count()] == [1, 1]
        assert len(opened) == 2
    finally:
        queued.close()


def refuse(*_: object, **__: object) -> None:
    raise ConnectionResetError


def test_a_name_that_is_no_timers_wakes_nobody(broker: str) -> None:
    """Parts of the product that are not installed have no timer."""
    wakeup.notify_timer("no such timer")
    wakeup.notify_timer("recovery")
    assert eventually(lambda: waiting() == 1)


def test_wake_ups_may_be_off(broker: str) -> None:
    """Where `manage.py tick` does the work."""
    with override_settings(GATEWAY_WAKE_UPS=False):
        wakeup.notify_timer("recovery")
    assert wakeup._sender._pid == 0


def test_nothing_more_is_sent_when_nobody_takes_what_is_there(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is away for a day must not find a million messages."""
    monkeypatch.setattr(wakeup, "MAX_QUEUED_WAKE_UPS", 3)
    with wakeup.open_broker_connection() as line, line.Producer() as producer:
        for _ in range(3):
            current_app.send_task(wakeup.RUN_TIMER_TASK, args=["recovery"], producer=producer)
        assert wakeup.BrokerBacklog().is_full(line)
        wakeup.notify_timer("recovery")
        assert eventually(lambda: not wakeup._sender._flagged)
        assert waiting() == 3
        purge()
        assert not wakeup.BrokerBacklog().is_full(line)


def test_without_a_broker_nobody_waits_and_nothing_is_raised() -> None:
    """A broker that is down, and one that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as deaf:
        for port in (1, deaf.getsockname()[1]):
            with BrokerAt(f"redis://127.0.0.1:{port}/0"):
                for _ in range(10_000):
                    wakeup.notify_timer("recovery")
                assert wakeup._sender._pid == os.getpid()


def test_wake_ups_come_again_after_the_broker_was_away(tmp_path: Path) -> None:
    """It is tried again, by itself."""
    (tmp_path / "log").mkdir()
    broker = Broker(tmp_path)
    with BrokerAt(broker.start()):
        try:
            wakeup.notify_timer("recovery")
            assert eventually(lambda: waiting() == 1)
            assert broker.pid is not None
            os.kill(broker.pid, signal.SIGKILL)
            assert eventually(lambda: broker.exit_code() is not None)
            wakeup.notify_timer("recovery")
            broker.start()

            def told_again() -> bool:
                wakeup.notify_timer("shopper deadlines")
                return waiting() >= 2

            assert eventually(told_again)
        finally:
            broker.stop()


def test_a_forked_child_sends_its_own(broker: str) -> None:
    """gunicorn forks its workers: a thread of the parent is not the child's."""
    wakeup.notify_timer("recovery")
    assert eventually(lambda: waiting() == 1)
    child = os.fork()
    if child == 0:
        wakeup.notify_timer("shopper deadlines")
        time.sleep(PATIENCE_S)  # it is killed below
        os._exit(0)
    try:
        assert eventually(lambda: waiting() == 2)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_decision_of_the_risk_rules_is_told_at_once(shop: Shop, url: str) -> None:
    """It is an event of its own, and the payment may go on to wait for its shopper for a long time."""
    payment = Payment.objects.get(pk=shop.api.pay().id)
    with BrokerAt(url):
        purge()
        verdict = RiskVerdict(outcome=RiskOutcome.REVIEW, code="000.400.000", score=60)
        assert risk_store.record_decision(payment, verdict, None, answer={}, at=clock.real_now())
        assert eventually(lambda: waiting() == 1)
        with wakeup.open_broker_connection() as line:
            message = line.SimpleQueue(current_app.conf.task_default_queue).get(timeout=PATIENCE_S)
            message.ack()
    assert message.payload[0] == ["webhooks"]
