"""What an adapter offers: to know its files by their beginning, and to read them line by line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import structlog

from reporting.settlement.layout import LineFault

log = structlog.get_logger(__name__)


class UnreadableFileError(Exception):
    """The file as a whole cannot be read; the text says why and is shown."""


PARSER_EXCEPTIONS: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    csv.Error,
)
"""What an adapter may raise over bytes that nobody thought of."""


@contextmanager
def translate_parser_errors() -> Iterator[None]:
    """An adapter that stumbles has a file that cannot be read: it is told so, and nothing else waits for it."""
    try:
        yield
    except PARSER_EXCEPTIONS as fault:
        log.exception("settlement_file_not_understood")
        raise UnreadableFileError(f"the file cannot be read ({type(fault).__name__}); the log has more") from None


@dataclass(slots=True)
class ParsedLine:
    """``number``: of the data line, from 1. ``position``: bytes read with it. ``values``: in the order of
    layout.COLUMNS, or the faults that keep it from having any."""

    number: int
    position: int
    values: Sequence[str] | None
    faults: Sequence[LineFault] = ()


@dataclass(slots=True, kw_only=True)
class OpenedFile:
    """A file that is being read. ``present``: the columns it has. ``lines`` goes on after line ``after`` of position
    ``at``. ``unused``: columns of the file that nobody reads. ``totals``: what the file says of itself, complete when
    its lines are at their end."""

    present: Sequence[str]
    lines: Iterator[ParsedLine]
    unused: Sequence[str] = ()
    totals: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """``open(stream, after, at)``: read from the beginning, or go on: ``stream`` can be sought."""

    name: str
    about: str
    begins: Callable[[bytes], bool]
    open: Callable[[BinaryIO, int, int], OpenedFile]
