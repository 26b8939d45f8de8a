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

from gateway.connectors.card_api.account import CardApiSetup
from gateway.core.secret import Secret, SecretBytes
from gateway.outbound import CallOutcome, ConnectionPool, call_url

MAX_RESPONSE_BYTES: Final = 2 * 1024 * 1024
"""A page of a hundred objects stays below; what is longer is not read on, and unclear."""
MAX_IDLE_CONNECTIONS: Final = 8
"""Connections of one process to one host that wait for the next call."""

FormFields = Sequence[tuple[str, str | Secret]]


class CallVerdict(enum.StrEnum):
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
class CardApiResponse:
    """What came back. ``body``: the object, or the ``error`` of a refusal; empty when there was none to be read."""

    kind: CallVerdict
    status: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def error(self) -> Mapping[str, Any]:
        found = self.body.get("error")
        return found if isinstance(found, dict) else {}


_BY_STATUS: Final[Mapping[int, CallVerdict]] = {
    400: CallVerdict.REFUSED,
    401: CallVerdict.SHUT,
    402: CallVerdict.DECLINED,
    403: CallVerdict.SHUT,
    404: CallVerdict.REFUSED,
    405: CallVerdict.SHUT,
    413: CallVerdict.SHUT,
    424: CallVerdict.UNCLEAR,
    429: CallVerdict.SHUT,
}
"""Status of an error in the processor's own form → what it proves. 409 and all of 5xx prove nothing."""
_WITHOUT_FORM: Final[Mapping[int, CallVerdict]] = {
    401: CallVerdict.SHUT,
    403: CallVerdict.SHUT,
    404: CallVerdict.SHUT,
    405: CallVerdict.SHUT,
    413: CallVerdict.SHUT,
    429: CallVerdict.SHUT,
}
"""The same for an answer in another form: something in front of the processor turned the request away."""
_OTHER_KEY: Final = "idempotency_error"
_KEY_IN_USE: Final = "idempotency_key_in_use"


def classify_outcome(outcome: CallOutcome) -> CardApiResponse:
    """What an outcome proves."""
    if outcome.status is None:
        kind = CallVerdict.UNCLEAR if outcome.sent else CallVerdict.UNSENT
        return CardApiResponse(kind=kind, why=f"{outcome.failure}: {outcome.reason}")
    body = _parsed(outcome)
    if outcome.is_success:
        if body is None or not isinstance(body.get("object"), str):
            return CardApiResponse(kind=CallVerdict.UNCLEAR, status=outcome.status, why="the answer cannot be read")
        return CardApiResponse(kind=CallVerdict.DONE, status=outcome.status, body=body)
    error = body.get("error") if body is not None else None
    if body is None or not isinstance(error, dict):
        kind = _WITHOUT_FORM.get(outcome.status, CallVerdict.UNCLEAR)
        return CardApiResponse(kind=kind, status=outcome.status, why=f"HTTP {outcome.status}, in another form")
    kind = _BY_STATUS.get(outcome.status, CallVerdict.UNCLEAR)
    if error.get("type") == _OTHER_KEY or error.get("code") == _KEY_IN_USE:
        kind = CallVerdict.TAKEN
    return CardApiResponse(kind=kind, status=outcome.status, body=body, why=f"HTTP {outcome.status}")


def _parsed(outcome: CallOutcome) -> dict[str, Any] | None:
    if outcome.truncated:
        return None
    try:
        found = json.loads(outcome.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class CardApiSession:
    """The calls of one question: all of them within one deadline, ``GATEWAY_ACQUIRER_TIMEOUT_S`` from its beginning."""

    def __init__(self, setup: CardApiSetup, timeout_s: float | None = None) -> None:
        self.setup = setup
        self._deadline = time.monotonic() + (timeout_s or settings.GATEWAY_ACQUIRER_TIMEOUT_S)

    def post(self, path: str, fields: FormFields, key: str) -> CardApiResponse:
        """POST a form under the idempotency key ``key``: only so may a connection that broke be replaced by another."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self.setup.full:
            headers["Idempotency-Key"] = key
        return self._call("POST", path, headers, _form(fields))

    def get(self, path: str, fields: FormFields = ()) -> CardApiResponse:
        return self._call("GET", f"{path}?{_form(fields).reveal().decode()}" if fields else path, {}, SecretBytes(b""))

    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _call(self, method: str, path: str, headers: Mapping[str, str], body: SecretBytes) -> CardApiResponse:
        left = self._deadline - time.monotonic()
        if left <= 0:
            return CardApiResponse(kind=CallVerdict.UNSENT, why="no time was left")
        own: dict[str, str | Secret] = {
            "Authorization": Secret(f"Bearer {self.setup.key.reveal()}"),
            "Accept": "application/json",
        }
        if self.setup.full:
            own["Stripe-Version"] = self.setup.version
        # Without idempotency keys a body must never leave twice, so no connection is used again.
        lines = _lines() if self.setup.full else None
        outcome = call_url(
            method,
            f"{self.setup.url}{path}",
            headers=own | dict(headers),
            body=body,
            timeout_s=left,
            max_bytes=MAX_RESPONSE_BYTES,
            lines=lines,
        )
        return classify_outcome(outcome)


def _form(fields: FormFields) -> SecretBytes:
    """A form's body; the values that are secrets stand in it in clear."""
    return SecretBytes(
        urlencode([(name, text.reveal() if isinstance(text, Secret) else text) for name, text in fields]).encode()
    )


@lru_cache(maxsize=1)
def _lines() -> ConnectionPool:
    return ConnectionPool(MAX_IDLE_CONNECTIONS)


# A forked process must not talk on its parent's connections.
os.register_at_fork(after_in_child=_lines.cache_clear)
