"""The reconciliation file of a period: the lines of its daily files, one after another, of one currency or all.

Written slice by slice as background work (docs/background-work.md). Each day's lines are those of its daily file
(reporting.reconciliation.daily_files), so that 30 files and the file of their 30 days never differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import date
from itertools import islice
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from gateway.access import permissions
from gateway.access.permissions import AccessScope, RowOwner
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.models import BackgroundWork
from reporting.models import ReconciliationFile
from reporting.reconciliation.daily_files import stream_daily_lines
from reporting.reconciliation.file_columns import render_csv_blocks

EXPORT_FILE_PERMISSION: Final = "reporting.export_reconciliationfile"
MAX_PERIOD_DAYS: Final = 366
PERIOD_CHUNK_LINES: Final = 10_000
"""Lines written at a time."""
MAX_SLICE_LINES: Final = 20_000
"""A slice begins no further day after so many lines."""


def list_period_files(merchants: Collection[UUID], first: date, last: date) -> QuerySet[ReconciliationFile]:
    """The daily files of the period, each merchant's by day."""
    found = ReconciliationFile.objects.filter(merchant__in=merchants, day__range=(first, last))
    return found.select_related("merchant").order_by("merchant_id", "day")


def write_period_slice(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Write some of the days; after the last, the whole file. The cursor's ``after``: the last merchant and day."""
    asked = row.parameters
    merchants = frozenset(UUID(text) for text in asked["merchants"])
    scope = permissions.find_access_scope(get_user_model().objects.get(pk=row.owner_id), EXPORT_FILE_PERMISSION)
    if not all(scope.covers(RowOwner(merchant=one)) for one in merchants):
        raise queue.WorkFailedError("Your right to export reconciliation files was taken away.")
    owned = permissions.serialize_access_scope(AccessScope(merchants=merchants))
    cursor: dict[str, Any] = {"parts": [], "after": None, "rows": 0, "days": 0, "scopes": [owned], **row.cursor}
    files = list_period_files(merchants, date.fromisoformat(asked["from"]), date.fromisoformat(asked["to"]))
    total = None if row.cursor else files.count()
    name = f"reconciliation_{asked['from']}_{asked['to']}{'_' + asked['currency'] if asked['currency'] else ''}.csv"
    begun, finished = cursor["rows"], True
    for file in _behind(files, cursor["after"]).iterator():
        if cursor["rows"] - begun > MAX_SLICE_LINES:
            finished = False
            break
        _write_day(file, asked["currency"], folder, cursor, alive)
        cursor |= {"after": [file.merchant_id.hex, file.day.isoformat()], "days": cursor["days"] + 1}
    if not finished:
        return queue.SliceResult(done=cursor["days"], cursor=cursor, total=total)
    whole = folder.joined(cursor["parts"], name, alive)
    return queue.SliceResult(done=cursor["days"], cursor=cursor, total=cursor["days"], finished=True, file=whole)


def _behind(files: QuerySet[ReconciliationFile], after: list[str] | None) -> QuerySet[ReconciliationFile]:
    if after is None:
        return files
    merchant, day = UUID(after[0]), date.fromisoformat(after[1])
    return files.filter(Q(merchant__gt=merchant) | Q(merchant=merchant, day__gt=day))


def _write_day(
    file: ReconciliationFile, currency: str, folder: AttemptFolder, cursor: dict[str, Any], alive: Callable[[], None]
) -> None:
    lines = (line for line in stream_daily_lines(file) if not currency or line.settlement_currency == currency)
    while True:
        some = list(islice(lines, PERIOD_CHUNK_LINES))
        if some or not cursor["parts"]:
            blocks = list(render_csv_blocks(some))
            written = b"".join(blocks[1:] if cursor["parts"] else blocks)
            cursor["parts"] = folder.append(cursor["parts"], "period.csv", written)
            cursor["rows"] += len(some)
        alive()
        if len(some) < PERIOD_CHUNK_LINES:
            return


PERIOD_FILE: Final = queue.WorkKind(
    name="reconciliation period",
    about="the reconciliation files of a period as one",
    right=EXPORT_FILE_PERMISSION,
    step=write_period_slice,
)
