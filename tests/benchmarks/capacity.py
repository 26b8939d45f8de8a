"""Machines for a number of payments a second, computed from the figures of docs/benchmarks.md into docs/capacity.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from typing import Final

RATES: Final = (10, 100, 1_000, 10_000)
MAX_LOAD: Final = 0.5
"""Share of a core that is planned with: the rest is for peaks, vacuum, back-ups, and a machine that is away."""
ACQUIRER_S: Final = 1.0
"""Seconds that an acquirer is assumed to take; a thread waits meanwhile."""
BULKHEAD_FACTOR: Final = 2
"""Threads for each payment that waits: one account gets half of a process's threads (docs/routing.md)."""
SESSIONS: Final = 8
"""Of a web process (GATEWAY_WEB_SESSIONS), of which there is one for each core."""
BEGIN, END = "<!-- capacity -->", "<!-- end capacity -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCosts:
    """What one payment costs: CPU of web server and PostgreSQL (ms), stored bytes; webhooks a second of two cores."""

    web_ms: float
    database_ms: float
    stored: int
    webhooks: int


def read_measured_costs(benchmarks: str) -> MeasuredCosts:
    """The costs in the latest table of docs/benchmarks.md. Raises KeyError for a row that is missing."""
    rows: dict[str, str] = {}
    for name, value in re.findall(r"^\| (P[\w.]+) +\|[^|]+\|[^|]+\|[^|]+\| +([\d,.]+) ", benchmarks, re.M):
        rows.setdefault(name, value.replace(",", ""))
    web = float(rows["P2.app"])
    return MeasuredCosts(
        web_ms=web,
        database_ms=round(float(rows["P2.ms"]) - web, 2),
        stored=int(rows["P4.bytes"]),
        webhooks=int(rows["P8.rate"]),
    )


def render_capacity(costs: MeasuredCosts) -> str:
    """The table of the page, between its two marks."""
    lines = [
        "| payments a second | web cores | cores of the primary | worker cores | web threads | their sessions | "
        "commits a second | stored a day |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for rate in RATES:
        cells = (
            f"{rate:,}",
            _format_cores(rate * costs.web_ms / 1_000 / MAX_LOAD),
            _format_cores(rate * costs.database_ms / 1_000 / MAX_LOAD),
            _format_cores(rate / (costs.webhooks / 2) / MAX_LOAD),
            f"{ceil(rate * ACQUIRER_S * BULKHEAD_FACTOR):,}",
            f"{ceil(rate * costs.web_ms / 1_000 / MAX_LOAD) * SESSIONS:,}",
            f"{rate * 2:,}",
            f"{rate * 86_400 * costs.stored / 1e9:,.1f} GB",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([BEGIN, *lines, END])


def _format_cores(cores: float) -> str:
    return f"{cores:.2f}" if cores < 1 else f"{cores:.1f}"
