"""The client packages and plug-ins as files to install: wheels and an sdist, an npm tarball, zips.

Built of the folder clients/ of the sources, the same bytes each time; the docs offer them for download and
`make release` writes them. Formats: packaging.python.org (binary distribution format, core metadata),
docs.npmjs.com (package.json), getcomposer.org (artifact repositories). See docs/decisions/0080 and 0078.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]
CLIENTS_DIR: Final = _ROOT / "clients"
_LICENSE: Final = _ROOT / "LICENSE"
_TEXTS: Final = ("README.md", "CHANGELOG.md")
_PYTHON_SOURCES: Final = ("src/**/*.py", "src/**/py.typed", "src/**/*.mo")
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
    python = describe_python_package("python")
    node = json.loads((CLIENTS_DIR / "javascript/package.json").read_text(encoding="utf-8"))
    composer = json.loads((CLIENTS_DIR / "php/composer.json").read_text(encoding="utf-8"))
    rows = (
        ("Python", python.file_name, "Python 3.11 or newer", "pip install", _build_wheel),
        ("Python, sources", f"{python.stem}.tar.gz", "Python 3.11 or newer", "pip install", _build_sdist),
        ("JavaScript", f"tollhouse-client-{node['version']}.tgz", "Node.js 18 or newer", "npm install", _build_npm),
        ("PHP", f"tollhouse-client-{composer['version']}.zip", "PHP 8.1 or newer", "curl -O", _build_composer),
    )
    return {
        file: ClientPackage(language=language, file=file, needs=needs, install=install, build=cache(build))
        for language, file, needs, install, build in rows
    }


@cache
def list_plug_ins() -> Mapping[str, ClientPackage]:
    """File name → plug-in for a shop system of others; ``language`` is its name."""
    python = map(_describe_python_plug_in, ("django-payments", "pretix"))
    return {one.file: one for one in (*python, _describe_woocommerce_plug_in())}


def _describe_python_plug_in(name: str) -> ClientPackage:
    folder = f"plugins/{name}"
    return ClientPackage(
        language=name,
        file=describe_python_package(folder).file_name,
        needs="Python 3.11 or newer",
        install="pip install",
        build=cache(partial(_build_wheel, folder)),
    )


def _describe_woocommerce_plug_in() -> ClientPackage:
    program = (CLIENTS_DIR / "plugins/woocommerce/tollhouse-woocommerce.php").read_text(encoding="utf-8")
    (version,) = re.findall(r"^ \* Version: (\S+)$", program, re.MULTILINE)
    return ClientPackage(
        language="WooCommerce",
        file=f"tollhouse-woocommerce-{version}.zip",
        needs="PHP 8.1 or newer",
        install="curl -O",
        build=cache(_build_woocommerce_plug_in),
    )


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


def pack_tar(files: Mapping[str, bytes]) -> bytes:
    """A tar.gz of path → content, the same bytes each time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), _MODE
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def _build_wheel(folder: str = "python") -> bytes:
    sources = _list_files(folder, *_PYTHON_SOURCES)
    files = {name.removeprefix("src/"): content for name, content in sources}
    licence = files.pop("LICENSE")
    return pack_wheel(describe_python_package(folder), files, licence=licence)


def describe_python_package(folder: str) -> WheelProject:
    """What a Python package says of itself. ``folder``: below clients/."""
    project = tomllib.loads((CLIENTS_DIR / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return WheelProject(
        name=project["name"],
        version=project["version"],
        description=project["description"],
        license=project["license"],
        requires_python=project["requires-python"],
        dependencies=project["dependencies"],
        extras=project.get("optional-dependencies", {}),
        scripts=project.get("scripts", {}),
        entry_points=project.get("entry-points", {}),
        readme=(CLIENTS_DIR / folder / "README.md").read_text(encoding="utf-8"),
        keywords=project["keywords"],
        classifiers=project["classifiers"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelProject:
    """What a wheel says of itself: the members of pyproject.toml's table ``project``."""

    name: str
    version: str
    description: str
    license: str
    requires_python: str
    dependencies: Sequence[str]
    extras: Mapping[str, Sequence[str]]
    scripts: Mapping[str, str]
    readme: str
    keywords: Sequence[str] = ()
    classifiers: Sequence[str] = ()
    entry_points: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """Name and version as they stand in file names."""
        return f"{self.name.replace('-', '_')}-{self.version}"

    @property
    def file_name(self) -> str:
        """The file name of the wheel."""
        return f"{self.stem}-py3-none-any.whl"

    def metadata(self) -> bytes:
        """The file METADATA, which is PKG-INFO of an sdist, too."""
        lines = [
            "Metadata-Version: 2.4",
            f"Name: {self.name}",
            f"Version: {self.version}",
            f"Summary: {self.description}",
            *([f"Keywords: {','.join(self.keywords)}"] if self.keywords else []),
            f"License-Expression: {self.license}",
            "License-File: LICENSE",
            *(f"Classifier: {one}" for one in self.classifiers),
            f"Requires-Python: {self.requires_python}",
            *(f"Requires-Dist: {one}" for one in self.dependencies),
            *(f"Provides-Extra: {name}" for name in self.extras),
            *(f"Requires-Dist: {one} ; extra == '{name}'" for name, several in self.extras.items() for one in several),
            "Description-Content-Type: text/markdown",
            "",
            self.readme,
        ]
        return "\n".join(lines).encode()


def pack_wheel(project: WheelProject, files: Mapping[str, bytes], *, licence: bytes) -> bytes:
    """A wheel of pure Python. ``files``: path below site-packages → content."""
    info = f"{project.stem}.dist-info"
    groups = {"console_scripts": project.scripts, **project.entry_points}
    sections = (
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in rows.items())
        for group, rows in groups.items()
    )
    whole = {
        **files,
        f"{info}/licenses/LICENSE": licence,
        f"{info}/METADATA": project.metadata(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tollhouse\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(sections).encode(),
    }
    rows = [f"{name},sha256={_hash(content)},{len(content)}\n" for name, content in whole.items()]
    whole[f"{info}/RECORD"] = f"{''.join(rows)}{info}/RECORD,,\n".encode()
    return _zip(whole)


def _hash(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")


def _build_sdist() -> bytes:
    project = describe_python_package("python")
    files = {**dict(_list_files("python", *_PYTHON_SOURCES, "pyproject.toml", *_TEXTS)), "PKG-INFO": project.metadata()}
    return pack_tar({f"{project.stem}/{name}": content for name, content in files.items()})


def _build_npm() -> bytes:
    files = _list_files("javascript", "*.cjs", "*.mjs", "*.cts", "*.mts", "package.json", *_TEXTS)
    return pack_tar({f"package/{name}": content for name, content in files})


def _build_composer() -> bytes:
    return _zip(dict(_list_files("php", "src/**/*.php", "composer.json", *_TEXTS)))


def _build_woocommerce_plug_in() -> bytes:
    """Build the plug-in as a zip with the PHP client in it: WordPress installs no packages."""
    files = dict(_list_files("plugins/woocommerce", "*.php", "includes/*.php", "assets/*.js", *_TEXTS))
    client = {
        f"client/{name.removeprefix('src/')}": content
        for name, content in _list_files("php", "src/**/*.php")
        if name != "LICENSE"
    }
    return _zip({f"tollhouse-woocommerce/{name}": content for name, content in (files | client).items()})
