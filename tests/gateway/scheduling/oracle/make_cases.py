"""Makes the cases that tests/gateway/scheduling/test_cron.py checks, out of what real Quartz answers.

    javac -cp quartz2.jar:slf4j-api.jar QuartzOracle.java
    python make_cases.py ask | java -cp .:quartz2.jar:slf4j-api.jar QuartzOracle > answers.tsv
    python make_cases.py keep answers.tsv

``ask`` writes the questions, always the same; ``keep`` sorts the answers: cases.tsv, what both must agree on;
clock_changes.tsv, where a run or the beginning lies near a change of clocks and ruling D39 speaks. What Quartz does
not take or searches for without end is not asked (docs/decisions/0022).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from gateway.catalogue.structures import cron_notation

HERE: Final = Path(__file__).parent.parent
ZONES: Final = (
    "UTC", "UTC", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Asia/Tokyo",
    "America/St_Johns", "Pacific/Apia", "Europe/London", "Asia/Kolkata",
)  # fmt: skip
BEGINNINGS: Final = (
    "2024-02-28T23:59:59", "2023-12-31T23:59:59", "2026-01-01T00:00:00", "2027-02-28T12:00:00", "2028-02-29T00:00:00",
    "2025-06-30T23:59:59", "2026-04-30T00:00:00", "2099-01-15T10:00:00", "2026-11-21T18:07:00", "2096-02-29T08:00:00",
)  # fmt: skip
WRITTEN: Final = (
    "0 0 12 * * ?", "0 15 10 ? * *", "0 15 10 * * ? 2027", "0 * 14 * * ?", "0 0/5 14 * * ?", "0 0/5 14,18 * * ?",
    "0 0-5 14 * * ?", "0 10,44 14 ? 3 WED", "0 15 10 ? * MON-FRI", "0 15 10 15 * ?", "0 15 10 L * ?",
    "0 15 10 L-2 * ?", "0 15 10 ? * 6L", "0 15 10 ? * 6L 2026-2029", "0 15 10 ? * 6#3", "0 0 12 1/5 * ?",
    "0 11 11 11 11 ?", "0 0 0 L * ?", "0 0 0 LW * ?", "0 0 0 L-3W * ?", "0 0 0 1W * ?", "0 0 0 15W * ?",
    "0 0 0 ? * FRIL", "0 0 0 ? * L", "0 0 0 ? * 1", "0 0 0 ? * SUN", "0 0 0 ? * 7L", "0 0 0 ? * 1#5", "0 0 0 ? * 2#1",
    "0 0 0 29 2 ?", "0 0 0 30 2 ?", "0 0 0 31 * ?", "0 0 0 31 4,6,9,11 ?", "0 0 22-2 * * ?", "0 0 0 ? * FRI-MON",
    "0 0 0 28-3 * ?", "0 0 0 1 11-2 ?", "50-10 59 23 31 12 ?", "0 0 0 ? NOV-FEB 6#4", "*/7 */13 */5 */3 */2 ?",
    "0 0 0 1 1 ? 2099", "59 59 23 31 12 ? 2099", "0 0 0 1 1 ? 1970", "0 0 0 1 1 ? */4", "0 0 0 1 1 ? 2024/7",
    "0 0 0 ? 2 5#5", "0 30 2 * * ?", "0 */10 2 * * ?", "0 30 1 * * ?", "0 0 0 1 1 ?", "0 0 3 1 * ?", "0 0 0 * * ? 2026",
    "0 0 0 L-30 * ?", "0 0 0 L-28 * ?", "0 0 0 ? * MON,WED,6", "0 0 0 ? 1,MAR MON",
    "5/15 0 0 1 * ?", "0 5/15 8-18/3 ? * 2-6/2", "0 0 20-4/3 * * ?", "0 0 0 25-5/4 * ?", "0 0 0 1 10-3/2 ?",
)  # fmt: skip
_NAMES_OF_DAYS: Final = tuple(cron_notation.CRON_DAYS)
_NAMES_OF_MONTHS: Final = tuple(cron_notation.CRON_MONTHS)
_NEAR: Final = timedelta(hours=36)
_HOUR: Final = timedelta(hours=1)
RANDOM_CASES: Final = 3_600
CHANGES: Final = (
    ("Europe/Berlin", "2026-03-28T20:00:00", "2026-10-24T20:00:00"),
    ("America/New_York", "2026-03-08T00:00:00", "2026-11-01T00:00:00"),
    ("Australia/Lord_Howe", "2026-10-03T10:00:00", "2026-04-04T10:00:00"),
    ("America/St_Johns", "2026-03-08T00:00:00", "2026-11-01T00:00:00"),
)
"""A zone, the evening before its clocks go forward, and before they go back."""
AT_NIGHT: Final = (
    "0 30 2 * * ?", "0 30 1 * * ?", "0 0 2 * * ?", "0 59 2 * * ?", "0 15 2 * * ?", "0 */15 1-3 * * ?", "0 0 * * * ?",
    "0 0 3 * * ?", "0 0 0 * * ?", "30 45 1 * * ?", "0 0/20 * * * ?", "*/30 59 0-4 * * ?",
)  # fmt: skip


def questions() -> Iterator[tuple[str, str, datetime]]:
    dice = random.Random(39)
    for expression in WRITTEN:
        for beginning in BEGINNINGS:
            yield expression, dice.choice(ZONES), datetime.fromisoformat(beginning).replace(tzinfo=UTC)
    for zone, *evenings in CHANGES:
        for evening in evenings:
            for expression in AT_NIGHT:
                for hours in (0, 4, 5, 6, 7):
                    yield expression, zone, datetime.fromisoformat(evening).replace(tzinfo=UTC) + hours * _HOUR
    for _ in range(RANDOM_CASES):
        begin = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=dice.randrange(25 * 365 * 86_400))
        yield expression_of(dice), dice.choice(ZONES), begin


def expression_of(dice: random.Random) -> str:
    while True:
        dom = dice.random() < 0.5
        parts = [
            _number(dice, 0, 59),
            _number(dice, 0, 59),
            _number(dice, 0, 23),
            _day_of_month(dice) if dom else "?",
            _month(dice),
            "?" if dom else _day_of_week(dice),
        ]
        if dice.random() < 0.3:
            parts.append(dice.choice(("*", "2026", "2025-2031", "2028/4", "2027,2030", "*/3", "2024-2060/5")))
        text = " ".join(parts)
        if cron_notation.is_cron_expression(text):
            return text


def _number(dice: random.Random, low: int, high: int) -> str:
    a, b, step = dice.randint(low, high), dice.randint(low, high), dice.randint(1, max(2, (high - low) // 2))
    shapes = (
        "*",
        f"{a}",
        f"{a}",
        f"{a}",
        f"{low}",
        f"{a}-{b}",
        f"{a},{b}",
        f"*/{step}",
        f"{a}/{step}",
        f"{a}-{b}/{step}",
        f"/{step}",
        f"{a},{b}-{dice.randint(low, high)}",
    )
    return dice.choice(shapes)


def _day_of_month(dice: random.Random) -> str:
    special = (
        "L",
        "LW",
        f"L-{dice.randint(1, 27)}",
        f"{dice.randint(1, 28)}W",
        f"L-{dice.randint(1, 20)}W",
        "31",
        "30",
    )
    return dice.choice(special) if dice.random() < 0.4 else _number(dice, 1, 31)


def _month(dice: random.Random) -> str:
    if dice.random() < 0.3:
        a, b = dice.choice(_NAMES_OF_MONTHS), dice.choice(_NAMES_OF_MONTHS)
        return dice.choice((a, f"{a},{b}", f"{a}-{b}"))
    return _number(dice, 1, 12) if dice.random() < 0.6 else "*"


def _day_of_week(dice: random.Random) -> str:
    day, name = dice.randint(1, 7), dice.choice(_NAMES_OF_DAYS)
    nth = dice.randint(1, 5)
    shapes = (
        f"{day}#{nth}",
        f"{name}#{nth}",
        f"{day}L",
        f"{name}L",
        "L",
        name,
        f"{name}-{dice.choice(_NAMES_OF_DAYS)}",
    )
    return dice.choice(shapes) if dice.random() < 0.6 else _number(dice, 1, 7)


def keep(answers: Path) -> None:
    sorted_out: dict[str, list[str]] = {"cases": [], "clock_changes": []}
    for line in dict.fromkeys(answers.read_text(encoding="utf-8").splitlines()):
        expression, zone, begin, told = line.split("\t")
        times = [int(one) for one in told.split()] if told[0].isdigit() else []
        # The gateway's years end with 2099; Quartz goes on for a hundred years from now.
        times = [one for one in times if datetime.fromtimestamp(one, ZoneInfo(zone)).year <= 2099]
        if told in ("refused", "stuck"):
            raise SystemExit(f"no answer: {line}")
        row = f"{expression}\t{zone}\t{begin}\t{' '.join(map(str, times)) or 'none'}"
        if any(_near_a_change(one, zone) for one in (int(begin), *times)):
            sorted_out["clock_changes"].append(row)
        else:
            sorted_out["cases"].append(row)
    for name, rows in sorted_out.items():
        (HERE / f"{name}.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def _near_a_change(moment: int, zone: str) -> bool:
    at = datetime.fromtimestamp(moment, UTC)
    before, after = ((at + way * _NEAR).astimezone(ZoneInfo(zone)).utcoffset() for way in (-1, 1))
    return before != after


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        for expression, zone, begin in questions():
            sys.stdout.write(f"{expression}\t{zone}\t{int(begin.timestamp())}\n")
    else:
        keep(Path(sys.argv[2]))
