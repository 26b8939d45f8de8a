"""Writes dist/: the SBOM, the lock it was made from, the client packages, and checksums. Run by `make release`."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

from config.release.sbom import build_sbom
from gateway.portal.client_packages import list_client_packages

RELEASE_ROOT = Path(__file__).resolve().parents[2]


def write_release(root: Path, folder: Path) -> list[Path]:
    """Write the files of a release into ``folder``; returns their paths."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = f"{project['name']}-{project['version']}"
    files = {f"{name}.cdx.json": build_sbom(root).encode(), f"{name}.lock": (root / "requirements.lock").read_bytes()}
    files |= {file: package.build() for file, package in list_client_packages().items()}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {file}\n" for file, content in sorted(files.items()))
    folder.mkdir(exist_ok=True)
    written = []
    for file, content in {**files, "SHA256SUMS": sums.encode()}.items():
        (folder / file).write_bytes(content)
        written.append(folder / file)
    return written


if __name__ == "__main__":
    for path in write_release(RELEASE_ROOT, RELEASE_ROOT / "dist"):
        print(path.relative_to(RELEASE_ROOT))
