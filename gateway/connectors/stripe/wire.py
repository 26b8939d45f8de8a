"""One call to the processor, and what its outcome proves: accepted, refused, never sent, or nothing at all.

The judgement is a table of HTTP statuses and error types; what it does not list is unclear (decision 0034). Everything
within one deadline, over the guarded client of outbound calls. No card number, key or free text of the processor's
leaves this module but in what is asked.
"""

from __future__ import annotations

import enum
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings

from gateway.connectors.stripe.account import Setup
from gateway.outbound import Lines, Outcome, call
from gateway.secret import Secret, SecretBytes

MOST_ANSWER_BYTES: Final = 2 * 1024 * 1024
"""A page of a hundred objects stays below; what is longer is not read on, and unclear."""
MOST_IDLE: Final = 8
"""Connections of one process to one host that wait for the next call."""

Fields = Sequence[tuple[str, str | Secret]]


class Kind(enum.StrEnum):
    """What an outcome proves about a POST.

    ``DONE``: carried out. ``DECLINED``: judged, and no. ``REFUSED``: understood as a request, and not carried out.
    ``SHUT``: turned away before anybody judged it (key, address, too many requests). ``UNSENT``: nothing left us.
    ``TAKEN``: its idempotency key belongs to another request, or to one that is still running. ``UNCLEAR``: the rest.
    """

    DONE = "done"
    DECLINED = "declined"
    REFUSED = "refused"
    SHUT = "shut"
    UNSENT = "unsent"
    TAKEN = "taken"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What came back. ``body``: the object, or the ``error`` of a refusal; empty when there was none to be read."""

    kind: Kind
    status: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def error(self) -> Mapping[str, Any]:
        found = self.body.get("error")
        return found if isinstance(found, dict) else {}


_BY_STATUS: Final[Mapping[int, Kind]] = {
    400: Kind.REFUSED,
    401: Kind.SHUT,
    402: Kind.DECLINED,
    403: Kind.SHUT,
    404: Kind.REFUSED,
    405: Kind.SHUT,
    413: Kind.SHUT,
    424: Kind.UNCLEAR,
    429: Kind.SHUT,
}
"""Status of an error in the processor's own form → what it proves. 409 and all of 5xx prove nothing."""
_WITHOUT_FORM: Final[Mapping[int, Kind]] = {401: Kind.SHUT, 403: Kind.SHUT, 404: Kind.SHUT, 405: Kind.SHUT,
                                            413: Kind.SHUT, 429: Kind.SHUT}  # fmt: skip
"""The same for an answer in another form: something in front of the processor turned the request away."""
_OTHER_KEY: Final = "idempotency_error"
_KEY_IN_USE: Final = "idempotency_key_in_use"


def heard(outcome: Outcome) -> Heard:
    """What an outcome proves."""
    if outcome.status is None:
        kind = Kind.UNCLEAR if outcome.sent else Kind.UNSENT
        return Heard(kind=kind, why=f"{outcome.failure}: {outcome.reason}")
    body = _parsed(outcome)
    if outcome.is_success:
        if body is None or not isinstance(body.get("object"), str):
            return Heard(kind=Kind.UNCLEAR, status=outcome.status, why="the answer cannot be read")
        return Heard(kind=Kind.DONE, status=outcome.status, body=body)
    error = body.get("error") if body is not None else None
    if body is None or not isinstance(error, dict):
        kind = _WITHOUT_FORM.get(outcome.status, Kind.UNCLEAR)
        return Heard(kind=kind, status=outcome.status, why=f"HTTP {outcome.status}, in another form")
    kind = _BY_STATUS.get(outcome.status, Kind.UNCLEAR)
    if error.get("type") == _OTHER_KEY or error.get("code") == _KEY_IN_USE:
        kind = Kind.TAKEN
    return Heard(kind=kind, status=outcome.status, body=body, why=f"HTTP {outcome.status}")


def _parsed(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.cut:
        return None
    try:
        found = json.loads(outcome.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class Talk:
    """The calls of one question: all of them within one deadline, ``GATEWAY_ACQUIRER_TIMEOUT_S`` from its beginning."""

    def __init__(self, setup: Setup, timeout_s: float | None = None) -> None:
        self.setup = setup
        self._deadline = time.monotonic() + (timeout_s or settings.GATEWAY_ACQUIRER_TIMEOUT_S)

    def post(self, path: str, fields: Fields, key: str) -> Heard:
        """POST a form under the idempotency key ``key``: only so may a connection that broke be replaced by another."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self.setup.full:
            headers["Idempotency-Key"] = key
        return self._call("POST", path, headers, _form(fields))

    def get(self, path: str, fields: Fields = ()) -> Heard:
        return self._call("GET", f"{path}?{_form(fields).reveal().decode()}" if fields else path, {}, SecretBytes(b""))

    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _call(self, method: str, path: str, headers: Mapping[str, str], body: SecretBytes) -> Heard:
        left = self._deadline - time.monotonic()
        if left <= 0:
            return Heard(kind=Kind.UNSENT, why="no time was left")
        own: dict[str, str | Secret] = {
            "Authorization": Secret(f"Bearer {self.setup.key.reveal()}"), "Accept": "application/json",
        }  # fmt: skip
        if self.setup.full:
            own["Stripe-Version"] = self.setup.version
        # Without idempotency keys a body must never leave twice, so no connection is used again.
        lines = _lines() if self.setup.full else None
        outcome = call(
            method, f"{self.setup.url}{path}", headers=own | dict(headers), body=body, timeout_s=left,
            limit_bytes=MOST_ANSWER_BYTES, lines=lines,
        )  # fmt: skip
        return heard(outcome)


def _form(fields: Fields) -> SecretBytes:
    """A form's body; the values that are secrets stand in it in clear."""
    return SecretBytes(
        urlencode([(name, text.reveal() if isinstance(text, Secret) else text) for name, text in fields]).encode()
    )


@lru_cache(maxsize=1)
def _lines() -> Lines:
    return Lines(MOST_IDLE)


# A forked process must not talk on its parent's connections.
os.register_at_fork(after_in_child=_lines.cache_clear)
