"""Connections to checked addresses, by urllib3: every wait ends at the call's deadline; and a pool of them."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import time
from collections import deque
from functools import lru_cache
from typing import Any, Final, cast

import certifi
from django.conf import settings
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import HTTPResponse

from gateway.core.secret import Secret, SecretBytes
from gateway.outbound import address_guard
from gateway.outbound.address_guard import CallTarget

MAX_CONNECTION_LIFE_S: Final = 60.0
"""Maximum age of a pooled connection, since a name's address may change."""
MAX_CONNECTION_IDLE_S: Final = 4.0
"""Shorter than the usual server timeout of five seconds, so that a connection about to be closed is not reused."""


class _DeadlineMixin:
    """Ends every wait of a socket at ``deadline``: a socket's own timeout would begin anew with each packet."""

    deadline: float

    def send_secret(self, octets: SecretBytes) -> None:
        super().settimeout(_time_left(self.deadline))  # type: ignore[misc]
        super().sendall(octets.reveal())  # type: ignore[misc]

    def recv_into(self, *args: Any) -> int:
        super().settimeout(_time_left(self.deadline))  # type: ignore[misc]
        return int(super().recv_into(*args))  # type: ignore[misc]


class _Socket(_DeadlineMixin, socket.socket):
    pass


class _TlsSocket(_DeadlineMixin, ssl.SSLSocket):
    pass


class OutboundConnection(HTTPConnection):
    """Connects to the addresses that the guard resolved and checked, to no other. Made by :func:`open_connection`."""

    address: str
    used: float

    def __init__(self, target: CallTarget, deadline: float, **options: Any) -> None:
        super().__init__(target.host, target.port, **options)
        self._target, self._deadline = target, deadline
        self._request: list[SecretBytes] = []
        self._opened = time.monotonic()

    def _new_conn(self) -> socket.socket:
        last: OSError | None = None
        for family, address in address_guard.resolve_target(self._target, self._deadline - time.monotonic()):
            fresh = _Socket(family, socket.SOCK_STREAM)
            try:
                fresh.settimeout(_time_left(self._deadline))
                fresh.connect(address)
                fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                fresh.settimeout(_time_left(self._deadline))  # for the whole TLS handshake
            except OSError as fault:
                fresh.close()
                last = fault
                continue
            self.address = str(address[0])
            return fresh
        if isinstance(last, TimeoutError):
            raise last
        raise address_guard.AddressUnreachableError(str(last))

    @property
    def _socket(self) -> _Socket | _TlsSocket:
        return cast(_Socket | _TlsSocket, self.sock)

    def begin(self, deadline: float) -> None:
        """Begin a call that ends at ``deadline``."""
        self._socket.deadline = deadline

    def send(self, data: Any) -> None:
        """Collect the request, which :meth:`getresponse` sends at once: if sending fails, no stack frame of urllib3
        has the headers in clear."""
        self._request.append(data if isinstance(data, SecretBytes) else SecretBytes(data))

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        """Send the request and read the head of the answer."""
        self._socket.send_secret(SecretBytes(b"".join(part.reveal() for part in self._request)))
        self._request.clear()
        return super().getresponse()

    @property
    def is_fresh(self) -> bool:
        """True if it may serve another call."""
        return self.is_young and self.is_connected

    @property
    def is_young(self) -> bool:
        """True if neither its age nor its time of idling is over."""
        now = time.monotonic()
        return now - self._opened < MAX_CONNECTION_LIFE_S and now - self.used < MAX_CONNECTION_IDLE_S


class _TlsConnection(OutboundConnection, HTTPSConnection):
    pass


def open_connection(target: CallTarget, deadline: float, identity: Secret | None = None) -> OutboundConnection:
    """Connect to ``target``. ``identity``: our certificate and its key as PEM, for a server that knows us by them.
    Raises ForbiddenAddressError, AddressUnreachableError, ssl.SSLError and TimeoutError."""
    line = (
        OutboundConnection(target, deadline)
        if target.scheme == "http"
        else _TlsConnection(target, deadline, ssl_context=_find_tls_context(identity))
    )
    try:
        line.connect()
    except BaseException:
        line.close()
        raise
    line.begin(deadline)
    return line


def _time_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return left


def _find_tls_context(identity: Secret | None) -> ssl.SSLContext:
    """The shared context, or one with a certificate of ours, whose key passes through memory only, never a disk."""
    if identity is None:
        return _made_context(settings.GATEWAY_OUTBOUND_CA_FILE)
    context = _build_tls_context(settings.GATEWAY_OUTBOUND_CA_FILE)
    file = os.memfd_create("identity")
    try:
        os.write(file, identity.reveal().encode())
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
    return context


@lru_cache(maxsize=4)
def _made_context(extra: str) -> ssl.SSLContext:
    return _build_tls_context(extra)


def _build_tls_context(extra: str) -> ssl.SSLContext:
    """A TLS context that verifies certificates and names, TLS 1.2 or later; ``extra``: a file of further
    authorities."""
    context = ssl.create_default_context()
    context.sslsocket_class = _TlsSocket
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    paths = ssl.get_default_verify_paths()
    if paths.cafile is None and not (paths.capath and os.listdir(paths.capath)):
        context.load_verify_locations(cafile=certifi.where())
    if extra:
        context.load_verify_locations(cafile=extra)
    return context


class ConnectionPool:
    """Idle connections for further calls to the same host and port, at most ``most`` for each. Thread-safe.

    A connection stays with the address that was checked. ``identity``: the certificate and key, as PEM, that all of
    them show.
    """

    def __init__(self, most: int = 8, *, identity: Secret | None = None) -> None:
        self._most = most
        self._identity = identity
        self._idle: dict[tuple[str, str, int], deque[OutboundConnection]] = {}
        self._lock = threading.Lock()
        self._swept = time.monotonic()

    def take(self, target: CallTarget, deadline: float) -> tuple[OutboundConnection, bool]:
        """A connection, and whether it was used before: the server may have closed such a one meanwhile."""
        while True:
            with self._lock:
                idle = self._idle.get(target.key)
                line = idle.pop() if idle else None
            if line is None:
                return open_connection(target, deadline, self._identity), False
            if line.is_fresh:
                line.begin(deadline)
                return line, True
            line.close()

    def give(self, target: CallTarget, line: OutboundConnection) -> None:
        """Return a connection to the pool, if there is room. Connections that were idle for too long are closed now and
        then: a receiver that is never called again would keep its sockets open."""
        line.used = time.monotonic()
        with self._lock:
            closing = self._take_old(line.used)
            idle = self._idle.setdefault(target.key, deque())
            (idle if len(idle) < self._most else closing).append(line)
        for each in closing:
            each.close()

    def _take_old(self, now: float) -> list[OutboundConnection]:
        """Remove the connections that may serve no other call, at most once per MAX_CONNECTION_IDLE_S."""
        if now - self._swept < MAX_CONNECTION_IDLE_S:
            return []
        self._swept = now
        old: list[OutboundConnection] = []
        kept: dict[tuple[str, str, int], deque[OutboundConnection]] = {}
        for key, idle in self._idle.items():
            for line in idle:
                if line.is_young:
                    kept.setdefault(key, deque()).append(line)
                else:
                    old.append(line)
        self._idle = kept
        return old

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            kept = [line for idle in self._idle.values() for line in idle]
            self._idle.clear()
        for line in kept:
            line.close()
