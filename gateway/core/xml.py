"""Streaming reader for XML from banks: calls back at each element's start and end. The input is untrusted.

What no bank message contains is refused early: a document type, entities, processing instructions, deep nesting,
unsupported encodings. Text is kept up to a limit, however large the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from xml.parsers import expat

XML_CHUNK_BYTES: Final = 64 * 1024
"""Bytes to read at a time, for callers of :meth:`XmlStreamReader.feed`."""
MAX_XML_DEPTH: Final = 40
MAX_XML_TOKEN_BYTES: Final = 1024 * 1024
"""Longest tag or comment. expat keeps an unfinished one whole and, before version 2.6, reads it anew with each chunk: a
file of one endless tag took hours and twice its size of memory (CVE-2023-52425)."""
MAX_XML_TEXT_CHARS: Final = 1_000
"""Most characters that are kept of one element, and of one attribute."""
MAX_VALUES_PER_PATH: Final = 50
"""Values of one path within a record that are kept for callers that collect them; further ones are dropped."""
_SPACE: Final = re.compile(r"\s+")


class XmlStreamReader:
    """Parses one document. ``path``: the names of the open elements, the root first.

    ``start(name, namespace, currency)`` is called when an element has begun and is the last of ``path``; ``currency``:
    its attribute Ccy, the only one that money needs, or None. ``end(name, text)`` is called when it ends and still is
    the last; ``text``: its text since its last child, white space normalised. ``fault`` is the exception type raised,
    with a text that says what is wrong with the XML; the callbacks may raise it, too.
    """

    def __init__(
        self, start: Callable[[str, str, str | None], None], end: Callable[[str, str], None], fault: type[Exception]
    ) -> None:
        self.path: list[str] = []
        self._start, self._end, self._fault = start, end, fault
        self._text: list[str] = []
        self._kept = 0
        self._fed = 0
        parser = expat.ParserCreate(namespace_separator="|")
        parser.buffer_text = True
        parser.StartElementHandler = self._start_element
        parser.EndElementHandler = self._end_element
        parser.CharacterDataHandler = self._add_text
        parser.StartDoctypeDeclHandler = self._refuse("a document type")
        parser.EntityDeclHandler = self._refuse("an entity")
        parser.ExternalEntityRefHandler = self._refuse("an outside entity")
        parser.ProcessingInstructionHandler = self._refuse("a processing instruction")
        self._parser = parser

    def feed(self, chunk: bytes) -> None:
        """Parse a chunk; b'' ends the document. Raises ``fault``."""
        try:
            self._parser.Parse(chunk, not chunk)
        except expat.ExpatError as fault:
            words = expat.ErrorString(fault.code)
            raise self._fault(f"the XML is broken at line {fault.lineno:,}: {words}") from None
        except (LookupError, ValueError):
            # What expat raises for an encoding that Python does not know, or with several bytes per character.
            raise self._fault("the XML has an encoding that is not read here; write UTF-8") from None
        self._fed += len(chunk)
        if self._fed - max(self._parser.CurrentByteIndex, 0) > MAX_XML_TOKEN_BYTES:
            raise self._fault(f"the XML has a tag or comment of more than {MAX_XML_TOKEN_BYTES:,} bytes")

    def _start_element(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition("|")
        self.path.append(local)
        if len(self.path) > MAX_XML_DEPTH:
            raise self._fault(f"the XML is nested deeper than {MAX_XML_DEPTH}")
        self._text, self._kept = [], 0
        currency = attributes.get("Ccy")
        self._start(local, space, currency if currency is None else currency[:MAX_XML_TEXT_CHARS])

    def _add_text(self, text: str) -> None:
        if self._kept < MAX_XML_TEXT_CHARS:
            self._text.append(text[: MAX_XML_TEXT_CHARS - self._kept])
            self._kept += len(text)

    def _end_element(self, name: str) -> None:
        text = _SPACE.sub(" ", "".join(self._text)).strip()
        self._text, self._kept = [], 0
        self._end(self.path[-1], text)
        self.path.pop()

    def _refuse(self, what: str) -> Any:
        def refuse(*_: Any) -> None:
            raise self._fault(f"the XML has {what}, which no bank's message has")

        return refuse
