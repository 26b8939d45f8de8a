"""`python -m tests.benchmarks [--quick] [--only P1,P4] [--scale 10000,1000000]`: measure, print one table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.benchmarks import counted, flows, jobs, report, saturation, scale, settlement, waiting, webhooks, widget
from tests.benchmarks.ground import Ground
from tests.benchmarks.options import FULL, QUICK, Options
from tests.benchmarks.targets import MISSED, TARGETS, Figure, Gap

Measure = Callable[[Ground, Options], tuple[list[Figure | Gap], dict[str, Any]]]
PARTS: dict[str, Measure] = {
    "counted": counted.measure, "saturation": saturation.measure, "waiting": waiting.measure, "flows": flows.measure,
    "webhooks": webhooks.measure, "jobs": jobs.measure, "settlement": settlement.measure,
    "widget": widget.measure,
}  # fmt: skip
PART_OF = {
    "P1": "saturation", "P2": "saturation", "P3": "saturation", "P4": "counted", "P5": "waiting", "P6": "scale",
    "P7": "flows", "P8": "webhooks", "P9": "jobs", "P10": "settlement", "P12": "widget",
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Exit code 0 when every must that was measured is met, 1 when one is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 short rounds: to see that it works, not to believe")
    parser.add_argument("--only", default="", help="targets by id: P1,P4 (P1 to P3 are measured together)")
    parser.add_argument("--rounds", type=int, help="7 unless told otherwise")
    parser.add_argument("--seconds", type=float, help="of each round")
    parser.add_argument("--scale", default="", help="numbers of payments to compare for P6: 10000,1000000")
    options = parser.parse_args(arguments)
    how = QUICK if options.quick else FULL
    how = replace(how, rounds=options.rounds or how.rounds, seconds=options.seconds or how.seconds)
    wanted = {PART_OF[name.strip().upper()] for name in options.only.split(",") if name.strip()}
    parts = {name: part for name, part in PARTS.items() if not wanted or name in wanted}
    if options.scale or "scale" in wanted:
        counts = [int(text) for text in (options.scale or "10000,1000000").split(",")]
        parts["scale"] = lambda ground, how: scale.measure(ground, how, counts)
    found: list[Figure | Gap] = []
    rounds: dict[str, Any] = {}
    with Ground() as ground:
        about = {**report.machine(ground.postgres_version), "rounds": how.rounds, "seconds": how.seconds}
        report.say(f"{about}")
        for name, part in parts.items():
            report.say(f"{name}:")
            figures, raw = part(ground, how)
            ground.stop_sites()
            found += figures
            rounds |= raw
    report.say("\n" + report.table(found))
    report.say(f"\nThe rounds are in {report.write(found, rounds, about)}")
    missed = any(isinstance(one, Figure) and TARGETS[one.target].verdict(one.measured) == MISSED for one in found)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
