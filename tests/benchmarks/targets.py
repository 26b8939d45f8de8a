"""The goals in figures, one row each, and whether a measured figure keeps them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MISSED, MET, AIM = "missed", "met", "aim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One figure. ``must`` and ``aim`` None: shown for comparison only. ``keeps(measured, limit)``."""

    id: str
    what: str
    unit: str
    must: float | None = None
    aim: float | None = None
    keeps: Callable[[float, float], bool] = operator.le

    def verdict(self, measured: float) -> str:
        if self.must is None:
            return ""
        if not self.keeps(measured, self.must):
            return MISSED
        return AIM if self.aim is not None and self.keeps(measured, self.aim) else MET


@dataclass(slots=True, kw_only=True)
class Figure:
    """What was measured for a target: the median, the rounds behind it, and a remark."""

    target: str
    measured: float
    low: float | None = None
    high: float | None = None
    remark: str = ""
    rounds: list[float] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Gap:
    """A target that was not measured, and why."""

    target: str
    why: str


def _rows(*rows: tuple[Any, ...]) -> Mapping[str, Target]:
    names = ("id", "what", "unit", "must", "aim", "keeps")
    return {row[0]: Target(**dict(zip(names, row, strict=False))) for row in rows}


AT_LEAST: Final = operator.ge
TARGETS: Final = _rows(
    # id           what                                                          unit   must   aim    kept when
    ("P1", "full payment with key, rate ÷ DRF baseline (b)", "×", 1.0, 1.4, AT_LEAST),
    ("P1.nokey", "the same without an idempotency key", "×"),
    ("P1.insert", "full payment, rate ÷ plain Django with one INSERT (c)", "×"),
    ("P1.pgbench", "full payment, rate ÷ pgbench writing the same rows (a)", "×"),
    ("P2", "CPU of one payment with key, app + PostgreSQL, ÷ that of (b)", "×", 1.0, 0.75),
    ("P2.ms", "the same, not divided", "ms"),
    ("P2.nokey", "the same without an idempotency key", "ms"),
    ("P2.app", "of P2, the web server's part", "ms"),
    ("P2.drf", "CPU of one row by the DRF baseline (b)", "ms"),
    ("P2.insert", "CPU of one row by plain Django (c)", "ms"),
    ("P3.p50", "own overhead at half load, open loop, median", "ms", 4.0, 2.5),
    ("P3.p99", "own overhead at half load, open loop, 99th percentile", "ms", 15.0, 8.0),
    ("P4.commits", "commits of a payment", "", 2.0, 2.0),
    ("P4.trips", "round trips of a payment", "", 3.0, 2.0),
    ("P4.key", "round trips of a payment with key", "", 3.0, 2.0),
    ("P4.get", "statements of GET by id", "", 1.0, 1.0),
    ("P4.bytes", "stored for a payment, indexes included", "B", 2048.0, 1280.0),
    ("P4.keybytes", "stored for a payment with key (the key goes after 24 h)", "B"),
    ("P4.thinks", "statements and transactions open while the acquirer thinks", "", 0.0, 0.0),
    ("P5.flight", "payments in flight at an acquirer that takes 2 s", "", 600.0, 1000.0, AT_LEAST),
    ("P5.harm", "p99 beside them ÷ p99 alone, payments of another connector", "×", 1.25, 1.1),
    ("P5.acquirer", "the same, payments of a second, fast acquirer", "×", 1.25, 1.1),
    ("P6.post.cpu", "CPU of a payment, most rows ÷ fewest", "×", 1.1, 1.05),
    ("P6.post.p99", "p99 of a payment, most rows ÷ fewest", "×", 1.1, 1.05),
    ("P6.get.cpu", "CPU of GET by id, most rows ÷ fewest", "×", 1.1, 1.05),
    ("P6.get.p99", "p99 of GET by id, most rows ÷ fewest", "×", 1.1, 1.05),
    ("P6.query.cpu", "CPU of a query, most rows ÷ fewest", "×", 1.1, 1.05),
    ("P6.query.p99", "p99 of a query, most rows ÷ fewest", "×", 1.1, 1.05),
    ("P6.query.ms", "p99 of a query at the most rows", "ms", 15.0, 8.0),
    ("P6.shape.ms", "p99 of the slowest shape of query, one after the other", "ms", 15.0, 8.0),
    ("P6.shape.cpu", "CPU of the shape that costs most, app + PostgreSQL", "ms"),
    ("P6.scans", "sequential scans in the plans of the hot statements", "", 0.0, 0.0),
    ("P7.plain", "CPU of a card payment with key, one after the other", "ms"),
    ("P7.threeds", "of a 3-D Secure payment without a challenge", "ms"),
    ("P7.oneclick", "of a one-click payment", "ms"),
    ("P7.redirect", "of a redirect payment, from its beginning to the return", "ms"),
    ("P7.rules", "of a card payment screened by a rule set", "ms"),
    ("P8.rate", "webhooks signed, leased, sent, answered and logged", "/s", 3000.0, 5000.0, AT_LEAST),
    ("P8.cpu", "CPU of one webhook, workers + PostgreSQL", "ms"),
    ("P8.lag", "from an event's commit to its receipt at 300/s, p99", "ms", 300.0),
    ("P8.harm", "p99 beside a receiver that hangs ÷ p99 of ten that answer", "×", 1.5, 1.15),
    ("P9.claim", "due jobs claimed, of 10⁶ active", "/s", 4000.0, 8000.0, AT_LEAST),
    ("P9.idle", "a tick of the jobs that finds nothing due", "ms", 5.0),
    ("P9.runs", "runs with their payments, one worker", "/s", 400.0, 800.0, AT_LEAST),
    ("P10", "settlement file of 10^6 lines, from its receipt to its last match", "s", 30.0, 15.0),
    ("P10.memory", "most memory of the process that reads it", "MB", 300.0),
    ("P10.out", "reconciliation file of 10^6 lines, written and synced", "s", 20.0, 10.0),
    ("P10.out.memory", "most memory of the process that writes it", "MB"),
    ("P12.bytes", "bodies until a card form is usable, gzip", "KB", 26.0, 18.0),
    ("P12.requests", "requests until a card form is usable", "", 3.0, 3.0),
    ("P12.others", "third parties asked by the form", "", 0.0, 0.0),
    ("P12.usable", "time to a usable card form", "ms", 160.0, 100.0),
)
