"""Reads a lock file of Python packages: names, exact versions and the hashes of their files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class LockError(Exception):
    """The file is not a lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPackage:
    """One package. ``hashes``: SHA-256 of every file that may be installed of it, hexadecimal."""

    name: str
    version: Version
    hashes: tuple[str, ...]


def read_lock(path: Path) -> list[LockedPackage]:
    """The packages of a lock, sorted by name. Raises LockError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise LockError(f"{path} cannot be read: {fault}") from None
    lines = (line.strip() for line in text.replace("\\\n", " ").splitlines())
    found = [_parse_line(path, line) for line in lines if line and not line.startswith(("#", "-"))]
    if not found:
        raise LockError(f"{path} pins no package")
    return sorted(found, key=lambda one: (one.name, one.version))


def _parse_line(path: Path, line: str) -> LockedPackage:
    try:
        wanted = Requirement(line.partition("--hash")[0])
        (pin,) = wanted.specifier
        if pin.operator != "==":
            raise ValueError
        return LockedPackage(
            name=canonicalize_name(wanted.name), version=Version(pin.version), hashes=tuple(sorted(_HASH.findall(line)))
        )
    except (InvalidRequirement, InvalidVersion, ValueError):
        raise LockError(f"{path} has a line that pins no version: {line[:80]}") from None
