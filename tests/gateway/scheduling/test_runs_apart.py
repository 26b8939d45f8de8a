"""What happens to one run of a job leaves every other run as it is. Source: docs/decisions/0022."""

from __future__ import annotations

import pytest

from gateway.models import Payment
from gateway.scheduling import job_runs
from gateway.scheduling.models import Job, JobRun
from tests.gateway.scheduling.test_runs import NO_MONEY, subscribe
from tests.support.fixtures import Shop
from tests.support.subscriptions import step

pytestmark = pytest.mark.django_db


def test_a_run_that_is_given_up_ends_no_other(shop: Shop) -> None:
    """Two jobs, declined at the same hour and tried again by the same plan."""
    jobs = [subscribe(shop.api, NO_MONEY) for _ in range(2)]
    step(shop.merchant)
    mine, other = (JobRun.objects.get(job=job.pk) for job in jobs)
    assert [(run.state, run.attempt) for run in (mine, other)] == [("RETRYING", 1)] * 2
    assert job_runs._end_run(mine)
    assert [JobRun.objects.get(pk=run.pk).state for run in (mine, other)] == ["FAILED", "RETRYING"]
    assert not job_runs._end_run(mine), "it was given up before"


def test_an_approval_is_recorded_for_its_own_open_run_alone(shop: Shop) -> None:
    jobs = [subscribe(shop.api, NO_MONEY) for _ in range(2)]
    step(shop.merchant)
    mine, other = (JobRun.objects.get(job=job.pk) for job in jobs)
    tried, others = (Payment.objects.get(pk=run.payment) for run in (mine, other))
    assert not job_runs._mark_run_paid(mine.pk, tried), "it waits for its retry"
    JobRun.objects.update(state="OPEN")
    assert not job_runs._mark_run_paid(mine.pk, others), "of another run"
    assert job_runs._mark_run_paid(mine.pk, tried)
    assert [JobRun.objects.get(pk=run.pk).state for run in (mine, other)] == ["PAID", "OPEN"]
    assert [Job.objects.get(pk=job.pk).declined for job in jobs] == [0, 1]
