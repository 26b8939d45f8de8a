"""What falls due: every timed thing of the product is one timer, and the database holds its due times.

A timer finds rows whose time has come and acts on each once. Who wakes it does not matter: Celery's beat, `manage.py
tick`, a wake-up after a commit, or the test environment's clock when it is moved. config.timers lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

from gateway.models import Merchant


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """One kind of timed thing.

    ``run``: do what is due now, for one merchant or (None) for all; returns how many things it did. It takes rows by
    lease or compare-and-set, so that two that run at once do nothing twice, and returns when there is nothing left
    that is due (or after a bounded batch, when more than that is due: then it returns more than zero).
    ``next_at``: when this merchant's next thing falls due, by the merchant's clock; None when nothing waits. A timer
    without it follows real time alone, and moving a merchant's clock does not touch it.
    ``every_s``: how often beat wakes it.
    """

    name: str
    about: str
    run: Callable[[Merchant | None], int]
    next_at: Callable[[Merchant], datetime | None] | None = None
    every_s: float = 1.0


_TIMERS: Final[dict[str, Timer]] = {}
TIMERS: Final[Mapping[str, Timer]] = MappingProxyType(_TIMERS)
"""Name → timer, in the order in which they were added."""


def add(timer: Timer) -> None:
    """Make ``timer`` known; config does so when it is loaded."""
    _TIMERS[timer.name] = timer
