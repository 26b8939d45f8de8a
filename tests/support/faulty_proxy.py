"""A proxy in front of an HTTP server that cuts or holds chosen requests; the server notices nothing."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.receivers import read_request, receiving

CUTS = ("silent_before", "hangs_up_before", "silent_after", "hangs_up_after")
"""*_before: the request is never handed on. *_after: it is, and its answer is not. silent: the connection stays."""
PATIENCE_S = 60.0


@dataclass(slots=True)
class Cutting:
    """``passed``: requests that were handed on, first lines only."""

    port: int = 0
    cuts: list[tuple[str, str]] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self, how: str, request: str) -> None:
        """The next request whose first line matches ``request`` meets a fault."""
        assert how in CUTS
        self.cuts.append((how, request))


@contextlib.contextmanager
def cutting(upstream: int) -> Iterator[Cutting]:
    """Hand requests on to a port of this machine, for the length of a block; one request a connection."""
    proxy = Cutting()

    def behave(line: socket.socket, request: bytes) -> None:
        first = request.partition(b"\r\n")[0].decode()
        how = proxy.cuts.pop(0)[0] if proxy.cuts and re.match(proxy.cuts[0][1], first) else ""
        answer = b""
        if not how.endswith("before"):
            proxy.passed.append(first)
            with socket.create_connection(("127.0.0.1", upstream), timeout=PATIENCE_S) as behind:
                behind.sendall(request)
                answer = read_request(behind)
        if how.startswith("silent"):
            proxy.over.wait(PATIENCE_S)
        if how:
            line.shutdown(socket.SHUT_RDWR)
            raise OSError(how)
        line.sendall(answer)

    with receiving(behave) as door:
        proxy.port = door.port
        try:
            yield proxy
        finally:
            proxy.over.set()
