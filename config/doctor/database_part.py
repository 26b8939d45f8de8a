"""PostgreSQL as an operator runs it: version, durability, room for connections, standbys, archive, growth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings

from config.doctor.findings import DoctorQuestion, PartFinding, error, judge, ok, skipped, warning
from config.launcher.postgres import MIN_POSTGRES_VERSION
from config.launcher.programs import count_database_connections
from gateway.core import clock
from gateway.db import partitions
from gateway.db.statement import execute_sql

UNLOGGED_TABLES: Final = frozenset({"gateway_cardtestingcount", "gateway_throttlewindow"})
"""Tables that may be empty after a crash or fail-over: they count the last seconds or minutes."""
MAX_OPEN_TRANSACTION_MINUTES: Final = 15
MAX_TRANSACTION_ID_AGE: Final = 1_000_000_000
"""Half of what PostgreSQL stops at; its autovacuum begins at 200 million."""
MIN_DEAD_ROWS: Final = 100_000
MIN_FREE_CONNECTIONS_SHARE: Final = 0.1

_SETTINGS: Final = """
SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), current_setting('fsync'),
    current_setting('full_page_writes'), current_setting('synchronous_commit'),
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
    coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE),
    coalesce(host(inet_server_addr()) IN ('127.0.0.1', '::1'), TRUE)
"""
_COLUMNS: Final = (
    "version", "encoding", "fsync", "full_page_writes", "synchronous_commit", "connections", "used", "superuser", "tls",
    "local",
)  # fmt: skip
_UNLOGGED: Final = "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r' ORDER BY relname"
_TRANSACTIONS: Final = """
SELECT count(*), coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)) / 60, 0)::int FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    AND xact_start < clock_timestamp() - make_interval(mins => %s::int)
"""
_REPLICATION: Final = """
SELECT current_setting('synchronous_standby_names'), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), count(*)
FROM pg_stat_replication
"""
_ARCHIVE: Final = """
SELECT current_setting('archive_mode'), failed_count, last_failed_wal,
    last_failed_time IS NOT NULL AND last_failed_time > coalesce(last_archived_time, '-infinity') FROM pg_stat_archiver
"""
_DEAD: Final = """
SELECT relname, n_dead_tup, n_live_tup FROM pg_stat_user_tables WHERE n_dead_tup > %s AND n_dead_tup > n_live_tup
ORDER BY n_dead_tup DESC LIMIT 3
"""
_SIZES: Final = """
SELECT pg_size_pretty(pg_database_size(current_database())), (
    SELECT string_agg(format('%%s %%s', relname, pg_size_pretty(size)), ', ' ORDER BY size DESC) FROM (
        SELECT coalesce(i.inhparent, c.oid)::regclass AS relname, sum(pg_total_relation_size(c.oid)) AS size
        FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
        WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY 1 ORDER BY 2 DESC LIMIT 3
    ) AS largest
), (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database())
"""


def examine_database(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """The server that DATABASE_URL leads to."""
    row: dict[str, Any] = dict(zip(_COLUMNS, execute_sql(_SETTINGS, [])[0], strict=True))
    yield from _examine_server(row)
    yield from _examine_connections(row)
    yield from _examine_safety(row)
    yield from _examine_transactions()
    yield from _examine_growth()
    yield from _examine_partitions()


def _examine_server(row: dict[str, Any]) -> Iterator[PartFinding]:
    version = row["version"] // 10_000
    old = error(f"PostgreSQL {version} is too old.", f"Upgrade to PostgreSQL {MIN_POSTGRES_VERSION} or newer.")
    yield judge(version >= MIN_POSTGRES_VERSION, f"PostgreSQL {version}; no extension is needed.", old)
    encoding = error(
        f"The database's encoding is {row['encoding']}.", "Make it anew: CREATE DATABASE … ENCODING 'UTF8'."
    )
    yield judge(row["encoding"] == "UTF8", "Its encoding is UTF8.", encoding)
    off = [name for name in ("fsync", "full_page_writes", "synchronous_commit") if row[name] == "off"]
    named = ", ".join(off)
    lost = error(f"Off in PostgreSQL: {named}. A crash loses payments.", f"postgresql.conf: {named} = on; then reload.")
    yield judge(not off, "What is committed survives a crash.", lost)
    found = {name for (name,) in execute_sql(_UNLOGGED, [])}
    mend = "; ".join(f"ALTER TABLE {name} SET LOGGED" for name in sorted(found - UNLOGGED_TABLES))
    gone = error(f"Empty after a crash: {', '.join(sorted(found - UNLOGGED_TABLES))}.", mend)
    yield judge(found <= UNLOGGED_TABLES, "Only counters of seconds are UNLOGGED.", gone)


def _examine_connections(row: dict[str, Any]) -> Iterator[PartFinding]:
    most, used, wanted = row["connections"], row["used"], count_database_connections()
    mend = (
        "Raise max_connections (restart), or lower GATEWAY_WEB_WORKERS, GATEWAY_WEB_SESSIONS, GATEWAY_WORKER_THREADS."
    )
    few = error(f"This machine alone may open {wanted} connections, PostgreSQL takes {most}.", mend)
    yield judge(wanted <= most, f"PostgreSQL takes {most} connections; this machine may open {wanted}.", few)
    full = warning(f"{used} of {most} connections are in use.", mend)
    yield judge(most - used >= most * MIN_FREE_CONNECTIONS_SHARE, f"Connections in use: {used}.", full)


def _examine_safety(row: dict[str, Any]) -> Iterator[PartFinding]:
    if not settings.IS_LIVE:
        yield skipped("Role, TLS, standbys and archive are looked at in live.")
        return
    mend = "ALTER ROLE … NOSUPERUSER: triggers keep the audit trail append-only for other roles alone."
    yield judge(not row["superuser"], "The role is no superuser.", error("The role is a superuser.", mend))
    plain = error(
        "The connection to PostgreSQL is not encrypted.", "DATABASE_URL: add sslmode=verify-full&sslrootcert=…."
    )
    yield judge(row["tls"] or row["local"], "The connection is encrypted or local.", plain)
    names, in_step, standbys = execute_sql(_REPLICATION, [])[0]
    waits = "docs/running.md, PostgreSQL: two standbys, synchronous_standby_names = 'ANY 1 (…)'."
    if names and not in_step:
        yield error("Commits wait for a standby and none is in step: payments hang.", "Start a standby. " + waits)
    elif not names:
        yield warning(f"Commits wait for no standby ({standbys} connected): losing the server loses payments.", waits)
    else:
        yield ok(f"{in_step} standbys are in step.")
    yield from _examine_archive()


def _examine_archive() -> Iterator[PartFinding]:
    mode, failed, segment, is_failing = execute_sql(_ARCHIVE, [])[0]
    mend = "postgresql.conf: archive_mode = on, archive_command = … (docs/running.md, Back-up and restore)."
    if mode == "off":
        yield warning("WAL is not archived: a restore goes to the last back-up and no further.", mend)
    elif is_failing:
        why = f"Archiving fails since {segment} ({failed} tries): the disk of the WAL fills up."
        yield error(why, "See the server's log for archive_command's fault; check the archive's disk and rights.")
    else:
        yield ok("WAL is archived.")


def _examine_transactions() -> Iterator[PartFinding]:
    count, minutes = execute_sql(_TRANSACTIONS, [MAX_OPEN_TRANSACTION_MINUTES])[0]
    about = f"{count} transactions are open, the oldest for {minutes} minutes: dead rows pile up."
    mend = "SELECT pid, query FROM pg_stat_activity ORDER BY xact_start; then pg_terminate_backend(pid)."
    yield judge(not count, "No transaction is open for long.", warning(about, mend))


def _examine_growth() -> Iterator[PartFinding]:
    for name, dead, live in execute_sql(_DEAD, [MIN_DEAD_ROWS]):
        about = f"{name} has {dead:,} dead rows to {live:,} live ones: autovacuum is off or does not keep up."
        yield warning(about, f"VACUUM (ANALYZE) {name}; then look at autovacuum's settings.")
    size, largest, age = execute_sql(_SIZES, [])[0]
    yield ok(f"The database has {size}; the largest tables: {largest}.")
    about = f"The oldest transaction id is {age:,} back; at 2,146 million PostgreSQL stops."
    old = error(about, "VACUUM (FREEZE); look for old transactions, prepared ones and replication slots.")
    yield judge(age < MAX_TRANSACTION_ID_AGE, "Transaction ids are frozen in time.", old)


def _examine_partitions() -> Iterator[PartFinding]:
    """Whether the months of the tables that only grow are made in time."""
    now = clock.real_now()
    late = [one.name for one in partitions.PARTITIONED_TABLES if partitions.count_months_ahead(one, now) < 1]
    about = f"No partition of the next month: {', '.join(late)}. Rows still have a place, in one that grows."
    mend = "tollhouse manage table_partitions, as the role that owns the tables; else see the timer of that name."
    months = f"The months of {len(partitions.PARTITIONED_TABLES)} tables have partitions."
    yield judge(not late, months, warning(about, mend))
    left = [name for one in partitions.PARTITIONED_TABLES for name in partitions.list_left_checks(one)]
    refused = f"A run that did not end left a check on {', '.join(left)}: rows beyond its end will be refused."
    yield judge(not left, "No partition has a check left.", error(refused, mend))
