"""gunicorn's worker, which answers what is no HTTP request in the envelope of every answer, and repeats nothing of it.

Bytes that are no request may be the rest of a body whose length was announced too short, card number and all: gunicorn
itself would send them back in HTML and write them into its log. And it waits for no request for ever: whoever sends
one byte by byte, or went away within one, would keep a thread. Source: Part A, Errors; ruling D13; goals, R8.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import time
from typing import Any, Final

from gunicorn import http, util
from gunicorn.http import errors
from gunicorn.http.message import Request
from gunicorn.workers.gthread import ThreadWorker

_SAID: Final[tuple[tuple[type[Exception], int, str, str], ...]] = (
    (errors.LimitRequestLine, 414, "URI Too Long", "the address is too long: send a POST's parameters in its body"),
    (errors.LimitRequestHeaders, 431, "Request Header Fields Too Large", "the headers are too many or too long"),
    (errors.UnsupportedTransferCoding, 501, "Not Implemented", "this transfer coding is not known"),
    (errors.ParseException, 400, "Bad Request", "this is no HTTP request: did the length before fit the body?"),
)  # fmt: skip
"""What the reader of requests raises → status, its words, and ours. The first that fits counts."""


REQUEST_S: Final = 15.0
"""How long one request may take to come, head and body, beside what its bytes take."""
SLOWEST: Final = 16 * 1024
"""Bytes a second that the slowest sender of a long body is allowed."""


class Sender:
    """A client's socket as requests are read from it: each within its time."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.begin()

    def begin(self) -> None:
        """The next request may come from now on."""
        self._until = time.monotonic() + REQUEST_S

    def recv(self, size: int) -> bytes:
        """What came; b"" at the end. Raises ConnectionResetError when the time is over: the line is cut then."""
        while True:
            try:
                found = self._line.recv(size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._wait()
            else:
                self._until += len(found) / SLOWEST
                return found

    def _wait(self) -> None:
        left = self._until - time.monotonic()
        coming = select.poll()
        coming.register(self._line, select.POLLIN)
        if left > 0 and coming.poll(left * 1000):
            return
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        # What gunicorn takes for a client that went away, and the application for a body that ended early.
        raise ConnectionResetError(errno.ECONNRESET, f"the request did not come within {REQUEST_S:g} s")


MAX_HEAD_BYTES: Final = 64 * 1024
"""Of a request's headers together: proxies send no more than 32 KiB. gunicorn counts each for itself, 800 KiB in all,
which take it 70 ms to read."""


class BoundedRequest(Request):  # type: ignore[misc]
    """A request whose head has a bound as a whole."""

    max_buffer_headers = property(lambda self: MAX_HEAD_BYTES, lambda self, value: None)


MAX_DRAINED: Final = 64 * 1024
"""Bytes of an unread body that gunicorn reads away after an answer, so that the connection can go on."""


def closing(application: Any) -> Any:
    """``application``, whose answer to a body that it leaves unread says that the connection ends with it: gunicorn
    closes it then, and would have promised the opposite."""

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            if _is_unread(environ):
                start_response.__self__.force_close()
            return start_response(status, headers, *more)

        return application(environ, start)

    return answer


def _is_unread(environ: dict[str, Any]) -> bool:
    """Whether more of the body is left than is read away."""
    reader = getattr(environ.get("wsgi.input"), "reader", None)
    if "HTTP_TRANSFER_ENCODING" in environ:
        return getattr(reader, "parser", None) is not None
    return int(getattr(reader, "length", 0) or 0) > MAX_DRAINED


class Worker(ThreadWorker):  # type: ignore[misc]
    """The threaded worker of `make run`."""

    def load_wsgi(self) -> None:
        """Load the application."""
        super().load_wsgi()
        self.wsgi = closing(self.wsgi)

    def handle(self, conn: Any) -> Any:
        """Serve the next request of a connection, if it comes in time."""
        if conn.parser is None and not self.cfg.is_ssl:
            conn.parser = http.get_parser(self.cfg, Sender(conn.sock), conn.client)
            conn.parser.mesg_class = BoundedRequest
        if not conn.is_http2 and isinstance(sender := conn.parser.unreader.sock, Sender):
            sender.begin()
        return super().handle(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answer what could not be read. What the application did wrong is left to gunicorn."""
        found = next((row for row in _SAID if isinstance(exc, row[0])), None)
        if found is None or isinstance(exc, errors.InvalidResponseHeader | errors.InvalidResponseHeaderName):
            super().handle_error(req, client, addr, exc)
            return
        _, status, reason, words = found
        self.log.warning("No HTTP request from %s: %s", addr[0] if addr else "here", type(exc).__name__)
        try:
            util.write_nonblock(client, _answer(status, reason, words))
        except Exception:
            self.log.debug("Whoever sent it is gone.")


def _answer(status: int, reason: str, words: str) -> bytes:
    # The worker's module is loaded before Django is.
    from gateway import identifiers
    from gateway.api.envelope import envelope, to_json
    from gateway.catalogue.errors import INVALID

    body = to_json(envelope(INVALID, identifiers.ndc(identifiers.row_id()), more=words))
    head = (
        f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
