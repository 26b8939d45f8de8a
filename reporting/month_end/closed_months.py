"""Finds out whether a day lies in a signed month, whose lines cannot be changed until it is reopened.

Asked in the transaction that changes the lines: a month that waits for its second person is held, so that it is signed
after the change, with figures that have it, or the change finds it signed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final
from uuid import UUID

from gateway.db.statement import execute_sql
from reporting.month_end.models import MonthClosing

# FOR SHARE: changes of a month do not wait for one another, and its signature waits for all of them (closing.py).
_HOLD_MONTHS: Final = """
SELECT c.merchant_id, c.month, c.state FROM reporting_monthclosing c
JOIN unnest(%(merchants)s::uuid[], %(months)s::date[]) AS asked(merchant, month)
    ON c.merchant_id = asked.merchant AND c.month = asked.month
WHERE c.state IN ('PREPARED', 'SIGNED') FOR SHARE OF c
"""


def is_day_closed(merchant: UUID | None, day: date) -> bool:
    """True if the merchant's month with ``day`` is signed; else it stays open until the transaction ends."""
    return bool(list_closed_days([(merchant, day)]))


def list_closed_days(days: Iterable[tuple[UUID | None, date]]) -> set[tuple[UUID | None, date]]:
    """Those of some merchants' days whose months are signed, by one statement. The other months stay open until the
    transaction ends."""
    asked = {(merchant, day) for merchant, day in days if merchant is not None}
    if not asked:
        return set()
    months = sorted({(merchant, day.replace(day=1)) for merchant, day in asked})
    values = {"merchants": [merchant for merchant, _ in months], "months": [month for _, month in months]}
    found = execute_sql(_HOLD_MONTHS, values)
    signed = {(merchant, month) for merchant, month, state in found if state == MonthClosing.State.SIGNED}
    return {(merchant, day) for merchant, day in asked if (merchant, day.replace(day=1)) in signed}
