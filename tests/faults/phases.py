"""Finds the phase of a payment in which its web worker was killed, from the rows that it left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tests.faults.books import Acquirer, Payment
from tests.faults.faults import Strike

PHASES: Final = (
    "before it began", "begun, not asked", "at the acquirer or back from it", "completed, answer lost",
)  # fmt: skip
WITHIN_S: Final = 1.0


def of_kills(
    strikes: Sequence[Strike],
    journal: Iterable[Mapping[str, Any]],
    books: Mapping[str, Payment],
    acquirer: Acquirer,
    keys: Iterable[tuple[str, str]],
) -> dict[str, int]:
    """Phase → how many requests lost their answer in it. Looked at: tries under way when a web process was killed."""
    kills = [one.at for one in strikes if one.fault.startswith("web") and one.fired]
    payment_of = dict(keys)
    found = dict.fromkeys(PHASES, 0)
    for line in journal:
        if line["kind"] != "POST" or "fault" not in line:
            continue
        if not any(line["sent"] <= at <= line["at"] <= at + WITHIN_S for at in kills):
            continue
        payment = books.get(payment_of.get(line["key"], ""))
        found[_phase(payment, acquirer, line["at"])] += 1
    return found


def _phase(payment: Payment | None, acquirer: Acquirer, at: float) -> str:
    if payment is None or (payment.created > at and not payment.clock_moved):
        return PHASES[0]
    if any(move.event in ("approve", "decline", "refuse", "suspend") and move.at <= at for move in payment.moves):
        return PHASES[3]
    seen = acquirer.first_seen.get(payment.id)
    return PHASES[2] if seen is not None and seen <= at else PHASES[1]


def told(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in found.items())
