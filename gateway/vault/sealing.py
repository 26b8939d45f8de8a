"""The vault: seals card data with authenticated encryption, and makes keyed fingerprints to compare without opening.

Several keys may be active, and a ciphertext names its own. A sealed value is bound to its row's id: copied to another
row it does not open. A running process picks up a changed keyset file by itself: it checks once a second, and at once
when something does not open or match. Source: goals R8, R9 (docs/spec/goals.md); Part A, Card account.
"""

from __future__ import annotations

import contextlib
import hmac
import threading
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final
from uuid import UUID

import structlog
import tink
from django.conf import settings
from tink import aead, prf

from gateway.core.secret import Secret, reveal_text
from gateway.vault import keysets
from gateway.vault.keysets import KeysetLocation, VaultError

__all__ = [
    "Vault",
    "VaultError",
    "build_sealed_prefix",
    "configured_keyset",
    "current_vault",
    "load_vault",
    "parse_key_id",
]

FINGERPRINT_BYTES: Final = 16
KEYSET_CHECK_INTERVAL_S: Final = 1.0
"""Seconds that a process may work with an outdated keyset."""
SEALED_PREFIX_BYTES: Final = 5
"""A sealed value begins with 01 and its key's id, four bytes."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Vault:
    """An opened keyset. ``seal`` and ``open`` take about 2 µs; the object may be shared by threads. One object seals
    and fingerprints under one key: callers that need both call :func:`current_vault` once."""

    primary: int
    keys: frozenset[int]
    _aead: aead.Aead = field(repr=False)
    _prf: prf.PrfSet = field(repr=False)
    _source: _Source | None = field(default=None, repr=False)

    def seal(self, secret: Secret, row: UUID) -> bytes:
        """Encrypt ``secret`` for the row ``row``."""
        return bytes(self._aead.encrypt(secret.reveal().encode(), row.bytes))

    def open(self, sealed: bytes | memoryview, row: UUID) -> Secret:
        """Decrypt a value that was sealed for ``row``. Raises VaultError when it was not, or its key is gone."""
        octets = bytes(sealed)
        with contextlib.suppress(tink.TinkError):
            return self._open(octets, row)
        if (newer := self._newer()) is not None:
            with contextlib.suppress(tink.TinkError):
                return newer._open(octets, row)
        key = parse_key_id(octets)
        if key is None or key in (newer or self).keys:
            raise VaultError("A sealed value does not open: it was altered, or it belongs to another row.")
        raise VaultError(f"A sealed value does not open: the vault has no key {key}. See manage.py vault_key --show.")

    def _open(self, sealed: bytes, row: UUID) -> Secret:
        return Secret(self._aead.decrypt(sealed, row.bytes).decode())

    def fingerprint(self, value: str | Secret) -> bytes:
        """A keyed fingerprint, FINGERPRINT_BYTES long: equal for equal values, useless without the key."""
        return bytes(self._prf.primary().compute(_to_bytes(value), FINGERPRINT_BYTES))

    def fingerprints(self, value: str | Secret) -> tuple[bytes, ...]:
        """The value's fingerprints under every key of the vault, the primary key's first: rows written before a
        rotation are found by one of the others."""
        every = (bytes(key.compute(_to_bytes(value), FINGERPRINT_BYTES)) for key in self._prf.all().values())
        return tuple(dict.fromkeys((self.fingerprint(value), *every)))

    def matches(self, value: str | Secret, fingerprint: bytes | memoryview) -> bool:
        """True if ``fingerprint`` is one of ``value``, under any key of the vault: keys rotate."""
        return self._matches(value, fingerprint) or bool(
            (newer := self._newer()) is not None and newer._matches(value, fingerprint)
        )

    def _matches(self, value: str | Secret, fingerprint: bytes | memoryview) -> bool:
        return any(
            hmac.compare_digest(key.compute(_to_bytes(value), FINGERPRINT_BYTES), bytes(fingerprint))
            for key in self._prf.all().values()
        )

    def _newer(self) -> Vault | None:
        """The vault reloaded, if its keyset now has other keys: another process may have rotated already."""
        current = self._source.look() if self._source is not None else self
        return current if current.keys != self.keys else None


def load_vault(where: KeysetLocation, source: _Source | None = None) -> Vault:
    """Open the keyset. Raises VaultError when it is missing or invalid."""
    document = where.read()
    sealing, fingerprinting = keysets.open_keyset(document)
    keys = keysets.list_key_pairs(document)
    return Vault(
        next(key.id for key in keys if key.primary), frozenset(key.id for key in keys), sealing, fingerprinting, source
    )


class _Source:
    """A keyset location and the vault that was last opened from it."""

    def __init__(self, where: KeysetLocation) -> None:
        self._place = where
        self._lock = threading.Lock()
        self._stamp = where.stamp()
        self._vault = load_vault(where, self)
        self._looked = time.monotonic()

    def current(self) -> Vault:
        """The vault; one thread checks the keyset for changes, once in KEYSET_CHECK_INTERVAL_S."""
        if time.monotonic() - self._looked > KEYSET_CHECK_INTERVAL_S and self._lock.acquire(blocking=False):
            try:
                self._reload()
            finally:
                self._lock.release()
        return self._vault

    def look(self) -> Vault:
        """The vault as its keyset is now, checked at once."""
        with self._lock:
            self._reload()
        return self._vault

    def _reload(self) -> None:
        """Open the keyset again if it was changed. One that cannot be read is logged once, and this process goes on
        with the keys that it has."""
        stamp = self._place.stamp()
        if stamp != self._stamp:
            try:
                self._vault = load_vault(self._place, self)
            except VaultError as fault:
                log.error("vault_keyset_unreadable", why=str(fault))
            else:
                log.info("vault_keyset_changed", primary=self._vault.primary, keys=len(self._vault.keys))
            self._stamp = stamp
        self._looked = time.monotonic()


def configured_keyset() -> KeysetLocation:
    """The keyset location of the settings."""
    return KeysetLocation(
        path=Path(settings.GATEWAY_VAULT_KEYSET_FILE),
        text=settings.GATEWAY_VAULT_KEYSET,
        kms=settings.GATEWAY_VAULT_KMS,
    )


def current_vault() -> Vault:
    """This process's vault. In the test environment a missing keyset is created; in live that is an error."""
    return _source(
        settings.GATEWAY_VAULT_KEYSET_FILE, settings.GATEWAY_VAULT_KEYSET, settings.GATEWAY_VAULT_KMS
    ).current()


def parse_key_id(sealed: bytes | memoryview) -> int | None:
    """The id of the key that sealed this value; None for a value that no vault sealed."""
    head = bytes(sealed[:SEALED_PREFIX_BYTES])
    return int.from_bytes(head[1:]) if len(head) == SEALED_PREFIX_BYTES and head[0] == 1 else None


def build_sealed_prefix(key: int) -> bytes:
    """The first bytes of every value that ``key`` sealed."""
    return b"\x01" + key.to_bytes(SEALED_PREFIX_BYTES - 1)


@lru_cache(maxsize=4)
def _source(path: str, text: str, kms: str) -> _Source:
    where = KeysetLocation(path=Path(path), text=text, kms=kms)
    if where.is_changeable and where.stamp() is None and not settings.IS_LIVE:
        # Another process may be faster: then its file is used.
        with contextlib.suppress(VaultError):
            keysets.create_keyset_file(where)
    return _Source(where)


def _to_bytes(value: str | Secret) -> bytes:
    return reveal_text(value).encode()
