"""What a payment that starts no job writes."""

from __future__ import annotations

from gateway.payments import job_hooks


def test_a_payment_that_starts_no_job_writes_nothing() -> None:
    nothing = job_hooks.StartedJob()
    assert (list(nothing.rows), dict(nothing.answer)) == ([], {})
    assert job_hooks.StartedJob(answer={"a": 1}) == job_hooks.StartedJob(rows=(), answer={"a": 1}) != nothing
