"""Connections to checked addresses, every operation on which ends at the call's deadline; and a pool of them."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import ssl
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import certifi
from django.conf import settings

from gateway.core.secret import SecretBytes
from gateway.outbound import address_guard
from gateway.outbound.address_guard import CallTarget

MAX_CONNECTION_LIFE_S: Final = 60.0
"""Maximum age of a pooled connection, since a name's address may change."""
MAX_CONNECTION_IDLE_S: Final = 4.0
"""Shorter than the usual server timeout of five seconds, so that a connection about to be closed is not reused."""


class DeadlinePassedError(TimeoutError):
    """The call's deadline has passed."""


class OutboundConnection:
    """A socket with a deadline. Made by :func:`open_connection` only."""

    __slots__ = ("_socket", "address", "deadline", "opened", "used")

    def __init__(self, connected: socket.socket, address: str, deadline: float) -> None:
        self._socket = connected
        self.address = address
        self.deadline = deadline
        self.opened = self.used = time.monotonic()

    def _time_left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise DeadlinePassedError("the deadline has passed")
        return left

    def sendall(self, octets: SecretBytes) -> None:
        """Send everything before the deadline of the whole call, not of each packet."""
        self._socket.settimeout(self._time_left())
        self._socket.sendall(octets.reveal())

    def recv_into(self, buffer: Any) -> int:
        """Receive before the deadline."""
        self._socket.settimeout(self._time_left())
        return self._socket.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        """The file object that http.client reads an answer from."""
        return io.BufferedReader(_Reading(self))

    @property
    def is_fresh(self) -> bool:
        """True if it may serve another call."""
        now = time.monotonic()
        return now - self.opened < MAX_CONNECTION_LIFE_S and now - self.used < MAX_CONNECTION_IDLE_S

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self._socket.close()


class _Reading(io.RawIOBase):
    def __init__(self, line: OutboundConnection) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._line.recv_into(buffer)


def open_connection(target: CallTarget, deadline: float) -> OutboundConnection:
    """Connect to ``target``. Raises ForbiddenAddressError, AddressUnreachableError, ssl.SSLError and TimeoutError."""
    last: OSError | None = None
    for family, address in address_guard.resolve_target(target, deadline - time.monotonic()):
        left = deadline - time.monotonic()
        if left <= 0:
            raise DeadlinePassedError("the deadline has passed")
        fresh = socket.socket(family, socket.SOCK_STREAM)
        try:
            fresh.settimeout(left)
            fresh.connect(address)
            fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if target.scheme == "https":
                fresh.settimeout(max(0.001, deadline - time.monotonic()))
                fresh = _context().wrap_socket(fresh, server_hostname=target.host)
        except OSError as fault:
            fresh.close()
            last = fault
            continue
        except BaseException:
            fresh.close()
            raise
        return OutboundConnection(fresh, str(address[0]), deadline)
    if isinstance(last, ssl.SSLError | TimeoutError):
        raise last
    raise address_guard.AddressUnreachableError(str(last))


def _context() -> ssl.SSLContext:
    return _made_context(settings.GATEWAY_OUTBOUND_CA_FILE)


@lru_cache(maxsize=4)
def _made_context(extra: str) -> ssl.SSLContext:
    """A TLS context that verifies certificates and names, TLS 1.2 or later; ``extra``: a file of further
    authorities."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    paths = ssl.get_default_verify_paths()
    if paths.cafile is None and not (paths.capath and os.listdir(paths.capath)):
        context.load_verify_locations(cafile=certifi.where())
    if extra:
        context.load_verify_locations(cafile=extra)
    return context


class ConnectionPool:
    """Idle connections for further calls to the same host and port, at most ``most`` for each. Thread-safe.

    A connection stays with the address that was checked.
    """

    def __init__(
        self, most: int = 8, opening: Callable[[CallTarget, float], OutboundConnection] = open_connection
    ) -> None:
        self._most = most
        self._opening = opening
        self._idle: dict[tuple[str, str, int], deque[OutboundConnection]] = defaultdict(deque)
        self._lock = threading.Lock()

    def take(self, target: CallTarget, deadline: float) -> tuple[OutboundConnection, bool]:
        """A connection, and whether it was used before: the server may have closed such a one meanwhile."""
        while True:
            with self._lock:
                idle = self._idle.get(target.key)
                line = idle.pop() if idle else None
            if line is None:
                return self._opening(target, deadline), False
            if line.is_fresh:
                line.deadline = deadline
                return line, True
            line.close()

    def give(self, target: CallTarget, line: OutboundConnection) -> None:
        """Return a connection to the pool, if there is room."""
        line.used = time.monotonic()
        with self._lock:
            idle = self._idle[target.key]
            if len(idle) < self._most:
                idle.append(line)
                return
        line.close()

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            kept = [line for idle in self._idle.values() for line in idle]
            self._idle.clear()
        for line in kept:
            line.close()
