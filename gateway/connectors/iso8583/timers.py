"""The timer of captures that card accounts present by batch."""

from __future__ import annotations

from typing import Final

from gateway.connectors.iso8583 import batch_planning, batch_run
from gateway.connectors.iso8583.connector import ISO8583
from gateway.models import Merchant
from gateway.timers.registry import MerchantTimer


def _run_batches(merchant: Merchant | None = None) -> int:
    return batch_planning.plan_due_batches(merchant) + batch_run.send_due_batches(ISO8583, merchant)


TIMER: Final = MerchantTimer(
    name=batch_planning.CAPTURE_BATCH_TIMER,
    run=_run_batches,
    next_at=batch_planning.next_batch_run,
    every_s=5.0,
    at_once=2,
    earliest_due="""
        SELECT least((SELECT min(present_at) FROM gateway_batchedcapture WHERE state = 'WAITING'),
            (SELECT min(due_at) FROM gateway_capturebatch WHERE state IN ('PRESENTING', 'CLOSING', 'UPLOADING')))""",
    about="Send the day's captures of card accounts that present them by batch, and compare sums.",
)
