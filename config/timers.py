"""Every timer of the product, in one place. Source: Part A, Events; Part B, Scheduling."""

from __future__ import annotations

from typing import Final

from gateway import due

TIMERS: Final[tuple[due.Timer, ...]] = ()


def register() -> None:
    """Make them known to the ticks and to the clock of the test environment."""
    for timer in TIMERS:
        due.add(timer)
