"""Finds out whether a day lies in a signed month, whose lines cannot be changed until it is reopened."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from uuid import UUID

from reporting.month_end.models import MonthClosing


def is_day_closed(merchant: UUID | None, day: date) -> bool:
    """True if the merchant's month with ``day`` is signed."""
    if merchant is None:
        return False
    signed = MonthClosing.objects.filter(state=MonthClosing.State.SIGNED)
    return signed.filter(merchant=merchant, month=day.replace(day=1)).exists()


def list_closed_days(days: Iterable[tuple[UUID | None, date]]) -> set[tuple[UUID | None, date]]:
    """Those of some merchants' days whose months are signed, by one statement."""
    asked = {(merchant, day) for merchant, day in days if merchant is not None}
    if not asked:
        return set()
    signed = set(
        MonthClosing.objects.filter(
            state=MonthClosing.State.SIGNED,
            merchant__in={merchant for merchant, _day in asked},
            month__in={day.replace(day=1) for _merchant, day in asked},
        ).values_list("merchant_id", "month")
    )
    return {(merchant, day) for merchant, day in asked if (merchant, day.replace(day=1)) in signed}
