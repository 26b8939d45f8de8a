"""Requests that no client of ours sends: random, at the edges of every limit, and hostile, each from a seed."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from tests.fuzz.routes import Route, unused

URLENCODED: Final = "application/x-www-form-urlencoded"
SIZES: Final = (0, 1, 100, 8_191, 8_193, 65_535, 65_537, 262_144, 1_048_577, 4_194_304, 4_194_305, 33_554_432)
COMMON: Final = (100, 1_000, 8_000, 16_000)
"""Most bodies are small; the edges come now and then."""
EDGES: Final = 0.07
"""Of all bodies, those of :data:`SIZES`."""
UNUSED: Final = 0.1
"""Of all names, values and headers: texts that no request had before."""
NAMES: Final = (
    "entityId", "amount", "currency", "paymentType", "paymentBrand", "card.number", "card.holder", "cart.items[0].name",
    "customParameters[abc]", "merchantTransactionId", "username", "password", "csrfmiddlewaretoken", "token", "outcome",
    "credential", "next", "verb", "act", "q", "date.from", "date.to", "id", "file", "code", "move", "limit",
    "p", "o", "_save",
)  # fmt: skip
VALUES: Final = (
    "", "0", "-1", "92.00", "EUR", "DB", "VISA", "4200000000000000", "Jane", "\0", "\ud7ff", "é" * 50, "9" * 500,
    "' OR 1=1 --", "<script>", "2026-02-30", "1e400", "NaN", "[", "{}", "../../etc/passwd", "https://[::1", "x" * 3_000,
    "4112 " * 60, "((((((((((" * 30, "a.a.a.a." * 40, "%41%41", "true", "0 0 0 1/0 * ?",
    "null", "[]", '{"id": 1, "rawId": [], "response": null}', "[" * 2_000, "4 4 4 4 " * 250,
)  # fmt: skip
METHODS: Final = ("GET", "POST", "POST", "POST", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE")
BOUNDARY: Final = "xxBOUNDARYxx"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as the web server hands it on. ``length``: what is announced; None where it comes in chunks."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    length: int | None
    about: str
    who: str = "stranger"
    sent: Mapping[str, str] = field(default_factory=dict)

    def environ(self) -> dict[str, Any]:
        """As PEP 3333 and gunicorn have it."""
        from gunicorn.util import unquote_to_wsgi_str

        found: dict[str, Any] = {
            "REQUEST_METHOD": self.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_wsgi_str(self.path),
            "QUERY_STRING": self.query,
            "SERVER_NAME": "testserver",
            "SERVER_PORT": "80",
            "HTTP_HOST": "testserver",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "203.0.113.7",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(self.body),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            "wsgi.input_terminated": True,
        }
        if self.length is None:
            found["HTTP_TRANSFER_ENCODING"] = "chunked"
        elif self.body or self.length:
            found["CONTENT_LENGTH"] = str(self.length)
        for name, value in {**self.headers, **self.sent}.items():
            key = name.upper().replace("-", "_")
            found[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
        return found


def made(
    chance: random.Random, route: Route, known: Mapping[str, Sequence[str]], entity: str, edges: float = EDGES
) -> Request:
    """A request to ``route``; ``entity``: an entityId that there is; ``edges``: see :data:`EDGES`."""
    method = chance.choice(METHODS)
    about, body, kind = "no body", b"", ""
    if method in ("POST", "PUT", "PATCH") or chance.random() < 0.05:
        size = chance.choice(SIZES) if chance.random() < edges else chance.choice(COMMON)
        about, make = chance.choice(BODIES)
        kind, body = make(chance, size, entity)
    headers = _headers(chance)
    if kind:
        headers["Content-Type"] = kind if chance.random() < 0.9 else chance.choice(_KINDS)
    if about == "compressed":
        headers["Content-Encoding"] = chance.choice(("gzip", "deflate", "br", "identity, gzip"))
    framing = chance.random()
    length = None if framing < 0.25 else len(body) + (chance.choice((1, 500)) if framing > 0.97 else 0)
    return Request(
        method=method,
        path=route.path(chance, known),
        query=_query(chance),
        headers=headers,
        body=body,
        length=length,
        about=f"{about}, {'chunked' if length is None else 'announced'}",
    )


def _query(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.5:
        return ""
    if kind < 0.85:
        return urlencode([_field(chance, 800) for _ in range(chance.randint(1, 6))])[:3_500]
    return chance.choice(
        ("%41" * 1_100, "a=b&" * 800, "&" * 3_000, "%", "=\xff", "[" * 3_000, "4112 " * 700, "a" * 3_500)
    )


def _headers(chance: random.Random) -> dict[str, str]:
    found = {"Accept": chance.choice(("*/*", "text/html", "application/json", ",".join(["a/b;q=0.1"] * 600)))}
    for name, values in _HEADERS.items():
        if chance.random() < 0.12:
            found[name] = chance.choice(values) + (unused(chance) if chance.random() < UNUSED else "")
    return found


def _field(chance: random.Random, longest: int) -> tuple[str, str]:
    name = unused(chance) if chance.random() < UNUSED else chance.choice(NAMES)
    return name, (unused(chance) if chance.random() < UNUSED else chance.choice(VALUES))[:longest]


_KINDS: Final = (
    URLENCODED, "", "text/plain", "application/json", "multipart/form-data",
    f"multipart/form-data; boundary={BOUNDARY}",
    "x" * 4_000, "application/x-www-form-urlencoded; charset=utf-16", "a/b" + ";c=d" * 1_500, "\xff/\xfe",
    "multipart/form-data; boundary=" + "b" * 3_000,
)  # fmt: skip
_HEADERS: Final[Mapping[str, Sequence[str]]] = {
    "Authorization": (
        "4112 " * 11_000,
        "Bearer x",
        "Bearer " + "a" * 512,
        "Basic eDp5",
        "Bearer",
        "bearer " * 900,
        "4112 " * 1_000,
    ),
    "Cookie": (
        "a=b; " * 10_000,
        "sessionid=" + "a" * 32,
        "sessionid=x; csrftoken=y",
        "a=b; " * 900,
        "=" * 4_000,
        "messages=" + "W" * 4_000,
    ),
    "Accept-Language": ("de;q=0.1," * 6_000, "de", "x" * 4_000, ",".join(["de;q=0.1"] * 500), "-" * 4_000),
    "X-Forwarded-For": ("1.2.3.4, " * 6_000, "1.2.3.4", "1.2.3.4, " * 500, "[" * 4_000, "::ffff:1.2.3.4%eth0"),
    "Idempotency-Key": ("key-1", "k" * 4_000, "\xe9", ""),
    "If-None-Match": ('"x"', '"x", ' * 1_000),
    "Range": ("bytes=0-1", "bytes=" + "0-1," * 1_000),
    "Origin": ("https://evil.example", "null", "x" * 4_000, "http://["),
    "Referer": ("https://testserver/", "http://[", "x" * 4_000),
    "X-CSRFToken": ("x", "y" * 64, "z" * 4_000),
    "User-Agent": ("4112 " * 11_000, "Mozilla/5.0", "4112 " * 1_000),
    "Stripe-Signature": ("t=1,v1=x", "t=1," + "v1=x," * 1_000),
    "Forwarded": ("for=1.2.3.4",),
    "X-Forwarded-Proto": ("https", "x"),
}


# --- bodies: each makes a content type and bytes --------------------------------------------------------------------

Made = tuple[str, bytes]


def _form(chance: random.Random, size: int, entity: str) -> Made:
    fields = [("entityId", entity)] if chance.random() < 0.7 else []
    while sum(len(name) + len(value) for name, value in fields) < min(size, 4_000):
        fields.append(_field(chance, 3_000))
    return URLENCODED, urlencode(fields).encode()


def _repeated(piece: bytes, head: bytes = b"", tail: bytes = b"") -> Callable[[random.Random, int, str], Made]:
    def make(chance: random.Random, size: int, entity: str) -> Made:
        own = f"entityId={entity}&".encode() if chance.random() < 0.7 else b""
        return URLENCODED, own + head + piece * (size // len(piece)) + tail

    return make


def _counted(name: str) -> Callable[[random.Random, int, str], Made]:
    def make(chance: random.Random, size: int, entity: str) -> Made:
        parts = [f"entityId={entity}"]
        parts += [f"{name}={at}".replace("#", str(at)) for at in range(min(49_990, size // (len(name) + 6)))]
        return URLENCODED, "&".join(parts).encode()

    return make


def _dense(name: str, piece: str, longest: int) -> Callable[[random.Random, int, str], Made]:
    """Known fields full of digits with blanks between, which the detector of card numbers looks through."""

    def make(chance: random.Random, size: int, entity: str) -> Made:
        value = (piece * longest)[:longest].rstrip()
        count = min(1_000, -(-size // longest))
        fields = [("entityId", entity), *((name.replace("#", str(at)), value) for at in range(count))]
        return URLENCODED, urlencode(fields).encode()

    return make


def _json(chance: random.Random, size: int, entity: str) -> Made:
    deep = chance.random() < 0.3
    text = "[" * size if deep else json.dumps({"entityId": entity, "a": ["x" * 50] * (size // 60)})
    return "application/json", text.encode()


def _files(part: bytes) -> Callable[[random.Random, int, str], Made]:
    def make(chance: random.Random, size: int, entity: str) -> Made:
        head = b"--" + BOUNDARY.encode() + b"\r\n"
        count = max(1, size // (len(part) + len(head)))
        end = b"--" + BOUNDARY.encode() + b"--\r\n"
        return f"multipart/form-data; boundary={BOUNDARY}", (head + part) * count + end

    return make


def _one_file(chance: random.Random, size: int, entity: str) -> Made:
    part = (
        b'Content-Disposition: form-data; name="file"; filename="a.csv"\r\nContent-Type: text/csv\r\n\r\n' + b"x" * size
    )
    return _files(part + b"\r\n")(chance, 1, entity)


def _noise(chance: random.Random, size: int, entity: str) -> Made:
    return chance.choice(_KINDS), chance.randbytes(min(size, 65_536))


def _compressed(chance: random.Random, size: int, entity: str) -> Made:
    return URLENCODED, gzip.compress(b"z=" + b"a" * min(size * 50, 1_000_000), 1)


BODIES: Final[tuple[tuple[str, Callable[[random.Random, int, str], Made]], ...]] = (
    ("a form", _form), ("a form", _form), ("a form", _form),
    ("escapes", _repeated(b"%41", b"z=")),
    ("escapes of a known name", _repeated(b"%C3%A9", b"customer.givenName=")),
    ("an escaped name", _repeated(b"%2541", b"", b"=1")),
    ("a name that is no UTF-8", _repeated(b"4112 ", b"", b"=\xff")),
    ("a long name", _repeated(b"4112 ", b"", b"=1")),
    ("a long value of digits", _repeated(b"4112 ", b"merchantMemo=")),
    ("many fields", _repeated(b"a=b&")),
    ("many known fields", _repeated(b"amount=1&")),
    ("ampersands", _repeated(b"&")),
    ("brackets", _repeated(b"[", b"cart.items", b"=1")),
    ("dots", _repeated(b"a.", b"customer.", b"=1")),
    ("custom parameters", _counted("customParameters[key#]")),
    ("cart items", _counted("cart.items[#].name")),
    ("unknown below a structure", _counted("cart.items[#].nmae")),
    ("near misses", _counted("amuont#")),
    ("descriptions of digits", _dense("cart.items[#].description", "4 4 4 4 ", 2_040)),
    ("custom parameters of digits", _dense("customParameters[key#]", "4 4 4 4 ", 2_000)),
    ("JSON", _json),
    ("a file", _one_file),
    ("many parts", _files(b'Content-Disposition: form-data; name="a"\r\n\r\nb\r\n')),
    ("parts without a head", _files(b"\r\n")),
    ("noise", _noise),
    ("compressed", _compressed),
)  # fmt: skip
