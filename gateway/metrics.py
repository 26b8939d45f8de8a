"""Prometheus metrics: requests by operation and status, durations of requests and acquirer calls, payments in doubt.

Each process counts for itself; with PROMETHEUS_MULTIPROC_DIR set (as `make run` does) any process reports the sum of
all. Figures from the database are read when the metrics are fetched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from django.db.models import Count, Min, Q
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.core import clock
from gateway.db import database_clock, partitions
from gateway.models import AcquirerExchange, OpenPayment, Status, TimerRun
from gateway.models.payments import MANY_REFUSALS, PERSON_TYPES
from gateway.timers import due_times, registry

_BUCKETS: Final = (0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

PROCESS_REGISTRY: Final = CollectorRegistry()
REQUEST_COUNT: Final = Counter(
    "tollhouse_requests", "API requests answered", ["operation", "status"], registry=PROCESS_REGISTRY
)
REQUEST_SECONDS: Final = Histogram(
    "tollhouse_request_seconds",
    "Time to answer an API request",
    ["operation"],
    buckets=_BUCKETS,
    registry=PROCESS_REGISTRY,
)
ACQUIRER_SECONDS: Final = Histogram(
    "tollhouse_acquirer_seconds",
    "Time an acquirer took",
    ["connector", "outcome"],
    buckets=_BUCKETS,
    registry=PROCESS_REGISTRY,
)
ACQUIRER_IN_FLIGHT: Final = Gauge(
    "tollhouse_acquirer_in_flight", "Payments waiting for an acquirer's answer", ["connector", "account"],
    registry=PROCESS_REGISTRY, multiprocess_mode="livesum",
)  # fmt: skip
BREAKER_STATE: Final = Gauge(
    "tollhouse_circuit_breaker_state", "Circuit breaker of an acquirer account: 0 closed, 1 half open, 2 open; "
    "the worst of all processes", ["connector", "account"], registry=PROCESS_REGISTRY, multiprocess_mode="livemax",
)  # fmt: skip
ACQUIRER_REFUSALS: Final = Counter(
    "tollhouse_payments_not_sent", "Payments that were not sent, by breaker or bulkhead", ["connector", "by"],
    registry=PROCESS_REGISTRY,
)  # fmt: skip
FAILOVERS: Final = Counter(
    "tollhouse_failovers",
    "Payments taken on to another acquirer",
    ["from_connector", "to_connector"],
    registry=PROCESS_REGISTRY,
)
CASCADES: Final = Counter(
    "tollhouse_cascades",
    "Declined payments authorized again at another account",
    ["from_connector", "to_connector"],
    registry=PROCESS_REGISTRY,
)
ACCOUNT_UPDATES: Final = Counter(
    "tollhouse_account_updates", "Questions to the account updater, by how and by answer", ["how", "answer"],
    registry=PROCESS_REGISTRY,
)  # fmt: skip


def count_request(operation: str, status: int, seconds: float) -> None:
    """Count one API request."""
    _request_counter(operation, status).inc()
    _request_histogram(operation).observe(seconds)


# Looking a metric up by its labels costs more than incrementing it.
@lru_cache(maxsize=512)
def _request_counter(operation: str, status: int) -> Counter:
    return REQUEST_COUNT.labels(operation, str(status))


@lru_cache(maxsize=512)
def _request_histogram(operation: str) -> Histogram:
    return REQUEST_SECONDS.labels(operation)


def observe_acquirer_answer(connector: str, outcome: str, seconds: float) -> None:
    """Record one acquirer call; ``outcome`` is the payment event it led to."""
    ACQUIRER_SECONDS.labels(connector, outcome).observe(seconds)


@lru_cache(maxsize=512)
def in_flight_gauge(connector: str, account: str) -> Gauge:
    """The gauge of payments that wait for an account's answer in this process."""
    return ACQUIRER_IN_FLIGHT.labels(connector, account)


def record_breaker_state(connector: str, account: str, state: int) -> None:
    """Record a circuit breaker's state: 0 closed, 1 half open, 2 open."""
    BREAKER_STATE.labels(connector, account).set(state)


def count_refusal(connector: str, by: str) -> None:
    """Count one payment that was not sent to an acquirer."""
    ACQUIRER_REFUSALS.labels(connector, by).inc()


def count_failover(before: str, after: str) -> None:
    """Count one failover from one acquirer to another."""
    FAILOVERS.labels(before, after).inc()


def count_cascade(before: str, after: str) -> None:
    """Count one declined payment that is authorized again, at another account."""
    CASCADES.labels(before, after).inc()


def count_account_update(how: str, answer: str) -> None:
    """Count one question to the account updater. ``how``: real time, or file."""
    ACCOUNT_UPDATES.labels(how, answer).inc()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPaymentCounts:
    """Payments without a final answer: their number by status, and the age of the oldest in doubt that is asked about.
    ``undecided``: those of them that a person has to ask about (payouts to cards, refunds and credits that their
    acquirer does not take back, captures and reversals whose repeats decide nothing)."""

    by_status: Mapping[str, int]
    oldest_in_doubt_s: float
    undecided: int = 0


def count_open_payments() -> OpenPaymentCounts:
    """Count payments without an answer, now."""
    # What waits for a person (docs/decisions/0138, 0152) would hide all others.
    given = OpenPayment.objects.filter(payment__status=Status.IN_DOUBT, payment__payment_type__in=PERSON_TYPES)
    often_asked = given.filter(inquiries__gte=MANY_REFUSALS).values_list("pk", flat=True)
    refusals = AcquirerExchange.count_undecided(often_asked)
    refused = [ident for ident, count in refusals.items() if count >= MANY_REFUSALS]
    payout = Q(pk__in=refused) | Q(
        payment__status=Status.IN_DOUBT,
        payment__payment_type="CD",
        payment__connector="iso8583",
        payment__request__transactionProcessingCode="PAYMENT",
    )
    rows = list(
        OpenPayment.objects.values_list("payment__status").annotate(
            count=Count("pk"), since=Min("payment__created_at", filter=~payout), payouts=Count("pk", filter=payout)
        )
    )
    now = clock.real_now()
    ages = [(now - since).total_seconds() for status, _, since, _ in rows if status == Status.IN_DOUBT and since]
    return OpenPaymentCounts(
        by_status={status: count for status, count, _, _ in rows},
        oldest_in_doubt_s=max([0.0, *ages]),
        undecided=sum(payouts for *_, payouts in rows),
    )


class _PaymentCollector(Collector):
    """Figures from the database: payments without an answer, and how long the oldest has waited."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        waiting = GaugeMetricFamily("tollhouse_payments_open", "Payments without a final answer", labels=["status"])
        oldest = GaugeMetricFamily(
            "tollhouse_in_doubt_oldest_seconds", "Age of the oldest payment in doubt that we ask about"
        )
        found = count_open_payments()
        for status, count in found.by_status.items():
            waiting.add_metric([status], count)
        oldest.add_metric([], found.oldest_in_doubt_s)
        undecided = GaugeMetricFamily(
            "tollhouse_payouts_undecided",
            "Payouts, credits, refunds, captures and reversals that a person has to ask about",
        )
        undecided.add_metric([], found.undecided)
        yield waiting
        yield oldest
        yield undecided


class _ClockCollector(Collector):
    """This machine's clock against the database's."""

    def collect(self) -> Iterator[Metric]:
        found = GaugeMetricFamily(
            "tollhouse_clock_difference_seconds", "This machine's clock minus the database's, last measured"
        )
        found.add_metric([], database_clock.compare_clocks().seconds)
        yield found


def measure_timer_lag(row: TimerRun, now: datetime) -> float:
    """Seconds since a timer should have run last; 0.0 for one that is in time, or off."""
    timer = registry.TIMERS[row.name]
    pause = registry.RUN_STATISTICS_INTERVAL.total_seconds()
    pause += max(timer.every_s, due_times.SAFETY_TICK_INTERVAL_S if timer.earliest_due else 0)
    return 0.0 if timer.is_off() else max(0.0, (now - row.last_at).total_seconds() - pause)


class _TimerCollector(Collector):
    """Timer statistics of all machines. A timer that has not run yet, or not for long, lags."""

    def collect(self) -> Iterator[Metric]:
        lag = GaugeMetricFamily("tollhouse_timer_lag_seconds", "Since it should have run last", labels=["timer"])
        took = GaugeMetricFamily("tollhouse_timer_last_run_seconds", "How long its last run took", labels=["timer"])
        counts = {
            column: CounterMetricFamily(f"tollhouse_timer_{name}", text, labels=["timer"])
            for column, name, text in (
                ("runs", "runs", "Runs"),
                ("done", "items", "Items processed"),
                ("failures", "failures", "Runs that failed"),
                ("busy", "overlaps", "Wake-ups that found it running"),
            )
        }
        now = clock.real_now()
        for row in TimerRun.objects.filter(name__in=list(registry.TIMERS)).order_by("name"):
            lag.add_metric([row.name], measure_timer_lag(row, now))
            took.add_metric([row.name], row.last_ms / 1000)
            for column, family in counts.items():
                family.add_metric([row.name], getattr(row, column))
        yield from (lag, took, *counts.values())


class _QueueCollector(Collector):
    """How long what is due has waited, per timer that tells its due times; 0 if nothing does."""

    def collect(self) -> Iterator[Metric]:
        ages = GaugeMetricFamily("tollhouse_queue_age_seconds", "Age of the earliest due thing", labels=["timer"])
        for name, age in due_times.measure_queue_ages().items():
            ages.add_metric([name], age.total_seconds() if age is not None else 0.0)
        yield ages


class _PartitionCollector(Collector):
    """How many months ahead have partitions, per partitioned table; below 1 the timer has not run for long."""

    def collect(self) -> Iterator[Metric]:
        found = GaugeMetricFamily(
            "tollhouse_partition_months_ahead", "Months after the present one with partitions", labels=["table"]
        )
        for table in partitions.PARTITIONED_TABLES:
            found.add_metric([table.name], partitions.count_months_ahead(table, clock.real_now()))
        yield found


_DATABASE_COLLECTORS: Final[list[type[Collector]]] = [
    _PaymentCollector,
    _TimerCollector,
    _QueueCollector,
    _ClockCollector,
    _PartitionCollector,
]


def register_database_collector(collector: type[Collector]) -> type[Collector]:
    """Add figures from the database that another app counts; used as a decorator."""
    _DATABASE_COLLECTORS.append(collector)
    return collector


def render_metrics() -> bytes:
    """All metrics in Prometheus' text format."""
    database = CollectorRegistry()
    for collector in _DATABASE_COLLECTORS:
        database.register(collector())
    if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return bytes(generate_latest(PROCESS_REGISTRY) + generate_latest(database))
    processes = CollectorRegistry()
    multiprocess.MultiProcessCollector(processes)  # type: ignore[no-untyped-call]
    return bytes(generate_latest(processes) + generate_latest(database))
