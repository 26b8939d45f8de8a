"""The stub acquirer's log: JSON lines, appended and fsynced before the answer that depends on them is sent.

Entries written while an fsync runs share the next one.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Journal:
    """An append-only file. ``seq`` numbers its lines from 1."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._path = path
        self.seq = 0
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._work = asyncio.Event()

    def entries(self) -> Iterator[dict[str, Any]]:
        """Entries of earlier runs, oldest first. A last line cut off by a crash was never answered, and is removed."""
        text = self._path.read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            os.ftruncate(self._file, whole)
        for line in text[:whole].splitlines():
            entry = json.loads(line)
            self.seq = entry["seq"]
            yield entry

    def write(self, entry: Mapping[str, Any]) -> asyncio.Future[None]:
        """Queue ``entry``, in the order of the calls; the future is done once it is on disk."""
        self.seq += 1
        line = {"seq": self.seq, "at": datetime.now(UTC).isoformat(timespec="microseconds"), **entry}
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((json.dumps(line, separators=(",", ":")).encode() + b"\n", done))
        self._work.set()
        return done

    async def run(self) -> None:
        """Write and fsync for ever."""
        while True:
            await self._work.wait()
            self._work.clear()
            batch, self._waiting = self._waiting, []
            await asyncio.to_thread(self._append, b"".join(line for line, _ in batch))
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    def _append(self, octets: bytes) -> None:
        while octets:
            octets = octets[os.write(self._file, octets) :]
        os.fsync(self._file)
