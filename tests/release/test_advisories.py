"""Locks are compared with advisories that an operator supplies. Source: PCI DSS 6.3.1; docs/decisions/0054."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from config.release.advisories import AdvisoryError, is_version_affected, load_advisories, main

DJANGO = "django==5.2.3 \\\n    --hash=sha256:" + "a" * 64 + "\n"


def advisory(*events: dict[str, str], name: str = "Django", **more: Any) -> dict[str, Any]:
    package = {
        "package": {"ecosystem": "PyPI", "name": name},
        "ranges": [{"type": "ECOSYSTEM", "events": list(events)}],
    }
    return {"id": "PYSEC-2026-1", "summary": "SQL injection", "affected": [package | more]}


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.lock"
    path.write_text(DJANGO + 'redis==5.2.1 ; sys_platform == "linux" \\\n    --hash=sha256:' + "b" * 64 + "\n")
    return path


def run(tmp_path: Path, lock: Path, content: Any) -> int:
    file = tmp_path / "osv.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return main([str(file), str(lock)])


def test_an_affected_package_is_named_with_its_mended_version(
    tmp_path: Path, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, lock, [advisory({"introduced": "5.2"}, {"fixed": "5.2.4"})]) == 1
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["package", "version", "advisory"]
    assert row.split()[:4] == ["django", "5.2.3", "PYSEC-2026-1", "5.2.4"]
    assert "SQL injection" in row


@pytest.mark.parametrize(
    ("events", "affected"),
    [
        ([{"introduced": "0"}], True),
        ([{"introduced": "0"}, {"fixed": "5.2.3"}], False),
        ([{"introduced": "0"}, {"last_affected": "5.2.3"}], True),
        ([{"introduced": "0"}, {"last_affected": "5.2.2"}], False),
        ([{"introduced": "5.2.4"}], False),
        ([{"introduced": "0"}, {"fixed": "4.2"}, {"introduced": "5.0"}, {"fixed": "6"}], True),
        ([{"fixed": "6"}, {"introduced": "5.0"}], True),
        ([{"introduced": "one"}], True),
        ([], False),
    ],
)
def test_ranges_are_read_as_osv_says(events: list[dict[str, str]], affected: bool) -> None:
    """A range that cannot be read counts: a person has to look."""
    assert is_version_affected(Version("5.2.3"), advisory(*events)["affected"][0]) is affected


def test_single_versions_other_ecosystems_and_withdrawn_ones(tmp_path: Path, lock: Path) -> None:
    named = advisory(versions=["5.2.3"], ranges=[])
    assert run(tmp_path, lock, named) == 1
    assert run(tmp_path, lock, {"vulns": [named]}) == 1
    assert run(tmp_path, lock, named | {"withdrawn": "2026-01-01T00:00:00Z"}) == 0
    assert run(tmp_path, lock, advisory({"introduced": "0"}, package={"ecosystem": "npm", "name": "django"})) == 0
    assert run(tmp_path, lock, advisory({"introduced": "0"}, name="flask")) == 0


def test_a_folder_and_a_zip_are_read(tmp_path: Path, lock: Path) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(advisory({"introduced": "0"}, name="flask")))
    (folder / "b.json").write_text(json.dumps(advisory({"introduced": "0"})))
    assert main([str(folder), str(lock)]) == 1
    with zipfile.ZipFile(tmp_path / "db.zip", "w") as archive:
        archive.write(folder / "b.json", "PyPI/b.json")
    assert main([str(tmp_path / "db.zip"), str(lock)]) == 1


@pytest.mark.parametrize(
    "content", ["", "no", "{}", "[]", "[7]", '{"id": 1}', '{"id": "a", "affected": [1]}', "[" * 9999]
)
def test_a_file_that_is_none_ends_with_2_and_a_sentence(
    tmp_path: Path, lock: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, lock, content) == 2
    said = capsys.readouterr().err
    assert "osv.json" in said
    assert "Traceback" not in said


def test_what_cannot_be_read_is_told(tmp_path: Path, lock: Path) -> None:
    assert main([]) == 2
    assert main([""]) == 2
    assert main([str(tmp_path / "none.json"), str(lock)]) == 2
    with pytest.raises(AdvisoryError):
        load_advisories(tmp_path / "none.json")
    file = tmp_path / "osv.json"
    file.write_text(json.dumps(advisory({"introduced": "0"})))
    lock.write_text("django>=5\n")
    assert main([str(file), str(lock)]) == 2


def test_our_own_locks_are_read(tmp_path: Path) -> None:
    file = tmp_path / "osv.json"
    file.write_text(json.dumps(advisory({"introduced": "0"})))
    assert main([str(file)]) == 1
