"""Benchmarks start programs as `make run` does, with bytecode kept between starts."""

from __future__ import annotations

import pytest

from tests.benchmarks import ground


@pytest.mark.parametrize("name", ["PGHOST", "DATABASE_URL", "GATEWAY_JOB_LANES", "PYTHONDONTWRITEBYTECODE"])
def test_nothing_of_the_caller_changes_what_is_measured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without bytecode a program takes 2 s more to start, of which its figure would tell nothing."""
    monkeypatch.setenv(name, "1")
    monkeypatch.setenv("TZ_OF_THE_CALLER", "1")
    assert name not in ground.bare_environment()
    assert "TZ_OF_THE_CALLER" in ground.bare_environment()
