"""Checks whether a received message is what an endpoint was sent, and explains what is wrong with it. Pure.

``verify_message`` gets headers and body as they were pasted; the result is right, old, wrong key, wrong encoding, or
which header is missing. Source: https://www.standardwebhooks.com.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.notifications.signing import GCM_IV_BYTES, GCM_TAG_BYTES, SigningKeys

TIMESTAMP_TOLERANCE: Final = timedelta(minutes=5)
"""Largest age, past or future, that libraries for Standard Webhooks accept."""
MAX_PASTED_CHARS: Final = 200_000
"""Characters of headers and body that are checked."""
_ID, _AT, _SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_IV, _TAG = "x-initialization-vector", "x-authentication-tag"
_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,128}")
_QUOTES: Final = ("'", '"')


class VerificationResult(StrEnum):
    """The possible results of a check."""

    RIGHT = "right"
    OLD = "old"
    WRONG_KEY = "wrong key"
    WRONG_ENCODING = "wrong encoding"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationVerdict:
    """Result of a check. ``why``: a name of the back office's table of reasons; ``more``: the value inserted into it.
    ``text``: the plain text of the message, if it could be read. ``previous``: the secret before the last rotation
    matched."""

    kind: VerificationResult
    why: str
    more: str = ""
    text: str = ""
    previous: bool = False


def parse_pasted_headers(pasted: str) -> dict[str, str]:
    """Names in lower case and values of pasted lines ("Name: value"); other lines, such as POST …, are skipped."""
    found: dict[str, str] = {}
    for line in pasted.splitlines():
        name, colon, value = line.partition(":")
        name = _strip_quotes(name.strip())
        if colon and _NAME.fullmatch(name):
            found.setdefault(name.lower(), _strip_quotes(value.strip().removesuffix(",").rstrip()))
    return found


def _strip_quotes(text: str) -> str:
    """``text`` without the quotes of a printed dictionary; each end on its own, since users cut anywhere."""
    text = text[1:] if text.startswith(_QUOTES) else text
    return text[:-1] if text.endswith(_QUOTES) else text


def verify_message(keys: SigningKeys, headers: Mapping[str, str], body: str, now: datetime) -> VerificationVerdict:
    """Check a message of the endpoint with these ``keys``; ``now`` is real time."""
    if _SIGNATURE in headers:
        return _verify_signed(keys, headers, body, now)
    if _IV in headers or _TAG in headers:
        return _verify_encrypted(keys, headers, body)
    return VerificationVerdict(kind=VerificationResult.MISSING, why="no headers")


def _list_keys(keys: SigningKeys) -> Iterator[tuple[bytes, bool]]:
    yield keys.current.reveal(), False
    if keys.previous is not None:
        yield keys.previous.reveal(), True


# --- signed -------------------------------------------------------------------------------------------------------


def _verify_signed(keys: SigningKeys, headers: Mapping[str, str], body: str, now: datetime) -> VerificationVerdict:
    for name in (_ID, _AT):
        if not headers.get(name):
            return VerificationVerdict(kind=VerificationResult.MISSING, why="header", more=name)
    at = headers[_AT].strip()
    if not (at.isascii() and at.isdigit() and len(at) <= 12):
        return VerificationVerdict(kind=VerificationResult.WRONG_ENCODING, why="timestamp", more=_AT)
    signatures = []
    for each in headers[_SIGNATURE].split():
        version, comma, text = each.partition(",")
        octets = _parse_base64(text) if comma and version == "v1" else None
        if octets is not None and len(octets) == hashlib.sha256().digest_size:
            signatures.append(octets)
    if not signatures:
        return VerificationVerdict(kind=VerificationResult.WRONG_ENCODING, why="signature", more=_SIGNATURE)
    for why, text in _list_variants(body):
        for key, previous in _list_keys(keys):
            # JSON may name half of a pair (\\ud800), which is no character: no message of ours has one.
            signed = f"{headers[_ID].strip()}.{at}.{text}".encode(errors="surrogatepass")
            made = hmac.digest(key, signed, hashlib.sha256)
            if any(hmac.compare_digest(made, one) for one in signatures):
                if why:
                    return VerificationVerdict(
                        kind=VerificationResult.WRONG_ENCODING, why=why, text=text, previous=previous
                    )
                age = now.timestamp() - int(at)
                if abs(age) > TIMESTAMP_TOLERANCE.total_seconds():
                    return VerificationVerdict(
                        kind=VerificationResult.OLD,
                        why="old" if age > 0 else "early",
                        more=str(int(abs(age)) // 60),
                        text=text,
                        previous=previous,
                    )
                return VerificationVerdict(kind=VerificationResult.RIGHT, why="right", text=text, previous=previous)
    return VerificationVerdict(kind=VerificationResult.WRONG_KEY, why="no signature fits")


def _list_variants(body: str) -> Iterator[tuple[str, str]]:
    """The body, and what frameworks, editors and clipboards make of it: pairs of the change and the body as it was
    sent."""
    yield "", body
    # A browser form sends line ends as CR LF; our bodies contain none.
    if body.strip() != body:
        yield "white space", body.strip()
    if body[:1] == "\ufeff":
        yield "white space", body[1:].strip()
    try:
        value = json.loads(body)
        # Our own form: compact, no escapes.
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return
    yield ("quoted", value) if isinstance(value, str) else ("written again", written)


# --- encrypted ----------------------------------------------------------------------------------------------------


def _verify_encrypted(keys: SigningKeys, headers: Mapping[str, str], body: str) -> VerificationVerdict:
    found: dict[str, bytes] = {}
    for name, length in ((_IV, GCM_IV_BYTES), (_TAG, GCM_TAG_BYTES)):
        if not headers.get(name):
            return VerificationVerdict(kind=VerificationResult.MISSING, why="header", more=name)
        octets = _parse_hex(headers[name])
        if octets is None or len(octets) != length:
            return VerificationVerdict(
                kind=VerificationResult.WRONG_ENCODING, why="hex header", more=f"{name}: {2 * length}"
            )
        found[name] = octets
    text = body.strip()
    if text.startswith("{"):
        try:
            text = str(json.loads(text)["encryptedBody"])
        except (ValueError, KeyError, RecursionError):
            return VerificationVerdict(kind=VerificationResult.WRONG_ENCODING, why="no encryptedBody")
    text = text.strip().strip('"')
    octets = _parse_hex(text)
    why = ""
    if octets is None:
        octets = _parse_base64(text)
        if octets is None:
            return VerificationVerdict(kind=VerificationResult.WRONG_ENCODING, why="body is no hex")
        why = "body in base64"
    for key, previous in _list_keys(keys):
        for sealed, done in ((octets + found[_TAG], why), (octets, why or "tag inside")):
            try:
                plain = AESGCM(key).decrypt(found[_IV], sealed, None).decode()
            except (InvalidTag, ValueError):
                continue
            kind = VerificationResult.WRONG_ENCODING if done else VerificationResult.RIGHT
            return VerificationVerdict(kind=kind, why=done or "right", text=plain, previous=previous)
    return VerificationVerdict(kind=VerificationResult.WRONG_KEY, why="does not open")


def _parse_hex(text: str) -> bytes | None:
    text = text.strip()
    try:
        return bytes.fromhex(text) if text and len(text) % 2 == 0 and not re.search(r"\s", text) else None
    except ValueError:
        return None


def _parse_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.strip(), validate=True) or None
    except (binascii.Error, ValueError):
        return None
