"""Claims and locks of jobs, each belt apart: the claim, the lease, and the look under the job's lock.

Source: goals R1; docs/decisions/0022.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from gateway.core import clock
from gateway.models import Merchant, Payment
from gateway.scheduling import job_runs, job_timer
from gateway.scheduling.models import Job, JobRun
from tests.gateway.scheduling.test_runs import make_due
from tests.support.fixtures import Shop
from tests.support.subscriptions import started, store_card

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 60
WAITS = """SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE NOT l.granted AND a.datname = current_database())"""


def due_jobs(shop: Shop, number: int) -> list[Job]:
    card = store_card(shop.api)
    jobs = [Job.objects.get(pk=started(shop.api, card).id) for _ in range(number)]
    make_due(shop.merchant)
    return jobs


@contextmanager
def elsewhere(before: Callable[[], None], meanwhile: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Another connection does ``before`` in a transaction, holds it open during the block, and ends it with
    ``meanwhile`` as soon as something waits for it, or when the block is over."""
    done, held = threading.Event(), threading.Event()

    def work() -> None:
        try:
            with transaction.atomic():
                before()
                held.set()
                with connection.cursor() as cursor:
                    for _ in range(PATIENCE_S * 50):
                        cursor.execute(WAITS)
                        if done.wait(0.02) or cursor.fetchone()[0]:
                            break
                meanwhile()
        finally:
            held.set()
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    assert held.wait(PATIENCE_S)
    try:
        yield
    finally:
        done.set()
        thread.join(PATIENCE_S)


@pytest.mark.parametrize("for_one_merchant", [False, True])
@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(hours=1)])
def test_a_claim_passes_by_what_another_connection_holds_and_does_not_wait(
    committed: Shop, for_one_merchant: bool, ahead: timedelta
) -> None:
    """Both ways to what is due, and the way of one merchant: no lane waits behind another's."""
    first, second = due_jobs(committed, 2)
    Job.objects.update(next_at=clock.real_now() - timedelta(hours=2))
    Merchant.objects.filter(pk=committed.merchant.pk).update(clock_offset=ahead)
    merchant = Merchant.objects.get(pk=committed.merchant.pk) if for_one_merchant else None
    waited = []
    with elsewhere(lambda: Job.objects.select_for_update().get(pk=first.pk), lambda: waited.append(not done)):
        done: list[object] = []
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '20s'")
        claimed = [row[0] for row in job_timer.claim_due_jobs(Job, 20, clock.real_now(), merchant)]
        done.append(claimed)
    assert claimed == [second.pk]
    assert waited == [False], "the claim came back before the lock was let go"


def change(job: Job, **values: object) -> Callable[[], None]:
    return lambda: Job.objects.filter(pk=job.pk).update(**values) and None


def test_a_job_that_another_worker_ran_between_reading_and_locking_is_not_charged(committed: Shop) -> None:
    """It was read as due; under its lock it has moved on."""
    (job,) = due_jobs(committed, 1)
    result = []
    with elsewhere(change(job, sequence=job.sequence + 1)):
        result.append(job_runs.run_job(job.pk, job.sequence))
    assert result == [False]
    assert Payment.objects.filter(payment_type="DB").count() == JobRun.objects.count() == 0


def test_a_job_that_is_as_it_was_read_is_charged_after_the_wait(committed: Shop) -> None:
    """The comparison above would see a difference."""
    (job,) = due_jobs(committed, 1)
    result = []
    with elsewhere(lambda: Job.objects.select_for_update().get(pk=job.pk) and None):
        result.append(job_runs.run_job(job.pk, job.sequence))
    assert result == [True]
    assert Payment.objects.filter(payment_type="DB").count() == JobRun.objects.count() == 1


@pytest.mark.parametrize("off", [-1, 1])
def test_a_claim_of_another_turn_is_not_run(committed: Shop, off: int) -> None:
    (job,) = due_jobs(committed, 1)
    assert not job_runs.run_job(job.pk, job.sequence + off)
    assert JobRun.objects.count() == 0


def test_a_lease_lasts_by_the_databases_clock_and_frees_the_job_then(committed: Shop) -> None:
    (job,) = due_jobs(committed, 1)
    now = clock.real_now()
    assert [row[0] for row in job_timer.claim_due_jobs(Job, 20, now)] == [job.pk]
    until = Job.objects.get(pk=job.pk).lease_until
    assert until is not None
    for merchant in (None, Merchant.objects.get(pk=committed.merchant.pk)):
        # However far this machine's clock is ahead: the lease is the database's time.
        assert job_timer.claim_due_jobs(Job, 20, until + timedelta(days=1), merchant) == []
        Job.objects.update(lease_until=Now() + timedelta(seconds=20))
        assert job_timer.claim_due_jobs(Job, 20, now, merchant) == []
    Job.objects.update(lease_until=Now())
    assert [row[0] for row in job_timer.claim_due_jobs(Job, 20, now)] == [job.pk]


def test_a_job_is_due_at_its_moment_and_not_before_on_its_merchants_clock(committed: Shop) -> None:
    """Clocks ahead, behind and right."""
    (job,) = due_jobs(committed, 1)
    at = clock.real_now()
    for offset in (timedelta(0), timedelta(hours=1), -timedelta(hours=1)):
        Merchant.objects.filter(pk=committed.merchant.pk).update(clock_offset=offset)
        Job.objects.update(next_at=at + offset, lease_until=None)
        for merchant in (None, Merchant.objects.get(pk=committed.merchant.pk)):
            assert job_timer.claim_due_jobs(Job, 20, at - timedelta(microseconds=1), merchant) == []
            assert [row[0] for row in job_timer.claim_due_jobs(Job, 20, at, merchant)] == [job.pk]
            Job.objects.update(lease_until=None)


def test_one_merchants_run_leaves_the_jobs_of_others_alone(committed: Shop) -> None:
    (job,) = due_jobs(committed, 1)
    other = Merchant.objects.create(name="Other", division=committed.merchant.division)
    Merchant.objects.update(clock_offset=committed.merchant.clock_offset)
    assert job_timer.claim_due_jobs(Job, 20, clock.real_now(), Merchant.objects.get(pk=other.pk)) == []
    assert [
        row[0] for row in job_timer.claim_due_jobs(Job, 20, clock.real_now(), Merchant.objects.get(pk=job.merchant_id))
    ] == [job.pk]
