"""The example files of docs/running, with the addresses and folders of a trial in place of the examples'."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from config.launcher.var_folder import PROJECT_ROOT

EXAMPLES: Final = PROJECT_ROOT / "docs" / "running"
SCRIPTS: Final = ("archive-wal.sh", "base-backup.sh", "restore.sh")


def rendered(name: str, replacements: Mapping[str, str]) -> str:
    """The text of an example. Raises ValueError when one of the things to replace is not in it."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    for old, new in replacements.items():
        if old not in text:
            raise ValueError(f"{name} says nowhere {old!r}")
        text = text.replace(old, new)
    return text


def copy_scripts(folder: Path) -> None:
    """The shell scripts, where PostgreSQL's user can run them."""
    for name in SCRIPTS:
        copy = folder / name
        copy.write_bytes((EXAMPLES / name).read_bytes())
        copy.chmod(0o755)


def make_certificate(folder: Path) -> Path:
    """A certificate for localhost that signs itself, and its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "tollhouse.pem"
    file.touch(mode=0o600)
    file.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return file
