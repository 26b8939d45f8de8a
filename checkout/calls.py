"""The call of a merchant who has not fetched a result: one GET to the shopperResultUrl, 29 minutes after the creation.

The call is owed since the payment began (checkout.paying writes the row) until the merchant fetches the result, and
due at 29:00 by the merchant's clock: not before, and not at all once it was fetched. One that fails is repeated while
the checkout lasts. Whoever claims a row calls; who dies meanwhile is followed by one more call at most.
Source: Part A, States and transitions; Events, 2; decisions, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog
from django.db.models import Min

from checkout.models import CallAttempt, ResultCall
from gateway import clock, outbound
from gateway.masking import mask_text
from gateway.models import Merchant, Payment
from gateway.payments import resume
from gateway.rows import Write, execute

TIMEOUT_S: Final = 10.0
"""Of one call, everything included."""
READ_BYTES: Final = 1_024
"""Of the answer, which nobody looks at."""
PAUSES_S: Final = (5, 10, 20)
"""After a call that failed; the last minute of a checkout has room for no more."""
AT_ONCE: Final = 32
"""Calls of one process at a time: a claim must not run out in a queue."""
MOST_ROUNDS: Final = 20
"""Of one run; then the next tick goes on."""
LATEST: Final = timedelta(days=1)
"""One that could not be made for so long, since nothing ran, is made no more: the webhooks have told it."""
HEARD: Final = range(200, 400)
"""A page that sends a browser on was reached, too; nobody follows it there."""
_LEASE: Final = timedelta(seconds=2 * TIMEOUT_S + 2)

log = structlog.get_logger(__name__)

# The clock is the merchant's; the first condition uses the index, with the offset that is furthest ahead. Merchants
# take turns: one with many pages that hang must not push the others' calls past the end of their checkouts.
_CLAIM: Final = """
WITH waiting AS MATERIALIZED (
    SELECT r.payment_id, m.clock_offset, c.expires_at,
        row_number() OVER (PARTITION BY m.id ORDER BY r.due_at) AS turn
    FROM checkout_resultcall r
    JOIN checkout_checkout c ON c.id = r.checkout_id JOIN gateway_merchant m ON m.id = c.merchant_id
    WHERE r.due_at <= %(now)s + (SELECT greatest(max(clock_offset), interval '0') FROM gateway_merchant)
      AND r.due_at <= %(now)s + m.clock_offset AND (r.lease_until IS NULL OR r.lease_until <= %(now)s)
      AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid)
), due AS MATERIALIZED (
    SELECT r.payment_id, w.clock_offset, w.expires_at
    FROM checkout_resultcall r JOIN waiting w ON w.payment_id = r.payment_id
    WHERE r.lease_until IS NULL OR r.lease_until <= %(now)s
    ORDER BY w.turn, r.due_at LIMIT %(limit)s FOR UPDATE OF r SKIP LOCKED
)
UPDATE checkout_resultcall r
SET lease_until = %(lease)s, attempts = least(r.attempts + 1, 32000)::smallint, called_at = %(now)s + due.clock_offset
FROM due WHERE r.payment_id = due.payment_id
RETURNING r.payment_id, r.checkout_id, r.attempts, r.due_at, due.expires_at, due.clock_offset
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A call that is this claimer's to make. ``attempt``: 1 for the first; ``ahead``: of real time, the merchant's
    clock."""

    payment: UUID
    checkout: UUID
    attempt: int
    due_at: datetime
    expires_at: datetime
    ahead: timedelta


def run(merchant: Merchant | None) -> int:
    """Make the calls that are due; how many were made."""
    made = 0
    with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="result-call") as pool:
        for _ in range(MOST_ROUNDS):
            owed = claim(clock.real(), merchant=merchant)
            if not owed:
                break
            urls = _urls(owed)
            asked = [(one, pool.submit(_call, url)) for one in owed if (url := urls.get(one.payment))]
            for one in owed:
                if not urls.get(one.payment):
                    ResultCall.objects.filter(pk=one.payment).delete()
            for one, future in asked:
                made += _keep(one, future.result())
    return made


def next_at(merchant: Merchant) -> datetime | None:
    """When this merchant's next call is due, by the merchant's clock."""
    found: datetime | None = ResultCall.objects.filter(checkout__merchant=merchant).aggregate(first=Min("due_at"))[
        "first"
    ]
    return found


def claim(now: datetime, *, limit: int = AT_ONCE, merchant: Merchant | None = None) -> list[Owed]:
    """The calls due by ``now`` (real time), each for one claimer until its lease runs out."""
    values = {"now": now, "lease": now + _LEASE, "limit": limit, "merchant": merchant.pk if merchant else None}
    return [
        Owed(payment=payment, checkout=checkout, attempt=attempt, due_at=due_at, expires_at=expires_at, ahead=ahead)
        for payment, checkout, attempt, due_at, expires_at, ahead in execute(_CLAIM, values)
    ]


def _urls(owed: Sequence[Owed]) -> dict[UUID, str]:
    """Payment → what is called. A call that is too late for anybody is none."""
    payments = Payment.objects.filter(pk__in=[one.payment for one in owed]).only("id", "request", "resource_path")
    found = {payment.pk: resume.result_url(payment) or "" for payment in payments}
    now = clock.real()
    return {one.payment: found.get(one.payment, "") for one in owed if now + one.ahead < one.due_at + LATEST}


def _call(url: str) -> outbound.Outcome:
    return outbound.call("GET", url, timeout_s=TIMEOUT_S, limit_bytes=READ_BYTES)


def _keep(one: Owed, outcome: outbound.Outcome) -> int:
    """Keep the attempt, and with it either the end of the call or when it is repeated."""
    heard = outcome.status in HEARD
    now = clock.real() + one.ahead
    again = now + timedelta(seconds=PAUSES_S[min(one.attempt, len(PAUSES_S)) - 1])
    over = heard or one.attempt > len(PAUSES_S) or again >= one.expires_at
    write = Write()
    write.insert(
        CallAttempt, payment_id=one.payment, checkout_id=one.checkout, number=one.attempt, at=now,
        status=outcome.status, duration_ms=outcome.duration_ms,
        failure=mask_text(outcome.reason)[:200] if outcome.failure is not None else "",
    )  # fmt: skip
    if over:
        write.delete(ResultCall, {"payment_id": one.payment})
    else:
        write.follow(ResultCall, {"due_at": again, "lease_until": None}, {"payment_id": one.payment})
    write.run()
    if over and not heard:
        log.warning("result_call_failed", payment=one.payment.hex, status=outcome.status, attempts=one.attempt)
    return 1
