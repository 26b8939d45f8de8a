"""Runs a module of the peers' own environment so that what wants to listen on every address listens on 127.0.0.1 alone.

    python on_loopback.py [--instead /tmp/kept=/another/folder/kept] module arguments…

Run by the peers' own Python; it imports nothing of ours. ``--instead``: a file that the program insists on. It is
written whole or not at all: a program that is killed while it writes starts again on what it had written before.
"""

from __future__ import annotations

import builtins
import io
import os
import runpy
import socket
import sys
from typing import Any

_INSTEAD_OF = {"::": "::ffff:127.0.0.1", "": "127.0.0.1", "0.0.0.0": "127.0.0.1"}


class _OnLoopback(socket.socket):
    """A socket that never listens on the outside."""

    def bind(self, address: Any, /) -> None:
        if isinstance(address, tuple):
            address = (_INSTEAD_OF.get(address[0], address[0]), *address[1:])
        super().bind(address)


class _WrittenWhole(io.BufferedWriter):
    """A file that takes its name when it is closed."""

    def __init__(self, path: str) -> None:
        self._path, self._part = path, f"{path}.part"
        super().__init__(io.FileIO(self._part, "w"))

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.replace(self._part, self._path)


def _main(arguments: list[str]) -> None:
    instead = {}
    while arguments and arguments[0] == "--instead":
        there, _, here = arguments[1].partition("=")
        instead[there] = here
        arguments = arguments[2:]
    opened = builtins.open

    def elsewhere(file: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        here = instead.get(file) if isinstance(file, str) else None
        if here is None:
            return opened(file, mode, *more, **named)
        return _WrittenWhole(here) if mode == "wb" else opened(here, mode, *more, **named)

    builtins.open = elsewhere
    socket.socket = _OnLoopback  # type: ignore[misc]
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main(sys.argv[1:])
