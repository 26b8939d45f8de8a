"""Decrypts wallet 3's tokens: a compact JWE (RFC 7516) for our RSA key, alone or as ``data`` of the wallet's 3DS
object.

The token is not signed: anyone with our public key can make one. The shopper's proof is the cryptogram, which the
card's issuer verifies; so a token without one is refused, and so is one whose ``utc`` is not recent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import rsa
from jwcrypto import jwe, jwk
from jwcrypto.common import JWException, base64url_decode, base64url_encode

from gateway.wallets.keys import WalletKeys
from gateway.wallets.strict_parsing import (
    check_freshness,
    money_from_minor_units,
    parse_expiry,
    parse_holder,
    parse_json_object,
    parse_moment,
    read_account_number,
    read_cryptogram,
    read_eci,
    read_member,
    read_optional_text,
    read_text,
    refuse_parse_errors,
)
from gateway.wallets.token import DecryptedToken, TokenRefusalReason, WalletTokenRefusedError

KEY_ALGORITHMS: Final = ("RSA1_5", "RSA-OAEP", "RSA-OAEP-256")
CONTENT_ALGORITHMS: Final = ("A128GCM", "A256GCM")
_HEADER_NAMES: Final = frozenset({"alg", "enc", "kid", "typ", "cty", "channelSecurityContext"})
_COMPACT: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+){4}")


def decrypt_wallet3(token: str, keys: Sequence[WalletKeys], *, now: datetime) -> DecryptedToken:
    """Decrypt a token of wallet 3. Raises WalletTokenRefusedError."""
    plain = decrypt_compact_jwe(extract_compact_jwe(token), keys)
    return _card(parse_json_object(plain, "the decrypted data", TokenRefusalReason.INCOMPLETE), now=now)


def extract_compact_jwe(token: str) -> str:
    """The compact JWE: the token itself, or ``data`` of a 3DS object or of an object that has one under ``3DS``."""
    found = token.strip()
    if found.startswith("{"):
        sent = parse_json_object(found, "the token")
        found = read_text(read_member(sent, "3DS") if "3DS" in sent else sent, "data")
    if not _COMPACT.fullmatch(found):
        raise WalletTokenRefusedError(TokenRefusalReason.MALFORMED, "it is no compact JWE of five parts")
    with refuse_parse_errors(TokenRefusalReason.MALFORMED, "a part is no base64url"):
        if any(base64url_encode(base64url_decode(part)) != part for part in found.split(".")):
            raise ValueError("another spelling")
    return found


def decrypt_compact_jwe(compact: str, keys: Sequence[WalletKeys]) -> bytes:
    """Decrypt with the one of ``keys`` that it was encrypted for. Raises WalletTokenRefusedError."""
    with refuse_parse_errors(TokenRefusalReason.MALFORMED, "a part is no base64url"):
        header = parse_json_object(base64url_decode(compact.split(".")[0]), "the header")
    algorithm, content = read_text(header, "alg"), read_text(header, "enc")
    if algorithm not in KEY_ALGORITHMS or content not in CONTENT_ALGORITHMS:
        offered = f"{', '.join(KEY_ALGORITHMS)} with {', '.join(CONTENT_ALGORITHMS)} are"
        raise WalletTokenRefusedError(TokenRefusalReason.UNKNOWN_FORMAT, f"alg and enc: {offered}")
    if unknown := sorted(set(header) - _HEADER_NAMES):
        raise WalletTokenRefusedError(
            TokenRefusalReason.UNKNOWN_FORMAT, f"the header has {len(unknown)} names that are not offered"
        )
    kid = read_optional_text(header, "kid")
    mine = [one for one in keys if not kid or kid in (one.kid, one.key_hash)]
    if not mine:
        raise WalletTokenRefusedError(TokenRefusalReason.WRONG_KEY, "kid")
    for one in mine:
        if isinstance(one.private, rsa.RSAPrivateKey) and (plain := _opened(compact, one.private)) is not None:
            return plain
    raise WalletTokenRefusedError(TokenRefusalReason.UNDECIPHERABLE)


def _opened(compact: str, private: rsa.RSAPrivateKey) -> bytes | None:
    """The contents; None if they cannot be decrypted. RSA1_5 answers wrong padding with a random key (RFC 7516, 11.5),
    so that the failure reveals nothing."""
    box = jwe.JWE(algs=[*KEY_ALGORITHMS, *CONTENT_ALGORITHMS])
    key = jwk.JWK()
    key.import_from_pyca(private)
    try:
        with refuse_parse_errors(TokenRefusalReason.UNDECIPHERABLE):
            box.deserialize(compact)
            box.decrypt(key)
    except JWException:
        return None
    plain: bytes = box.payload
    return plain


def _card(found: Mapping[str, Any], *, now: datetime) -> DecryptedToken:
    utc = found.get("utc")
    until = check_freshness(parse_moment(utc, "utc", TokenRefusalReason.INCOMPLETE), now)
    ends = read_text(found, "tokenPanExpiration", TokenRefusalReason.INCOMPLETE)
    if len(ends) != 4:
        raise WalletTokenRefusedError(TokenRefusalReason.INCOMPLETE, "its expiry")
    month, year = parse_expiry(ends[:2], ends[2:])
    number, cryptogram = read_account_number(found, "tokenPAN"), read_cryptogram(found, "cryptogram")
    currency = read_optional_text(found, "currency_code")
    return DecryptedToken(
        number=number,
        expiry_month=month,
        expiry_year=year,
        kind="DPAN",
        # The cryptogram identifies the token: anyone who knows the contents can encrypt them again.
        token_id=sha256(f"{number.reveal()}:{cryptogram.reveal()}:{utc}".encode()).hexdigest(),
        until=until,
        holder=parse_holder(read_optional_text(found, "cardholder_name")),
        cryptogram=cryptogram,
        eci=read_eci(found, "eci_indicator"),
        money=money_from_minor_units(found.get("amount"), currency or None),
    )
