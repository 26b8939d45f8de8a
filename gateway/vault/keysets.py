"""The vault's keyset: where it is stored, and how it is created, rotated and pruned.

A keyset is one JSON document with two Tink keysets, ``seal`` and ``fingerprint``, whose keys come in pairs of one id,
and ``since``: key id → when that pair became the primary one (real time). It is in a file or in the environment, and
may be wrapped by a KMS. Only a plain file can be changed from here. Source: goals R8, R9 (docs/spec/goals.md).
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import tink
from django.core.exceptions import ImproperlyConfigured
from tink import aead, json_proto_keyset_format, prf, secret_key_access

from gateway.core import clock
from gateway.core.addons import import_addon

aead.register()
prf.register()

KeysetDocument = dict[str, Any]
KEYSET_PARTS: Final = ("seal", "fingerprint")
KeysetPrimitives = tuple[aead.Aead, prf.PrfSet]


class VaultError(Exception):
    """The vault cannot be used: the message says why and contains no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """One pair of keys. ``since``: when it became the primary one, None when it never was or that is not recorded."""

    id: int
    primary: bool
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysetLocation:
    """Where a keyset is stored. ``text`` (the environment) takes precedence over ``path``; ``kms`` names the callable
    that decrypts the stored bytes, "package.module:function", or is empty."""

    path: Path
    text: str = ""
    kms: str = ""

    def __str__(self) -> str:
        where = "in GATEWAY_VAULT_KEYSET" if self.text else str(self.path)
        return f"{where}, opened by {self.kms}" if self.kms else where

    @property
    def is_changeable(self) -> bool:
        return not self.text and not self.kms

    def stamp(self) -> tuple[int, int, int] | None:
        """Changes when the file does; None if there is no file. A keyset in the environment never changes."""
        if self.text:
            return (0, 0, 0)
        try:
            stat = self.path.stat()
        except OSError:
            return None
        return (stat.st_mtime_ns, stat.st_ino, stat.st_size)

    def read(self) -> KeysetDocument:
        """The keyset as it is stored now. Raises VaultError when it is missing or invalid."""
        try:
            stored = self.text.encode() if self.text else self.path.read_bytes()
        except FileNotFoundError:
            raise VaultError(f"The vault keyset {self} is missing: sealed cards cannot be opened without it.") from None
        except OSError as fault:
            raise VaultError(f"The vault keyset {self} cannot be read: {fault.strerror}.") from None
        plain = _load_kms(self.kms)(stored) if self.kms else stored
        try:
            document = json.loads(plain)
            ids = [{key["keyId"] for key in document[part]["key"]} for part in KEYSET_PARTS]
            if not all(document[part]["primaryKeyId"] in known for part, known in zip(KEYSET_PARTS, ids, strict=True)):
                raise ValueError("no primary key")
        except (KeyError, TypeError, ValueError) as fault:
            raise VaultError(f"The vault keyset {self} cannot be read: {type(fault).__name__}.") from None
        if ids[0] != ids[1]:
            _pair_keys(document)
        return dict(document)


def open_keyset(document: KeysetDocument) -> KeysetPrimitives:
    """The primitives of a keyset. Raises VaultError when a part of it is invalid."""
    try:
        seal, fingerprint = (
            json_proto_keyset_format.parse(json.dumps(document[part]), secret_key_access.TOKEN) for part in KEYSET_PARTS
        )
        return seal.primitive(aead.Aead), fingerprint.primitive(prf.PrfSet)
    except tink.TinkError as fault:
        raise VaultError(f"The vault keyset does not open: {type(fault).__name__}.") from None


def list_key_pairs(document: KeysetDocument) -> list[KeyPair]:
    """The keys, oldest first."""
    since = document.get("since", {})
    primary = document["seal"]["primaryKeyId"]
    return [
        KeyPair(
            id=key["keyId"],
            primary=key["keyId"] == primary,
            since=datetime.fromisoformat(since[str(key["keyId"])]) if str(key["keyId"]) in since else None,
        )
        for key in document["seal"]["key"]
    ]


def build_keyset() -> KeysetDocument:
    """A new keyset with one pair of keys."""
    first = _new_pair(set())
    return promote_key_pair({part: {"key": [first[part]]} for part in KEYSET_PARTS}, first["seal"]["keyId"])


def add_key_pair(document: KeysetDocument) -> tuple[KeysetDocument, int]:
    """``document`` with one more pair of keys, not primary yet, and that pair's id."""
    changed = copy.deepcopy(document)
    pair = _new_pair({key.id for key in list_key_pairs(document)})
    for part in KEYSET_PARTS:
        changed[part]["key"].append(pair[part])
    return changed, pair["seal"]["keyId"]


def promote_key_pair(document: KeysetDocument, key: int) -> KeysetDocument:
    """``document`` with the pair ``key`` as the primary one, for sealing and for fingerprints."""
    changed = copy.deepcopy(document)
    for part in KEYSET_PARTS:
        _find_key(changed, part, key)
        changed[part]["primaryKeyId"] = key
    changed.setdefault("since", {})[str(key)] = clock.real_now().isoformat(timespec="milliseconds")
    return changed


def remove_key_pair(document: KeysetDocument, key: int) -> KeysetDocument:
    """``document`` without the pair ``key``, irrevocably. Raises VaultError for the primary one."""
    changed = copy.deepcopy(document)
    for part in KEYSET_PARTS:
        entry = _find_key(changed, part, key)
        if changed[part]["primaryKeyId"] == key:
            raise VaultError(f"Key {key} is the primary key: rotate first.")
        changed[part]["key"].remove(entry)
    changed.get("since", {}).pop(str(key), None)
    return changed


def find_superseded_at(document: KeysetDocument, key: int) -> datetime | None:
    """When another key replaced ``key`` as primary; None when it never was primary, or still is."""
    own = next((pair.since for pair in list_key_pairs(document) if pair.id == key), None)
    later = [pair.since for pair in list_key_pairs(document) if pair.since and (own is None or pair.since > own)]
    return min(later, default=None)


def create_keyset_file(place: KeysetLocation) -> None:
    """Create a keyset file, mode 0600. Raises VaultError when there is one already."""
    _refuse_unchangeable(place)
    document = build_keyset()
    try:
        place.path.parent.mkdir(parents=True, exist_ok=True)
        with _write_temporary(place.path, document) as temporary:
            # A link, not a rename: it fails when another process was faster, and never replaces a key in use.
            os.link(temporary, place.path)
    except FileExistsError:
        raise VaultError(f"There is a keyset at {place.path} already.") from None
    except OSError as fault:
        raise VaultError(f"The vault keyset {place} cannot be written: {fault.strerror}.") from None


def change_keyset_file(place: KeysetLocation, edit: Callable[[KeysetDocument], KeysetDocument]) -> KeysetDocument:
    """Replace the keyset file by ``edit`` of it, atomically and under a lock; returns the new keyset."""
    _refuse_unchangeable(place)
    try:
        folder = os.open(place.path.resolve().parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            document = edit(place.read())
            open_keyset(document)
            # The file itself, where the path is a link to it.
            path = place.path.resolve()
            with _write_temporary(path, document, like=path.stat()) as temporary:
                temporary.replace(path)
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as fault:
        raise VaultError(f"The vault keyset {place} cannot be written: {fault.strerror}.") from None
    return document


@contextlib.contextmanager
def _write_temporary(path: Path, document: KeysetDocument, *, like: os.stat_result | None = None) -> Iterator[Path]:
    """``document`` in a temporary file in the folder of ``path``, synced to disk, for its owner only."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            if like is not None and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                # Written by root, it remains the service's.
                os.fchown(file.fileno(), like.st_uid, like.st_gid)
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _refuse_unchangeable(place: KeysetLocation) -> None:
    if not place.is_changeable:
        raise VaultError(
            f"The vault keyset is {place}: it is changed where it lives. docs/vault.md tells how, step by step."
        )


def _find_key(document: KeysetDocument, part: str, key: int) -> dict[str, Any]:
    for entry in document[part]["key"]:
        if entry["keyId"] == key:
            return dict(entry)
    known = ", ".join(str(found.id) for found in list_key_pairs(document))
    raise VaultError(f"The vault has no key {key}; it has {known}.")


def _new_pair(taken: set[int]) -> dict[str, dict[str, Any]]:
    """One key for each part, both with the id of the first: fingerprints carry none, so theirs may be any."""
    while True:
        pair: dict[str, dict[str, Any]] = {}
        for part, template in (
            ("seal", aead.aead_key_templates.AES256_GCM),
            ("fingerprint", prf.prf_key_templates.HKDF_SHA256),
        ):
            handle = tink.new_keyset_handle(template)
            pair[part] = json.loads(json_proto_keyset_format.serialize(handle, secret_key_access.TOKEN))["key"][0]
        if pair["seal"]["keyId"] not in taken:
            pair["fingerprint"]["keyId"] = pair["seal"]["keyId"]
            return pair


def _pair_keys(document: KeysetDocument) -> None:
    """Give the keys of a keyset whose two parts were created separately one id per pair."""
    seal, fingerprint = document["seal"], document["fingerprint"]
    if len(seal["key"]) != 1 or len(fingerprint["key"]) != 1:
        raise VaultError("The vault keyset's parts do not have the same keys.")
    fingerprint["key"][0]["keyId"] = fingerprint["primaryKeyId"] = seal["primaryKeyId"]


def _load_kms(name: str) -> Callable[[bytes], bytes | str]:
    """The KMS add-on. Its errors become a VaultError that names it but repeats nothing of its message."""
    try:
        unwrap = import_addon("GATEWAY_VAULT_KMS", name)
    except ImproperlyConfigured as fault:
        raise VaultError(str(fault)) from None

    def guarded(stored: bytes) -> bytes | str:
        try:
            plain: bytes | str = unwrap(stored)
        except Exception as fault:
            # Not chained: the add-on's traceback could hold the keyset.
            raise VaultError(f"The KMS add-on {name} failed: {type(fault).__name__}.") from None
        return plain

    return guarded
