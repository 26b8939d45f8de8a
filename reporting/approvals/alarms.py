"""Alarms on falls of the approval rate that are no chance.

The last hours of each merchant's clock are compared with the same hours of the four weeks before: a rate that is
lower every night is no fall. Days differ by more than chance; how much they did is measured in the weeks before and
widens the test (gateway.core.intervals). Source: docs/approval.md; docs/decisions/0107.
"""

# ruff: noqa: S608 - the statement is put together out of this module's own constants; values are always bound

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, F
from django.utils.translation import gettext_noop
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.access.permissions import AccessScope
from gateway.core import clock
from gateway.core.intervals import compute_fall_chance, estimate_dispersion
from gateway.db.statement import execute_sql
from gateway.metrics import register_database_collector
from gateway.models import Merchant
from gateway.timers.registry import Timer
from reporting.approvals.figures import ASKED_SQL
from reporting.approvals.models import RateAlarm

ALARM_WINDOW: Final = timedelta(hours=6)
ALARM_DAYS: Final = 28
"""Days before, whose same hours are compared with."""
MAX_ALARM_PAYMENTS: Final = 2_000
"""The newest attempts of the window of each day."""
MIN_ALARM_ATTEMPTS: Final = 30
MIN_ALARM_BEFORE: Final = 200
MIN_ALARM_DAYS: Final = 7
MIN_ALARM_FALL_POINTS: Final = 3.0
MAX_ALARM_CHANCE: Final = 1e-4
"""The chance of a false alarm over all segments of a merchant together: with more segments each has to be less
probable."""
ENDED_CHANCE: Final = 0.01
"""A fall that could be chance again has ended."""
ALARM_ENDS_AFTER: Final = timedelta(days=7)
"""A fall that lasts is the new rate: its alarm ends, and the days since are what the next one is compared with."""
RATE_ALARM_RETENTION: Final = timedelta(days=400)
ALARM_KINDS: Final = {
    "all": gettext_noop("all payments"),
    "brand": gettext_noop("brand"),
    "acquirer": gettext_noop("acquirer"),
    "bin": gettext_noop("BIN"),
}
_DAYS: Final = f"""
SELECT CASE WHEN grouping(account) = 0 THEN 'acquirer' WHEN grouping(brand) = 0 THEN 'brand'
        WHEN grouping(bin) = 0 THEN 'bin' ELSE 'all' END,
    coalesce(account, brand, bin, ''), back, count(*), count(*) FILTER (WHERE status = 'APPROVED')
FROM generate_series(0, {ALARM_DAYS}) AS back CROSS JOIN LATERAL (
    SELECT p.status, p.brand, concat_ws(' ', p.connector, nullif(p.acquirer_merchant_id, '')) AS account,
        coalesce(p.answer -> 'card' ->> 'bin', '') AS bin
    FROM gateway_payment p
    WHERE p.merchant_id = %(merchant)s AND p.created_at >= %(since)s::timestamptz - back * interval '1 day'
        AND p.created_at < %(until)s::timestamptz - back * interval '1 day'
        AND p.chain = p.id AND p.payment_type IN ('DB', 'PA') AND p.amount > 0
        AND {ASKED_SQL}
    ORDER BY p.created_at DESC LIMIT {MAX_ALARM_PAYMENTS}
) AS p GROUP BY GROUPING SETS ((back), (back, brand), (back, account), (back, bin))
"""
_ACTIVE: Final = """
SELECT m.id FROM gateway_merchant m WHERE EXISTS (
    SELECT 1 FROM gateway_payment p WHERE p.merchant_id = m.id
        AND p.created_at >= %(now)s::timestamptz + m.clock_offset - %(window)s::interval
) OR EXISTS (SELECT 1 FROM reporting_ratealarm a WHERE a.merchant_id = m.id AND a.ended_at IS NULL)
"""

Counted = tuple[int, int]
"""(approved, attempts)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDays:
    """A segment's attempts in the window (``now``) and in the same hours of each day before."""

    kind: str
    segment: str
    now: Counted = (0, 0)
    before: tuple[Counted, ...] = ()

    @property
    def before_sum(self) -> Counted:
        return sum(part for part, _ in self.before), sum(whole for _, whole in self.before)


def compute_chance(days: SegmentDays) -> float | None:
    """How probable the window's rate, or a lower one, is by chance; None where too little was counted to say."""
    attempts, before = days.now[1], days.before_sum
    used = sum(1 for _, whole in days.before if whole)
    if attempts < MIN_ALARM_ATTEMPTS or before[1] < MIN_ALARM_BEFORE or used < MIN_ALARM_DAYS:
        return None
    return compute_fall_chance(days.now, before, dispersion=estimate_dispersion(days.before), days=used)


def is_fall(days: SegmentDays, chance: float, segments: int) -> bool:
    """Whether a segment's rate fell, of so many ``segments`` that are looked at."""
    fell = 100 * (days.before_sum[0] / days.before_sum[1] - days.now[0] / days.now[1])
    return fell >= MIN_ALARM_FALL_POINTS and chance * max(1, segments) < MAX_ALARM_CHANCE


def watch_approval_rates() -> int:
    """Look at all merchants with payments in the window. Returns how many alarms began or ended."""
    values = {"now": clock.real_now(), "window": ALARM_WINDOW}
    active = [key for (key,) in execute_sql(_ACTIVE, values)]
    RateAlarm.objects.filter(ended_at__lt=clock.real_now() - RATE_ALARM_RETENTION).delete()
    return sum(_watch_merchant(one) for one in Merchant.objects.filter(pk__in=active).order_by("pk"))


def _watch_merchant(merchant: Merchant) -> int:
    until = clock.merchant_now(merchant)
    since = until - ALARM_WINDOW
    segments = _load_days(merchant, since, until)
    chances = {
        (one.kind, one.segment): (one, chance) for one in segments if (chance := compute_chance(one)) is not None
    }
    moved = 0
    for one, chance in chances.values():
        if is_fall(one, chance, len(chances)):
            moved += _record(merchant, one, chance, since, until)
    for alarm in RateAlarm.objects.filter(merchant=merchant, ended_at=None):
        found = chances.get((alarm.kind, alarm.segment))
        over = found is not None and found[1] >= ENDED_CHANCE
        if over or alarm.found_at < clock.real_now() - ALARM_ENDS_AFTER or until - alarm.until > ALARM_ENDS_AFTER:
            moved += RateAlarm.objects.filter(pk=alarm.pk, ended_at=None).update(ended_at=clock.real_now())
    return moved


def _load_days(merchant: Merchant, since: datetime, until: datetime) -> list[SegmentDays]:
    now: dict[tuple[str, str], Counted] = {}
    before: dict[tuple[str, str], list[Counted]] = defaultdict(list)
    for kind, segment, back, attempts, approved in execute_sql(
        _DAYS, {"merchant": merchant.pk, "since": since, "until": until}
    ):
        if back == 0:
            now[kind, segment] = (approved, attempts)
        else:
            before[kind, segment].append((approved, attempts))
    return [
        SegmentDays(kind=kind, segment=segment, now=counted, before=tuple(before[kind, segment]))
        for (kind, segment), counted in now.items()
        if segment or kind == "all"
    ]


def _record(merchant: Merchant, days: SegmentDays, chance: float, since: datetime, until: datetime) -> int:
    """Begin the segment's alarm, or bring the open one up to date. Returns 1 for a new one."""
    figures = {
        "since": since,
        "until": until,
        "attempts": days.now[1],
        "approved": days.now[0],
        "before_attempts": days.before_sum[1],
        "before_approved": days.before_sum[0],
        "chance": chance,
    }
    _row, made = RateAlarm.objects.update_or_create(
        merchant=merchant,
        kind=days.kind,
        segment=days.segment[:100],
        ended_at=None,
        defaults=figures,
        create_defaults={**figures, "found_at": clock.real_now()},
    )
    return int(made)


def list_alarms(scope: AccessScope, *, since: datetime, most: int) -> Sequence[RateAlarm]:
    """Alarms of the scope's merchants that last or were found after ``since`` (real time), open ones first."""
    rows = RateAlarm.objects.filter(scope.where("merchant", None), found_at__gte=since).select_related("merchant")
    return list(rows.order_by(F("ended_at").desc(nulls_first=True), "-found_at")[:most])


@register_database_collector
class FallCollector(Collector):
    """How many falls of approval rates last, by what fell; of all merchants together."""

    def collect(self) -> Iterator[Metric]:
        found = GaugeMetricFamily("tollhouse_approval_falls", "Falls of approval rates that last", labels=["kind"])
        rows = RateAlarm.objects.filter(ended_at=None).values_list("kind").annotate(count=Count("pk"))
        counts = dict(rows.order_by("kind"))
        for kind in ALARM_KINDS:
            found.add_metric([kind], counts.get(kind, 0))
        yield found


RATE_TIMER: Final = Timer(
    name="approval rates",
    about="Compare each merchant's approval rate with the same hours of the weeks before.",
    run=watch_approval_rates,
    every_s=900.0,
)
