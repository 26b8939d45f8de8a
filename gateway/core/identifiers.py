"""Ids: what they look like and where they come from (D14).

Rows carry time-ordered UUIDs (version 7), so that inserts stay at the end of their index; anything that is a
capability (an access token, a checkout) is random. Source: Part A, Resource identifiers; Part B, Payment response.
"""

from __future__ import annotations

import re
import secrets
from typing import Final
from uuid import UUID

from uuid_utils import compat

TOKEN_PREFIX: Final = "tollhouse_"  # noqa: S105 - the public part of a token, so that leaks can be searched for
_SHORT_ID_MODULUS: Final = 10**12
# Coprime to the modulus: neighbours in the sequence look apart on paper, and no two numbers give one short id.
_SHORT_ID_FACTOR: Final = 387_420_489_111
_ID = re.compile("[0-9a-f]{32}")


def row_id() -> UUID:
    """A time-ordered id for a row (UUID version 7)."""
    return compat.uuid7()


def entity_id() -> UUID:
    """A random id for a merchant or channel: it tells nothing of when the merchant came."""
    return UUID(bytes=secrets.token_bytes(16))


def generate_access_token() -> str:
    """A new access token: 256 random bits, in characters of RFC 6750's b64token."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def parse_id(text: str) -> UUID | None:
    """A payment id as the API writes it (32 lower-case hex digits), or None: then nothing has that id."""
    return UUID(text) if _ID.fullmatch(text) else None


def format_short_id(number: int) -> str:
    """``NNNN.NNNN.NNNN``, 14 characters, for the phone: one per payment number, without repeats up to 10^12."""
    digits = f"{number * _SHORT_ID_FACTOR % _SHORT_ID_MODULUS:012d}"
    return f"{digits[:4]}.{digits[4:8]}.{digits[8:]}"


def parse_short_id(text: str) -> int | None:
    """The payment number behind a short id, or None when the text is none."""
    if not re.fullmatch(r"[0-9]{4}\.[0-9]{4}\.[0-9]{4}", text):
        return None
    return int(text.replace(".", "")) * pow(_SHORT_ID_FACTOR, -1, _SHORT_ID_MODULUS) % _SHORT_ID_MODULUS


def format_ndc(request: UUID, entity: str = "") -> str:
    """The request's public id: the entity that asked, a hyphen, the request (1-69 letters, digits, hyphen)."""
    return f"{entity}-{request.hex}" if entity else request.hex


def parse_ndc(text: str) -> UUID | None:
    """The request an ``format_ndc`` names, or None."""
    return parse_id(text.rpartition("-")[2])
