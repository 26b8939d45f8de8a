"""What the product owes later, while things are killed: each duty makes its own load and holds the product to it.

A duty is one class: it starts with the load, stops with it, says what is still owed, and what was wrong. A new one is
a row of DUTIES.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tests.faults import jobs, result_calls, webhooks
from tests.faults.faults import Strike
from tests.faults.finding import Finding
from tests.faults.held_parts import HeldParts
from tests.faults.peers.duty import Peers
from tests.faults.races import Shop
from tests.faults.stack import Stack
from tests.faults.stored_cards import StoredCards


class Duty(Protocol):
    """One kind of thing that is due later. ``broken``: clients of its own that died."""

    name: str
    broken: list[str]

    def start(self) -> None:
        """Begin to make things due."""

    def stop(self) -> bool:
        """Make nothing more due; whether every client came to its end."""

    def owed(self) -> int:
        """How many things are still to be done. Asked after ``stop`` until it is 0, or too long."""

    def findings(self, strikes: Sequence[Strike]) -> list[Finding]:
        """What was lost, doubled, or not in its time. ``strikes``: those that may explain a repetition."""

    def told(self) -> str:
        """One line of figures for the table."""


DUTIES: Final[tuple[Callable[[Stack, Shop, int], Duty], ...]] = (
    result_calls.ResultCalls, webhooks.Webhooks, jobs.Jobs, Peers, StoredCards, HeldParts,
)  # fmt: skip
