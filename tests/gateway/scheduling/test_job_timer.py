"""The timer of jobs: what a claim takes, in which order and for how long, and how claimed rows are shared by lanes.

Source: goals R1; docs/decisions/0022.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from gateway.core import clock
from gateway.models import Merchant
from gateway.payments import store
from gateway.scheduling import job_runs, job_timer
from gateway.scheduling.job_timer import JOB_CLAIM_SIZE, MAX_TICK_S, TIMERS, DueRows, claim_due_jobs, find_next_job_time
from gateway.scheduling.models import Job, JobRun
from tests.support.fixtures import Shop

HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)
PATIENCE_S = 20
BOTH = pytest.mark.parametrize("model", [Job, JobRun], ids=["jobs", "runs"])


def make_job(shop: Shop, next_at: datetime | None, **values: Any) -> Job:
    now = clock.real_now()
    fields = {
        "merchant": shop.merchant, "channel": shop.channel, "registration": UUID(int=1), "payment_type": "DB",
        "amount": 9, "currency": "EUR", "expression": "0 0 0 1 * ?", "zone": "UTC", "starts_at": now, "created_at": now,
        "next_at": next_at, "state": "ACTIVE" if next_at else "SUSPENDED",
    }  # fmt: skip
    return Job.objects.create(**fields | values)


def make_due(model: type[Job | JobRun], shop: Shop, next_at: datetime | None, **values: Any) -> Job | JobRun:
    """A job, or a run of another one that waits."""
    if model is Job:
        return make_job(shop, next_at, **values)
    now = clock.real_now()
    return JobRun.objects.create(
        job=make_job(shop, None), merchant=shop.merchant, due_at=now, at=now, next_at=next_at,
        **{"state": "RETRYING", **values},
    )  # fmt: skip


def move_clock(shop: Shop, offset: timedelta) -> Merchant:
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=offset)
    return Merchant.objects.get(pk=shop.merchant.pk)


# --- claims ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@BOTH
@pytest.mark.parametrize("offset", [timedelta(0), HOUR, -HOUR], ids=["right", "ahead", "behind"])
@pytest.mark.parametrize("of_one", [False, True], ids=["of all", "of one"])
def test_a_claim_takes_what_is_due_and_nobody_has(
    shop: Shop, stranger: Shop, model: type[Job | JobRun], offset: timedelta, of_one: bool
) -> None:
    """By its merchant's clock. A lease is the database's time."""
    merchant = move_clock(shop, offset)
    real = clock.real_now()
    now = real + offset
    last = make_due(model, shop, now)
    first = make_due(model, shop, now - 2 * HOUR, lease_until=real - HOUR)
    make_due(model, shop, now + TICK)
    make_due(model, shop, None)
    leased = make_due(model, shop, now - HOUR, lease_until=real + HOUR)
    others = make_due(model, stranger, real - HOUR / 2)
    expected = [first, last] if of_one else sorted((first, others, last), key=lambda row: row.next_at or now)
    more = "sequence" if model is Job else "state"
    found = claim_due_jobs(model, 20, real, merchant if of_one else None)
    assert found == [(row.pk, row.next_at, getattr(row, more)) for row in expected]
    held = model._default_manager.filter(lease_until__gt=clock.real_now())
    assert set(held.values_list("pk", flat=True)) == {leased.pk, *(row.pk for row in expected)}


@pytest.mark.django_db
@BOTH
@pytest.mark.parametrize("offset", [timedelta(0), HOUR], ids=["right", "ahead"])
@pytest.mark.parametrize("of_one", [False, True], ids=["of all", "of one"])
def test_a_claim_takes_the_longest_due_and_no_more_than_it_may(
    shop: Shop, model: type[Job | JobRun], offset: timedelta, of_one: bool
) -> None:
    merchant = move_clock(shop, offset)
    real = clock.real_now()
    rows = [make_due(model, shop, real + offset - age * HOUR) for age in (3, 1, 4, 2)]
    found = claim_due_jobs(model, 2, real, merchant if of_one else None)
    assert [row[0] for row in found] == [rows[2].pk, rows[0].pk]


@pytest.mark.django_db
def test_both_ways_together_take_no_more_than_one_claim_may(shop: Shop, stranger: Shop) -> None:
    move_clock(shop, HOUR)
    real = clock.real_now()
    for one in (shop, shop, stranger, stranger):
        make_job(one, real)
    assert len(claim_due_jobs(Job, 3, real)) == 3


def database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetime = cursor.fetchone()[0]
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("of_one", [False, True], ids=["of all", "of one"])
def test_a_lease_covers_the_acquirers_two_calls_and_the_failovers(shop: Shop, settings: Any, of_one: bool) -> None:
    settings.GATEWAY_ACQUIRER_TIMEOUT_S, settings.GATEWAY_FAILOVER_WITHIN_S = 700.0, 50.0
    job = make_job(shop, clock.real_now() - HOUR)
    before = database_time()
    claim_due_jobs(Job, 20, clock.real_now(), shop.merchant if of_one else None)
    job.refresh_from_db()
    assert job.lease_until is not None
    begun = job.lease_until - timedelta(seconds=2 * 700 + 50) - store.ANSWER_GRACE
    assert before <= begun <= database_time()


# --- what is done with them -----------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("of_one", [False, True], ids=["of all", "of one"])
def test_each_row_is_handed_to_what_it_waits_for(shop: Shop, monkeypatch: pytest.MonkeyPatch, of_one: bool) -> None:
    """And counted where something was done."""
    due = clock.real_now() - HOUR
    job = make_job(shop, due, sequence=7)
    retried, other = make_due(JobRun, shop, due), make_due(JobRun, shop, due - HOUR)
    looked_at = make_due(JobRun, shop, due, state="OPEN")
    done: list[tuple[Any, ...]] = []

    def handler(name: str, result: bool) -> Any:
        return lambda *given: done.append((name, *given)) or result

    for name, result in (("run_job", True), ("retry_run", True), ("recheck_run", False)):
        monkeypatch.setattr(job_runs, name, handler(name, result))
    assert job_timer.run_due_jobs(shop.merchant if of_one else None) == 3
    assert (done[0], done[1]) == (("run_job", job.pk, 7), ("retry_run", other.pk))
    assert set(done[2:]) == {("retry_run", retried.pk), ("recheck_run", looked_at.pk)}


@pytest.mark.django_db
def test_one_that_fails_stops_no_other_and_counts_for_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    due = clock.real_now() - HOUR
    jobs = [make_job(shop, due + number * TICK) for number in range(3)]
    done: list[UUID] = []

    def run(ident: UUID, _: int) -> bool:
        done.append(ident)
        if ident == jobs[0].pk:
            raise ValueError("broken")
        return True

    monkeypatch.setattr(job_runs, "run_job", run)
    assert job_timer.run_due_jobs(None) == 2
    assert done == [job.pk for job in jobs]


def row(number: int) -> job_timer.ClaimedJob:
    return UUID(int=number), datetime(2030, 1, number, tzinfo=UTC), 100 + number


class Claims:
    """Claims whose rows a test sets, and how they were asked for."""

    def __init__(self, *sizes: int) -> None:
        numbers = iter(range(1, 30))
        self.left = [[row(next(numbers)) for _ in range(size)] for size in sizes]
        self.asked: list[tuple[Any, ...]] = []

    def __call__(self, model: Any, limit: int, now: datetime, merchant: Any = None) -> job_timer.ClaimedJobs:
        assert abs(now - clock.real_now()) < HOUR
        self.asked.append((model, limit, merchant))
        return self.left.pop(0) if self.left else []


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that closed their connection."""
    found: list[str] = []
    connection = SimpleNamespace(close=lambda: found.append(threading.current_thread().name))
    monkeypatch.setattr(job_timer, "connection", connection)
    return found


MERCHANT = Merchant(name="M")


@pytest.mark.parametrize(
    ("lanes", "merchant", "sizes", "limits"),
    [
        (1, None, (2, 1), [JOB_CLAIM_SIZE] * 3),
        (3, MERCHANT, (2, 1), [JOB_CLAIM_SIZE] * 3),
        (3, None, (1, 2), [3, JOB_CLAIM_SIZE, JOB_CLAIM_SIZE]),
        (3, None, (), [3]),
    ],
)
def test_rows_of_one_merchant_or_of_one_lane_are_done_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    closed: list[str],
    lanes: int,
    merchant: Merchant | None,
    sizes: tuple[int, ...],
    limits: list[int],
) -> None:
    settings.GATEWAY_JOB_LANES = lanes
    claims, done = Claims(*sizes), []
    monkeypatch.setattr(job_timer, "claim_due_jobs", claims)

    def work(ident: UUID, more: Any) -> bool:
        done.append((ident.int, more, threading.current_thread()))
        return ident.int != 2

    assert job_timer._run_claimed(JobRun, merchant, work) == max(0, sum(sizes) - 1)
    assert done == [(number, 100 + number, threading.current_thread()) for number in range(1, sum(sizes) + 1)]
    assert claims.asked == [(JobRun, limit, merchant) for limit in limits]
    assert closed == []


def test_lanes_take_due_rows_at_a_time_until_none_is_left(
    monkeypatch: pytest.MonkeyPatch, settings: Any, closed: list[str]
) -> None:
    settings.GATEWAY_JOB_LANES = 3
    claims, done = Claims(3, 2), []
    monkeypatch.setattr(job_timer, "claim_due_jobs", claims)
    together = threading.Barrier(3)

    def work(ident: UUID, more: Any) -> bool:
        if ident.int <= 3:
            together.wait(PATIENCE_S)  # three rows at a time, or none
        done.append((ident.int, more))
        return ident.int != 5

    assert job_timer._run_claimed(Job, None, work) == 4
    assert sorted(done) == [(number, 100 + number) for number in range(1, 6)]
    assert set(claims.asked) == {(Job, 3, None)}
    assert len(set(closed)) == len(closed) == 3
    assert all(name.startswith("jobs") for name in closed)


@pytest.mark.parametrize(("most", "claims", "done"), [(1, 1, 2), (2, 1, 2), (3, 2, 4), (4, 2, 4), (5, 3, 6), (9, 4, 6)])
def test_one_tick_claims_no_more_after_so_many_rows(
    monkeypatch: pytest.MonkeyPatch, most: int, claims: int, done: int
) -> None:
    monkeypatch.setattr(job_timer, "MAX_JOBS_PER_TICK", most)
    scripted = Claims(2, 2, 2)
    monkeypatch.setattr(job_timer, "claim_due_jobs", scripted)
    assert job_timer._run_claimed(Job, MERCHANT, lambda *_: True) == done
    assert len(scripted.asked) == claims


def test_a_lane_takes_the_earliest_and_further_rows_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at = 1_000.0
    monkeypatch.setattr(job_timer.time, "monotonic", lambda: at)
    claims = Claims(2, 2)
    monkeypatch.setattr(job_timer, "claim_due_jobs", claims)
    due = DueRows(JobRun, [row(21), row(22)], 5)
    assert [due.take(), due.take()] == [row(21), row(22)]
    assert claims.asked == []
    at += MAX_TICK_S - 1
    assert (due.take(), claims.asked) == (row(1), [(JobRun, 5, None)])
    at += 1
    assert due.take() == row(2), "it was claimed in time"
    assert due.take() is None
    assert len(claims.asked) == 1


# --- when the next is due -------------------------------------------------------------------------------------------

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("jobs", "runs", "expected"),
    [
        ([], [], None),
        ([None], [None], None),
        ([NOW + HOUR, NOW, None], [], NOW),
        ([], [NOW + HOUR, NOW, None], NOW),
        ([NOW], [NOW + HOUR], NOW),
        ([NOW + HOUR], [NOW], NOW),
    ],
)
def test_the_next_is_the_earliest_of_a_merchants_jobs_and_runs(
    shop: Shop, stranger: Shop, jobs: list[datetime | None], runs: list[datetime | None], expected: datetime | None
) -> None:
    for model, times in ((Job, jobs), (JobRun, runs)):
        for at in times:
            make_due(model, shop, at)
    for model in (Job, JobRun):
        make_due(model, stranger, NOW - HOUR)
    assert find_next_job_time(shop.merchant) == expected
    [timer] = TIMERS
    assert timer.next_at is find_next_job_time
    with connection.cursor() as cursor:
        cursor.execute(timer.earliest_due)
        assert cursor.fetchone()[0] == NOW - HOUR


@pytest.mark.django_db
@pytest.mark.parametrize("model", [Job, JobRun])
def test_a_tick_is_woken_by_the_earliest_of_all(shop: Shop, model: type[Job | JobRun]) -> None:
    make_due(model, shop, NOW)
    make_due(Job if model is JobRun else JobRun, shop, NOW + HOUR)
    [timer] = TIMERS
    with connection.cursor() as cursor:
        cursor.execute(timer.earliest_due)
        assert cursor.fetchone()[0] == NOW
