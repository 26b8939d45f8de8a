"""Adapter of the documented CSV layout: a header that names columns, one line per record. docs/settlement-files.md.

A record is one line: no line break inside quotes. So a broken line spoils nothing else, and reading can resume at any
line.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any, BinaryIO, Final

from reporting.settlement.formats.port import FileFormat, OpenedFile, ParsedLine, UnreadableFileError
from reporting.settlement.layout import COLUMN_NAMES, REQUIRED_COLUMNS, LineFault, mask_faulty_value

MAX_CSV_LINE_BYTES: Final = 64 * 1024
CSV_DELIMITERS: Final = ";,\t|"
_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
TRAILER_MARK: Final = "#END"
"""The last line may declare the number of lines: ``#END;1200``."""


def _begins(head: bytes) -> bool:
    return b"ReconciliationType" in head.partition(b"\n")[0] or head.startswith(_UTF16)


def _open(stream: BinaryIO, after: int, at: int) -> OpenedFile:
    """Raise UnreadableFileError for a header without the required columns."""
    stream.seek(0)
    head = stream.readline(MAX_CSV_LINE_BYTES)
    if head.startswith(_UTF16):
        raise UnreadableFileError("the file is UTF-16; it must be UTF-8")
    try:
        text = head.removeprefix(_BOM).decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UnreadableFileError("the header is not UTF-8") from None
    delimiter = max(CSV_DELIMITERS, key=text.count)
    try:
        names = [name.strip() for name in _fields(text, delimiter)]
    except csv.Error:
        raise UnreadableFileError("the header has a quote that is not closed, or text beside a closed one") from None
    if twice := sorted(name for name, number in Counter(names).items() if number > 1):
        raise UnreadableFileError(f"the header names {', '.join(twice)[:200]} twice")
    if lacking := [name for name in REQUIRED_COLUMNS if name not in names]:
        raise UnreadableFileError(f"the header lacks {', '.join(lacking)}")
    unused = [mask_faulty_value(name) for name in names if name not in COLUMN_NAMES]
    # Columns missing from the file are read from an empty field appended to each line.
    places = [names.index(name) if name in names else len(names) for name in COLUMN_NAMES]
    totals: dict[str, Any] = {}
    start = max(at, len(head))
    stream.seek(start)
    lines = _lines(stream, start, after, delimiter, len(names), itemgetter(*places), totals)
    return OpenedFile(
        present=[name for name in COLUMN_NAMES if name in names], lines=lines, unused=unused, totals=totals
    )


def _fields(text: str, delimiter: str) -> list[str]:
    """The fields of one line. Raises csv.Error."""
    if '"' not in text:
        return text.split(delimiter)
    return next(csv.reader([text], delimiter=delimiter, strict=True), [])


def _lines(
    stream: BinaryIO, position: int, number: int, delimiter: str, width: int, choose: Any, totals: dict[str, Any]
) -> Iterator[ParsedLine]:
    for raw in iter(partial(stream.readline, MAX_CSV_LINE_BYTES), b""):
        position += len(raw)
        if len(raw) == MAX_CSV_LINE_BYTES and not raw.endswith(b"\n"):
            position += _skip(stream)
            number += 1
            yield _faulty(number, position, f"is longer than {MAX_CSV_LINE_BYTES:,} bytes")
            continue
        if raw in (b"\n", b"\r\n"):
            continue
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
            if text.startswith("#"):
                _comment(text, delimiter, totals)
                continue
            fields = _fields(text, delimiter)
        except UnicodeDecodeError as fault:
            number += 1
            yield _faulty(number, position, f"is not UTF-8 (byte {fault.start + 1} of the line)")
            continue
        except csv.Error:
            number += 1
            yield _faulty(number, position, "has a quote that is not closed, or text beside a closed one")
            continue
        number += 1
        if len(fields) != width:
            yield _faulty(number, position, f"has {len(fields)} fields where the header has {width}")
            continue
        fields.append("")
        yield ParsedLine(number, position, choose(fields))
    totals["read"] = number


def _skip(stream: BinaryIO) -> int:
    """Skip the rest of a line that is too long. Returns the number of bytes skipped."""
    skipped = 0
    while rest := stream.readline(MAX_CSV_LINE_BYTES):
        skipped += len(rest)
        if rest.endswith(b"\n"):
            break
    return skipped


def _comment(text: str, delimiter: str, totals: dict[str, Any]) -> None:
    word, _, said = text.partition(delimiter)
    if word == TRAILER_MARK and said.strip(delimiter).isdecimal() and len(said) < 12:
        totals["said"] = int(said.strip(delimiter))


def _faulty(number: int, position: int, message: str) -> ParsedLine:
    return ParsedLine(number, position, None, (LineFault(column="", value="", message=f"the line {message}"),))


CSV_FORMAT: Final = FileFormat(
    name="CSV", about="UTF-8, a header of column names, separated by ; or , or tab", begins=_begins, open=_open
)
