"""Encodes notifications for sending: encrypted with AES-256-GCM, or plain with the signature of Standard Webhooks.

Both use a secret shared by merchant and gateway: 64 hex digits, the same 32 bytes in either mode. Source: decisions,
section 6; https://www.standardwebhooks.com.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.core.secret import Secret, SecretBytes
from gateway.models import WebhookEndpoint

GCM_IV_BYTES: Final = 12
GCM_TAG_BYTES: Final = 16
WEBHOOK_SECRET_BYTES: Final = 32
_PREFIX: Final = "whsec_"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeys:
    """An endpoint's secret, and the previous one as long as it is valid."""

    current: SecretBytes
    previous: SecretBytes | None = None


def generate_webhook_secret() -> Secret:
    """A new secret: 64 hex digits."""
    return Secret(secrets.token_hex(WEBHOOK_SECRET_BYTES))


def parse_webhook_secret(text: str) -> Secret:
    """A merchant's own secret: 64 hex digits, or Standard Webhooks' ``whsec_`` and 32 bytes in base64. Raises
    ValueError."""
    text = text.strip()
    try:
        octets = base64.b64decode(text[len(_PREFIX) :], validate=True) if text.startswith(_PREFIX) else None
        octets = bytes.fromhex(text) if octets is None else octets
    except ValueError:
        octets = b""
    if len(octets) != WEBHOOK_SECRET_BYTES:
        raise ValueError(f"a webhook secret is 64 hex digits, or {_PREFIX} and 32 bytes in base64")
    return Secret(octets.hex())


def format_standard_secret(secret: Secret) -> Secret:
    """The secret in the form of libraries for Standard Webhooks (``whsec_…``)."""
    return Secret(_PREFIX + base64.b64encode(bytes.fromhex(secret.reveal())).decode())


def sign_or_encrypt(
    mode: str, wrapper: str, keys: SigningKeys, ident: UUID, text: str, at: datetime
) -> tuple[dict[str, str], bytes]:
    """Headers and body of one attempt. ``ident``: the delivery's id, the same in each attempt; ``at``: real time, which
    receivers compare with their own."""
    if mode == WebhookEndpoint.Mode.SIGNED:
        return _sign(keys, f"msg_{ident.hex}", text.encode(), int(at.timestamp()))
    return _encrypt(keys, text.encode(), wrapper)


def _sign(keys: SigningKeys, ident: str, body: bytes, at: int) -> tuple[dict[str, str], bytes]:
    signed = f"{ident}.{at}.".encode() + body
    signatures = [
        base64.b64encode(hmac.digest(key.reveal(), signed, hashlib.sha256)).decode()
        for key in (keys.current, keys.previous)
        if key is not None
    ]
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "webhook-id": ident,
        "webhook-timestamp": str(at),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
    return headers, body


def _encrypt(keys: SigningKeys, body: bytes, wrapper: str) -> tuple[dict[str, str], bytes]:
    """Encrypt the body. It has one key: while a rotation overlaps, the previous one, which the receiver certainly
    has."""
    key = keys.current if keys.previous is None else keys.previous
    iv = secrets.token_bytes(GCM_IV_BYTES)
    octets = AESGCM(key.reveal()).encrypt(iv, body, None)
    text, tag = octets[:-GCM_TAG_BYTES].hex(), octets[-GCM_TAG_BYTES:].hex()
    headers = {"X-Initialization-Vector": iv.hex(), "X-Authentication-Tag": tag}
    if wrapper == WebhookEndpoint.Wrapper.JSON:
        return {"Content-Type": "application/json; charset=utf-8", **headers}, f'{{"encryptedBody":"{text}"}}'.encode()
    return {"Content-Type": "text/plain; charset=utf-8", **headers}, text.encode()
