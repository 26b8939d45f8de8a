"""Generates keys and tokens for tests: plays the wallet and its provider with keys of our own.

Nobody else trusts a generated key; it exists in the test environment only, and its tokens open only there.
"""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

import iso4217
from asn1crypto import algos, core
from asn1crypto import cms as asn1
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID
from jwcrypto import jwe, jwk

from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.wallets import cms, wallet1, wallet2
from gateway.wallets.formats import WALLET_FORMATS
from gateway.wallets.keys import PrivateKey, WalletKeys

SAMPLE_MERCHANT_ID: Final = "merchant.example.tollhouse"
SAMPLE_RECIPIENT: Final = "gateway:tollhouse"
SAMPLE_GATEWAY_MERCHANT_ID: Final = "tollhouse-test"
GENERATED_KEY_LIFETIME: Final = timedelta(days=3650)
SAMPLE_TOKEN_LIFETIME: Final = timedelta(days=7)
_LONG_AGO: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedKey:
    """A generated key: our private key, the key that signs tokens for it, and its facts."""

    private: Secret
    maker: Secret
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentSheet:
    """What the shopper confirmed on the device. ``card_only``: a token with the card's own number and no cryptogram
    (wallet 2)."""

    number: Secret
    money: Money
    expiry_month: str = "12"
    expiry_year: str = "2030"
    holder: str = "Jane Jones"
    card_only: bool = False
    eci: str = "05"
    cryptogram: Secret = field(default_factory=lambda: Secret(b64encode(secrets.token_bytes(20)).decode()))


def generate_wallet_key(form: str, *, now: datetime) -> GeneratedKey:
    """Generate our key and the provider's for one of the WALLET_FORMATS. The fact ``makes`` names the formats whose
    tokens can be built with it."""
    wallet = next(wallet for wallet, forms in WALLET_FORMATS.items() if form in forms)
    private: PrivateKey
    if form in ("rsa_v1", "jwe"):
        private = rsa.generate_private_key(65537, 2048)
    else:
        private = ec.generate_private_key(ec.SECP256R1())
    maker = ec.generate_private_key(ec.SECP256R1())
    facts: dict[str, Any] = {"makes": list(WALLET_FORMATS[wallet]) if wallet != "wallet1" else [form]}
    if wallet == "wallet1":
        root = _certificate("Tollhouse test root", maker, "Tollhouse test root", maker, now=now, authority=True)
        facts |= {"merchantId": SAMPLE_MERCHANT_ID, "roots": [root.public_bytes(Encoding.PEM).decode()]}
    elif wallet == "wallet2":
        key, ends = b64encode(_spki(maker)).decode(), _ms(now + GENERATED_KEY_LIFETIME)
        senders = [
            {"keyValue": key, "protocolVersion": "ECv1"},
            {"keyValue": key, "protocolVersion": "ECv2", "keyExpiration": ends},
        ]
        facts |= {"recipients": [SAMPLE_RECIPIENT], "gatewayMerchantId": SAMPLE_GATEWAY_MERCHANT_ID, "senders": senders}
    return GeneratedKey(private=_pem(private), maker=_pem(maker), facts=facts)


def build_wallet_token(
    form: str, sheet: PaymentSheet, keys: WalletKeys, maker: Secret, *, now: datetime, expired: bool = False
) -> str:
    """Build a token in one of the WALLET_FORMATS. ``expired``: valid and signed, but a day too old."""
    signer = load_pem_private_key(maker.reveal().encode(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    return _MAKERS[form](form, sheet, keys, signer, now - _LONG_AGO if expired else now, expired)


def tamper_token(token: str) -> str:
    """The token with one character of its encrypted part changed."""
    for name in ('"data":"', 'encryptedMessage\\":\\"'):
        if (at := token.find(name)) >= 0:
            place = at + len(name) + 8
            break
    else:
        place = token.rfind(".", 0, token.rfind(".")) + 9
    return f"{token[:place]}{'A' if token[place] != 'A' else 'B'}{token[place + 1 :]}"


def _wallet1(
    form: str, sheet: PaymentSheet, keys: WalletKeys, root: ec.EllipticCurvePrivateKey, now: datetime, _expired: bool
) -> str:
    plain = json.dumps(
        {
            "applicationPrimaryAccountNumber": sheet.number.reveal(),
            "applicationExpirationDate": f"{sheet.expiry_year[2:]}{sheet.expiry_month}28",
            "currencyCode": f"{int(iso4217.Currency(sheet.money.currency).number):03}",
            "transactionAmount": sheet.money.minor_units(),
            "cardholderName": sheet.holder,
            "deviceManufacturerIdentifier": "000000000000",
            "paymentDataType": "3DSecure",
            "paymentData": {"onlinePaymentCryptogram": sheet.cryptogram.reveal(), "eciIndicator": sheet.eci},
        }
    ).encode()
    header: dict[str, str] = {"publicKeyHash": keys.key_hash, "transactionId": secrets.token_hex(32)}
    if form == "ec_v1":
        own = ec.generate_private_key(ec.SECP256R1())
        wrapped, name = _spki(own), "ephemeralPublicKey"
        data_key = wallet1.derive_data_key(own.exchange(ec.ECDH(), _ec_public(keys)), keys.merchant)
    else:
        assert isinstance(keys.private, rsa.RSAPrivateKey)
        data_key, name = secrets.token_bytes(16), "wrappedKey"
        oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
        wrapped = keys.private.public_key().encrypt(data_key, oaep)
    header[name] = b64encode(wrapped).decode()
    data = AESGCM(data_key).encrypt(wallet1.WALLET1_NONCE, plain, None)
    content = wrapped + data + bytes.fromhex(header["transactionId"])
    signature = _signature(content, root, of_rsa=form == "rsa_v1", now=now)
    version = {"ec_v1": "EC_v1", "rsa_v1": "RSA_v1"}[form]
    return _compact(
        {
            "version": version,
            "data": b64encode(data).decode(),
            "signature": b64encode(signature).decode(),
            "header": header,
        }
    )


def _signature(content: bytes, root: ec.EllipticCurvePrivateKey, *, of_rsa: bool, now: datetime) -> bytes:
    """A detached signature of ``content``, with a signer and an intermediate generated for this token."""
    middle = ec.generate_private_key(ec.SECP256R1())
    signer: PrivateKey = rsa.generate_private_key(65537, 2048) if of_rsa else ec.generate_private_key(ec.SECP256R1())
    top, inner, leaf = (f"Tollhouse test {name}" for name in ("root", "intermediate", "signer"))
    authority = _certificate(inner, middle, top, root, now=now, authority=True, marker=cms.INTERMEDIATE_MARKER)
    certificate = _certificate(leaf, signer, inner, middle, now=now, marker=cms.SIGNER_MARKER)
    return _signed_at(content, certificate, signer, authority, now)


def _signed_at(
    content: bytes, certificate: x509.Certificate, signer: PrivateKey, authority: x509.Certificate, now: datetime
) -> bytes:
    def own(one: x509.Certificate) -> asn1.CertificateChoices:
        read = asn1_x509.Certificate.load(one.public_bytes(Encoding.DER))
        return asn1.CertificateChoices({"certificate": read})

    attributes = asn1.CMSAttributes(
        [
            asn1.CMSAttribute({"type": "content_type", "values": ["data"]}),
            asn1.CMSAttribute({"type": "signing_time", "values": [asn1.Time({"utc_time": core.UTCTime(now)})]}),
            asn1.CMSAttribute({"type": "message_digest", "values": [sha256(content).digest()]}),
        ]
    )
    if isinstance(signer, rsa.RSAPrivateKey):
        value, algorithm = signer.sign(attributes.dump(), padding.PKCS1v15(), hashes.SHA256()), "sha256_rsa"
    else:
        value, algorithm = signer.sign(attributes.dump(), ec.ECDSA(hashes.SHA256())), "sha256_ecdsa"
    digest = algos.DigestAlgorithm({"algorithm": "sha256"})
    leaf = own(certificate).chosen
    name = asn1.IssuerAndSerialNumber({"issuer": leaf.issuer, "serial_number": leaf.serial_number})
    info = asn1.SignerInfo(
        {
            "version": "v1",
            "sid": asn1.SignerIdentifier({"issuer_and_serial_number": name}),
            "digest_algorithm": digest,
            "signed_attrs": attributes,
            "signature_algorithm": {"algorithm": algorithm},
            "signature": value,
        }
    )
    signed = asn1.SignedData(
        {
            "version": "v1",
            "digest_algorithms": [digest],
            "encap_content_info": {"content_type": "data"},
            "certificates": [own(certificate), own(authority)],
            "signer_infos": [info],
        }
    )
    octets: bytes = asn1.ContentInfo({"content_type": "signed_data", "content": signed}).dump()
    return octets


def _wallet2(
    form: str, sheet: PaymentSheet, keys: WalletKeys, root: ec.EllipticCurvePrivateKey, now: datetime, expired: bool
) -> str:
    protocol = {"ecv1": "ECv1", "ecv2": "ECv2"}[form]
    details: dict[str, Any] = {
        "pan": sheet.number.reveal(),
        "expirationMonth": int(sheet.expiry_month),
        "expirationYear": int(sheet.expiry_year),
        "authMethod": "PAN_ONLY",
    }
    if not sheet.card_only:
        details |= {"authMethod": "CRYPTOGRAM_3DS", "cryptogram": sheet.cryptogram.reveal(), "eciIndicator": sheet.eci}
    ends = now if expired else now + SAMPLE_TOKEN_LIFETIME
    plain = json.dumps(
        {
            "messageExpiration": _ms(ends),
            "messageId": secrets.token_urlsafe(48),
            "gatewayMerchantId": keys.gateway_merchant,
            "paymentMethod": "CARD",
            "paymentMethodDetails": details,
        }
    ).encode()
    own = ec.generate_private_key(ec.SECP256R1())
    point = own.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    cipher_key, mac_key = wallet2.derive_message_keys(protocol, own.exchange(ec.ECDH(), _ec_public(keys)), point)
    encrypted = wallet2.apply_aes_ctr(cipher_key, plain)
    mac = hmac.HMAC(mac_key, hashes.SHA256())
    mac.update(encrypted)
    parts = {"encryptedMessage": encrypted, "ephemeralPublicKey": point, "tag": mac.finalize()}
    message = _compact({name: b64encode(octets).decode() for name, octets in parts.items()})
    token: dict[str, Any] = {"protocolVersion": protocol, "signedMessage": message}
    signer = root
    if protocol == "ECv2":
        signer = ec.generate_private_key(ec.SECP256R1())
        valid = {"keyValue": b64encode(_spki(signer)).decode(), "keyExpiration": _ms(now + 2 * SAMPLE_TOKEN_LIFETIME)}
        signed_key = _compact(valid)
        vouched = _ecdsa(root, wallet2.WALLET2_SENDER, protocol, signed_key)
        token["intermediateSigningKey"] = {"signedKey": signed_key, "signatures": [vouched]}
    token["signature"] = _ecdsa(signer, wallet2.WALLET2_SENDER, keys.recipients[0], protocol, message)
    return _compact(token)


def _wallet3(
    _form: str, sheet: PaymentSheet, keys: WalletKeys, _root: ec.EllipticCurvePrivateKey, now: datetime, _expired: bool
) -> str:
    assert isinstance(keys.private, rsa.RSAPrivateKey)
    plain = json.dumps(
        {
            "amount": str(sheet.money.minor_units()),
            "currency_code": sheet.money.currency,
            "utc": _ms(now),
            "eci_indicator": sheet.eci,
            "tokenPAN": sheet.number.reveal(),
            "cardholder_name": sheet.holder,
            "tokenPanExpiration": f"{sheet.expiry_month}{sheet.expiry_year[2:]}",
            "cryptogram": sheet.cryptogram.reveal(),
        }
    )
    header = {"alg": "RSA1_5", "kid": keys.key_hash, "typ": "JOSE", "enc": "A128GCM"}
    key = jwk.JWK()
    key.import_from_pyca(keys.private.public_key())
    box = jwe.JWE(plain.encode(), json.dumps(header), algs=["RSA1_5", "A128GCM"])
    box.add_recipient(key)
    compact: str = box.serialize(compact=True)
    return compact


def _certificate(
    name: str,
    key: PrivateKey,
    issuer: str,
    signed_by: ec.EllipticCurvePrivateKey,
    *,
    now: datetime,
    authority: bool = False,
    marker: x509.ObjectIdentifier | None = None,
) -> x509.Certificate:
    built = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Valid from before now, so that tokens a day too old verify as well.
        .not_valid_before(now - 2 * _LONG_AGO)
        .not_valid_after(now + GENERATED_KEY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if marker is not None:
        built = built.add_extension(x509.UnrecognizedExtension(marker, b"\x05\x00"), critical=False)
    return built.sign(signed_by, hashes.SHA256())


def _ecdsa(key: ec.EllipticCurvePrivateKey, *parts: str) -> str:
    return b64encode(key.sign(wallet2.build_signed_bytes(*parts), ec.ECDSA(hashes.SHA256()))).decode()


def _ec_public(keys: WalletKeys) -> ec.EllipticCurvePublicKey:
    assert isinstance(keys.private, ec.EllipticCurvePrivateKey)
    return keys.private.public_key()


def _spki(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _pem(key: PrivateKey) -> Secret:
    return Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def _ms(moment: datetime) -> str:
    return str(int((moment - datetime.fromtimestamp(0, UTC)) / timedelta(milliseconds=1)))


def _compact(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


_MAKERS: Final[Mapping[str, Callable[..., str]]] = MappingProxyType(
    {"ec_v1": _wallet1, "rsa_v1": _wallet1, "ecv1": _wallet2, "ecv2": _wallet2, "jwe": _wallet3}
)
assert {form for forms in WALLET_FORMATS.values() for form in forms} == set(_MAKERS)
