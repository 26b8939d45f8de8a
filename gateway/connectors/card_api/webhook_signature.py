"""How the processor signs its webhooks: ``t=<seconds>,v1=<hex>[,v1=<hex>…]``, HMAC-SHA256 of ``<t>.<body>``.

Several signatures stand there while the processor's secret is rotated, and several secrets here while ours is: one
pair that fits is enough. Other schemes (v0) count for nothing.
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
"""How old a signature may be, or how far ahead the processor's clock: a recorded message is of no use after that."""
MAX_SIGNATURE_HEADER_CHARS: Final = 4_096
MAX_WEBHOOK_SIGNATURES: Final = 16
_TIME: Final = re.compile(r"[0-9]{1,12}")
_HEX: Final = re.compile(r"[0-9a-f]{64}")


def explain_bad_signature(header: str, body: bytes, secrets: Iterable[Secret], now: float) -> str:
    """Why ``body`` does not come from the processor, in words; '' when it does. Compared in constant time."""
    if not header or len(header) > MAX_SIGNATURE_HEADER_CHARS:
        return f"the header {SIGNATURE_HEADER} is missing or too long"
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in pairs if name == "t" and _TIME.fullmatch(value)]
    signatures = [value for name, _, value in pairs if name == "v1" and _HEX.fullmatch(value)][:MAX_WEBHOOK_SIGNATURES]
    if len(times) != 1 or not signatures:
        return f"the header {SIGNATURE_HEADER} has no time, or no signature of the scheme v1"
    expected = [_signature(secret, times[0], body) for secret in secrets]
    # Every pair is compared, so that the time taken tells nothing of which one fitted.
    fits = [hmac.compare_digest(ours, theirs) for ours in expected for theirs in signatures]
    if not any(fits):
        return "no signature fits"
    if abs(now - int(times[0])) > SIGNATURE_TOLERANCE_S:
        return f"the signature is older than {SIGNATURE_TOLERANCE_S} seconds, or from the future"
    return ""


def _signature(secret: Secret, at: str, body: bytes) -> str:
    return hmac.new(secret.reveal().encode(), at.encode() + b"." + body, hashlib.sha256).hexdigest()
