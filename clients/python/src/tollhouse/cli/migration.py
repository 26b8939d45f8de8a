"""A request of an old client, sent to the test environment: what is taken, ignored, refused.

Reads a curl command, an HTTP message, or a form body. The entityId and the token become yours; card numbers become a
test card's before anything is sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from tollhouse._model import Answer
from tollhouse._sync.client import Tollhouse
from tollhouse.cli._pasted_request import UnreadableRequestError, parse_pasted_request
from tollhouse.cli.console import Console
from tollhouse.cli.triggers import APPROVED_CARD, pay
from tollhouse.errors import ApiError, NotFoundError, TollhouseError

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
    try:
        pasted = parse_pasted_request(text, default_path)
    except UnreadableRequestError as error:
        raise MigrationError(str(error)) from None
    return OldRequest(pasted.method, pasted.path, pasted.host, parse_qsl(pasted.body, keep_blank_values=True))


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
