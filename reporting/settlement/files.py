"""Receiving settlement files: recognized by SHA-256, previewed, and stored sealed until they are read.

Acquirers write card numbers into files, so the bytes are sealed like any other secret, and deleted when the file is
done. They are in the database, so any node can resume where another one died.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePath
from typing import Any, BinaryIO, Final, cast
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from gateway.access import audit_log
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.core.secret import Secret
from gateway.vault.sealing import current_vault
from reporting.settlement.formats import FILE_FORMATS, FORMAT_DETECTION_BYTES, detect_format
from reporting.settlement.formats.port import FileFormat, UnreadableFileError, translate_parser_errors
from reporting.settlement.layout import NULL_TEXT, STAGED_COLUMNS, LineFault, LineReader
from reporting.settlement.models import ClearingInstitute, FilePiece, SettlementFile

FILE_PIECE_BYTES: Final = 256 * 1024
PREVIEW_LINES: Final = 20
"""Lines shown by a preview; faults are counted in all lines."""
MAX_PREVIEW_FAULTS: Final = 100
_STAGED_NAMES: Final = tuple(name for name, _kind in STAGED_COLUMNS)
MAX_PREVIEW_SCAN_LINES: Final = 50_000
"""Lines of a file that the preview checks; after confirmation all are read."""


class DuplicateFileError(Exception):
    """The same bytes were received before: nothing was written. ``file``: the earlier file."""

    def __init__(self, file: SettlementFile) -> None:
        super().__init__(f"{file.name} of {file.received_at:%Y-%m-%d %H:%M} UTC has the same content")
        self.file = file


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewLine:
    """A line of a preview: its values by column, or its faults."""

    number: int
    values: dict[str, str]
    faults: Sequence[LineFault] = ()


@dataclass(slots=True, kw_only=True)
class PreviewSums:
    """What a file's lines without faults make in one settlement currency: those that settled, in and out, fees within
    them; ``failed``: lines that did not settle."""

    currency: str
    lines: int = 0
    pos: Decimal = Decimal("0.00")
    neg: Decimal = Decimal("0.00")
    fees: Decimal = Decimal("0.00")
    failed: int = 0

    @property
    def paid(self) -> Decimal:
        return self.pos - self.neg


@dataclass(slots=True, kw_only=True)
class FilePreview:
    """Result of reading a file without writing anything. ``faults``: number of faulty lines; ``first_faults``: the
    first of them; ``sums`` by settlement currency; ``cut``: there are more lines than were read."""

    format: str
    columns: Sequence[str]
    unused: Sequence[str]
    first: list[PreviewLine] = field(default_factory=list)
    first_faults: list[PreviewLine] = field(default_factory=list)
    lines: int = 0
    faults: int = 0
    totals: dict[str, Any] = field(default_factory=dict)
    sums: dict[str, PreviewSums] = field(default_factory=dict)
    cut: bool = False


def preview_file(stream: BinaryIO, institute: ClearingInstitute, most: int | None = None) -> FilePreview:
    """Read ``stream`` to its end, or ``most`` lines, and describe its content. Raises UnreadableFileError."""
    with translate_parser_errors():
        return _build_preview(stream, institute, most)


def _build_preview(stream: BinaryIO, institute: ClearingInstitute, most: int | None) -> FilePreview:
    adapter = _detect_file_format(stream, institute)
    opened = adapter.open(stream, 0, 0)
    reading = LineReader(opened.present, institute.zone, institute.reason_codes)
    found = FilePreview(format=adapter.name, columns=opened.present, unused=opened.unused)
    for line in opened.lines:
        if found.lines == most:
            found.cut = True
            break
        found.lines += 1
        faults = line.faults
        if line.values is not None:
            read = reading.read(line.number, line.values)
            faults = [one for one in read if isinstance(one, LineFault)]
            if not faults:
                _add_to_sums(found.sums, cast(Sequence[str], read))
        found.faults += bool(faults)
        if found.lines > PREVIEW_LINES and (not faults or len(found.first_faults) >= MAX_PREVIEW_FAULTS):
            continue
        values = {name: mask_text(text) for name, text in zip(_names(), line.values or (), strict=False) if text}
        one = PreviewLine(number=line.number, values=values, faults=faults)
        if found.lines <= PREVIEW_LINES:
            found.first.append(one)
        if faults and len(found.first_faults) < MAX_PREVIEW_FAULTS:
            found.first_faults.append(one)
    found.totals = opened.totals
    return found


def _add_to_sums(sums: dict[str, PreviewSums], staged: Sequence[str]) -> None:
    """Add a line as LineReader.read stages it."""
    row = dict(zip(_STAGED_NAMES, staged, strict=True))
    one = sums.setdefault(row["settlement_currency"], PreviewSums(currency=row["settlement_currency"]))
    one.lines += 1
    if row["settlement_status"] == "FAILED":
        one.failed += 1
        return
    if row["cashflow"] == "POS":
        one.pos += Decimal(row["settlement_amount"])
    else:
        one.neg += Decimal(row["settlement_amount"])
    if row["settlement_fee"] != NULL_TEXT:
        one.fees += Decimal(row["settlement_fee"])


def _names() -> Sequence[str]:
    from reporting.settlement.layout import COLUMN_NAMES

    return COLUMN_NAMES


def receive_file(
    stream: BinaryIO, *, name: str, institute: ClearingInstitute, by: audit_log.Actor, source: SettlementFile.Source
) -> SettlementFile:
    """Store a file, which reporting.settlement.intake will read. ``stream`` must be seekable. A file that failed before
    is resumed.

    Raises UnreadableFileError if it is not a settlement file (then nothing of it is stored) and DuplicateFileError.
    """
    with translate_parser_errors():
        adapter = _detect_file_format(stream, institute)
        _check_readable(stream, adapter)
    size, digest = _digest(stream)
    if (known := SettlementFile.objects.filter(institute=institute, sha256=digest).first()) is not None:
        return _resume_failed_file(known, stream, adapter, by)
    file = SettlementFile(
        institute=institute,
        name=sanitize_file_name(name),
        sha256=digest,
        size=size,
        format=adapter.name,
        time_zone=institute.time_zone,
        source=source,
        received_by=by.name[:150],
        received_at=clock.real_now(),
    )
    try:
        with transaction.atomic():
            file.save(force_insert=True)
            _store_pieces(file, stream)
            audit_log.record_audit_entry(
                by, "receive", file, after={"name": file.name, "institute": institute.name, "size": size}
            )
    except IntegrityError:
        raise DuplicateFileError(SettlementFile.objects.get(institute=institute, sha256=digest)) from None
    return file


def _resume_failed_file(
    file: SettlementFile, stream: BinaryIO, adapter: FileFormat, by: audit_log.Actor
) -> SettlementFile:
    """Resume a failed file that was sent again; in another format if its institute now names one and nothing was read
    yet. Raises DuplicateFileError for any other file."""
    with transaction.atomic():
        if (file.lines and adapter.name != file.format) or not _reopen_file(file, format=adapter.name):
            raise DuplicateFileError(file)
        FilePiece.objects.filter(file=file).delete()
        _store_pieces(file, stream)
        audit_log.record_audit_entry(by, "receive again", file, before={"why": file.why}, after={"lines": file.lines})
    file.refresh_from_db()
    return file


def retry_failed_file(file: SettlementFile, by: audit_log.Actor) -> bool:
    """Resume a failed file whose bytes are still stored. False if it is not failed, or they are gone."""
    with transaction.atomic():
        if not has_stored_content(file) or not _reopen_file(file):
            return False
        audit_log.record_audit_entry(by, "read again", file, before={"why": file.why}, after={"lines": file.lines})
    file.refresh_from_db()
    return True


def has_stored_content(file: SettlementFile) -> bool:
    """True while the file's bytes are stored."""
    return FilePiece.objects.filter(file=file).exists()


def _reopen_file(file: SettlementFile, **changes: str) -> bool:
    state = SettlementFile.State.READING if file.lines else SettlementFile.State.RECEIVED
    failed = SettlementFile.objects.filter(pk=file.pk, state=SettlementFile.State.FAILED)
    return bool(failed.update(state=state, why="", lease_until=None, finished_at=None, tries=0, **changes))


def _store_pieces(file: SettlementFile, stream: BinaryIO) -> None:
    """Store the bytes sealed, in the caller's transaction. A thread seals a piece while the database stores the one
    before."""
    stream.seek(0)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="seal") as thread:
        before: tuple[FilePiece, Future[bytes]] | None = None
        for number, octets in enumerate(iter(lambda: stream.read(FILE_PIECE_BYTES), b"")):
            piece = FilePiece(file=file, number=number)
            sealing = thread.submit(seal_piece, octets, piece.id)
            if before is not None:
                _store_piece(*before)
            before = piece, sealing
        if before is not None:
            _store_piece(*before)


def _store_piece(piece: FilePiece, sealing: Future[bytes]) -> None:
    piece.sealed = sealing.result()
    piece.save(force_insert=True)


def _detect_file_format(stream: BinaryIO, institute: ClearingInstitute) -> FileFormat:
    stream.seek(0)
    head = stream.read(FORMAT_DETECTION_BYTES)
    return detect_format(head, institute.format)


def _check_readable(stream: BinaryIO, adapter: FileFormat) -> None:
    """Raise UnreadableFileError for a file that could not be read to its end: bad header, or truncated XML."""
    opened = adapter.open(stream, 0, 0)
    if adapter is FILE_FORMATS["CAMT.053"]:
        for _ in opened.lines:
            pass
    elif next(iter(opened.lines), None) is None:
        raise UnreadableFileError("the file has no lines")


def _digest(stream: BinaryIO) -> tuple[int, str]:
    """Size and SHA-256. Raises UnreadableFileError above the limit of the settings."""
    stream.seek(0)
    size, digest = 0, hashlib.sha256()
    for octets in iter(lambda: stream.read(1024 * 1024), b""):
        size += len(octets)
        digest.update(octets)
        if size > settings.GATEWAY_SETTLEMENT_MAX_BYTES:
            raise UnreadableFileError(f"the file is larger than {settings.GATEWAY_SETTLEMENT_MAX_BYTES:,} bytes")
    return size, digest.hexdigest()


def sanitize_file_name(name: str) -> str:
    """The base name of a file, without folders and unprintable characters."""
    last = PurePath(name.replace("\\", "/")).name
    return mask_text("".join(char if char.isprintable() else "�" for char in last))[:255] or "file"


def seal_piece(octets: bytes, ident: UUID) -> bytes:
    """Seal a piece of a file for the row or name ``ident``."""
    return current_vault().seal(Secret(base64.b64encode(zlib.compress(octets, 1)).decode()), ident)


def unseal_piece(sealed: bytes, ident: UUID) -> bytes:
    """Open a piece that was sealed for ``ident``."""
    return zlib.decompress(base64.b64decode(current_vault().open(sealed, ident).reveal()))


class PieceStream(io.RawIOBase):
    """A seekable stream over a file of ``size`` bytes, stored in pieces of FILE_PIECE_BYTES; ``fetch`` returns each by
    its number."""

    def __init__(self, fetch: Callable[[int], bytes], size: int) -> None:
        self._fetch, self._size = fetch, size
        self._place = 0
        self._held: tuple[int, bytes] = (-1, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        if whence == io.SEEK_CUR:
            place += self._place
        elif whence == io.SEEK_END:
            place += self._size
        self._place = place
        return place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        if self._place >= self._size:
            return 0  # the end: asking for a further piece would wait for ever
        number, offset = divmod(self._place, FILE_PIECE_BYTES)
        if self._held[0] != number:
            self._held = number, self._fetch(number)
        octets = self._held[1][offset : offset + len(buffer)]
        buffer[: len(octets)] = octets
        self._place += len(octets)
        return len(octets)


def load_pieces(file: SettlementFile, first: int, end: int) -> dict[int, FilePiece]:
    """Fetch the pieces ``first`` to before ``end`` of an unfinished file from the database, still sealed."""
    return {piece.number: piece for piece in FilePiece.objects.filter(file=file, number__gte=first, number__lt=end)}


def read_piece(piece: FilePiece | None) -> bytes:
    """Unseal a fetched piece. Uses no database."""
    return unseal_piece(bytes(piece.sealed), piece.id) if piece is not None else b""


def delete_content(file: SettlementFile) -> None:
    """Delete the stored bytes of a file that was read to its end."""
    FilePiece.objects.filter(file=file).delete()
