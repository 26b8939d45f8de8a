"""A receiver of webhooks as a process of its own, as lean as Python allows: what it costs is not the sender's.

    python -m tests.benchmarks.sink --port 20123

Any path answers 200, but those that begin with /hang never answer. GET /seen tells, and forgets, what came: one line
each, path, payment, sequence, and when by the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from typing import Final

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_LENGTH: Final = re.compile(rb"content-length: ([0-9]+)", re.IGNORECASE)
_ID: Final = re.compile(rb'"payload":\{"id":"([0-9a-f]{32})"')
_SEQUENCE: Final = re.compile(rb'"sequence":([0-9]+)')
seen: list[tuple[bytes, bytes, bytes, float]] = []


class Sink(asyncio.Protocol):
    def __init__(self) -> None:
        self.text = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.text += data
        while (end := self.text.find(b"\r\n\r\n")) >= 0:
            head = self.text[:end]
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self.text) < whole:
                return
            body, self.text = self.text[end + 4 : whole], self.text[whole:]
            self._answer(head.split(b" ", 2)[1], body)

    def _answer(self, path: bytes, body: bytes) -> None:
        if path == b"/seen":
            told = b"".join(b"%s %s %s %.6f\n" % row for row in seen)
            seen.clear()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(told) + told)
            return
        ident, sequence = _ID.search(body), _SEQUENCE.search(body)
        seen.append((path, ident[1] if ident else b"-", sequence[1] if sequence else b"0", time.monotonic()))
        if not path.startswith(b"/hang"):
            self.transport.write(OK)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", parser.parse_args().port, backlog=512)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
