"""A proxy that answers like a later version of the gateway: it adds unknown fields to every JSON answer."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

NEWS: dict[str, Any] = {
    "aNewWord": "text", "aNewList": [{"deep": [1, None, True]}], "aNewNumber": 9.5, "aNewNothing": None,
    "aNewObject": {"id": "not yours", "result": {"code": "000.000.000"}},
}  # fmt: skip


def with_news(node: Any) -> Any:
    """A JSON value with unknown fields in each of its objects, before and after the known ones. A parameter error keeps
    the name of its parameter, and so does everything else that has one."""
    if isinstance(node, list):
        return [with_news(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {"aNewFirst": 1, **{name: with_news(value) for name, value in node.items()}, **NEWS}


@contextmanager
def newer_than(url: str) -> Iterator[str]:
    """The address of a server that passes every request on to ``url``, and adds to the JSON it answers."""
    known = urlsplit(url)

    class Newer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            line = http.client.HTTPConnection(known.hostname or "", known.port, timeout=60)
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            line.request(self.command, self.path, body, {**kept, "Host": known.netloc, "Accept-Encoding": "identity"})
            answer = line.getresponse()
            octets = json.dumps(with_news(json.loads(answer.read()))).encode()
            line.close()
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(octets)))
            if replayed := answer.headers.get("Idempotent-Replayed"):
                self.send_header("Idempotent-Replayed", replayed)
            self.end_headers()
            self.wfile.write(octets)

        do_POST = do_DELETE = do_GET

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Newer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
