"""Files that several attempts write one after the other, of which none can harm what another one wrote.

Each attempt at a piece of work appends to files of its own name alone. A file's content is a list of parts: names with
the bytes of each that count, in their order; the work's cursor keeps it. What a worker writes that stalled and lost its
lease stands behind those bytes, or in a file that no list names.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

FilePart = Sequence[Any]
"""A file's name in the folder and how many of its bytes count, as JSON keeps it."""
COPY_CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFolder:
    """Where one attempt at a piece of work writes. ``attempt``: a number that no other attempt at it has."""

    path: Path
    attempt: int

    def own(self, name: str) -> str:
        """``name`` as a file of this attempt is called."""
        stem, dot, ending = name.partition(".")
        return f"{stem}-{self.attempt}{dot}{ending}"

    def append(self, parts: Sequence[FilePart], name: str, written: bytes) -> list[FilePart]:
        """``parts`` with ``written`` behind them, on the disk when this returns."""
        own, kept, length = self.own(f"part-{name}"), list(parts), 0
        if kept and kept[-1][0] == own:
            length = int(kept.pop()[1])
        descriptor = os.open(self.path / own, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            file.truncate(length)
            file.seek(length)
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
            return [*kept, [own, file.tell()]]

    def reading(self, parts: Sequence[FilePart]) -> IO[bytes]:
        """What ``parts`` are, one after the other."""
        return io.BufferedReader(_Joined(self._pieces(parts)), COPY_CHUNK_BYTES)

    def joined(self, parts: Sequence[FilePart], name: str, alive: Callable[[], None]) -> str:
        """``parts`` as one file of this attempt; what it is called."""
        own = self.own(name)
        with (self.path / own).open("wb") as file:
            for piece in self._pieces(parts):
                file.write(piece)
                alive()
            file.flush()
            os.fsync(file.fileno())
        return own

    def _pieces(self, parts: Sequence[FilePart]) -> Iterator[bytes]:
        for name, length in parts:
            left = int(length)
            with (self.path / name).open("rb") as file:
                while left:
                    piece = file.read(min(left, COPY_CHUNK_BYTES))
                    if not piece:
                        raise EOFError(f"{name} is shorter than was kept of it")
                    left -= len(piece)
                    yield piece


def public_file_name(name: str) -> str:
    """A file of some attempt as people are to know it."""
    return re.sub(r"-[0-9]+(?=\.[a-z]+\Z)", "", name)


class _Joined(io.RawIOBase):
    """Pieces as a file to read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count
