"""Interface of a settlement file format: recognize a file by its beginning, and read it line by line."""

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
"""Exceptions that an adapter may raise on unforeseen bytes."""


@contextmanager
def translate_parser_errors() -> Iterator[None]:
    """Turn any exception of an adapter into UnreadableFileError, so that one file cannot block others."""
    try:
        yield
    except PARSER_EXCEPTIONS as fault:
        log.exception("settlement_format_detection_failed")
        raise UnreadableFileError(f"the file cannot be read ({type(fault).__name__}); the log has more") from None


@dataclass(slots=True)
class ParsedLine:
    """One line of a file. ``number``: of the data line, from 1. ``position``: bytes read up to its end. ``values``: in
    the order of layout.SETTLEMENT_COLUMNS, or the faults that prevented them."""

    number: int
    position: int
    values: Sequence[str] | None
    faults: Sequence[LineFault] = ()


@dataclass(slots=True, kw_only=True)
class OpenedFile:
    """A file being read. ``present``: the columns it has. ``lines`` resumes after line ``after`` at position ``at``.
    ``unused``: columns of the file that are not read. ``totals``: control totals the file declares, complete once its
    lines are read."""

    present: Sequence[str]
    lines: Iterator[ParsedLine]
    unused: Sequence[str] = ()
    totals: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """One format. ``open(stream, after, at)``: read from the beginning, or resume: ``stream`` is seekable."""

    name: str
    about: str
    begins: Callable[[bytes], bool]
    open: Callable[[BinaryIO, int, int], OpenedFile]
