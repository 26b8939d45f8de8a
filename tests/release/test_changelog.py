"""A release can be cut: what is unreleased becomes a version, and its migrations are written down."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Final

import pytest
from django.db.migrations.loader import MigrationLoader

from config.release.changelog import (
    FIRST_RELEASE_MIGRATIONS,
    UNRELEASED,
    ChangelogError,
    cut_changelog,
    cut_release,
    list_migrations,
    list_released_versions,
)
from tests.ground.test_migration_locks import APPS, FIRST_RELEASE

ROOT: Final = Path(__file__).parents[2]
DAY: Final = date(2030, 5, 9)
HEAD: Final = "# Changelog\n\nWords.\n"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Sources of 9.8.7 with this changelog's own lines and one migration."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "9.8.7"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"{HEAD}\n{UNRELEASED}\n\n### Added\n- A.\n")
    for name in ("gateway/scheduling/migrations/0001_initial.py", FIRST_RELEASE_MIGRATIONS):
        (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / "gateway/scheduling/migrations/0001_initial.py").touch()
    return tmp_path


def test_the_first_release_has_its_section_and_its_migrations(sources: Path) -> None:
    written = cut_release(sources, DAY)
    assert written == [sources / "CHANGELOG.md", sources / FIRST_RELEASE_MIGRATIONS]
    assert written[0].read_text() == f"{HEAD}\n{UNRELEASED}\n\n## 9.8.7 (2030-05-09)\n\n### Added\n- A.\n"
    assert written[1].read_text() == "scheduling.0001_initial\n"


def test_a_later_release_leaves_the_first_ones_migrations(sources: Path) -> None:
    changelog = sources / "CHANGELOG.md"
    changelog.write_text(changelog.read_text() + "\n## 9.8.6 (2029-01-02)\n\n- Old.\n")
    assert cut_release(sources, DAY) == [changelog]
    assert not (sources / FIRST_RELEASE_MIGRATIONS).exists()
    assert list_released_versions(changelog.read_text()) == ["9.8.7", "9.8.6"]


@pytest.mark.parametrize(
    "text, reason",
    [
        (f"{HEAD}\n{UNRELEASED}\n\n- A.\n\n## 9.8.7 (2030-01-02)\n- B.\n", "section 9.8.7 already"),
        (f"{HEAD}\n{UNRELEASED}\n\n## 9.8.6\n- B.\n", "Nothing stands below"),
        (f"{HEAD}\n## 9.8.6\n- B.\n", "no section"),
    ],
)
def test_what_cannot_be_cut_is_left_alone_and_says_why(sources: Path, text: str, reason: str) -> None:
    (sources / "CHANGELOG.md").write_text(text)
    with pytest.raises(ChangelogError, match=reason):
        cut_release(sources, DAY)
    assert (sources / "CHANGELOG.md").read_text() == text
    assert not (sources / FIRST_RELEASE_MIGRATIONS).exists()


def test_our_own_changelog_can_be_cut() -> None:
    text, version = (ROOT / "CHANGELOG.md").read_text(), "9999.0.0"
    text = text.replace(
        f"\n{UNRELEASED}\n", f"\n{UNRELEASED}\n\n- A line more.\n"
    )  # on the day of a release there is none
    cut = cut_changelog(text, version, DAY)
    assert list_released_versions(cut) == [version, *list_released_versions(text)]
    assert cut.replace(f"\n## {version} ({DAY})\n", "", 1) == text
    assert ROOT / FIRST_RELEASE_MIGRATIONS == FIRST_RELEASE


def test_the_migrations_are_those_that_django_finds() -> None:
    found = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    assert list_migrations(ROOT) == sorted(f"{app}.{name}" for app, name in found if app in APPS)
