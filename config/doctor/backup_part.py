"""The age of the newest back-up, where its folder can be seen from here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from config.doctor.findings import DoctorQuestion, PartFinding, error, judge, skipped
from gateway.core import clock

MAX_BACKUP_AGE: Final = timedelta(hours=30)
_NAME: Final = re.compile(r"(\d{8})[T-](\d{6})(?:Z|F|F_\d{8}-\d{6}[DI])?")
"""Folders of base-backup.sh (20260101T020000Z) and of pgBackRest (20260101-020000F, …F_20260102-020000I)."""


def examine_backups(question: DoctorQuestion) -> Iterator[PartFinding]:
    """Whether the newest back-up is at most thirty hours old. That it can be restored only a restore shows."""
    folder = question.backups
    if folder is None:
        yield skipped("Back-ups were not looked at.", "Give their folder: tollhouse doctor --backups /srv/backup")
        return
    if not folder.is_dir():
        yield error(f"{folder} is no folder that can be read.", "Mount it, or give the right one.")
        return
    found = [at for path in folder.iterdir() if (at := _parse_moment(path)) is not None]
    newest = max(found, default=None)
    mend = "systemctl start tollhouse-backup, and see its log; `pgbackrest info` with pgBackRest."
    if newest is None:
        yield error(f"{folder} holds no back-up.", mend)
        return
    hours = int((clock.real_now() - newest).total_seconds() // 3600)
    about = f"The newest of {len(found)} back-ups is {hours} hours old."
    yield judge(clock.real_now() - newest <= MAX_BACKUP_AGE, about, error(about, mend))


def _parse_moment(path: Path) -> datetime | None:
    """When a back-up began; an increment's own time, not that of its full one."""
    name = path.name.rpartition("_")[2]
    match = _NAME.fullmatch(path.name) and re.match(r"(\d{8})[T-](\d{6})", name)
    if not match or not path.is_dir():
        return None
    try:
        return datetime.strptime("".join(match.groups()), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
