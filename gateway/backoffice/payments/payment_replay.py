"""Past payments of a channel, read page by page in order of time: for background work that tries rules on them, and
writes a CSV file of what it found (gateway.background.queue)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from gateway.background.files import AttemptFolder
from gateway.backoffice.payments.payment_export import escape_cell
from gateway.connectors.routing import INTERNAL
from gateway.models import Payment


def select_first_payments(asked: Mapping[str, Any], payment_types: Sequence[str]) -> QuerySet[Payment]:
    """First payments of the work's channel and period. ``asked``: ``channel``; ``from``, ``to``: the merchant's clock,
    ISO 8601; ``all``: include payments of INTERNAL."""
    rows = Payment.objects.filter(
        channel=UUID(asked["channel"]),
        created_at__gte=datetime.fromisoformat(asked["from"]),
        created_at__lt=datetime.fromisoformat(asked["to"]),
        chain=F("id"),
        payment_type__in=payment_types,
    )
    return rows if asked.get("all") else rows.exclude(test_mode=INTERNAL)


def read_payment_page(
    rows: QuerySet[Payment], cursor: dict[str, Any], columns: Iterable[str], size: int
) -> tuple[QuerySet[Payment], list[Payment]]:
    """What is left of ``rows`` behind the cursor, and the next page of it. Moves the cursor (``at``, ``after``)."""
    if cursor["at"]:
        at, after = datetime.fromisoformat(cursor["at"]), UUID(cursor["after"])
        rows = rows.filter(Q(created_at__gt=at) | Q(created_at=at, id__gt=after))
    found = list(rows.order_by("created_at", "id").only(*columns)[:size])
    if found:
        cursor |= {"at": found[-1].created_at.isoformat(), "after": found[-1].id.hex}
    return rows, found


def append_csv_lines(
    folder: AttemptFolder, cursor: dict[str, Any], file: str, header: Sequence[str], lines: Iterable[Sequence[Any]]
) -> None:
    """Add ``lines`` to a CSV file whose parts the cursor keeps (``parts``), with the header before the first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    if not cursor["parts"]:
        text.write("\ufeff")
        writer.writerow(header)
    writer.writerows([escape_cell(cell) for cell in line] for line in lines)
    cursor["parts"] = folder.append(cursor["parts"], file, text.getvalue().encode())
