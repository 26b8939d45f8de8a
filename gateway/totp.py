"""One-time codes of an authenticator app (RFC 6238): six digits, SHA-1, every 30 seconds, as every app makes them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

from gateway.secret import Secret

STEP_S: Final = 30
DIGITS: Final = 6
DRIFT_STEPS: Final = 1
"""How far an app's clock may be off, either way."""
SECRET_BYTES: Final = 20


def new_secret() -> Secret:
    """160 random bits, base32, as apps take them."""
    return Secret(base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode())


def step_at(moment: datetime) -> int:
    """The number of the 30 seconds that ``moment`` lies in."""
    return int(moment.timestamp()) // STEP_S


def code(secret: Secret, step: int) -> str:
    """The code of one step. Source: RFC 4226, 5.3."""
    digest = hmac.digest(base64.b32decode(secret.reveal()), step.to_bytes(8, "big"), hashlib.sha1)
    at = digest[-1] & 0x0F
    number = int.from_bytes(digest[at : at + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def match(secret: Secret, text: str, now: datetime, *, after: int) -> int | None:
    """The step whose code ``text`` is, later than ``after`` and near ``now``; None: it is none."""
    typed = "".join(text.split())
    current = step_at(now)
    found = None
    for step in range(current - DRIFT_STEPS, current + DRIFT_STEPS + 1):
        # Every step is compared, so that the time taken tells nothing.
        if hmac.compare_digest(code(secret, step).encode(), typed.encode()) and step > after and found is None:
            found = step
    return found


def address(secret: Secret, account: str, issuer: str) -> str:
    """The otpauth: address that an app reads from a QR code."""
    query = urlencode({"secret": secret.reveal(), "issuer": issuer, "digits": DIGITS, "period": STEP_S})
    return f"otpauth://totp/{quote(issuer)}:{quote(account)}?{query}"
