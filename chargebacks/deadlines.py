"""The deadline of a dispute: until when evidence may be submitted, and how many days are left.

Source: Part A, States and transitions; docs/chargebacks.md.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chargebacks.models import Chargeback
from chargebacks.stages import DEFAULT_ANSWER_DAYS
from gateway.models import Merchant

RESPONSE_DUE_TIME: Final = time(17, 0)
"""The hour of a deadline, in the merchant's time zone: with the date alone it would be midnight."""

MIN_ANSWER_DAYS: Final = 1
"""Days to answer a chargeback that was heard of too late: whether the acquirer still takes it, it alone knows."""


def compute_response_deadline(
    merchant: Merchant,
    opened_at: datetime,
    respond_by: date | None,
    answer_days: int = DEFAULT_ANSWER_DAYS,
    days_gone: int = 0,
) -> datetime:
    """The time until which evidence may be submitted: 17:00 in the merchant's time zone, on the acquirer's day, else
    the stage's number of days after it was opened, less the ``days_gone`` before we heard of it, but not before the
    next day."""
    zone = ZoneInfo(merchant.time_zone)
    left = max(answer_days - days_gone, MIN_ANSWER_DAYS)
    day = respond_by or opened_at.astimezone(zone).date() + timedelta(days=left)
    return datetime.combine(day, RESPONSE_DUE_TIME, zone).astimezone(UTC)


def find_last_answer_day(merchant: Merchant, answer_by: datetime) -> date:
    """The last day whose RESPONSE_DUE_TIME, in the merchant's time zone, is not after ``answer_by``."""
    there = answer_by.astimezone(ZoneInfo(merchant.time_zone))
    return there.date() - timedelta(days=there.time() < RESPONSE_DUE_TIME)


def find_day_end(day: date, zone: str) -> datetime:
    """The midnight with which a day of a time zone ends."""
    return datetime.combine(day + timedelta(days=1), time(), ZoneInfo(zone))


def count_days_left(case: Chargeback, at: datetime) -> int:
    """Calendar days of the merchant until the deadline's day: 0 on that day, whatever the hour."""
    return count_days_between(at, case.due_at, case.merchant.time_zone)


def count_days_between(at: datetime, due_at: datetime, time_zone: str) -> int:
    """Midnights of the time zone between two moments."""
    zone = ZoneInfo(time_zone)
    return (due_at.astimezone(zone).date() - at.astimezone(zone).date()).days


def describe_days_left(days: int) -> str:
    """The days left in words."""
    return ngettext("%d day left", "%d days left", days) % days if days > 0 else _("due today")
