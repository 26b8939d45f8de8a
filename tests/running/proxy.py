"""A small proxy, where neither HAProxy nor nginx is installed: TLS ends here, requests go to the nodes in turn.

    python -m tests.running.proxy --tls 8443 --plain 8080 --certificate FILE NODE…

It does what the examples of docs/running do: it sets X-Forwarded-For and X-Forwarded-Proto itself, hides /metrics,
tries another node only when no connection could be made, and never sends a request twice.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

DROPPED: Final = frozenset({"x-forwarded-for", "x-forwarded-proto", "forwarded", "connection", "transfer-encoding"})
CONNECT_S: Final = 2
ANSWER_S: Final = 75


def handler(nodes: list[str], scheme: str) -> type[BaseHTTPRequestHandler]:
    turn = itertools.cycle(range(len(nodes)))

    class Forward(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.partition("?")[0].startswith("/metrics"):
                return self._answer(404, {}, b"")
            headers = {name: value for name, value in self.headers.items() if name.lower() not in DROPPED}
            headers |= {"X-Forwarded-For": self.client_address[0], "X-Forwarded-Proto": scheme}
            line = self._line()
            if line is None:
                return self._answer(503, {}, b"")
            try:
                line.request(self.command, self.path, body or None, headers)
                answer = line.getresponse()
                self._answer(answer.status, dict(answer.getheaders()), answer.read())
            except (OSError, http.client.HTTPException):
                self._answer(502, {}, b"")
            finally:
                line.close()

        do_GET = do_POST = do_DELETE = forward

        def _line(self) -> http.client.HTTPConnection | None:
            first = next(turn)
            for node in nodes[first:] + nodes[:first]:
                line = http.client.HTTPConnection(node, timeout=CONNECT_S)
                try:
                    line.connect()
                except OSError:
                    continue
                line.sock.settimeout(ANSWER_S)
                return line
            return None

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Nothing: a proxy keeps no requests."""

    return Forward


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.running.proxy")
    parser.add_argument("--tls", type=int, required=True)
    parser.add_argument("--plain", type=int, required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("nodes", nargs="+")
    options = parser.parse_args()
    plain = ThreadingHTTPServer(("127.0.0.1", options.plain), handler(options.nodes, "http"))
    tls = ThreadingHTTPServer(("127.0.0.1", options.tls), handler(options.nodes, "https"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate)
    tls.socket = context.wrap_socket(tls.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    tls.serve_forever()


if __name__ == "__main__":
    main()
