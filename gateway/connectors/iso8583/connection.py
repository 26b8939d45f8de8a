"""One TCP or TLS connection to a host: whole frames in and out, every wait with a deadline.

A TLS object may be used by one thread at a time, so each call into it is short, on a non-blocking socket, under one
lock; waiting happens outside the lock. Frames are written one after the other.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import struct
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
_RESETS: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: closing drops what is still to be sent."""


class NothingSentError(Exception):
    """No octet of the frame was sent."""


class HostConnection:
    """Connects when it is made. ``deadline`` is in time.monotonic(). Raises OSError (including ssl.SSLError and
    TimeoutError) if the host cannot be reached."""

    def __init__(self, terminal: Terminal, deadline: float) -> None:
        self._wire: MessageCodec = terminal.wire
        line = socket.create_connection((terminal.host, terminal.port), timeout=_left(deadline))
        try:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            # What the host has not taken within the time for an answer is not delivered any more.
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _user_timeout_ms())
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
        """Write one frame. Raises NothingSentError if none of it went out, OSError if that is not known."""
        if not self._writing.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise NothingSentError("the link takes nothing more")
        try:
            sent = 0
            # A memoryview prints as its address, so tracebacks show no contents.
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
        """Raise the right error for a failed write. With TLS, a record may have gone out in part although none was
        reported."""
        if sent == 0 and not isinstance(self._socket, ssl.SSLSocket):
            raise NothingSentError(why)
        # Half a frame was sent: the host could not decode anything that follows.
        self.abort()
        raise OSError(why)

    def frames(self, timeout_s: float) -> list[bytes] | None:
        """The frames received within ``timeout_s``, perhaps none; None if the host closed the connection.

        Raises OSError, and BadFrameError for an unreadable stream.
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
        """Available bytes; b'' at the end of the stream, None for nothing yet."""
        try:
            with self._lock:
                return self._socket.recv(HOST_READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None

    def _wait(self, event: int, timeout_s: float) -> None:
        with self._lock:
            number = self._socket.fileno()
        if number < 0:
            raise OSError("the connection is closed")
        poll = select.poll()
        poll.register(number, event)
        poll.poll(timeout_s * 1000)

    def close(self) -> None:
        """Close the connection; a thread that waits on it wakes up."""
        with self._lock:
            self._shut_down(socket.SHUT_RDWR)

    def abort(self) -> None:
        """Close the connection of a link that broke, or that has questions without an answer: what the system has not
        sent yet goes nowhere, so that no question arrives after its reversal."""
        with self._lock:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
            self._shut_down(socket.SHUT_RD)  # wakes up the thread that waits, and sends nothing

    def _shut_down(self, how: int) -> None:
        """Shut down and close the socket. Needs the lock: a TLS socket that is closing would write in clear."""
        with contextlib.suppress(OSError):
            # Not SSLSocket's own, which drops the TLS session before it shuts anything down.
            socket.socket.shutdown(self._socket, how)
        with contextlib.suppress(OSError):
            self._socket.close()

    def abandon(self) -> None:
        """Drop the socket in a forked process without closing the parent's session."""
        with contextlib.suppress(OSError):
            self._socket.close()


def _context_of(terminal: Terminal) -> ssl.SSLContext:
    """The TLS context with the terminal's own certificate, if it has one. Raises OSError if that cannot be used."""
    if not terminal.tls_certificate or terminal.tls_key is None:
        return _context(terminal.tls_ca)
    context = ssl.create_default_context(cadata=terminal.tls_ca or None)
    # The ssl module reads files only: these are in memory, so the key is never on a disk.
    with _in_memory(terminal.tls_certificate) as certificate, _in_memory(terminal.tls_key.reveal()) as key:
        try:
            context.load_cert_chain(certificate, key, password="")  # encrypted keys are refused, not asked about
        except ssl.SSLError as fault:
            raise OSError(f"tls_certificate and tls_key do not do: {fault.reason or 'unreadable'}") from None
    return context


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[str]:
    """A path from which a text can be read, in this process and within the block."""
    handle = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(handle, text.encode())
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)


@lru_cache(maxsize=64)
def _context(authorities: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authorities or None)


def _user_timeout_ms() -> int:
    return max(1, int(settings.GATEWAY_ACQUIRER_TIMEOUT_S * 1000))


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
