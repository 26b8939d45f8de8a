"""Fetches settlement files by SFTP: polls each institute's server, and takes in files that are complete.

A file is complete when two polls find the same size and time; names that mark a file as being written are skipped.
Nothing is on disk in clear: bytes are sealed piece by piece as they arrive, and a file is received only when all of it
is here and has not changed. Afterwards the remote file stays, or is moved, as configured. Source: decision 0032.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction

from gateway.access import audit_log
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.core.watched_folder import INCOMPLETE_SUFFIXES
from gateway.db.database_clock import read_database_time
from gateway.db.statement import execute_sql
from gateway.outbound.page_calls import count_page_call
from gateway.timers import wakeup
from gateway.vault.sealing import current_vault
from reporting import sftp
from reporting.settlement import files, pending_uploads
from reporting.settlement.formats.port import UnreadableFileError
from reporting.settlement.models import ClearingInstitute, RemoteFile, SettlementFile, SftpSource
from reporting.settlement.watched_folder import INTAKE_TIMER
from reporting.sftp import SftpUnreachableError

RemoteFileState = RemoteFile.State

if TYPE_CHECKING:
    import paramiko

UNCHANGED_BEFORE_FETCH: Final = timedelta(seconds=10)
"""Least time between the two polls that find a file unchanged: as for files of the watched folder."""
FETCH_RETRY_DELAYS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 15, 30, 60))
"""Delays after failed polls; the last one repeats."""
MIN_FETCH_INTERVAL_S: Final = 30
MAX_FETCH_INTERVAL_S: Final = 24 * 60 * 60
MAX_REMOTE_FILES: Final = 20_000
"""Files in one folder; a folder that is never cleaned up becomes slow to list for both sides."""
MAX_FILES_PER_FETCH: Final = 50
"""Files taken in by one poll."""
SFTP_READ_BYTES: Final = 32 * 1024
"""Size of a read request, eight at once: what every server supports."""
SFTP_ACTOR: Final = audit_log.Actor(name="SFTP")
# One at a time: what is claimed is begun at once. Those that failed lately come last.
_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT s.id FROM reporting_sftpsource s JOIN reporting_clearinginstitute i ON i.id = s.institute_id
    WHERE s.active AND i.active AND s.due_at <= %(now)s::timestamptz
        AND (s.lease_until IS NULL OR s.lease_until < statement_timestamp())
    ORDER BY s.failures, s.due_at LIMIT 1 FOR UPDATE OF s SKIP LOCKED
)
UPDATE reporting_sftpsource s SET lease_until = clock_timestamp() + %(lease)s::interval
FROM due WHERE s.id = due.id RETURNING s.id
"""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFileInfo:
    """A file as listed by its server."""

    name: str
    size: int
    modified: int


def configure_source(
    institute: ClearingInstitute,
    *,
    host: str,
    port: int,
    username: str,
    kind: str,
    secret: Secret | None,
    host_key: str,
    folder: str,
    by: audit_log.Actor,
    pattern: str = "*",
    after_download: str = SftpSource.AfterDownload.LEAVE,
    moved_to: str = "done",
    every_s: int = 300,
    active: bool = True,
) -> SftpSource:
    """Set the SFTP source of an institute, with an audit entry. Without ``secret`` the source keeps its old one;
    ``active`` False: store it without fetching. Raises ValueError."""
    sftp.parse_host_key(host_key)
    if secret is not None and kind == SftpSource.SecretKind.KEY:
        sftp.load_private_key(secret)
    if not MIN_FETCH_INTERVAL_S <= every_s <= MAX_FETCH_INTERVAL_S:
        raise ValueError(f"between two looks: {MIN_FETCH_INTERVAL_S} to {MAX_FETCH_INTERVAL_S} seconds")
    if after_download == SftpSource.AfterDownload.MOVE and (not moved_to or "/" in moved_to or moved_to in (".", "..")):
        raise ValueError("moved to: the name of a folder below the one that is looked into, e.g. done")
    with transaction.atomic():
        source = SftpSource.objects.filter(institute=institute).first() or SftpSource(institute=institute)
        source.host, source.port, source.username, source.folder = host, port, username, folder
        if secret is not None:
            source.secret_kind, source.secret_sealed = kind, current_vault().seal(secret, source.id)
        elif not source.secret_kind:
            raise ValueError("a new source needs a secret")
        source.host_key, source.active = " ".join(host_key.split()[:2]), active
        source.pattern, source.after_download, source.moved_to, source.every_s = (
            pattern or "*",
            after_download,
            moved_to,
            every_s,
        )
        source.due_at, source.failures, source.why = clock.real_now(), 0, ""
        source.save()
        audit_log.record_audit_entry(
            by, "fetch from", source, after={"institute": institute.name, "source": str(source)}
        )
    return source


def probe_sftp_source(source: SftpSource) -> int:
    """Log in and list the folder. Returns the number of settlement files there. Raises SftpUnreachableError and
    TooManyPageCallsError."""
    with (
        count_page_call(source.pk),
        sftp.open_sftp_session(source) as client,
        sftp.translate_sftp_errors("looking into the folder"),
    ):
        return len(_list_remote_files(client, source))


def fetch_due_sources() -> int:
    """Poll every source that is due. Returns how many files were taken in."""
    began, taken = time.monotonic(), 0
    while time.monotonic() - began < sftp.max_claiming_s() and (claimed := _claim_source()):
        taken += fetch_source(claimed)
    return taken


def _claim_source() -> SftpSource | None:
    """Lease the next source that is due; None if there is none."""
    rows = execute_sql(_CLAIM, {"now": clock.real_now(), "lease": sftp.session_lease()})
    return SftpSource.objects.select_related("institute").get(pk=rows[0][0]) if rows else None


def fetch_source(source: SftpSource) -> int:
    """Poll one source, and record the result. Returns how many files were taken in. The caller holds the lease."""
    taken, wait, why = 0, timedelta(seconds=source.every_s), ""
    try:
        with sftp.open_sftp_session(source) as client:
            with sftp.translate_sftp_errors("looking into the folder"):
                found = _list_remote_files(client, source)
            taken, soon, why = _SourceSession(client, source).at(found)
        wait = UNCHANGED_BEFORE_FETCH + timedelta(seconds=1) if soon else wait
    except SftpUnreachableError as fault:
        why = str(fault)
    now = clock.real_now()
    failures = source.failures + 1 if why else 0
    if why:
        wait = FETCH_RETRY_DELAYS[min(failures, len(FETCH_RETRY_DELAYS)) - 1]
        log.warning("settlement_source_failed", source=source.pk.hex, failures=failures, why=why[:500])
    SftpSource.objects.filter(pk=source.pk, lease_until=source.lease_until).update(
        due_at=now + wait, lease_until=None, polled_at=now, failures=failures, why=why[:500]
    )
    return taken


def _list_remote_files(client: paramiko.SFTPClient, source: SftpSource) -> list[RemoteFileInfo]:
    """Settlement files in the folder, by name: plain files that are not marked as being written. Raises
    SftpUnreachableError for a folder with too many."""
    found: list[RemoteFileInfo] = []
    for number, one in enumerate(client.listdir_iter(source.folder), 1):
        if number > MAX_REMOTE_FILES:
            raise SftpUnreachableError(
                f"the folder has more than {MAX_REMOTE_FILES:,} files; have those moved that were taken in"
            )
        name, mode = one.filename, one.st_mode
        plain = name.isprintable() and "/" not in name and len(name) <= 255 and not name.startswith(".")
        if not plain or name.lower().endswith(INCOMPLETE_SUFFIXES) or not fnmatchcase(name, source.pattern):
            continue
        if mode is None or stat.S_ISREG(mode):
            found.append(_file_info(name, one))
    return sorted(found, key=lambda each: each.name)


def _file_info(name: str, attributes: paramiko.SFTPAttributes) -> RemoteFileInfo:
    return RemoteFileInfo(name=name, size=attributes.st_size or 0, modified=int(attributes.st_mtime or 0))


class _SourceSession:
    """One session at one source."""

    def __init__(self, client: paramiko.SFTPClient, source: SftpSource) -> None:
        self._client, self._source = client, source

    def at(self, found: Iterable[RemoteFileInfo]) -> tuple[int, bool, str]:
        """Take in complete files. Returns how many; whether to poll again soon; failures of single files. Raises
        SftpUnreachableError if the connection breaks."""
        found, now = list(found), clock.real_now()
        names = [there.name for there in found]
        known = {row.name: row for row in RemoteFile.objects.filter(source=self._source, name__in=names)}
        taken, soon, why = 0, False, ""
        for there in found:
            row = self._update_row(known.get(there.name), there, now)
            if row.state == RemoteFileState.REFUSED or (
                row.state == RemoteFileState.TAKEN and self._source.after_download == "leave"
            ):
                continue
            if taken >= MAX_FILES_PER_FETCH or (
                row.state == RemoteFileState.SEEN and now - row.seen_at < UNCHANGED_BEFORE_FETCH
            ):
                soon = True
                continue
            fault = self._finish_file(row, there)
            taken += row.state == RemoteFileState.TAKEN and not fault
            why = why or fault
        return taken, soon, why

    def _update_row(self, row: RemoteFile | None, there: RemoteFileInfo, now: datetime) -> RemoteFile:
        """The file's row, reset if the file has changed, or appears again after it was moved away."""
        if row is None:
            return RemoteFile.objects.create(
                source=self._source, name=there.name, size=there.size, modified=there.modified, seen_at=now
            )
        if (row.size, row.modified) != (there.size, there.modified) or row.moved_at is not None:
            row.size, row.modified, row.seen_at = there.size, there.modified, now
            row.state, row.why, row.file, row.moved_at = RemoteFileState.SEEN, "", None, None
            row.save()
        return row

    def _finish_file(self, row: RemoteFile, there: RemoteFileInfo) -> str:
        """Take the file in unless that is done, and move it away if configured. Returns the failure, which is retried,
        or ''."""
        from paramiko import SSHException

        self._renew_lease()
        try:
            if row.state == RemoteFileState.SEEN and not self._take_in(row, there):
                return ""
            if self._source.after_download == SftpSource.AfterDownload.MOVE:
                self._move_away(row)
        except (EOFError, TimeoutError, ConnectionError, SSHException) as fault:
            raise SftpUnreachableError(f"reading {row.name} failed: {fault or type(fault).__name__}") from None
        except OSError as fault:
            row.why = f"{row.name}: {fault}"[:500]
            row.save()
            return row.why
        return ""

    def _renew_lease(self) -> None:
        """Renew the lease. Raises SftpUnreachableError if another worker has it."""
        until = read_database_time() + sftp.session_lease()
        mine = SftpSource.objects.filter(pk=self._source.pk, lease_until=self._source.lease_until, active=True)
        if not mine.update(lease_until=until):
            raise SftpUnreachableError("it was changed or switched off meanwhile")
        self._source.lease_until = until

    def _take_in(self, row: RemoteFile, there: RemoteFileInfo) -> bool:
        """Fetch the file and receive it. False if it is refused, or has changed and is waited for. Raises OSError."""
        if there.size > settings.GATEWAY_SETTLEMENT_MAX_BYTES:
            return self._refused(row, f"the file is larger than {settings.GATEWAY_SETTLEMENT_MAX_BYTES:,} bytes")
        path, institute = self._path(row.name), self._source.institute
        with self._client.open(path, "rb") as opened:
            stream = cast(BinaryIO, _Download(opened, there))
            kept = pending_uploads.store_upload(
                stream,
                name=files.sanitize_file_name(row.name),
                institute=institute.pk,
                owner=pending_uploads.SYSTEM_OWNER,
            )
        try:
            if _file_info(row.name, self._client.stat(path)) != there or kept.size != there.size:
                row.seen_at = clock.real_now()  # it is growing: the next poll sees the new size
                row.save()
                return False
            return self._received(row, pending_uploads.open_upload(kept))
        finally:
            pending_uploads.delete_upload(kept)

    def _received(self, row: RemoteFile, stream: BinaryIO) -> bool:
        try:
            row.file = files.receive_file(
                stream,
                name=row.name,
                institute=self._source.institute,
                by=SFTP_ACTOR,
                source=SettlementFile.Source.SFTP,
            )
        except files.DuplicateFileError as seen:
            # Received by an earlier poll that died before recording it?
            ours = seen.file.source == SettlementFile.Source.SFTP and seen.file.name == files.sanitize_file_name(
                row.name
            )
            if not (ours and seen.file.received_at >= row.seen_at):
                return self._refused(row, str(seen))
            row.file = seen.file
        except UnreadableFileError as fault:
            return self._refused(row, str(fault))
        except (DatabaseError, OSError):
            raise
        except Exception:  # our own error with one file must not block all others
            log.exception("settlement_file_not_received", file=row.name)
            return self._refused(row, "an internal error; the log has it")
        row.state, row.why = RemoteFileState.TAKEN, ""
        row.save()
        wakeup.notify_timer(INTAKE_TIMER)
        return True

    def _refused(self, row: RemoteFile, why: str) -> bool:
        row.state, row.why = RemoteFileState.REFUSED, why[:500]
        row.save()
        log.warning("settlement_file_refused", file=row.name, why=why)
        return False

    def _move_away(self, row: RemoteFile) -> None:
        """Rename the file into the other folder, with a suffix if its name is taken. Raises OSError."""
        folder = PurePosixPath(self._source.folder) / self._source.moved_to
        try:
            self._client.stat(str(folder))
        except FileNotFoundError:
            self._client.mkdir(str(folder))
        try:
            # Plain SFTP refuses to rename over an existing file.
            self._client.rename(self._path(row.name), str(folder / row.name))
        except OSError:
            self._client.rename(self._path(row.name), str(folder / f"{clock.real_now():%Y%m%dT%H%M%S%f}-{row.name}"))
        row.moved_at, row.why = clock.real_now(), ""
        row.save()

    def _path(self, name: str) -> str:
        return str(PurePosixPath(self._source.folder) / name)


class _Download:
    """A remote file as a stream of pieces: as many bytes as were announced."""

    def __init__(self, opened: paramiko.SFTPFile, there: RemoteFileInfo) -> None:
        self._opened, self._there = opened, there
        self._place = 0

    def seek(self, place: int, whence: int = 0) -> int:
        self._place = place
        return place

    def read(self, size: int = -1) -> bytes:
        end = min(self._place + max(size, 0), self._there.size)
        parts: list[Any] = [(at, min(SFTP_READ_BYTES, end - at)) for at in range(self._place, end, SFTP_READ_BYTES)]
        octets = b"".join(self._opened.readv(parts)) if parts else b""
        self._place += len(octets)
        return octets
