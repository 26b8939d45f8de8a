"""The build number in every answer: `<40 hex>@yyyy-MM-dd HH:mm:ss +0000` (Part B, Payment response)."""

from __future__ import annotations

import hashlib
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

MAX_GIT_S = 5
BUILD_SOURCES = ("manage.py", "requirements.lock", "config", "gateway", "checkout", "reporting", "chargebacks")
BUILD_SUFFIXES = frozenset((".py", ".lock", ".html", ".json"))


def compute_build_number(root: Path) -> str:
    """The last commit and its time; without git, a hash of the sources and the time of the newest."""
    commit, seconds = _from_git(root) or hash_sources(root)
    return f"{commit}@{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} +0000"


def _from_git(root: Path) -> tuple[str, int] | None:
    if not (root / ".git").exists():  # an export inside some other repository is not of that commit
        return None
    command = ["git", "-C", str(root), "log", "-1", "--format=%H %ct"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=MAX_GIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.fullmatch(r"([0-9a-f]{40}) ([0-9]+)", said.stdout.strip())
    return (found[1], int(found[2])) if found else None


def hash_sources(root: Path) -> tuple[str, int]:
    """A SHA-1 of the sources, 40 hex digits, and when the newest was changed, in seconds since 1970."""
    digest = hashlib.sha1(usedforsecurity=False)
    newest = 0.0
    for top in BUILD_SOURCES:
        start = root / top
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if path.suffix in BUILD_SUFFIXES and path.is_file():
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
                newest = max(newest, path.stat().st_mtime)
    return digest.hexdigest(), int(newest)
