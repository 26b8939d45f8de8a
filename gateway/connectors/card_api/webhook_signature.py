"""Verifies webhook signatures: ``t=<seconds>,v1=<hex>[,v1=<hex>…]``, HMAC-SHA256 of ``<t>.<body>``.

There are several signatures while the processor rotates its secret, and several secrets while we do: one matching pair
is enough. Other schemes (v0) are ignored.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Final

from gateway.core.secret import Secret

SIGNATURE_HEADER: Final = "Stripe-Signature"
SIGNATURE_TOLERANCE_S: Final = 300
"""Maximum age of a signature, and clock difference: a recorded message is useless after that."""
MAX_SIGNATURE_HEADER_CHARS: Final = 4_096
MAX_WEBHOOK_SIGNATURES: Final = 16
_TIME: Final = re.compile(r"[0-9]{1,12}")
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def explain_bad_signature(
    header: str, body: bytes, secrets: Iterable[Secret], now: float, *, name: str = SIGNATURE_HEADER
) -> str:
    """Why ``body`` is not signed by its sender; '' if it is. ``name``: of the header. Constant time."""
    if not header or len(header) > MAX_SIGNATURE_HEADER_CHARS:
        return f"the header {name} is missing or too long"
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for key, _, value in pairs if key == "t" and _TIME.fullmatch(value)]
    signatures = [value for key, _, value in pairs if key == "v1" and _HEX.fullmatch(value)][:MAX_WEBHOOK_SIGNATURES]
    if len(times) != 1 or not signatures:
        return f"the header {name} has no time, or no signature of the scheme v1"
    expected = [_signature(secret, times[0], body) for secret in secrets]
    # Every pair is compared, so that the time taken does not reveal which one matched.
    fits = [hmac.compare_digest(ours, theirs) for ours in expected for theirs in signatures]
    if not any(fits):
        return "no signature fits"
    if abs(now - int(times[0])) > SIGNATURE_TOLERANCE_S:
        return f"the signature is older than {SIGNATURE_TOLERANCE_S} seconds, or from the future"
    return ""


def _signature(secret: Secret, at: str, body: bytes) -> str:
    return hmac.new(secret.reveal().encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
