"""What may go wrong on a line to a processor: drawn by chance for each question, counted, told to the line's tap."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

SILENT_BEFORE: Final = "silent_before"
SILENT_AFTER: Final = "silent_after"
LATE: Final = "late"
CUT_BEFORE: Final = "disconnect_before"
CUT_AFTER: Final = "disconnect_after"
TWICE: Final = "twice"
HELD: Final = "held"
WAYS: Final = (SILENT_BEFORE, SILENT_AFTER, LATE, CUT_BEFORE, CUT_AFTER, TWICE, HELD)
"""*_before: the question is not handed on; *_after: it is, and the answer is not. late: the answer comes when nobody
waits for it any more; held: so does the question. twice: two answers to one question, or one question asked twice."""


class Misdeeds:
    """The chances of one line. ``ways``: those that mean something on it; ``late_s``: longer than anybody waits;
    ``delay_s``: before every answer."""

    def __init__(self, ways: Sequence[str], *, late_s: float, seed: int) -> None:
        self.ways, self.late_s, self.delay_s = tuple(ways), late_s, 0.0
        self.seen: Counter[str] = Counter()
        self._odds: dict[str, float] = {}
        self._dice = random.Random(seed)
        self._lock = threading.Lock()

    def steer(self, odds: dict[str, float], *, delay_s: float = 0.0) -> None:
        """From now on; ways that this line does not have are left out."""
        with self._lock:
            self._odds = {name: share for name, share in odds.items() if name in self.ways}
            self.delay_s = delay_s

    def draw(self) -> str:
        """What happens to the next question; '' for nothing."""
        with self._lock:
            left = self._dice.random()
            for name, share in self._odds.items():
                left -= share
                if left < 0:
                    self.seen[name] += 1
                    return name
        return ""
