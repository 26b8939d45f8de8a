"""Wake-ups: after a commit a timer with new work is woken at once; if that fails, the next tick finds the work.

A wake-up is only a hint. It costs its caller a flag; a thread of this process sends what is flagged, each timer at most
every WAKE_UP_PAUSE_S. While the broker is away, hints are dropped and sending is retried at longer intervals.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any, Final

import structlog
from celery import current_app
from django.conf import settings
from kombu.connection import Connection

from gateway.timers import registry

WAKE_UP_PAUSE_S: Final = 0.1
"""Pause between two wake-ups of this process: under load the worker takes many rows at a time."""
WAKE_UP_EXPIRY_S: Final = 5.0
"""Expiry of a wake-up message: a tick has come by then."""
MAX_QUEUED_WAKE_UPS: Final = 200
"""Messages in the broker above which none are sent: no worker is taking them."""
BACKLOG_CHECK_INTERVAL_S: Final = 1.0
BROKER_CONNECT_TIMEOUT_S: Final = 1.0
MAX_BROKER_PAUSE_S: Final = 30.0
RUN_TIMER_TASK: Final = "gateway.tasks.run_timer"

WEBHOOK_TIMER: Final = "webhooks"
"""The timer that delivers notifications to merchants, which several packages write."""

log = structlog.get_logger(__name__)


def notify_timer(name: str) -> None:
    """Wake the timer ``name``: it has work that is committed. Never waits, never raises; an unknown name or a missing
    broker has no effect."""
    if not settings.GATEWAY_WAKE_UPS or name not in registry.TIMERS:
        return
    _sender.flag(name)


class BrokerBacklog:
    """Number of messages waiting in the broker, read at most every BACKLOG_CHECK_INTERVAL_S; a worker that was away for
    a day must not find a million of them."""

    def __init__(self) -> None:
        self._looked = float("-inf")
        self._full = False

    def is_full(self, connection: Connection) -> bool:
        """True if no more should be sent. Raises the broker's errors when it is away."""
        if time.monotonic() - self._looked >= BACKLOG_CHECK_INTERVAL_S:
            self._looked = time.monotonic()
            self._full = count_queued_tasks(connection) >= MAX_QUEUED_WAKE_UPS
        return self._full


def count_queued_tasks(connection: Connection) -> int:
    """Tasks in the broker that no worker has taken. Raises the broker's errors when it is away."""
    channel: Any = connection.channel()  # type: ignore[no-untyped-call]
    try:
        return _count_by_channel(channel, connection)
    finally:
        with suppress(Exception):
            channel.close()


def _count_by_channel(channel: Any, connection: Connection) -> int:
    try:
        return int(channel.queue_declare(queue=current_app.conf.task_default_queue, passive=True).message_count)
    except connection.channel_errors:
        return 0  # no worker has made the queue yet, or it is empty: Redis forgets empty lists


class QueuedTasks:
    """Number of tasks in the broker that no worker has taken, for who asks again and again. A connection to Redis is
    kept, as opening one takes ten times as long as the question; one to RabbitMQ is not: its answers have no limit of
    time, and somebody would have to send its heartbeats."""

    def __init__(self) -> None:
        self._line: Connection | None = None
        self._channel: Any = None

    def count(self) -> int:
        """The number; 0 while the broker is away. Never raises."""
        try:
            if self._line is None:
                self._line = open_broker_connection()
                self._channel = self._line.channel()  # type: ignore[no-untyped-call]
            found = _count_by_channel(self._channel, self._line)
            if not current_app.conf.broker_write_url.startswith("redis"):
                self.close()
            return found
        except Exception:
            self.close()
            return 0

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        line, self._line, self._channel = self._line, None, None
        if line is not None:
            with suppress(Exception):
                line.release()  # type: ignore[no-untyped-call]


class _Sender:
    """One thread that sends wake-ups, started by the first one; after a fork the child starts its own."""

    def __init__(self) -> None:
        self._starting = threading.Lock()
        self._pid = 0
        self._flagged: set[str] = set()
        self._something = threading.Event()

    def flag(self, name: str) -> None:
        if self._pid != os.getpid():
            self._start()
        self._flagged.add(name)
        if not self._something.is_set():
            self._something.set()

    def _start(self) -> None:
        # A fork may have come while another thread held the lock: then this child does without wake-ups once.
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._pid != os.getpid():
                self._flagged, self._something = set(), threading.Event()
                threading.Thread(target=self._work, name="wake-ups", daemon=True).start()
                self._pid = os.getpid()
        finally:
            self._starting.release()

    def _work(self) -> None:
        away_s = 0.0
        while True:
            try:
                self._send_for_ever()
            except Exception as fault:
                # Rarely logged: while the broker is away, ticks by `manage.py tick` (if it runs) do the work.
                if away_s == 0.0:
                    log.warning("broker_unreachable", fault=type(fault).__qualname__)
                away_s = min(MAX_BROKER_PAUSE_S, max(1.0, away_s * 2))
                time.sleep(away_s)
                self._flagged.clear()

    def _send_for_ever(self) -> None:
        waiting = BrokerBacklog()
        with open_broker_connection() as line, line.Producer() as producer:
            while True:
                self._something.wait()
                self._something.clear()
                while self._flagged:
                    name = self._flagged.pop()
                    if not waiting.is_full(line):
                        current_app.send_task(
                            RUN_TIMER_TASK, args=[name], expires=WAKE_UP_EXPIRY_S, producer=producer, retry=False
                        )
                time.sleep(WAKE_UP_PAUSE_S)


def open_broker_connection() -> Connection:
    """A new connection to the broker with a short timeout, for callers that must not wait."""
    options = dict(current_app.conf.broker_transport_options)
    if current_app.conf.broker_write_url.startswith("redis"):
        options |= {"socket_connect_timeout": BROKER_CONNECT_TIMEOUT_S, "socket_timeout": BROKER_CONNECT_TIMEOUT_S}
    made: Connection = current_app.connection_for_write(
        connect_timeout=BROKER_CONNECT_TIMEOUT_S, transport_options=options
    )
    return made


_sender: Final = _Sender()
