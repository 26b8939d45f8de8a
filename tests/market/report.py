"""The measure's table: points of approval over today with their interval, money, costs, challenges, retries."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from math import sqrt
from typing import Final

from gateway.core.intervals import INTERVAL_Z, compute_share
from reporting.simulator.market import DAYS_PER_MONTH
from tests.market.arms import ARMS, ArmRun, run_market

HEADER: Final = (
    "| | approved of 100 | points over today (95 %) | subscription charges: points | costs, % of money | "
    "challenges of 100 | retries | wrong retries | over a limit |\n|---|---|---|---|---|---|---|---|---|"
)


def compare_paired(run: bytearray, base: bytearray, orders: Sequence[int]) -> tuple[float, float, float]:
    """How many points more of the same purchases ``run`` won, with the interval of 95 % of a paired difference."""
    gained = sum(1 for order in orders if run[order] > base[order])
    lost = sum(1 for order in orders if run[order] < base[order])
    count = max(1, len(orders))
    difference = (gained - lost) / count
    error = sqrt(max(0.0, (gained + lost) / count - difference**2) / count)
    return 100 * difference, 100 * (difference - INTERVAL_Z * error), 100 * (difference + INTERVAL_Z * error)


def render_table(runs: Sequence[ArmRun], count: int, charges: Sequence[int]) -> str:
    """The table in Markdown. ``charges``: the purchases that are subscription charges."""
    base, lines = runs[0].tally, [HEADER]
    everything = range(1, count + 1)
    for run in runs:
        tally = run.tally
        share = compute_share(sum(tally.won), count)
        assert share is not None  # something was bought
        points = "–"
        of_charges = "–"
        if run is not runs[0]:
            difference, low, high = compare_paired(tally.won, base.won, everything)
            points = f"{difference:+.2f} ({low:+.2f} to {high:+.2f})"
            of_charges = f"{compare_paired(tally.won, base.won, charges)[0]:+.2f}"
        cells = (
            run.arm.name, f"{share.rate:.2f}", points, of_charges, f"{tally.cost / tally.money:.3f}",
            f"{100 * tally.challenges / count:.2f}", f"{tally.retries:,}", str(tally.wrong), str(tally.over),
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> int:
    """Run the arms and print the table; 1 if a retry was wrong or over a scheme's limit."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--payments", type=int, default=500_000, help="purchases, 500000 without it")
    options.add_argument("--months", type=int, default=6, help=f"of {DAYS_PER_MONTH} days, 6 without it")
    options.add_argument("--seed", type=int, default=22)
    asked = options.parse_args(given)
    if asked.payments < 1 or asked.months < 1:
        options.error("payments and months are 1 or more")
    began = time.monotonic()
    runs = run_market(asked.seed, asked.payments, asked.months * DAYS_PER_MONTH)
    sys.stdout.write(render_table(runs, asked.payments, runs[0].charges))
    sys.stdout.write(
        f"\n\n{asked.payments:,} purchases, seed {asked.seed}, {asked.months} months, {len(ARMS)} arms, "
        f"{sum(run.tally.attempts for run in runs):,} attempts in {time.monotonic() - began:.0f} s\n"
    )
    return int(any(run.tally.wrong or run.tally.over for run in runs))
