"""Connection pool to the stub acquirer: few connections, kept open, each answer matched to its request.

A failure before anything was sent is StubUnreachableError: the request cannot have been accepted. Any later failure is
StubUnansweredError.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from gateway.core.secret import RedactedDict

MAX_STUB_ANSWER_BYTES: Final = 1024 * 1024
_READ_BYTES: Final = 65_536


class StubUnreachableError(Exception):
    """There is no connection to the acquirer; nothing was sent."""


class StubUnansweredError(Exception):
    """The request may have been sent, and no answer came."""


class StubConnection:
    """One connection with one request at a time; requests are numbered, and answers repeat the number."""

    def __init__(self, host: str, port: int, deadline: float) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout=_left(deadline))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as fault:
            raise StubUnreachableError(f"no connection: {fault.strerror or fault}") from None
        self._number = 0
        self._read = b""

    def ask(self, message: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        """Send ``message`` and return its answer. Raises StubUnansweredError; the connection is then unusable."""
        self._number += 1
        question = RedactedDict({"id": self._number, **message})
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(json.dumps(question, separators=(",", ":")).encode() + b"\n")
            while True:
                answer = _parsed(self._next_line(deadline))
                # A repeated answer to an earlier request is skipped.
                number = answer.get("id")
                if isinstance(number, int) and 0 < number < self._number:
                    continue
                if number != self._number or answer.get("key") != message["key"]:
                    raise StubUnansweredError("the acquirer answered another question")
                return answer
        except TimeoutError:
            raise StubUnansweredError("the acquirer gave no answer in time") from None
        except OSError as fault:
            raise StubUnansweredError(f"the connection broke: {fault.strerror or fault}") from None

    def is_quiet(self) -> bool:
        """True if it can be reused: only repeated answers came in, and it is still open."""
        arrived = select.poll()  # select.select takes no descriptor above 1,023
        with contextlib.suppress(OSError, ValueError):
            arrived.register(self._socket, select.POLLIN)
            while arrived.poll(0):
                octets = self._socket.recv(_READ_BYTES)
                if not octets or len(self._read) > MAX_STUB_ANSWER_BYTES:
                    return False
                self._read += octets
            return True
        return False

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _next_line(self, deadline: float) -> bytes:
        while b"\n" not in self._read:
            if len(self._read) > MAX_STUB_ANSWER_BYTES:
                raise StubUnansweredError("the acquirer's answer has no end")
            self._socket.settimeout(_left(deadline))
            octets = self._socket.recv(_READ_BYTES)
            if not octets:
                raise StubUnansweredError("the acquirer hung up")
            self._read += octets
        line, _, self._read = self._read.partition(b"\n")
        return line


class StubConnectionPool:
    """One process's connections to one acquirer: at most ``most`` in use, each reused."""

    def __init__(self, address: str, *, most: int, timeout_s: float) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port) if port.isascii() and port.isdecimal() else 0
        self._timeout_s = timeout_s
        self._free = threading.BoundedSemaphore(most)
        self._idle: list[StubConnection] = []

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer; waiting, connecting and answering together take at most the timeout.

        Raises StubUnreachableError and StubUnansweredError.
        """
        if not self._host or not self._port:
            raise StubUnreachableError("no address is set (GATEWAY_STUB_ACQUIRER)")
        deadline = time.monotonic() + self._timeout_s
        if not self._free.acquire(timeout=self._timeout_s):
            raise StubUnreachableError("all lines are busy")
        try:
            line = self._quiet_line() or StubConnection(self._host, self._port, deadline)
            try:
                answer = line.ask(message, deadline)
            except BaseException:
                line.close()
                raise
            self._idle.append(line)
            return answer
        finally:
            self._free.release()

    def _quiet_line(self) -> StubConnection | None:
        """An idle connection; broken ones are closed first, before anything is sent."""
        while True:
            try:
                line = self._idle.pop()  # atomic, as is append: no lock
            except IndexError:
                return None
            if line.is_quiet():
                return line
            line.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise StubUnansweredError("the acquirer's answer cannot be read")
    return answer
