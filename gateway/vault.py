"""The vault: card data sealed with authenticated encryption, and keyed fingerprints to compare without opening.

Keys live in one keyset file (Tink's JSON; several keys may be active, the ciphertext names its own). A sealed value
is bound to its row's id: copied to another row it does not open. Source: design goals R8, R9; Part A, Card account.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from uuid import UUID

import tink
from django.conf import settings
from tink import aead, json_proto_keyset_format, prf, secret_key_access

from gateway.secret import Secret

FINGERPRINT_BYTES = 16


class VaultError(Exception):
    """The vault cannot be used: the message says why and names no secret."""


@dataclass(frozen=True, slots=True)
class Vault:
    """An opened keyset. ``seal`` and ``open`` take about 2 µs; the object may be shared by threads."""

    _aead: aead.Aead
    _prf: prf.PrfSet

    def seal(self, secret: Secret, row: UUID) -> bytes:
        """Encrypt ``secret`` for the row ``row``."""
        return bytes(self._aead.encrypt(secret.reveal().encode(), row.bytes))

    def open(self, sealed: bytes | memoryview, row: UUID) -> Secret:
        """Decrypt what was sealed for ``row``. Raises VaultError when it was not, or its key is gone."""
        try:
            return Secret(self._aead.decrypt(bytes(sealed), row.bytes).decode())
        except tink.TinkError as fault:
            raise VaultError(
                "A sealed value does not open: its key is missing or it belongs to another row."
            ) from fault

    def fingerprint(self, value: str) -> bytes:
        """A keyed fingerprint, FINGERPRINT_BYTES long: equal for equal values, useless without the key."""
        return bytes(self._prf.primary().compute(value.encode(), FINGERPRINT_BYTES))

    def matches(self, value: str, fingerprint: bytes | memoryview) -> bool:
        """Whether ``fingerprint`` is one of ``value``, made with any key of the ring: keys rotate."""
        return any(
            hmac.compare_digest(key.compute(value.encode(), FINGERPRINT_BYTES), bytes(fingerprint))
            for key in self._prf.all().values()
        )


def create_keyset(path: Path) -> None:
    """Write a new keyset to ``path`` (mode 0600). Raises VaultError when a file is there already."""
    _register()
    document = {
        "seal": json.loads(_serialised(tink.new_keyset_handle(aead.aead_key_templates.AES256_GCM))),
        "fingerprint": json.loads(_serialised(tink.new_keyset_handle(prf.prf_key_templates.HKDF_SHA256))),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        # A link, not a rename: it fails when another process was faster, and never replaces a key in use.
        os.link(temporary, path)
    except FileExistsError:
        raise VaultError(f"There is a keyset at {path} already.") from None
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path) -> Vault:
    """Open the keyset at ``path``. Raises VaultError when it is missing or no keyset."""
    _register()
    try:
        document = json.loads(path.read_text())
        return Vault(
            _parsed(document["seal"]).primitive(aead.Aead), _parsed(document["fingerprint"]).primitive(prf.PrfSet)
        )
    except FileNotFoundError:
        raise VaultError(f"The vault keyset {path} is missing: sealed cards cannot be opened without it.") from None
    except (KeyError, ValueError, OSError, tink.TinkError) as fault:
        raise VaultError(f"The vault keyset {path} cannot be read: {type(fault).__name__}.") from None


@lru_cache(maxsize=1)
def vault() -> Vault:
    """This process's vault. In the test environment a missing keyset is made; in live that is an error."""
    path = Path(settings.GATEWAY_VAULT_KEYSET_FILE)
    if not path.exists() and not settings.IS_LIVE:
        # Another process may be faster; its file is then the one.
        with contextlib.suppress(VaultError):
            create_keyset(path)
    return load(path)


@lru_cache(maxsize=1)
def _register() -> None:
    aead.register()
    prf.register()


def _serialised(handle: tink.KeysetHandle) -> str:
    return str(json_proto_keyset_format.serialize(handle, secret_key_access.TOKEN))


def _parsed(part: object) -> tink.KeysetHandle:
    return json_proto_keyset_format.parse(json.dumps(part), secret_key_access.TOKEN)
