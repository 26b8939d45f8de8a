"""Several row changes in one SQL statement.

A payment's answer moves its state and writes an event, an exchange, a notification and a log row. As five statements
that is five round trips; as one it is one, and one commit. ``WriteStatement`` folds them with common table expressions,
out of the models' own columns:

    write = WriteStatement()
    write.update(payment, {"status": "APPROVED"}, expecting={"status": "STARTED"})
    write.insert(PaymentEvent, payment_id=payment.id, sequence=2, …)
    moved = write.run()          # False: the row was not in the expected state, and nothing was written

The text depends on the shape only, so the server keeps its plan. Every execution passes Django's execute wrappers,
so tests count it like any other query.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.models.base import ModelState
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb

from gateway.db import libpq
from gateway.db.standby import STANDBY_ALIAS, StandbyWriteError, choose_read_alias, refuse_write

_Row = TypeVar("_Row", bound=models.Model)
MAX_GUARDED_UPDATES: Final = 2
"""Rows whose state one statement may check: the payment's own, and the row of its chain, agreement or caller."""


@dataclass(frozen=True, slots=True)
class DatabaseTime:
    """A value of a time column: the database's clock when the statement runs, plus ``after``. Due times that workers on
    other machines compare with are written so, since the machines' clocks may differ."""

    after: timedelta


class WriteStatement:
    """Inserts, and at most two compare-and-set updates that guard them: all of it is written, or nothing.

    With two updates, both rows are locked in their expected state before either is changed: where one of them changed
    since it was read, the statement finds no row to change, writes nothing, and :meth:`run` returns False.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._values: list[Any] = []
        self._guards: list[_GuardedUpdate] = []
        self._asked: dict[str, tuple[str, Sequence[Any]]] = {}
        self.returned: dict[str, Any] = {}
        """Values requested by :meth:`returning`, set once the statement has run."""

    def update(
        self, row: models.Model, changes: Mapping[str, Any], *, expecting: Mapping[str, Any] | None = None
    ) -> None:
        """Change one row if it still matches ``expecting``. Must come first; a second update may follow the first.

        Raises StandbyWriteError for a row that was read from the standby.
        """
        if self._parts or len(self._guards) == MAX_GUARDED_UPDATES:
            raise ValueError("updates come first, two at most: the inserts depend on them")
        if row._state.db == STANDBY_ALIAS:
            raise StandbyWriteError(f"a {row._meta.label} that was read from the standby is not written")
        model, where = type(row), {"id": row.pk, **(expecting or {})}
        changed, rows = _shape(model, tuple(changes)), _shape(model, tuple(where))
        self._guards.append(
            _GuardedUpdate(changed=changed, rows=rows, changes=changed.adapt(changes), where=rows.adapt(where))
        )

    def insert(self, model: type[models.Model], **values: Any) -> None:
        """Insert one row; names are attribute names (``payment_id``)."""
        shape = _shape(model, tuple(values), _list_database_times(values))
        source = " FROM moved" if self._guards else ""
        self._parts.append(
            f"w{len(self._parts)} AS (INSERT INTO {shape.table} ({shape.columns}) SELECT {shape.casts}{source})"
        )
        self._values += shape.adapt(values)

    def update_related(self, model: type[models.Model], changes: Mapping[str, Any], where: Mapping[str, Any]) -> None:
        """Change rows of another table in the same statement; with a guard, only if the guarded row moved."""
        changed, rows = _shape(model, tuple(changes), _list_database_times(changes)), _shape(model, tuple(where))
        guard = " AND EXISTS (SELECT 1 FROM moved)" if self._guards else ""
        self._parts.append(
            f"w{len(self._parts)} AS (UPDATE {changed.table} SET {changed.assignments} WHERE {rows.conditions}{guard})"
        )
        self._values += changed.adapt(changes) + rows.adapt(where)

    def delete(self, model: type[models.Model], where: Mapping[str, Any]) -> None:
        """Delete rows of another table in the same statement; with a guard, only if the guarded row moved."""
        rows = _shape(model, tuple(where))
        guard = " AND EXISTS (SELECT 1 FROM moved)" if self._guards else ""
        self._parts.append(f"w{len(self._parts)} AS (DELETE FROM {rows.table} WHERE {rows.conditions}{guard})")
        self._values += rows.adapt(where)

    def increment_counts(self, model: type[models.Model], by: Mapping[str, int], **key: Any) -> None:
        """Add to the counters of the row with this primary key, which is created if missing.

        ``key`` has the columns of the primary key first. Callers that raise several rows must use one fixed order.
        """
        names = [field.attname for field in model._meta.pk_fields]
        found, shape = _shape(model, tuple(names)), _shape(model, (*key, *by))
        counted = ", ".join(f'"{name}" = {shape.table}."{name}" + EXCLUDED."{name}"' for name in by)
        source = " FROM moved" if self._guards else ""
        self._parts.append(
            f"w{len(self._parts)} AS (INSERT INTO {shape.table} ({shape.columns}) SELECT {shape.casts}{source}"
            f" ON CONFLICT ({found.columns}) DO UPDATE SET {counted})"
        )
        self._values += shape.adapt({**key, **by})

    def add_part(self, sql: str, values: Sequence[Any]) -> None:
        """Add an INSERT, UPDATE or DELETE in SQL; it depends on the guarded row by itself, as ``moved`` has one row."""
        self._parts.append(f"w{len(self._parts)} AS ({sql})")
        self._values += values

    def returning(self, name: str, select: str, values: Sequence[Any]) -> None:
        """Return one value that ``select`` finds, as of before this statement, in ``returned``."""
        self._asked[name] = (select, values)

    def run(self) -> bool:
        """Execute. False when a guarded row had changed: then nothing was written."""
        guards, guard_values = _build_guards(self._guards)
        parts = guards + self._parts
        if not parts:
            return True
        refuse_write()
        columns = ["(SELECT count(*) FROM moved)" if guards else "1"]
        values = guard_values + self._values
        for select, arguments in self._asked.values():
            columns.append(f"({select})")
            values += arguments
        first = execute_sql(f"WITH {', '.join(parts)} SELECT {', '.join(columns)}", values)[0]
        self.returned = dict(zip(self._asked, first[1:], strict=True))
        return bool(first[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class _GuardedUpdate:
    """One compare-and-set update: what it changes, which row in which state, and the values of both."""

    changed: _Shape
    rows: _Shape
    changes: list[Any]
    where: list[Any]

    def as_sql(self, condition: str) -> str:
        return f"UPDATE {self.changed.table} SET {self.changed.assignments} WHERE {self.rows.conditions}{condition}"


def _build_guards(guards: Sequence[_GuardedUpdate]) -> tuple[list[str], list[Any]]:
    """Returns (parts, values) of the statement. The last part is ``moved``, which is empty where a row had changed."""
    if len(guards) < MAX_GUARDED_UPDATES:
        parts = [f"moved AS ({guard.as_sql('')} RETURNING 1)" for guard in guards]
        return parts, [value for guard in guards for value in guard.changes + guard.where]
    first, second = guards
    # Both rows are locked before either is changed: an update that matched could not be undone without an error.
    parts = [
        f"first_found AS (SELECT 1 FROM {first.rows.table} WHERE {first.rows.conditions} FOR NO KEY UPDATE)",
        f"found AS (SELECT 1 FROM {second.rows.table} WHERE {second.rows.conditions}"
        " AND EXISTS (SELECT 1 FROM first_found) FOR NO KEY UPDATE)",
        f"first_moved AS ({first.as_sql(' AND EXISTS (SELECT 1 FROM found)')} RETURNING 1)",
        f"moved AS ({second.as_sql(' AND EXISTS (SELECT 1 FROM first_moved)')} RETURNING 1)",
    ]
    return parts, [*first.where, *second.where, *first.changes, *first.where, *second.changes, *second.where]


def execute_sql(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Run one statement with parameters bound by the server and its plan kept; return all rows. Always on the
    primary."""
    return _execute_on(DEFAULT_DB_ALIAS, sql, values)


def execute_in_batches(sql: str, values: Mapping[str, Any], *, most: int, rounds: int) -> int:
    """Run a statement that changes at most ``%(most)s`` rows and returns one row for each, until it finds fewer, or
    ``rounds`` times. Returns how many rows were changed in all."""
    done = 0
    for _ in range(rounds):
        changed = len(execute_sql(sql, {**values, "most": most}))
        done += changed
        if changed < most:
            break
    return done


def read_sql(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """As :func:`execute_sql`, for statements that only read: on the standby, where gateway.db.standby reads from it."""
    return _execute_on(choose_read_alias(), sql, values)


def _execute_on(alias: str, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    own = connections[alias]
    own.ensure_connection()
    step: Any = _execute
    for wrapper in reversed(own.execute_wrappers):
        step = _wrap_execution(wrapper, step)
    rows: list[tuple[Any, ...]] = step(sql, values, False, {"connection": own, "cursor": None})
    return rows


def model_from_row(model: Any, names: Sequence[str], values: Sequence[Any]) -> Any:
    """Build a model instance from its columns the way unpickling does: the constructor costs more than the query.

    Django's connections return JSON as text and decode it field by field. A column that was not selected is fetched
    when it is accessed. Within gateway.db.standby.read_elsewhere the row counts as read from the standby.
    """
    row = model.__new__(model)
    row._state = ModelState()
    row._state.adding, row._state.db = False, choose_read_alias()
    row.__dict__.update(zip(names, values, strict=True))
    for name in _json_columns(model):
        if isinstance(text := row.__dict__.get(name), str):
            row.__dict__[name] = json.loads(text)
    return row


@lru_cache
def list_column_names(model: type[models.Model], *, without: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The attribute names of a model's columns, for :func:`model_from_row`."""
    return tuple(field.attname for field in model._meta.concrete_fields if field.attname not in without)


def name_columns(names: Iterable[str], alias: str) -> str:
    """These columns of the table ``alias``, for a SELECT."""
    return ", ".join(f'{alias}."{name}"' for name in names)


def split_row(row: tuple[Any, ...], *lengths: int) -> list[tuple[Any, ...]]:
    """The row cut into pieces of these lengths, and the rest."""
    pieces, at = [], 0
    for length in lengths:
        pieces.append(row[at : at + length])
        at += length
    return [*pieces, row[at:]]


def build_new_row(model: type[_Row], *, related: Mapping[str, models.Model] | None = None, **values: Any) -> _Row:
    """Build a new instance from attribute names, as the model's constructor does, which takes five times as long.

    ``related``: objects of foreign keys by field name. Raises TypeError for a name that is no column.
    """
    defaults, factories = _list_defaults(model)
    if unknown := values.keys() - defaults.keys():
        raise TypeError(f"{model.__name__} has no {', '.join(sorted(unknown))}")
    row = model.__new__(model)
    row._state = ModelState()
    columns = row.__dict__
    columns.update(defaults)
    columns.update(values)
    for name, factory in factories:
        if name not in values:
            columns[name] = factory()
    for name, found in (related or {}).items():
        columns[f"{name}_id"] = found.pk
        row._state.fields_cache[name] = found
        row._state.db = found._state.db
    return row


@lru_cache
def _list_defaults(model: type[models.Model]) -> tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]]]:
    """The defaults of all columns, and what makes those that are made for each row."""
    fields = model._meta.concrete_fields
    factories = [(field.attname, field.default) for field in fields if callable(field.default) and field.has_default()]
    made = {name for name, _ in factories}
    return {field.attname: None if field.attname in made else field.get_default() for field in fields}, factories


@lru_cache
def _json_columns(model: type[models.Model]) -> frozenset[str]:
    return frozenset(field.attname for field in model._meta.concrete_fields if isinstance(field, models.JSONField))


def _execute(sql: str, values: Any, many: bool, context: Any) -> list[tuple[Any, ...]]:
    own = context["connection"]
    line = own.connection
    with own.wrap_database_errors:
        if line.autocommit and line.pgconn.transaction_status == TransactionStatus.IDLE:
            return libpq.execute_prepared(line, sql, values)
        # Inside a transaction psycopg tracks what is open and what was prepared.
        with psycopg.Cursor(line) as cursor:
            try:
                cursor.execute(sql.encode(), values)
            except psycopg.errors.FeatureNotSupported:
                # psycopg would send its outdated plan again and again (gateway.db.libpq, OUTDATED_PLAN).
                own.close()
                raise
            return cursor.fetchall() if cursor.pgresult is not None and cursor.pgresult.nfields else []


def _wrap_execution(wrapper: Any, step: Any) -> Any:
    return lambda sql, params, many, context: wrapper(step, sql, params, many, context)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """Some columns of one model as pieces of SQL; built once per set of names."""

    table: str
    columns: str
    casts: str
    assignments: str
    conditions: str
    json: frozenset[str]
    timed: frozenset[str]

    def adapt(self, values: Mapping[str, Any]) -> list[Any]:
        adapted = dict(values)
        for name in self.json:
            if values[name] is not None:
                adapted[name] = Jsonb(values[name])
        for name in self.timed:
            adapted[name] = values[name].after
        return list(adapted.values())


def _list_database_times(values: Mapping[str, Any]) -> frozenset[str]:
    if DatabaseTime not in map(type, values.values()):
        return frozenset()
    return frozenset(name for name, value in values.items() if isinstance(value, DatabaseTime))


@lru_cache(maxsize=512)
def _shape(model: type[models.Model], names: tuple[str, ...], timed: frozenset[str] = frozenset()) -> _Shape:
    known = _columns(model)
    chosen = [
        (known[name][0], "clock_timestamp() + %s::interval", False) if name in timed else known[name] for name in names
    ]
    return _Shape(
        table=f'"{model._meta.db_table}"',
        columns=", ".join(column for column, _, _ in chosen),
        casts=", ".join(cast for _, cast, _ in chosen),
        assignments=", ".join(f"{column} = {cast}" for column, cast, _ in chosen),
        conditions=" AND ".join(f"{column} = {cast}" for column, cast, _ in chosen),
        json=frozenset(name for name in names if known[name][2]),
        timed=timed,
    )


@lru_cache
def _columns(model: type[models.Model]) -> dict[str, tuple[str, str, bool]]:
    """Attribute name → (quoted column, typed placeholder, is JSON). Casts have no length: PostgreSQL would truncate."""
    columns = {}
    for field in model._meta.concrete_fields:
        # A foreign key has no type of its own: its column has the type of its target.
        target = field.target_field if isinstance(field, models.ForeignKey) else field
        kind = (target.db_type(connection) or "text").split("(")[0]
        columns[field.attname] = (f'"{field.column}"', f"%s::{kind}", isinstance(field, models.JSONField))
    return columns
