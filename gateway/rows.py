"""Several rows in one statement.

A payment's answer moves its state and writes an event, an exchange, a notification and a log row. As five statements
that is five round trips; as one it is one, and one commit. ``Write`` folds them with common table expressions, out
of the models' own columns:

    write = Write()
    write.update(payment, {"status": "APPROVED"}, expecting={"status": "STARTED"})
    write.insert(PaymentEvent, payment_id=payment.id, sequence=2, …)
    moved = write.run()          # False: the row was not in the expected state, and nothing was written

The text depends on the shape only, so the server keeps its plan. Every execution passes Django's execute wrappers,
so tests count it like any other query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from django.db import connection, models
from psycopg.types.json import Jsonb


class Write:
    """Inserts, and at most one compare-and-set update that all of them hang on."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._values: list[Any] = []
        self._guarded = False

    def update(
        self, row: models.Model, changes: Mapping[str, Any], *, expecting: Mapping[str, Any] | None = None
    ) -> None:
        """Change one row, if it still is as ``expecting`` says. Must come first."""
        if self._parts:
            raise ValueError("the update comes first: the inserts depend on it")
        model = type(row)
        columns, values = _prepared(model, changes)
        conditions, expected = _prepared(model, {"id": row.pk, **(expecting or {})})
        assignments = ", ".join(f"{column} = {cast}" for column, cast in columns)
        where = " AND ".join(f"{column} = {cast}" for column, cast in conditions)
        self._parts.append(f"moved AS (UPDATE {_table(model)} SET {assignments} WHERE {where} RETURNING 1)")
        self._values += values + expected
        self._guarded = True

    def insert(self, model: type[models.Model], **values: Any) -> None:
        """One row; names are attribute names (``payment_id``)."""
        columns, prepared = _prepared(model, values)
        names = ", ".join(column for column, _ in columns)
        casts = ", ".join(cast for _, cast in columns)
        source = f"SELECT {casts} FROM moved" if self._guarded else f"SELECT {casts}"
        self._parts.append(f"w{len(self._parts)} AS (INSERT INTO {_table(model)} ({names}) {source})")
        self._values += prepared

    def follow(self, model: type[models.Model], changes: Mapping[str, Any], where: Mapping[str, Any]) -> None:
        """Change rows of another table in the same statement; with a guard, only if the guarded row moved."""
        columns, values = _prepared(model, changes)
        conditions, keys = _prepared(model, where)
        assignments = ", ".join(f"{column} = {cast}" for column, cast in columns)
        found = " AND ".join(f"{column} = {cast}" for column, cast in conditions)
        guard = " AND EXISTS (SELECT 1 FROM moved)" if self._guarded else ""
        self._parts.append(f"w{len(self._parts)} AS (UPDATE {_table(model)} SET {assignments} WHERE {found}{guard})")
        self._values += values + keys

    def run(self) -> bool:
        """Execute. False when the guarded row had moved on: then nothing at all was written."""
        if not self._parts:
            return True
        tail = "SELECT count(*) FROM moved" if self._guarded else "SELECT 1"
        rows = execute(f"WITH {', '.join(self._parts)} {tail}", self._values)
        return bool(rows and rows[0][0])


def execute(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run one statement with parameters bound by the server and its plan kept; return all rows."""
    connection.ensure_connection()

    def run(sql: str, params: Any, many: bool, context: Any) -> list[tuple[Any, ...]]:
        with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
            cursor.execute(sql.encode(), params)
            return cursor.fetchall() if cursor.description else []

    step: Any = run
    for wrapper in reversed(connection.execute_wrappers):
        step = _wrapped(wrapper, step)
    rows: list[tuple[Any, ...]] = step(sql, values, False, {"connection": connection, "cursor": None})
    return rows


def _wrapped(wrapper: Any, step: Any) -> Any:
    return lambda sql, params, many, context: wrapper(step, sql, params, many, context)


Prepared = tuple[list[tuple[str, str]], list[Any]]


def _prepared(model: type[models.Model], values: Mapping[str, Any]) -> Prepared:
    columns = _columns(model)
    pairs, prepared = [], []
    for name, value in values.items():
        column, cast, is_json = columns[name]
        pairs.append((column, cast))
        prepared.append(Jsonb(value) if is_json and value is not None else value)
    return pairs, prepared


def _table(model: type[models.Model]) -> str:
    return f'"{model._meta.db_table}"'


@lru_cache
def _columns(model: type[models.Model]) -> dict[str, tuple[str, str, bool]]:
    """Attribute name → (quoted column, typed placeholder, is JSON). Casts carry no length: PostgreSQL would cut."""
    found = {}
    for field in model._meta.concrete_fields:
        # A foreign key has no type of its own: its column has the type of what it points at.
        target = field.target_field if isinstance(field, models.ForeignKey) else field
        kind = (target.db_type(connection) or "text").split("(")[0]
        found[field.attname] = (f'"{field.column}"', f"%s::{kind}", isinstance(field, models.JSONField))
    return found
