"""Whether a day lies in a month that is signed: its lines are not worked on any more until it is reopened."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from reporting.month_end.models import MonthClosing


def is_day_closed(merchant: UUID | None, day: date) -> bool:
    """True if the merchant's month with ``day`` is signed."""
    if merchant is None:
        return False
    signed = MonthClosing.objects.filter(state=MonthClosing.State.SIGNED)
    return signed.filter(merchant=merchant, month=day.replace(day=1)).exists()
