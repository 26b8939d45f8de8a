"""How many searches of the docs this process carries out for everybody together.

A search has no token and no account: what it may take of a node's CPU is bounded for all strangers at once, and what is
above that is refused before anything is looked up. A reader who types has some three a second.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

MAX_SEARCHES_AT_ONCE: Final = 60
SEARCHES_PER_S: Final = 20.0
SEARCH_RETRY_AFTER_S: Final = 1


@dataclass(slots=True)
class DocsSearchBudget:
    """A number of searches that may come at once, and are earned again by time. ``counted_at``: monotonic seconds."""

    left: float = float(MAX_SEARCHES_AT_ONCE)
    counted_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, now: float) -> bool:
        """Count one search; False if it is one too many."""
        with self.lock:
            earned = max(0.0, now - self.counted_at) * SEARCHES_PER_S
            self.left, self.counted_at = min(float(MAX_SEARCHES_AT_ONCE), self.left + earned), now
            if self.left < 1:
                return False
            self.left -= 1
            return True


SEARCH_BUDGET: Final = DocsSearchBudget()


def spend_search() -> bool:
    """Count a search of this process; False if it is refused."""
    return SEARCH_BUDGET.spend(time.monotonic())
