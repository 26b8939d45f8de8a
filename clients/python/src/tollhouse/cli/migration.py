"""A request of an old client, sent to the test environment: what is taken, ignored, refused.

Reads a curl command, an HTTP message, or a form body. The entityId and the token become yours; card numbers become a
test card's before anything is sent.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlsplit

from tollhouse._model import Answer
from tollhouse._sync.client import Tollhouse
from tollhouse.cli.console import Console
from tollhouse.cli.triggers import APPROVED_CARD, pay
from tollhouse.errors import ApiError, NotFoundError, TollhouseError

_DATA = ("-d", "--data", "--data-raw", "--data-ascii", "--data-binary", "--data-urlencode")
_WITH_VALUE = (
    "-H", "--header", "-X", "--request", "-u", "--user", "-o", "--output", "-A", "--user-agent", "--url", *_DATA,
)  # fmt: skip
_FORM = ("-F", "--form")
_SHORT_OPTIONS = re.compile("-([a-zA-Z#]*?)([dHXuoAF])(.*)", re.DOTALL)
"""Flags without a value, one option with a value, and its value where it is attached: `-sSXPOST`."""
_OURS = ("entityId", "authentication.entityId", "authentication.userId", "authentication.password")
_CARDS = {"card.number": APPROVED_CARD["number"], "card.cvv": "123", "tokenAccount.number": APPROVED_CARD["number"]}
_PAYMENT_PATH = re.compile(r"/v1/payments/[^/]+")
_AFTER_RESERVATION = ("CP", "RV")


class MigrationError(TollhouseError):
    """The text is no request that can be tried."""


@dataclass(slots=True)
class OldRequest:
    """A request of an old client; ``notes``: what was changed before it was sent."""

    method: str
    path: str
    host: str = ""
    fields: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def parse_old_request(text: str, default_path: str = "/v1/payments") -> OldRequest:
    """Raises MigrationError."""
    text = text.strip()
    if text.startswith("curl"):
        return _parse_curl(text)
    if found := re.match(r"(GET|POST|DELETE)\s+(\S+)(?:\s+HTTP/[\d.]+)?\s*(?:\n|$)", text):
        _, _, body = text.replace("\r\n", "\n").partition("\n\n")
        return _build(found[1], found[2], body.strip())
    if "=" in text:
        return _build("POST", default_path, "&".join(text.split()))
    raise MigrationError("paste a curl command, an HTTP message (POST /v1/payments …), or a form body (a=1&b=2)")


def _parse_curl(text: str) -> OldRequest:
    try:
        words = shlex.split(text.replace("\\\r\n", " ").replace("\\\n", " "))[1:]
    except ValueError as error:
        raise MigrationError(f"the curl command cannot be read: {error}") from None
    method, url, data, as_query = "", "", [], False
    rest = _separate_options(words)
    for word in rest:
        name, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in _WITH_VALUE:
            value = value if sign else next(rest, "")
            if name in _DATA:
                data.append(_encode(name, value))
            elif name in ("-X", "--request"):
                method = value
            elif name == "--url":
                url = value
        elif name in _FORM:
            raise MigrationError(f"{name} sends multipart/form-data, which is refused here: send it with -d")
        elif word == "--get" or re.fullmatch("-[a-zA-Z]*G[a-zA-Z]*", word):
            as_query = True
        elif not word.startswith("-") and "/" in word:  # not the value of an option that is not known here
            url = word
    if not url:
        raise MigrationError("the curl command has no address")
    body = "&".join(data)
    if as_query:
        return _build("GET", f"{url}{'&' if '?' in url else '?'}{body}", "")
    return _build(method or ("POST" if body else "GET"), url, body)


def _separate_options(words: Iterable[str]) -> Iterator[str]:
    """``words`` with short options apart from each other and from their value: `-X`, `POST` for `-XPOST`."""
    for word in words:
        found = _SHORT_OPTIONS.fullmatch(word) if word[:2] != "--" else None
        if found is None:
            yield word
            continue
        yield from (f"-{flag}" for flag in found[1])
        yield f"-{found[2]}"
        if found[3]:
            yield found[3]


def _encode(option: str, value: str) -> str:
    if value.startswith("@"):
        raise MigrationError(f"{option} {value}: paste what is in the file instead")
    if option != "--data-urlencode":
        return value
    name, _, text = value.partition("=")
    return f"{name}={quote_plus(text)}"


def _build(method: str, url: str, body: str) -> OldRequest:
    parts = urlsplit(url)
    fields = parse_qsl(body or parts.query, keep_blank_values=True)
    return OldRequest(method.upper(), parts.path, parts.netloc, fields)


def check_old_request(gateway: Tollhouse, console: Console, text: str, default_path: str) -> int:
    """Send the request and report; 0 if nothing was refused."""
    try:
        gateway.test.read_clock()
    except NotFoundError:
        raise MigrationError("this gateway is live; a request is only tried in the test environment") from None
    old = parse_old_request(text, default_path)
    _prepare(gateway, old)
    status, body = _send(gateway, old)
    report = judge(old, status, body)
    _show(console, report)
    return 1 if report["refused"] or status >= 500 or (status >= 400 and not body.get("id")) else 0


def _prepare(gateway: Tollhouse, old: OldRequest) -> None:
    if old.host:
        old.notes.append(f"address: {old.host} becomes yours")
    kept = []
    for name, value in old.fields:
        if name in _OURS:
            old.notes.append(f"{name}: becomes your entityId and your token (Authorization: Bearer)")
        elif name in _CARDS and value != _CARDS[name]:
            old.notes.append(f"{name}: replaced with a test card's")
            kept.append((name, _CARDS[name]))
        else:
            kept.append((name, value))
    old.fields = kept
    if _PAYMENT_PATH.fullmatch(old.path) and old.method == "POST":
        wanted = dict(kept).get("paymentType", "")
        made = pay(gateway, "PA" if wanted in _AFTER_RESERVATION else "DB")
        old.path = f"/v1/payments/{made.id}"
        old.notes.append("the payment of the path: one of 92.00 EUR was made for it")


def _send(gateway: Tollhouse, old: OldRequest) -> tuple[int, Mapping[str, Any]]:
    try:
        answer = gateway.request(old.method, old.path, dict(old.fields), answer=Answer)
    except ApiError as error:
        return error.status, error.body
    return answer.http_status, answer.to_dict()


def judge(old: OldRequest, status: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """What became of each parameter."""
    result = body.get("result") or {}
    refused = [
        {"name": one.get("name"), "why": one.get("message"), "sent": one.get("value")}
        for one in result.get("parameterErrors") or ()
    ]
    # It was sent once.
    counted = Counter(name for name, _ in old.fields)
    refused += [{"name": name, "why": "was sent more than once", "sent": None} for name in counted if counted[name] > 1]
    ignored = list(body.get("ignoredParameters") or ())
    faulty = {one["name"] for one in refused}
    # Which parameters are ignored, the gateway says of a request that it takes.
    faultless = [name for name, _ in old.fields if name not in ignored and name not in faulty]
    return {
        "request": f"{old.method} {old.path}",
        "status": status,
        "result": {name: result.get(name) for name in ("code", "description")},
        "taken": [] if refused else faultless,
        "faultless": faultless if refused else [],
        "ignored": ignored,
        "refused": refused,
        "notes": old.notes,
    }


def _show(console: Console, report: Mapping[str, Any]) -> None:
    lines = [
        f"{report['request']}  →  HTTP {report['status']} {report['result']['code']} {report['result']['description']}"
    ]
    lines += [f"  changed   {note}" for note in report["notes"]]
    lines += [f"  taken     {name}" for name in report["taken"]]
    lines += [f"  no fault  {name}" for name in report["faultless"]]
    lines += [f"  ignored   {name}: not known here; it changes nothing" for name in report["ignored"]]
    lines += [f"  refused   {one['name']}: {one['why']}" for one in report["refused"]]
    if report["refused"]:
        lines.append("  Which of those without a fault are ignored shows once nothing is refused.")
    console.show("\n".join(lines), report)
