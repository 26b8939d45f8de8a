"""The software bill of materials of a release, in CycloneDX 1.6 (PCI DSS 6.3.2).

The same lock and commit always give the same bytes: the serial number comes from the content, the time from the commit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from config.launcher.build_number import compute_build_number
from config.release.lock import LockedPackage, read_lock

MAX_LICENSE_CHARS = 100
"""Longest licence name; longer ones are whole texts."""
_CLASSIFIER = "License :: OSI Approved :: "


def build_sbom(root: Path) -> str:
    """The document for the sources below ``root``, as JSON."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commit, _, at = compute_build_number(root).partition("@")
    locked = read_lock(root / "requirements.lock")
    own = Component(
        name=project["name"],
        version=project["version"],
        type=ComponentType.APPLICATION,
        bom_ref=project["name"],
        licenses=[LicenseFactory().make_from_string(project["license"]["text"])],
    )
    made = datetime.strptime(at.removesuffix(" +0000"), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    parts = [_component(one) for one in locked]
    listing = "\n".join(f"{one.name} {one.version} {' '.join(one.hashes)}" for one in locked)
    bom = Bom(
        components=parts,
        metadata=BomMetaData(component=own, timestamp=made),
        serial_number=uuid5(NAMESPACE_URL, f"{project['name']} {project['version']} {commit}\n{listing}"),
    )
    bom.register_dependency(own, parts)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1) + "\n"


def _component(one: LockedPackage) -> Component:
    version = str(one.version)
    return Component(
        name=one.name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{one.name}=={version}",
        purl=PackageURL("pypi", None, one.name, version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in one.hashes],
        licenses=_licenses(one.name, version),
    )


def _licenses(name: str, version: str) -> Sequence[License]:
    """The licence that the installed package declares; none if another version is installed, or no such package."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return []
    if found["Version"] != version:
        return []
    classified = [
        one.removeprefix(_CLASSIFIER) for one in found.get_all("Classifier", []) if one.startswith(_CLASSIFIER)
    ]
    words = [found[name] for name in ("License-Expression", "License") if name in found]
    said = [*words, *classified, ""][0]
    said = re.sub(r"\s+", " ", said).strip()
    if len(said) > MAX_LICENSE_CHARS:
        said = classified[0] if classified else ""
    return [LicenseFactory().make_from_string(said)] if said and said != "UNKNOWN" else []
