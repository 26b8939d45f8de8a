"""What is due by the merchants' clocks, in a run of a timer for one merchant or for all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from gateway.core import clock
from gateway.models import Merchant


def due_sql(column: str) -> str:
    """SQL of whether the time in ``column`` has come by the clock of the statement's merchant ``m`` and the run is for
    that merchant or for all. The furthest clock bounds the scan of an index on ``column``. Values: bind_run()."""
    return (
        f"{column} <= %(now)s + (SELECT greatest(max(clock_offset), interval '0') FROM gateway_merchant) "  # noqa: S608 - a column
        f"AND {column} <= %(now)s + m.clock_offset AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid)"
    )


def bind_run(merchant: Merchant | None, **more: object) -> dict[str, Any]:
    """The values of a statement with due_sql(): ``merchant`` or all, real time if ``more`` gives no ``now``, and
    ``more``."""
    return {"now": clock.real_now(), "merchant": merchant.pk if merchant is not None else None, **more}


def find_earliest(rows: QuerySet[Any], column: str) -> datetime | None:
    """The earliest time in ``column`` of ``rows``; None without rows, and NULLs do not count."""
    found: datetime | None = rows.exclude(**{column: None}).order_by(column).values_list(column, flat=True).first()
    return found
