"""How long and how often is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``rounds`` of ``seconds`` each; ``counted``: payments that P4 counts over; ``connections`` of the closed loop."""

    rounds: int = 7
    seconds: float = 5.0
    counted: int = 2_000
    connections: int = 16
    processes: int = 1


FULL = Options()
QUICK = Options(rounds=3, seconds=1.5, counted=400)
