"""A request of an old client as it was pasted: a curl command, an HTTP message or a form body.

The docs' migration check and the command line's read with it. `make clients` copies this file into the Python package,
so it imports nothing but the standard library. Options of curl: curl(1).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final
from urllib.parse import quote_plus, urlsplit

_START_LINE: Final = re.compile(r"(GET|HEAD|POST|DELETE|PUT|PATCH)\s+(\S+)(?:\s+HTTP/[\d.]+)?\s*(?:\n|$)")
_BEARER: Final = re.compile(r"authorization:\s*bearer ", re.IGNORECASE)
_SHORT_WITH_VALUE: Final = frozenset("AbcCdDeEFHKmoPQrtTuUwxXyYz")
_LONG_WITH_VALUE: Final = re.compile(
    r"""
    abstract-unix-socket|alt-svc|aws-sigv4|cacert|capath|cert|cert-type|ciphers|config|connect-timeout|connect-to|
    continue-at|cookie|cookie-jar|create-file-mode|crlfile|curves|data|data-ascii|data-binary|data-raw|
    data-urlencode|delegation|dns-interface|dns-ipv4-addr|dns-ipv6-addr|dns-servers|doh-url|dump-header|ech|engine|
    etag-compare|etag-save|expect100-timeout|form|form-string|happy-eyeballs-timeout-ms|header|hsts|interface|ip-tos|
    json|keepalive-cnt|keepalive-time|key|key-type|libcurl|limit-rate|local-port|login-options|max-filesize|
    max-redirs|max-time|netrc-file|noproxy|oauth2-bearer|output|output-dir|parallel-max|pass|pinnedpubkey|preproxy|
    proto|proto-default|proto-redir|proxy|proxy-cacert|proxy-capath|proxy-cert|proxy-cert-type|proxy-ciphers|
    proxy-crlfile|proxy-header|proxy-key|proxy-key-type|proxy-pass|proxy-pinnedpubkey|proxy-service-name|
    proxy-tls13-ciphers|proxy-tlsauthtype|proxy-tlspassword|proxy-tlsuser|proxy-user|proxy1[.]0|range|rate|referer|
    request|request-target|resolve|retry|retry-delay|retry-max-time|service-name|sigalgs|socks4|socks4a|socks5|
    socks5-hostname|speed-limit|speed-time|stderr|time-cond|tls-max|tls13-ciphers|tlsauthtype|tlspassword|tlsuser|
    trace|trace-ascii|trace-config|unix-socket|upload-file|url|url-query|user|user-agent|variable|vlan-priority|
    write-out
    """,
    re.VERBOSE,
)
_SHELL_OPERATORS: Final = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "2>/dev/null"})
_DATA: Final = ("-d", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode")
_FORM: Final = "sends multipart/form-data, which is refused here: send it with -d"
_FILE: Final = "names a file: paste what is in it"
_UNREADABLE: Final = {
    "-F": _FORM,
    "--form": _FORM,
    "--form-string": _FORM,
    "--json": "sends JSON, which is refused here: send form parameters with -d",
    "-K": _FILE,
    "--config": _FILE,
    "-T": _FILE,
    "--upload-file": _FILE,
}
"""Options of curl with which a command cannot be read, and why."""


class UnreadableRequestError(Exception):
    """The text is no request of an HTTP client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedRequest:
    """A request as it was pasted. ``body``: its form, still encoded."""

    method: str
    path: str
    host: str
    body: str
    has_token: bool


def parse_pasted_request(text: str, default_path: str = "/v1/payments") -> PastedRequest:
    """Read a curl command, an HTTP message, or a form body, which goes to ``default_path``. Raises
    UnreadableRequestError."""
    text = text.replace("\r\n", "\n").strip()
    if re.match(r"(?:\$ +)?curl(?:\.exe)?(?:\s|$)", text):
        return _parse_curl(text.removeprefix("$").lstrip())
    if found := _START_LINE.match(text):
        head, _, body = text.partition("\n\n")
        host = re.search(r"(?mi)^host:\s*(\S+)", head)
        token = any(map(_BEARER.match, head.split("\n")))
        return _build_request(found[1], found[2], body.strip(), host=host[1] if host else "", has_token=token)
    if "=" in text:
        # A body over several lines; a value may have spaces of its own.
        return _build_request("POST", default_path, "&".join(filter(None, map(str.strip, text.split("\n")))))
    raise UnreadableRequestError("paste a curl command, an HTTP message (POST /v1/payments …) or a form body (a=1&b=2)")


def _parse_curl(text: str) -> PastedRequest:
    try:
        words = shlex.split(text.replace("\\\n", " "))[1:]
    except ValueError as fault:
        raise UnreadableRequestError(f"the curl command cannot be read: {str(fault).lower()}") from None
    options = list(_list_curl_options(takewhile(lambda word: word not in _SHELL_OPERATORS, words)))
    for option, _ in options:
        if option in _UNREADABLE:
            raise UnreadableRequestError(f"{option} {_UNREADABLE[option]}")
    url = _find_values(options, "--url")[:1]
    if not url:
        raise UnreadableRequestError("the curl command has no address")
    body = "&".join(_encode_data(option, value) for option, value in options if option in _DATA)
    has_token = bool(_find_values(options, "--oauth2-bearer"))
    has_token = has_token or any(map(_BEARER.match, _find_values(options, "-H", "--header")))
    called = _find_values(options, "-X", "--request")[-1:]
    if _find_values(options, "-G", "--get"):
        address = f"{url[0]}{'&' if '?' in url[0] else '?'}{body}"
        return _build_request((called or ["GET"])[0], address, "", has_token=has_token)
    return _build_request((called or ["POST" if body else "GET"])[0], url[0], body, has_token=has_token)


def _find_values(options: Iterable[tuple[str, str]], *names: str) -> list[str]:
    return [value for option, value in options if option in names]


def _list_curl_options(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Options with their values, "" for one that has none; the address is ``--url``."""
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            name, sign, value = word.partition("=")
            takes = _LONG_WITH_VALUE.fullmatch(name[2:]) is not None
            yield name, (value if sign else next(rest, "")) if takes else ""
        elif word.startswith("-"):
            yield from _split_short_options(word[1:], rest)
        elif "/" in word:  # not the value of an option that is not known here
            yield "--url", word


def _split_short_options(letters: str, rest: Iterator[str]) -> Iterator[tuple[str, str]]:
    """``sSXPOST`` is two flags, and an option with its value; one that stands last has the next word for it."""
    for place, letter in enumerate(letters, start=1):
        if letter in _SHORT_WITH_VALUE:
            yield f"-{letter}", letters[place:] or next(rest, "")
            return
        yield f"-{letter}", ""


def _encode_data(option: str, value: str) -> str:
    if option == "--data-raw":
        return value
    name, sign, text = value.partition("=")
    encodes = option == "--data-urlencode"
    if value.startswith("@") or (encodes and not sign and "@" in value):
        raise UnreadableRequestError(f"{option} {_FILE}")
    if not encodes:
        return value
    return f"{name}={quote_plus(text)}" if name and sign else quote_plus(text if sign else value)


def _build_request(method: str, url: str, body: str, *, host: str = "", has_token: bool = False) -> PastedRequest:
    if "://" not in url and not url.startswith("/"):
        # curl guesses the scheme; the host may be a variable of a shell or of a collection.
        before, _, after = url.partition("/")
        host, url = host or before, f"/{after}"
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UnreadableRequestError("its address cannot be read") from None
    sent = body or parts.query
    if sent[:1] in ("{", "[", "<"):
        raise UnreadableRequestError("its body is JSON or XML, which is refused here: send form parameters, a=1&b=2")
    return PastedRequest(
        method="GET" if method.upper() == "HEAD" else method.upper(),  # the same question, whose answer can be read
        path=parts.path,
        host=host or parts.netloc,
        body=sent.replace(" ", "+"),
        has_token=has_token,
    )
