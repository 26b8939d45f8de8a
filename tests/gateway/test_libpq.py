"""What goes straight through libpq arrives as a cursor would have sent it. Source: gateway.db.libpq."""

from __future__ import annotations

import contextlib
import select
import socket
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

import psycopg
import pytest
from django.db import (
    DataError,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
    transaction,
)
from psycopg.types.json import Jsonb

from gateway.db import libpq
from gateway.db.statement import execute_sql
from gateway.models import Status

pytestmark = pytest.mark.django_db(transaction=True)

VALUES: tuple[tuple[str, Any], ...] = (
    ("text", "Zoë O'Neil \\ % $1 %s"),
    ("text", ""),
    ("text", Status.APPROVED),
    ("integer", 7),
    ("bigint", -(2**40)),
    ("boolean", True),
    ("boolean", False),
    ("uuid", UUID("0123456789abcdef0123456789abcdef")),
    ("numeric", Decimal("92.00")),
    ("numeric", Decimal("1E+3")),
    ("timestamptz", datetime(2026, 5, 14, 17, 0, 0, 123456, tzinfo=UTC)),
    ("timestamptz", datetime(1961, 5, 14, 1, 2, 3, 1, tzinfo=timezone(-timedelta(hours=5, minutes=30)))),
    ("timestamptz", datetime.max.replace(tzinfo=UTC)),
    ("date", date(2026, 5, 14)),
    ("interval", timedelta(days=3, seconds=5)),
    ("interval", timedelta(microseconds=-1)),
    ("interval", timedelta(0)),
    ("interval", timedelta(days=-400, hours=5, microseconds=7)),
    ("bytea", b"\x00\xff'\\"),
    ("text[]", ["a", "b,c", '"']),
    ("bytea[]", [b"\x00", b"\xff", bytes(range(256)), b"'\\\""]),
    ("uuid[]", [UUID(int=1), UUID(int=2)]),
    ("integer[]", [7, -(2**31), 0]),
    ("integer[]", []),
    ("integer[]", [7, None]),
    ("bigint[]", [2**40]),
    ("boolean[]", [True, False]),
    ("text", None),
    ("jsonb", Jsonb({"street": "Zoë", "items": [1, None, "\u2028"]})),
)


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_a_value_arrives_as_psycopgs_own_cursor_sends_it(kind: str, value: Any) -> None:
    sql = f"SELECT %s::{kind}"
    connection.ensure_connection()
    expected = psycopg.Cursor(connection.connection).execute(sql.encode(), [value]).fetchall()
    assert execute_sql(sql, [value]) == expected


TYPED = (int, UUID, Decimal, datetime, date, timedelta)


@pytest.mark.parametrize("value", [value for _, value in VALUES if isinstance(value, TYPED)])
def test_a_value_without_a_cast_says_of_what_type_it_is(value: Any) -> None:
    told = execute_sql("SELECT pg_typeof(%(value)s)::text, %(value)s", {"value": value})
    connection.ensure_connection()
    assert told[0][1] == value
    assert execute_sql("SELECT %(now)s + interval '1 day'", {"now": datetime(2026, 5, 14, tzinfo=UTC)}) == [
        (datetime(2026, 5, 15, tzinfo=UTC),)
    ]
    assert execute_sql("SELECT now() > now() - %(day)s", {"day": timedelta(days=1)}) == [(True,)]


def test_names_may_be_used_twice_and_percent_signs_are_doubled() -> None:
    assert execute_sql("SELECT %(a)s::int + %(b)s::int + %(a)s::int, 7 %% 4", {"b": 10, "a": 1}) == [(12, 3)]


def test_a_text_with_nul_is_refused_and_not_cut() -> None:
    with pytest.raises(DataError):
        execute_sql("SELECT %s::text", ["a\0b"])


def test_errors_are_djangos_and_the_connection_goes_on() -> None:
    with pytest.raises(ProgrammingError):
        execute_sql("SELECT nonsense", [])
    with pytest.raises(DataError):
        execute_sql("SELECT %s::int", ["x"])
    with pytest.raises(IntegrityError) as fault:
        execute_sql("INSERT INTO gateway_openpayment (payment_id, recover_at) VALUES (NULL, NULL)", [])
    assert fault.value.__cause__ is not None
    assert execute_sql("SELECT 1", []) == [(1,)]


def test_statements_that_the_server_has_forgotten_are_prepared_again() -> None:
    """psycopg sends DEALLOCATE ALL after some rollbacks."""
    assert execute_sql("SELECT 1 + %s::int", [1]) == [(2,)]
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    assert execute_sql("SELECT 1 + %s::int", [2]) == [(3,)]


def _connect() -> psycopg.Connection[Any]:
    connection.ensure_connection()
    info = connection.connection.info
    return psycopg.connect(info.dsn, password=info.password, autocommit=True)


@pytest.fixture
def widened() -> Iterator[Callable[[], None]]:
    """A table with one row; the call widens its column, as a migration would while this connection lives."""
    with _connect() as other:
        other.execute("CREATE TABLE widened (v varchar(10))")
        other.execute("INSERT INTO widened VALUES ('a')")

        def widen() -> None:
            other.execute("ALTER TABLE widened ALTER COLUMN v TYPE varchar(20)")

        yield widen
        connection.close()
        other.execute("DROP TABLE widened")


def test_a_statement_whose_plan_is_outdated_is_prepared_again(widened: Callable[[], None]) -> None:
    """A column that it returns has another type since: the server refuses the old plan for as long as it is kept."""
    sql = "SELECT v FROM widened WHERE v = %s::text"
    assert execute_sql(sql, ["a"]) == [("a",)]
    widened()
    assert execute_sql(sql, ["a"]) == [("a",)]
    assert execute_sql(sql, ["a"]) == [("a",)]


def test_a_connection_whose_own_plans_are_outdated_is_closed(widened: Callable[[], None]) -> None:
    """Inside a transaction nothing may be sent twice: the transaction fails, and the next one has a new connection."""
    sql = "SELECT v FROM widened WHERE v = %s::text"
    for _ in range(6):
        with transaction.atomic():
            assert execute_sql(sql, ["a"]) == [("a",)]
    widened()
    with pytest.raises(NotSupportedError), transaction.atomic():
        execute_sql(sql, ["a"])
    with transaction.atomic():
        assert execute_sql(sql, ["a"]) == [("a",)]


def test_more_statements_than_are_kept_are_still_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libpq, "MAX_PREPARED_STATEMENTS", 0)
    connection.close()
    assert execute_sql("SELECT %s::text AS never_kept", ["a"]) == [("a",)]
    assert execute_sql("SELECT %(n)s AS never_kept", {"n": 5}) == [(5,)]


def test_a_lost_connection_is_an_operational_error() -> None:
    execute_sql("SELECT 1", [])
    pid = connection.connection.info.backend_pid
    with psycopg.connect(connection.connection.info.dsn, password=connection.connection.info.password) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    with pytest.raises(OperationalError):
        execute_sql("SELECT 1", [])
    connection.close()
    assert execute_sql("SELECT 1", []) == [(1,)]


_CRASH_NOTICE: Final = (
    b"SWARNING\x00C57P02\x00Mterminating connection because of crash of another server process\x00\x00"
)


@pytest.mark.parametrize("notice", [b"", b"N" + (4 + len(_CRASH_NOTICE)).to_bytes(4, "big") + _CRASH_NOTICE])
def test_a_server_that_is_gone_is_an_operational_error(notice: bytes) -> None:
    """When another session's process was killed, all get a warning and are ended. libpq then reports that it could not
    write, without a SQLSTATE and on a connection that it still calls good. It was answered 500."""
    execute_sql("SELECT 1", [])
    # The path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as folder, _Gate(Path(folder)) as gate:
        line = psycopg.connect(**gate.address, autocommit=True)
        assert libpq.execute_prepared(line, "SELECT %s::text", ["a"]) == [("a",)]
        gate.slam(notice)
        with pytest.raises(psycopg.OperationalError):
            libpq.execute_prepared(line, "SELECT %s::text", ["a"])
        line.close()


class _Gate:
    """A socket before PostgreSQL that passes bytes on until it is slammed."""

    def __init__(self, folder: Path) -> None:
        info = connection.connection.info
        self.address: dict[str, Any] = {
            "host": str(folder), "port": info.port, "dbname": info.dbname, "user": info.user, "password": info.password,
        }  # fmt: skip
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / f".s.PGSQL.{info.port}"))
        self._listener.listen()
        local = info.host.startswith("/")
        self._inner = socket.socket(socket.AF_UNIX if local else socket.AF_INET)
        self._inner.connect(f"{info.host}/.s.PGSQL.{info.port}" if local else (info.host, info.port))
        self._sockets = [self._inner]

    def __enter__(self) -> Self:
        threading.Thread(target=self._pass_on, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.slam()
        self._listener.close()

    def _pass_on(self) -> None:
        outer, _ = self._listener.accept()
        self._sockets.append(outer)
        ends = {outer: self._inner, self._inner: outer}
        with contextlib.suppress(OSError, ValueError):
            while True:
                for one in select.select(list(ends), [], [])[0]:
                    if not (octets := one.recv(65_536)):
                        return
                    ends[one].sendall(octets)

    def slam(self, notice: bytes = b"") -> None:
        """Close both sides; the client has ``notice`` before."""
        if notice:
            self._sockets[-1].sendall(notice)
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def test_rows_read_again_have_the_types_of_the_first_time() -> None:
    """What reads a statement's rows is kept with it."""
    sql = "SELECT %s::numeric, %s::timestamptz, %s::jsonb, %s::uuid, n FROM generate_series(1, %s::int) n"
    values = (Decimal("1.50"), datetime(2026, 1, 1, tzinfo=UTC), Jsonb({"a": 1}), UUID(int=7))
    once = execute_sql(sql, (*values, 2))
    assert execute_sql(sql, (*values, 0)) == []
    assert [row[:4] for row in execute_sql(sql, (*values, 3))] == [once[0][:4]] * 3
    assert once[0][:2] == values[:2]


def test_a_connection_that_was_closed_is_not_kept_by_what_read_its_rows(db: None) -> None:
    """Its statements go with it."""
    own = connections["default"].copy()
    own.connect()
    libpq.execute_prepared(own.connection, "SELECT 1", ())
    gone = weakref.ref(own.connection)
    own.close()
    own.connection = None
    assert gone() is None
