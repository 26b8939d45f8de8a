"""Runs one prepared statement directly through libpq: no cursor, no generator, no type guessing.

A payment is three statements, and a cursor costs more than all their parameters. The same is sent: values as text
(times and bytes as the server keeps them), bound and typed by the server (gateway.db.statement casts each of them), the
plan kept. Only for statements that are a
transaction of their own: if the server has dropped a prepared statement, or its plan is outdated, it did not run: it is
prepared and sent once more. Why not psycopg's cursor: docs/decisions/0059.
"""

from __future__ import annotations

import itertools
import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from types import NoneType
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from psycopg import errors
from psycopg.adapt import AdaptersMap, PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.types.json import Jsonb

MAX_PREPARED_STATEMENTS: Final = 200
"""Most statements prepared on one connection; further ones are planned each time they are sent."""
_TEXT, _BINARY = 0, 1
_INT4, _INT8 = 23, 20
_TYPE_OF: Final[dict[type, int]] = {
    bytes: 17, bool: 16, UUID: 2950, Decimal: 1700, datetime: 1184, timedelta: 1186, date: 1082, Jsonb: 3802,
}  # fmt: skip
"""PostgreSQL's type OIDs, the same in every installation."""
_FORGOTTEN: Final = b"26000"
OUTDATED_PLAN: Final = "0A000"
"""SQLSTATE of a prepared statement whose columns a migration has changed: "cached plan must not change result type"."""
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""PostgreSQL's."""
_MICROSECOND: Final = timedelta(microseconds=1)
_pack_microseconds: Final = struct.Struct(">q").pack
_numbers: Final = itertools.count()
_encode_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_PLACE: Final = re.compile(r"%%|%(?:\((\w+)\))?s(::)?")


@dataclass(frozen=True, slots=True)
class _Adapters:
    """A connection's adapters for a reader that outlives one result, which must not keep the connection alive."""

    adapters: AdaptersMap
    connection: None = None


@dataclass(slots=True)
class _Prepared:
    """A statement prepared on one connection, and the reader of its rows, kept because its columns keep their types:
    finding the loaders again took as long as loading a row."""

    name: bytes
    reader: Any = None

    def read_rows(self, line: psycopg.Connection[Any], result: Any) -> list[tuple[Any, ...]]:
        """All rows of ``result``."""
        if not (count := result.ntuples):
            return []
        if self.reader is None:
            self.reader = Transformer(_Adapters(line.adapters))
            self.reader.set_pgresult(result)
        else:
            self.reader.set_pgresult(result, set_loaders=False)
        rows: list[tuple[Any, ...]] = self.reader.load_rows(0, count, tuple)
        self.reader.set_pgresult(None, set_loaders=False)
        return rows


_kept: Final[WeakKeyDictionary[psycopg.Connection[Any], dict[tuple[bytes, tuple[int, ...]], _Prepared]]] = (
    WeakKeyDictionary()
)


def execute_prepared(
    line: psycopg.Connection[Any], sql: str, values: Sequence[Any] | Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Run one statement in a transaction of its own and return all rows. Raises psycopg's errors."""
    text, names, bare = _number_placeholders(sql)
    chosen: Any = values if names is None else [values[name] for name in names]  # type: ignore[call-overload]
    octets, formats = _encode_values(line, chosen)
    types = _type_oids(chosen, bare) if bare else ()
    kept = _kept.get(line)
    if kept is None:
        kept = _kept[line] = {}
    for _ in range(2):
        prepared = kept.get((text, types))
        if prepared is None:
            if len(kept) >= MAX_PREPARED_STATEMENTS:
                result = _check_result(line, line.pgconn.exec_params(text, octets, types or None, formats))
                return _Prepared(b"").read_rows(line, result)
            prepared = _Prepared(b"direct_%d" % next(_numbers))
            _check_result(line, line.pgconn.prepare(prepared.name, text, types or None))
            kept[text, types] = prepared
        result = line.pgconn.exec_prepared(prepared.name, octets, formats)
        if result.status == ExecStatus.TUPLES_OK:
            return prepared.read_rows(line, result)
        state = result.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
        if state == _FORGOTTEN:
            # DEALLOCATE ALL, which psycopg sends after some rollbacks, drops ours as well.
            kept.clear()
        elif state == OUTDATED_PLAN.encode():
            del kept[text, types]
            _check_result(line, line.pgconn.exec_(b"DEALLOCATE " + prepared.name))
        else:
            break
    _check_result(line, result)
    return []


def _check_result(line: psycopg.Connection[Any], result: Any) -> Any:
    """``result``, or raise the error it reports."""
    if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        return result
    if line.pgconn.status == ConnStatus.BAD:
        raise psycopg.OperationalError(line.pgconn.get_error_message() or "the connection is lost")
    fault = errors.error_from_result(result, encoding=line.info.encoding)
    # PostgreSQL gives each of its errors a SQLSTATE; libpq gives its own none. Where it could not write, but had a
    # warning to read, it still calls the connection good.
    raise psycopg.OperationalError(str(fault)) if fault.sqlstate is None else fault


@lru_cache(maxsize=512)
def _number_placeholders(sql: str) -> tuple[bytes, tuple[str, ...] | None, tuple[int, ...]]:
    """``sql`` with the server's own placeholders; the names of its parameters in order, if they are named; and the
    positions of those without a cast, whose type has to be sent."""
    names: dict[str, int] = {}
    bare: dict[int, None] = {}
    count = 0

    def number(match: re.Match[str]) -> str:
        nonlocal count
        if match[0] == "%%":
            return "%"
        if match[1] is None:
            count += 1
            place = count
        else:
            place = names.setdefault(match[1], len(names) + 1)
        if not match[2]:
            bare[place - 1] = None
        return f"${place}{match[2] or ''}"

    text = _PLACE.sub(number, sql).encode()
    return text, tuple(names) if names else None, tuple(bare)


def _type_oids(values: Sequence[Any], bare: tuple[int, ...]) -> tuple[int, ...]:
    """Type OIDs of the parameters: derived from the values where no cast does it, else 0 (the server decides)."""
    types = [0] * len(values)
    for place in bare:
        value = values[place]
        kind = type(value)
        if kind is int:
            types[place] = _INT4 if -(2**31) <= value < 2**31 else _INT8
        else:
            types[place] = _TYPE_OF.get(kind, 0)
    return tuple(types)


def _encode_text(value: str) -> bytes:
    octets = value.encode()
    if b"\0" in octets:
        raise psycopg.DataError("PostgreSQL text cannot contain NUL (0x00) bytes")
    return octets


def _encode_time(value: datetime) -> bytes:
    # As the server sends and keeps it: the text would cost both of us ten times as much.
    return _pack_microseconds((value - _EPOCH) // _MICROSECOND)


def _encode_list(value: list[Any]) -> bytes | None:
    """An array of whole numbers; None for all others, which psycopg encodes."""
    if not value or any(type(item) is not int for item in value):
        return None
    return b"{%s}" % b",".join([b"%d" % item for item in value])


def _encode_other(line: psycopg.Connection[Any], value: Any) -> bytes | None:
    """Encode a value by psycopg's own dumper, which needs the connection: bytes within a list are escaped in its
    way."""
    if type(value) is list and (numbers := _encode_list(value)) is not None:
        return numbers
    dumped = Transformer(line).get_dumper(value, PyFormat.TEXT).dump(value)
    return None if dumped is None else bytes(dumped)


_Encoder = Callable[[Any], bytes | None]
_AS_TEXT: Final[dict[type, _Encoder]] = {
    NoneType: lambda _: None,
    str: _encode_text,
    int: b"%d".__mod__,
    bool: {True: b"t", False: b"f"}.__getitem__,
    UUID: lambda value: b"%032x" % value.int,
    Decimal: lambda value: str(value).encode(),
    timedelta: lambda value: b"%d days %d.%06d seconds" % (value.days, value.seconds, value.microseconds),
    Jsonb: lambda value: _encode_json(value.obj).encode(),
}
_AS_BINARY: Final[dict[type, _Encoder]] = {bytes: bytes, bytearray: bytes, memoryview: bytes, datetime: _encode_time}


@lru_cache(maxsize=1024)
def _choose_encoders(kinds: tuple[type, ...]) -> tuple[list[_Encoder | None], list[int]]:
    """The encoder of each value of a statement, None for those of :func:`_encode_other`, and libpq's formats, by the
    types of the values."""
    encoders = [_AS_BINARY.get(kind) or _AS_TEXT.get(kind) or _choose_by_base(kind) for kind in kinds]
    return encoders, [_BINARY if kind in _AS_BINARY else _TEXT for kind in kinds]


def _choose_by_base(kind: type) -> _Encoder | None:
    """The encoder of a state or an event, which are subclasses of str; None for everything else."""
    return _encode_text if issubclass(kind, str) else None


def _encode_values(line: psycopg.Connection[Any], values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Values and their formats for libpq."""
    encoders, formats = _choose_encoders(tuple(map(type, values)))
    pairs = zip(encoders, values, strict=True)
    return [_encode_other(line, value) if encode is None else encode(value) for encode, value in pairs], formats
