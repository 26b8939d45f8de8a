"""R3: how soon a payment in doubt was asked about, and how soon it was settled, out of the books' own times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.books import Payment

FIRST_INQUIRY_S: Final = 3.0
SETTLED_S: Final = 60.0

Window = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Some measured seconds against their limit. ``exempt``: left out, since the part that asks was itself down."""

    count: int
    exempt: int
    median_s: float
    most_s: float
    over: int
    worst: tuple[str, ...] = ()


def first_inquiries(books: Mapping[str, Payment], down: Sequence[Window]) -> Spread:
    """From the event IN_DOUBT to the first question about it, outside of ``down``."""
    waits: list[tuple[float, str]] = []
    exempt = 0
    for payment in books.values():
        doubt = in_doubt_at(payment)
        if doubt is None or payment.clock_moved:
            continue
        asked = [one.asked for one in payment.exchanges if one.kind == "inquire" and one.answered >= doubt]
        if overlap(doubt, doubt + FIRST_INQUIRY_S, down) > 0:
            exempt += 1
        else:
            # Settled without a question: its own late answer came first. Then the settlement counts.
            at = min(asked) if asked else payment.completed
            waits.append((max(0.0, (at or float("inf")) - doubt), payment.id))
    return spread(waits, FIRST_INQUIRY_S, exempt)


def settlements(books: Mapping[str, Payment], away: Sequence[Window]) -> Spread:
    """From IN_DOUBT to the final answer, without the time in which no worker could inquire or the acquirer did not
    answer."""
    waits = []
    for payment in books.values():
        doubt = in_doubt_at(payment)
        if doubt is not None and not payment.clock_moved:
            end = payment.completed if payment.completed is not None else float("inf")
            waits.append((max(0.0, end - doubt - overlap(doubt, end, away)), payment.id))
    return spread(waits, SETTLED_S, 0)


def in_doubt_at(payment: Payment) -> float | None:
    return next((move.at for move in payment.moves if move.status == "IN_DOUBT"), None)


def overlap(start: float, end: float, windows: Iterable[Window]) -> float:
    """Seconds of start … end that lie in the windows, which may overlap each other."""
    total, done = 0.0, start
    for opens, closes in sorted(windows):
        opens, closes = max(opens, done), min(closes, end)
        if closes > opens:
            total += closes - opens
            done = closes
    return total


def spread(waits: list[tuple[float, str]], limit_s: float, exempt: int) -> Spread:
    waits.sort()
    if not waits:
        return Spread(count=0, exempt=exempt, median_s=0.0, most_s=0.0, over=0)
    over = [f"{payment} {wait:.1f} s" for wait, payment in reversed(waits) if wait > limit_s]
    return Spread(
        count=len(waits),
        exempt=exempt,
        median_s=waits[len(waits) // 2][0],
        most_s=waits[-1][0],
        over=len(over),
        worst=tuple(over[:20]),
    )
