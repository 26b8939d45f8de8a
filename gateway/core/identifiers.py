"""Identifiers: their formats and how they are generated (D14).

Rows have time-ordered UUIDs (version 7), so that inserts stay at the end of their index; anything that grants access
(an access token, a checkout id) is random. Source: Part A, Resource identifiers; Part B, Payment response.
"""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from typing import Final
from uuid import UUID

from uuid_utils import compat

TOKEN_PREFIX: Final = "tollhouse_"  # noqa: S105 - the public part of a token, so that leaks can be searched for
_SHORT_ID_MODULUS: Final = 10**12
# Coprime to the modulus: neighbouring numbers get dissimilar short ids, and no two numbers the same one.
_SHORT_ID_FACTOR: Final = 387_420_489_111
_ID = re.compile("[0-9a-f]{32}")


def row_id() -> UUID:
    """A time-ordered id for a row (UUID version 7)."""
    return compat.uuid7()


def first_id_at(at: datetime) -> UUID:
    """The smallest id that a row made at ``at``, real time, can have."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)


def entity_id() -> UUID:
    """A random id for a merchant or channel: it does not reveal when the merchant was created."""
    return UUID(bytes=secrets.token_bytes(16))


def generate_access_token() -> str:
    """A new access token: 256 random bits, in characters of RFC 6750's b64token."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def parse_id(text: str) -> UUID | None:
    """A payment id in API notation (32 lower-case hex digits); None for any other text."""
    return UUID(text) if _ID.fullmatch(text) else None


def format_short_id(number: int) -> str:
    """``NNNN.NNNN.NNNN``, 14 characters, for the phone: one per payment number, without repeats up to 10^12."""
    digits = str(number * _SHORT_ID_FACTOR % _SHORT_ID_MODULUS + _SHORT_ID_MODULUS)  # a 1 before the twelve digits
    return f"{digits[1:5]}.{digits[5:9]}.{digits[9:]}"


def parse_short_id(text: str) -> int | None:
    """The payment number of a short id; None when the text is not one."""
    if not re.fullmatch(r"[0-9]{4}\.[0-9]{4}\.[0-9]{4}", text):
        return None
    return int(text.replace(".", "")) * pow(_SHORT_ID_FACTOR, -1, _SHORT_ID_MODULUS) % _SHORT_ID_MODULUS


def format_ndc(request: UUID, entity: str = "") -> str:
    """The public id of a request: entity id, hyphen, request id (1-69 letters, digits, hyphen)."""
    return f"{entity}-{request.hex}" if entity else request.hex


def parse_ndc(text: str) -> UUID | None:
    """The request id of an ndc (see :func:`format_ndc`), or None."""
    return parse_id(text.rpartition("-")[2])
