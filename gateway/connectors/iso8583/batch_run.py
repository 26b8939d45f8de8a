"""Sends planned batches: captures as advices (batch_upload.py), then totals (batch_close.py). Where the totals differ,
the captures are uploaded once more, and the totals compared again.

Every step is recorded before and after, so that another worker can continue after a crash. A capture counts as taken
only once the host agrees with its batch's totals. Source: docs/decisions/0040.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Final

import structlog
from django.db.models import F, Q
from django.db.models.functions import Now

from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.accounts import load_connector_account
from gateway.connectors.iso8583 import batch_planning, capture_records
from gateway.connectors.iso8583.batch_close import close_batch
from gateway.connectors.iso8583.batch_lease import (
    BatchDeferredError,
    BatchLeaseLostError,
    get_batch_lease,
    move_batch_state,
    select_leased_batch,
)
from gateway.connectors.iso8583.batch_upload import send_batch_captures
from gateway.connectors.iso8583.terminal import Terminal, parse_terminal
from gateway.connectors.port import Connector
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import CaptureBatch, Merchant
from gateway.timers import wakeup
from gateway.timers.merchant_clocks import bind_run
from gateway.vault.sealing import VaultError

MAX_BATCHES_PER_RUN: Final = 200
"""Batches that one run claims, one after the other."""
BATCH_RUN_S: Final = 60.0
"""Seconds for one run, and for one batch in it; the next run continues."""
BATCH_RETRY_PAUSES: Final = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 60, 300, 900))
"""Pauses after failed attempts; the last one repeats."""
MAX_BLOCKING_FAILURES: Final = 10
"""Failures in a row, nearly two hours, after which a batch no longer blocks the account's later batches."""
MAX_BATCH_FAILURES: Final = 700
"""Failures in a row, about a week, after which an operator has to look."""

log = structlog.get_logger(__name__)

# One batch of an account at a time, the oldest first: hosts number them. One left to an operator blocks none.
_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT b.id FROM gateway_capturebatch b
    WHERE b.state IN ('PRESENTING', 'CLOSING', 'UPLOADING') AND b.due_at <= %(now)s::timestamptz
        AND (b.lease_until IS NULL OR b.lease_until < statement_timestamp())
        AND (%(merchant)s::uuid IS NULL OR b.merchant_id = %(merchant)s::uuid)
        AND NOT EXISTS (
            SELECT 1 FROM gateway_capturebatch o WHERE o.channel_id = b.channel_id
                AND o.acquirer_merchant_id = b.acquirer_merchant_id
                AND o.number < b.number AND o.state IN ('PRESENTING', 'CLOSING', 'UPLOADING') AND o.due_at IS NOT NULL
                AND o.failures < %(patience)s::int
        )
    ORDER BY b.due_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE gateway_capturebatch b SET lease_until = clock_timestamp() + %(lease)s::interval, tries = tries + 1
FROM due WHERE b.id = due.id RETURNING b.id
"""


def send_due_batches(connector: Connector, merchant: Merchant | None = None) -> int:
    """Send the planned batches that are due. Returns how many were closed."""
    ended, over = 0, time.monotonic() + BATCH_RUN_S
    for _ in range(MAX_BATCHES_PER_RUN):
        batch = claim_due_batch(merchant)
        if batch is None:
            break
        ended += _send_batch(batch, connector)
        if time.monotonic() > over:
            break
    return ended


def claim_due_batch(merchant: Merchant | None = None) -> CaptureBatch | None:
    """Claim the next due batch under a lease; None if there is none."""
    found = execute_sql(_CLAIM, bind_run(merchant, lease=get_batch_lease(), patience=MAX_BLOCKING_FAILURES))
    return CaptureBatch.objects.get(pk=found[0][0]) if found else None


def retry_batch(batch: CaptureBatch) -> bool:
    """Manual: continue a batch at once; one whose totals differ is uploaded once more.

    False if it is closed, or a sender holds its lease.
    """
    now = clock.real_now()
    rows = CaptureBatch.objects.filter(Q(lease_until=None) | Q(lease_until__lt=Now()), pk=batch.pk)
    anew = {"due_at": now, "failures": 0, "failure": ""}
    differs = rows.filter(state=CaptureBatch.State.DIFFERS).update(
        **anew, state=CaptureBatch.State.UPLOADING, round=F("round") + 1, asked=False, closed_at=None
    )
    done = differs or rows.filter(
        state__in=(CaptureBatch.State.PRESENTING, CaptureBatch.State.CLOSING, CaptureBatch.State.UPLOADING)
    ).update(**anew)
    wakeup.notify_timer(batch_planning.CAPTURE_BATCH_TIMER)
    return bool(done)


def _send_batch(batch: CaptureBatch, connector: Connector) -> bool:
    """Advance a batch as far as possible. Returns whether it was closed."""
    try:
        terminal = parse_terminal(load_connector_account(connector, batch.channel_id, batch.acquirer_merchant_id))
        _advance_batch(batch, terminal)
    except BatchLeaseLostError:
        return False
    except BatchDeferredError as fault:
        return _defer_batch(batch, str(fault), wait=fault.wait)
    except AccountSettingError as fault:
        return _defer_batch(batch, f"the account: {fault}")
    except VaultError:
        return _defer_batch(batch, "a secret does not open: the vault has lost its key")
    except Exception:  # one batch must not block the others; it stays due
        log.exception("capture_batch_failed", batch=batch.pk.hex)
        return _defer_batch(batch, "a fault of the gateway's own: its log says which")
    return True


def _advance_batch(batch: CaptureBatch, terminal: Terminal) -> None:
    """Run the remaining steps. Raises BatchDeferredError, BatchLeaseLostError."""
    over = time.monotonic() + BATCH_RUN_S
    while batch.state not in (CaptureBatch.State.BALANCED, CaptureBatch.State.DIFFERS):
        if batch.state == CaptureBatch.State.CLOSING:
            close_batch(batch, terminal)
        else:
            send_batch_captures(batch, terminal, over)
            move_batch_state(batch, CaptureBatch.State.CLOSING, failures=0)
    wakeup.notify_timer(capture_records.CAPTURE_ANSWER_TIMER)


def _defer_batch(batch: CaptureBatch, why: str, *, wait: bool = True) -> bool:
    failures = batch.failures + 1 if wait else 0
    over = failures >= MAX_BATCH_FAILURES
    pause = BATCH_RETRY_PAUSES[min(failures, len(BATCH_RETRY_PAUSES)) - 1] if wait else timedelta()
    if wait:
        log.error(
            "capture_batch_retried",
            batch=batch.number,
            account=batch.acquirer_merchant_id,
            tries=failures,
            over=over,
            why=why,
        )
    select_leased_batch(batch).update(
        failures=failures,
        failure=why[:255] if wait else "",
        lease_until=None,
        due_at=None if over else clock.real_now() + pause,
    )
    return False
