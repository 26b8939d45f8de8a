"""Times that a list is narrowed by: periods such as yesterday, and the beginning and end that a reader types or an
address carries. Days are those of the reader's zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Final

from django.utils import timezone
from django.utils.translation import gettext as _

from gateway.core import clock

FILTER_TIME_FORMAT: Final = "%Y-%m-%dT%H:%M"
"""Format of times in filters, in the reader's zone; with a Z at the end, in UTC. Seconds may follow."""
CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""How much earlier than its id a payment's own time may be: clocks of several machines."""
MIN_FILTER_YEAR: Final = 1970
MAX_FILTER_YEAR: Final = 9998
_EARLIEST: Final = datetime(MIN_FILTER_YEAR, 1, 1, tzinfo=UTC) - timedelta(days=1)
_LATEST: Final = datetime(MAX_FILTER_YEAR + 1, 1, 1, tzinfo=UTC) + timedelta(days=1)
"""The first moment that is read, and the end. A day wider than the years: format_filter_time writes their ends in UTC,
and the last year ends in the next. At the ends of the calendar a tolerance or another zone overflows."""
PERIODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hour": "the last hour", "day": "the last 24 hours", "today": "today", "yesterday": "yesterday",
        "week": "the last 7 days", "month": "this month", "last_month": "last month",
    }
)  # fmt: skip
"""Periods that end now or lie behind, in days of the reader's zone."""


PERIOD_FILTER_NAMES: Final = ("period", "from", "to")
"""What a form or an address asks for a period by."""


class FilterValueError(ValueError):
    """An invalid filter value; the message says what is allowed."""


def format_filter_time(at: datetime) -> str:
    """A time as a filter in an address: whoever opens it reads the same."""
    return f"{at.astimezone(UTC):{FILTER_TIME_FORMAT}}Z"


def parse_filter_time(text: str) -> datetime:
    """A day or a time in the reader's zone; with a Z at the end, in UTC. Raises FilterValueError."""
    zone = UTC if text.endswith("Z") else timezone.get_current_timezone()
    try:
        if "T" in text:
            form = f"{FILTER_TIME_FORMAT}:%S" if text.count(":") > 1 else FILTER_TIME_FORMAT
            written = datetime.strptime(text.removesuffix("Z"), form).replace(tzinfo=zone)
        else:
            written = datetime.combine(date.fromisoformat(text), time(), zone)
    except ValueError:
        words = _("give a date as yyyy-MM-dd, e.g. 2026-05-14, or with a time, 2026-05-14T10:00")
        raise FilterValueError(words) from None
    if not _EARLIEST <= written.replace(tzinfo=UTC) < _LATEST:  # as it is written: in UTC it may be no time at all
        raise _build_year_fault()
    return written.astimezone(UTC)


def _build_year_fault() -> FilterValueError:
    words = _("give a year from %(first)s to %(last)s")
    return FilterValueError(words % {"first": MIN_FILTER_YEAR, "last": MAX_FILTER_YEAR})


def parse_filter_end(text: str) -> datetime:
    """The exclusive end of a time: the next midnight for a date, the time itself otherwise."""
    if "T" in text:
        return parse_filter_time(text)
    try:
        after = date.fromisoformat(text) + timedelta(days=1)
    except OverflowError:
        raise _build_year_fault() from None
    except ValueError:
        return parse_filter_time(text)
    return parse_filter_time(after.isoformat())


def parse_filter_period(asked: Mapping[str, str]) -> tuple[datetime | None, datetime | None, dict[str, str]]:
    """The beginning and the exclusive end of the values of PERIOD_FILTER_NAMES, where what was typed narrows the
    period; and by name why a value cannot be read."""
    since: datetime | None = None
    until: datetime | None = None
    faults: dict[str, str] = {}
    if period := asked.get("period", "").strip():
        if period in PERIODS:
            since, until = find_period(period)
        else:
            faults["period"] = _("this period is not known here")

    def read_end(name: str, parse: Callable[[str], datetime]) -> datetime | None:
        try:
            return parse(text) if (text := asked.get(name, "").strip()) else None
        except FilterValueError as fault:
            faults[name] = str(fault)
            return None

    since = max(filter(None, (since, read_end("from", parse_filter_time))), default=None)
    until = min(filter(None, (until, read_end("to", parse_filter_end))), default=None)
    if not faults and since is not None and until is not None and since >= until:
        faults["to"] = _("lies before the beginning")
    return since, until, faults


def render_filter_end(name: str, text: str) -> str:
    """The value ``from`` or ``to`` of a filter by period as a browser's field wants it, in the reader's zone; empty
    where it is none."""
    try:
        at = timezone.localtime(parse_filter_time(text) if name == "from" else parse_filter_end(text))
    except FilterValueError:
        return ""
    return f"{at:{FILTER_TIME_FORMAT}:%S}" if at.second else f"{at:{FILTER_TIME_FORMAT}}"


def find_period(name: str) -> tuple[datetime, datetime | None]:
    """The beginning and the exclusive end of a period of PERIODS, to the minute; None: it goes on. For the merchant's
    clock: in the test environment one may be ahead, so what goes on has no end."""
    now = timezone.localtime(clock.real_now()).replace(second=0, microsecond=0)
    midnight = now.replace(hour=0, minute=0)

    def day(back: int) -> datetime:
        return datetime.combine(midnight.date() - timedelta(days=back), time(), midnight.tzinfo)

    first = midnight.date().replace(day=1)
    month = datetime.combine(first, time(), midnight.tzinfo)
    before = datetime.combine((first - timedelta(days=1)).replace(day=1), time(), midnight.tzinfo)
    return {
        "hour": (now - timedelta(hours=1), None),
        "day": (now - timedelta(days=1), None),
        "today": (midnight, None),
        "yesterday": (day(1), midnight),
        "week": (day(6), None),
        "month": (month, None),
        "last_month": (before, month),
    }[name]
