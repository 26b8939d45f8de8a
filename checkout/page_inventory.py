"""Inventory of the payment page: scripts with their hashes, and the headers of our pages. Read only.

Headers are those of real responses: the whole middleware chain is called within the process. Source: PCI DSS 6.4.3 and
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

from checkout import widget_files
from checkout.models import WalletProvider
from gateway import widget_hash

PROVIDER_SCRIPT_SETTINGS: Final = ("script", "method")
"""Settings of a wallet provider that name code which a page loads or calls."""
INVENTORIED_HEADERS: Final = (
    "Content-Security-Policy", "Content-Security-Policy-Report-Only", "Reporting-Endpoints",
    "Strict-Transport-Security", "X-Content-Type-Options", "Referrer-Policy", "Permissions-Policy", "X-Frame-Options",
    "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Cache-Control",
)  # fmt: skip
SCRIPT_PATH: Final = "/v1/paymentWidgets.js"
SECOND_SCRIPT_LABEL: Final = f"{SCRIPT_PATH} (second part)"
FRAME_PATH: Final = "/v1/widget/frame.html"
SHOPPER_PAGE_PATH: Final = "/shopper/"
HOSTED_PAGE_PATH: Final = "/pay/none"
INVENTORIED_PAGES: Final[Mapping[str, str]] = {
    FRAME_PATH: "parent=https://shop.example",
    SCRIPT_PATH: "",
    SHOPPER_PAGE_PATH: "",
    HOSTED_PAGE_PATH: "",
}
"""Path → query of the pages whose headers are compared. The frame is requested as by a shop at shop.example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletScript:
    """A wallet provider's script that a channel lets pages load."""

    row: WalletProvider
    name: str
    address: str


def inventory_installation() -> dict[str, str]:
    """Name → hash or header, for everything that is the same for all merchants."""
    document = widget_files.load_frame_document()
    facts = {
        f"script {SCRIPT_PATH}": widget_hash.widget_integrity(),
        f"script {SECOND_SCRIPT_LABEL}": widget_hash.current_widget_build(widget_hash.SECOND_SCRIPT_NAME).integrity,
        f"script {FRAME_PATH}": widget_files.compute_inline_hash(document, "script").strip("'"),
        f"style {FRAME_PATH}": widget_files.compute_inline_hash(document, "style").strip("'"),
    }
    for path, query in INVENTORIED_PAGES.items():
        facts |= {f"{name} {path}": value for name, value in fetch_page_headers(path, query).items()}
    return facts


def inventory_channel(rows: list[WalletProvider]) -> dict[str, str]:
    """Name → address, for one channel's wallet providers."""
    return {f"{one.row.wallet} {one.name}": one.address for one in list_wallet_scripts(rows)}


def list_wallet_scripts(rows: list[WalletProvider]) -> Iterator[WalletScript]:
    """The scripts of the given wallet providers."""
    for row in rows:
        for name in PROVIDER_SCRIPT_SETTINGS:
            if address := row.settings.get(name):
                yield WalletScript(row=row, name=name, address=address)


def fetch_page_headers(path: str, query: str) -> dict[str, str]:
    """Our security headers in the response to GET ``path``, by name."""
    base = urlsplit(settings.GATEWAY_BASE_URL)
    environ: dict[str, Any] = {
        "HTTP_HOST": base.netloc,
        "SERVER_NAME": base.hostname or "localhost",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "wsgi.url_scheme": base.scheme,
        "HTTP_X_FORWARDED_PROTO": base.scheme,
        "SERVER_PORT": str(base.port or (443 if base.scheme == "https" else 80)),
        "REMOTE_ADDR": "127.0.0.1",
    }
    setup_testing_defaults(environ)
    # The inner request activates its own language, which must not become that of the calling page.
    with translation.override(translation.get_language()):
        answer = _get_handler().get_response(WSGIRequest(environ))
    return {
        name: _sort_directives(name, answer.headers[name]) for name in INVENTORIED_HEADERS if name in answer.headers
    }


def _sort_directives(name: str, value: str) -> str:
    """A policy with its directives sorted by name: their order differs between processes."""
    return "; ".join(sorted(value.split("; "))) if name.startswith("Content-Security-Policy") else value


@lru_cache(maxsize=1)
def _get_handler() -> BaseHandler:
    found = BaseHandler()
    found.load_middleware()
    return found
