"""Archives every payment that is old enough at a later time, and takes the time of it: a process of
tests.benchmarks.archive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from unittest import mock
from uuid import UUID

from django.db import connection

from gateway.core import clock
from gateway.personal_data import payment_archiving


@dataclass(slots=True, kw_only=True)
class ArchiveTimes:
    """``moved`` payments, the seconds and the processor's seconds of all runs; seconds of each transaction and
    statement."""

    moved: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    transactions: list[float] = field(default_factory=list)
    statements: list[float] = field(default_factory=list)


def time_archiving(ahead: timedelta) -> ArchiveTimes:
    """Run the timer, as it would run after so much time, until nothing is left for it."""
    found = ArchiveTimes()
    now, move = clock.real_now, payment_archiving._archive_chains

    def timed_move(firsts: Sequence[UUID], limit: UUID) -> int:
        began = time.perf_counter()
        moved = move(firsts, limit)
        found.transactions.append(time.perf_counter() - began)
        return moved

    def timed_statement(execute: Callable[..., Any], *statement: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(*statement)
        finally:
            found.statements.append(time.perf_counter() - began)

    def later() -> datetime:
        return now() + ahead

    with (
        mock.patch.object(clock, "real_now", later),
        mock.patch.object(payment_archiving, "_archive_chains", timed_move),
        connection.execute_wrapper(timed_statement),
    ):
        while True:
            began, cpu = time.perf_counter(), time.process_time()
            moved = payment_archiving.archive_old_payments()
            if not moved:
                return found
            found.moved += moved
            found.seconds += time.perf_counter() - began
            found.cpu += time.process_time() - cpu
