"""A collector of spans and a service of error reports, as one: it takes everything and keeps it."""

from __future__ import annotations

import gzip
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Watchers:
    """``traces`` and ``reports``: the bodies that were sent, unpacked, with the headers."""

    def __init__(self) -> None:
        self.traces: list[bytes] = []
        self.reports: list[bytes] = []
        watchers = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                unpack = {"gzip": gzip.decompress, "deflate": zlib.decompress}.get(
                    self.headers.get("Content-Encoding", ""), bytes
                )
                into = watchers.traces if self.path == "/v1/traces" else watchers.reports
                into.append(str(self.headers).encode() + unpack(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def settings(self) -> dict[str, str]:
        return {
            "GATEWAY_TRACES_ENDPOINT": f"http://127.0.0.1:{self.port}/v1/traces",
            "GATEWAY_SENTRY_DSN": f"http://key@127.0.0.1:{self.port}/1",
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
