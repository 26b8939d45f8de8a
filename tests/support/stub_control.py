"""Controls a running stub acquirer, and reads its ledger and log: for tests, fault tests and benchmarks."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

STUB_CONTROL_TIMEOUT_S: Final = 10.0


class StubControl:
    """Client of the acquirer at ``host:port``; every call opens its own connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))

    def steer(self, *, next: int | None = None, **control: Any) -> None:
        """Set delays and fault probabilities; without arguments, reset them. Raises ValueError for unknown names.

        ``next``: for so many messages only. ``kinds``: which messages (submit, inquire, void).
        """
        answer = self._ask({"kind": "control", "control": control, **({"next": next} if next is not None else {})})
        if answer["outcome"] != "set":
            raise ValueError(answer["why"])

    def books(self) -> dict[str, Any]:
        """The ledger: ``transactions`` (a list), ``pools`` (name → amount as text) and ``tombstones``."""
        return self._ask({"kind": "books"})

    def transactions(self) -> dict[str, dict[str, Any]]:
        """Payment id (32 hex digits) → the transaction that the acquirer booked."""
        return {row["key"]: row for row in self.books()["transactions"]}

    def send(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send any message of the protocol and return its answer."""
        return self._ask(message)

    def _ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        with socket.create_connection(self._address, timeout=STUB_CONTROL_TIMEOUT_S) as line:
            line.sendall(json.dumps({"id": 1, **message}).encode() + b"\n")
            answer: dict[str, Any] = json.loads(line.makefile("rb").readline())
            return answer


def read_log_entries(log: Path) -> list[dict[str, Any]]:
    """The complete lines of an acquirer's log, oldest first."""
    text = log.read_bytes()
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]
