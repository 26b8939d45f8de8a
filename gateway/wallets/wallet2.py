"""Decrypts wallet 2's tokens ECv1 and ECv2: a JSON object with protocolVersion, signature, signedMessage and, since
ECv2, intermediateSigningKey.

ECv1 is signed by a root key of the provider, ECv2 by an intermediate key that a root key signed and that expires. Both
are encrypted to our key: ECDH, HKDF-SHA-256, AES in counter mode, authenticated with HMAC-SHA-256.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from gateway.wallets.keys import WALLET2_PROTOCOLS, WalletKeys, parse_p256_key
from gateway.wallets.strict_parsing import (
    decode_base64,
    parse_expiry,
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

WALLET2_SENDER: Final = "Google"
"""Fixed by the format: the signing party, also an input of the key derivation."""
MAX_TOKEN_SIGNATURES: Final = 8
WALLET2_KEY_BYTES: Final = {"ECv1": 16, "ECv2": 32}
"""Length of each of the two keys: AES and HMAC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedToken:
    """A token with verified signatures, still encrypted."""

    protocol: str
    message: str
    keys: WalletKeys


def decrypt_wallet2(token: str, keys: Sequence[WalletKeys], *, now: datetime) -> DecryptedToken:
    """Decrypt a token of wallet 2. Raises WalletTokenRefusedError."""
    sealed = verify_wallet2(token, keys, now=now)
    plain = decrypt_signed_message(sealed.protocol, sealed.message, keys)
    return _card(parse_json_object(plain, "the decrypted message", TokenRefusalReason.INCOMPLETE), sealed, now=now)


def verify_wallet2(token: str, keys: Sequence[WalletKeys], *, now: datetime) -> SealedToken:
    """Verify the token's signatures and recipient. Raises WalletTokenRefusedError."""
    sent = parse_json_object(token, "the token")
    protocol = read_text(sent, "protocolVersion")
    if protocol not in WALLET2_PROTOCOLS:
        raise WalletTokenRefusedError(
            TokenRefusalReason.UNKNOWN_FORMAT, f"protocolVersion is not one of {', '.join(WALLET2_PROTOCOLS)}"
        )
    message = read_text(sent, "signedMessage")
    signature = decode_base64(read_text(sent, "signature"), "signature")
    reason = TokenRefusalReason.UNTRUSTED
    for one in keys:
        roots = [
            sender.key
            for sender in one.senders
            if sender.protocol == protocol and (sender.expires is None or sender.expires > now)
        ]
        if protocol == "ECv1":
            signers = roots
        elif (signer := _intermediate(sent, protocol, roots, now)) is not None:
            signers = [signer]
        else:
            continue
        if any(_signed(signers, [signature], WALLET2_SENDER, each, protocol, message) for each in one.recipients):
            return SealedToken(protocol=protocol, message=message, keys=one)
        if signers:
            reason = TokenRefusalReason.TAMPERED
    raise WalletTokenRefusedError(
        reason, "or it was made for another recipient" if reason is TokenRefusalReason.TAMPERED else ""
    )


def _intermediate(
    sent: Mapping[str, Any], protocol: str, roots: Sequence[ec.EllipticCurvePublicKey], now: datetime
) -> ec.EllipticCurvePublicKey | None:
    """The intermediate key, if one of ``roots`` signed it. Raises WalletTokenRefusedError if it has expired."""
    part = read_member(sent, "intermediateSigningKey")
    signed_key, found = read_text(part, "signedKey"), part.get("signatures")
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_TOKEN_SIGNATURES:
        raise WalletTokenRefusedError(TokenRefusalReason.MALFORMED, "signatures is missing or no list")
    signatures = [decode_base64(one, "signatures") for one in found if isinstance(one, str)]
    if not _signed(roots, signatures, WALLET2_SENDER, protocol, signed_key):
        return None
    facts = parse_json_object(signed_key, "signedKey")
    if parse_moment(facts.get("keyExpiration"), "keyExpiration") <= now:
        raise WalletTokenRefusedError(TokenRefusalReason.EXPIRED, "its intermediateSigningKey")
    with refuse_parse_errors(TokenRefusalReason.MALFORMED, "keyValue is no P-256 key"):
        return parse_p256_key(decode_base64(read_text(facts, "keyValue"), "keyValue"))
    raise AssertionError


def build_signed_bytes(*parts: str) -> bytes:
    """The signed bytes: every part after its length (four bytes, little-endian)."""
    return b"".join(len(octets).to_bytes(4, "little") + octets for octets in (part.encode() for part in parts))


def _signed(keys: Iterable[ec.EllipticCurvePublicKey], signatures: Sequence[bytes], *parts: str) -> bool:
    content = build_signed_bytes(*parts)
    for key in keys:
        for signature in signatures:
            try:
                key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
            except InvalidSignature:
                continue
            return True
    return False


def decrypt_signed_message(protocol: str, message: str, keys: Sequence[WalletKeys]) -> bytes:
    """Decrypt a signed message with the one of ``keys`` that it was encrypted for. Raises WalletTokenRefusedError."""
    parts = parse_json_object(message, "signedMessage")
    encrypted = decode_base64(read_text(parts, "encryptedMessage"), "encryptedMessage")
    ephemeral = decode_base64(read_text(parts, "ephemeralPublicKey"), "ephemeralPublicKey")
    tag = decode_base64(read_text(parts, "tag"), "tag")
    with refuse_parse_errors(TokenRefusalReason.MALFORMED, "ephemeralPublicKey is no point of P-256"):
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), ephemeral)
    for one in keys:
        if not isinstance(one.private, ec.EllipticCurvePrivateKey):
            continue
        cipher_key, mac_key = derive_message_keys(protocol, one.private.exchange(ec.ECDH(), theirs), ephemeral)
        if hmac.compare_digest(hmac.digest(mac_key, encrypted, "sha256"), tag):
            return apply_aes_ctr(cipher_key, encrypted)
    raise WalletTokenRefusedError(TokenRefusalReason.WRONG_KEY)


def derive_message_keys(protocol: str, shared: bytes, ephemeral: bytes) -> tuple[bytes, bytes]:
    """Derive the AES key and the HMAC key from the shared secret."""
    size = WALLET2_KEY_BYTES[protocol]
    both = HKDF(hashes.SHA256(), 2 * size, None, WALLET2_SENDER.encode()).derive(ephemeral + shared)
    return both[:size], both[size:]


def apply_aes_ctr(key: bytes, octets: bytes) -> bytes:
    """AES-CTR from counter zero, its own inverse. Every message has its own key."""
    worker = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return worker.update(octets) + worker.finalize()


def _card(found: Mapping[str, Any], sealed: SealedToken, *, now: datetime) -> DecryptedToken:
    until = parse_moment(found.get("messageExpiration"), "messageExpiration", TokenRefusalReason.INCOMPLETE)
    if until <= now:
        raise WalletTokenRefusedError(TokenRefusalReason.EXPIRED)
    wanted, named = sealed.keys.gateway_merchant, read_optional_text(found, "gatewayMerchantId")
    if wanted and wanted != named:
        raise WalletTokenRefusedError(TokenRefusalReason.OTHER_RECIPIENT, "gatewayMerchantId")
    details = read_member(found, "paymentMethodDetails", TokenRefusalReason.INCOMPLETE)
    # ECv1 marks a device number by paymentMethod and the method 3DS, ECv2 by CRYPTOGRAM_3DS.
    method, how = found.get("paymentMethod"), details.get("authMethod")
    proved = how in ("CRYPTOGRAM_3DS", "3DS") or method == "TOKENIZED_CARD"
    if method not in ("CARD", "TOKENIZED_CARD") or not (proved or how == "PAN_ONLY"):
        raise WalletTokenRefusedError(
            TokenRefusalReason.UNKNOWN_FORMAT, "authMethod is not one of PAN_ONLY, CRYPTOGRAM_3DS"
        )
    month, year = parse_expiry(details.get("expirationMonth"), details.get("expirationYear"))
    return DecryptedToken(
        number=read_account_number(details, "pan", "dpan"),
        expiry_month=month,
        expiry_year=year,
        kind="DPAN" if proved else "PAN",
        token_id=read_optional_text(found, "messageId") or sha256(sealed.message.encode()).hexdigest(),
        until=until,
        cryptogram=read_cryptogram(details, "cryptogram", "3dsCryptogram") if proved else None,
        eci=read_eci(details, "eciIndicator", "3dsEciIndicator") if proved else None,
    )
