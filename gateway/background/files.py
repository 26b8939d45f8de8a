"""Result files written across several attempts, such that no attempt can damage what another one wrote.

Each attempt at a piece of work appends only to files of its own. A file's content is a list of parts: file names with
the number of bytes of each that count, in order, kept in the work's cursor. What a stalled worker writes after it lost
its lease lies behind those bytes, or in a file that no list names.
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
"""A file's name in the folder and how many of its bytes count, as stored in JSON."""
COPY_CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFolder:
    """Where one attempt at a piece of work writes. ``attempt``: a number that no other attempt at it has."""

    path: Path
    attempt: int

    def own(self, name: str) -> str:
        """``name`` prefixed for this attempt."""
        stem, dot, ending = name.partition(".")
        return f"{stem}-{self.attempt}{dot}{ending}"

    def append(self, parts: Sequence[FilePart], name: str, written: bytes) -> list[FilePart]:
        """Append ``written`` to ``parts``; it is on disk when this returns. Returns the new parts."""
        own, counted, length = self.own(f"part-{name}"), list(parts), 0
        if counted and counted[-1][0] == own:
            length = int(counted.pop()[1])
        descriptor = os.open(self.path / own, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            file.truncate(length)
            file.seek(length)
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
            return [*counted, [own, file.tell()]]

    def reading(self, parts: Sequence[FilePart]) -> IO[bytes]:
        """A stream over the content of ``parts``, in order."""
        return io.BufferedReader(_Joined(self._pieces(parts)), COPY_CHUNK_BYTES)

    def joined(self, parts: Sequence[FilePart], name: str, alive: Callable[[], None]) -> str:
        """Join ``parts`` into one file of this attempt; returns its name. ``alive`` is called between pieces."""
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
    """A file's name as users see it, without the prefix of its attempt."""
    return re.sub(r"-[0-9]+(?=\.[a-z]+\Z)", "", name)


class _Joined(io.RawIOBase):
    """A readable stream over pieces of bytes."""

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
