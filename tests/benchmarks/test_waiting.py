"""What the figures of P5 are made of."""

from __future__ import annotations

from array import array

from tests.benchmarks import waiting
from tests.benchmarks.load import Result


def test_harm_is_told_of_all_rounds_together() -> None:
    """The p99 of one round is its third slowest payment: a ratio of two of them says little."""
    rounds = [{"beside_p99_ms": 30.0, "alone_p99_ms": 10.0}, {"beside_p99_ms": 10.0, "alone_p99_ms": 20.0}]
    totals = {
        "beside": Result(latencies=array("d", [0.004] * 98 + [0.030] * 2)),
        "alone": Result(latencies=array("d", [0.004] * 98 + [0.020] * 2)),
    }
    found = waiting._harm("P5.harm", rounds, totals, "", "")
    assert (found.measured, found.low, found.high) == (1.5, 0.5, 3.0)
