"""What a merchant's server does with a webhook: shown on the docs page as it is, and run by a test."""

import base64
import contextlib
import hashlib
import hmac
import json
import time

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def read_signed(headers, body, secrets):
    """The message of a signed webhook. headers: names in lower case; body: the raw bytes; secrets: 64 hex digits each,
    the one you use and, while you change it, the next. Raises ValueError."""
    ident, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if abs(int(time.time()) - int(sent_at)) > 300:
        raise ValueError("too old: it may be a replay")
    signed = f"{ident}.{sent_at}.".encode() + body
    given = headers.get("webhook-signature", "").encode().split()
    signatures = [part.removeprefix(b"v1,") for part in given if part.startswith(b"v1,")]
    for secret in secrets:
        expected = base64.b64encode(hmac.digest(bytes.fromhex(secret), signed, hashlib.sha256))
        if any(hmac.compare_digest(expected, signature) for signature in signatures):
            return json.loads(body)
    raise ValueError("not signed with a secret of ours")


def read_encrypted(headers, body, secrets):
    """The message of an encrypted webhook, wrapped in JSON or not. Raises ValueError."""
    text = str(json.loads(body).get("encryptedBody")) if body.startswith(b"{") else body.decode()
    iv = bytes.fromhex(headers.get("x-initialization-vector", ""))
    sealed = bytes.fromhex(text) + bytes.fromhex(headers.get("x-authentication-tag", ""))
    for secret in secrets:
        with contextlib.suppress(InvalidTag):
            return json.loads(AESGCM(bytes.fromhex(secret)).decrypt(iv, sealed, None))
    raise ValueError("not encrypted with a secret of ours")


def take(message, seen):
    """Handle a message: answer 200 first, act on what is new. seen: kind and shortId → highest sequence, in your
    database. True when there is something to do."""
    if message["type"] == "test":
        return False
    payload = message["payload"]
    # Not the id: what rules decide has the payment's, and each change of a registration has the registration's.
    about = f"{message['type']} {payload['shortId']}"
    if payload["sequence"] <= seen.get(about, 0):
        return False  # received before, or overtaken by a later event
    seen[about] = payload["sequence"]
    return True
