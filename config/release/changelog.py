"""Cuts a release in CHANGELOG.md (`make cut`): what stands below "Unreleased" becomes the version of pyproject.toml.

With the first release the names of all migrations are written down, too: every later one is linted for locks
(docs/upgrading.md).
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from config.release.__main__ import RELEASE_ROOT, read_release_version

UNRELEASED: Final = "## Unreleased"
FIRST_RELEASE_MIGRATIONS: Final = "tests/ground/migrations_of_the_first_release.txt"
"""The migrations of the first release, as app.migration, a line each."""
_MIGRATED_FOLDERS: Final = ("gateway", "gateway/scheduling", "checkout", "reporting", "chargebacks")
_VERSION_HEADING: Final = re.compile(r"^## (\d+\.\d+\.\d+)\b", re.MULTILINE)
_SECTION_END: Final = re.compile(r"^## ", re.MULTILINE)


class ChangelogError(Exception):
    """CHANGELOG.md has nothing to release, or has that release already."""


def list_released_versions(text: str) -> list[str]:
    """The versions with a section in a changelog, newest first."""
    return _VERSION_HEADING.findall(text)


def cut_changelog(text: str, version: str, day: date) -> str:
    """The changelog with an empty "Unreleased" and its lines below ``version``. Raises ChangelogError."""
    if version in list_released_versions(text):
        raise ChangelogError(f"CHANGELOG.md has a section {version} already: raise the version in pyproject.toml.")
    before, heading, after = text.partition(f"\n{UNRELEASED}\n")
    if not heading:
        raise ChangelogError(f"CHANGELOG.md has no section {UNRELEASED!r}.")
    if not _SECTION_END.split(after, maxsplit=1)[0].strip():
        raise ChangelogError(f"Nothing stands below {UNRELEASED!r} in CHANGELOG.md.")
    return f"{before}{heading}\n## {version} ({day.isoformat()})\n{after}"


def cut_release(root: Path, day: date) -> list[Path]:
    """Write the changelog of a release of the sources below ``root``, and with the first its migrations; returns the
    files. Raises ChangelogError.
    """
    changelog, migrations = root / "CHANGELOG.md", root / FIRST_RELEASE_MIGRATIONS
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(cut_changelog(text, read_release_version(root), day), encoding="utf-8")
    if list_released_versions(text):
        return [changelog]
    migrations.write_text("".join(f"{name}\n" for name in list_migrations(root)), encoding="utf-8")
    return [changelog, migrations]


def list_migrations(root: Path) -> list[str]:
    """The migrations of the sources below ``root``, as app.migration."""
    folders = [root / folder for folder in _MIGRATED_FOLDERS]
    return sorted(f"{folder.name}.{path.stem}" for folder in folders for path in folder.glob("migrations/0*.py"))


if __name__ == "__main__":
    try:
        for written in cut_release(RELEASE_ROOT, datetime.now(UTC).date()):
            print(written.relative_to(RELEASE_ROOT))
    except ChangelogError as fault:
        sys.exit(str(fault))
