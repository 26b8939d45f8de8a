"""Files of a folder that others put files into: which are complete, and moving them into done/ or failed/ below it.

Senders mark a file that they are still writing by its name (a leading dot, .part, .tmp, .filepart), or rename it into
the folder when it is complete. A refused file gets a .txt beside it that says why.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from gateway.core import clock

INCOMPLETE_SUFFIXES: Final = (".part", ".tmp", ".filepart", ".txt")


def is_complete_file(path: Path, unchanged_s: float) -> bool:
    """True for a regular file, not a link, that has not been written to for ``unchanged_s`` seconds."""
    if path.name.startswith(".") or path.name.lower().endswith(INCOMPLETE_SUFFIXES):
        return False
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and clock.real_now().timestamp() - found.st_mtime >= unchanged_s


def open_watched_file(path: Path) -> BinaryIO:
    """Open a file without following links: one put in its place is refused."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")


def move_watched_file(path: Path, where: str, why: str = "", *, folder_mode: int = 0o777) -> bool:
    """Move a file into the subfolder ``where`` of its folder, under a new name if the name is taken there. False if
    another process has moved it."""
    folder = path.parent / where
    folder.mkdir(exist_ok=True, mode=folder_mode)
    target = folder / path.name
    if target.exists():
        target = folder / f"{clock.real_now():%Y%m%dT%H%M%S%f}-{path.name}"
    try:
        path.rename(target)
    except FileNotFoundError:
        return False
    if why:
        target.with_name(f"{target.name}.txt").write_text(f"{why}\n", encoding="utf-8")
    return True
