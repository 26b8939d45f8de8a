"""Reads a settlement file to its end, and resumes after a worker was killed.

A batch of lines is one transaction: its records, matches and findings, its faulty lines, and the position in the file.
So the next worker resumes after the last batch, and no line is written twice or left out. A faulty line is stored and
shown; it never stops the file. One worker at a time, by a lease that every batch renews.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, BinaryIO, Final
from uuid import UUID

import psycopg
import structlog
from django.db import connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from gateway.db.database_clock import read_database_time
from reporting.reconciliation import daily_files
from reporting.settlement import chargeback_booking, files, findings
from reporting.settlement.formats import FILE_FORMATS
from reporting.settlement.formats.port import OpenedFile, ParsedLine, UnreadableFileError, translate_parser_errors
from reporting.settlement.layout import FILE_COLUMN_BY_STAGED, LineFault, LineReader
from reporting.settlement.matching import MAX_LINE_NUMBER, MatchingRun
from reporting.settlement.models import LineError, Match, SettlementFile
from reporting.settlement.read_ahead import ReadAhead

SettlementFileState = SettlementFile.State

INTAKE_BATCH_LINES: Final = 20_000
MAX_LINE_ERRORS: Final = 1_000
"""Faulty lines stored for one file; all are counted."""
INTAKE_LEASE: Final = timedelta(minutes=5)
"""Longer than any batch takes; after it another worker takes over from one that died."""
MAX_INTAKE_TRIES: Final = 5
"""How often a file may be begun without getting any further, by an error of ours or because its process was killed,
before it is marked as failed."""
MATCHING_SLICE_RECORDS: Final = 20_000
"""Records without a match that one transaction of the second pass looks at."""
UNFINISHED_STATES: Final = (
    SettlementFileState.RECEIVED,
    SettlementFileState.READING,
    SettlementFileState.MATCHING,
    SettlementFileState.BOOKING,
)

log = structlog.get_logger(__name__)


class IntakeLeaseLostError(Exception):
    """Another worker holds this file: this worker's lease had expired."""


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Lines to be written: ``text`` of COPY, ``errors`` to be stored. ``last``: the line read last."""

    text: bytes = b""
    errors: list[LineError] = field(default_factory=list)
    faults: int = 0
    last: ParsedLine | None = None


def process_due_files() -> int:
    """Read every waiting file. Returns how many were completed."""
    waiting = SettlementFile.objects.filter(
        Q(lease_until=None) | Q(lease_until__lte=Now()), state__in=UNFINISHED_STATES
    )
    in_order = waiting.order_by("tries", "received_at")  # one that stops its worker keeps no other waiting
    return sum(process_file(file) for file in in_order.values_list("pk", flat=True)[:100])


def process_file(ident: UUID) -> bool:
    """Read, match and book one file. False if another worker holds it, or it cannot be done now."""
    file = _lease_file(ident)
    if file is None:
        return False
    if file.tries > MAX_INTAKE_TRIES:
        _fail(file, f"begun {MAX_INTAKE_TRIES} times, each time the worker ended before it got any further")
        return False
    try:
        if file.state in (SettlementFileState.RECEIVED, SettlementFileState.READING):
            _read_file(file)
        if file.state == SettlementFileState.MATCHING:
            _match_file(file)
        chargeback_booking.book_chargebacks(file, lambda: _update_file(file))
        daily_files.record_first_days()
        _update_file(file, state=SettlementFileState.DONE, finished_at=read_database_time(), lease_until=None)
    except IntakeLeaseLostError:
        return False
    except UnreadableFileError as fault:
        _fail(file, str(fault))
        if file.state != SettlementFileState.FAILED:
            return False
    except Exception:
        log.exception("settlement_file_failed", file=file.id.hex)
        _try_again(file)
        return False
    files.delete_content(file)
    return True


def _lease_file(ident: UUID) -> SettlementFile | None:
    """Lease the file for this worker, which counts as a try; None if it is not available."""
    free = SettlementFile.objects.filter(
        Q(lease_until=None) | Q(lease_until__lte=Now()), pk=ident, state__in=UNFINISHED_STATES
    )
    # Counted here, since a worker that is killed counts nothing at its end.
    if not free.update(lease_until=Now() + INTAKE_LEASE, tries=F("tries") + 1):
        return None
    return SettlementFile.objects.select_related("institute").get(pk=ident)


def _update_file(file: SettlementFile, **changes: Any) -> None:
    """Change the file and renew the lease, if this worker still holds it. Raises IntakeLeaseLostError."""
    changes.setdefault("lease_until", read_database_time() + INTAKE_LEASE)
    mine = SettlementFile.objects.filter(pk=file.pk, lease_until=file.lease_until)
    if not mine.update(**changes):
        raise IntakeLeaseLostError
    for name, value in changes.items():
        setattr(file, name, value)


def _fail(file: SettlementFile, why: str) -> None:
    """Mark the file as failed, unless another worker holds it by now."""
    with contextlib.suppress(IntakeLeaseLostError):
        _update_file(
            file, state=SettlementFileState.FAILED, why=why[:500], finished_at=read_database_time(), lease_until=None
        )


def _try_again(file: SettlementFile) -> None:
    """After an error of ours or of the database: another worker retries when the lease ends, a limited number of
    times."""
    try:
        if file.tries >= MAX_INTAKE_TRIES:
            _fail(file, "an internal error; the log has it")
    except Exception:
        log.exception("settlement_file_lease_not_released", file=file.id.hex)


# --- reading -----------------------------------------------------------------------------------------------------


def _read_file(file: SettlementFile) -> None:
    """Read and write the file. A thread parses lines while the database writes the batch before, which saves half of
    the time."""
    opened: list[OpenedFile] = []

    def read(stream: BinaryIO) -> Iterator[_Batch]:
        with translate_parser_errors():
            opened.append(FILE_FORMATS[file.format].open(stream, *begun))
            yield from _read_batches(opened[0].lines, reader(), file, kept)

    def reader() -> LineReader:
        return LineReader(opened[0].present, file.institute.zone, file.institute.reason_codes)

    begun, kept = (file.lines, file.position), file.faults
    if file.state == SettlementFileState.RECEIVED:
        _update_file(file, state=SettlementFileState.READING, started_at=read_database_time())
    with MatchingRun(file) as work:
        batches = ReadAhead(partial(files.load_pieces, file), files.read_piece, file.size, read)
        for batch in batches:
            _write_batch(file, batch, work, batches.read_on)
    totals = {**file.totals, **opened[0].totals, "read": file.lines}
    said, why = totals.get("said"), ""
    if said is not None and said != totals.get("entries", file.lines):
        why = f"the file says that it has {said:,} lines; {totals.get('entries', file.lines):,} were there"
        log.warning("settlement_file_totals_differ", file=file.id.hex, said=said, read=file.lines)
    _update_file(file, state=SettlementFileState.MATCHING, totals=totals, why=why)


def _read_batches(
    lines: Iterator[ParsedLine], reading: LineReader, file: SettlementFile, kept: int
) -> Iterator[_Batch]:
    """Batches of lines. ``kept``: faulty lines stored before these."""
    batch, count = _Batch(), 0
    rows: list[str] = []
    for line in lines:
        batch.last = line
        row: Any = reading.read(line.number, line.values) if line.values is not None else list(line.faults)
        if isinstance(row[0], str):
            rows.append("\t".join(row))
        else:
            batch.faults += 1
            if kept < MAX_LINE_ERRORS:
                kept += 1
                batch.errors += _build_errors(file, line.number, row)
        count += 1
        if count == INTAKE_BATCH_LINES:
            batch.text = _join_rows(rows)
            yield batch
            batch, count = _Batch(), 0
            rows = []
    if count:
        batch.text = _join_rows(rows)
        yield batch


def _join_rows(rows: list[str]) -> bytes:
    """The text of COPY. No row has a line break: control characters are faults."""
    return "\n".join((*rows, "")).encode()


def _build_errors(file: SettlementFile, line: int, faults: list[LineFault]) -> list[LineError]:
    return [
        LineError(file=file, line=line, column=fault.column, value=fault.value, message=fault.message[:255])
        for fault in faults
    ]


def _write_batch(file: SettlementFile, batch: _Batch, work: MatchingRun, read_on: Callable[[], None]) -> None:
    """Write one batch, all or nothing. A line that the database refuses becomes a faulty one. ``read_on`` is called
    when the batch is sent and only the database is left to work."""
    try:
        _insert_batch(file, batch, work, read_on)
    except psycopg.DataError:
        if not _set_rejected_lines_aside(file, batch, work):
            raise
        _insert_batch(file, batch, work, read_on)


def _set_rejected_lines_aside(file: SettlementFile, batch: _Batch, work: MatchingRun) -> bool:
    """Turn lines that the database refuses into errors. Returns whether there were any."""
    rows = batch.text.decode().split("\n")[:-1]
    with transaction.atomic(durable=True):
        bad = work.find_rejected_rows(rows)
    log.error("settlement_lines_rejected", file=file.id.hex, lines=len(bad), columns=sorted({name for _, name in bad}))
    for place, column in bad[: MAX_LINE_ERRORS - min(MAX_LINE_ERRORS, file.faults + batch.faults)]:
        fault = LineFault(
            column=FILE_COLUMN_BY_STAGED.get(column, ""), value="", message="has a value that cannot be kept"
        )
        batch.errors += _build_errors(file, int(rows[place].partition("\t")[0]), [fault])
    batch.faults += len(bad)
    for place, _ in reversed(bad):
        del rows[place]
    batch.text = _join_rows(rows)
    return bool(bad)


def _insert_batch(file: SettlementFile, batch: _Batch, work: MatchingRun, read_on: Callable[[], None]) -> None:
    assert batch.last is not None
    now = read_database_time()
    with transaction.atomic(durable=True):
        counted: tuple[Any, ...] = (0, 0, 0, 0, None, None)
        if batch.text:
            work.stage_batch(batch.text)
            read_on()
            counted = work.match_batch(now)
            findings.detect_batch_findings(work, now)
        LineError.objects.bulk_create(batch.errors, batch_size=1_000)
        records, matched, multiple, unmatched, first, last = counted
        _update_file(
            file,
            tries=0,
            lines=batch.last.number,
            position=batch.last.position,
            records=file.records + records,
            faults=file.faults + batch.faults,
            matched=file.matched + matched,
            multiple=file.multiple + multiple,
            unmatched=file.unmatched + unmatched,
            first_settled=_earliest(min, file.first_settled, first),
            last_settled=_earliest(max, file.last_settled, last),
        )


def _earliest(choose: Any, *found: date | None) -> date | None:
    known = [one for one in found if one is not None]
    return choose(known) if known else None


# --- the second pass --------------------------------------------------------------------------------------------


_COUNTED: Final = """
SELECT count(*) FILTER (WHERE state = 'MATCHED'), count(*) FILTER (WHERE state = 'MULTIPLE_MATCHES'),
    count(*) FILTER (WHERE state = 'NOT_MATCHED') FROM reporting_settlementrecord WHERE file_id = %s"""


def _match_file(file: SettlementFile) -> None:
    """Match records that no recent id names: against older payments, references and amounts. In slices of lines, each a
    transaction, so that a worker that is killed loses one of them."""
    # A clerk may have worked on lines while the file was read, and its own counts are written over by each batch.
    counted = count_by_match_state(file)
    if counted["unmatched"]:
        with MatchingRun(file) as work:
            while (last := work.find_slice_end(file.match_line, MATCHING_SLICE_RECORDS)) is not None:
                with transaction.atomic(durable=True):
                    rematch_file(file, work, read_database_time(), after=file.match_line, last=last)
                    _update_file(file, match_line=last, tries=0)
        counted = count_by_match_state(file)
    _update_file(file, state=SettlementFileState.BOOKING, **counted)


def rematch_file(
    file: SettlementFile, work: MatchingRun, now: datetime, *, after: int = 0, last: int = MAX_LINE_NUMBER
) -> int:
    """Match the unmatched records of a file's lines ``after`` to ``last``, in the caller's transaction. Returns how
    many changed."""
    changed = work.match_remaining(now, after=after, last=last)
    if changed:
        later = Match.objects.filter(record__file=file, made_at=now, chosen=True, undone_at=None)
        findings.detect_record_findings(list(later.values_list("record_id", flat=True)), file.institute_id, now)
    return changed


def count_by_match_state(file: SettlementFile) -> dict[str, int]:
    """Recount the file's records by matching status."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, [file.id])
        return dict(zip(("matched", "multiple", "unmatched"), cursor.fetchone(), strict=True))
