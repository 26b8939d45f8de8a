"""What is read off: CPU time of processes, statements, commits and bytes of a database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds(*roots: int) -> float:
    """CPU time, user and system, of these processes and of everything below them, also of what has ended there.

    Read before and after, it gives what was used between: the children of a process that were collected count in it.
    """
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parts = (entry / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        pid = int(entry.name)
        parents[pid] = int(parts[1])
        ticks[pid] = sum(int(part) for part in parts[11:15])  # utime, stime, cutime, cstime
    found: set[int] = set()
    layer = set(roots)
    while layer:
        found |= layer
        layer = {pid for pid, parent in parents.items() if parent in layer} - found
    return sum(ticks.get(pid, 0) for pid in found) * TICK_S


def writing_transactions(connection: psycopg.Connection[Any]) -> int:
    """How many transactions of the whole server have written something so far: one that only reads takes no number."""
    return int(_one(connection, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"))


def transactions(connection: psycopg.Connection[Any], database: str) -> int:
    """How many transactions of ``database`` were committed so far, those that only read among them."""
    return int(_one(connection, "SELECT xact_commit FROM pg_stat_database WHERE datname = %s", database))


def statements(connection: psycopg.Connection[Any], database: str) -> list[tuple[str, int]]:
    """(text, how often) of every statement that ``database`` was sent since ``forget_statements``.

    Checks of deferred foreign keys are among them, though nobody sent them: see ``is_key_check``.
    """
    return connection.execute(
        "SELECT query, calls FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid"
        " WHERE d.datname = %s AND toplevel ORDER BY calls DESC",
        (database,),
    ).fetchall()


def is_key_check(text: str) -> bool:
    """A statement by which PostgreSQL checks a foreign key, at the commit for a deferred one."""
    return " FROM ONLY " in text and text.endswith("FOR KEY SHARE OF x")


def forget_statements(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SELECT pg_stat_statements_reset()")


def stored_bytes(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """The size of each ordinary table of this database (with TOAST) and of each index, by name."""
    return dict(
        connection.execute(
            "SELECT c.relname, CASE c.relkind WHEN 'i' THEN pg_relation_size(c.oid) ELSE pg_table_size(c.oid) END"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind IN ('r', 'i') AND n.nspname = 'public'"
        ).fetchall()
    )


def filled_tables(connection: psycopg.Connection[Any]) -> list[str]:
    """The ordinary tables of this database that have pages."""
    return [
        str(name)
        for (name,) in connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            " AND pg_relation_size(oid) > 0 ORDER BY relname"
        )
    ]


def row_bytes(connection: psycopg.Connection[Any], table: str) -> dict[str, Any]:
    """What a row of ``table`` takes on average: ``row`` with its header and what aligns its columns, each of its
    ``columns``, and how many rows a page has, ``per_page``. Without its pointer in the page (4 bytes)."""
    names = [
        str(name)
        for (name,) in connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
            " ORDER BY attnum",
            (table,),
        )
    ]
    sizes = [sql.SQL("avg(coalesce(pg_column_size({}), 0))").format(sql.Identifier(name)) for name in names]
    found = connection.execute(
        sql.SQL(
            "SELECT avg(pg_column_size(t)), count(*)::numeric / greatest(count(DISTINCT (t.ctid::text::point)[0]), 1),"
            " {} FROM {} t"
        ).format(sql.SQL(", ").join(sizes), sql.Identifier(table))
    ).fetchone()
    assert found is not None
    row, per_page, *columns = (round(float(value or 0), 1) for value in found)
    return {
        "row": row,
        "per_page": per_page,
        "columns": {name: size for name, size in zip(names, columns, strict=True) if size},
    }


def _one(connection: psycopg.Connection[Any], sql: str, *values: Any) -> Any:
    row = connection.execute(sql, values).fetchone()
    assert row is not None
    return row[0]
