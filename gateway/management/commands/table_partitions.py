"""Make and drop partitions now, as the timer does: for the role that owns the tables. See docs/running.md."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway.core import clock
from gateway.db import partitions
from gateway.timers import table_partitions
from gateway.timers.registry import run_timer_now


class Command(BaseCommand):
    help = "Make months of the tables that only grow ahead and drop those past their retention, as the timer does."

    def handle(self, *args: Any, **options: Any) -> None:
        for table in partitions.PARTITIONED_TABLES:
            if not partitions.owns_partitions(table):
                raise CommandError(f"The role of DATABASE_URL does not own {table.name}: run it as the owner.")
        # Through the timer: it takes the lease, so that two runs never overlap, and checks the clock first.
        done = run_timer_now(table_partitions.TIMER.name)
        if done is None:
            raise CommandError(
                "Nothing was done: it runs elsewhere, a clock is wrong, or it failed; see the log above."
            )
        self.stdout.write(f"{done} partitions made or dropped.")
        for table in partitions.PARTITIONED_TABLES:
            ahead = partitions.count_months_ahead(table, clock.real_now())
            number = len(partitions.list_partitions(table))
            kept = "for good" if table.retention is None else f"{table.retention.days} days"
            self.stdout.write(f"{table.name}: {number} partitions, {ahead} months ahead, {kept}.")
