"""A merchant's site on an origin of its own: pages with the widget, under the policy that the spec gives for them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NONCE = "c2hvcGZyb250"
WIDGET = '<form action="/result?order=7" class="paymentWidgets" data-brands="{brands}"></form>'


def policy(gateway: str, *, unsafe_inline: bool = False) -> str:
    """Content-Security-Policy of a page with the widget, as the spec has it; without 'unsafe-inline' it is stricter."""
    inline = " 'unsafe-inline'" if unsafe_inline else ""
    return (
        f"default-src 'none'; style-src 'self' {gateway}{inline}; frame-src 'self' {gateway}; "
        f"script-src 'self' {gateway} 'nonce-{NONCE}'; connect-src 'self' {gateway}; img-src 'self' {gateway}"
    )


@dataclass(kw_only=True)
class Shopfront:
    """Serves ``pages`` by path, each with its policy; any other path says thank you."""

    url: str = ""
    pages: dict[str, tuple[str, str]] = field(default_factory=dict)

    def show(self, path: str, html: str, csp: str) -> str:
        self.pages[path] = (html, csp)
        return self.url + path

    def widget(
        self,
        gateway: str,
        checkout: str,
        *,
        brands: str = "VISA MASTER AMEX",
        options: dict[str, Any] | None = None,
        code: str = "",
        body: str = WIDGET,
        integrity: str = "",
        lang: str = "en",
        direction: str = "ltr",
        head: str = "",
        csp: str | None = None,
        path: str = "/pay",
    ) -> str:
        """The address of a page of a few lines, as a merchant pastes them. ``code``: more script, after the options."""
        source = f"{gateway}/v1/paymentWidgets.js" + (f"?checkoutId={checkout}" if checkout else "")
        check = f' integrity="{integrity}" crossorigin="anonymous"' if integrity else ""
        return self.show(
            path,
            f'<!doctype html><html lang="{lang}" dir="{direction}"><head><meta charset="utf-8"><title>Shop</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">{head}'
            f'<script nonce="{NONCE}">window.widgetOptions = {json.dumps(options or {})};{code}</script></head>'
            f"<body><main><h1>Pay</h1>{body.format(brands=brands)}</main>"
            f'<script nonce="{NONCE}" src="{source}"{check}></script></body></html>',
            policy(gateway) if csp is None else csp,
        )


@contextmanager
def shopfront() -> Iterator[Shopfront]:
    front = Shopfront()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            html, csp = front.pages.get(self.path.partition("?")[0], ("<title>Shop</title><h1>Thank you</h1>", ""))
            body = html.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            if csp:
                self.send_header("Content-Security-Policy", csp)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        front.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield front
        server.shutdown()
