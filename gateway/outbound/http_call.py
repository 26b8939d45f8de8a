"""One guarded HTTP call, and its outcome."""

from __future__ import annotations

import enum
import http.client
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from urllib3.exceptions import HTTPError, ReadTimeoutError, SSLError

from gateway.core.secret import Secret, SecretBytes, reveal_text
from gateway.db.sessions import pause_work
from gateway.outbound.address_guard import AddressUnreachableError, CallTarget, ForbiddenAddressError, parse_target
from gateway.outbound.connections import ConnectionPool, OutboundConnection

DEFAULT_TIMEOUT_S: Final = 30.0
DEFAULT_MAX_ANSWER_BYTES: Final = 4_096
USER_AGENT: Final = "Tollhouse"
_METHODS: Final = frozenset({"GET", "POST"})
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]{0,4096}")


class CallFailure(enum.StrEnum):
    """Why a call has no answer."""

    FORBIDDEN = "forbidden"
    UNREACHABLE = "unreachable"
    TLS = "tls"
    TIMED_OUT = "timed_out"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """A ``status`` with the beginning of the answer, or a ``failure`` with its reason in words.

    ``truncated``: the answer was longer than the limit. Header names are lower case. ``duration_ms`` includes lookup
    and connecting. ``sent``: a part of the request may have left; never set before a connection (with its TLS) was
    established.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    truncated: bool = False
    failure: CallFailure | None = None
    reason: str = ""
    address: str = ""
    duration_ms: int = 0
    sent: bool = False

    @property
    def is_success(self) -> bool:
        """True for any 2xx."""
        return self.status is not None and 200 <= self.status < 300


_FAILURES: Final[Mapping[type[Exception], CallFailure]] = {
    ForbiddenAddressError: CallFailure.FORBIDDEN,
    AddressUnreachableError: CallFailure.UNREACHABLE,
    TimeoutError: CallFailure.TIMED_OUT,
    ReadTimeoutError: CallFailure.TIMED_OUT,
    ssl.SSLError: CallFailure.TLS,
    SSLError: CallFailure.TLS,
    http.client.HTTPException: CallFailure.BROKEN,
    HTTPError: CallFailure.BROKEN,
    OSError: CallFailure.BROKEN,
}
"""What ends a call without an answer; the first that fits."""


def call_url(
    method: str,
    url: str | CallTarget,
    *,
    headers: Mapping[str, str | Secret] | None = None,
    body: bytes | SecretBytes = b"",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    max_bytes: int = DEFAULT_MAX_ANSWER_BYTES,
    lines: ConnectionPool | None = None,
) -> CallOutcome:
    """Call ``url`` once, within ``timeout_s`` in all, and read at most ``max_bytes`` of the answer.

    ``lines``: a pool of connections to reuse. A pooled connection that turns out to be closed is replaced by a new one,
    so a body may arrive twice if the server closes without an answer. Server failures never raise; ValueError is for a
    method or header that must not be sent.
    """
    secret = body if isinstance(body, SecretBytes) else SecretBytes(body)
    call = _Call(
        method=method,
        headers=_headers(method, headers or {}, secret),
        body=secret,
        max_bytes=max_bytes,
        timeout_s=timeout_s,
    )
    pause_work()
    try:
        return call.run(url if isinstance(url, CallTarget) else parse_target(url), lines or ConnectionPool(most=0))
    except tuple(_FAILURES) as fault:
        kind = next(kind for fault_type, kind in _FAILURES.items() if isinstance(fault, fault_type))
        words = f"no answer within {timeout_s:g} s" if kind is CallFailure.TIMED_OUT else str(fault)
        reason = (words or type(fault).__name__)[:200]
        return CallOutcome(failure=kind, reason=reason, duration_ms=call.duration_ms, sent=call.sent)


@dataclass(slots=True, kw_only=True)
class _Call:
    """``headers`` and ``body`` may be secret. ``sent``: a part of them may have left."""

    method: str
    headers: Mapping[str, str | Secret]
    body: SecretBytes
    max_bytes: int
    timeout_s: float
    started: float = field(default_factory=time.monotonic)
    sent: bool = False

    @property
    def duration_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)

    def run(self, target: CallTarget, lines: ConnectionPool) -> CallOutcome:
        while True:
            taken, used = lines.take(target, self.started + self.timeout_s)
            self.sent = True
            try:
                outcome, reusable = self._exchange(taken, target)
            except BaseException as fault:
                taken.close()
                if used and isinstance(fault, ConnectionError | ssl.SSLError):
                    continue
                raise
            if reusable:
                lines.give(target, taken)
            else:
                taken.close()
            return outcome

    def _exchange(self, taken: OutboundConnection, target: CallTarget) -> tuple[CallOutcome, bool]:
        """Send and read the answer. Returns it, and whether the connection can be reused."""
        headers = {"Host": target.authority} | {name: reveal_text(value) for name, value in self.headers.items()}
        body: Any = [self.body] if self.body else None
        taken.request(self.method, target.path, body=body, headers=headers, preload_content=False)
        del headers  # the faults of reading have this frame
        with taken.getresponse() as answer:
            octets = answer.read(self.max_bytes + 1, decode_content=False)
            reusable = answer.closed and not taken.is_closed
            outcome = CallOutcome(
                status=answer.status,
                headers={name.lower(): value for name, value in answer.headers.items()},
                body=octets[: self.max_bytes],
                truncated=len(octets) > self.max_bytes,
                address=taken.address,
                duration_ms=self.duration_ms,
                sent=True,
            )
        return outcome, reusable


def _headers(method: str, headers: Mapping[str, str | Secret], body: SecretBytes) -> dict[str, str | Secret]:
    """All headers of the request but Host. Raises ValueError for a method or header that must not be sent."""
    if method not in _METHODS:
        raise ValueError(f"{method!r} is not sent; allowed are {', '.join(sorted(_METHODS))}")
    length = {"Content-Length": str(len(body.reveal()))} if method == "POST" else {}
    found = {"User-Agent": USER_AGENT, "Accept": "*/*", **length, **headers}
    for name, value in found.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(reveal_text(value)):
            raise ValueError(f"the header {name!r} cannot be sent")
    return found
