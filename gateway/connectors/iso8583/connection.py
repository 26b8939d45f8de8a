"""One TCP or TLS connection to a host: whole frames in and out, and every wait has an end.

A TLS object bears one thread at a time, so each call into it is short, on a socket that never blocks, under one lock;
waiting is done outside. Frames are written one after the other, each as a whole.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from django.conf import settings

from gateway.connectors.iso8583.codec import MessageCodec
from gateway.connectors.iso8583.terminal import Terminal, is_private_address
from gateway.core.secret import SecretBytes

HOST_READ_BYTES: Final = 65_536
_LOOK_AGAIN_S: Final = 0.05


class NothingSentError(Exception):
    """The connection could not take a single octet of a frame."""


class HostConnection:
    """Open from the start. ``deadline`` is of time.monotonic(). Raises OSError (ssl.SSLError and TimeoutError among
    them) when there is no host to talk to."""

    def __init__(self, terminal: Terminal, deadline: float) -> None:
        self._wire: MessageCodec = terminal.wire
        line = socket.create_connection((terminal.host, terminal.port), timeout=_left(deadline))
        try:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if terminal.tls:
                name = terminal.tls_name or terminal.host
                line.settimeout(_left(deadline))
                line = _context_of(terminal).wrap_socket(line, server_hostname=name)
            elif settings.IS_LIVE and not is_private_address(str(line.getpeername()[0])):
                raise OSError("the host's address is not private, and without TLS nothing is said to it in live")
            line.setblocking(False)
        except BaseException:
            line.close()
            raise
        self._socket = line
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._read = b""

    def send(self, octets: bytes | SecretBytes, deadline: float) -> None:
        """Write one frame. Raises NothingSentError when none of it went out, OSError when it is unknown how much
        did."""
        if not self._writing.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise NothingSentError("the link takes nothing more")
        try:
            sent = 0
            # A view prints as its address.
            rest = memoryview(octets.reveal() if isinstance(octets, SecretBytes) else octets)
            while sent < len(rest):
                try:
                    with self._lock:
                        sent += self._socket.send(rest[sent:])
                except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    if time.monotonic() >= deadline:
                        self._refuse(sent, "the link takes nothing more")
                    self._wait(select.POLLOUT, _LOOK_AGAIN_S)
                except OSError as fault:
                    self._refuse(sent, fault.strerror or str(fault))
        finally:
            self._writing.release()

    def _refuse(self, sent: int, why: str) -> None:
        """A record of TLS may have gone out in part although nothing was reported as sent."""
        if sent == 0 and not isinstance(self._socket, ssl.SSLSocket):
            raise NothingSentError(why)
        # Half a frame is out: nothing that follows it could be understood.
        self.close()
        raise OSError(why)

    def frames(self, timeout_s: float) -> list[bytes] | None:
        """The frames that came in within ``timeout_s``, none of them perhaps; None when the host hung up.

        Raises OSError, and BadFrame when the stream makes no sense.
        """
        octets = self._receive()
        if octets is None:
            self._wait(select.POLLIN, timeout_s)
            octets = self._receive()
        if octets is None:
            return []
        if not octets:
            return None
        found, self._read = self._wire.split_frames(self._read + octets)
        return found

    def _receive(self) -> bytes | None:
        """What is there; b'' for the end, None for nothing yet."""
        try:
            with self._lock:
                return self._socket.recv(HOST_READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None

    def _wait(self, event: int, timeout_s: float) -> None:
        poll = select.poll()
        if self._socket.fileno() < 0:
            raise OSError("the connection is closed")
        poll.register(self._socket, event)
        poll.poll(timeout_s * 1000)

    def close(self) -> None:
        """Also wakes whoever waits on it."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._socket.close()

    def abandon(self) -> None:
        """Let go of it in a forked process: the parent goes on talking."""
        with contextlib.suppress(OSError):
            self._socket.close()


def _context_of(terminal: Terminal) -> ssl.SSLContext:
    """With the terminal's own certificate, where it has one. Raises OSError for one that cannot be used."""
    if not terminal.tls_certificate or terminal.tls_key is None:
        return _context(terminal.tls_ca)
    context = ssl.create_default_context(cadata=terminal.tls_ca or None)
    # The library reads files only: these lie in memory, and the key never on a disk.
    with _in_memory(terminal.tls_certificate) as certificate, _in_memory(terminal.tls_key.reveal()) as key:
        try:
            context.load_cert_chain(certificate, key, password="")  # encrypted keys are refused, not asked about
        except ssl.SSLError as fault:
            raise OSError(f"tls_certificate and tls_key do not do: {fault.reason or 'unreadable'}") from None
    return context


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A path that a text can be read from, in this process and for the length of the block."""
    handle = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(handle, text.encode())
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)


@lru_cache(maxsize=64)
def _context(authorities: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authorities or None)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
