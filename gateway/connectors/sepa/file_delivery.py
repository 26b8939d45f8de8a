"""Delivers planned bank files: rendered, delivered once, deleted after a retention time.

To a folder: the bytes are written under a temporary name, which is committed before the rename into place. After a
crash the state is known: still temporary (rename it), or gone (it was renamed, and may have been fetched since); a file
is never placed twice. Over HTTP the outcome of an unanswered call is unknown: it is repeated with the same bytes and
message id, by which banks reject a duplicate, and that rejection is ignored (bank_message_intake.py). Files contain
account numbers in clear: mode 0600, deleted days after their delivery. Source: docs/connectors/sepa.md.
"""

from __future__ import annotations

import base64
import hashlib
import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog
from django.conf import settings
from django.db.models.functions import Now

from gateway import outbound
from gateway.connectors.accounts import load_connector_account
from gateway.connectors.port import Connector
from gateway.connectors.sepa import creditor, payment_files
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import BankFile, Merchant
from gateway.timers.merchant_clocks import bind_run
from gateway.vault.sealing import VaultError

BankFileState = BankFile.State

MAX_BANK_FILES_PER_RUN: Final = 20
BANK_FILE_LEASE: Final = timedelta(minutes=5)
"""Lease on one file, longer than UPLOAD_TIMEOUT_S; renewed for each of the files that were claimed together."""
BANK_FILE_RETRY_PAUSES: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 15, 30, 60))
"""Pauses after failed attempts; the last one repeats."""
MAX_BANK_FILE_TRIES: Final = 170
"""Attempts in about a week, after which an operator has to look."""
UPLOAD_TIMEOUT_S: Final = 60.0
MAX_UPLOAD_ANSWER_BYTES: Final = 4_096
_REPORTED: Final = frozenset({409, 422})
"""The bank has read and rejected the file: its status report says why."""

log = structlog.get_logger(__name__)

# MATERIALIZED: a subquery in IN (…) may be run again for each row, and would then claim more than the limit.
_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT id FROM gateway_bankfile WHERE state IN ('DECIDED', 'WRITTEN') AND due_at <= %(now)s::timestamptz
        AND (lease_until IS NULL OR lease_until < statement_timestamp())
        AND (%(merchant)s::uuid IS NULL OR merchant_id = %(merchant)s::uuid)
    ORDER BY due_at LIMIT %(most)s::int FOR UPDATE SKIP LOCKED
)
UPDATE gateway_bankfile f SET lease_until = clock_timestamp() + %(lease)s::interval, tries = tries + 1
FROM due WHERE f.id = due.id RETURNING f.id
"""


class FileNotDeliveredError(Exception):
    """The delivery failed; the text has no secrets. ``for_good``: a retry does not help."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        super().__init__(why)
        self.for_good = for_good


def deliver_due_bank_files(connector: Connector, merchant: Merchant | None = None) -> int:
    """Deliver the planned files that are due. Returns how many were delivered."""
    values = bind_run(merchant, lease=BANK_FILE_LEASE, most=MAX_BANK_FILES_PER_RUN)
    claimed = [row[0] for row in execute_sql(_CLAIM, values)]
    files = list(BankFile.objects.filter(pk__in=claimed).order_by("id"))
    return sum(_deliver(file, connector) for file in files if _renew_lease(file))


def retry_bank_file(file: BankFile) -> bool:
    """Manual: retry a file that was given up and never delivered, with the same bytes and message id.

    False for one in another state.
    """
    failed = BankFile.objects.filter(pk=file.pk, state=BankFileState.FAILED)
    return bool(failed.update(state=BankFileState.DECIDED, due_at=clock.real_now(), lease_until=None))


def _renew_lease(file: BankFile) -> bool:
    """Renew the lease on this file, as earlier ones may have taken long. False if another worker has claimed it."""
    mine = BankFile.objects.filter(
        pk=file.pk, tries=file.tries, state__in=(BankFileState.DECIDED, BankFileState.WRITTEN)
    )
    return bool(mine.update(lease_until=Now() + BANK_FILE_LEASE))


def outbox_folder(file: BankFile) -> Path:
    """The folder of a file's creditor account."""
    return Path(settings.GATEWAY_SEPA_OUTBOX) / file.merchant_id.hex / _safe_folder_name(file.acquirer_merchant_id)


def bank_file_path(file: BankFile) -> Path:
    """Path from which the bank fetches a file."""
    return outbox_folder(file) / file.name


def render_bank_file(file: BankFile) -> bytes:
    """The bytes of a file, always the same. Raises FileNotDeliveredError."""
    try:
        content = payment_files.render_payment_file(file, payment_files.list_file_orders(file))
    except payment_files.InvalidPaymentFileError as fault:
        raise FileNotDeliveredError(str(fault), for_good=True) from None
    except VaultError:
        raise FileNotDeliveredError("an account does not open: the vault has lost its key") from None
    digest = hashlib.sha256(content).hexdigest()
    if file.sha256 and file.sha256 != digest:
        raise FileNotDeliveredError("made again it has other bytes, so it stays here", for_good=True)
    return content


def delete_old_bank_files() -> int:
    """Delete files that were delivered long enough ago. Returns how many."""
    limit = clock.real_now() - timedelta(days=settings.GATEWAY_SEPA_OUTBOX_DAYS)
    lying = BankFile.objects.filter(state=BankFileState.DELIVERED, removed_at__isnull=True, delivered_at__lt=limit)
    removed = 0
    for file in lying.order_by("delivered_at")[:1_000]:
        for path in (bank_file_path(file), *outbox_folder(file).glob(f".{file.name}.*.tmp")):
            path.unlink(missing_ok=True)
        removed += BankFile.objects.filter(pk=file.pk).update(removed_at=clock.real_now())
    return removed


def _deliver(file: BankFile, connector: Connector) -> bool:
    try:
        if file.creditor["delivery"] == creditor.FOLDER_DELIVERY:
            _place_in_outbox(file)
        else:
            _upload(file, connector)
    except FileNotDeliveredError as fault:
        return _record_failure(file, str(fault), for_good=fault.for_good)
    except OSError as fault:
        return _record_failure(file, f"the outbox: {fault.strerror}")
    except Exception:  # one file must not block the others; it stays due
        log.exception("bank_file_delivery_failed", file=file.message_id)
        return _record_failure(file, "a fault of the gateway's own: its log says which")
    # Also over FAILED: a worker whose lease had run out may have given it up while this one was delivering it.
    undelivered = BankFile.objects.filter(pk=file.pk).exclude(state=BankFileState.DELIVERED)
    return bool(
        undelivered.update(state=BankFileState.DELIVERED, delivered_at=clock.real_now(), lease_until=None, failure="")
    )


def _record_failure(file: BankFile, why: str, *, for_good: bool = False) -> bool:
    over = for_good or file.tries >= MAX_BANK_FILE_TRIES
    log.error("bank_file_not_delivered", file=file.message_id, tries=file.tries, over=over, why=why)
    pause = BANK_FILE_RETRY_PAUSES[min(max(file.tries, 1), len(BANK_FILE_RETRY_PAUSES)) - 1]
    BankFile.objects.filter(pk=file.pk, state__in=(BankFileState.DECIDED, BankFileState.WRITTEN)).update(
        failure=why[:255],
        due_at=clock.real_now() + pause,
        lease_until=None,
        **({"state": BankFileState.FAILED} if over else {}),
    )
    return False


def _place_in_outbox(file: BankFile) -> None:
    """Write under a temporary name of this try, commit, rename. A sender that woke up late writes to a name of its own,
    so that only a complete file is ever renamed."""
    place = bank_file_path(file)
    if file.state == BankFileState.DECIDED:
        own = _temporary_path(file, file.tries)
        _write(own, _render_and_record(file))
        decided = BankFile.objects.filter(pk=file.pk, state=BankFileState.DECIDED)
        if decided.update(state=BankFileState.WRITTEN, written_try=file.tries):
            file.written_try = file.tries
        else:
            own.unlink(missing_ok=True)
            file.refresh_from_db(fields=["state", "written_try"])  # another sender's is there
    if file.written_try is not None:
        with suppress(FileNotFoundError):  # renamed before
            _temporary_path(file, file.written_try).rename(place)
            _sync(place.parent)


def _upload(file: BankFile, connector: Connector) -> None:
    try:
        account = load_connector_account(connector, file.channel_id, file.acquirer_merchant_id)
    except VaultError:
        raise FileNotDeliveredError("the account's secrets do not open: the vault has lost its key") from None
    content = _render_and_record(file)
    headers = {"Content-Type": "application/xml"}
    if user := account.settings.get("uploadUser", ""):
        password = account.secrets["uploadPassword"].reveal() if "uploadPassword" in account.secrets else ""
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    answer = outbound.call_url(
        "POST",
        account.settings.get("uploadUrl", ""),
        headers=headers,
        body=content,
        timeout_s=UPLOAD_TIMEOUT_S,
        max_bytes=MAX_UPLOAD_ANSWER_BYTES,
    )
    if answer.is_success or answer.status in _REPORTED:
        return
    raise FileNotDeliveredError(f"answered with {answer.status}" if answer.status is not None else answer.reason)


def _render_and_record(file: BankFile) -> bytes:
    """The bytes; their hash is stored before they leave."""
    content = render_bank_file(file)
    digest = hashlib.sha256(content).hexdigest()
    BankFile.objects.filter(pk=file.pk).update(sha256=digest, size=len(content))
    file.sha256 = digest
    return content


def _temporary_path(file: BankFile, number: int) -> Path:
    return outbox_folder(file) / f".{file.name}.{number}.tmp"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Fsync a folder, so that a created or renamed file survives a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _safe_folder_name(name: str) -> str:
    """An account's name as a folder's name."""
    kept = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "_" for letter in name)
    return kept or "_"
