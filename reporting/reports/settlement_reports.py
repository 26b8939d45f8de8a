"""Queries behind the reports: settlements with their sums, and the records of one. Read only.

A sum is always computed from the records in the statement that answers; sums are stored nowhere. Source: Part B,
Reporting parameters; ruling D7; decision 0026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connections

from gateway.catalogue.parse import InvalidParametersError, ParameterError
from gateway.db.standby import choose_read_alias
from gateway.db.statement import read_sql
from gateway.models import AcquirerAccount, Channel, Merchant
from reporting.models import Settlement
from reporting.reconciliation import file_columns
from reporting.settlement.record_queries import (
    END_OF_TIME,
    DisplayNames,
    SettlementLine,
    query_lines,
)

REPORT_PAGE_SIZE: Final = 100
"""Records, or settlements, of one page."""
MAX_REPORT_RECORDS: Final = 10_000
"""Records of one answer without pages."""
FETCHED_REPORT_RECORDS: Final = 500
"""Records of an answer that are in memory at a time."""
MAX_REPORT_SETTLEMENTS: Final = 1_000
"""Settlements of one answer without pages."""
MAX_PERIOD_SETTLEMENTS: Final = 20_000
"""Settlements that a report of more than MAX_UNCOUNTED_DAYS looks through."""
MAX_UNCOUNTED_DAYS: Final = 366
"""Days of a report whose settlements are not counted beforehand."""
ZERO_SUM: Final = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportScope:
    """Whose settlements: all of the merchant's or, with ``held_at``, only those of these accounts at institutes (a
    channel's)."""

    merchant: Merchant
    held_at: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuery:
    """Filter, order and page of a report.

    ``start`` and ``end``: settlement dates, both included. ``order``: of a settlement's records by the time of the
    order, ASC or DESC; '' is the order of the file. ``page``: 1 and up; None: everything at once.
    """

    start: date | None = None
    end: date | None = None
    currency: str = ""
    record_type: str = ""
    order: str = ""
    page: int | None = None


@dataclass(slots=True, kw_only=True)
class SettlementPart:
    """Records of one kind within a settlement: their number and sums."""

    record_type: str
    transaction_type: str
    cashflow: str
    status: str
    matching: str
    count: int
    amount: Decimal
    fee: Decimal


@dataclass(slots=True, kw_only=True)
class SettlementSummary:
    """One settlement with its sums. ``account``: the id of the merchant account here, or None."""

    id: UUID
    reference: str
    date: date
    currency: str
    institute: str
    institute_merchant_id: str
    account: UUID | None
    parts: list[SettlementPart]


def resolve_report_scope(merchant: Merchant, channel: Channel | None) -> ReportScope:
    """The scope of an entity: a channel sees what is settled for its accounts (for the simulator, which has no
    accounts, for the channel itself)."""
    if channel is None:
        return ReportScope(merchant=merchant, held_at=None)
    accounts = AcquirerAccount.objects.filter(channel=channel).values_list("acquirer_merchant_id", flat=True)
    return ReportScope(merchant=merchant, held_at=(channel.entity_id, *accounts))


# --- sums ---------------------------------------------------------------------------------------------------------

# A settlement of an unknown account belongs to the merchants whose payments are in it.
_CHOSEN: Final = """
    SELECT s.* FROM reporting_settlement s
    WHERE s.merchant_id = %(merchant)s AND s.date BETWEEN %(start)s AND %(end)s
    UNION ALL
    SELECT s.* FROM reporting_settlement s
    WHERE s.merchant_id IS NULL AND s.date BETWEEN %(start)s AND %(end)s
        AND EXISTS (SELECT 1 FROM reporting_settlementrecord r WHERE r.settlement_id = s.id
            AND r.merchant_id = %(merchant)s)
"""
_ONE: Final = "SELECT s.* FROM reporting_settlement s WHERE s.id = %(id)s"
_SUMMARY: Final = """
WITH chosen AS (
    SELECT * FROM ({settlements}) s WHERE {conditions} ORDER BY s.date, s.id
),
page AS (SELECT * FROM chosen ORDER BY date, id OFFSET %(offset)s LIMIT %(limit)s)
SELECT (SELECT count(*) FROM chosen), s.id, s.reference, s.date, s.currency, i.name, s.institute_merchant_id, s.account,
    r.record_type, r.transaction_type, r.cashflow, r.settlement_status, r.state, count(*), sum(r.settlement_amount),
    coalesce(sum(r.settlement_fee), 0)
FROM page s
JOIN reporting_clearinginstitute i ON i.id = s.institute_id
JOIN reporting_settlementrecord r ON r.settlement_id = s.id AND r.merchant_id = %(merchant)s
JOIN reporting_settlementfile f ON f.id = r.file_id AND f.state = 'DONE'
GROUP BY s.id, s.reference, s.date, s.currency, i.name, s.institute_merchant_id, s.account, r.record_type,
    r.transaction_type, r.cashflow, r.settlement_status, r.state
ORDER BY s.date, s.id, r.record_type, r.transaction_type, r.cashflow, r.settlement_status, r.state
"""


def list_settlement_summaries(
    scope: ReportScope, wanted: ReportQuery, settlement: UUID | None = None
) -> tuple[list[SettlementSummary], int]:
    """The settlements of a period, or one by its id, and how many there are on all pages.

    Raises InvalidParametersError for a long period of more than MAX_PERIOD_SETTLEMENTS, and for more than
    MAX_REPORT_SETTLEMENTS without pages.
    """
    if settlement is None:
        _check_period(scope, wanted)
    conditions = [
        *(["s.institute_merchant_id = ANY(%(held_at)s)"] if scope.held_at is not None else []),
        *(["s.currency = %(currency)s"] if wanted.currency else []),
        *(["(s.merchant_id = %(merchant)s OR s.merchant_id IS NULL)"] if settlement else []),
        *(["s.date >= %(start)s"] if wanted.start else []),
        *(["s.date <= %(end)s"] if wanted.end else []),
        _HAS_TYPE if wanted.record_type else f"{_HAS_ANY})",
    ]
    values = _build_values(scope, wanted) | {
        "id": settlement,
        "limit": MAX_REPORT_SETTLEMENTS + 1 if wanted.page is None else REPORT_PAGE_SIZE,
        "offset": 0 if wanted.page is None else (wanted.page - 1) * REPORT_PAGE_SIZE,
    }
    text = _SUMMARY.format(settlements=_ONE if settlement else _CHOSEN, conditions=" AND ".join(conditions) or "true")
    with connections[choose_read_alias()].cursor() as cursor:
        cursor.execute(text, values)
        rows = cursor.fetchall()
        total = rows[0][0] if rows else 0
        if not rows and values["offset"]:  # a page behind the last one still answers the total
            cursor.execute(text, {**values, "offset": 0})
            total = (cursor.fetchone() or (0,))[0]
    check_settlement_count(total, wanted, most=MAX_REPORT_SETTLEMENTS)
    found: dict[UUID, SettlementSummary] = {}
    for row in rows:
        one = found.get(row[1])
        if one is None:
            one = found[row[1]] = SettlementSummary(
                id=row[1],
                reference=row[2],
                date=row[3],
                currency=row[4],
                institute=row[5],
                institute_merchant_id=row[6],
                account=row[7],
                parts=[],
            )
        names = ("record_type", "transaction_type", "cashflow", "status", "matching", "count", "amount", "fee")
        one.parts.append(SettlementPart(**dict(zip(names, row[8:], strict=True))))
    return list(found.values()), total


def check_settlement_count(total: int, wanted: ReportQuery, *, most: int) -> None:
    """Raise InvalidParametersError for more settlements than one answer without pages has."""
    if wanted.page is None and total > most:
        message = f"ends a period with more than {most:,} settlements: ask for pages, or a shorter one"
        raise InvalidParametersError([ParameterError(name="date.to", message=message)])


def _check_period(scope: ReportScope, wanted: ReportQuery) -> None:
    """Raise InvalidParametersError for a long period with more settlements than a report looks through. They are
    counted by their index alone, and no further than the limit."""
    if wanted.start is None or wanted.end is None or (wanted.end - wanted.start).days < MAX_UNCOUNTED_DAYS:
        return
    dated = Settlement.objects.using(choose_read_alias()).filter(date__range=(wanted.start, wanted.end))
    own = dated.filter(merchant=scope.merchant)[: MAX_PERIOD_SETTLEMENTS + 1].count()
    shared = dated.filter(merchant=None)[: MAX_PERIOD_SETTLEMENTS + 1].count()
    if own + shared > MAX_PERIOD_SETTLEMENTS:
        message = (
            f"ends a period with more than {MAX_PERIOD_SETTLEMENTS:,} settlements to look through: choose a shorter one"
        )
        raise InvalidParametersError([ParameterError(name="date.to", value=wanted.end.isoformat(), message=message)])


# A file that is being read, or failed in the middle, counts only once it is read to its end, as in the CSV files.
_HAS_ANY: Final = (
    "EXISTS (SELECT 1 FROM reporting_settlementrecord r JOIN reporting_settlementfile f ON f.id = r.file_id"
    " AND f.state = 'DONE' WHERE r.settlement_id = s.id AND r.merchant_id = %(merchant)s"
)
_HAS_TYPE: Final = f"{_HAS_ANY} AND r.record_type = %(record_type)s)"


def _build_values(scope: ReportScope, wanted: ReportQuery) -> dict[str, Any]:
    return {
        "merchant": scope.merchant.pk,
        "start": wanted.start,
        "end": wanted.end,
        "currency": wanted.currency,
        "held_at": list(scope.held_at or ()),
        "record_type": wanted.record_type,
    }


def apply_cashflow_sign(cashflow: str, amount: Decimal) -> Decimal:
    """``amount`` as signed by its cash flow: POS positive, NEG negative."""
    return amount if cashflow == "POS" else -amount


def render_settlement(summary: SettlementSummary, names: DisplayNames) -> dict[str, Any]:
    """A settlement in the report. ``amount``: what was paid out, of the records that succeeded, POS less NEG; each sum
    of a part is of its own records, unsigned."""
    paid = [part for part in summary.parts if part.status == "SUCCESS"]
    account = {}
    if summary.account is not None:
        account = {"id": summary.account.hex, "name": names.accounts.get(summary.account.hex, "")}
    body: dict[str, Any] = {
        "id": summary.id.hex,
        "reference": summary.reference,
        "date": summary.date.isoformat(),
        "currency": summary.currency,
        "amount": file_columns.format_decimal(
            sum((apply_cashflow_sign(part.cashflow, part.amount) for part in paid), ZERO_SUM)
        ),
        "fee": file_columns.format_decimal(sum((part.fee for part in paid), ZERO_SUM)),
        "count": sum(part.count for part in summary.parts),
        "clearingInstitute": {"name": summary.institute, "merchantId": summary.institute_merchant_id},
        "merchantAccount": {name: value for name, value in account.items() if value},
        "records": _merge_kinds(summary.parts),
        "matchedTransactions": _counted(summary.parts),
    }
    return {name: value for name, value in body.items() if value not in ("", {})}


def _merge_kinds(parts: Sequence[SettlementPart]) -> list[dict[str, Any]]:
    """Merge parts that differ only in their matching status."""
    kinds: dict[tuple[str, ...], list[SettlementPart]] = {}
    for part in parts:
        kinds.setdefault((part.record_type, part.transaction_type, part.cashflow, part.status), []).append(part)
    return [
        {
            "recordType": record_type,
            "transactionType": transaction_type,
            "settlement": {
                "cashflow": cashflow,
                "status": status,
                "amount": file_columns.format_decimal(sum((part.amount for part in same), ZERO_SUM)),
                "fee": file_columns.format_decimal(sum((part.fee for part in same), ZERO_SUM)),
            },
            "count": sum(part.count for part in same),
        }
        for (record_type, transaction_type, cashflow, status), same in kinds.items()
    ]


def _counted(parts: Sequence[SettlementPart]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        if part.matching:
            found[part.matching] = found.get(part.matching, 0) + part.count
    return found


# --- records ------------------------------------------------------------------------------------------------------

_RECORDS: Final = (
    "r.settlement_id = %(id)s AND r.merchant_id = %(merchant)s"
    " AND r.file_id IN (SELECT f.id FROM reporting_settlementfile f WHERE f.state = 'DONE')"
)
_RECORD_IDS: Final = (
    f"SELECT r.id FROM reporting_settlementrecord r WHERE {_RECORDS}{{kind}} ORDER BY {{order}}"  # noqa: S608 - bound values
    " OFFSET %(offset)s LIMIT %(limit)s"
)
_ORDERS: Final = {
    "": "r.line, r.id", "ASC": "r.presented_at, r.line, r.id", "DESC": "r.presented_at DESC, r.line, r.id",
}  # fmt: skip


def stream_settlement_lines(
    scope: ReportScope, summary: SettlementSummary, wanted: ReportQuery, names: DisplayNames
) -> tuple[Iterator[SettlementLine], int]:
    """A settlement's records as they stand now, read FETCHED_REPORT_RECORDS at a time, and how many there are on all
    pages.

    Raises InvalidParametersError for more than MAX_REPORT_RECORDS without pages.
    """
    parts = [part for part in summary.parts if not wanted.record_type or part.record_type == wanted.record_type]
    total = sum(part.count for part in parts)
    if wanted.page is None and total > MAX_REPORT_RECORDS:
        message = f"has {total:,} records, more than {MAX_REPORT_RECORDS:,} at once: ask /reports/v2/… for its pages"
        raise InvalidParametersError([ParameterError(name="id", value=summary.id.hex, message=message)])
    values = _build_values(scope, wanted) | {
        "id": summary.id,
        "limit": MAX_REPORT_RECORDS if wanted.page is None else REPORT_PAGE_SIZE,
        "offset": 0 if wanted.page is None else (wanted.page - 1) * REPORT_PAGE_SIZE,
    }
    return _stream_lines(wanted, values, names), total


def _stream_lines(wanted: ReportQuery, values: Mapping[str, Any], names: DisplayNames) -> Iterator[SettlementLine]:
    """Read the ids in their order by one statement, then the records by id: none is listed twice or left out."""
    order = _ORDERS[wanted.order]
    kind = " AND r.record_type = %(record_type)s" if wanted.record_type else ""
    text = _RECORD_IDS.format(kind=kind, order=order)
    ids = [ident for (ident,) in read_sql(text, values)]
    for start in range(0, len(ids), FETCHED_REPORT_RECORDS):
        fetched = {"records": ids[start : start + FETCHED_REPORT_RECORDS]}
        yield from query_lines("r.id = ANY(%(records)s)", order, fetched, as_of=END_OF_TIME, names=names)
