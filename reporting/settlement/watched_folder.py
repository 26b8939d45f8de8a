"""Takes in settlement files from a watched folder, where an acquirer's file transfer puts them.

<folder>/<key of the institute>/ holds one folder per institute; a file is moved to done/ or failed/ below it by an
atomic rename, with a .txt that says why it failed. A file that is still growing waits for the next poll, and so does
one whose name marks it as being written (a leading dot, .part, .tmp, .filepart).
"""

from __future__ import annotations

import os
import stat
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

import structlog
from django.conf import settings
from django.db import DatabaseError

from gateway.access import audit_log
from gateway.core import clock
from gateway.models import Merchant
from gateway.timers import wakeup
from reporting.settlement import files
from reporting.settlement.formats.port import UnreadableFileError
from reporting.settlement.models import ClearingInstitute, SettlementFile

UNCHANGED_BEFORE_INTAKE_S: Final = 10.0
"""Seconds that a file must be unchanged; senders that rename complete files in place are safe anyway."""
MAX_FOLDER_FILES_PER_RUN: Final = 50
INCOMPLETE_SUFFIXES: Final = (".part", ".tmp", ".filepart", ".txt")
INTAKE_TIMER: Final = "settlement files"
"""The timer that reads the files taken in."""
WATCHED_FOLDER_ACTOR: Final = audit_log.Actor(name="watched folder")

log = structlog.get_logger(__name__)


def take_in_folder_files(merchant: Merchant | None = None) -> int:
    """Take in the files of all folders. Returns how many were moved away."""
    if not settings.GATEWAY_SETTLEMENT_FOLDER or merchant is not None:
        return 0
    root = Path(settings.GATEWAY_SETTLEMENT_FOLDER)
    moved = 0
    for institute in ClearingInstitute.objects.filter(active=True):
        folder = root / institute.key
        if not folder.is_dir():
            continue
        whole = (path for path in sorted(folder.iterdir()) if _is_whole(path))
        for path in islice(whole, MAX_FOLDER_FILES_PER_RUN):
            try:
                moved += _take_file(path, institute)
            except OSError as fault:  # this file cannot be moved away; the others can
                log.warning("settlement_file_not_moved", file=path.name, why=fault.strerror)
    return moved


def _is_whole(path: Path) -> bool:
    """True for a plain file, not a link, that is not being written."""
    if path.name.startswith(".") or path.name.lower().endswith(INCOMPLETE_SUFFIXES):
        return False
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and clock.real_now().timestamp() - found.st_mtime >= UNCHANGED_BEFORE_INTAKE_S


def _take_file(path: Path, institute: ClearingInstitute) -> bool:
    """Receive a file and move it away. If two workers poll at once, the second finds the same bytes, or no file."""
    try:
        with _open_file(path) as stream:
            try:
                files.receive_file(
                    stream,
                    name=path.name,
                    institute=institute,
                    by=WATCHED_FOLDER_ACTOR,
                    source=SettlementFile.Source.FOLDER,
                )
            except files.DuplicateFileError as seen:
                return _move_file(path, "failed", str(seen))
            except UnreadableFileError as fault:
                return _move_file(path, "failed", str(fault))
    except OSError as fault:
        log.warning("settlement_file_unreadable", file=path.name, why=fault.strerror)
        return False
    except DatabaseError:
        raise
    except Exception:  # our own error with one file must not block all others
        log.exception("settlement_file_not_received", file=path.name)
        return _move_file(path, "failed", "an internal error; the log has it")
    wakeup.notify_timer(INTAKE_TIMER)
    return _move_file(path, "done")


def _open_file(path: Path) -> BinaryIO:
    """Open a file without following links: one put in its place is refused."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")


def _move_file(path: Path, where: str, why: str = "") -> bool:
    """Rename into done/ or failed/, with a suffix if the name is taken."""
    folder = path.parent / where
    folder.mkdir(exist_ok=True)
    target = folder / path.name
    if target.exists():
        target = folder / f"{clock.real_now():%Y%m%dT%H%M%S%f}-{path.name}"
    try:
        path.rename(target)
    except FileNotFoundError:
        return False
    if why:
        target.with_name(f"{target.name}.txt").write_text(f"{why}\n", encoding="utf-8")
        log.warning("settlement_file_refused", file=path.name, why=why)
    return True
