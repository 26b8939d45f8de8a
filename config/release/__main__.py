"""Writes dist/ (`make release`): the gateway's wheel and sdist, SBOM and lock, the client packages and plug-ins,
checksums; then proves them in an empty environment, unless ``--unproven`` is given.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from pathlib import Path

from config.release.proof import prove_release
from config.release.sbom import build_sbom
from config.release.server_package import build_server_sdist, build_server_wheel
from gateway.portal.client_packages import list_client_packages, list_plug_ins

RELEASE_ROOT = Path(__file__).resolve().parents[2]


def read_release_version(root: Path) -> str:
    """The version of the sources below ``root``: it stands in pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def write_release(root: Path, folder: Path) -> list[Path]:
    """Write the files of a release into ``folder``; returns their paths."""
    name = f"tollhouse-{read_release_version(root)}"
    files = {f"{name}.cdx.json": build_sbom(root).encode(), f"{name}.lock": (root / "requirements.lock").read_bytes()}
    files |= dict([build_server_wheel(root), build_server_sdist(root)])
    files |= {file: package.build() for file, package in {**list_client_packages(), **list_plug_ins()}.items()}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {file}\n" for file, content in sorted(files.items()))
    folder.mkdir(exist_ok=True)
    for old in filter(Path.is_file, folder.glob("*")):
        old.unlink()  # an earlier version's files are no part of this release
    written = []
    for file, content in {**files, "SHA256SUMS": sums.encode()}.items():
        (folder / file).write_bytes(content)
        written.append(folder / file)
    return written


if __name__ == "__main__":
    for path in write_release(RELEASE_ROOT, RELEASE_ROOT / "dist"):
        print(path.relative_to(RELEASE_ROOT))
    if "--unproven" not in sys.argv[1:]:
        print("Proving it:")
        prove_release(RELEASE_ROOT / "dist")
