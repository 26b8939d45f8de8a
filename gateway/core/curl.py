"""API requests as curl commands that run as shown. ``$TOKEN`` and ``$ENTITY_ID`` are the reader's shell variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

TOKEN_VARIABLE: Final = "$TOKEN"  # noqa: S105
ENTITY_VARIABLE: Final = "$ENTITY_ID"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:")
"""Characters that need no quoting, neither in a form body nor in a shell."""


def format_curl_command(
    method: str,
    url: str,
    fields: Mapping[str, str],
    *,
    token: str | None = TOKEN_VARIABLE,
    headers: Mapping[str, str] | None = None,
) -> str:
    """A curl command, one option a line. ``fields`` are the form body of a POST, else the query string; entityId is
    added to them, as $ENTITY_ID. ``token``: None leaves the Authorization header out."""
    pairs = {"entityId": ENTITY_VARIABLE, **fields}
    lines = []
    if method == "POST":
        lines += [_format_field(name, value) for name, value in pairs.items()]
    else:
        url += "?" + "&".join(f"{name}={_quote_value(value)}" for name, value in pairs.items())
    head = "curl" if method in ("GET", "POST") else f"curl -X {method}"
    quoted = f'"{url}"' if "$" in url or "?" in url else url
    authorization = {"Authorization": f"Bearer {token}"} if token is not None else {}
    options = [f'-H "{name}: {value}"' for name, value in {**authorization, **(headers or {})}.items()]
    return " \\\n  ".join([f"{head} {quoted}", *options, *lines])


def _quote_value(value: str) -> str:
    """A query's value; a variable stays."""
    return value if value.startswith("$") else quote(value, safe="-._~/:,")


def _format_field(name: str, value: str) -> str:
    pair = f"{name}={value}"
    if value.startswith("$"):
        return f'-d "{pair}"'
    if set(name + value) <= _PLAIN:
        return f"-d {pair}"
    return f'--data-urlencode "{pair}"' if set(name) <= _PLAIN else f"-d '{pair}'"
