"""The timer of the tables that only grow: makes their months ahead and drops those past their retention."""

from __future__ import annotations

from typing import Final

from gateway.core import clock
from gateway.db import partitions
from gateway.timers.registry import Timer


def keep_partitions() -> int:
    """Make what is missing and drop what is old, of each table; returns how many partitions were made or dropped.

    Nothing is done where another role owns the tables: it runs `manage.py table_partitions`.
    """
    now, done = clock.real_now(), 0
    for table in partitions.PARTITIONED_TABLES:
        if partitions.owns_partitions(table):
            done += partitions.make_partitions(table, now) + partitions.drop_partitions(table, now)
            partitions.analyze_partitioned_table(table)
    return done


TIMER: Final = Timer(
    name="table partitions",
    run=keep_partitions,
    every_s=3600.0,
    about="Make months of the tables that only grow ahead, and drop those past their retention.",
)
