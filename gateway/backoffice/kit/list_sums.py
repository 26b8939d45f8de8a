"""What a list that a page draws sums to by currency."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Count, QuerySet, Sum

MAX_SUMMED_ROWS: Final = 10_000
"""A list of more rows is not summed up."""


def sum_listed_amounts(rows: QuerySet[Any]) -> list[dict[str, Any]]:
    """Currency, number and total of the rows of a list, which have an ``amount`` and a ``currency``; empty for a longer
    one than MAX_SUMMED_ROWS."""
    plain = rows.order_by()
    if len(plain.values_list("pk")[: MAX_SUMMED_ROWS + 1]) > MAX_SUMMED_ROWS:
        return []
    return list(plain.values("currency").annotate(number=Count("pk"), total=Sum("amount")).order_by("currency"))
