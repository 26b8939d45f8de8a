"""The client packages as files to install: a wheel and an sdist, an npm tarball, a zip for Composer.

Built of the folder clients/ of the sources, the same bytes each time; the docs offer them for download and
`make release` writes them. Formats: packaging.python.org (binary distribution format, core metadata),
docs.npmjs.com (package.json), getcomposer.org (artifact repositories). See docs/decisions/0080.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[2]
CLIENTS_DIR: Final = _ROOT / "clients"
_LICENSE: Final = _ROOT / "LICENSE"
_TEXTS: Final = ("README.md", "CHANGELOG.md")
_MODE: Final = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPackage:
    """A package: ``language`` and ``needs`` for people; ``install``: the command behind which its address is put."""

    language: str
    file: str
    needs: str
    install: str
    build: Callable[[], bytes]


@cache
def list_client_packages() -> Mapping[str, ClientPackage]:
    """File name → package."""
    python = _read_python_project()
    node = json.loads((CLIENTS_DIR / "javascript/package.json").read_text(encoding="utf-8"))
    composer = json.loads((CLIENTS_DIR / "php/composer.json").read_text(encoding="utf-8"))
    stem = f"{python['name'].replace('-', '_')}-{python['version']}"
    rows = (
        ("Python", f"{stem}-py3-none-any.whl", "Python 3.11 or newer", "pip install", _build_wheel),
        ("Python, sources", f"{stem}.tar.gz", "Python 3.11 or newer", "pip install", _build_sdist),
        ("JavaScript", f"tollhouse-client-{node['version']}.tgz", "Node.js 18 or newer", "npm install", _build_npm),
        ("PHP", f"tollhouse-client-{composer['version']}.zip", "PHP 8.1 or newer", "curl -O", _build_composer),
    )
    return {
        file: ClientPackage(language=language, file=file, needs=needs, install=install, build=cache(build))
        for language, file, needs, install, build in rows
    }


def _read_python_project() -> dict[str, Any]:
    text = (CLIENTS_DIR / "python/pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def _list_files(folder: str, *patterns: str) -> Iterator[tuple[str, bytes]]:
    """(path below the folder, content) of a package's own files, in order, and its licence."""
    root = CLIENTS_DIR / folder
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    for path in sorted(found):
        if "__pycache__" not in path.parts:
            yield path.relative_to(root).as_posix(), path.read_bytes()
    yield "LICENSE", _LICENSE.read_bytes()


def _zip(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = _MODE << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return buffer.getvalue()


def _tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), _MODE
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def _build_metadata() -> bytes:
    project = _read_python_project()
    extras: Mapping[str, list[str]] = project["optional-dependencies"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        *(f"Classifier: {one}" for one in project["classifiers"]),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {one}" for one in project["dependencies"]),
        *(f"Provides-Extra: {name}" for name in extras),
        *(f"Requires-Dist: {one} ; extra == '{name}'" for name, several in extras.items() for one in several),
        "Description-Content-Type: text/markdown",
        "",
        (CLIENTS_DIR / "python/README.md").read_text(encoding="utf-8"),
    ]
    return "\n".join(lines).encode()


def _build_wheel() -> bytes:
    project = _read_python_project()
    info = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    files = {
        (f"{info}/licenses/LICENSE" if name == "LICENSE" else name.removeprefix("src/")): content
        for name, content in _list_files("python", "src/**/*.py", "src/**/py.typed")
    }
    files |= {
        f"{info}/METADATA": _build_metadata(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tollhouse\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{scripts}".encode(),
    }
    rows = [f"{name},sha256={_hash(content)},{len(content)}\n" for name, content in files.items()]
    files[f"{info}/RECORD"] = f"{''.join(rows)}{info}/RECORD,,\n".encode()
    return _zip(files)


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _build_sdist() -> bytes:
    project = _read_python_project()
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    files = dict(_list_files("python", "src/**/*.py", "src/**/py.typed", "pyproject.toml", *_TEXTS))
    return _tar({f"{stem}/{name}": content for name, content in {**files, "PKG-INFO": _build_metadata()}.items()})


def _build_npm() -> bytes:
    files = _list_files("javascript", "*.cjs", "*.mjs", "*.cts", "*.mts", "package.json", *_TEXTS)
    return _tar({f"package/{name}": content for name, content in files})


def _build_composer() -> bytes:
    return _zip(dict(_list_files("php", "src/**/*.php", "composer.json", *_TEXTS)))
