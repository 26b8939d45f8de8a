"""Wallet providers on an origin of their own: scripts that behave as theirs do, and the host that vouches for pages.

The scripts are written from the providers' public guides: a client with isReadyToPay and loadPaymentData, its callbacks
and its refusal CANCELED; a session with its events and what it wants done before it shows anything. Their sheets are
plain buttons (wallet_*.js). A token is whatever the test puts into ``token``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SHEET = (FOLDER / "wallet_sheet.js").read_text(encoding="utf-8")
CLIENT = (FOLDER / "wallet_client.js").read_text(encoding="utf-8")
SESSION = (FOLDER / "wallet_session.js").read_text(encoding="utf-8")


@dataclass(kw_only=True)
class Providers:
    """``token``: what a sheet gives; ``asked``: bodies of the calls that asked to be vouched for; ``session``: what
    they get, with ``status``; ``away``: the ways (client, session) whose shopper has no card there."""

    url: str = ""
    token: str = ""
    session: Any = field(default_factory=lambda: {"merchantSessionIdentifier": "M1"})
    status: int = 200
    asked: list[dict[str, Any]] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    validation: str = "/vouch?for=us"

    @property
    def session_url(self) -> str:
        return self.validation if "://" in self.validation else self.url + self.validation


@contextmanager
def wallet_providers() -> Iterator[Providers]:
    found = Providers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            names = {"/client.js": CLIENT, "/session.js": SESSION}
            if self.path == "/token":
                return self._answer(found.token.encode(), "text/plain")
            if self.path not in names:
                return self._answer(b"", "text/plain", 404)
            facts = {"TOKEN": f"{found.url}/token", "VALIDATION": found.session_url}
            head = "".join(f"const {name} = {json.dumps(value)};" for name, value in facts.items())
            head += f"const READY = new Set({json.dumps(sorted(found.away))});"
            self._answer(f"(() => {{{head}{SHEET}{names[self.path]}}})();".encode(), "text/javascript")

        def do_POST(self) -> None:
            found.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(json.dumps(found.session).encode(), "application/json", found.status)

        def _answer(self, body: bytes, kind: str, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield found
        server.shutdown()
