"""API requests as curl commands that run as shown. ``$TOKEN`` and ``$ENTITY_ID`` are the reader's shell variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

TOKEN_VARIABLE: Final = "$TOKEN"  # noqa: S105
ENTITY_VARIABLE: Final = "$ENTITY_ID"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:")
"""Characters that need no quoting, neither in a form body nor in a shell."""
_VARIABLE: Final = re.compile(r"\$[A-Z][A-Z0-9_]*")
_LIVE_IN_QUOTES: Final = frozenset('$`"\\!')
"""Characters that a shell reads within double quotes: what a shopper sent is never run by who pastes the command."""


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
    url = _encode_url(url)
    if method == "POST":
        lines += [_format_field(name, value) for name, value in pairs.items()]
    else:
        url += "?" + "&".join(f"{_encode(name, '[]')}={_encode(value, '/:,')}" for name, value in pairs.items())
    head = "curl" if method in ("GET", "POST") else f"curl -X {method}"
    quoted = f'"{url}"' if "$" in url or "?" in url else url
    authorization = [f'-H "Authorization: Bearer {token}"'] if token is not None else []
    options = [*authorization, *(f"-H {_quote_word(f'{name}: {value}')}" for name, value in (headers or {}).items())]
    return " \\\n  ".join([f"{head} {quoted}", *options, *lines])


def _encode_url(url: str) -> str:
    """The address with what it must not hold as it is encoded; a variable stays where it is a whole segment."""
    scheme, _, rest = url.partition("://")
    host, *segments = rest.split("/")
    return "/".join([f"{scheme}://{host}", *(_encode(segment, ":@,") for segment in segments)])


def _encode(value: str, safe: str) -> str:
    return value if _VARIABLE.fullmatch(value) else quote(value, safe=f"-._~{safe}")


def _quote_word(text: str) -> str:
    """Quoted as one word of a shell; no substitution takes place in it."""
    return shlex.quote(text) if set(text) & _LIVE_IN_QUOTES else f'"{text}"'


def _format_field(name: str, value: str) -> str:
    pair = f"{name}={value}"
    if _VARIABLE.fullmatch(value) and not set(name) & _LIVE_IN_QUOTES:
        return f'-d "{pair}"'
    if set(name + value) <= _PLAIN:
        return f"-d {pair}"
    if set(value) <= _PLAIN:
        return f"-d {shlex.quote(pair)}"
    return f"--data-urlencode {_quote_word(pair)}"
