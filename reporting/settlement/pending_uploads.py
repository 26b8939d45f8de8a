"""Uploads between preview and confirmation: sealed in the work folder, visible to their uploader only, deleted after an
hour.

An unconfirmed settlement file is no database row yet, and must not be stored in clear: it may contain card numbers.
"""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, Final
from uuid import UUID, uuid4, uuid5

from django.conf import settings

from gateway.core import clock
from reporting.settlement.files import FILE_PIECE_BYTES, PieceStream, seal_piece, unseal_piece
from reporting.settlement.formats.port import UnreadableFileError

PENDING_UPLOAD_RETENTION: Final = timedelta(hours=1)
SYSTEM_OWNER: Final = -1
"""The owner of uploads by file transfer, which have no user."""
MAX_UPLOAD_NAME_CHARS: Final = 255
_FACTS: Final = "facts.json"


class UploadExpiredError(Exception):
    """The user has no such upload: it is older than an hour, or was confirmed already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """One upload that waits for confirmation."""

    ident: UUID
    name: str
    institute: UUID
    size: int


def store_upload(stream: BinaryIO, *, name: str, institute: UUID, owner: int) -> PendingUpload:
    """Store an upload sealed. Raises UnreadableFileError above the limit of the settings."""
    _delete_expired()
    ident, size = uuid4(), 0
    folder = _folder(ident)
    folder.mkdir(parents=True, mode=0o700)
    try:
        stream.seek(0)
        for number, octets in enumerate(iter(lambda: stream.read(FILE_PIECE_BYTES), b"")):
            size += len(octets)
            if size > settings.GATEWAY_SETTLEMENT_MAX_BYTES:
                raise UnreadableFileError(f"the file is larger than {settings.GATEWAY_SETTLEMENT_MAX_BYTES:,} bytes")
            (folder / f"{number}").write_bytes(seal_piece(octets, uuid5(ident, str(number))))
        facts = {"name": name[:MAX_UPLOAD_NAME_CHARS], "institute": institute.hex, "size": size, "owner": owner}
        (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return PendingUpload(ident=ident, name=facts["name"], institute=institute, size=size)  # type: ignore[arg-type]


def find_upload(ident: UUID, owner: int) -> PendingUpload:
    """The owner's upload of that id. Raises UploadExpiredError."""
    try:
        facts = json.loads((_folder(ident) / _FACTS).read_text(encoding="utf-8"))
    except OSError:
        raise UploadExpiredError from None
    if facts["owner"] != owner:
        raise UploadExpiredError
    return PendingUpload(ident=ident, name=facts["name"], institute=UUID(facts["institute"]), size=facts["size"])


def open_upload(upload: PendingUpload) -> BinaryIO:
    """The bytes as a seekable stream. Reading raises UploadExpiredError if the upload is deleted meanwhile."""
    folder = _folder(upload.ident)

    def fetch(number: int) -> bytes:
        if number * FILE_PIECE_BYTES >= upload.size:
            return b""
        try:
            return unseal_piece((folder / f"{number}").read_bytes(), uuid5(upload.ident, str(number)))
        except OSError:
            raise UploadExpiredError from None

    return io.BufferedReader(PieceStream(fetch, upload.size), FILE_PIECE_BYTES)


def delete_upload(upload: PendingUpload) -> None:
    """Delete an upload and its sealed pieces."""
    shutil.rmtree(_folder(upload.ident), ignore_errors=True)


def _root() -> Path:
    return Path(settings.GATEWAY_WORK_DIR) / "uploads"


def _folder(ident: UUID) -> Path:
    return _root() / ident.hex


def _delete_expired() -> None:
    """Delete uploads older than an hour; called with every new upload."""
    oldest = (clock.real_now() - PENDING_UPLOAD_RETENTION).timestamp()
    if _root().is_dir():
        for folder in _root().iterdir():
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
