"""Streaming parser of bank messages in XML (ISO 20022): a few named record levels, and the values in each.

Supported: pain.002 (status), camt.029 (answers to cancellation requests), camt.052, camt.053, camt.054 (bookings) and
pacs.004 (returns), any version. One record of
each level is in memory at a time. gateway.core.xml rejects XML features that such messages never use; other roots and
namespaces are rejected here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import BinaryIO, Final

from gateway.core.xml import MAX_VALUES_PER_PATH, XML_CHUNK_BYTES, XmlStreamReader

MAX_RECORD_PATHS: Final = 500
"""Paths stored per record."""
_NAMESPACE: Final = re.compile(
    r"urn:iso:std:iso:20022:tech:xsd:(pain\.002|camt\.029|camt\.05[234]|pacs\.004)(\.[0-9]{3}\.[0-9]{2})"
)

RECORD_LEVELS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "pain.002": ("GrpHdr", "OrgnlGrpInfAndSts", "OrgnlPmtInfAndSts", "TxInfAndSts"),
        "camt.029": ("Assgnmt", "RslvdCase", "Sts", "CxlDtls", "OrgnlGrpInfAndSts", "OrgnlPmtInfAndSts", "TxInfAndSts"),
        "camt.052": ("GrpHdr", "Rpt", "Ntry", "TxDtls"),
        "camt.053": ("GrpHdr", "Stmt", "Ntry", "TxDtls"),
        "camt.054": ("GrpHdr", "Ntfctn", "Ntry", "TxDtls"),
        "pacs.004": ("GrpHdr", "OrgnlGrpInf", "TxInf"),
    }
)
"""Message → the elements that are records; each holds what stands in it, but not in a record within it."""


class UnreadableBankMessageError(Exception):
    """The file is not a supported message; the text says why."""


@dataclass(slots=True, kw_only=True)
class MessageRecord:
    """One element of a level: relative path → its texts. ``ancestors``: those among the records, outermost first.
    ``within``: the number of records in it, by level."""

    level: str
    ancestors: tuple[MessageRecord, ...]
    found: dict[str, list[str]] = field(default_factory=dict)
    within: dict[str, int] = field(default_factory=dict)

    def first(self, *paths: str) -> str:
        """The first value found, in the order of ``paths``."""
        return next((self.found[path][0] for path in paths if path in self.found), "")

    def find_ancestor(self, level: str) -> MessageRecord:
        """The ancestor of a level; an empty record if there is none."""
        return next((one for one in self.ancestors if one.level == level), MessageRecord(level=level, ancestors=()))


@dataclass(frozen=True, slots=True)
class BankXmlMessage:
    """``kind``: such as pain.002. ``records``: in the order in which they end; iterating may raise
    UnreadableBankMessageError."""

    kind: str
    records: Iterator[MessageRecord]


def parse_bank_message(stream: BinaryIO) -> BankXmlMessage:
    """Parse the message in ``stream``. Raises UnreadableBankMessageError."""
    reading = _Reading()
    records = _read_records(stream, reading)
    head: list[MessageRecord] = []
    while not reading.kind:
        try:
            head.append(next(records))
        except StopIteration:
            break
    if not reading.kind:
        raise UnreadableBankMessageError("the XML is no message that banks send")
    return BankXmlMessage(reading.kind, _chain_records(head, records))


def _chain_records(head: list[MessageRecord], rest: Iterator[MessageRecord]) -> Iterator[MessageRecord]:
    yield from head
    yield from rest


def _read_records(stream: BinaryIO, reading: _Reading) -> Iterator[MessageRecord]:
    while True:
        chunk = stream.read(XML_CHUNK_BYTES)
        reading.feed(chunk)
        yield from reading.taken()
        if not chunk:
            return


class _Reading:
    """The state of reading one message: the open records, and those that have ended."""

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
                "the XML is no message that is read here: pain.002, camt.029, camt.052 to 054, pacs.004"
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
