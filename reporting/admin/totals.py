"""Sums of a settlement file or a payout, computed from its records."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from django.db.models import Count, QuerySet, Sum
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.backoffice.kit import charts
from reporting.models import Finding, MatchState, SettlementFile, SettlementRecord
from reporting.reconciliation import file_columns
from reporting.settlement.findings import FINDING_KIND_BY_NAME

ZERO_TOTAL: Final = Decimal("0.00")
_PLACES: Final[dict[str, int]] = {MatchState.MATCHED: 0, MatchState.MULTIPLE_MATCHES: 1, MatchState.NOT_MATCHED: 2}
_NONE: Final = 3
"""Index of fees, and of records marked as having no payment."""


def summarize_matching(file: SettlementFile, records: QuerySet[SettlementRecord]) -> dict[str, Any]:
    """A file's records by record type and matching status.

    ``now``: the four current counts, with links, marks and undoing included; together with the faulty lines they make
    all lines of the file. ``picture``: the same as a chart.
    """
    counted: dict[str, list[int]] = {}
    for row in (
        records.values("record_type", "state", "without_payment").annotate(n=Count("id")).order_by("record_type")
    ):
        place = _NONE if row["without_payment"] else _PLACES.get(row["state"], _NONE)
        counted.setdefault(row["record_type"], [0] * (_NONE + 1))[place] += row["n"]
    link = f"{reverse('admin:reporting_settlementrecord_changelist')}?list=lines&file={file.pk}"
    kinds = (
        ("good", _("matched")),
        ("gone", _("several candidates")),
        ("bad", _("not matched")),
        ("note", _("no payment to be looked for")),
    )
    columns = [(kind, figures, link) for kind, figures in counted.items()]
    matched, multiple, unmatched, none = (sum(each) for each in zip([0] * 4, *counted.values(), strict=True))
    return {
        "picture": charts.draw_stacked_bars(columns, kinds, title=_("Lines by what they are")) if columns else "",
        "now": {"matched": matched, "multiple": multiple, "unmatched": unmatched, "none": none},
    }


def sum_by_currency(records: QuerySet[SettlementRecord]) -> list[dict[str, Any]]:
    """Payout and fees by settlement currency, summed exactly from the records."""
    found: dict[str, dict[str, Any]] = {}
    rows = records.values("settlement_currency", "cashflow", "settlement_status").annotate(
        n=Count("id"), amount=Sum("settlement_amount"), fees=Sum("settlement_fee")
    )
    for row in rows.order_by("settlement_currency"):
        currency = row["settlement_currency"]
        none = {"currency": currency, "lines": 0, "pos": ZERO_TOTAL, "neg": ZERO_TOTAL, "fees": ZERO_TOTAL, "failed": 0}
        one = found.setdefault(currency, none)
        one["lines"] += row["n"]
        if row["settlement_status"] == "FAILED":
            one["failed"] += row["n"]
            continue
        one["pos" if row["cashflow"] == "POS" else "neg"] += row["amount"]
        one["fees"] += row["fees"] or ZERO_TOTAL
    for one in found.values():
        one["paid"], one["fees"] = one["pos"] - one["neg"], shorten_amount(one["fees"])
    return list(found.values())


def shorten_amount(amount: Decimal) -> Decimal:
    """An amount with two decimals, and with up to four only if they are not zero: fees have four."""
    return Decimal(file_columns.format_decimal(amount))


def count_findings(file: SettlementFile) -> list[dict[str, Any]]:
    """Findings of a file by kind."""
    rows = Finding.objects.filter(record__file=file, closed_at=None).values("kind").annotate(n=Count("id"))
    return [
        {"kind": row["kind"], "about": _(FINDING_KIND_BY_NAME[row["kind"]].about), "count": row["n"]}
        for row in rows.order_by("-n")
    ]
