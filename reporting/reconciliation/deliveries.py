"""Delivery of reconciliation files by SFTP: to a pinned host key, under a temporary name first, retried until it
succeeds.

Each file's delivery is a row with a due time, and every attempt is recorded. Source: Part B, Reconciliation file;
decision 0026.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Final

from django.db import transaction

from gateway.access import audit_log
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.db.statement import execute_sql
from gateway.models import Merchant
from gateway.outbound.page_calls import count_page_call
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest
from gateway.vault.sealing import current_vault
from reporting import sftp
from reporting.reconciliation import daily_files
from reporting.reconciliation.models import Delivery, DeliveryAttempt, SftpTarget
from reporting.sftp import SftpUnreachableError

DELIVERY_RETRY_DELAYS: Final = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 15, 30, 60))
"""Delays after failed attempts; the last one repeats."""
MAX_DELIVERY_ATTEMPTS: Final = 170
"""About a week."""
# One at a time: what is claimed is begun at once. Those that failed come last.
_CLAIM: Final = f"""
WITH due AS MATERIALIZED (
    SELECT d.id FROM reporting_delivery d
    JOIN reporting_reconciliationfile f ON f.id = d.file_id JOIN gateway_merchant m ON m.id = f.merchant_id
    WHERE d.state = 'WAITING' AND {due_sql("d.due_at")}
        AND (d.lease_until IS NULL OR d.lease_until < statement_timestamp())
    ORDER BY d.attempts, d.due_at LIMIT 1 FOR UPDATE OF d SKIP LOCKED
)
UPDATE reporting_delivery d SET lease_until = clock_timestamp() + %(lease)s::interval
FROM due WHERE d.id = due.id RETURNING d.id
"""  # noqa: S608 - a constant


def set_sftp_target(
    merchant: Merchant,
    *,
    host: str,
    port: int,
    username: str,
    kind: str,
    secret: Secret,
    host_key: str,
    folder: str,
    by: audit_log.Actor,
) -> SftpTarget:
    """Set the server that receives the merchant's files, with an audit entry. Raises ValueError."""
    sftp.parse_host_key(host_key)
    if kind == SftpTarget.SecretKind.KEY:
        sftp.load_private_key(secret)
    with transaction.atomic():
        target = SftpTarget.objects.filter(merchant=merchant).first() or SftpTarget(merchant=merchant)
        target.host, target.port, target.username, target.folder = host, port, username, folder
        target.secret_kind, target.secret_sealed = kind, current_vault().seal(secret, target.id)
        target.host_key, target.active = " ".join(host_key.split()[:2]), True
        target.save()
        audit_log.record_audit_entry(by, "point", target, after={"merchant": merchant.name, "target": str(target)})
    return target


def next_delivery_at(merchant: Merchant) -> datetime | None:
    """When the merchant's next delivery is due, by their clock; None if none is."""
    return find_earliest(Delivery.objects.filter(state=Delivery.State.WAITING, file__merchant=merchant), "due_at")


def send_due_deliveries(merchant: Merchant | None = None) -> int:
    """Send all due deliveries. Returns how many were attempted."""
    began, attempted = time.monotonic(), 0
    while time.monotonic() - began < sftp.max_claiming_s() and (claimed := _claim_delivery(merchant)):
        attempt_delivery(claimed)
        attempted += 1
    return attempted


def _claim_delivery(merchant: Merchant | None) -> Delivery | None:
    """Lease the next delivery that is due; None if there is none."""
    rows = execute_sql(_CLAIM, bind_run(merchant, lease=sftp.session_lease()))
    return Delivery.objects.select_related("file__merchant").get(pk=rows[0][0]) if rows else None


def attempt_delivery(delivery: Delivery) -> str:
    """Make one attempt and record it. Returns the failure, or ''. The caller holds the lease."""
    file = delivery.file
    at, began = clock.real_now(), time.monotonic()
    target = SftpTarget.objects.filter(merchant=file.merchant_id, active=True).first()
    why = "there is no target any more"
    if target is not None:
        why = ""
        try:
            upload_file(target, daily_files.ensure_outbox_file(file), file.name)
        except (SftpUnreachableError, daily_files.FileContentChangedError, OSError) as fault:
            why = str(fault)[:255] or type(fault).__name__
    number = delivery.attempts + 1
    state = Delivery.State.WAITING
    if not why:
        state = Delivery.State.DONE
    elif number >= MAX_DELIVERY_ATTEMPTS or target is None:
        state = Delivery.State.FAILED
    wait = DELIVERY_RETRY_DELAYS[min(number, len(DELIVERY_RETRY_DELAYS)) - 1]
    with transaction.atomic():
        DeliveryAttempt.objects.create(
            delivery=delivery,
            number=number,
            target=str(target or ""),
            at=at,
            why=why,
            duration_ms=int((time.monotonic() - began) * 1000),
        )
        Delivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts).update(
            state=state, attempts=number, due_at=clock.merchant_now(file.merchant) + wait, lease_until=None
        )
    return why


def upload_file(target: SftpTarget, source: Path, name: str) -> None:
    """Upload a file as ``name``, completely or not at all. Raises SftpUnreachableError."""
    folder = PurePosixPath(target.folder)
    part, final = str(folder / f".{name}.part"), str(folder / name)
    size = source.stat().st_size
    with sftp.open_sftp_session(target) as client, sftp.translate_sftp_errors("sending"):
        with source.open("rb") as opened:
            client.putfo(opened, part, file_size=size, confirm=True)
        sftp.sync_file(client, part)
        client.posix_rename(part, final)


def probe_sftp_target(target: SftpTarget) -> None:
    """Log in and list the folder. Raises SftpUnreachableError and
    TooManyPageCallsError."""
    with (
        count_page_call(target.merchant_id),
        sftp.open_sftp_session(target) as client,
        sftp.translate_sftp_errors("looking into the folder"),
    ):
        client.stat(target.folder)
