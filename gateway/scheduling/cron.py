"""Cron expressions with Quartz semantics: computes the next run. The catalogue checks the notation itself.

Days of the week count from 1 = SUN. ``L`` is the last day, ``L-3`` three days before it, ``15W`` the weekday
nearest to the 15th within its month, ``LW`` the last weekday, ``6#3`` the third Friday, ``6L`` or ``FRIL`` the last
one; ``L`` as a day of the week is every Saturday. A day that a month does not have is left out in that month.

Times are found month by month and then by bisection, never second by second.
Source: Part B, Scheduling; ruling D39; docs/decisions/0022.
"""

from __future__ import annotations

import calendar
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from gateway.catalogue.structures.cron_notation import (
    CRON_DAY_OF_MONTH,
    CRON_DAY_OF_WEEK,
    CRON_FIELDS,
    CRON_HOUR,
    CRON_MINUTE,
    CRON_MONTH,
    CRON_SECOND,
    CRON_YEAR,
    UNRESTRICTED_DAY,
    CronField,
    is_cron_expression,
)

_MAX_CACHED_EXPRESSIONS: Final = 4_096
"""Compiled expressions that one process caches."""
_SECOND: Final = timedelta(seconds=1)
_SATURDAY, _SUNDAY = 5, 6

MonthDays = Callable[[int, int], list[int]]
"""(year, month) → the days of that month, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSchedule:
    """A compiled expression: the values of each field in order; ``days`` computes the days of a month."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: tuple[int, ...]
    years: tuple[int, ...]
    days: MonthDays

    def next_after(self, moment: datetime, zone: ZoneInfo) -> datetime | None:
        """The first run after ``moment``, in UTC; None when there is none until the end of 2099.

        Across a change of clocks it does what Quartz does: a skipped time fires right after the skip, a time that comes
        twice fires the second time.
        """
        local = moment.astimezone(zone)
        wall = local.replace(tzinfo=None, fold=0)
        if not local.fold and _comes_twice(wall, zone):
            # All runs of this hour fire when it comes again.
            wall = _start_of_overlap(wall, zone) - _SECOND
        while (found := self._next_wall(wall)) is not None:
            instant = _resolve_instant(found, zone)
            if instant > moment:
                return instant
            wall = found
        return None

    def runs(self, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """All runs after ``moment``, in order, in UTC."""
        found = self.next_after(moment, zone)
        while found is not None:
            yield found
            found = self.next_after(found, zone)

    def _next_wall(self, after: datetime) -> datetime | None:
        """The first local time after ``after``, without regard to changes of clocks."""
        begin = after.replace(microsecond=0) + _SECOND
        for year in self.years[bisect_left(self.years, begin.year) :]:
            first = begin.month if year == begin.year else 1
            for month in self.months[bisect_left(self.months, first) :]:
                same_month = (year, month) == (begin.year, begin.month)
                for day in self.days(year, month):
                    if same_month and day < begin.day:
                        continue
                    found = self._time_from(begin.time() if same_month and day == begin.day else time.min)
                    if found is not None:
                        return datetime.combine(datetime(year, month, day), found)  # noqa: DTZ001 - the wall's
        return None

    def _time_from(self, least: time) -> time | None:
        """The first time of a day that is not before ``least``."""
        for hour in self.hours[bisect_left(self.hours, least.hour) :]:
            if hour > least.hour:
                return time(hour, self.minutes[0], self.seconds[0])
            for minute in self.minutes[bisect_left(self.minutes, least.minute) :]:
                if minute > least.minute:
                    return time(hour, minute, self.seconds[0])
                at = bisect_left(self.seconds, least.second)
                if at < len(self.seconds):
                    return time(hour, minute, self.seconds[at])
        return None


@lru_cache(maxsize=_MAX_CACHED_EXPRESSIONS)
def compile_cron(expression: str) -> CronSchedule:
    """Compile a well-formed expression. Raises ValueError for any other."""
    if not is_cron_expression(expression):
        raise ValueError(f"{expression!r} is no cron expression")
    parts = [*expression.upper().split(), "*"][: len(CRON_FIELDS)]
    second, minute, hour, day_of_month, month, day_of_week, year = parts
    return CronSchedule(
        seconds=parse_cron_values(CRON_SECOND, second),
        minutes=parse_cron_values(CRON_MINUTE, minute),
        hours=parse_cron_values(CRON_HOUR, hour),
        months=parse_cron_values(CRON_MONTH, month),
        years=parse_cron_values(CRON_YEAR, year),
        days=_days_of_month(day_of_month) if day_of_week in UNRESTRICTED_DAY else _days_of_week(day_of_week),
    )


def parse_cron_values(field: CronField, text: str) -> tuple[int, ...]:
    """The values of a field's list of values, ranges and steps, sorted; a range may wrap around (FRI-MON)."""
    found: set[int] = set()
    size = field.high - field.low + 1
    for part in text.split(","):
        span, slash, step = part.partition("/")
        start, dash, end = span.partition("-")
        if start in ("", *UNRESTRICTED_DAY):
            first, last = field.low, field.high
        else:
            first = _parse_number(field, start)
            last = _parse_number(field, end) if dash else field.high if slash else first
        over = size if last < first else 0
        every = range(first, last + over + 1, int(step) if slash else 1)
        found.update(value if value <= field.high else value - size for value in every)
    return tuple(sorted(found))


def _parse_number(field: CronField, text: str) -> int:
    return field.names[text] if text in field.names else int(text)


# --- days ---------------------------------------------------------------------------------------------------------


def _days_of_month(text: str) -> MonthDays:
    weekday = text.endswith("W")
    text = text.removesuffix("W")
    if text.startswith("L"):
        before = int(text[2:] or 0)
        chosen: MonthDays = lambda year, month: _keep_existing_days(year, month, [_count_days(year, month) - before])  # noqa: E731
    else:
        days = list(parse_cron_values(CRON_DAY_OF_MONTH, text))
        chosen = lambda year, month: _keep_existing_days(year, month, days)  # noqa: E731
    if not weekday:
        return chosen
    return lambda year, month: [_nearest_weekday(year, month, day) for day in chosen(year, month)]


def _days_of_week(text: str) -> MonthDays:
    day, hash_sign, nth = text.partition("#")
    if hash_sign:
        return lambda year, month: _list_days_of_week(year, month, (_parse_number(CRON_DAY_OF_WEEK, day),))[
            int(nth) - 1 :
        ][:1]
    if text != "L" and text.endswith("L"):
        return lambda year, month: _list_days_of_week(year, month, (_parse_number(CRON_DAY_OF_WEEK, text[:-1]),))[-1:]
    days = (CRON_DAY_OF_WEEK.high,) if text == "L" else parse_cron_values(CRON_DAY_OF_WEEK, text)
    return lambda year, month: _list_days_of_week(year, month, days)


def _count_days(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def _keep_existing_days(year: int, month: int, days: list[int]) -> list[int]:
    last = _count_days(year, month)
    return [day for day in days if 1 <= day <= last]


def _list_days_of_week(year: int, month: int, days: tuple[int, ...]) -> list[int]:
    """The days of a month that fall on one of these days of the week, 1 = SUN."""
    first, last = calendar.monthrange(year, month)
    return [day for day in range(1, last + 1) if (first + day) % 7 + 1 in days]


def _nearest_weekday(year: int, month: int, day: int) -> int:
    """The day itself or the nearest one from Monday to Friday, never in another month."""
    which = calendar.weekday(year, month, day)
    if which == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if which == _SUNDAY:
        return day + 1 if day < _count_days(year, month) else day - 2
    return day


# --- a wall clock's time as an instant ----------------------------------------------------------------------------


def _offsets(wall: datetime, zone: ZoneInfo) -> tuple[timedelta, timedelta]:
    """The zone's UTC offsets before and after a change of clocks around ``wall``; equal if there is none."""
    before, after = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    assert before is not None
    assert after is not None
    return before, after


def _comes_twice(wall: datetime, zone: ZoneInfo) -> bool:
    before, after = _offsets(wall, zone)
    return after < before


def _resolve_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant of a local time: the later one if it comes twice, the moment of the jump if it is skipped."""
    before, after = _offsets(wall, zone)
    early = wall.replace(tzinfo=UTC) - after
    if after <= before:
        return early
    # The clocks jump less than this many seconds later: to where the new offset begins.
    jumped = _first(int((after - before).total_seconds()), lambda s: _is_at(early + timedelta(seconds=s), zone, after))
    return early + timedelta(seconds=jumped)


def _is_at(instant: datetime, zone: ZoneInfo, offset: timedelta) -> bool:
    return instant.astimezone(zone).utcoffset() == offset


def _start_of_overlap(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first local time of the repeated hour that ``wall`` is in."""
    before, after = _offsets(wall, zone)
    length = before - after
    early = wall.replace(microsecond=0) - length
    found = _first(int(length.total_seconds()), lambda s: _comes_twice(early + timedelta(seconds=s), zone))
    return early + timedelta(seconds=found)


def _first(most: int, holds: Callable[[int], bool]) -> int:
    """The least number from which on ``holds`` is true, by bisection up to ``most``, where it must be true."""
    return bisect_left(range(most), True, key=holds)
