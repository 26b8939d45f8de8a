"""The timer of subscription jobs: claims due jobs and runs by a lease and processes them.

The lease only keeps workers from the same row; that no run is charged twice is ensured by the job's sequence and the
unique run (gateway.scheduling.job_runs). Times are in the merchant's clock: one index finds the rows due by real time;
merchants whose clock was moved, in the test environment, are searched one by one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import Min

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import Merchant
from gateway.payments import store
from gateway.scheduling import job_runs
from gateway.scheduling.models import Job, JobRun
from gateway.timers.registry import MerchantTimer

JOB_CLAIM_SIZE: Final = 20
"""Rows per claim of one merchant's; each is one payment, and the lease covers all of them."""
MAX_JOBS_PER_TICK: Final = 200
"""Rows that one tick of the timer processes at most for one merchant."""
MAX_TICK_S: Final = 10.0
"""How long the lanes of a tick take up further rows."""
MAX_PARALLEL_JOB_TICKS: Final = 4
"""Parallel ticks of the timer, on all machines together."""

log = structlog.get_logger(__name__)

# Due rows are found by two indexes: those due by real time, and those of merchants whose clock is ahead. The last
# condition leaves out merchants whose clock is behind.
_CLAIM: Final = """
WITH ahead AS MATERIALIZED (
    SELECT r.id, r.next_at FROM gateway_merchant m CROSS JOIN LATERAL (
        SELECT id, next_at FROM {table}
        WHERE merchant_id = m.id AND next_at <= %(now)s::timestamptz + m.clock_offset
          AND (lease_until IS NULL OR lease_until <= statement_timestamp())
        ORDER BY next_at LIMIT %(limit)s
    ) r WHERE m.clock_offset > interval '0'
), due AS MATERIALIZED (
    SELECT r.id FROM {table} r
    WHERE r.id IN (
        (SELECT id FROM ahead ORDER BY next_at LIMIT %(limit)s)
        UNION ALL
        (SELECT j.id FROM {table} j JOIN gateway_merchant m ON m.id = j.merchant_id
         WHERE j.next_at <= %(now)s::timestamptz AND j.next_at <= %(now)s::timestamptz + m.clock_offset
           AND (j.lease_until IS NULL OR j.lease_until <= statement_timestamp())
         ORDER BY j.next_at LIMIT %(limit)s)
    ) LIMIT %(limit)s FOR UPDATE OF r SKIP LOCKED
)
UPDATE {table} r SET lease_until = clock_timestamp() + %(lease)s::interval FROM due WHERE r.id = due.id
RETURNING r.id, r.next_at, r.{more}
"""
_CLAIM_OF_ONE: Final = """
WITH due AS MATERIALIZED (
    SELECT id FROM {table} WHERE merchant_id = %(merchant)s::uuid AND next_at <= %(own)s::timestamptz
      AND (lease_until IS NULL OR lease_until <= statement_timestamp())
    ORDER BY next_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE {table} r SET lease_until = clock_timestamp() + %(lease)s::interval FROM due WHERE r.id = due.id
RETURNING r.id, r.next_at, r.{more}
"""
_TABLES: Final = {Job: ("scheduling_job", "sequence"), JobRun: ("scheduling_jobrun", "state")}

ClaimedJob = tuple[UUID, datetime, Any]
ClaimedJobs = list[ClaimedJob]
_RowHandler = Callable[[UUID, Any], bool]


def claim_due_jobs(
    model: type[Job | JobRun], limit: int, now: datetime, merchant: Merchant | None = None
) -> ClaimedJobs:
    """Claim due rows by a lease. Returns (id, due time, the job's sequence or the run's state), earliest first.
    ``now``: real time."""
    table, more = _TABLES[model]
    asking = 2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S + settings.GATEWAY_FAILOVER_WITHIN_S
    lease = timedelta(seconds=asking) + store.ANSWER_GRACE
    values: dict[str, Any] = {"now": now, "limit": limit, "lease": lease}
    if merchant is None:
        found = execute_sql(_CLAIM.format(table=table, more=more), values)
    else:
        values |= {"merchant": merchant.pk, "own": now + merchant.clock_offset}
        found = execute_sql(_CLAIM_OF_ONE.format(table=table, more=more), values)
    rows: ClaimedJobs = [(row[0], row[1], row[2]) for row in found]
    return sorted(rows, key=lambda row: row[1])


def run_due_jobs(merchant: Merchant | None = None) -> int:
    """Make due runs, retry declined ones, and recheck those without a result; returns how many were processed."""
    return _run_claimed(Job, merchant, job_runs.run_job) + _run_claimed(JobRun, merchant, _continue_run)


def _continue_run(ident: UUID, state: str) -> bool:
    return job_runs.retry_run(ident) if state == JobRun.State.RETRYING else job_runs.recheck_run(ident)


def _run_claimed(model: type[Job | JobRun], merchant: Merchant | None, work: _RowHandler) -> int:
    """Process due rows: of one merchant one by one, in the order of their times; of all merchants in parallel lanes, so
    that a slow acquirer does not hold up the runs of others."""
    lanes = settings.GATEWAY_JOB_LANES if merchant is None else 1
    first = claim_due_jobs(model, lanes if lanes > 1 else JOB_CLAIM_SIZE, clock.real_now(), merchant)
    if lanes == 1 or len(first) < 2:
        return _run_sequentially(model, merchant, work, first)
    due = DueRows(model, first, lanes)
    with ThreadPoolExecutor(max_workers=lanes, thread_name_prefix="jobs") as pool:
        running = [pool.submit(_run_lane, model, work, due) for _ in range(lanes)]
        return sum(lane.result() for lane in running)


class DueRows:
    """Claimed rows that the lanes of a tick take one by one. A claim is as many as there are lanes, so that no claimed
    row waits behind more than one that is slow."""

    def __init__(self, model: type[Job | JobRun], claimed: ClaimedJobs, lanes: int) -> None:
        self._model, self._lanes = model, lanes
        self._rows, self._until = deque(claimed), time.monotonic() + MAX_TICK_S
        self._lock = threading.Lock()

    def take(self) -> ClaimedJob | None:
        """The earliest due row; None when none is left, or the tick's time is over."""
        with self._lock:
            if not self._rows and time.monotonic() < self._until:
                self._rows.extend(claim_due_jobs(self._model, self._lanes, clock.real_now()))
            return self._rows.popleft() if self._rows else None


def _run_sequentially(
    model: type[Job | JobRun], merchant: Merchant | None, work: _RowHandler, claimed: ClaimedJobs
) -> int:
    done = seen = 0
    while claimed:
        done += sum(_run_safely(model, work, row) for row in claimed)
        seen += len(claimed)
        if seen >= MAX_JOBS_PER_TICK:
            break
        claimed = claim_due_jobs(model, JOB_CLAIM_SIZE, clock.real_now(), merchant)
    return done


def _run_lane(model: type[Job | JobRun], work: _RowHandler, due: DueRows) -> int:
    try:
        done = 0
        while (row := due.take()) is not None:
            done += _run_safely(model, work, row)
        return done
    finally:
        connection.close()


def _run_safely(model: type[Job | JobRun], work: _RowHandler, row: ClaimedJob) -> bool:
    ident, _, more = row
    try:
        return work(ident, more)
    except Exception:  # one job must not stop the others; it is due again when its lease ends
        log.exception("job_failed", kind=model.__name__, id=ident.hex)
        return False


def find_next_job_time(merchant: Merchant) -> datetime | None:
    """When this merchant's next run, retry or recheck is due, by the merchant's clock; None without any."""
    times = [
        model._default_manager.filter(merchant=merchant, next_at__isnull=False).aggregate(first=Min("next_at"))["first"]
        for model in (Job, JobRun)
    ]
    return min((at for at in times if at is not None), default=None)


TIMERS: Final = (
    MerchantTimer(name="jobs", run=run_due_jobs, next_at=find_next_job_time, at_once=MAX_PARALLEL_JOB_TICKS,
          about="Make the payments of subscription jobs, and try declined ones again.",
          earliest_due="SELECT least((SELECT min(next_at) FROM scheduling_job), "
                       "(SELECT min(next_at) FROM scheduling_jobrun))"),
)  # fmt: skip
