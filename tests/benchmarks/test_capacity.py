"""The table of docs/capacity.md follows from the figures of docs/benchmarks.md."""

from __future__ import annotations

import os
import re

from config.launcher.var_folder import PROJECT_ROOT
from tests.benchmarks.capacity import BEGIN, END, MeasuredCosts, read_measured_costs, render_capacity

PAGE = PROJECT_ROOT / "docs" / "capacity.md"


def test_the_page_has_what_the_benchmarks_say() -> None:
    """Written anew with UPDATE_SNAPSHOTS=1."""
    text = PAGE.read_text(encoding="utf-8")
    table = render_capacity(read_measured_costs((PROJECT_ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")))
    if os.environ.get("UPDATE_SNAPSHOTS"):
        text = re.sub(f"{BEGIN}.*{END}", lambda _: table, text, flags=re.S)
        PAGE.write_text(text, encoding="utf-8")
    assert table in text


def test_cores_threads_and_bytes_of_a_known_cost() -> None:
    """1,000 payments of 2 ms are two cores, planned half busy four."""
    costs = MeasuredCosts(web_ms=2.0, database_ms=1.0, stored=1_000, webhooks=4_000)
    assert "| 1,000 | 4.0 | 2.0 | 1.0 | 2,000 | 32 | 2,000 | 86.4 GB |" in render_capacity(costs)
