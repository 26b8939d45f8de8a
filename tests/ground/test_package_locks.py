"""The lock files: whatever Python installs from them, it gets the same versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from packaging.requirements import Requirement

LOCKS = (
    "requirements.lock",
    "tests/requirements.lock",
    "tests/plugins/pretix.lock",
    "tests/external/requirements.lock",
)
PYTHONS = ("3.11.2", "3.11.9", "3.12.0", "3.13.0", "3.14.0", "3.15.0", "3.20.0")
_LINE = re.compile(r"^([A-Za-z0-9][^\\#]*==[^\\#]+)", re.M)


def versions_for(lock: Path, python: str) -> dict[str, str]:
    """What that Python installs."""
    environment = {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    wanted = [Requirement(line) for line in _LINE.findall(lock.read_text())]
    return {
        each.name: str(each.specifier)
        for each in wanted
        if each.marker is None or each.marker.evaluate(environment=environment)
    }


@pytest.mark.parametrize("name", LOCKS)
def test_every_python_gets_the_same_versions(name: str) -> None:
    """Python 3.12 and newer had a later theme of the back office, in which two lists were a 500."""
    lock = Path(settings.BASE_DIR) / name
    found = {python: versions_for(lock, python) for python in PYTHONS}
    assert len(found[PYTHONS[0]]) > 20
    names = set().union(*found.values())
    chosen = {each: {versions[each] for versions in found.values() if each in versions} for each in names}
    assert {each: several for each, several in chosen.items() if len(several) > 1} == {}
