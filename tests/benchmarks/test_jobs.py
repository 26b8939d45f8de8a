"""What the benchmark of subscription jobs loads is what the product claims and charges."""

from __future__ import annotations

from gateway.scheduling import job_timer
from gateway.scheduling.models import Job, JobRun
from tests.benchmarks import jobs
from tests.support.fixtures import Shop


def test_loaded_jobs_are_claimed_and_charged(committed: Shop) -> None:
    """Loader: P9 measures runs that are paid, not runs that fail."""
    channel = committed.channel
    jobs._load(channel, jobs._registration(channel), 3)
    assert Job.objects.count() == 3
    jobs._make_due(2)
    assert job_timer.run_due_jobs(channel.merchant) == 2
    assert list(JobRun.objects.values_list("state", flat=True)) == ["PAID", "PAID"]
