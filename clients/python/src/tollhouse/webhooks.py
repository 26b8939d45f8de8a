"""Verifies and decodes webhooks. Both modes: signed (Standard Webhooks) and encrypted (AES-256-GCM)."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tollhouse.errors import WebhookVerificationError
from tollhouse.models import Payment

MAX_AGE_S = 300
"""A signed webhook that is older may be sent again by a stranger."""
_PREFIX = "whsec_"
_MAX_TIME_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Event:
    """A webhook. ``type``: PAYMENT, REGISTRATION, SCHEDULE, RISK, or test; ``action``: CREATED, UPDATED …;
    ``payload``: the object as the API answers it, and more; not in its repr."""

    type: str
    action: str
    payload: Mapping[str, Any] = field(repr=False)

    @property
    def payment(self) -> Payment:
        """The payload as a payment; for type PAYMENT."""
        return Payment(self.payload)

    @property
    def subject(self) -> str:
        """What the event is about. Keep the highest ``sequence`` of each, and do nothing for a lower one."""
        return f"{self.type} {self.payload.get('shortId', '')}"

    @property
    def sequence(self) -> int:
        """Rises with every change of the subject."""
        return int(self.payload.get("sequence", 0))


def verify(body: bytes | str, headers: Mapping[str, str], secrets: str | Sequence[str]) -> Event:
    """The event, if it was made with one of your secrets. ``body``: the raw body, not parsed again; ``headers``: in any
    case; ``secrets``: 64 hex digits or ``whsec_…``, while you change it both. Raises WebhookVerificationError."""
    keys = [_parse_secret(one) for one in ([secrets] if isinstance(secrets, str) else secrets)]
    octets = body.encode(errors="replace") if isinstance(body, str) else bytes(body)
    lower = {name.lower(): value for name, value in headers.items()}
    text = _decrypt(octets, lower, keys) if "x-initialization-vector" in lower else _check(octets, lower, keys)
    try:
        found = json.loads(text)
        return Event(str(found["type"]), str(found["action"]), found.get("payload") or {})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WebhookVerificationError("this is no event of a gateway") from None


def _parse_secret(text: str) -> bytes:
    with contextlib.suppress(ValueError, binascii.Error):
        key = base64.b64decode(text[len(_PREFIX) :], validate=True) if text.startswith(_PREFIX) else bytes.fromhex(text)
        if len(key) == 32:
            return key
    raise ValueError("a webhook secret is 64 hex digits, or whsec_ and 32 bytes in base64")


def _check(body: bytes, headers: Mapping[str, str], keys: Sequence[bytes]) -> bytes:
    message, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) <= _MAX_TIME_DIGITS):
        raise WebhookVerificationError("it has neither the headers of a signed nor those of an encrypted webhook")
    if abs(time.time() - int(sent_at)) > MAX_AGE_S:
        raise WebhookVerificationError("it is too old, or your clock is wrong")
    signed = f"{message}.{sent_at}.".encode(errors="replace") + body
    expected = [b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]
    sent = [part.encode(errors="replace") for part in headers.get("webhook-signature", "").split()]
    if not any(hmac.compare_digest(one, other) for one in expected for other in sent):
        raise WebhookVerificationError("it is not signed with one of your secrets")
    return body


def _decrypt(body: bytes, headers: Mapping[str, str], keys: Sequence[bytes]) -> bytes:
    try:
        text = json.loads(body)["encryptedBody"] if body.startswith(b"{") else body.decode()
        iv = bytes.fromhex(headers["x-initialization-vector"])
        sealed = bytes.fromhex(text) + bytes.fromhex(headers.get("x-authentication-tag", ""))
        if len(iv) != 12:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise WebhookVerificationError("its body or headers are not hex") from None
    for key in keys:
        with contextlib.suppress(InvalidTag):
            return AESGCM(key).decrypt(iv, sealed, None)
    raise WebhookVerificationError("it is not encrypted with one of your secrets")
