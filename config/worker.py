"""A watchdog for Celery workers: a worker that takes no more tasks ends, so that its supervisor starts it again.

Background work (recovery of payments in doubt, subscription jobs, webhooks) only wakes up by the broker's tasks. A
worker that is alive and takes none is worse than one that is dead. Two such faults of kombu's Redis transport are
known, both after the broker was away: failed acknowledgements are logged and forgotten, and each occupies a slot of
the worker for ever; and a connection that came back is not read from. The first is fixed here; the watchdog finds
others.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any, Final

import structlog
from celery import bootsteps
from celery.worker import state
from django.conf import settings
from kombu.transport import redis

from gateway.core.brands import load_bin_tables
from gateway.db.environment import require_usable_database
from gateway.timers import wakeup

LIVENESS_CHECK_INTERVAL_S: Final = 2.0
SHUTDOWN_GRACE_S: Final = 10.0
"""How long running tasks may continue before the process ends without them; their rows are leased and come back."""

log = structlog.get_logger(__name__)


class WorkerLiveness:
    """Detects a stalled worker: it has taken nothing for ``patience_s`` seconds, and at every check within them a task
    waited and a process was free."""

    def __init__(self, patience_s: float, now: float) -> None:
        self._patience_s = patience_s
        self._heard_at = now
        self.taken = 0

    def is_stalled(self, now: float, *, taken: int, waiting: int, is_free: bool) -> bool:
        """``taken``: tasks since the start. ``waiting``: tasks in the broker. ``is_free``: a process has no task."""
        if taken != self.taken or not waiting or not is_free:
            self.taken, self._heard_at = taken, now
        return now - self._heard_at >= self._patience_s


class WorkerWatchdog(bootsteps.StartStopStep):  # type: ignore[misc]
    """A thread of the worker's main process that checks its liveness (GATEWAY_WORKER_STALLED_S; 0: off) and, in a
    worker with threads, how long tasks run (GATEWAY_TIMER_LIMIT_S)."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        self._over = threading.Event()
        super().__init__(parent, **options)

    def start(self, parent: Any) -> None:
        if settings.GATEWAY_WORKER_STALLED_S > 0 or settings.GATEWAY_TIMER_LIMIT_S > 0:
            threading.Thread(target=self._watch, args=[parent], name="watchdog", daemon=True).start()

    def stop(self, parent: Any) -> None:
        self._over.set()

    def _watch(self, worker: Any) -> None:
        hearing = WorkerLiveness(settings.GATEWAY_WORKER_STALLED_S, time.monotonic())
        queued = wakeup.QueuedTasks()
        while not self._over.wait(LIVENESS_CHECK_INTERVAL_S):
            if (over := _find_overdue_task(worker, time.time())) is not None:
                log.critical("task_over_time_limit", task=over, limit_s=settings.GATEWAY_TIMER_LIMIT_S)
                self._leave()
            # One that takes tasks need not be asked what waits. While the broker is away nothing does.
            waiting = queued.count() if state.all_total_count[0] == hearing.taken else 0
            taken, is_free = state.all_total_count[0], len(state.active_requests) < worker.concurrency
            if settings.GATEWAY_WORKER_STALLED_S > 0 and hearing.is_stalled(
                time.monotonic(), taken=taken, waiting=waiting, is_free=is_free
            ):
                log.critical("worker_stalled", waiting=waiting, taken=taken, for_s=settings.GATEWAY_WORKER_STALLED_S)
                self._leave()

    def _leave(self) -> None:
        """Ask Celery to stop, which ends the process and this thread; if it does not, kill the process."""
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(SHUTDOWN_GRACE_S)
        log.critical("worker_stalled_and_does_not_stop", after_s=SHUTDOWN_GRACE_S)
        os._exit(1)


def _find_overdue_task(worker: Any, now: float) -> str | None:
    """Arguments of a task that runs for longer than GATEWAY_TIMER_LIMIT_S. A pool of processes ends them itself; of
    threads none can be ended alone."""
    if worker.pool_cls.__module__ != "celery.concurrency.thread":
        return None
    started = {request.argsrepr or "": request.time_start for request in tuple(state.active_requests)}
    return next((name for name, at in started.items() if at and now - at > settings.GATEWAY_TIMER_LIMIT_S), None)


class BrokerMessage(redis.Channel.Message):  # type: ignore[misc, valid-type]
    """A task message whose failed acknowledgement makes the worker reconnect: the occupied slot goes with the old
    connection, and the task is delivered again, as after any loss of the broker."""

    def ack_log_error(self, logger: Any, errors: Any, multiple: bool = False) -> None:
        """Acknowledge. Raises the connection's errors, which the worker's loop handles."""
        try:
            self.ack(multiple=multiple)
        except errors as fault:
            log.warning("task_not_acknowledged", tag=self.delivery_tag, fault=type(fault).__qualname__)
            raise


def install_watchdog(app: Any) -> None:
    """Add the watchdog. Raises ImproperlyConfigured if the database belongs to the other environment, BinTableError if
    the table of BINs cannot be read: it is read here, not in the first charge."""
    require_usable_database()
    load_bin_tables(settings.GATEWAY_BIN_FILE, settings.IS_LIVE)
    app.steps["worker"].add(WorkerWatchdog)
    redis.Channel.Message = BrokerMessage
