"""A merchant's webhook receiver: verifies and decrypts with public libraries alone, and uses
none of the product's own code."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from standardwebhooks import Webhook

from tests.support.receivers import Receiver, receiving


@dataclass(slots=True)
class Told:
    """One request that came: its line, headers in lower case, raw body."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Hook:
    """A receiver. ``answers``: statuses to give, one after the other; then ``always``."""

    receiver: Receiver | None = None
    answers: list[int] = field(default_factory=list)
    always: int = 200
    answer_body: bytes = b"ok"

    @property
    def url(self) -> str:
        assert self.receiver is not None
        return self.receiver.url

    @property
    def told(self) -> list[Told]:
        assert self.receiver is not None
        return [parsed(raw) for raw in list(self.receiver.requests)]

    def answer(self, line: socket.socket, request: bytes) -> None:
        status = self.answers.pop(0) if self.answers else self.always
        head = f"HTTP/1.1 {status} Word\r\nContent-Length: {len(self.answer_body)}\r\n\r\n"
        line.sendall(head.encode() + self.answer_body)


@contextlib.contextmanager
def hooked(**steering: Any) -> Iterator[Hook]:
    """A receiver at work."""
    hook = Hook(**steering)
    with receiving(hook.answer) as receiver:
        hook.receiver = receiver
        yield hook


def parsed(raw: bytes) -> Told:
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *rows = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows)}
    return Told(line=line, headers=headers, body=body)


def verified(told: Told, secret: str) -> dict[str, Any]:
    """The message of a signed request; raises when the signature is wrong. ``secret``: whsec_…"""
    Webhook(secret).verify(told.body, told.headers)
    found = json.loads(told.body)
    assert isinstance(found, dict)
    return found


def decrypted(told: Told, secret: str) -> dict[str, Any]:
    """The message of an encrypted request, by plain AES-GCM; ``secret``: 64 hex digits."""
    if told.headers["content-type"].startswith("application/json"):
        body = bytes.fromhex(json.loads(told.body)["encryptedBody"])
    else:
        assert told.headers["content-type"].startswith("text/plain")
        body = bytes.fromhex(told.body.decode())
    iv = bytes.fromhex(told.headers["x-initialization-vector"])
    tag = bytes.fromhex(told.headers["x-authentication-tag"])
    found = json.loads(AESGCM(bytes.fromhex(secret)).decrypt(iv, body + tag, None))
    assert isinstance(found, dict)
    return found
