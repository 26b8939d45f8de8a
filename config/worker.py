"""A Celery worker that notices when it takes no more tasks, and says goodbye: whoever watches it starts it again.

What works for all others here only wakes up by the broker's tasks: the question after a payment in doubt, subscription
jobs, webhooks. A worker that is alive and takes nothing is worse than one that is dead. Two faults of that kind are
known of kombu's Redis transport, both after the broker was away: acknowledgements that failed are written to the log
and forgotten, and each keeps a slot of the worker taken for ever; and a connection that came back is not read from.
The first is mended here; what else there may be, a watchdog finds.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from typing import Any, Final

import structlog
from celery import bootsteps
from celery.worker import state
from django.conf import settings
from kombu.transport import redis

from gateway.db.environment import require_own_environment
from gateway.timers import wakeup

LIVENESS_CHECK_INTERVAL_S: Final = 2.0
SHUTDOWN_GRACE_S: Final = 10.0
"""How long tasks that run may go on before the process ends without them; their rows are leased and come back."""

log = structlog.get_logger(__name__)


class WorkerLiveness:
    """Whether the worker hears: deaf is who has taken nothing for ``patience_s`` seconds in which, at every look, a
    task waited and a process was free."""

    def __init__(self, patience_s: float, now: float) -> None:
        self._patience_s = patience_s
        self._heard_at = now
        self._taken = 0

    def is_stalled(self, now: float, *, taken: int, waiting: int, is_free: bool) -> bool:
        """``taken``: tasks since the start. ``waiting``: tasks in the broker. ``is_free``: a process has no task."""
        if taken != self._taken or not waiting or not is_free:
            self._taken, self._heard_at = taken, now
        return now - self._heard_at >= self._patience_s


class WorkerWatchdog(bootsteps.StartStopStep):  # type: ignore[misc]
    """A thread of the worker's main process that looks after its hearing. GATEWAY_WORKER_DEAF_S; 0: nobody looks."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, parent: Any, **options: Any) -> None:
        self._over = threading.Event()
        super().__init__(parent, **options)

    def start(self, parent: Any) -> None:
        if settings.GATEWAY_WORKER_DEAF_S > 0:
            threading.Thread(target=self._watch, args=[parent], name="watchdog", daemon=True).start()

    def stop(self, parent: Any) -> None:
        self._over.set()

    def _watch(self, worker: Any) -> None:
        hearing = WorkerLiveness(settings.GATEWAY_WORKER_DEAF_S, time.monotonic())
        while not self._over.wait(LIVENESS_CHECK_INTERVAL_S):
            waiting = 0
            # A broker that is away has nothing that could be taken; Celery itself waits for it.
            with suppress(Exception), wakeup.open_broker_connection() as line:
                waiting = wakeup.count_queued_tasks(line)
            taken, is_free = state.all_total_count[0], len(state.active_requests) < worker.concurrency
            if hearing.is_stalled(time.monotonic(), taken=taken, waiting=waiting, is_free=is_free):
                log.critical("worker_deaf", waiting=waiting, taken=taken, for_s=settings.GATEWAY_WORKER_DEAF_S)
                self._leave()

    def _leave(self) -> None:
        """Ask Celery to stop, which ends this thread with the process; whoever is still here then is ended."""
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(SHUTDOWN_GRACE_S)
        log.critical("worker_deaf_and_does_not_stop", after_s=SHUTDOWN_GRACE_S)
        os._exit(1)


class BrokerMessage(redis.Channel.Message):  # type: ignore[misc, valid-type]
    """A task off the broker whose failed acknowledgement makes the worker connect anew: with the old connection goes
    the slot that it took, and the task is delivered again, as after any loss of the broker."""

    def ack_log_error(self, logger: Any, errors: Any, multiple: bool = False) -> None:
        """Acknowledge. Raises what the connection raises; the worker's loop knows what to do."""
        try:
            self.ack(multiple=multiple)
        except errors as fault:
            log.warning("task_not_acknowledged", tag=self.delivery_tag, fault=type(fault).__qualname__)
            raise


def install_watchdog(app: Any) -> None:
    """Raises ImproperlyConfigured on a database of the other environment: such a worker does nothing."""
    require_own_environment()
    app.steps["worker"].add(WorkerWatchdog)
    redis.Channel.Message = BrokerMessage
