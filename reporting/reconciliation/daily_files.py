"""Reconciliation files: one for each merchant and day, written to the outbox and reproducible at any time.

A day's file has the records of the settlement files completed on that day, as they stood when the day ended. Its row is
inserted before the file is written and fixes everything the bytes depend on, so whoever writes it, and whenever, the
bytes are the same. Source: Part B, Reconciliation file; decisions, section 8; decision 0026.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import models, transaction
from django.db.models import Exists, Max, OuterRef, Q

from gateway.core import clock
from gateway.db.database_clock import read_database_time
from gateway.db.statement import execute_sql
from gateway.models import Merchant
from reporting.models import SettlementRecord
from reporting.reconciliation.file_columns import render_csv_blocks
from reporting.reconciliation.models import Delivery, ReconciliationFile, ReconciliationStart, SftpTarget
from reporting.settlement.record_queries import DisplayNames, SettlementLine, load_display_names, stream_recorded_lines

DAY_END_GRACE: Final = timedelta(minutes=5)
"""From a day's end until its file is written, so that settlement files done in the last moments are committed."""
"""Real time for writing one file; a million lines take less."""
MAX_DAYS_PER_RUN: Final = 31
"""Days of one merchant that one run writes; the next run continues."""
MAX_BACKFILL: Final = timedelta(days=366)
"""A longer gap is not filled with empty files: the next file begins where the last one ended."""
# Records carry real times. A merchant's clock may have been moved since, so its offset is stored with the file.
_FIRST_DAYS: Final = """
INSERT INTO reporting_reconciliationstart (merchant_id, day, "offset")
SELECT m.id, ((r.at + m.clock_offset) AT TIME ZONE m.time_zone)::date, m.clock_offset
FROM gateway_merchant m CROSS JOIN LATERAL (
    SELECT least(
        (SELECT recorded_at FROM reporting_settlementrecord WHERE merchant_id = m.id AND assigned_at IS NULL
            ORDER BY recorded_at LIMIT 1),
        (SELECT assigned_at FROM reporting_settlementrecord WHERE merchant_id = m.id AND assigned_at IS NOT NULL
            ORDER BY assigned_at LIMIT 1)
    ) AS at
) r
WHERE r.at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM reporting_reconciliationstart s WHERE s.merchant_id = m.id)
    AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid)
ON CONFLICT DO NOTHING
"""


class DayNotOverError(Exception):
    """The day is not over for the merchant, or before their first record: there is no file of it."""


class FileContentChangedError(Exception):
    """A file written again differs from the original: the data behind it was changed by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDigest:
    """Lines, size in bytes and SHA-256 of a written file."""

    lines: int
    size: int
    sha256: str


def compute_day_end(merchant: Merchant, day: date) -> datetime:
    """The moment, by the merchant's clock, at which their ``day`` ends."""
    midnight = datetime.combine(day + timedelta(days=1), time(), ZoneInfo(merchant.time_zone))
    return midnight.astimezone(UTC)


def render_daily_file(file: ReconciliationFile) -> Iterator[bytes]:
    """The bytes of a file in blocks; the same on every call."""
    yield from render_csv_blocks(stream_daily_lines(file))


def stream_daily_lines(file: ReconciliationFile) -> Iterator[SettlementLine]:
    """The lines of a file in their order; the same on every call."""
    return stream_recorded_lines(file.merchant, file.begins_at, file.ends_at, DisplayNames(**file.names))


# --- days -----------------------------------------------------------------------------------------------------------


def find_next_day(merchant: Merchant) -> date | None:
    """The merchant's first day without a file; None until something was settled for them."""
    last: date | None = ReconciliationFile.objects.filter(merchant=merchant).aggregate(day=Max("day"))["day"]
    if last is None:
        first = ReconciliationStart.objects.filter(merchant=merchant).first()
        if first is None or not SettlementRecord.objects.filter(merchant=merchant).exists():
            return None
        day = first.day
    else:
        day = last + timedelta(days=1)
    return _limit_backfill(merchant, day)


def _limit_backfill(merchant: Merchant, day: date) -> date:
    today = clock.merchant_now(merchant).astimezone(ZoneInfo(merchant.time_zone)).date()
    return max(day, today - MAX_BACKFILL)


def find_next_days(merchants: Collection[Merchant]) -> dict[UUID, date | None]:
    """:func:`find_next_day` of many merchants: one statement for those who have a file, some for those who have none
    yet."""
    files = ReconciliationFile.objects.filter(merchant__in=merchants)
    last = dict(files.order_by().values_list("merchant").annotate(day=Max("day")))
    return {
        one.pk: _limit_backfill(one, last[one.pk] + timedelta(days=1)) if one.pk in last else find_next_day(one)
        for one in merchants
    }


def record_first_days(merchant: Merchant | None = None) -> None:
    """Store the day of the first file for every merchant with settled records, before a clock is moved."""
    execute_sql(_FIRST_DAYS, {"merchant": merchant.pk if merchant is not None else None})


def next_daily_file_at(merchant: Merchant) -> datetime | None:
    """When the merchant's next file is due, by their clock; None if none is."""
    day = find_next_day(merchant)
    return None if day is None else daily_file_due_at(merchant, day)


def daily_file_due_at(merchant: Merchant, day: date) -> datetime:
    """When the file of this day is made, by the merchant's clock."""
    return compute_day_end(merchant, day) + DAY_END_GRACE


def create_due_daily_files(merchant: Merchant, most: int) -> list[ReconciliationFile]:
    """Insert the rows of completed days without a file. Two calls at once insert each row once."""
    begun: list[ReconciliationFile] = []
    while len(begun) < most and (day := find_next_day(merchant)) is not None:
        # The database's clock, which dates the settled lines too: no line falls into a day whose file is made.
        now = read_database_time()
        if now + merchant.clock_offset < daily_file_due_at(merchant, day):
            break
        last = ReconciliationFile.objects.filter(merchant=merchant).order_by("-day").first()
        before = last if last is not None else ReconciliationStart.objects.get(merchant=merchant)
        offset = merchant.clock_offset
        # If the clock was moved since the last file, the day ended about when it was moved: at the latest now.
        known = before.offset == offset
        end = compute_day_end(merchant, day) - offset if known else now
        start = last.ends_at if last is not None else compute_day_end(merchant, day - timedelta(days=1)) - before.offset
        names = load_display_names(Merchant.objects.select_related("division").get(pk=merchant.pk)).as_json()
        file, made = ReconciliationFile.objects.get_or_create(
            merchant=merchant,
            day=day,
            defaults={"begins_at": start, "ends_at": max(start, end), "names": names, "offset": offset},
        )
        if made:
            begun.append(file)
    return begun


def get_daily_file(merchant: Merchant, day: date) -> ReconciliationFile:
    """The file of a past day, created and written if it does not exist yet. Raises DayNotOverError."""
    while (file := ReconciliationFile.objects.filter(merchant=merchant, day=day).first()) is None:
        following = find_next_day(merchant)
        if following is None or day < following or not create_due_daily_files(merchant, MAX_DAYS_PER_RUN):
            raise DayNotOverError(_explain_missing(merchant, day, following))
    if file.written_at is None:
        write_daily_file(file)
        file.refresh_from_db()
    return file


def _explain_missing(merchant: Merchant, day: date, following: date | None) -> str:
    if following is None:
        return f"nothing was settled for {merchant.name} yet"
    if day < following:
        return f"{day} is before the first record of {merchant.name}"
    until = (compute_day_end(merchant, day) + DAY_END_GRACE).astimezone(ZoneInfo(merchant.time_zone))
    return f"{day} is over for {merchant.name} at {until:%Y-%m-%d %H:%M %Z}; the file is made then"


# --- writing --------------------------------------------------------------------------------------------------------


def build_outbox_path(file: ReconciliationFile) -> Path:
    """The path of a merchant's file below the outbox folder."""
    return Path(settings.GATEWAY_OUTBOX) / file.merchant_id.hex / file.name


def write_daily_file(file: ReconciliationFile) -> bool:
    """Write the file to the outbox, and create its delivery if the merchant has an SFTP target. False if another worker
    holds the file."""
    now = read_database_time()
    mine = now + timedelta(seconds=settings.GATEWAY_TIMER_LIMIT_S)  # its process is dead after that
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=now)
    unwritten = ReconciliationFile.objects.filter(pk=file.pk, written_at__isnull=True)
    if not unwritten.filter(free).update(lease_until=mine):
        return False
    written = write_atomically(build_outbox_path(file), render_daily_file(file))
    with transaction.atomic(durable=not transaction.get_connection().in_atomic_block):
        done = unwritten.filter(lease_until=mine).update(
            lines=written.lines, size=written.size, sha256=written.sha256, written_at=clock.real_now(), lease_until=None
        )
        if done and SftpTarget.objects.filter(merchant=file.merchant_id, active=True).exists():
            Delivery.objects.get_or_create(file=file, defaults={"due_at": clock.merchant_now(file.merchant)})
    return bool(done)


def write_atomically(path: Path, blocks: Iterable[bytes]) -> FileDigest:
    """Write ``blocks`` to ``path`` through a temporary file: all or nothing. Lines are counted without the header."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    digest, size, lines = hashlib.sha256(), 0, -1
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        with os.fdopen(descriptor, "wb") as opened:
            for block in blocks:
                opened.write(block)
                digest.update(block)
                size += len(block)
                lines += _count_rows(block)
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return FileDigest(lines=lines, size=size, sha256=digest.hexdigest())


def _count_rows(block: bytes) -> int:
    # A line break inside a value is at most a bare line feed: control characters never reach a record.
    return block.count(b"\r\n")


def ensure_outbox_file(file: ReconciliationFile) -> Path:
    """The path of the written file, which is written again if it is missing or was changed there. Raises
    FileContentChangedError."""
    path = build_outbox_path(file)
    with suppress(FileNotFoundError), path.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256:
            return path
    return rewrite_daily_file(file)


def rewrite_daily_file(file: ReconciliationFile, path: Path | None = None) -> Path:
    """Write a file once more, to the outbox or to ``path``. Raises FileContentChangedError if its bytes differ from the
    original."""
    target = path or build_outbox_path(file)
    part = target.with_name(f".{target.name}.{uuid4().hex}.again")
    try:
        made = write_atomically(part, render_daily_file(file))
        if made.sha256 != file.sha256:
            raise FileContentChangedError(f"{file.name}: {made.sha256[:16]}… instead of {file.sha256[:16]}…")
        part.replace(target)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    return target


# --- the timer ------------------------------------------------------------------------------------------------------


def write_due_daily_files(merchant: Merchant | None = None) -> int:
    """Write the files of days that are over. Returns how many."""
    settled = Exists(SettlementRecord.objects.filter(merchant=OuterRef("pk")))
    merchants = [merchant] if merchant is not None else list(Merchant.objects.filter(settled))
    record_first_days(merchant)
    for one in merchants:
        create_due_daily_files(one, MAX_DAYS_PER_RUN)
    waiting: models.QuerySet[ReconciliationFile] = ReconciliationFile.objects.filter(written_at__isnull=True)
    if merchant is not None:
        waiting = waiting.filter(merchant=merchant)
    return sum(write_daily_file(file) for file in waiting.select_related("merchant").order_by("day")[:MAX_DAYS_PER_RUN])
