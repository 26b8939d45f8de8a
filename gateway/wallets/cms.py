"""Verifies detached CMS signatures with their certificate chain, as in wallet 1's tokens (RFC 5652).

The signature holds the signer's and the intermediate certificate; we have the root. Both certificates carry a marker
extension with their purpose. Validity is checked at the signing time, which has to be near the present anyway.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from asn1crypto import cms
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from gateway.wallets.strict_parsing import refuse_parse_errors
from gateway.wallets.token import TokenRefusalReason, WalletTokenRefusedError

SIGNER_MARKER: Final = x509.ObjectIdentifier("1.2.840.113635.100.6.29")
INTERMEDIATE_MARKER: Final = x509.ObjectIdentifier("1.2.840.113635.100.6.2.14")
MAX_CERTIFICATES: Final = 4


def verify_cms_signature(signature: bytes, content: bytes, roots: Sequence[x509.Certificate]) -> datetime:
    """Verify that a signer certified by one of ``roots`` signed ``content``. Returns the signing time. Raises
    WalletTokenRefusedError."""
    with refuse_parse_errors(TokenRefusalReason.MALFORMED, "signature is no CMS SignedData"):
        outer = cms.ContentInfo.load(signature, strict=True)
        if outer["content_type"].native != "signed_data":
            raise ValueError("not signed")
        signed = outer["content"]
        if signed["encap_content_info"]["content_type"].native != "data" or _present(signed["encap_content_info"]):
            raise ValueError("not detached")
        signers, certificates = list(signed["signer_infos"]), list(signed["certificates"])
        if len(signers) != 1 or not 1 <= len(certificates) <= MAX_CERTIFICATES:
            raise ValueError("one signer and a few certificates are expected")
        signer = signers[0]
        chain = [x509.load_der_x509_certificate(one.dump()) for one in certificates]
    with refuse_parse_errors(TokenRefusalReason.TAMPERED):
        certificate = _signers(signer["sid"], chain)
        signed_at = _attributes(signer, content)
        _check(signer, certificate.public_key())
    with refuse_parse_errors(TokenRefusalReason.UNTRUSTED):
        _trust(certificate, chain, roots, signed_at)
    return signed_at


def _present(content: Any) -> bool:
    return content["content"].native is not None


def _signers(name: Any, chain: Sequence[x509.Certificate]) -> x509.Certificate:
    """The signer's certificate, by issuer and serial number or by key identifier."""
    for one in chain:
        if name.name == "issuer_and_serial_number":
            same = one.serial_number == name.chosen["serial_number"].native
            if same and one.issuer.public_bytes() == name.chosen["issuer"].dump():
                return one
        elif x509.SubjectKeyIdentifier.from_public_key(one.public_key()).digest == name.native:
            return one
    raise WalletTokenRefusedError(TokenRefusalReason.TAMPERED)


def _attributes(signer: Any, content: bytes) -> datetime:
    """The signing time, from signed attributes that belong to this content."""
    found: dict[str, Any] = {}
    for attribute in signer["signed_attrs"]:
        name = attribute["type"].native
        if name in found or len(attribute["values"]) != 1:
            raise ValueError("an attribute stands twice")
        found[name] = attribute["values"][0].native
    if signer["digest_algorithm"]["algorithm"].native != "sha256" or found["content_type"] != "data":
        raise ValueError("another digest")
    if not hmac.compare_digest(found["message_digest"], sha256(content).digest()):
        raise WalletTokenRefusedError(TokenRefusalReason.TAMPERED)
    signed_at = found["signing_time"]
    if not isinstance(signed_at, datetime) or signed_at.tzinfo is None:
        raise ValueError("no signing time")
    return signed_at.astimezone(UTC)


def _check(signer: Any, key: object) -> None:
    # The attributes are signed as a SET, whatever tag they are sent with (RFC 5652, 5.4).
    signed, value = signer["signed_attrs"].untag().dump(force=True), signer["signature"].native
    algorithm = signer["signature_algorithm"]["algorithm"].native
    try:
        if isinstance(key, ec.EllipticCurvePublicKey) and algorithm == "sha256_ecdsa":
            key.verify(value, signed, ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, rsa.RSAPublicKey) and algorithm in ("sha256_rsa", "rsassa_pkcs1v15"):
            key.verify(value, signed, padding.PKCS1v15(), hashes.SHA256())
        else:
            raise ValueError("another algorithm")
    except InvalidSignature:
        raise WalletTokenRefusedError(TokenRefusalReason.TAMPERED) from None


def _trust(
    signer: x509.Certificate, chain: Sequence[x509.Certificate], roots: Sequence[x509.Certificate], at: datetime
) -> None:
    """Verify that the signer was issued by an intermediate of ``chain``, and that by one of ``roots``."""
    if not _marked(signer, SIGNER_MARKER) or _is_authority(signer) or not _valid(signer, at):
        raise WalletTokenRefusedError(TokenRefusalReason.UNTRUSTED, "the signer's certificate")
    for middle in chain:
        if not (_marked(middle, INTERMEDIATE_MARKER) and _is_authority(middle) and _valid(middle, at)):
            continue
        if not _issued(signer, middle):
            continue
        if any(_issued(middle, root) and _is_authority(root) and _valid(root, at) for root in roots):
            return
    raise WalletTokenRefusedError(TokenRefusalReason.UNTRUSTED)


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _marked(certificate: x509.Certificate, marker: x509.ObjectIdentifier) -> bool:
    return any(extension.oid == marker for extension in certificate.extensions)


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return False
    return constraints.ca


def _valid(certificate: x509.Certificate, at: datetime) -> bool:
    return certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc
