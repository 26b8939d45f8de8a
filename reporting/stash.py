"""Uploads between their preview and somebody's yes: sealed in the work folder, for whoever uploaded them, for an hour.

A settlement file that nobody has agreed to is no row yet, and must not lie about in clear: it may hold card numbers.
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

from gateway import clock
from reporting.files import PIECE_BYTES, Pieces, seal, unseal
from reporting.formats.port import NotReadable

KEPT: Final = timedelta(hours=1)
NOBODY: Final = -1
"""The owner of what came by file transfer: no user's."""
NAME_CHARS: Final = 255
_FACTS: Final = "facts.json"


class Gone(Exception):
    """No such upload of this user's: an hour is over, or it was taken in already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    ident: UUID
    name: str
    institute: UUID
    size: int


def keep(stream: BinaryIO, *, name: str, institute: UUID, owner: int) -> Upload:
    """Seal what was uploaded. Raises NotReadable above the limit of the settings."""
    _sweep()
    ident, size = uuid4(), 0
    folder = _folder(ident)
    folder.mkdir(parents=True, mode=0o700)
    try:
        stream.seek(0)
        for number, octets in enumerate(iter(lambda: stream.read(PIECE_BYTES), b"")):
            size += len(octets)
            if size > settings.GATEWAY_SETTLEMENT_MAX_BYTES:
                raise NotReadable(f"the file is larger than {settings.GATEWAY_SETTLEMENT_MAX_BYTES:,} bytes")
            (folder / f"{number}").write_bytes(seal(octets, uuid5(ident, str(number))))
        facts = {"name": name[:NAME_CHARS], "institute": institute.hex, "size": size, "owner": owner}
        (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Upload(ident=ident, name=facts["name"], institute=institute, size=size)  # type: ignore[arg-type]


def find(ident: UUID, owner: int) -> Upload:
    """Raises Gone."""
    try:
        facts = json.loads((_folder(ident) / _FACTS).read_text(encoding="utf-8"))
    except OSError:
        raise Gone from None
    if facts["owner"] != owner:
        raise Gone
    return Upload(ident=ident, name=facts["name"], institute=UUID(facts["institute"]), size=facts["size"])


def opened(upload: Upload) -> BinaryIO:
    """The bytes, which can be sought. Raises Gone while they are read, when they went meanwhile."""
    folder = _folder(upload.ident)

    def fetch(number: int) -> bytes:
        if number * PIECE_BYTES >= upload.size:
            return b""
        try:
            return unseal((folder / f"{number}").read_bytes(), uuid5(upload.ident, str(number)))
        except OSError:
            raise Gone from None

    return io.BufferedReader(Pieces(fetch, upload.size), PIECE_BYTES)


def drop(upload: Upload) -> None:
    shutil.rmtree(_folder(upload.ident), ignore_errors=True)


def _root() -> Path:
    return Path(settings.GATEWAY_WORK_DIR) / "uploads"


def _folder(ident: UUID) -> Path:
    return _root() / ident.hex


def _sweep() -> None:
    """What nobody has agreed to within an hour goes with the next upload."""
    oldest = (clock.real() - KEPT).timestamp()
    if _root().is_dir():
        for folder in _root().iterdir():
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
