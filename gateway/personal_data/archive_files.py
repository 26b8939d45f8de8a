"""Exports archived payments: one gzip-compressed CSV file per month, with a SHA-256 checksum file.

The columns are those of COLUMNS, in this order, for good: a new one is added at the end. The same rows give the same
bytes. Source: docs/decisions/0130.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final
from uuid import UUID

from django.db import connection

from gateway.core.identifiers import first_id_at
from gateway.db.partitions import next_month_start

_ROW_TEXTS: Final = (
    "referenced", "payment_type", "brand", "method", "status", "amount", "currency", "approved_amount", "result_code",
    "test_mode", "merchant_transaction_id", "merchant_invoice_id", "registration", "agreement", "connector",
    "connector_tx_id", "acquirer_merchant_id", "created_at", "completed_at", "expires_at", "returned_at",
)  # fmt: skip
COLUMNS: Final = (
    "id", "chain", "number", "merchant", "channel", *_ROW_TEXTS, "card_bin", "card_last4", "archived_at", "request",
    "answer", "events",
)  # fmt: skip
"""Columns of a file. The last three are JSON."""
_SELECT: Final = f"""
SELECT id, chain, number, merchant_id, channel_id, {", ".join(f"row ->> '{name}'" for name in _ROW_TEXTS)},
    row #>> '{{answer,card,bin}}', row #>> '{{answer,card,last4Digits}}', archived_at,
    row -> 'request', row -> 'answer', events
FROM gateway_archivedpayment WHERE id >= %s AND id < %s ORDER BY id
"""  # noqa: S608 - names of this module
_NEXT: Final = "SELECT id FROM gateway_archivedpayment WHERE id >= %s AND id < %s ORDER BY id LIMIT 1"
_LAST_ID: Final = UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveFile:
    """A file that was written. ``digest``: its SHA-256."""

    path: Path
    payments: int
    digest: str


def export_archive(folder: Path, month: str | None = None) -> list[ArchiveFile]:
    """Write a file for each month (UTC) in which an archived payment was made, or for ``month`` (2027-01) alone, in
    place of one of an earlier export. Beside each stands its checksum, as sha256sum reads it."""
    low, high = (UUID(int=0), _LAST_ID) if month is None else _bound_month(month)
    written = []
    while (first := _find_next(low, high)) is not None:
        made_at = datetime.fromtimestamp((first.int >> 80) / 1000, tz=UTC)
        name = f"{made_at:%Y-%m}"
        begins, ends = _bound_month(name)
        written.append(_write_month(folder, name, begins, ends))
        low = ends
    return written


def _write_month(folder: Path, name: str, low: UUID, high: UUID) -> ArchiveFile:
    path = folder / f"payments-{name}.csv.gz"
    part = path.with_suffix(".part")
    # The time in its header would make each export of the same rows another file.
    with _create_own(part) as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        packed.write((",".join(COLUMNS) + "\r\n").encode())
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY ({_SELECT}) TO STDOUT (FORMAT csv)", [low, high]) as lines:
                for line in lines:
                    packed.write(bytes(line))
            payments = cursor.rowcount
    with part.open("rb") as whole:
        digest = hashlib.file_digest(whole, "sha256").hexdigest()
    part.replace(path)
    with _create_own(path.with_name(f"{path.name}.sha256")) as beside:
        beside.write(f"{digest}  {path.name}\n".encode())
    return ArchiveFile(path=path, payments=payments, digest=digest)


def _create_own(path: Path) -> IO[bytes]:
    """A new file that this user alone may read, in place of what was there: in a folder of several users another one
    may have left a link under its name."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _find_next(low: UUID, high: UUID) -> UUID | None:
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, [low, high])
        row = cursor.fetchone()
    return row[0] if row else None


def _bound_month(name: str) -> tuple[UUID, UUID]:
    begins = datetime.strptime(name, "%Y-%m").replace(tzinfo=UTC)
    return first_id_at(begins), first_id_at(next_month_start(begins))
