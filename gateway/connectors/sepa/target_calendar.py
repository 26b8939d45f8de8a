"""TARGET calendar: the days on which euro payments settle. Pure.

Source: European Central Bank, closing days of T2 since 2002.
"""

from __future__ import annotations

import calendar
from datetime import date, timedelta

_FIXED = frozenset({(1, 1), (5, 1), (12, 25), (12, 26)})
_DAY = timedelta(days=1)


def is_target_day(day: date) -> bool:
    """True if payments settle on ``day``."""
    if day.weekday() >= 5 or (day.month, day.day) in _FIXED:
        return False
    sunday = easter_sunday(day.year)
    return day not in (sunday - 2 * _DAY, sunday + _DAY)


def roll_to_target_day(day: date) -> date:
    """``day``, or the first open day after it."""
    while not is_target_day(day):
        day += _DAY
    return day


def target_day_after(day: date, number: int) -> date:
    """The ``number``-th open day after ``day``; 0: the first one that is not before it."""
    day = roll_to_target_day(day)
    for _ in range(number):
        day = roll_to_target_day(day + _DAY)
    return day


def target_day_before(day: date, number: int) -> date:
    """The ``number``-th open day before ``day``, which is first moved on to an open one."""
    day = roll_to_target_day(day)
    for _ in range(number):
        day -= _DAY
        while not is_target_day(day):
            day -= _DAY
    return day


def add_months(day: date, number: int) -> date:
    """``day`` so many months later; where that month is shorter, its last day."""
    year, month = divmod(day.year * 12 + day.month - 1 + number, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def easter_sunday(year: int) -> date:
    """Easter Sunday in the Gregorian calendar (the anonymous algorithm of 1876)."""
    a, b, c = year % 19, year // 100, year % 100
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (a + 11 * h) // 319
    n = (2 * e + 2 * i - k - h + m + 32) % 7
    month = (h - m + n + 90) // 25
    return date(year, month, (h - m + n + month + 19) % 32)
