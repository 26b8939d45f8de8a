"""The notation of cron fields as in Quartz: is a text well-formed? What it means is not decided here.

A field is ``*``, ``?`` (days only) or a list of values, ranges (which may wrap around) and steps.
Alone in their field are ``L``, ``LW``, ``L-3``, ``15W`` (day of month) and ``L``, ``6L``, ``FRIL``,
``6#3`` (day of week).
Source: Part B, Scheduling; ruling D39.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_EXPRESSION_CHARS = 256
"""Most characters of one field: no merchant needs more, and a list must not grow without end."""

_NTH = frozenset("12345")
_NUMBER = re.compile("[0-9]{1,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CronField:
    """One of the seven fields. ``symbols``: which of ``, - * / ? L W #`` it accepts. ``names``: words for
    numbers.

    ``wraps``: whether a range may run over the end, as 22-2 or FRI-MON; years do not.
    """

    low: int
    high: int
    symbols: str
    names: Mapping[str, int] = field(default_factory=dict)
    wraps: bool = True

    def fits(self, value: str) -> bool:
        text = value.upper()
        if not text or len(text) > MAX_EXPRESSION_CHARS:
            return False
        if text == "?":
            return "?" in self.symbols
        if self._is_last(text) or self._is_nearest_weekday(text) or self._is_nth_day(text):
            return True
        parts = text.split(",")
        if len(parts) > 1 and "," not in self.symbols:
            return False
        return all(map(self._is_part, parts))

    def _number(self, text: str) -> int | None:
        """The number of a value; None if it is out of range or no value."""
        number = self.names.get(text)
        if number is None and _NUMBER.fullmatch(text) and len(text) <= max(len(str(self.high)), 2):
            number = int(text)
        return number if number is not None and self.low <= number <= self.high else None

    def _is_part(self, text: str) -> bool:
        span, slash, step = text.partition("/")
        if slash and not ("/" in self.symbols and self._is_step(step)):
            return False
        if slash and any(character.isalpha() for character in span):
            # Quartz reads MON-FRI/2 as every day of the week and MON/2 as MON: certainly not what was meant.
            return False
        if span == "*" or (not span and slash):
            return "*" in self.symbols
        first, dash, last = span.partition("-")
        start = self._number(first)
        if not dash:
            return start is not None
        end = self._number(last)
        return "-" in self.symbols and start is not None and end is not None and (self.wraps or start <= end)

    def _is_step(self, text: str) -> bool:
        return bool(_NUMBER.fullmatch(text)) and 1 <= int(text) <= self.high

    def _is_last(self, text: str) -> bool:
        if "L" not in self.symbols:
            return False
        if "#" in self.symbols:  # day of week
            return text == "L" or (text.endswith("L") and self._number(text[:-1]) is not None)
        found = re.fullmatch("L(?:-([0-9]{1,2}))?(W?)", text)
        return found is not None and int(found[1] or 0) <= 30

    def _is_nearest_weekday(self, text: str) -> bool:
        return "W" in self.symbols and text.endswith("W") and self._number(text[:-1]) is not None

    def _is_nth_day(self, text: str) -> bool:
        day, hash_sign, nth = text.partition("#")
        return bool(hash_sign) and "#" in self.symbols and self._number(day) is not None and nth in _NTH


CRON_DAYS = {"SUN": 1, "MON": 2, "TUE": 3, "WED": 4, "THU": 5, "FRI": 6, "SAT": 7}
CRON_MONTHS = {
    "JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6,
    "JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11, "DEC": 12,
}  # fmt: skip

CRON_SECOND = CronField(low=0, high=59, symbols=",-*/")
CRON_MINUTE = CronField(low=0, high=59, symbols=",-*/")
CRON_HOUR = CronField(low=0, high=23, symbols=",-*/")
CRON_DAY_OF_MONTH = CronField(low=1, high=31, symbols=",-*?/LW")
CRON_MONTH = CronField(low=1, high=12, symbols=",-*/", names=CRON_MONTHS)
CRON_DAY_OF_WEEK = CronField(low=1, high=7, symbols=",-*?/L#", names=CRON_DAYS)
CRON_YEAR = CronField(low=1970, high=2099, symbols=",-*/", wraps=False)

CRON_FIELDS = (CRON_SECOND, CRON_MINUTE, CRON_HOUR, CRON_DAY_OF_MONTH, CRON_MONTH, CRON_DAY_OF_WEEK, CRON_YEAR)
"""In the order of ``job.expression``."""

UNRESTRICTED_DAY = ("*", "?")


def do_days_agree(day_of_month: str, day_of_week: str) -> bool:
    """True if at most one of the two days is concrete, and at least one of them is given (D39)."""
    both_concrete = day_of_month not in UNRESTRICTED_DAY and day_of_week not in UNRESTRICTED_DAY
    return not both_concrete and (day_of_month, day_of_week) != ("?", "?")


def is_cron_expression(text: str) -> bool:
    """True for six or seven fields, second first; the year may be left out."""
    if len(text) > MAX_EXPRESSION_CHARS:
        return False
    parts = text.split()
    if len(parts) not in (6, 7):
        return False
    well_formed = all(one.fits(part) for one, part in zip(CRON_FIELDS, parts, strict=False))
    return well_formed and do_days_agree(parts[3], parts[5])
