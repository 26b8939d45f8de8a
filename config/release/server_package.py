"""The gateway itself as a wheel: ``pip install tollhouse`` brings the command ``tollhouse``.

The tree of the sources lies below one package, tollhouse_server, as it is in a checkout (without tests): so an
environment has one name more at its top level, and settings, docs and templates are found the same way in both.
Extras: ``embedded``, the database and broker that ``tollhouse run`` brings up by itself; ``otel``, traces; ``sentry``,
error reports. The same bytes each time.
Format: packaging.python.org, binary distribution format.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from gateway.portal.client_packages import WheelProject, pack_tar, pack_wheel

SERVER_PACKAGE: Final = "tollhouse_server"
_FOLDERS: Final = (
    "config", "gateway", "checkout", "reporting", "chargebacks", "templates", "static", "docs", "clients",
)  # fmt: skip
_FILES: Final = ("manage.py", "pyproject.toml", "requirements.lock", "LICENSE", "README.md", "CHANGELOG.md")
_EXTRAS: Final = ("embedded", "otel", "sentry")
"""Extras of an installation; the others are a developer's."""
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})
_ENTRY: Final = "config/installed/entry.py"
"""The file that is the package's own __init__.py."""


def build_server_wheel(root: Path) -> tuple[str, bytes]:
    """(file name, content) of the gateway's wheel, of the sources below ``root``."""
    wheel = _describe_server(root)
    files = {f"{SERVER_PACKAGE}/{name}": content for name, content in _list_sources(root)}
    files[f"{SERVER_PACKAGE}/__init__.py"] = (root / _ENTRY).read_bytes()
    return wheel.file_name, pack_wheel(wheel, files, licence=(root / "LICENSE").read_bytes())


def build_server_sdist(root: Path) -> tuple[str, bytes]:
    """(file name, content) of the sources: what the wheel holds, in its own folders, and what builds it; no tests."""
    server = _describe_server(root)
    files = {**dict(_list_sources(root)), "PKG-INFO": server.metadata()}
    return f"{server.stem}.tar.gz", pack_tar({f"{server.stem}/{name}": content for name, content in files.items()})


def _describe_server(root: Path) -> WheelProject:
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: Mapping[str, list[str]] = project["optional-dependencies"]
    return WheelProject(
        name=project["name"],
        version=project["version"],
        description=project["description"],
        license="Apache-2.0",
        requires_python=project["requires-python"],
        dependencies=project["dependencies"],
        extras={name: extras[name] for name in _EXTRAS},
        scripts={"tollhouse": f"{SERVER_PACKAGE}:main"},
        readme=(root / "README.md").read_text(encoding="utf-8"),
    )


def _list_sources(root: Path) -> Iterator[tuple[str, bytes]]:
    for name in _FILES:
        yield name, (root / name).read_bytes()
    for path in _list_folder_files(root):
        if path.is_file() and not _LEFT_OUT & set(path.parts) and path.suffix not in (".pyc", ".map"):
            yield path.relative_to(root).as_posix(), path.read_bytes()


def _list_folder_files(root: Path) -> list[Path]:
    """What lies below the folders. In a checkout only the files in git: any other file there may be secret."""
    if not (root / ".git").exists() or shutil.which("git") is None:
        return sorted(path for folder in _FOLDERS for path in (root / folder).rglob("*"))
    command = ["git", "-C", str(root), "ls-files", "-z", "--", *_FOLDERS]
    listed = subprocess.run(command, check=True, capture_output=True).stdout
    return sorted(root / os.fsdecode(name) for name in listed.split(b"\0") if name)
