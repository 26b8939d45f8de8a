"""Webhooks and requests of the test environment, fetched over an outgoing connection."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import httpx

from tollhouse import webhooks
from tollhouse._sync.client import Tollhouse
from tollhouse.cli.console import Console, describe
from tollhouse.errors import WebhookVerificationError

Mode = Literal["signed", "encrypted"]
POLL_S = 1.0
_OVERLAP = 20
"""Messages asked for again: one that was begun earlier may be kept later."""
_NOT_FORWARDED = frozenset({"host", "content-length", "connection", "transfer-encoding"})


def fetch_webhooks(gateway: Tollhouse, mode: Mode, start: int) -> Iterator[Mapping[str, Any]]:
    """Every message above the number ``start``, as it comes."""
    seen: set[int] = set()
    newest = start
    while True:
        after = max(start, newest - _OVERLAP)
        for one in gateway.test.read_webhooks(mode=mode, after=after)["webhooks"]:
            if one["number"] not in seen:
                seen.add(one["number"])
                newest = max(newest, one["number"])
                yield one
        seen = {number for number in seen if number > newest - _OVERLAP}
        time.sleep(POLL_S)


def listen(gateway: Tollhouse, console: Console, *, forward: str | None, mode: Mode, count: int | None) -> int:
    """Show webhooks, and forward them with their headers and body; ``count``: end after so many."""
    opened = gateway.test.open_inspector(mode=mode)
    secret = opened["secret"]
    console.show(
        f"Ready. Secret of these webhooks: {secret}"
        + (f"\nForwarding to {forward}" if forward else "")
        + "\nCtrl-C ends it.",
        {"secret": secret, "mode": mode, "forward": forward},
    )
    with httpx.Client(timeout=30, follow_redirects=False, trust_env=False) as http:
        for number, message in enumerate(fetch_webhooks(gateway, mode, int(opened["newest"])), start=1):
            status = _forward(http, forward, message) if forward else ""
            _show(console, message, secret, status)
            if number == count:
                return 0
    return 0


def _forward(http: httpx.Client, address: str, message: Mapping[str, Any]) -> str:
    headers = {name: value for name, value in message["headers"].items() if name.lower() not in _NOT_FORWARDED}
    try:
        return str(http.post(address, content=message["body"].encode(), headers=headers).status_code)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"not delivered: {error}"


def _show(console: Console, message: Mapping[str, Any], secret: str, status: str) -> None:
    try:
        event = webhooks.verify(message["body"], message["headers"], secret)
    except WebhookVerificationError as error:
        console.show(f"{message['at']}  {error}", {**message, "forwarded": status})
        return
    told = f"  → {status}" if status else ""
    line = f"{message['at']}  {event.type} {event.action}  {describe(event.payload)}{told}"
    console.show(line, {"type": event.type, "action": event.action, "payload": event.payload, "forwarded": status})


def tail_requests(gateway: Tollhouse, console: Console, *, number: int, follow: bool) -> int:
    """The newest requests, the earliest first; and those that come."""
    seen: set[str] = set()
    shown = number
    while True:
        found = gateway.test.read_requests()["requests"]
        fresh = [one for one in found if one["ndc"] not in seen][:shown]
        for one in reversed(fresh):
            line = (
                f"{one['at']}  {one['status']}  {one['method']:6} {one['path']}  {one['resultCode']}  "
                f"{one['durationMs']} ms  {one['ndc']}"
            )
            console.show(line, one)
        seen = {one["ndc"] for one in found}
        shown = len(found) + 1 if found else 100
        if not follow:
            return 0
        time.sleep(POLL_S)
