"""A proxy in front of a processor that can be shut and opened; each connection is served by a thread."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any, Final

from tests.faults.peers.misdeeds import Misdeeds

HOST: Final = "127.0.0.1"
CONNECT_S: Final = 5.0
SHUT_WITHIN_S: Final = 5.0


class Tap:
    """What listens between us and a processor. Its journal is a file of its own; ``lines`` holds the same."""

    def __init__(self, *, port: int, to: int, misdeeds: Misdeeds, journal: Path) -> None:
        self.port, self.to, self.misdeeds = port, to, misdeeds
        self.lines: list[dict[str, Any]] = []
        self._journal = journal
        self._lock = threading.Lock()
        self._door: socket.socket | None = None
        self._listener: threading.Thread | None = None
        self._near: set[socket.socket] = set()

    def open(self) -> None:
        """Listen, on the same port as before."""
        self._door = socket.create_server((HOST, self.port), backlog=128)
        self._listener = threading.Thread(target=self._listen, args=(self._door,), daemon=True)
        self._listener.start()

    def shut(self) -> None:
        """Stop listening and close all connections, as if the machine were gone."""
        door, self._door = self._door, None
        if door is not None and self._listener is not None:
            with contextlib.suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            door.close()
            self._listener.join(SHUT_WITHIN_S)
        with self._lock:
            near = list(self._near)
        for line in near:
            hang_up(line)

    def note(self, what: str, **more: Any) -> None:
        """One line of the journal, before anything follows from it."""
        line = {"at": time.time(), "what": what, **more}
        with self._lock:
            self.lines.append(line)
            with self._journal.open("a") as file:
                file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def count(self, what: str) -> int:
        with self._lock:
            return sum(line["what"] == what for line in self.lines)

    def serve(self, near: socket.socket) -> None:
        """One connection, until it ends."""
        raise NotImplementedError

    def far(self) -> socket.socket:
        """A connection to the processor. Raises OSError."""
        line = socket.create_connection((HOST, self.to), timeout=CONNECT_S)
        line.settimeout(None)
        return line

    def _listen(self, door: socket.socket) -> None:
        while True:
            try:
                near, _ = door.accept()
            except OSError:
                return
            threading.Thread(target=self._come_in, args=(near,), daemon=True).start()

    def _come_in(self, near: socket.socket) -> None:
        with self._lock:
            self._near.add(near)
        try:
            with near, contextlib.suppress(OSError):
                self.serve(near)
        finally:
            with self._lock:
                self._near.discard(near)


def hang_up(line: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(how)
