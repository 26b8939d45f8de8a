"""What an adapter offers: to know its files by their beginning, and to read them line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from reporting.layout import Fault


class NotReadable(Exception):
    """The file as a whole cannot be read; the text says why and is shown."""


@dataclass(slots=True)
class Line:
    """``number``: of the data line, from 1. ``position``: bytes read with it. ``values``: in the order of
    layout.COLUMNS, or the faults that keep it from having any."""

    number: int
    position: int
    values: Sequence[str] | None
    faults: Sequence[Fault] = ()


@dataclass(slots=True, kw_only=True)
class Opened:
    """A file that is being read. ``present``: the columns it has. ``lines`` goes on after line ``after`` of position
    ``at``. ``unused``: columns of the file that nobody reads. ``totals``: what the file says of itself, complete when
    its lines are at their end."""

    present: Sequence[str]
    lines: Iterator[Line]
    unused: Sequence[str] = ()
    totals: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """``open(stream, after, at)``: read from the beginning, or go on: ``stream`` can be sought."""

    name: str
    about: str
    begins: Callable[[bytes], bool]
    open: Callable[[BinaryIO, int, int], Opened]
