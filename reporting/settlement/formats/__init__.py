"""The formats of settlement files as a table of adapters. A new format is a module with a row here.

An adapter turns bytes into lines in the columns of reporting.settlement.layout, which checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from reporting.settlement.formats import camt053, delimited
from reporting.settlement.formats.port import FileFormat, UnreadableFileError

FORMAT_DETECTION_BYTES: Final = 64 * 1024
"""Bytes of a file's beginning, from which its format is detected."""

_ALL: Final = (delimited.CSV_FORMAT, camt053.CAMT053_FORMAT)
FILE_FORMATS: Final[Mapping[str, FileFormat]] = MappingProxyType({one.name: one for one in _ALL})


def detect_format(head: bytes, wanted: str) -> FileFormat:
    """The adapter for a file that begins with ``head``, or the one named ``wanted`` by the institute. Raises
    UnreadableFileError."""
    if wanted:
        if wanted not in FILE_FORMATS:
            raise UnreadableFileError(f"{wanted} is no format; known are {', '.join(FILE_FORMATS)}")
        return FILE_FORMATS[wanted]
    for one in _ALL:
        if one.begins(head):
            return one
    if not head:
        raise UnreadableFileError("the file is empty")
    raise UnreadableFileError(
        f"the format is none of {', '.join(FILE_FORMATS)}: a table needs the documented columns in its first line"
        " (see Settlement files in the documentation), a bank statement has to be XML"
    )
