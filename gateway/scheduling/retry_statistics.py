"""The outcomes that retries are timed by: counted once a day from this installation's payments, by one statement.

Counted are first debits and authorizations with a card that an acquirer answered, the newest MAX_RATED_PAYMENTS of
COUNTED_DAYS days. A retry is a merchant-initiated one whose charge was declined before: the run of a schedule, else
payments with one merchantTransactionId. Days and hours are UTC, by the merchants' clocks. Source: docs/decisions/0128.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import OperationalError, connection, transaction

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import Channel
from gateway.scheduling import dunning
from gateway.scheduling.models import RetryRate
from gateway.scheduling.retry_rates import (
    CellKey,
    HourOutcome,
    RateCell,
    RateCount,
    RetryOutcome,
    RetryRates,
    count_rates,
    name_retry_issuer,
)
from gateway.timers.registry import Timer

COUNTED_DAYS: Final = 180
MAX_RATED_PAYMENTS: Final = 200_000
MAX_COUNTED_ISSUERS: Final = 500
"""Issuers with cells of their own: those with the most payments. The others are in the cells of all."""
MAX_RETRY_GAP_DAYS: Final = 15
"""A charge that is made later than this after its decline is another one under the same number."""
COUNT_INTERVAL: Final = timedelta(days=1)
COUNT_TIMEOUT_MS: Final = 60_000
WIDEST_CELL: Final[CellKey] = (RateCell.RATE, "", "", "", 0)

# Of each merchant the newest, by the index of merchant and time; of all these the newest again. What is in documents is
# read of those alone.
_CHARGES: Final = """
WITH newest AS MATERIALIZED (
    SELECT p.* FROM gateway_merchant m CROSS JOIN LATERAL (
        SELECT p.id, p.created_at FROM gateway_payment p
        WHERE p.merchant_id = m.id {period}
            AND p.chain = p.id AND p.payment_type IN ('DB', 'PA') AND p.amount > 0 AND p.means = 'card'
            AND p.status IN ('APPROVED', 'DECLINED') AND p.connector NOT IN ('', 'nobody')
        ORDER BY p.created_at DESC LIMIT %(most)s::integer
    ) AS p {merchant} ORDER BY p.created_at DESC LIMIT %(most)s::integer
), chosen AS MATERIALIZED (
    SELECT p.id, p.merchant_id, p.created_at AT TIME ZONE 'UTC' AS at, p.status = 'APPROVED' AS approved,
        p.result_code AS code, coalesce(p.answer -> 'resultDetails' ->> 'MerchantAdviceCode', '') AS advice,
        coalesce(p.answer -> 'card' ->> 'bin', '') AS bin,
        p.request -> 'standingInstruction' ->> 'source' = 'MIT' AS by_merchant,
        coalesce(nullif(concat_ws(' ', p.answer -> 'facts' -> 'schedule' ->> 'id',
            p.answer -> 'facts' -> 'schedule' ->> 'dueAt'), ''), p.merchant_transaction_id) AS charge
    FROM newest JOIN gateway_payment p ON p.id = newest.id
), charges AS (
    SELECT c.*, lag(code) OVER tries AS before, lag(advice) OVER tries AS advised, lag(approved) OVER tries AS paid,
        lag(at) OVER tries AS declined_at
    FROM chosen c WHERE by_merchant AND charge <> ''
    WINDOW tries AS (PARTITION BY merchant_id, charge ORDER BY at, id)
), retries AS (
    SELECT * FROM charges WHERE NOT paid AND at - declined_at <= %(gap)s::interval
)"""
_OF_INSTALLATION: Final = _CHARGES.format(
    period="AND p.created_at >= %(now)s::timestamptz + m.clock_offset - %(since)s::interval "
    "AND p.created_at <= %(now)s::timestamptz + m.clock_offset",
    merchant="",
)
_OF_CHANNEL: Final = _CHARGES.format(
    period="AND p.channel_id = %(channel)s::uuid AND p.created_at >= %(from)s::timestamptz "
    "AND p.created_at < %(to)s::timestamptz AND (%(all)s OR p.test_mode <> 'INTERNAL')",
    merchant="WHERE m.id = %(merchant)s::uuid",
)
_COUNTED_ATTEMPTS: Final = """
SELECT 'attempt', bin, code, '', 0, 0, extract(hour FROM at)::integer, count(*), count(*) FILTER (WHERE approved)
FROM chosen GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
_COUNT: Final = (
    _OF_INSTALLATION
    + """
SELECT 'retry', bin, before, advised, extract(day FROM at)::integer, extract(isodow FROM at)::integer,
    extract(hour FROM at)::integer, count(*), count(*) FILTER (WHERE approved)
FROM retries GROUP BY 1, 2, 3, 4, 5, 6, 7
UNION ALL"""
    + _COUNTED_ATTEMPTS
)
_RETRIES: Final = """
SELECT id, bin, before, advised, declined_at, at, approved FROM retries ORDER BY at DESC LIMIT %(retries)s"""
_ATTEMPTS_BY_DAY: Final = """
SELECT at::date, bin, code, extract(hour FROM at)::integer, count(*), count(*) FILTER (WHERE approved)
FROM chosen GROUP BY 1, 2, 3, 4"""
MAX_PAST_RETRIES: Final = 20_000
"""The newest retries of the period that a trial looks at."""

log = structlog.get_logger(__name__)
_OUTCOME_COLUMNS: Final = ("cell", "code", "advice", "issuer", "value", "tries", "approved", "expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRates:
    """The rates of one issuer and of all, and when they were counted (real time)."""

    rates: RetryRates
    counted_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRetry:
    """One retry of a trial. ``declined_at``, ``at``: UTC."""

    payment: UUID
    issuer: str
    code: str
    advice: str
    declined_at: datetime
    at: datetime
    approved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempts:
    """Attempts of a day and hour at an issuer, counted; without declines that speak of the card."""

    day: date
    issuer: str
    hour: int
    tries: int
    approved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCharges:
    """What a channel's past says about retries."""

    retries: list[PastRetry]
    attempts: list[PastAttempts]


def read_past_charges(
    merchant: UUID, channel: UUID, since: datetime, until: datetime, *, with_internal: bool
) -> PastCharges:
    """The retries of a channel's period and its attempts by day and hour, at most MAX_PAST_RETRIES retries of
    MAX_RATED_PAYMENTS payments, the newest. ``with_internal``: payments of testMode INTERNAL too."""
    values = {
        "merchant": merchant,
        "channel": channel,
        "from": since,
        "to": until,
        "all": with_internal,
        "gap": timedelta(days=MAX_RETRY_GAP_DAYS),
        "most": MAX_RATED_PAYMENTS,
        "retries": MAX_PAST_RETRIES,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {COUNT_TIMEOUT_MS}")
        retries = execute_sql(_OF_CHANNEL + _RETRIES, values)
        attempts = execute_sql(_OF_CHANNEL + _ATTEMPTS_BY_DAY, values)
    return PastCharges(
        retries=[
            PastRetry(
                payment=ident,
                issuer=name_retry_issuer(card_bin),
                code=code,
                advice=advice,
                declined_at=declined_at.replace(tzinfo=UTC),
                at=at.replace(tzinfo=UTC),
                approved=approved,
            )
            for ident, card_bin, code, advice, declined_at, at, approved in retries
        ],
        attempts=[
            PastAttempts(day=day, issuer=name_retry_issuer(card_bin), hour=hour, tries=tries, approved=approved)
            for day, card_bin, code, hour, tries, approved in attempts
            if speaks_of_hour(code, approved=approved > 0)
        ],
    )


def count_past_charges(retries: Iterable[PastRetry], attempts: Iterable[PastAttempts]) -> RetryRates:
    """The rates of these retries and attempts alone."""
    return count_rates(
        [
            RetryOutcome(
                code=one.code,
                advice=one.advice,
                issuer=one.issuer,
                day=one.at.day,
                weekday=one.at.isoweekday(),
                hour=one.at.hour,
                tries=1,
                approved=int(one.approved),
            )
            for one in retries
        ],
        [HourOutcome(issuer=one.issuer, hour=one.hour, tries=one.tries, approved=one.approved) for one in attempts],
    )


def count_outcomes(now: datetime) -> int:
    """Count all outcomes anew and replace the stored cells; returns the number of cells."""
    values = {
        "now": now,
        "since": timedelta(days=COUNTED_DAYS),
        "gap": timedelta(days=MAX_RETRY_GAP_DAYS),
        "most": MAX_RATED_PAYMENTS,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {COUNT_TIMEOUT_MS}")
        rates = rates_from_rows(execute_sql(_COUNT, values))
        counts = rates.counts or {WIDEST_CELL: RateCount()}  # nothing to count is counted, too, and not again at once
        RetryRate.objects.all().delete()
        rows = [
            RetryRate(
                cell=cell,
                code=code,
                advice=advice,
                issuer=issuer,
                value=value,
                tries=count.tries,
                approved=count.approved,
                expected=count.expected,
                counted_at=now,
            )
            for (cell, code, advice, issuer, value), count in counts.items()
        ]
        RetryRate.objects.bulk_create(rows, batch_size=2_000)
    return len(rows)


def rates_from_rows(rows: Sequence[Sequence[Any]]) -> RetryRates:
    """The cells of what the statement counted. Issuers beyond MAX_COUNTED_ISSUERS share the cells of all."""
    attempts: Counter[str] = Counter()
    for row in rows:
        attempts[name_retry_issuer(row[1])] += row[7]
    own = {name for name, _ in attempts.most_common(MAX_COUNTED_ISSUERS)}

    def name(card_bin: str) -> str:
        issuer = name_retry_issuer(card_bin)
        return issuer if issuer in own else ""

    return count_rates(
        [
            RetryOutcome(
                code=code,
                advice=advice,
                issuer=name(card_bin),
                day=day,
                weekday=weekday,
                hour=hour,
                tries=tries,
                approved=approved,
            )
            for kind, card_bin, code, advice, day, weekday, hour, tries, approved in rows
            if kind == "retry"
        ],
        [
            HourOutcome(issuer=name(row[1]), hour=row[6], tries=row[7], approved=row[8])
            for row in rows
            if row[0] == "attempt" and speaks_of_hour(row[2], approved=row[8] > 0)
        ],
    )


def speaks_of_hour(code: str, *, approved: bool) -> bool:
    """Whether an answer may depend on the hour: approvals, and declines that may be tried again and are not for a lack
    of money."""
    if approved:
        return True
    return code not in dunning.RESUBMITTED_CODES and isinstance(dunning.decide_dunning(code, ""), dunning.DunningRetry)


def load_rates(issuers: Iterable[str]) -> StoredRates:
    """The stored rates of these issuers and of all together."""
    rows = (
        RetryRate.objects.filter(issuer__in={*issuers, ""})
        .order_by("-counted_at")
        .values_list(*_OUTCOME_COLUMNS, "counted_at")
    )
    counts: dict[CellKey, RateCount] = {}
    counted_at = None
    for cell, code, advice, issuer, value, tries, approved, expected, counted_at in rows:  # noqa: B007 - the last is kept
        count = RateCount(tries=tries, approved=approved, expected=expected)
        counts[RateCell(cell), code, advice, issuer, value] = count
    return StoredRates(rates=RetryRates(counts), counted_at=counted_at)


def _count_when_due() -> int:
    now = clock.real_now()
    if not Channel.objects.filter(retry_timing=Channel.RetryTiming.OUTCOMES).exists():
        return 0
    if RetryRate.objects.filter(counted_at__gt=now - COUNT_INTERVAL).exists():
        return 0
    try:
        return count_outcomes(now)
    except OperationalError:  # it took longer than it may
        log.exception("retry_outcomes_not_counted")
    # The cells of the count before stay for another day.
    cell, code, advice, issuer, value = WIDEST_CELL
    RetryRate.objects.update_or_create(
        cell=cell,
        code=code,
        advice=advice,
        issuer=issuer,
        value=value,
        defaults={"counted_at": now},
        create_defaults={"counted_at": now, "tries": 0, "approved": 0, "expected": 0.0},
    )
    return 0


TIMER: Final = Timer(
    name="retry outcomes",
    run=_count_when_due,
    every_s=300.0,
    about="Count by issuer, day and hour how often declined charges were approved later.",
)
