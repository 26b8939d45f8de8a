"""The table that a run prints, and its raw facts as a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from config.launcher.var_folder import PROJECT_ROOT
from tests.faults.faults import Fault, Strike
from tests.faults.finding import KINDS, Finding
from tests.faults.races import RaceResult
from tests.faults.timing import Spread

NOT_TESTED = "not tested"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(
    faults: Sequence[Fault],
    strikes: Sequence[Strike],
    hurt: Mapping[str, int],
    seen: Mapping[str, int],
    shoppers: Mapping[str, int],
    races: Sequence[RaceResult],
    findings: Sequence[Finding],
    first: Spread,
    settled: Spread,
    counts: Mapping[str, Any],
) -> str:
    """Faults, what shoppers did, races, what must be nought, R3. ``hurt``: fault → requests without an answer, or 5xx,
    meanwhile; ``seen``: what each misbehaviour of the acquirer did, counted in its log over the whole run."""
    rows = [f"{'fault':<38}{'fired':>8}{'seen':>7}{'requests hurt':>15}{'back after, most':>18}"]
    for fault in faults:
        mine = [one for one in strikes if one.fault == fault.name]
        fired = sum(one.fired for one in mine)
        if not fired:
            rows.append(f"{fault.name:<38}{NOT_TESTED:>8}")
            continue
        name = fault.name.removeprefix("acquirer: ") if fault.group == "behaviour" else ""
        backs = [one.back - one.at for one in mine if one.back is not None]
        never = " (or not)" if len(backs) < len(mine) else ""
        back = "" if name else f"{max(backs):.1f} s{never}" if backs else "never"
        count = seen.get(name, 0) if name else fired
        rows.append(f"{fault.name:<38}{fired:>8}{count:>7}{hurt.get(fault.name, 0):>15}{back:>18}")
    rows += ["", f"{'shopper':<44}{'done':>9}"]
    rows += [f"{name:<44}{count or NOT_TESTED:>9}" for name, count in shoppers.items()]
    rows += ["", f"{'race':<38}{'rounds':>8}{'won':>7}{'refused':>15}{'over a limit':>18}{'odd':>6}"]
    for race in races:
        rows.append(f"{race.name:<38}{race.rounds:>8}{race.won:>7}{race.refused:>15}{race.over:>18}{len(race.odd):>6}")
    rows += ["", "after the last fault"]
    rows += [f"  {kind:<36}{sum(one.kind == kind for one in findings):>8}" for kind in KINDS]
    rows += [
        "",
        f"in doubt → first inquiry   most {first.most_s:.1f} s, median {first.median_s:.1f} s, over 3 s: {first.over} "
        f"of {first.count} ({first.exempt} more while the asking part was down)",
        f"in doubt → settled         most {settled.most_s:.1f} s, median {settled.median_s:.1f} s, over 60 s: "
        f"{settled.over} of {settled.count}",
        "",
        *(f"{name:<38}{value}" for name, value in counts.items()),
    ]
    return "\n".join(rows)


def write(**facts: Any) -> Path:
    """The raw facts as JSON; the file's path."""
    folder = PROJECT_ROOT / "var" / "faults"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(facts, indent=1, default=_plain) + "\n")
    return path


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else str(value)
