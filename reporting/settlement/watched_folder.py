"""Takes in settlement files from a watched folder, where an acquirer's file transfer puts them.

<folder>/<key of the institute>/ holds one folder per institute. A file that is still being written waits for the next
poll (gateway.core.watched_folder).
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

import structlog
from django.conf import settings
from django.db import DatabaseError

from gateway.access import audit_log
from gateway.core.watched_folder import is_complete_file, move_watched_file, open_watched_file
from gateway.timers import wakeup
from reporting.settlement import files
from reporting.settlement.formats.port import UnreadableFileError
from reporting.settlement.models import ClearingInstitute, SettlementFile

UNCHANGED_BEFORE_INTAKE_S: Final = 10.0
"""Seconds that a file must be unchanged; senders that rename complete files in place are safe anyway."""
MAX_FOLDER_FILES_PER_RUN: Final = 50
INTAKE_TIMER: Final = "settlement files"
"""The timer that reads the files taken in."""
WATCHED_FOLDER_ACTOR: Final = audit_log.Actor(name="watched folder")

log = structlog.get_logger(__name__)


def take_in_folder_files() -> int:
    """Take in the files of all folders. Returns how many were moved away."""
    if not settings.GATEWAY_SETTLEMENT_FOLDER:
        return 0
    root = Path(settings.GATEWAY_SETTLEMENT_FOLDER)
    moved = 0
    for institute in ClearingInstitute.objects.filter(active=True):
        folder = root / institute.key
        if not folder.is_dir():
            continue
        whole = (path for path in sorted(folder.iterdir()) if is_complete_file(path, UNCHANGED_BEFORE_INTAKE_S))
        for path in islice(whole, MAX_FOLDER_FILES_PER_RUN):
            try:
                moved += _take_file(path, institute)
            except OSError as fault:  # this file cannot be moved away; the others can
                log.warning("settlement_file_not_moved", file=path.name, why=fault.strerror)
    return moved


def _take_file(path: Path, institute: ClearingInstitute) -> bool:
    """Receive a file and move it away. If two workers poll at once, the second finds the same bytes, or no file."""
    try:
        with open_watched_file(path) as stream:
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


def _move_file(path: Path, where: str, why: str = "") -> bool:
    moved = move_watched_file(path, where, why)
    if moved and why:
        log.warning("settlement_file_refused", file=path.name, why=why)
    return moved
