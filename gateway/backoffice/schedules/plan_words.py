"""Times of a schedule in words: "0 0 6 1 * ? *" is "monthly on day 1, 06:00".

Plans as people make them have words: days of the month or of the week, the last day, in some months, at a few times of
day. Any other has none, and pages show its expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.translation import gettext as _

from gateway.catalogue.structures.cron_notation import CRON_DAY_OF_MONTH, CRON_DAY_OF_WEEK, UNRESTRICTED_DAY
from gateway.scheduling.cron import CronSchedule, compile_cron, parse_cron_values

MAX_WORDED_TIMES: Final = 4
"""Times of day that are written one by one."""
MAX_WORDED_DAYS: Final = 7
_YEARS_WITHOUT_END: Final = 60
"""A plan for more years than these is for every year."""
_VALUES: Final = re.compile(r"[0-9A-Z,\-]+")
_SUNDAY: Final = 1


def describe_plan(expression: str) -> str:
    """When a schedule runs, in the reader's language; '' where the expression has no plain words."""
    try:
        plan = compile_cron(expression)
    except ValueError:
        return ""
    times, days = _describe_times(plan), _describe_days(expression, plan)
    if not times or not days or (len(plan.years) < _YEARS_WITHOUT_END and len(plan.years) > MAX_WORDED_DAYS):
        return ""
    years = "" if len(plan.years) >= _YEARS_WITHOUT_END else f" {_join(map(str, plan.years))}"
    return f"{days}{years}, {times}"


def _describe_times(plan: CronSchedule) -> str:
    found = [(hour, minute, second) for hour in plan.hours for minute in plan.minutes for second in plan.seconds]
    if len(found) > MAX_WORDED_TIMES:
        return ""
    return _join(f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "") for hour, minute, second in found)


def _describe_days(expression: str, plan: CronSchedule) -> str:
    of_month, _month, of_week = expression.upper().split()[3:6]
    every_month = len(plan.months) == len(MONTHS)
    months = _join(str(MONTHS[number]) for number in plan.months)
    if of_week not in UNRESTRICTED_DAY:
        if not _VALUES.fullmatch(of_week) or of_week.endswith("L"):
            return ""
        # Days of the week count from Sunday here, and from Monday in Django.
        numbers = parse_cron_values(CRON_DAY_OF_WEEK, of_week)
        days = _join(str(WEEKDAYS[(number - _SUNDAY - 1) % len(WEEKDAYS)]) for number in _from_monday(numbers))
        return (
            _("weekly on %s") % days
            if every_month
            else _("on %(days)s in %(months)s") % {"days": days, "months": months}
        )
    if of_month in UNRESTRICTED_DAY:
        return _("daily") if every_month else _("daily in %s") % months
    if of_month == "L":
        return _("monthly on the last day") if every_month else _("on the last day of %s") % months
    if not _VALUES.fullmatch(of_month) or not of_month[-1].isdigit() or of_month.startswith("L"):
        return ""
    numbers = parse_cron_values(CRON_DAY_OF_MONTH, of_month)
    if len(numbers) > MAX_WORDED_DAYS:
        return ""
    days = _join(map(str, numbers))
    if every_month:
        return _("monthly on day %s") % days
    return _("on day %(days)s of %(months)s") % {"days": days, "months": months}


def _from_monday(numbers: Iterable[int]) -> list[int]:
    return sorted(numbers, key=lambda number: (number - _SUNDAY - 1) % len(WEEKDAYS))


def _join(words: Iterable[str]) -> str:
    return ", ".join(words)
