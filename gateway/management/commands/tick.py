"""Do what is due, without Celery: once, or every second for ever."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, Final

import structlog
from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError, connection

from gateway import tasks

TICK_EVERY_S: Final = 1.0
SWEEP_EVERY_S: Final = 60.0

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Do what is due: ask about payments in doubt, throw away what has had its time. Needs no broker."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--forever", action="store_true", help="go on every second until interrupted")

    def handle(self, *args: Any, forever: bool, **options: Any) -> None:
        if not forever:
            done = tasks.tick() | tasks.sweep()
            self.stdout.write(", ".join(f"{number} {what}" for what, number in done.items()))
            return
        due: list[tuple[float, Callable[[], object], float]] = [
            (TICK_EVERY_S, tasks.tick, 0.0),
            (SWEEP_EVERY_S, tasks.sweep, 0.0),
        ]
        while True:
            now = time.monotonic()
            due = [(every, work, _run(every, work, at, now)) for every, work, at in due]
            time.sleep(max(0.0, min(at for _, _, at in due) - time.monotonic()))


def _run(every_s: float, work: Callable[[], object], at: float, now: float) -> float:
    """Do ``work`` if its time has come; when it is due next. A database that is away is waited for."""
    if now < at:
        return at
    try:
        work()
    except (DatabaseError, InterfaceError):
        log.exception("tick_failed")
        connection.close()
    return now + every_s
