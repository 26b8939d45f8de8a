"""What is registered here by packages above: without it nothing is lost in silence."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway.payments import job_hooks


def hooks() -> job_hooks.JobHooks:
    def nothing(*_: Any, **__: Any) -> Any: ...

    return job_hooks.JobHooks(check_parameters=nothing, start=nothing, record_late_booking=nothing)


def test_the_hooks_of_jobs_are_those_registered_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_hooks, "_registered", [])
    with pytest.raises(ImproperlyConfigured):
        job_hooks.get_job_hooks()
    first, last = hooks(), hooks()
    job_hooks.register_job_hooks(first)
    assert job_hooks.get_job_hooks() is first
    job_hooks.register_job_hooks(last)
    assert job_hooks.get_job_hooks() is last


def test_a_payment_that_starts_no_job_writes_nothing() -> None:
    nothing = job_hooks.StartedJob()
    assert (list(nothing.rows), dict(nothing.answer)) == ([], {})
    assert job_hooks.StartedJob(answer={"a": 1}) == job_hooks.StartedJob(rows=(), answer={"a": 1}) != nothing
