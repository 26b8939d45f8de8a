"""What a run knows of each processor: a side with programs, taps, load and a comparison of its own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from tests.external.peers import PEERS, program
from tests.faults.books import Payment
from tests.faults.client import Client
from tests.faults.finding import Finding
from tests.faults.processes import eventually, read

LATE_S: Final = 3.5
"""Longer than the gateway waits in these runs."""
HELD_S: Final = 3.0
STOPPED_WITHIN_S: Final = 2.0
VISA: Final = "4200000000000000"
LAUNCHER: Final = Path(__file__).parents[2] / "external" / "on_loopback.py"


class Side(Protocol):
    """One processor, or two behind one channel. ``missing``: why it cannot be had, '' where it can; ``clients``: how
    many pay there at once."""

    name: str
    clients: int
    missing: str
    taps: list[Any]

    def up(self) -> None:
        """Start what answers."""

    def document(self) -> dict[str, Any]:
        """The channel's configuration."""

    def load(self, client: Client, number: int, seed: int) -> Sequence[Any]:
        """What pays through it: client ``number`` of those that it wants."""

    def compare(self, payments: Mapping[str, Payment]) -> list[Finding]:
        """Stop it, and hold its books against the payments of its channel."""

    def told(self) -> str:
        """One line of figures."""

    def down(self) -> None:
        """Stop what answers."""


def absent(name: str) -> str:
    return "" if PEERS and program(name).exists() else f"{name} is not installed"


def hold(pid: int) -> bool:
    """SIGSTOP for HELD_S, then SIGCONT whatever happens; whether it was stopped."""
    os.kill(pid, signal.SIGSTOP)
    try:
        held = eventually(lambda: (now := read(pid)) is not None and now.state == "T", STOPPED_WITHIN_S)
        time.sleep(HELD_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    return held


def all_taps(sides: Iterable[Side]) -> list[Any]:
    return [tap for side in sides for tap in side.taps]
