"""Wallet 2: tokens ECv1 and ECv2, a JSON object with protocolVersion, signature, signedMessage and, since ECv2, the
intermediateSigningKey.

ECv1 is signed by a root key of the provider, ECv2 by an intermediate key that a root key signed and that expires.
Both encrypt to our key: ECDH, HKDF-SHA-256, AES in counter mode, HMAC-SHA-256 before it.
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

from gateway.wallets.keys import PROTOCOLS, WalletKeys, public_p256
from gateway.wallets.reading import (
    b64,
    cryptogram_of,
    eci_of,
    expiry,
    json_object,
    member,
    moment,
    number_of,
    optional_text,
    text,
    within,
)
from gateway.wallets.token import DecryptedToken, Reason, WalletTokenRefused

SENDER: Final = "Google"
"""Fixed by the format: who signs, and what the keys are derived for."""
MAX_SIGNATURES: Final = 8
KEY_BYTES: Final = {"ECv1": 16, "ECv2": 32}
"""Of each of the two keys: AES and HMAC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A token whose signatures hold, still encrypted. ``recipient``: whom it was made for."""

    protocol: str
    message: str
    recipient: str
    keys: WalletKeys


def decrypt(token: str, keys: Sequence[WalletKeys], *, now: datetime) -> DecryptedToken:
    """Open a token of wallet 2. Raises WalletTokenRefused."""
    sealed = verify(token, keys, now=now)
    plain = open_message(sealed.protocol, sealed.message, keys)
    return _card(json_object(plain, "the decrypted message", Reason.INCOMPLETE), sealed, now=now)


def verify(token: str, keys: Sequence[WalletKeys], *, now: datetime) -> Sealed:
    """Check who signed the token, and for whom. Raises WalletTokenRefused."""
    sent = json_object(token, "the token")
    protocol = text(sent, "protocolVersion")
    if protocol not in PROTOCOLS:
        raise WalletTokenRefused(Reason.UNKNOWN_FORMAT, f"protocolVersion is not one of {', '.join(PROTOCOLS)}")
    message = text(sent, "signedMessage")
    signature = b64(text(sent, "signature"), "signature")
    reason = Reason.UNTRUSTED
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
        for recipient in one.recipients:
            if _signed(signers, [signature], SENDER, recipient, protocol, message):
                return Sealed(protocol=protocol, message=message, recipient=recipient, keys=one)
        if signers:
            reason = Reason.TAMPERED
    raise WalletTokenRefused(reason, "or it was made for another recipient" if reason is Reason.TAMPERED else "")


def _intermediate(
    sent: Mapping[str, Any], protocol: str, roots: Sequence[ec.EllipticCurvePublicKey], now: datetime
) -> ec.EllipticCurvePublicKey | None:
    """The intermediate key, if one of ``roots`` signed it. Raises WalletTokenRefused when it has expired."""
    part = member(sent, "intermediateSigningKey")
    signed_key, found = text(part, "signedKey"), part.get("signatures")
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_SIGNATURES:
        raise WalletTokenRefused(Reason.MALFORMED, "signatures is missing or no list")
    signatures = [b64(one, "signatures") for one in found if isinstance(one, str)]
    if not _signed(roots, signatures, SENDER, protocol, signed_key):
        return None
    facts = json_object(signed_key, "signedKey")
    if moment(facts.get("keyExpiration"), "keyExpiration") <= now:
        raise WalletTokenRefused(Reason.EXPIRED, "its intermediateSigningKey")
    with within(Reason.MALFORMED, "keyValue is no P-256 key"):
        return public_p256(b64(text(facts, "keyValue"), "keyValue"))
    raise AssertionError


def signed_bytes(*parts: str) -> bytes:
    """What is signed: every part with its length before it, four bytes, the least one first."""
    return b"".join(len(octets).to_bytes(4, "little") + octets for octets in (part.encode() for part in parts))


def _signed(keys: Iterable[ec.EllipticCurvePublicKey], signatures: Sequence[bytes], *parts: str) -> bool:
    content = signed_bytes(*parts)
    for key in keys:
        for signature in signatures:
            try:
                key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
            except InvalidSignature:
                continue
            return True
    return False


def open_message(protocol: str, message: str, keys: Sequence[WalletKeys]) -> bytes:
    """Decrypt a signed message with whichever of ``keys`` it was encrypted for. Raises WalletTokenRefused."""
    parts = json_object(message, "signedMessage")
    encrypted = b64(text(parts, "encryptedMessage"), "encryptedMessage")
    ephemeral = b64(text(parts, "ephemeralPublicKey"), "ephemeralPublicKey")
    tag = b64(text(parts, "tag"), "tag")
    with within(Reason.MALFORMED, "ephemeralPublicKey is no point of P-256"):
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), ephemeral)
    for one in keys:
        if not isinstance(one.private, ec.EllipticCurvePrivateKey):
            continue
        cipher_key, mac_key = message_keys(protocol, one.private.exchange(ec.ECDH(), theirs), ephemeral)
        if hmac.compare_digest(hmac.digest(mac_key, encrypted, "sha256"), tag):
            return counter_mode(cipher_key, encrypted)
    raise WalletTokenRefused(Reason.WRONG_KEY)


def message_keys(protocol: str, shared: bytes, ephemeral: bytes) -> tuple[bytes, bytes]:
    """The AES key and the HMAC key out of the agreed secret."""
    size = KEY_BYTES[protocol]
    both = HKDF(hashes.SHA256(), 2 * size, None, SENDER.encode()).derive(ephemeral + shared)
    return both[:size], both[size:]


def counter_mode(key: bytes, octets: bytes) -> bytes:
    """AES-CTR from zero, which is its own inverse. Every message has a key of its own."""
    worker = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return worker.update(octets) + worker.finalize()


def _card(found: Mapping[str, Any], sealed: Sealed, *, now: datetime) -> DecryptedToken:
    until = moment(found.get("messageExpiration"), "messageExpiration", Reason.INCOMPLETE)
    if until <= now:
        raise WalletTokenRefused(Reason.EXPIRED)
    wanted, named = sealed.keys.gateway_merchant, optional_text(found, "gatewayMerchantId")
    if wanted and wanted != named:
        raise WalletTokenRefused(Reason.OTHER_RECIPIENT, "gatewayMerchantId")
    details = member(found, "paymentMethodDetails", Reason.INCOMPLETE)
    # ECv1 told a device's number by its paymentMethod and its method 3DS; ECv2 does by CRYPTOGRAM_3DS.
    method, how = found.get("paymentMethod"), details.get("authMethod")
    proved = how in ("CRYPTOGRAM_3DS", "3DS") or method == "TOKENIZED_CARD"
    if method not in ("CARD", "TOKENIZED_CARD") or not (proved or how == "PAN_ONLY"):
        raise WalletTokenRefused(Reason.UNKNOWN_FORMAT, "authMethod is not one of PAN_ONLY, CRYPTOGRAM_3DS")
    month, year = expiry(details.get("expirationMonth"), details.get("expirationYear"))
    return DecryptedToken(
        number=number_of(details, "pan", "dpan"),
        expiry_month=month,
        expiry_year=year,
        kind="DPAN" if proved else "PAN",
        token_id=optional_text(found, "messageId") or sha256(sealed.message.encode()).hexdigest(),
        until=until,
        cryptogram=cryptogram_of(details, "cryptogram", "3dsCryptogram") if proved else None,
        eci=eci_of(details, "eciIndicator", "3dsEciIndicator") if proved else None,
    )
