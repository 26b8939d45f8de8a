"""Result calls: one GET to shopperResultUrl, 29 minutes after a checkout's creation, if its result was not fetched.

checkout.payment_attempts writes the row when the payment begins; it is deleted when the merchant fetches the result.
The call is due at 29:00 by the merchant's clock: not before, and not at all once the result was fetched. A failed call
is repeated while the checkout is valid. Only the holder of a row's lease calls; if it dies, there is one more call at
most. Source: Part A, States and transitions; Events, 2; decisions, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from checkout.models import CallAttempt, ResultCall
from gateway import outbound
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.db.statement import WriteStatement, execute_sql
from gateway.models import Merchant, Payment
from gateway.payments import shopper_return
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest

RESULT_CALL_TIMEOUT_S: Final = 10.0
"""The time of one call, everything included."""
MAX_RESULT_CALL_ANSWER_BYTES: Final = 1_024
"""Bytes read of the answer, which is ignored."""
RESULT_CALL_RETRY_DELAYS_S: Final = (5, 10, 20)
"""Delays after a failed call; the last minute of a checkout has room for no more."""
MAX_CONCURRENT_RESULT_CALLS: Final = 32
"""Calls of one process at a time: a lease must not expire in a queue."""
MAX_ROUNDS_PER_RUN: Final = 20
"""Rounds of one run; the next run continues."""
RESULT_CALL_RETENTION: Final = timedelta(days=1)
"""A call that could not be made for so long, since no timer ran, is dropped: webhooks delivered the result."""
ANSWERED_STATUSES: Final = range(200, 400)
"""Redirects count as reached, and are not followed."""
_LEASE: Final = timedelta(seconds=2 * RESULT_CALL_TIMEOUT_S + 2)

log = structlog.get_logger(__name__)

# The clock is the merchant's; the first condition uses the index, with the largest offset of all. Merchants take
# turns: one with many hanging pages must not delay the others' calls past the end of their checkouts.
_CLAIM: Final = f"""
WITH waiting AS MATERIALIZED (
    SELECT r.payment_id, m.clock_offset, c.expires_at,
        row_number() OVER (PARTITION BY m.id ORDER BY r.due_at) AS turn
    FROM checkout_resultcall r
    JOIN checkout_checkout c ON c.id = r.checkout_id JOIN gateway_merchant m ON m.id = c.merchant_id
    WHERE {due_sql("r.due_at")} AND (r.lease_until IS NULL OR r.lease_until <= statement_timestamp())
), due AS MATERIALIZED (
    SELECT r.payment_id, w.clock_offset, w.expires_at
    FROM checkout_resultcall r JOIN waiting w ON w.payment_id = r.payment_id
    WHERE r.lease_until IS NULL OR r.lease_until <= statement_timestamp()
    ORDER BY w.turn, r.due_at LIMIT %(limit)s FOR UPDATE OF r SKIP LOCKED
)
UPDATE checkout_resultcall r
SET lease_until = clock_timestamp() + %(lease)s::interval, attempts = least(r.attempts + 1, 32000)::smallint,
    called_at = %(now)s + due.clock_offset
FROM due WHERE r.payment_id = due.payment_id
RETURNING r.payment_id, r.checkout_id, r.attempts, r.due_at, due.expires_at, due.clock_offset
"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True, kw_only=True)
class DueResultCall:
    """A leased call, to be made now. ``attempt``: 1 for the first; ``clock_offset``: the merchant's clock minus
    real time."""

    payment: UUID
    checkout: UUID
    attempt: int
    due_at: datetime
    expires_at: datetime
    clock_offset: timedelta


def make_due_result_calls(merchant: Merchant | None = None) -> int:
    """Make the due calls. Returns how many."""
    made = 0
    with ThreadPoolExecutor(max_workers=MAX_CONCURRENT_RESULT_CALLS, thread_name_prefix="result-call") as pool:
        for _ in range(MAX_ROUNDS_PER_RUN):
            due_calls = claim_due_result_calls(clock.real_now(), merchant=merchant)
            if not due_calls:
                break
            urls = _list_result_urls(due_calls)
            asked = [(one, pool.submit(_make_call, url)) for one in due_calls if (url := urls.get(one.payment))]
            for one in due_calls:
                if not urls.get(one.payment):
                    ResultCall.objects.filter(pk=one.payment).delete()
            for one, future in asked:
                made += _record_attempt(one, future.result())
    return made


def next_result_call_at(merchant: Merchant) -> datetime | None:
    """When this merchant's next call is due, by the merchant's clock."""
    return find_earliest(ResultCall.objects.filter(checkout__merchant=merchant), "due_at")


def claim_due_result_calls(
    now: datetime, *, limit: int = MAX_CONCURRENT_RESULT_CALLS, merchant: Merchant | None = None
) -> list[DueResultCall]:
    """Lease the calls due by ``now`` (real time)."""
    values = bind_run(merchant, now=now, lease=_LEASE, limit=limit)
    return [
        DueResultCall(
            payment=payment,
            checkout=checkout,
            attempt=attempt,
            due_at=due_at,
            expires_at=expires_at,
            clock_offset=clock_offset,
        )
        for payment, checkout, attempt, due_at, expires_at, clock_offset in execute_sql(_CLAIM, values)
    ]


def _list_result_urls(due_calls: Sequence[DueResultCall]) -> dict[UUID, str]:
    """Payment → address to call. Calls that come too late are left out."""
    payments = Payment.objects.filter(pk__in=[one.payment for one in due_calls]).only("id", "request", "resource_path")
    found = {payment.pk: shopper_return.build_result_url(payment) or "" for payment in payments}
    now = clock.real_now()
    return {
        one.payment: found.get(one.payment, "")
        for one in due_calls
        if now + one.clock_offset < one.due_at + RESULT_CALL_RETENTION
    }


def _make_call(url: str) -> outbound.CallOutcome:
    return outbound.call_url("GET", url, timeout_s=RESULT_CALL_TIMEOUT_S, max_bytes=MAX_RESULT_CALL_ANSWER_BYTES)


def _record_attempt(one: DueResultCall, outcome: outbound.CallOutcome) -> int:
    """Record the attempt, and delete the call or schedule its repetition."""
    is_answered = outcome.status in ANSWERED_STATUSES
    now = clock.real_now() + one.clock_offset
    again = now + timedelta(seconds=RESULT_CALL_RETRY_DELAYS_S[min(one.attempt, len(RESULT_CALL_RETRY_DELAYS_S)) - 1])
    over = is_answered or one.attempt > len(RESULT_CALL_RETRY_DELAYS_S) or again >= one.expires_at
    write = WriteStatement()
    write.insert(
        CallAttempt,
        payment_id=one.payment,
        checkout_id=one.checkout,
        number=one.attempt,
        at=now,
        status=outcome.status,
        duration_ms=outcome.duration_ms,
        failure=mask_text(outcome.reason)[:200] if outcome.failure is not None else "",
    )
    if over:
        write.delete(ResultCall, {"payment_id": one.payment})
    else:
        write.update_related(ResultCall, {"due_at": again, "lease_until": None}, {"payment_id": one.payment})
    write.run()
    if over and not is_answered:
        log.warning("result_call_failed", payment=one.payment.hex, status=outcome.status, attempts=one.attempt)
    return 1
