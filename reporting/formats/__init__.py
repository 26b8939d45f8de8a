"""The formats of settlement files: a table of adapters. A new one is a module with a row here.

An adapter turns bytes into lines in the columns of reporting.layout; what a good line is, it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from reporting.formats import camt053, delimited
from reporting.formats.port import Format, NotReadable

HEAD_BYTES: Final = 64 * 1024
"""Of a file's beginning, to tell its format by."""

_ALL: Final = (delimited.FORMAT, camt053.FORMAT)
FORMATS: Final[Mapping[str, Format]] = MappingProxyType({one.name: one for one in _ALL})


def told_from(head: bytes, wanted: str = "") -> Format:
    """The format of a file that begins with ``head``, or ``wanted`` where the institute says it. Raises NotReadable."""
    if wanted:
        if wanted not in FORMATS:
            raise NotReadable(f"{wanted} is no format; known are {', '.join(FORMATS)}")
        return FORMATS[wanted]
    for one in _ALL:
        if one.begins(head):
            return one
    if not head:
        raise NotReadable("the file is empty")
    raise NotReadable(f"the format is none of {', '.join(FORMATS)} (docs/settlement-files.md)")
