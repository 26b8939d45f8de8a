"""Strict parsing of untrusted tokens: limited JSON, canonical base64, numbers within their ranges.

Everything here raises WalletTokenRefusedError only; ``refuse_parse_errors`` converts any other library error.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NoReturn

import structlog

from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.wallets.token import (
    MAX_TOKEN_AGE,
    MAX_TOKEN_CHARS,
    MAX_TOKEN_CLOCK_SKEW,
    MAX_YEAR,
    TokenRefusalReason,
    WalletTokenRefusedError,
)

MAX_BRACKETS: Final = 64
"""Opening brackets in one JSON text, which also limits its depth."""
log = structlog.get_logger(__name__)

_NUMBER: Final = re.compile("[0-9]{12,19}")
_CRYPTOGRAM: Final = re.compile("[A-Za-z0-9+/=_-]{16,88}")
_MILLISECONDS: Final = re.compile("[0-9]{1,15}")
_LATEST: Final = datetime(MAX_YEAR, 12, 31, tzinfo=UTC)


@contextmanager
def refuse_parse_errors(reason: TokenRefusalReason, detail: str = "") -> Iterator[None]:
    """Convert any parser exception into a refusal with ``reason``."""
    try:
        yield
    except WalletTokenRefusedError:
        raise
    except Exception as fault:
        log.info("wallet_token_unreadable", reason=reason.name, detail=detail, fault=type(fault).__name__)
        raise WalletTokenRefusedError(reason, detail) from None


def parse_json_object(
    text: str | bytes, detail: str, reason: TokenRefusalReason = TokenRefusalReason.MALFORMED
) -> Mapping[str, Any]:
    """Parse a JSON object: at most MAX_TOKEN_CHARS characters and MAX_BRACKETS brackets, no duplicate names, no NaN."""
    with refuse_parse_errors(reason, f"{detail} is no JSON object"):
        plain = text.decode() if isinstance(text, bytes) else text
        if len(plain) > MAX_TOKEN_CHARS or plain.count("{") + plain.count("[") > MAX_BRACKETS:
            raise ValueError("too large")
        found = json.loads(plain, object_pairs_hook=_once, parse_constant=_no_constant)
        if not isinstance(found, dict):
            raise ValueError("no object")
        return found
    raise AssertionError  # refuse_parse_errors() either returned or raised


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def read_member(
    values: Mapping[str, Any], name: str, reason: TokenRefusalReason = TokenRefusalReason.MALFORMED
) -> Mapping[str, Any]:
    """The object under ``name``."""
    found = values.get(name)
    if not isinstance(found, dict):
        raise WalletTokenRefusedError(reason, f"{name} is missing or no object")
    return found


def read_text(values: Mapping[str, Any], name: str, reason: TokenRefusalReason = TokenRefusalReason.MALFORMED) -> str:
    """The text under ``name``: not empty, encodable in UTF-8."""
    found = values.get(name)
    if not isinstance(found, str) or not found or not _encodable(found):
        raise WalletTokenRefusedError(reason, f"{name} is missing or no text")
    return found


def read_optional_text(values: Mapping[str, Any], name: str) -> str:
    """The text under ``name``; '' if it is absent or not a text."""
    found = values.get(name)
    return found if isinstance(found, str) and _encodable(found) else ""


def _encodable(value: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in value)


def decode_base64(value: str, detail: str) -> bytes:
    """Decode base64 with padding, in its canonical spelling."""
    with refuse_parse_errors(TokenRefusalReason.MALFORMED, f"{detail} is no base64"):
        octets = base64.b64decode(value.encode("ascii"), validate=True)
        if base64.b64encode(octets).decode() == value:
            return octets
        raise binascii.Error("another spelling")
    raise AssertionError


def decode_hexadecimal(value: str, detail: str) -> bytes:
    """Decode hexadecimal digits."""
    with refuse_parse_errors(TokenRefusalReason.MALFORMED, f"{detail} is no hexadecimal text"):
        if not re.fullmatch("(?:[0-9A-Fa-f]{2})+", value):
            raise ValueError(value)
        return bytes.fromhex(value)
    raise AssertionError


def read_account_number(values: Mapping[str, Any], *names: str) -> Secret:
    """The card or device number under the first of ``names`` that is present: 12 to 19 digits."""
    for name in names:
        if name in values:
            found = values[name]
            if isinstance(found, str) and _NUMBER.fullmatch(found):
                return Secret(found)
            break
    raise WalletTokenRefusedError(TokenRefusalReason.INCOMPLETE, "its card number")


def read_cryptogram(values: Mapping[str, Any], *names: str) -> Secret:
    """The cryptogram under the first of ``names`` that is present."""
    for name in names:
        found = values.get(name)
        if isinstance(found, str) and _CRYPTOGRAM.fullmatch(found):
            return Secret(found)
    raise WalletTokenRefusedError(TokenRefusalReason.INCOMPLETE, "its cryptogram")


def read_eci(values: Mapping[str, Any], *names: str) -> str | None:
    """The ECI under the first of ``names`` that is present, as two digits; some wallets write one."""
    for name in names:
        found = values.get(name)
        if isinstance(found, str) and re.fullmatch("[0-9]{1,2}", found):
            return found.zfill(2)
    return None


def parse_expiry(month: object, year: object) -> tuple[str, str]:
    """``MM`` and ``YYYY`` from numbers or digits; a two-digit year is of this century."""
    months, years = (str(part) if isinstance(part, int | str) else "" for part in (month, year))
    if re.fullmatch("[0-9]{2}", years):
        years = f"20{years}"
    if re.fullmatch("0?[1-9]|1[0-2]", months) and re.fullmatch("20[0-9]{2}", years):
        return months.zfill(2), years
    raise WalletTokenRefusedError(TokenRefusalReason.INCOMPLETE, "its expiry")


def parse_holder(value: str) -> str:
    """The holder's name if it is 3 to 128 characters long, else ''."""
    name = " ".join(value.split())
    return name if 3 <= len(name) <= 128 and name.isprintable() else ""


def money_from_minor_units(units: object, currency: str | None) -> Money:
    """An amount from minor units, a number or digits."""
    with refuse_parse_errors(TokenRefusalReason.INCOMPLETE, "its amount"):
        digits = str(units) if isinstance(units, int | str) and not isinstance(units, bool) else ""
        if currency is None or not re.fullmatch("[0-9]{1,12}", digits):
            raise ValueError("no amount")
        return Money.from_minor_units(int(digits), currency)
    raise AssertionError


def parse_moment(value: object, detail: str, reason: TokenRefusalReason = TokenRefusalReason.MALFORMED) -> datetime:
    """A time from milliseconds since 1970, a number or digits; beyond the calendar's range, its end."""
    digits = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not _MILLISECONDS.fullmatch(digits):
        raise WalletTokenRefusedError(reason, f"{detail} is missing or no time")
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(digits))
    except OverflowError:
        return _LATEST


def check_freshness(made: datetime, now: datetime) -> datetime:
    """The time until which a token made at ``made`` is accepted. Raises WalletTokenRefusedError if it is expired or too
    far in the future."""
    if made > now + MAX_TOKEN_CLOCK_SKEW:
        raise WalletTokenRefusedError(TokenRefusalReason.FROM_THE_FUTURE)
    if now - made > MAX_TOKEN_AGE:
        raise WalletTokenRefusedError(TokenRefusalReason.EXPIRED)
    return made + MAX_TOKEN_AGE
