"""Decrypts wallet 1's tokens EC_v1 and RSA_v1: a JSON object with data, signature, header and version.

The publisher's steps: verify the detached signature over key, data, transactionId and applicationData with its chain
and time; find our key by publicKeyHash; derive the data key; decrypt with AES-GCM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import iso4217
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash

from gateway.wallets import cms
from gateway.wallets.keys import WalletKeys, parse_p256_key
from gateway.wallets.strict_parsing import (
    check_freshness,
    decode_base64,
    decode_hexadecimal,
    money_from_minor_units,
    parse_expiry,
    parse_holder,
    parse_json_object,
    read_account_number,
    read_cryptogram,
    read_eci,
    read_member,
    read_optional_text,
    read_text,
    refuse_parse_errors,
)
from gateway.wallets.token import DecryptedToken, TokenRefusalReason, WalletTokenRefusedError

WALLET1_NONCE: Final = bytes(16)
"""Fixed by the format: every token has its own key."""
# Fixed by the format as well: algorithm name with its length, and the party that made the token.
_ALGORITHM: Final = b"\x0did-aes256-GCM"
_PARTY_U: Final = b"Apple"
_RSA_DATA_KEY_BYTES: Final = 16
_KEY_FIELD: Final = {"EC_v1": "ephemeralPublicKey", "RSA_v1": "wrappedKey"}

_CURRENCY: Final[Mapping[str, str]] = {
    f"{int(currency.number):03}": currency.code for currency in iso4217.Currency if currency.number is not None
}
"""ISO 4217's three digits → its three letters."""


def decrypt_wallet1(token: str, keys: Sequence[WalletKeys], *, now: datetime) -> DecryptedToken:
    """Decrypt a token of wallet 1. Raises WalletTokenRefusedError."""
    sent = parse_json_object(token, "the token")
    # Merchants may send the whole payment object; the token is its paymentData.
    if "paymentData" in sent and "version" not in sent:
        sent = read_member(sent, "paymentData")
    version = read_text(sent, "version")
    if version not in _KEY_FIELD:
        raise WalletTokenRefusedError(TokenRefusalReason.UNKNOWN_FORMAT, "version is not one of EC_v1, RSA_v1")
    header = read_member(sent, "header")
    data = decode_base64(read_text(sent, "data"), "data")
    wrapped = decode_base64(read_text(header, _KEY_FIELD[version]), _KEY_FIELD[version])
    transaction = decode_hexadecimal(read_text(header, "transactionId"), "transactionId")
    application = read_optional_text(header, "applicationData")
    content = (
        wrapped + data + transaction + (decode_hexadecimal(application, "applicationData") if application else b"")
    )
    mine = _named(keys, read_text(header, "publicKeyHash"))
    signed_at = cms.verify_cms_signature(decode_base64(read_text(sent, "signature"), "signature"), content, mine.roots)
    until = check_freshness(signed_at, now)
    plain = _plain(data, _data_keys(version, wrapped, mine))
    return _card(
        parse_json_object(plain, "the decrypted data", TokenRefusalReason.INCOMPLETE), transaction.hex(), until
    )


def _named(keys: Sequence[WalletKeys], key_hash: str) -> WalletKeys:
    for one in keys:
        if one.key_hash == key_hash:
            return one
    raise WalletTokenRefusedError(TokenRefusalReason.WRONG_KEY, "publicKeyHash")


def _data_keys(version: str, wrapped: bytes, mine: WalletKeys) -> list[bytes]:
    """Candidate keys of the encrypted data."""
    if version == "EC_v1" and isinstance(mine.private, ec.EllipticCurvePrivateKey):
        with refuse_parse_errors(TokenRefusalReason.MALFORMED, "ephemeralPublicKey is no P-256 key"):
            theirs = parse_p256_key(wrapped)
        return [derive_data_key(mine.private.exchange(ec.ECDH(), theirs), mine.merchant)]
    if version == "RSA_v1" and isinstance(mine.private, rsa.RSAPrivateKey):
        return [key for key in _unwrapped(wrapped, mine.private) if len(key) == _RSA_DATA_KEY_BYTES]
    raise WalletTokenRefusedError(TokenRefusalReason.WRONG_KEY, f"it is not of the kind that {version} needs")


def derive_data_key(shared: bytes, merchant: bytes) -> bytes:
    """Derive the AES-256 key from the shared secret (NIST SP 800-56A, 5.8.1). ``merchant``: SHA-256 of the
    identifier."""
    return ConcatKDFHash(hashes.SHA256(), 32, _ALGORITHM + _PARTY_U + merchant).derive(shared)


def _unwrapped(wrapped: bytes, private: rsa.RSAPrivateKey) -> list[bytes]:
    """Unwrap the data key. The format names OAEP with SHA-256 and MGF1, of which libraries derive MGF1's hash in two
    ways."""
    found = []
    for mask in (hashes.SHA256(), hashes.SHA1()):  # noqa: S303 - MGF1 needs no collision resistance
        try:
            found.append(private.decrypt(wrapped, padding.OAEP(padding.MGF1(mask), hashes.SHA256(), None)))
        except ValueError:
            continue
    return found


def _plain(data: bytes, keys: Sequence[bytes]) -> bytes:
    for key in keys:
        try:
            return AESGCM(key).decrypt(WALLET1_NONCE, data, None)
        except (InvalidTag, ValueError):
            continue
    raise WalletTokenRefusedError(TokenRefusalReason.UNDECIPHERABLE)


def _card(found: Mapping[str, Any], transaction: str, until: datetime) -> DecryptedToken:
    if found.get("paymentDataType") != "3DSecure":
        raise WalletTokenRefusedError(TokenRefusalReason.INCOMPLETE, "paymentDataType is not 3DSecure")
    ends = read_text(found, "applicationExpirationDate", TokenRefusalReason.INCOMPLETE)
    if len(ends) != 6:
        raise WalletTokenRefusedError(TokenRefusalReason.INCOMPLETE, "its expiry")
    month, year = parse_expiry(ends[2:4], ends[:2])
    proof = read_member(found, "paymentData", TokenRefusalReason.INCOMPLETE)
    return DecryptedToken(
        number=read_account_number(found, "applicationPrimaryAccountNumber"),
        expiry_month=month,
        expiry_year=year,
        kind="DPAN",
        token_id=transaction,
        until=until,
        holder=parse_holder(read_optional_text(found, "cardholderName")),
        cryptogram=read_cryptogram(proof, "onlinePaymentCryptogram"),
        eci=read_eci(proof, "eciIndicator"),
        money=money_from_minor_units(
            found.get("transactionAmount"), _CURRENCY.get(str(found.get("currencyCode")).zfill(3))
        ),
    )
