"""Compares the locks with advisories that an operator supplies, offline: `make advisories FILE=…`.

The file is in OSV's format: one advisory, a list of them, an object with a list "vulns", a folder of such files, or a
zip of them, as advisory databases publish it. Exit code 1 if a package is affected, 2 if the file holds no advisories.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from config.release.lock import LockedPackage, LockError, read_lock

LOCK_FILES = ("requirements.lock", "tests/requirements.lock")
ADVISORY_ECOSYSTEM = "PyPI"


class AdvisoryError(Exception):
    """The file holds no advisories."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class AdvisoryFinding:
    """A locked package that an advisory affects. ``fixed``: the fixed versions, as the advisory names them."""

    lock: str
    package: str
    version: str
    advisory: str
    fixed: str
    summary: str


def load_advisories(path: Path) -> list[dict[str, Any]]:
    """The advisories in a file, folder or zip. Raises AdvisoryError."""
    found = [one for name, text in _read_files(path) for one in _parse_entries(name, text)]
    if not found:
        raise AdvisoryError(f"{path} holds no advisory")
    return found


def _read_files(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        if path.is_dir():
            for file in sorted(path.rglob("*.json")):
                yield str(file), file.read_bytes()
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    if name.endswith(".json"):
                        yield f"{path}: {name}", archive.read(name)
        else:
            yield str(path), path.read_bytes()
    except (OSError, zipfile.BadZipFile) as fault:
        raise AdvisoryError(f"{path} cannot be read: {fault}") from None


def _parse_entries(name: str, text: bytes) -> list[dict[str, Any]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise AdvisoryError(f"{name} is no JSON") from None
    if isinstance(found, dict) and "vulns" in found:
        found = found["vulns"]
    listed = found if isinstance(found, list) else [found]
    for one in listed:
        if not _is_advisory(one):
            raise AdvisoryError(f"{name} is not in OSV's format: an entry has an id and a list of what is affected")
    return listed


def _is_advisory(one: Any) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(one.get("id"), str)
        and isinstance(one.get("affected", []), list)
        and all(isinstance(each, dict) for each in one.get("affected", []))
        and ("affected" in one or "withdrawn" in one)
    )


def find_affected_packages(
    locked: Mapping[str, Sequence[LockedPackage]], found: Sequence[Mapping[str, Any]]
) -> list[AdvisoryFinding]:
    """The locked packages (by lock file) that are affected."""
    entries: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for advisory in found:
        for affected in advisory.get("affected", ()) if not advisory.get("withdrawn") else ():
            package = affected.get("package") or {}
            if package.get("ecosystem") == ADVISORY_ECOSYSTEM and isinstance(package.get("name"), str):
                entries.setdefault(canonicalize_name(package["name"]), []).append((advisory, affected))
    return sorted(
        {
            AdvisoryFinding(
                lock=lock,
                package=one.name,
                version=str(one.version),
                advisory=advisory["id"],
                fixed=_fixed_versions(affected),
                summary=" ".join(str(advisory.get("summary") or "").split()),
            )
            for lock, packages in locked.items()
            for one in packages
            for advisory, affected in entries.get(one.name, ())
            if is_version_affected(one.version, affected)
        }
    )


def is_version_affected(version: Version, affected: Mapping[str, Any]) -> bool:
    """True if an entry's versions or ranges include ``version``. A range that cannot be read counts as including it:
    a person has to look."""
    if any(_is_same_version(version, one) for one in affected.get("versions") or ()):
        return True
    ranges = [one for one in affected.get("ranges") or () if one.get("type") in ("ECOSYSTEM", "SEMVER")]
    return any(_is_in_range(version, one.get("events") or ()) for one in ranges)


def _is_same_version(version: Version, text: Any) -> bool:
    try:
        return Version(str(text)) == version
    except InvalidVersion:
        return False


def _is_in_range(version: Version, events: Sequence[Mapping[str, Any]]) -> bool:
    """OSV's evaluation: events in the order of their versions; each one not above ours decides anew."""
    try:
        steps = sorted(
            ((Version("0.dev0") if text == "0" else Version(str(text))), kind)
            for event in events
            for kind, text in event.items()
        )
    except (InvalidVersion, AttributeError):
        return True
    inside = False
    for at, kind in steps:
        if kind == "introduced" and version >= at:
            inside = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


def _fixed_versions(affected: Mapping[str, Any]) -> str:
    events = [
        event for one in affected.get("ranges") or () for event in one.get("events") or () if isinstance(event, dict)
    ]
    return ", ".join(str(event["fixed"]) for event in events if "fixed" in event) or "–"


def main(arguments: Sequence[str]) -> int:
    """Print the advisories that meet a locked version; 1 if there are any, 2 if the file cannot be read."""
    if not arguments or not arguments[0]:
        print("Name a file of advisories: make advisories FILE=path/to/osv.json", file=sys.stderr)
        return 2
    try:
        known = load_advisories(Path(arguments[0]))
        locked = {name: read_lock(Path(name)) for name in arguments[1:] or LOCK_FILES}
        found = find_affected_packages(locked, known)
    except (AdvisoryError, LockError) as fault:
        print(f"{fault}.", file=sys.stderr)
        return 2
    if not found:
        print(f"None of {len(known):,} advisories speaks of a locked version in {', '.join(locked)}.")
        return 0
    print("\n".join(_format_table(found)))
    return 1


def _format_table(found: Sequence[AdvisoryFinding]) -> list[str]:
    head = ("package", "version", "advisory", "fixed in", "lock", "about")
    rows = [head] + [(one.package, one.version, one.advisory, one.fixed, one.lock, one.summary) for one in found]
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
