"""Builds the wheel for pip and uv, of a checkout or an unpacked sdist: ``pip install .`` (PEP 517)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from config.release.server_package import build_server_sdist, build_server_wheel

_ROOT: Final = Path(__file__).resolve().parents[2]
# The arguments have the names of PEP 517, which calls them by name; settings and metadata change nothing here.


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:  # noqa: ARG001
    """Write the wheel; returns its file name."""
    name, content = build_server_wheel(_ROOT)
    (Path(wheel_directory) / name).write_bytes(content)
    return name


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:  # noqa: ARG001
    """Write the sdist; returns its file name."""
    name, content = build_server_sdist(_ROOT)
    (Path(sdist_directory) / name).write_bytes(content)
    return name
