"""The peers: programs of others, each a process with a folder, a port on loopback and a log of its own.

They live in an environment beside ours (tests/external/requirements.lock) and are never imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from config.launcher.process import spawn_process

PEERS: Final = os.environ.get("TOLLHOUSE_PEERS", "")
"""The folder of the peers' programs; '' where they are not installed."""
HOST: Final = "127.0.0.1"
PATIENCE_S: Final = 30.0


def program(name: str) -> Path:
    """The peer's program ``name``; the environment's own Python is ``python``."""
    return Path(PEERS) / name


class Peer:
    """One running peer. ``command``: its program and arguments, told to listen on ``port``; ``log``: what it said."""

    def __init__(self, command: Sequence[str | Path], *, port: int, folder: Path, environ: dict[str, str]) -> None:
        self.port, self.log = port, folder / f"{Path(command[0]).name}-{port}.log"
        self._command, self._environ = [str(part) for part in command], environ
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self._child = spawn_process(self._command, log=self.log, env={**os.environ, **self._environ})
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert self._child.poll() is None, self.log.read_text()[-2_000:]
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
                return
            assert time.monotonic() < deadline, f"{self._command[0]} does not listen"
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        """Of the program that runs."""
        assert self._child is not None
        return self._child.pid

    def kill(self) -> None:
        """kill -9."""
        assert self._child is not None
        self._child.kill()
        self._child.wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for one that does not heed it."""
        if self._child is None or self._child.poll() is not None:
            return
        self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], *, port: int, folder: Path, environ: dict[str, str] | None = None
) -> Iterator[Peer]:
    """A peer for the length of a block."""
    peer = Peer(command, port=port, folder=folder, environ=environ or {})
    peer.start()
    try:
        yield peer
    finally:
        peer.stop()
