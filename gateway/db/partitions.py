"""Tables that only grow, in one partition a month: a month is made ahead, and dropped as a whole after its retention.

They are partitioned by PostgreSQL itself (RANGE) over a key of UUIDs of version 7, which begin with milliseconds of
real time: the key stays as it was, and a query that names it reads one partition. The partitions cover all values: the
first has no lower bound and the newest no upper one, so a row has its place whatever a clock says and however late the
timer is. Once a month the newest gets its end, and an empty one begins there.

Both changes lock the table for milliseconds and wait at most MAX_LOCK_WAIT for it and for each partition that they
change: that long an insert can wait behind them. docs/decisions/0103.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from gateway.core.identifiers import first_id_at
from gateway.db.statement import execute_sql

MONTHS_AHEAD: Final = 2
"""Months after the present one that have a partition of their own."""
MAX_LOCK_WAIT: Final = timedelta(milliseconds=30)
"""How long a change of partitions waits for the table, and for each partition: inserts wait behind it."""
MAX_VACUUM_WAIT: Final = timedelta(seconds=5)
"""How long it waits before, in no insert's way, for an autovacuum to give way, which takes PostgreSQL's
deadlock_timeout (1 s)."""
LOCK_TRIES: Final = 20
LOCK_PAUSE_S: Final = 0.25
MIN_OPEN_TIME: Final = timedelta(days=14)
"""A partition that holds rows of the present gets no end sooner than this: until its check is gone again, the database
refuses rows beyond that end, and a process that died in between leaves the check to the next run."""
_CHECK: Final = "until_its_end"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedTable:
    """``name``: of the table. ``key``: the column of UUIDs. ``days_setting``: the setting of its retention, or empty:
    its rows are kept for good."""

    name: str
    key: str
    days_setting: str = ""

    @property
    def retention(self) -> timedelta | None:
        """None: for good."""
        if not self.days_setting:
            return None
        days: int = getattr(settings, self.days_setting)
        return timedelta(days=days)


PARTITIONED_TABLES: Final = (
    PartitionedTable(name="gateway_requestlog", key="id", days_setting="GATEWAY_REQUEST_LOG_DAYS"),
    PartitionedTable(name="gateway_acquirerexchange", key="payment_id", days_setting="GATEWAY_ACQUIRER_MESSAGE_DAYS"),
    PartitionedTable(name="gateway_archivedpayment", key="id"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePartition:
    """Rows whose ids were made from ``low`` until before ``high``; None: without a bound."""

    name: str
    low: datetime | None
    high: datetime | None


_PARTITIONS: Final = """
SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass(%s::text)
"""
_BOUNDS: Final = re.compile(r"FOR VALUES FROM \((?:MINVALUE|'(.*)')\) TO \((?:MAXVALUE|'(.*)')\)")
_DETACHED: Final = """
SELECT relname FROM pg_class
WHERE relkind = 'r' AND NOT relispartition AND relname ~ %s::text AND relnamespace = current_schema()::regnamespace
"""
_LEFT_CHECKS: Final = """
SELECT k.conrelid::regclass::text FROM pg_constraint k JOIN pg_inherits i ON i.inhrelid = k.conrelid
WHERE k.conname = %s AND i.inhparent = to_regclass(%s::text)
"""
_OWNED: Final = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass(%s::text)"
_ANALYZED: Final = """
SELECT coalesce(last_analyze > clock_timestamp() - interval '1 day', FALSE) FROM pg_stat_user_tables
WHERE relid = to_regclass(%s::text)
"""


def list_partitions(table: PartitionedTable) -> list[TablePartition]:
    """The partitions, oldest first."""
    found = []
    for name, text in execute_sql(_PARTITIONS, [table.name]):
        bounds = _BOUNDS.fullmatch(text)
        if bounds is None:
            raise ValueError(f"{name} has bounds that Tollhouse does not make: {text}")
        low, high = (_parse_bound(one) for one in bounds.groups())
        found.append(TablePartition(name=name, low=low, high=high))
    return sorted(found, key=lambda one: one.low or datetime.min.replace(tzinfo=UTC))


def owns_partitions(table: PartitionedTable) -> bool:
    """Whether the application's role may make and drop partitions: it owns the table."""
    return bool(execute_sql(_OWNED, [table.name])[0][0])


def count_months_ahead(table: PartitionedTable, now: datetime) -> int:
    """How many months after the present one have a partition of their own."""
    newest = list_partitions(table)[-1].low
    return 0 if newest is None else max(0, _count_months(newest) - _count_months(now) - 1)


def make_partitions(table: PartitionedTable, now: datetime) -> int:
    """Make the partitions of the next MONTHS_AHEAD months; returns how many were made. Raises OperationalError if the
    table could not be locked for as long as was tried: the next run goes on."""
    made = 0
    _remove_left_checks(table)
    while count_months_ahead(table, now) < MONTHS_AHEAD:
        newest = list_partitions(table)[-1]
        _end_partition(table, newest, _choose_end(table, newest, now))
        made += 1
    return made


def drop_partitions(table: PartitionedTable, now: datetime) -> int:
    """Drop the partitions all of whose rows are past the table's retention; returns how many. Raises OperationalError
    as :func:`make_partitions`."""
    if table.retention is None:
        return 0
    limit = now - table.retention
    _drop_detached(table)
    first, *others = list_partitions(table)
    old = [one for one in others if one.high is not None and one.high <= limit]
    for one in old:
        _drop(table, (first.name, one.name), one.high)
    if old or first.high is None or first.high > limit or _read_newest_id(table, first) is None:
        return len(old)
    _drop(table, (first.name,), first.high)
    return 1


def analyze_partitioned_table(table: PartitionedTable) -> None:
    """Count the table's values for the planner, once a day: autovacuum does so for partitions alone."""
    if not execute_sql(_ANALYZED, [table.name])[0][0]:
        _run(f"ANALYZE {'ONLY ' if _server_version() >= 180_000 else ''}{table.name}")


def next_month_start(at: datetime) -> datetime:
    """Midnight (UTC) of the first day of the month after ``at``."""
    day = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (day + timedelta(days=32)).replace(day=1)


def _choose_end(table: PartitionedTable, newest: TablePartition, now: datetime) -> datetime:
    """The newest partition's end: a month, or as much more as its rows and the present need."""
    needed = now + MIN_OPEN_TIME
    if newest.low is not None and newest.low > now:
        needed = newest.low
    last = _read_newest_id(table, newest)
    return next_month_start(max(needed, _time_of_id(last)) if last is not None else needed)


def _end_partition(table: PartitionedTable, newest: TablePartition, end: datetime) -> None:
    """The newest partition ends at ``end``, and an empty one without an upper bound begins there.

    A check proves beforehand, without a lock that inserts wait for, that its rows lie within the new bounds: the table
    is locked without reading a row.
    """
    low, high = _bound(newest.low), f"'{first_id_at(end)}'"
    within = f"{table.key} < {high}" + (f" AND {table.key} >= {low}" if newest.low is not None else "")
    drop = f"ALTER TABLE {newest.name} DROP CONSTRAINT IF EXISTS {_CHECK}"

    following = f"{table.name}_{end:%Y_%m}"
    swap = (
        f"ALTER TABLE {table.name} DETACH PARTITION {newest.name}",
        f"ALTER TABLE {table.name} ATTACH PARTITION {newest.name} FOR VALUES FROM ({low}) TO ({high})",
        drop,
        f"ALTER TABLE {table.name}_next RENAME TO {following}",
        f"ALTER TABLE {table.name} ATTACH PARTITION {following} FOR VALUES FROM ({high}) TO (MAXVALUE)",
    )
    try:
        _create_next(table)
        add = f"ALTER TABLE {newest.name} ADD CONSTRAINT {_CHECK} CHECK ({within}) NOT VALID"
        _change_table(table, [newest.name], partial(_run, drop, add))
        _run(f"ALTER TABLE {newest.name} VALIDATE CONSTRAINT {_CHECK}")
        _change_table(table, [newest.name], partial(_run, *swap))
    except Exception:
        with suppress(DatabaseError):  # the next run does it then
            _remove_left_checks(table)
        raise
    log.info("partition_made", table=table.name, begins=f"{end:%Y-%m-%d}")


def list_left_checks(table: PartitionedTable) -> list[str]:
    """Partitions with the check of a run that did not end: rows beyond it are refused."""
    return [name for (name,) in execute_sql(_LEFT_CHECKS, [_CHECK, table.name])]


def _remove_left_checks(table: PartitionedTable) -> None:
    for name in list_left_checks(table):
        _change_table(table, [name], partial(_run, f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS {_CHECK}"))


def _drop(table: PartitionedTable, names: Sequence[str], end: datetime | None) -> None:
    """Drop the oldest partitions, the first one among them, and make an empty one of all that they covered, until
    ``end``: a row may still come that is older.

    While the table is locked they are only detached and renamed. Should the process die before they are dropped, the
    next run does it.
    """
    kept = {name: f"{name}_old" for name in names}
    _create_next(table)
    change = [f"ALTER TABLE {table.name} DETACH PARTITION {name}" for name in names]
    change += [f"ALTER TABLE {name} RENAME TO {other}" for name, other in kept.items()]
    change += [
        f"ALTER TABLE {table.name}_next RENAME TO {names[0]}",
        f"ALTER TABLE {table.name} ATTACH PARTITION {names[0]} FOR VALUES FROM (MINVALUE) TO ({_bound(end)})",
    ]
    _change_table(table, names, partial(_run, *change))
    _drop_detached(table)
    log.info("partitions_dropped", table=table.name, until=f"{end:%Y-%m-%d}")


def _drop_detached(table: PartitionedTable) -> None:
    """Drop what :func:`_drop` has detached."""
    for (name,) in execute_sql(_DETACHED, [f"^{table.name}_(first|[0-9]{{4}}_[0-9]{{2}})_old$"]):
        _run(f"DROP TABLE {name}")


def _create_next(table: PartitionedTable) -> None:
    """An empty table like the partitions, outside of the lock; one of a run that died is made anew."""
    _run(
        f"DROP TABLE IF EXISTS {table.name}_next",
        f"CREATE TABLE {table.name}_next (LIKE {table.name} INCLUDING DEFAULTS INCLUDING INDEXES)",
    )


def _change_table(table: PartitionedTable, names: Sequence[str], change: Callable[[], object]) -> None:
    """``change`` in a transaction that holds the locks of the table and of the partitions ``names``; others stay free.
    Tried again while a lock is not had at once; raises OperationalError after LOCK_TRIES."""
    for left in reversed(range(LOCK_TRIES)):
        try:
            with transaction.atomic():
                _wait_at_most(MAX_VACUUM_WAIT)
                _run(*(f"LOCK TABLE {name} IN SHARE UPDATE EXCLUSIVE MODE" for name in names))
                _wait_at_most(MAX_LOCK_WAIT)
                _run(f"LOCK TABLE ONLY {table.name} IN ACCESS EXCLUSIVE MODE")
                _run(*(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE" for name in names))
                change()
                _run("SET LOCAL lock_timeout TO DEFAULT", "SET LOCAL synchronous_commit = off")
            return
        except OperationalError as fault:
            if not left or not isinstance(fault.__cause__, LockNotAvailable):
                raise
        time.sleep(LOCK_PAUSE_S)


def _wait_at_most(wait: timedelta) -> None:
    _run(f"SET LOCAL lock_timeout = {int(wait.total_seconds() * 1000)}")


def _run(*statements: str) -> None:
    """Statements about the schema: made of names and values of this module, since none can be bound there."""
    with connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql)


def _server_version() -> int:
    connection.ensure_connection()
    return int(connection.connection.info.server_version)


def _read_newest_id(table: PartitionedTable, partition: TablePartition) -> UUID | None:
    found = execute_sql(f"SELECT {table.key} FROM {partition.name} ORDER BY {table.key} DESC LIMIT 1", [])  # noqa: S608 - names of ours
    return found[0][0] if found else None


def _bound(at: datetime | None) -> str:
    return "MINVALUE" if at is None else f"'{first_id_at(at)}'"


def _parse_bound(text: str | None) -> datetime | None:
    return None if text is None else _time_of_id(UUID(text))


def _time_of_id(ident: UUID) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ident.int >> 80)


def _count_months(at: datetime) -> int:
    return at.astimezone(UTC).year * 12 + at.astimezone(UTC).month
