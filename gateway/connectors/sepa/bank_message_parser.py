"""Banks' messages in XML (ISO 20022), read as they stream: a few named levels, and what is said on each.

Read are pain.002 (status), camt.052, camt.053, camt.054 (bookings) and pacs.004 (returns), any version. One record of
each level at a time is kept. gateway.core.xml refuses what such a message never has; another root or namespace is
refused here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import BinaryIO, Final

from gateway.core.xml import MAX_VALUES_PER_PATH, XML_CHUNK_BYTES, XmlStreamReader

MAX_RECORD_PATHS: Final = 500
"""Paths of one record that are kept."""
_NAMESPACE: Final = re.compile(
    r"urn:iso:std:iso:20022:tech:xsd:(pain\.002|camt\.05[234]|pacs\.004)(\.[0-9]{3}\.[0-9]{2})"
)

RECORD_LEVELS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "pain.002": ("GrpHdr", "OrgnlGrpInfAndSts", "OrgnlPmtInfAndSts", "TxInfAndSts"),
        "camt.052": ("GrpHdr", "Rpt", "Ntry", "TxDtls"),
        "camt.053": ("GrpHdr", "Stmt", "Ntry", "TxDtls"),
        "camt.054": ("GrpHdr", "Ntfctn", "Ntry", "TxDtls"),
        "pacs.004": ("GrpHdr", "OrgnlGrpInf", "TxInf"),
    }
)
"""Message → the elements that are records; each holds what stands in it, but not in a record within it."""


class UnreadableBankMessageError(Exception):
    """The file is no message that is read here; why, in words."""


@dataclass(slots=True, kw_only=True)
class MessageRecord:
    """One element of a level: relative path → its texts. ``above``: the records it stands in, outermost first.
    ``within``: how many records of each level it held."""

    level: str
    ancestors: tuple[MessageRecord, ...]
    found: dict[str, list[str]] = field(default_factory=dict)
    within: dict[str, int] = field(default_factory=dict)

    def first(self, *paths: str) -> str:
        """The first value that there is, by the order of ``paths``."""
        return next((self.found[path][0] for path in paths if path in self.found), "")

    def find_ancestor(self, level: str) -> MessageRecord:
        """The record of a level that this one stands in; an empty one when there is none."""
        return next((one for one in self.ancestors if one.level == level), MessageRecord(level=level, ancestors=()))


@dataclass(frozen=True, slots=True)
class BankXmlMessage:
    """``kind``: such as pain.002. ``records``: in the order in which they end; reading on may raise
    UnreadableBankMessageError."""

    kind: str
    records: Iterator[MessageRecord]


def parse_bank_message(stream: BinaryIO) -> BankXmlMessage:
    """The message in ``stream``. Raises UnreadableBankMessageError."""
    reading = _Reading()
    records = _records(stream, reading)
    head: list[MessageRecord] = []
    while not reading.kind:
        try:
            head.append(next(records))
        except StopIteration:
            break
    if not reading.kind:
        raise UnreadableBankMessageError("the XML is no message that banks send")
    return BankXmlMessage(reading.kind, _chained(head, records))


def _chained(head: list[MessageRecord], rest: Iterator[MessageRecord]) -> Iterator[MessageRecord]:
    yield from head
    yield from rest


def _records(stream: BinaryIO, reading: _Reading) -> Iterator[MessageRecord]:
    while True:
        chunk = stream.read(XML_CHUNK_BYTES)
        reading.feed(chunk)
        yield from reading.taken()
        if not chunk:
            return


class _Reading:
    """The records that are open, and those that have ended."""

    def __init__(self) -> None:
        self.kind = ""
        self._levels: frozenset[str] = frozenset()
        self._open: list[tuple[int, MessageRecord]] = []
        self._done: list[MessageRecord] = []
        elements = XmlStreamReader(self._start, self._end, UnreadableBankMessageError)
        self._path, self.feed = elements.path, elements.feed

    def taken(self) -> list[MessageRecord]:
        done, self._done = self._done, []
        return done

    def _start(self, local: str, space: str, currency: str | None) -> None:
        if len(self._path) == 1:
            self._begin(local, space)
        elif local in self._levels:
            record = MessageRecord(level=local, ancestors=tuple(one for _, one in self._open))
            if self._open:
                within = self._open[-1][1].within
                within[local] = within.get(local, 0) + 1
            self._open.append((len(self._path), record))
        if currency is not None:
            self._keep("@", currency)

    def _begin(self, local: str, space: str) -> None:
        known = _NAMESPACE.fullmatch(space)
        if local != "Document" or known is None:
            raise UnreadableBankMessageError(
                "the XML is no message that is read here: pain.002, camt.052 to 054, pacs.004"
            )
        self.kind = known[1]
        self._levels = frozenset(RECORD_LEVELS[self.kind])

    def _end(self, local: str, text: str) -> None:
        if text:
            self._keep("", text)
        if self._open and self._open[-1][0] == len(self._path):
            self._done.append(self._open.pop()[1])

    def _keep(self, mark: str, text: str) -> None:
        if not self._open:
            return
        depth, record = self._open[-1]
        key = "/".join(self._path[depth:]) + mark
        if key not in record.found and len(record.found) >= MAX_RECORD_PATHS:
            return
        kept = record.found.setdefault(key, [])
        if len(kept) < MAX_VALUES_PER_PATH:
            kept.append(text)
