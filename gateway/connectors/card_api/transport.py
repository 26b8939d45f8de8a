"""Calls to the processor, and what each outcome proves: accepted, refused, never sent, or nothing.

The verdict is a table of HTTP statuses and error types; anything not listed is unclear (decision 0034). One deadline,
over the guarded client of gateway.outbound. No card number, key or free text of the processor leaves this module except
in the request.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings

from gateway.connectors.card_api.account import CardApiSetup
from gateway.core.peer_json import parse_peer_json
from gateway.core.secret import Secret, SecretBytes, reveal_text
from gateway.outbound import CallOutcome, ConnectionPool, call_url

MAX_RESPONSE_BYTES: Final = 2 * 1024 * 1024
"""Larger than a page of a hundred objects; a longer response is unclear."""
MAX_IDLE_CONNECTIONS: Final = 8
"""Idle connections of one process to one host."""

FormFields = Sequence[tuple[str, str | Secret]]


class CallVerdict(enum.StrEnum):
    """What the outcome of a POST proves.

    - ``DONE``: carried out.
    - ``DECLINED``: judged and declined.
    - ``REFUSED``: understood and not carried out.
    - ``SHUT``: turned away before it was judged (key, address, too many requests).
    - ``UNSENT``: nothing was sent.
    - ``TAKEN``: its idempotency key belongs to another request, or to one still running.
    - ``UNCLEAR``: anything else.
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
    """A response. ``body``: the object, or the ``error`` of a refusal; empty if it was unreadable."""

    kind: CallVerdict
    status: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    @property
    def error(self) -> Mapping[str, Any]:
        """The error object of a refusal; empty without one."""
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
"""Verdicts by status of an answer in another form: something in front of the processor turned the request away."""
_OTHER_KEY: Final = "idempotency_error"
_KEY_IN_USE: Final = "idempotency_key_in_use"


def classify_outcome(outcome: CallOutcome) -> CardApiResponse:
    """Classify a call's outcome."""
    if outcome.status is None:
        kind = CallVerdict.UNCLEAR if outcome.sent else CallVerdict.UNSENT
        return CardApiResponse(kind=kind, why=f"{outcome.failure}: {outcome.reason}")
    body = _parse_body(outcome)
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


def _parse_body(outcome: CallOutcome) -> dict[str, Any] | None:
    if outcome.truncated:
        return None
    try:
        found = parse_peer_json(outcome.body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class CardApiSession:
    """The calls of one operation, all within one deadline of ``GATEWAY_ACQUIRER_TIMEOUT_S``."""

    def __init__(self, setup: CardApiSetup, timeout_s: float | None = None) -> None:
        self.setup = setup
        self._deadline = time.monotonic() + (timeout_s or settings.GATEWAY_ACQUIRER_TIMEOUT_S)

    def post(self, path: str, fields: FormFields, key: str) -> CardApiResponse:
        """POST a form under the idempotency key ``key``; only with a key may a broken connection be replaced."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self.setup.full:
            headers["Idempotency-Key"] = key
        return self._call("POST", path, headers, _form(fields))

    def get(self, path: str, fields: FormFields = ()) -> CardApiResponse:
        """GET an object or a page."""
        return self._call("GET", f"{path}?{_form(fields).reveal().decode()}" if fields else path, {}, SecretBytes(b""))

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
        # Without idempotency keys a body must not be sent twice, so no connection is reused.
        lines = _connection_pool() if self.setup.full else None
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
    """A form's body; secret values are in clear in it."""
    return SecretBytes(urlencode([(name, reveal_text(text)) for name, text in fields]).encode())


@lru_cache(maxsize=1)
def _connection_pool() -> ConnectionPool:
    return ConnectionPool(MAX_IDLE_CONNECTIONS)


# A forked process must not use its parent's connections.
os.register_at_fork(after_in_child=_connection_pool.cache_clear)
