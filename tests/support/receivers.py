"""Local servers that behave well or badly: the other side of outbound calls, each on a port of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Behaviour = Callable[[socket.socket, bytes], None]
"""Is given the connection and the request that was read, and may answer as it likes. Raising closes the connection."""


@dataclass(slots=True)
class Receiver:
    """A server in a thread: ``requests`` are the raw texts that came, ``connections`` how many were accepted."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


def answering(status: int = 200, body: bytes = b"ok", *headers: str) -> Behaviour:
    """Answers every request the same."""
    lines = "".join(f"{header}\r\n" for header in headers)
    text = f"HTTP/1.1 {status} Word\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body

    def answer(line: socket.socket, request: bytes) -> None:
        line.sendall(text)

    return answer


@contextlib.contextmanager
def receiving(behave: Behaviour, tls: ssl.SSLContext | None = None, family: int = socket.AF_INET) -> Iterator[Receiver]:
    """Serve until the block ends; each connection has a thread and may carry any number of requests."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.create_server((host, 0), family=family, backlog=256) as door:
        receiver = Receiver(door.getsockname()[1])
        open_lines: list[socket.socket] = []

        def serve(line: socket.socket) -> None:
            with contextlib.suppress(OSError), line:
                served = tls.wrap_socket(line, server_side=True) if tls else line
                while request := read_request(served):
                    receiver.requests.append(request)
                    behave(served, request)

        def accept() -> None:
            while True:
                try:
                    line, _ = door.accept()
                except OSError:
                    return
                if receiver.stopping.is_set():
                    line.close()
                    return
                receiver.connections += 1
                open_lines.append(line)
                threading.Thread(target=serve, args=(line,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.stopping.set()
            with contextlib.suppress(OSError):
                door.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for line in open_lines:
                with contextlib.suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)


def read_request(line: socket.socket) -> bytes:
    """One request with its body, or nothing when the connection is closed."""
    text = b""
    while b"\r\n\r\n" not in text:
        more = line.recv(65_536)
        if not more:
            return b""
        text += more
    head, _, body = text.partition(b"\r\n\r\n")
    length = next(
        (int(row.partition(b":")[2]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        more = line.recv(65_536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body
