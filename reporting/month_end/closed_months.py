"""Finds out whether a day lies in a signed month, whose lines cannot be changed until it is reopened.

Code that changes lines asks first: the month is locked until the change is committed, whether it waits for its second
person or is not prepared yet. So it is signed after the change, with figures that include it, or the change is refused
because it is signed.
"""

# ruff: noqa: S608 - statements are built from this module's own parts only; values are always bound
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any, Final
from uuid import UUID

from gateway.db.sessions import keep_session
from gateway.db.statement import execute_sql
from reporting.month_end.models import MonthClosing

# Not a lock on the closing's row: a month that is not prepared has none. Changes share the lock and do not wait for
# one another; the signature has it alone, and waits for all of them. In the order of the keys.
_LOCK_KEY: Final = "hashtextextended('month ' || asked.merchant || ' ' || to_char(asked.month, 'YYYY-MM'), 0)"
_ASKED: Final = """(SELECT * FROM unnest(%(merchants)s::uuid[], %(months)s::date[]) AS every(merchant, month)
    ORDER BY merchant, month OFFSET 0) asked"""
_HOLD_MONTHS: Final = f"SELECT pg_advisory_xact_lock_shared({_LOCK_KEY}) FROM {_ASKED}"
_HOLD_BEYOND_TRANSACTION: Final = f"SELECT pg_advisory_lock_shared({_LOCK_KEY}) FROM {_ASKED}"
_LET_GO: Final = f"SELECT pg_advisory_unlock_shared({_LOCK_KEY}) FROM {_ASKED}"
_HOLD_ALONE: Final = f"SELECT pg_advisory_xact_lock({_LOCK_KEY}) FROM {_ASKED}"
# A statement of its own: what was signed while the lock was waited for is not in the snapshot of the one that waited.
_SIGNED: Final = """
SELECT c.merchant_id, c.month FROM reporting_monthclosing c
JOIN unnest(%(merchants)s::uuid[], %(months)s::date[]) AS asked(merchant, month)
    ON c.merchant_id = asked.merchant AND c.month = asked.month
WHERE c.state = %(signed)s
"""

MerchantDay = tuple[UUID | None, date]


def is_day_closed(merchant: UUID | None, day: date) -> bool:
    """True if the merchant's month with ``day`` is signed; else it stays open until the transaction ends."""
    return bool(list_closed_days([(merchant, day)]))


def list_closed_days(days: Iterable[MerchantDay]) -> set[MerchantDay]:
    """The days, of some merchants' days, whose months are signed, by a fixed number of statements. The other months
    stay open until the transaction ends."""
    asked = {(merchant, day) for merchant, day in days if merchant is not None}
    if not asked:
        return set()
    values = _bind_months((merchant, day) for merchant, day in asked)
    execute_sql(_HOLD_MONTHS, values)
    signed = _list_signed_months(values)
    return {(merchant, day) for merchant, day in asked if (merchant, day.replace(day=1)) in signed}


@contextmanager
def hold_month(merchant: UUID | None, day: date) -> Iterator[bool]:
    """Keep the merchant's month with ``day`` from being signed within the block, over any number of transactions.
    Yields whether it is signed already."""
    if merchant is None:
        yield False
        return
    values = _bind_months([(merchant, day)])
    with keep_session():
        execute_sql(_HOLD_BEYOND_TRANSACTION, values)
        try:
            yield bool(_list_signed_months(values))
        finally:
            execute_sql(_LET_GO, values)


def hold_month_alone(merchant: UUID, month: date) -> None:
    """Wait for all changes of the month's lines that are on their way, and let none begin until the transaction ends:
    the month is being signed."""
    execute_sql(_HOLD_ALONE, _bind_months([(merchant, month)]))


def _bind_months(days: Iterable[tuple[UUID, date]]) -> dict[str, Any]:
    months = sorted({(merchant, day.replace(day=1)) for merchant, day in days})
    return {
        "merchants": [merchant for merchant, _ in months],
        "months": [month for _, month in months],
        "signed": MonthClosing.State.SIGNED,
    }


def _list_signed_months(values: dict[str, Any]) -> set[tuple[UUID, date]]:
    found: set[tuple[UUID, date]] = {(merchant, month) for merchant, month in execute_sql(_SIGNED, values)}
    return found
