"""One guarded HTTP call, and its outcome."""

from __future__ import annotations

import enum
import http.client
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway.core.secret import Secret, SecretBytes
from gateway.outbound import connections
from gateway.outbound.address_guard import AddressUnreachableError, CallTarget, ForbiddenAddressError, parse_target
from gateway.outbound.connections import ConnectionPool, DeadlinePassedError, OutboundConnection

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
    started = time.monotonic()
    course = _Course()
    try:
        target = url if isinstance(url, CallTarget) else parse_target(url)
        message = _message(method, target, headers or {}, body if isinstance(body, SecretBytes) else SecretBytes(body))
        return _ask(method, target, message, course, started, timeout_s, max_bytes, lines)
    except ForbiddenAddressError as fault:
        return _failed_outcome(CallFailure.FORBIDDEN, fault, started, course)
    except AddressUnreachableError as fault:
        return _failed_outcome(CallFailure.UNREACHABLE, fault, started, course)
    except TimeoutError:
        return _failed_outcome(
            CallFailure.TIMED_OUT, TimeoutError(f"no answer within {timeout_s:g} s"), started, course
        )
    except ssl.SSLError as fault:
        return _failed_outcome(CallFailure.TLS, fault, started, course)
    except (http.client.HTTPException, OSError) as fault:
        return _failed_outcome(CallFailure.BROKEN, fault, started, course)


@dataclass(slots=True)
class _Course:
    """Progress of a call."""

    sent: bool = False


def _ask(
    method: str,
    target: CallTarget,
    message: SecretBytes,
    course: _Course,
    started: float,
    timeout_s: float,
    max_bytes: int,
    lines: ConnectionPool | None,
) -> CallOutcome:
    deadline = started + timeout_s
    while True:
        taken, used = (
            lines.take(target, deadline)
            if lines is not None
            else (connections.open_connection(target, deadline), False)
        )
        course.sent = True
        try:
            outcome, reusable = _exchange(method, taken, message, started, max_bytes)
        except BaseException as fault:
            taken.close()
            if (
                used
                and not isinstance(fault, DeadlinePassedError)
                and isinstance(fault, (ConnectionError, ssl.SSLError))
            ):
                continue
            raise
        if lines is not None and reusable:
            lines.give(target, taken)
        else:
            taken.close()
        return outcome


def _exchange(
    method: str, taken: OutboundConnection, message: SecretBytes, started: float, max_bytes: int
) -> tuple[CallOutcome, bool]:
    """Send and read the answer. Returns it, and whether the connection can be reused."""
    taken.sendall(message)
    # HTTPResponse uses only the makefile() of a socket.
    answer = http.client.HTTPResponse(taken, method=method)  # type: ignore[arg-type]
    try:
        answer.begin()
        body = answer.read(max_bytes + 1)
        reusable = answer.isclosed() and not answer.will_close
        outcome = CallOutcome(
            status=answer.status,
            headers={name.lower(): value for name, value in answer.getheaders()},
            body=body[:max_bytes],
            truncated=len(body) > max_bytes,
            address=taken.address,
            duration_ms=int((time.monotonic() - started) * 1000),
            sent=True,
        )
    finally:
        answer.close()
    return outcome, reusable


def _message(method: str, target: CallTarget, headers: Mapping[str, str | Secret], body: SecretBytes) -> SecretBytes:
    """The whole request as bytes, sent at once."""
    if method not in _METHODS:
        raise ValueError(f"{method!r} is not sent; allowed are {', '.join(sorted(_METHODS))}")
    head: dict[str, str | Secret] = {
        "Host": target.authority,
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        "Accept-Encoding": "identity",
    }
    if method == "POST":
        head["Content-Length"] = str(len(body.reveal()))
    for name, value in {**head, **headers}.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(_text(value)):
            raise ValueError(f"the header {name!r} cannot be sent")
    lines = Secret("".join(f"{name}: {_text(value)}\r\n" for name, value in {**head, **headers}.items()))
    return SecretBytes(f"{method} {target.path} HTTP/1.1\r\n{lines.reveal()}\r\n".encode("ascii") + body.reveal())


def _text(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value


def _failed_outcome(failure: CallFailure, fault: Exception, started: float, course: _Course) -> CallOutcome:
    words = str(fault) or type(fault).__name__
    took = int((time.monotonic() - started) * 1000)
    return CallOutcome(failure=failure, reason=words[:200], duration_ms=took, sent=course.sent)
