"""Builds requests: parameters by their full names, an idempotency key, and whether to retry."""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import httpx

from tollhouse._constants import MAP_PARAMETERS
from tollhouse._model import Answer
from tollhouse._version import __version__
from tollhouse.errors import ApiError, NoAnswerError, build_api_error

T = TypeVar("T", bound=Answer)
REPEATED_STATUSES = frozenset({409, 429, 502, 503, 504})
"""Statuses after which the same request is sent again, where that is safe."""
MAX_PAUSE_S = 30.0
FIRST_PAUSE_S = 0.5
MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""No answer of a gateway is as long."""


def flatten(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Nested parameters by their full names: ``card.number``, ``cart.items[0].name``. None is not sent. Raises
    TypeError for what is no text, whole number, Decimal or bool: a binary fraction is no money."""
    return dict(_flatten(parameters, ""))


def _flatten(node: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, Mapping):
        for key, child in node.items():
            yield from _flatten(child, f"{name}[{key}]" if name in MAP_PARAMETERS else f"{name}.{key}" if name else key)
    elif isinstance(node, Sequence) and not isinstance(node, str | bytes):
        for index, child in enumerate(node):
            yield from _flatten(child, f"{name}[{index}]")
    elif isinstance(node, bool):
        yield name, "true" if node else "false"
    elif isinstance(node, Decimal):
        if not node.is_finite():
            raise TypeError(f"{name} is no finite number")
        yield name, f"{node:f}"
    elif isinstance(node, str | int):
        yield name, str(node)
    elif node is not None:
        raise TypeError(f"{name} is a {type(node).__name__}; send a text, a whole number, a Decimal or a bool")


def build_path(*parts: str) -> str:
    """The path of a resource; its parts are quoted. Raises ValueError for an empty id, and for ``.`` and ``..``: the
    request would go to another resource."""
    if not all(parts):
        raise ValueError("an id is empty")
    if not {".", ".."}.isdisjoint(parts):
        raise ValueError("an id is only dots")
    return "/" + "/".join(quote(part, safe="") for part in parts)


@dataclass(frozen=True, slots=True)
class Connection:
    """How the gateway is reached. The token is not in its repr."""

    base_url: str
    token: str = field(repr=False)
    entity_id: str = ""
    timeout: float = 60.0
    max_retries: int = 2

    def __post_init__(self) -> None:
        known = False
        with contextlib.suppress(ValueError):
            parts = urlsplit(self.base_url)
            known = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
        if not known:
            raise ValueError("base_url is no address of a gateway: https://…")
        if not self.token:
            raise ValueError("token is empty")


@dataclass(slots=True)
class PreparedRequest:
    """A request and its tries. ``repeatable``: sending it again changes nothing: it reads, or it has a key."""

    method: str
    url: str
    content: str | None = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    idempotency_key: str
    repeatable: bool
    max_retries: int
    tries: int = 0

    def find_pause(self, answer: httpx.Response | None, *, unsent: bool = False) -> float | None:
        """Seconds until the next try; None: give up. ``answer`` None: none came; ``unsent``: no connection was made."""
        self.tries += 1
        if self.tries > self.max_retries or not (self.repeatable or (unsent and answer is None)):
            return None
        if answer is not None and answer.status_code not in REPEATED_STATUSES:
            return None
        wait = find_retry_after(answer)
        if wait is not None:
            return wait if wait <= MAX_PAUSE_S else None
        pause: float = min(FIRST_PAUSE_S * 2.0 ** (self.tries - 1), MAX_PAUSE_S)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads tries, protects nothing


class BoundedAnswer:
    """The body of an answer, as it comes in pieces. A timeout of httpx is one of each piece: whoever sends them slowly
    enough would keep the caller, and what it holds, for ever. Encoded answers are refused: a decoder may yield nothing
    for a long time, and everything at once."""

    def __init__(self, answer: httpx.Response, timeout: float) -> None:
        """Raises httpx.DecodingError for an encoded answer; PreparedRequest asks for none."""
        encoding = answer.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            raise httpx.DecodingError(f"the answer is encoded, which was not asked for: {encoding[:40]!r}")
        self._answer = answer
        self._until = time.monotonic() + timeout
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Raises httpx.ReadTimeout after the time, httpx.ReadError for an answer that is too long."""
        self._size += len(piece)
        if self._size > MAX_ANSWER_BYTES:
            raise httpx.ReadError(f"the answer is longer than {MAX_ANSWER_BYTES:,} bytes")
        if time.monotonic() > self._until:
            raise httpx.ReadTimeout("the answer did not end in time")
        self._pieces.append(piece)

    def build(self) -> httpx.Response:
        """The answer with its body."""
        answer = self._answer
        # Of the headers what is read; what they say of length and encoding is over.
        kept = {name: answer.headers[name] for name in _READ_HEADERS if name in answer.headers}
        return httpx.Response(answer.status_code, headers=kept, content=b"".join(self._pieces))


_READ_HEADERS = ("Content-Type", "Retry-After", "Idempotent-Replayed")


def find_retry_after(answer: httpx.Response | None) -> float | None:
    """Seconds of a Retry-After header."""
    text = answer.headers.get("Retry-After", "") if answer is not None else ""
    return float(text) if text.isascii() and text.isdigit() else None


def prepare_request(
    connection: Connection,
    method: str,
    path: str,
    parameters: Mapping[str, Any] | None,
    *,
    entity: bool,
    key: str | None,
) -> PreparedRequest:
    """``entity``: it takes the entityId; ``key``: None for requests without idempotency key, '' for a new one."""
    pairs = flatten(parameters or {})
    if entity and connection.entity_id:
        pairs.setdefault("entityId", connection.entity_id)
    query = urlencode(pairs)
    headers = {
        "Authorization": f"Bearer {connection.token}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"tollhouse-python/{__version__}",
    }
    used = "" if key is None else key or str(uuid.uuid4())
    if used:
        headers["Idempotency-Key"] = used
    url = connection.base_url.rstrip("/") + path
    posts = method == "POST"
    if posts:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    elif query:
        url += f"?{query}"
    return PreparedRequest(
        method=method,
        url=url,
        content=query if posts else None,
        headers=headers,
        idempotency_key=used,
        repeatable=bool(used) or method == "GET",
        max_retries=connection.max_retries,
    )


def read_answer(answer: httpx.Response, request: PreparedRequest, kind: type[T]) -> T:
    """The answer as a model. Raises ApiError for a refused request; a declined payment is an answer."""
    try:
        body = answer.json()
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    # A payment that exists was answered, whatever became of it; a refusal by limit has an id, too.
    if answer.status_code < 400 or (body.get("id") and answer.status_code == 400):
        if not body:
            raise NoAnswerError(f"HTTP {answer.status_code} without JSON: is this a gateway?", request.idempotency_key)
        return kind(
            body,
            http_status=answer.status_code,
            idempotency_key=request.idempotency_key,
            replayed=answer.headers.get("Idempotent-Replayed") == "true",
        )
    error: ApiError = build_api_error(answer.status_code, body, find_retry_after(answer))
    raise error
