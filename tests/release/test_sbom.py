"""A release lists what is in it, in CycloneDX. Source: PCI DSS 6.3.2; docs/decisions/0054."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from config.release.__main__ import write_release
from config.release.lock import read_lock
from config.release.sbom import build_sbom

ROOT = Path(__file__).parents[2]


def test_every_locked_package_is_in_it_and_the_schema_holds() -> None:
    """Names, versions, hashes and licences; no host of a registry."""
    # Imported here: it takes a second (it builds a grammar of addresses), which finding tests does not need.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = build_sbom(ROOT)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found = {(one["name"], one["version"]): one for one in json.loads(text)["components"]}
    locked = read_lock(ROOT / "requirements.lock")
    assert set(found) == {(one.name, str(one.version)) for one in locked}
    django = found[next(key for key in found if key[0] == "django")]
    assert django["purl"] == f"pkg:pypi/django@{django['version']}"
    assert {one["content"] for one in django["hashes"]} == set(next(o for o in locked if o.name == "django").hashes)
    assert "BSD" in json.dumps(django["licenses"])
    assert "://" not in text.replace("http://cyclonedx.org/schema/", "")


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    files = write_release(ROOT, tmp_path / "one")
    again = write_release(ROOT, tmp_path / "two")
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]
    sums = (tmp_path / "one" / "SHA256SUMS").read_text().splitlines()
    assert len(sums) == len(files) - 1
    for line in sums:
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "one" / name).read_bytes()).hexdigest() == digest
