"""Keyset pagination of long lists, without counting.

A page begins after a row, not at a number, so every page costs the same and rows that arrive do not shift it. The
cursor is the row's values of the columns the list is ordered by, as whole numbers and an id: ``20261121-019a…``. An
invalid cursor, or one of another list, gives the first page. Source: docs/decisions/0025.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from gateway.core import identifiers

KeysetRow = TypeVar("KeysetRow", bound=Model)
KEYSET_PAGE_ROWS: Final = 100
"""Rows of one page."""
AFTER_PARAMETER: Final = "after"
"""The query parameter with the cursor."""
_NUMBER: Final = re.compile("[0-9]{1,18}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def _parse_number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _parse_time(text: str) -> datetime | None:
    """A time from microseconds since 1970."""
    try:
        return _EPOCH + timedelta(microseconds=number) if (number := _parse_number(text)) is not None else None
    except OverflowError:
        return None


def _parse_day(text: str) -> date | None:
    """A date from its ordinal: day 1 is 1 January of year 1."""
    try:
        return date.fromordinal(number) if (number := _parse_number(text)) is not None else None
    except (ValueError, OverflowError):
        return None


def _parse_amount(text: str) -> Decimal | None:
    """An amount from thousandths."""
    return Decimal(number) / 1000 if (number := _parse_number(text)) is not None else None


_READ: Final[Mapping[type, Callable[[str], Any]]] = MappingProxyType({
    int: _parse_number, datetime: _parse_time, date: _parse_day, UUID: identifiers.parse_id,
    Decimal: _parse_amount,
})  # fmt: skip
_WRITE: Final[Mapping[type, Callable[[Any], str]]] = MappingProxyType({
    int: str, datetime: lambda at: str((at - _EPOCH) // _MICROSECOND), date: lambda day: str(day.toordinal()),
    UUID: lambda ident: ident.hex, Decimal: lambda amount: str(int(amount * 1000)),
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysetOrder:
    """The order of a list: its columns with their types. The last column is a key, so that no two rows are equal.
    ``newest_first``: all columns descending. ``by_time``: so that the first page is that of the newest or oldest
    rows."""

    columns: tuple[tuple[str, type], ...]
    newest_first: bool = False
    by_time: bool = True

    def names(self) -> list[str]:
        """Arguments of ``order_by``."""
        return [f"{'-' if self.newest_first else ''}{name}" for name, _kind in self.columns]

    def name_of(self, row: Model) -> str:
        """The cursor that names ``row``."""
        return "-".join(_WRITE[kind](getattr(row, name)) for name, kind in self.columns)

    def read(self, text: str) -> list[Any] | None:
        """The values of a cursor; None if it is not one of this list."""
        parts = text.split("-")
        if len(parts) != len(self.columns):
            return None
        values = [_READ[kind](part) for (_name, kind), part in zip(self.columns, parts, strict=True)]
        return None if None in values else values

    def behind(self, values: Sequence[Any]) -> Q:
        """The condition on rows after the one with these values."""
        than = "lt" if self.newest_first else "gt"
        said = [(name, value) for (name, _kind), value in zip(self.columns, values, strict=True)]
        found = [Q(*said[:place], (f"{name}__{than}", value)) for place, (name, value) in enumerate(said)]
        # Redundant, but on the first column alone: an index is entered at the right place by it.
        return Q((f"{said[0][0]}__{than}e", said[0][1])) & reduce(or_, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysetPage(Generic[KeysetRow]):
    """One page of rows. ``first`` and ``next``: addresses of the first and the next page, '' if there is none."""

    rows: list[KeysetRow]
    first: str
    next: str
    newest_first: bool


def read_keyset_page(
    rows: QuerySet[KeysetRow],
    order: KeysetOrder,
    asked: Mapping[str, str],
    kept: Sequence[tuple[str, str]] = (),
    at: str = "",
) -> KeysetPage[KeysetRow]:
    """The page that the request's parameters ask for. ``kept``: the list's other parameters, for addresses; ``at``: the
    anchor of the list on its page, such as #errors."""
    values = order.read(asked.get(AFTER_PARAMETER, ""))
    found = rows if values is None else rows.filter(order.behind(values))
    listed = list(found.order_by(*order.names())[: KEYSET_PAGE_ROWS + 1])
    more = len(listed) > KEYSET_PAGE_ROWS
    listed = listed[:KEYSET_PAGE_ROWS]
    return KeysetPage(
        rows=listed,
        newest_first=order.newest_first and order.by_time,
        first=f"?{urlencode(kept)}{at}" if values is not None else "",
        next=f"?{urlencode([*kept, (AFTER_PARAMETER, order.name_of(listed[-1]))])}{at}" if more else "",
    )
