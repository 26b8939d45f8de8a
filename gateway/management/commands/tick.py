"""Run all timers without Celery and without a broker: once, or for ever."""

from __future__ import annotations

import signal
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import structlog
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError, connection

from gateway.db.environment import require_usable_database
from gateway.timers import due_times, registry

TICK_POLL_S: Final = 1.0

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Do everything that is due: each timer once. With --forever each as often as it says. Needs no broker."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--forever", action="store_true", help="go on until interrupted")

    def handle(self, *args: Any, forever: bool, **options: Any) -> None:
        try:
            require_usable_database()
        except ImproperlyConfigured as fault:
            raise CommandError(str(fault)) from None
        if forever:
            _for_ever(registry.TIMERS)
            return
        done = registry.run_all_timers()
        self.stdout.write(", ".join(f"{number} {name}" for name, number in done.items()))


def _for_ever(timers: Mapping[str, registry.Timer]) -> None:
    """Run each timer in a thread of its own, so that one that waits delays no other. On SIGTERM nothing more begins,
    and what runs comes to its end."""
    told_to_end: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: told_to_end.append(number))
    looks = due_times.DueLooks()
    running: dict[str, Future[None]] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(timers)), thread_name_prefix="timer") as pool:
        while not told_to_end:
            free = [name for name in timers if name not in running or running[name].done()]
            try:
                chosen = looks.choose_timers({name: timers[name].every_s for name in free})
            except (DatabaseError, InterfaceError):
                log.warning("due_timers_not_read")
                connection.close()
                chosen = []
            # The signal may come while the database is asked.
            for name in () if told_to_end else chosen:
                running[name] = pool.submit(_run, name)
            time.sleep(TICK_POLL_S)


def _run(name: str) -> None:
    """:func:`gateway.timers.registry.run_timer_now`, on a live connection: PostgreSQL may have gone since the last
    run."""
    if connection.connection is not None and not connection.is_usable():
        connection.close()
    registry.run_timer_now(name)
