"""A wallet's keys: our private key and the public facts that belong to it.

``facts`` is the JSON of a WalletKey row: ``merchantId`` (wallet 1), ``roots`` (wallet 1: certificates, PEM),
``senders`` (wallet 2: root signing keys as their provider publishes them), ``recipients`` (wallet 2: recipientId,
``gateway:…`` or ``merchant:…``), ``gatewayMerchantId`` (wallet 2), ``kid`` (wallet 3).
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
    load_pem_private_key,
)

from gateway.core.secret import Secret

WALLET_NAMES: Final = ("wallet1", "wallet2", "wallet3")
WALLET2_PROTOCOLS: Final = ("ECv1", "ECv2")
MIN_RSA_BITS: Final = 2048
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class UnusableKeyError(ValueError):
    """A key or fact that cannot be used: the text says which and why, without secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RootSigningKey:
    """A root signing key of wallet 2's provider. ``expires``: None for never (ECv1 keys)."""

    protocol: str
    key: ec.EllipticCurvePublicKey
    expires: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WalletKeys:
    """One private key of ours with its facts. ``public``: SubjectPublicKeyInfo, DER. ``merchant``: SHA-256 of the
    merchant identifier (wallet 1, EC). ``kid``: the key's id (wallet 3)."""

    private: PrivateKey = field(repr=False)
    public: bytes
    merchant: bytes = b""
    roots: tuple[x509.Certificate, ...] = ()
    senders: tuple[RootSigningKey, ...] = ()
    recipients: tuple[str, ...] = ()
    gateway_merchant: str = ""
    kid: str = ""

    @property
    def key_hash(self) -> str:
        """Base64 of the SHA-256 of our public key, by which wallets 1 and 3 name the key."""
        return b64encode(sha256(self.public).digest()).decode()


def parse_wallet_keys(wallet: str, private: Secret, facts: Mapping[str, Any], *, check: bool = False) -> WalletKeys:
    """Parse a key and its facts, and check that they are complete for ``wallet``. Raises UnusableKeyError."""
    key = parse_private_key(private, check=check)
    if wallet != "wallet1" and isinstance(key, rsa.RSAPrivateKey) != (wallet == "wallet3"):
        raise UnusableKeyError(f"{wallet} takes {'an RSA' if wallet == 'wallet3' else 'a P-256'} key.")
    read = WalletKeys(
        private=key,
        public=key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        merchant=_merchant(facts.get("merchantId")),
        roots=tuple(_root(pem) for pem in facts.get("roots", ())),
        senders=tuple(_sender(row) for row in facts.get("senders", ())),
        recipients=tuple(str(name) for name in facts.get("recipients", ())),
        gateway_merchant=str(facts.get("gatewayMerchantId", "")),
        kid=str(facts.get("kid", "")),
    )
    for name, wanted, there in (
        ("roots", wallet == "wallet1", read.roots),
        ("merchantId", wallet == "wallet1" and isinstance(key, ec.EllipticCurvePrivateKey), read.merchant),
        ("senders", wallet == "wallet2", read.senders),
        ("recipients", wallet == "wallet2", read.recipients),
    ):
        if wanted and not there:
            raise UnusableKeyError(f"{wallet} needs {name}.")
    return read


def parse_private_key(pem: Secret, *, check: bool) -> PrivateKey:
    """Parse a P-256 or RSA key (2,048 bits or more) from unencrypted PEM. Raises UnusableKeyError.

    ``check``: also verify an RSA key's primes, which is slow: done once, before a key is stored.
    """
    try:
        key = load_pem_private_key(pem.reveal().encode(), None, unsafe_skip_rsa_key_validation=not check)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnusableKeyError("The private key is no unencrypted PEM.") from None
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return key
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size >= MIN_RSA_BITS:
        return key
    raise UnusableKeyError(f"The private key is neither P-256 nor RSA of {MIN_RSA_BITS} bits or more.")


def parse_p256_key(der: bytes) -> ec.EllipticCurvePublicKey:
    """Parse a P-256 key from its SubjectPublicKeyInfo. Raises ValueError or UnsupportedAlgorithm."""
    key = load_der_public_key(der)
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("not a P-256 key")
    return key


def _merchant(value: object) -> bytes:
    """SHA-256 of the merchant identifier; 64 hex digits are one already."""
    if not isinstance(value, str) or not value:
        return b""
    return bytes.fromhex(value) if re.fullmatch("[0-9A-Fa-f]{64}", value) else sha256(value.encode()).digest()


@lru_cache(maxsize=64)
def _root(pem: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except ValueError:
        raise UnusableKeyError("A root is no certificate in PEM.") from None


def _sender(row: Mapping[str, Any]) -> RootSigningKey:
    """Parse a published root signing key: keyValue (base64 DER), protocolVersion, keyExpiration (ms since 1970)."""
    try:
        protocol, ends = str(row["protocolVersion"]), row.get("keyExpiration")
        key = parse_p256_key(b64decode(str(row["keyValue"]), validate=True))
        expires = None if ends is None else datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(ends))
    except (KeyError, ValueError, TypeError, OverflowError, UnsupportedAlgorithm):
        raise UnusableKeyError("A sender's key is not as its provider publishes them.") from None
    if protocol not in WALLET2_PROTOCOLS:
        raise UnusableKeyError(f"A sender's protocolVersion is not one of {', '.join(WALLET2_PROTOCOLS)}.")
    if protocol != "ECv1" and expires is None:
        raise UnusableKeyError("A sender's key of this protocolVersion needs keyExpiration.")
    return RootSigningKey(protocol=protocol, key=key, expires=expires)
