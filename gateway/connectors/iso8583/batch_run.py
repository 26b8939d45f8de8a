"""Batches on their way: the captures as advices (presenting.py), then the sums (closing.py); where those differ, the
captures once more as uploads, and the sums again.

Every step is written down before and after it is taken, so that whoever comes after a crash goes on where it was. A
capture counts as taken once the host agrees with the sums of its batch, and not before. docs/decisions/0040.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Final

import structlog
from django.db.models import F, Q

from gateway.connectors.accounts import load_connector_account
from gateway.connectors.iso8583 import batch_planning, capture_records
from gateway.connectors.iso8583.batch_close import close_batch
from gateway.connectors.iso8583.batch_lease import (
    BatchDeferredError,
    BatchLeaseLostError,
    batch_lease_until,
    move_batch_state,
    select_leased_batch,
)
from gateway.connectors.iso8583.batch_upload import send_batch_captures
from gateway.connectors.iso8583.terminal import Terminal, TerminalNotConfiguredError, parse_terminal
from gateway.connectors.port import Connector
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import CaptureBatch, Merchant
from gateway.timers import wakeup
from gateway.vault.sealing import VaultError

MAX_BATCHES_PER_RUN: Final = 200
"""Batches that one run takes on, one after the other."""
BATCH_RUN_S: Final = 60.0
"""Of one run, and of one batch in it; the next run goes on."""
BATCH_RETRY_PAUSES: Final = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 60, 300, 900))
"""After a try that came to nothing, until the next; the last one goes on."""
MAX_BLOCKING_FAILURES: Final = 10
"""Failures in a row, nearly two hours, after which a batch does not hold up those after it any more."""
MAX_BATCH_FAILURES: Final = 700
"""About a week without a step forward; then somebody has to look."""

log = structlog.get_logger(__name__)

# One batch of an account at a time, the oldest first: hosts number them. One that has to be looked at holds up none.
_CLAIM: Final = """
UPDATE gateway_capturebatch SET lease_until = %(lease)s::timestamptz, tries = tries + 1 WHERE id IN (
    SELECT b.id FROM gateway_capturebatch b
    WHERE b.state IN ('PRESENTING', 'CLOSING', 'UPLOADING') AND b.due_at <= %(now)s::timestamptz
        AND (b.lease_until IS NULL OR b.lease_until < %(now)s::timestamptz)
        AND (%(merchant)s::uuid IS NULL OR b.merchant_id = %(merchant)s::uuid)
        AND NOT EXISTS (
            SELECT 1 FROM gateway_capturebatch o WHERE o.channel_id = b.channel_id AND o.account = b.account
                AND o.number < b.number AND o.state IN ('PRESENTING', 'CLOSING', 'UPLOADING') AND o.due_at IS NOT NULL
                AND o.failures < %(patience)s::int
        )
    ORDER BY b.due_at LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING id
"""


def send_due_batches(connector: Connector, merchant: Merchant | None = None) -> int:
    """Send what is decided; how many batches ended."""
    ended, over = 0, time.monotonic() + BATCH_RUN_S
    for _ in range(MAX_BATCHES_PER_RUN):
        batch = claim_due_batch(merchant)
        if batch is None:
            break
        ended += _send(batch, connector)
        if time.monotonic() > over:
            break
    return ended


def claim_due_batch(merchant: Merchant | None = None) -> CaptureBatch | None:
    """The next batch that is due, for one sender until its lease runs out."""
    now = clock.real_now()
    whose = merchant.pk if merchant is not None else None
    found = execute_sql(
        _CLAIM, {"now": now, "lease": batch_lease_until(now), "merchant": whose, "patience": MAX_BLOCKING_FAILURES}
    )
    return CaptureBatch.objects.get(pk=found[0][0]) if found else None


def retry_batch(batch: CaptureBatch) -> bool:
    """By hand: go on with a batch at once. One whose sums differed is uploaded once more. False when it has ended, or
    somebody is at it."""
    now = clock.real_now()
    rows = CaptureBatch.objects.filter(Q(lease_until=None) | Q(lease_until__lt=now), pk=batch.pk)
    anew = {"due_at": now, "failures": 0, "failure": ""}
    differs = rows.filter(state=CaptureBatch.State.DIFFERS).update(
        **anew, state=CaptureBatch.State.UPLOADING, round=F("round") + 1, asked=False, closed_at=None
    )
    done = differs or rows.filter(
        state__in=(CaptureBatch.State.PRESENTING, CaptureBatch.State.CLOSING, CaptureBatch.State.UPLOADING)
    ).update(**anew)
    wakeup.notify_timer(batch_planning.CAPTURE_BATCH_TIMER)
    return bool(done)


def _send(batch: CaptureBatch, connector: Connector) -> bool:
    """Take a batch as far as it goes now; whether it ended."""
    try:
        terminal = parse_terminal(load_connector_account(connector, batch.channel_id, batch.account))
        _advance(batch, terminal)
    except BatchLeaseLostError:
        return False
    except BatchDeferredError as fault:
        return _later(batch, str(fault), wait=fault.wait)
    except TerminalNotConfiguredError as fault:
        return _later(batch, f"the account: {fault}")
    except VaultError:
        return _later(batch, "a secret does not open: the vault has lost its key")
    except Exception:  # one batch must not keep the others waiting; it is due again
        log.exception("capture_batch_fault", batch=batch.pk.hex)
        return _later(batch, "a fault of the gateway's own: its log says which")
    return True


def _advance(batch: CaptureBatch, terminal: Terminal) -> None:
    """Step by step to its end. Raises BatchDeferredError, BatchLeaseLostError."""
    over = time.monotonic() + BATCH_RUN_S
    while batch.state not in (CaptureBatch.State.BALANCED, CaptureBatch.State.DIFFERS):
        if batch.state == CaptureBatch.State.CLOSING:
            close_batch(batch, terminal)
        else:
            send_batch_captures(batch, terminal, over)
            move_batch_state(batch, CaptureBatch.State.CLOSING, failures=0)
    wakeup.notify_timer(capture_records.CAPTURE_ANSWER_TIMER)


def _later(batch: CaptureBatch, why: str, *, wait: bool = True) -> bool:
    failures = batch.failures + 1 if wait else 0
    over = failures >= MAX_BATCH_FAILURES
    pause = BATCH_RETRY_PAUSES[min(failures, len(BATCH_RETRY_PAUSES)) - 1] if wait else timedelta()
    if wait:
        log.error("capture_batch_waits", batch=batch.number, account=batch.account, tries=failures, over=over, why=why)
    select_leased_batch(batch).update(
        failures=failures,
        failure=why[:255] if wait else "",
        lease_until=None,
        due_at=None if over else clock.real_now() + pause,
    )
    return False
