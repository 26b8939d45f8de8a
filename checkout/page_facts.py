"""What the payment page loads and sends: scripts with their hashes, and the headers of pages of ours. Reading only.

Headers are those of real answers: the whole chain of middleware is asked within the process. Source: PCI DSS 6.4.3 and
11.6.1; docs/decisions/0054.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit
from wsgiref.util import setup_testing_defaults

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.handlers.wsgi import WSGIRequest
from django.utils import translation

from checkout import public
from checkout.models import WalletProvider
from gateway import widget_hash

ADDRESSES: Final = ("script", "method")
"""Settings of a wallet's provider that name code which a page loads or asks."""
HEADERS: Final = (
    "Content-Security-Policy", "Content-Security-Policy-Report-Only", "Reporting-Endpoints",
    "Strict-Transport-Security", "X-Content-Type-Options", "Referrer-Policy", "Permissions-Policy", "X-Frame-Options",
    "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Cache-Control",
)  # fmt: skip
SCRIPT: Final = "/v1/paymentWidgets.js"
FRAME: Final = "/v1/widget/frame.html"
SHOPPER: Final = "/shopper/"
PAGES: Final[Mapping[str, str]] = {FRAME: "parent=https://shop.example", SCRIPT: "", SHOPPER: ""}
"""Path → query of the answers whose headers are looked at. The frame is asked for as a shop at shop.example does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletScript:
    """Code of a wallet's provider that a channel lets pages load."""

    row: WalletProvider
    name: str
    address: str


def installation() -> dict[str, str]:
    """Name → hash or header, of what is the same for every merchant."""
    document = public.frame_document()
    facts = {
        f"script {SCRIPT}": widget_hash.integrity(),
        f"script {FRAME}": public.own_hash(document, "script").strip("'"),
        f"style {FRAME}": public.own_hash(document, "style").strip("'"),
    }
    for path, query in PAGES.items():
        facts |= {f"{name} {path}": value for name, value in headers_of(path, query).items()}
    return facts


def of_channel(rows: list[WalletProvider]) -> dict[str, str]:
    """Name → address, of one channel's providers."""
    return {f"{one.row.wallet} {one.name}": one.address for one in wallet_scripts(rows)}


def wallet_scripts(rows: list[WalletProvider]) -> Iterator[WalletScript]:
    for row in rows:
        for name in ADDRESSES:
            if address := row.settings.get(name):
                yield WalletScript(row=row, name=name, address=address)


def headers_of(path: str, query: str = "") -> dict[str, str]:
    """The headers of ours that GET ``path`` answers, by name."""
    base = urlsplit(settings.GATEWAY_BASE_URL)
    environ: dict[str, Any] = {
        "HTTP_HOST": base.netloc, "SERVER_NAME": base.hostname or "localhost", "PATH_INFO": path,
        "QUERY_STRING": query, "wsgi.url_scheme": base.scheme, "HTTP_X_FORWARDED_PROTO": base.scheme,
        "SERVER_PORT": str(base.port or (443 if base.scheme == "https" else 80)), "REMOTE_ADDR": "127.0.0.1",
    }  # fmt: skip
    setup_testing_defaults(environ)
    # The request has a language of its own, which must not become that of the page that asks.
    with translation.override(translation.get_language()):
        answer = _handler().get_response(WSGIRequest(environ))
    return {name: _in_order(name, answer.headers[name]) for name in HEADERS if name in answer.headers}


def _in_order(name: str, value: str) -> str:
    """A policy's directives in the order of their names: each process writes them in another."""
    return "; ".join(sorted(value.split("; "))) if name.startswith("Content-Security-Policy") else value


@lru_cache(maxsize=1)
def _handler() -> BaseHandler:
    found = BaseHandler()
    found.load_middleware()
    return found
