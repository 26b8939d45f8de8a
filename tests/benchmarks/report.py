"""The one table, and the file with the raw rounds."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from config.launcher.var_folder import find_var_folder
from tests.benchmarks.targets import TARGETS, Figure, Gap

Found = Sequence[Figure | Gap]


def machine(postgres: str) -> dict[str, Any]:
    """What the figures belong to."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ""
    )
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1024**2),
        "python": platform.python_version(),
        "postgres": postgres,
        "load_before": [round(value, 2) for value in os.getloadavg()],
    }


def table(found: Found) -> str:
    """One line a target, in the targets' order; those held to nothing are marked by an empty verdict."""
    by_id = {one.target: one for one in found}
    rows = [("id", "what", "must", "aim", "measured", "min … max", "verdict")]
    for target in TARGETS.values():
        one = by_id.get(target.id)
        if one is None:
            continue
        must, aim = _number(target.must), _number(target.aim)
        if isinstance(one, Gap):
            rows.append((target.id, target.what, must, aim, "–", "", f"not measured: {one.why}"))
            continue
        spread = f"{_number(one.low)} … {_number(one.high)}" if one.low is not None else ""
        measured = f"{_number(one.measured)} {target.unit}".strip()
        verdict = "; ".join(part for part in (target.verdict(one.measured), one.remark) if part)
        rows.append((target.id, target.what, must, aim, measured, spread, verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = []
    for row in rows:
        cells = [row[i].rjust(widths[i]) if i in (2, 3, 4, 5) else row[i].ljust(widths[i]) for i in range(6)]
        lines.append("| " + " | ".join((*cells, row[6])) + " |")
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|---|")
    return "\n".join(lines)


def write(found: Found, rounds: Mapping[str, Any], about: Mapping[str, Any]) -> Path:
    """`var/bench/<time>.json`: the figures, and every round behind them."""
    folder = find_var_folder() / "bench"
    folder.mkdir(exist_ok=True)
    file = folder / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.json"
    document = {"about": dict(about), "figures": [asdict(one) for one in found], "rounds": dict(rounds)}
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return file


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.2f}"


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
