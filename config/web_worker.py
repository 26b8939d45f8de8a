"""gunicorn's worker with time limits per request, and answers to invalid HTTP in the API's own error format.

Bytes that are no request may be the rest of a body whose length was announced too short, card number and all: gunicorn
itself would send them back in HTML and write them into its log. And no request is waited for endlessly: a client that
sends one byte by byte, or goes away within one, would occupy a thread.
Source: Part A, Errors; ruling D13; goal R8.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import select
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, Final

from gunicorn import http, util
from gunicorn.http import errors
from gunicorn.http.body import ChunkedReader, LengthReader
from gunicorn.http.message import Request
from gunicorn.workers.gthread import TConn, ThreadWorker

from config.launcher.programs import read_web_sessions

_log: Final = logging.getLogger("gunicorn.error")
_SAID: Final[tuple[tuple[type[Exception], int, str, str], ...]] = (
    (errors.LimitRequestLine, 414, "URI Too Long", "the address is too long: send a POST's parameters in its body"),
    (errors.LimitRequestHeaders, 431, "Request Header Fields Too Large", "the headers are too many or too long"),
    (errors.UnsupportedTransferCoding, 501, "Not Implemented", "this transfer coding is not known"),
    (errors.ParseException, 400, "Bad Request", "this is no HTTP request: did the length before fit the body?"),
)
"""Errors of the request reader → HTTP status, its reason phrase, and our text. The first match counts."""


MAX_REQUEST_READ_S: Final = 15.0
"""Time limit for one request to arrive, head and body, in addition to the time for its bytes."""
MIN_BODY_BYTES_PER_S: Final = 16 * 1024
"""Bytes per second granted to the slowest sender of a long body."""


MAX_WRITE_PAUSE_S: Final = 60.0
"""How long a client may read nothing of its answer."""
SENT_AT_ONCE: Final = 64 * 1024
MAX_FIRST_BYTE_S: Final = 15.0
"""How long a new connection may stay without sending anything."""
MAX_DRAINED_BYTES: Final = 64 * 1024
"""How much of a body that the application left unread gunicorn reads to keep the connection; above it, it closes."""
MAX_LINGER_BYTES: Final = 16 * 1024 * 1024
"""How much of a refused body is read and discarded so that its sender, who may read nothing before all is sent, gets
the answer: four of the largest bodies that are accepted."""
LINGER_S: Final = 5.0
"""Time limit of that."""
THROWN_AT_ONCE: Final = 256 * 1024
_THROWN: Final = bytearray(THROWN_AT_ONCE)
"""Shared by all threads: it is never read."""
SWITCH_INTERVAL_S: Final = 0.0005
"""How long a thread keeps the interpreter while others wait for it; Python's own 5 ms are longer than a payment works.
Source: docs/decisions/0160."""
RETURN_PATIENCE_S: Final = 5.0
"""How long a request that has waited for an acquirer waits for its turn to work, before it goes on beyond the bound."""
CLIENT_PATIENCE_S: Final = 0.5
"""A client that is waited for no longer is not given up for others; and how often a thread that waits for its client
looks whether it has to be."""
GIVEN_UP_TOLD_EVERY_S: Final = 60.0
"""How often the log tells that clients were given up."""
MAX_BOOT_S: Final = 600.0
"""How long a worker may take to load its sources: a cold disk is not a hang, which --timeout is there to detect."""


class ClientWaits:
    """The threads of a process that wait for their clients: for the rest of a request, or for room for an answer.

    Clients that send or read next to nothing, of which one stranger can have hundreds, must not hold all threads. So
    when more than ``most`` threads wait for clients, and ``is_short`` says that requests wait for a thread, the clients
    that have been waited for longest are given up. While threads are idle each client may take its time.
    """

    def __init__(self, most: int = sys.maxsize, is_short: Callable[[], bool] = lambda: True) -> None:
        self.most = most
        self.is_short = is_short
        self._lock = threading.Lock()
        self._since: dict[socket.socket, float] = {}
        self._given_up, self._told_at = 0, -GIVEN_UP_TOLD_EVERY_S

    def wait(self, line: socket.socket, event: int, *, since: float, until: float) -> bool:
        """Whether ``line`` is ready for ``event``, or closed by its client, before the monotonic time ``until``; False
        if it was given up. ``since``: when this client was first waited for within its request, or its answer."""
        coming = select.poll()
        coming.register(line, event)
        with self._lock:
            self._since[line] = since
        ready = False
        try:
            while not ready and (left := until - time.monotonic()) > 0:
                self._give_up_slowest()
                ready = bool(coming.poll(min(left, CLIENT_PATIENCE_S) * 1000))
        finally:
            with self._lock:
                is_given_up = self._since.pop(line, None) is None
        return ready and not is_given_up

    def _give_up_slowest(self) -> None:
        with self._lock:
            if len(self._since) <= self.most or not self.is_short():
                return
            now = time.monotonic()
            slowest = sorted(self._since, key=self._since.__getitem__)[: len(self._since) - self.most]
            for line in slowest:
                if self._since[line] <= now - CLIENT_PATIENCE_S:
                    del self._since[line]
                    self._given_up += 1
                    # Its thread wakes up, and finds that the client was given up.
                    with contextlib.suppress(OSError):
                        line.shutdown(socket.SHUT_RDWR)
            if not self._given_up or now < self._told_at + GIVEN_UP_TOLD_EVERY_S:
                return
            count, self._given_up, self._told_at = self._given_up, 0, now
        _log.warning("requests wait for a thread: slow clients cut off: %d", count)


CLIENT_WAITS: Final = ClientWaits()
"""Those of this process; how many there may be follows from its threads."""


class TimedSocket:
    """A client's socket for reading requests, with a time limit for each."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self.begin()

    def begin(self) -> None:
        """Start the time limit of the next request."""
        self._began = time.monotonic()
        self._until = self._began + MAX_REQUEST_READ_S

    def recv(self, size: int) -> bytes:
        """Received bytes; b"" at the end. Raises ConnectionResetError when the time is over and shuts the socket."""
        while True:
            try:
                found = self._line.recv(size, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._wait()
            else:
                self._until += len(found) / MIN_BODY_BYTES_PER_S
                return found

    def _wait(self) -> None:
        _pause_work()
        if CLIENT_WAITS.wait(self._line, select.POLLIN, since=self._began, until=self._until):
            return
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        # gunicorn treats this as a client that went away, and the application as a body that ended early.
        raise ConnectionResetError(errno.ECONNRESET, f"the request did not come within {MAX_REQUEST_READ_S:g} s")


class AnswerSocket:
    """A client's socket for writing an answer: while the client does not read, other requests may work."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._since: float | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)

    def sendall(self, octets: bytes) -> None:
        """Send all of it. Raises ConnectionResetError when the client reads nothing for MAX_WRITE_PAUSE_S."""
        left = memoryview(octets)
        while left:
            try:
                left = left[self._line.send(left, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                _pause_work()
                now = time.monotonic()
                since = self._since = now if self._since is None else self._since
                if not CLIENT_WAITS.wait(self._line, select.POLLOUT, since=since, until=now + MAX_WRITE_PAUSE_S):
                    raise ConnectionResetError(
                        errno.ECONNRESET, f"the client read nothing for {MAX_WRITE_PAUSE_S:g} s"
                    ) from None

    def sendfile(self, file: BinaryIO, offset: int = 0, count: int | None = None) -> int:
        """As socket.sendfile: send a file from ``offset`` on, ``count`` bytes or all; returns how many were sent."""
        file.seek(offset)
        sent = 0
        while part := file.read(min(SENT_AT_ONCE, SENT_AT_ONCE if count is None else count - sent)):
            self.sendall(part)
            sent += len(part)
        return sent


MAX_REQUEST_HEAD_BYTES: Final = 64 * 1024
"""Bytes of a request's headers together: proxies send no more than 32 KiB. gunicorn limits each of them, 800 KiB in
all, which take it 70 ms to read."""


class BoundedRequest(Request):  # type: ignore[misc]
    """A request with a size limit for all its headers together, none of which says where the application is mounted.

    gunicorn takes SCRIPT_NAME and the scheme from a proxy on this machine, and so from its clients where the proxy
    passes such headers on: path and address would be what a stranger likes. The scheme is read by the settings, from
    the one header that the proxy sets (GATEWAY_BEHIND_PROXY).
    """

    max_buffer_headers = property(lambda self: MAX_REQUEST_HEAD_BYTES, lambda self, value: None)

    def _peer_is_trusted_proxy(self) -> bool:
        return False


class RequestQueue:
    """Requests that wait for a thread, and how many threads work: the queue of a ThreadPoolExecutor, and the gate of
    gateway.db.sessions.

    An item goes to the thread that began to wait last. ``most``: so many threads work at a time; one that waits for an
    acquirer has left, and enters again before it goes on, ahead of all items. None is no work: it ends a thread.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._items: deque[Any] = deque()
        self._idle: list[SimpleQueue[Any]] = []
        self._returning: deque[SimpleQueue[None]] = deque()
        self._working = 0
        self._here = threading.local()
        self.needs_thread = True
        """Whether, when the last item came, more items waited than threads."""

    def put(self, item: Any) -> None:
        """Add an item, or hand it over at once."""
        with self._lock:
            if not self._idle or (item is not None and self._working >= self.most):
                self._items.append(item)
                self.needs_thread = len(self._items) > len(self._idle)
                return
            self.needs_thread = False
            self._working += item is not None
            self._idle.pop().put(item)

    def lacks_thread(self) -> bool:
        """Whether items wait and no thread is idle."""
        return bool(self._items) and not self._idle

    def get(self, block: bool = True) -> Any:
        """The oldest item, once this thread may work on it; ``block``: wait for one. Raises queue.Empty."""
        with self._lock:
            self._stop_work()
            if self._items and (self._items[0] is None or self._working < self.most):
                item = self._items.popleft()
                self._working += item is not None
                self._here.works = item is not None
                return item
            if not block:
                raise Empty
            own: SimpleQueue[Any] = SimpleQueue()
            self._idle.append(own)
        item = own.get()
        self._here.works = item is not None
        return item

    def get_nowait(self) -> Any:
        """The oldest item. Raises queue.Empty."""
        return self.get(block=False)

    def enter(self) -> None:
        """Wait until this thread may work again. After RETURN_PATIENCE_S it goes on all the same, since something
        hangs; but twice as many as may work are the most."""
        if getattr(self._here, "works", False):
            return
        with self._lock:
            own: SimpleQueue[None] | None = None
            if self._working < self.most:
                self._working += 1
            else:
                own = SimpleQueue()
                self._returning.append(own)
        while own is not None:
            try:
                own.get(timeout=RETURN_PATIENCE_S)
                break
            except Empty:
                with self._lock:
                    if own not in self._returning:  # it was let in just now
                        break
                    if self._working < 2 * self.most:
                        self._returning.remove(own)
                        self._working += 1
                        break
        self._here.works = True

    def leave(self) -> None:
        """Give this thread's place to another one, before it waits for an acquirer or another system."""
        with self._lock:
            self._stop_work()
            if self._working < self.most and self._items and self._items[0] is not None and self._idle:
                self._working += 1
                self._idle.pop().put(self._items.popleft())

    def _stop_work(self) -> None:
        """This thread no longer works; who comes back from a wait is first to take its place."""
        if getattr(self._here, "works", False):
            self._here.works = False
            self._working -= 1
        if self._returning and self._working < self.most:
            self._working += 1
            self._returning.popleft().put(None)


class _IdleThreads:
    """In place of the standard library's count of idle threads, which a queue that holds items back would mislead."""

    def __init__(self, queue: RequestQueue) -> None:
        self._queue = queue

    def acquire(self, timeout: float | None = None) -> bool:
        """Whether the item that was just put needs no further thread."""
        return not self._queue.needs_thread

    def release(self) -> None:
        """A thread is idle: the queue knows."""


class RequestThreadPool(ThreadPoolExecutor):
    """Threads for requests: the one that became idle last gets the next request, and finds the caches of its processor
    warm. ``working``: so many work at a time, and share as many sessions of the database (gateway.db.sessions)."""

    def __init__(self, threads: int, working: int) -> None:
        queue = self.requests = RequestQueue(working)
        super().__init__(max_workers=threads, initializer=_share_sessions, initargs=(queue,))
        self._work_queue = queue  # type: ignore[assignment]  # it has the methods that the pool calls
        self._idle_semaphore = _IdleThreads(queue)  # type: ignore[assignment]


class Worker(ThreadWorker):  # type: ignore[misc]
    """The threaded worker of `make run`."""

    wsgi: Any

    def __init__(self, *arguments: Any, **names: Any) -> None:
        """gunicorn takes the threads off the connections that it keeps: of 1,000 threads that leaves none."""
        super().__init__(*arguments, **names)
        self.max_keepalived = self.cfg.worker_connections
        self.worker_connections = self.cfg.worker_connections + self.cfg.threads

    def get_thread_pool(self) -> RequestThreadPool:
        """The threads that answer requests. Half of them may wait for clients while requests wait for a thread."""
        pool = RequestThreadPool(self.cfg.threads, min(read_web_sessions(), self.cfg.threads))
        CLIENT_WAITS.most = max(1, self.cfg.threads // 2)
        CLIENT_WAITS.is_short = pool.requests.lacks_thread
        return pool

    def init_process(self) -> None:
        """Load the application and serve; while it loads, the arbiter gets heartbeats."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        threading.Thread(target=self._notify_while_booting, name="booting", daemon=True).start()
        super().init_process()

    def _notify_while_booting(self) -> None:
        until = time.monotonic() + MAX_BOOT_S
        while not self.booted and time.monotonic() < until:
            self.notify()
            time.sleep(0.5)

    def load_wsgi(self) -> None:
        """The application; answers after which the connection is closed say so."""
        super().load_wsgi()
        self.wsgi = _announce_close(self.wsgi)

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection and wait for its first byte in the loop that all connections share. gunicorn waits in a
        thread, five seconds for each: a few hundred connections that send nothing kept all threads for minutes."""
        try:
            line, client = listener.accept()
        except OSError as fault:
            if fault.errno in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                return
            raise
        if self.nr_conns >= self.max_keepalived and self.pending_conns:
            self._close_oldest_pending()
        conn = TConn(self.cfg, line, client, listener.getsockname())
        self.nr_conns += 1
        conn.timeout = time.monotonic() + MAX_FIRST_BYTE_S
        self.pending_conns.append(conn)
        self.poller.register(line, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def _close_oldest_pending(self) -> None:
        """Make room for a new connection: silent ones never keep the process from accepting."""
        oldest = self.pending_conns.popleft()
        self.poller.unregister(oldest.sock)
        self.nr_conns -= 1
        oldest.close()

    def _cap_keepalive(self, deadline: float) -> None:
        """Wait, at the end of the process, no longer for connections that have sent nothing than for kept ones."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def handle(self, conn: Any) -> Any:
        """Serve the next request of a connection, if it arrives in time."""
        if conn.parser is None and not self.cfg.is_ssl:
            conn.parser = http.get_parser(self.cfg, TimedSocket(conn.sock), conn.client)
            conn.parser.mesg_class = BoundedRequest
        if not conn.is_http2 and isinstance(sender := conn.parser.unreader.sock, TimedSocket):
            sender.begin()
        before = getattr(conn.parser, "mesg", None)
        try:
            goes_on = super().handle(conn)
        finally:
            _end_request()
        if not goes_on and not self.cfg.is_ssl and not conn.is_http2:
            _pause_work()
            _close_after_answer(conn, None if conn.parser.mesg is before else conn.parser.mesg)
        return goes_on

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Answer a request; a client that reads slowly holds up no other."""
        line, conn.sock = conn.sock, conn.sock if self.cfg.is_ssl else AnswerSocket(conn.sock)
        try:
            return super().handle_request(req, conn)
        finally:
            conn.sock = line

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        """Answer a request that could not be read. Errors of the application are left to gunicorn."""
        found = next((row for row in _SAID if isinstance(exc, row[0])), None)
        if found is None or isinstance(exc, errors.InvalidResponseHeader | errors.InvalidResponseHeaderName):
            super().handle_error(req, client, addr, exc)
            return
        _, status, reason, words = found
        self.log.warning("No HTTP request from %s: %s", addr[0] if addr else "here", type(exc).__name__)
        try:
            util.write_nonblock(client, _build_answer(status, reason, words))
        except Exception:
            self.log.debug("The client closed the connection.")


def _share_sessions(queue: RequestQueue) -> None:
    # The worker's module is loaded before Django is.
    from gateway.db.sessions import share_sessions

    share_sessions(queue)


def _end_request() -> None:
    from gateway.db.sessions import end_request

    end_request()


def _pause_work() -> None:
    from gateway.db.sessions import pause_work

    pause_work()


def _announce_close(application: Any) -> Callable[[dict[str, Any], Any], Any]:
    """``application`` with `Connection: close` in answers after which gunicorn closes because of an unread body."""

    def answering(environ: dict[str, Any], start_response: Any) -> Any:
        def start(*arguments: Any) -> Any:
            if _is_left_unread(environ["wsgi.input"]):
                start_response.__self__.force_close()
            return start_response(*arguments)

        return application(environ, start)

    return answering


def _close_after_answer(conn: Any, request: Any) -> None:
    """Close a connection after its last answer such that the answer arrives, in the thread that served it: gunicorn
    itself would wait for the client in the loop that all connections share, and read no more than 64 KiB of a body.
    ``request``: None when the last input was no valid request."""
    line: socket.socket = conn.sock
    unread = _unread_bytes(request, conn.parser.unreader)
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_WR)
        throw_away(line, unread or MAX_DRAINED_BYTES, LINGER_S if unread else 0.0)
    conn.close = lambda graceful=False: util.close(line)


def _unread_bytes(request: Any, unreader: Any) -> int:
    """How many bytes of its request a client may still send, limited to what is waited for."""
    reader = request.body.reader if request is not None else None
    if isinstance(reader, LengthReader):
        return int(min(max(0, reader.length - len(unreader.buf.getvalue())), MAX_LINGER_BYTES))
    if isinstance(reader, ChunkedReader) and reader.parser is None:
        return 0
    # In chunks, or no HTTP request at all: its end is not known.
    return MAX_LINGER_BYTES


def throw_away(line: socket.socket, most: int, seconds: float) -> int:
    """Read and discard what arrives on ``line`` until ``most`` bytes came, the client closed or ``seconds`` passed;
    returns how many bytes. MSG_TRUNC: the kernel drops them and copies nothing (tcp(7))."""
    began, thrown = time.monotonic(), 0
    while thrown < most:
        try:
            found = line.recv_into(_THROWN, THROWN_AT_ONCE, socket.MSG_DONTWAIT | socket.MSG_TRUNC)
        except BlockingIOError:
            if not CLIENT_WAITS.wait(line, select.POLLIN, since=began, until=began + seconds):
                break
            continue
        if not found:
            break
        thrown += found
    return thrown


def _is_left_unread(body: Any) -> bool:
    reader = getattr(body, "reader", None)
    if getattr(body, "failed", False):
        return True
    if isinstance(reader, LengthReader):
        return bool(reader.length >= MAX_DRAINED_BYTES)
    # How much of a chunked body is still to come is not known.
    return isinstance(reader, ChunkedReader) and reader.parser is not None


def _build_answer(status: int, reason: str, words: str) -> bytes:
    # The worker's module is loaded before Django is.
    from gateway.api.envelope import build_envelope
    from gateway.catalogue.errors import INVALID_PARAMETER_CODE
    from gateway.core import identifiers
    from gateway.core.compact_json import encode_json

    body = encode_json(build_envelope(INVALID_PARAMETER_CODE, identifiers.format_ndc(identifiers.row_id()), more=words))
    head = (
        f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
