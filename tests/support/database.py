"""Looking into the database from outside the models: every cell of every table as text, and counted statements."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from gateway.models import OpenPayment, Payment
from tests.support.chance import strip_values_by_chance
from tests.support.threads import PATIENCE_S


def every_cell() -> Iterator[tuple[str, str]]:
    """(table.column, value as text) of every row of every table; bytes as UTF-8 where they are, and as hex."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            columns = [column.name for column in cursor.description]
            for row in cursor.fetchall():
                for column, value in zip(columns, row, strict=True):
                    for text in _texts(value):
                        yield f"{table}.{column}", text


def read_rows() -> Counter[tuple[str, str]]:
    """(table, the row as JSON with ids as 32 hex digits) → how often it is there, of every table."""
    rows: Counter[tuple[str, str]] = Counter()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT to_jsonb(t)::text FROM "{table}" t')
            rows.update((table, re.sub(r"(?<=[0-9a-f])-(?=[0-9a-f]{4})", "", row)) for (row,) in cursor.fetchall())
    return rows


@contextmanager
def others_stay(*own: str, apart_from: Collection[str] = ()) -> Iterator[set[str]]:
    """Whatever is done within changes and deletes no row but those that name one of the ids in ``own``, which may be
    added to. ``apart_from``: tables that may change."""
    ids, before = set(own), read_rows()
    yield ids
    changed = sorted((table, row) for table, row in before - read_rows() if table not in apart_from)
    others = [(table, row) for table, row in changed if not any(one in row for one in ids)]
    assert others == [], "\n".join(map(str, others))


def places_of(*needles: str) -> set[str]:
    """The columns in which one of ``needles`` stands, also as hex or inside a longer text."""
    wanted = [*needles, *(needle.encode().hex() for needle in needles)]
    return {place for place, text in every_cell() if any(needle in text for needle in wanted)}


def places_of_word(word: str) -> set[str]:
    """The columns in which ``word`` stands on its own: not inside a longer number or an id, where it may by chance."""
    alone = re.compile(f"(?<![0-9A-Za-z]){re.escape(word)}(?![0-9A-Za-z])")
    return {place for place, text in every_cell() if alone.search(strip_values_by_chance(text))}


def leaves(value: Any) -> list[str]:
    """Every value inside nested objects and lists, as text: what is short may well stand inside a longer one."""
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    if isinstance(value, list | tuple):
        return [leaf for one in value for leaf in leaves(one)]
    return [str(value)]


def _texts(value: Any) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, bytes | memoryview):
        octets = bytes(value)
        yield octets.decode("utf-8", "replace")
        yield octets.hex()
    else:
        yield str(value)


@contextmanager
def database_ahead(by: timedelta) -> Iterator[None]:
    """The database's clock is ``by`` ahead of this machine's, for statements of this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW search_path")
        before = cursor.fetchone()[0]
        cursor.execute("CREATE SCHEMA IF NOT EXISTS ahead")
        for name in ("clock_timestamp", "statement_timestamp"):
            cursor.execute(
                f"CREATE OR REPLACE FUNCTION ahead.{name}() RETURNS timestamptz LANGUAGE sql AS"
                f" $$ SELECT pg_catalog.{name}() + interval '{by.total_seconds()} s' $$"
            )
        cursor.execute(f"SET search_path = ahead, pg_catalog, {before}")
        try:
            yield
        finally:
            cursor.execute(f"SET search_path = {before}")
            cursor.execute("DROP SCHEMA ahead CASCADE")


class Statements(list[str]):
    """SQL statements in their order. ``commits``: how many of them end a transaction of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0


@contextmanager
def statements() -> Iterator[Statements]:
    """Every statement that Django's connection executes, ours of gateway.db.statement among them."""
    seen = Statements()

    def count(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        seen.append(str(sql))
        if connection.get_autocommit():
            seen.commits += not str(sql).lstrip().upper().startswith("SELECT")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        yield seen


def recover_at(payment: Payment) -> datetime | None:
    """When a payment without an answer is looked after; None for one that has it."""
    return OpenPayment.objects.filter(pk=payment.pk).values_list("recover_at", flat=True).first()


def until_somebody_waits_for_a_lock() -> None:
    """Come back once a session of this server waits for a lock that another one holds."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits for a lock")
