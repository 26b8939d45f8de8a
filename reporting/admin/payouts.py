"""Back-office pages of payouts: paid out and fees by day, matching status, and each payout with its records.

Every chart is a sum of rows that the page links to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from gateway.backoffice.kit import charts, keyset
from gateway.backoffice.kit.base import ReadOnlyPage
from gateway.core import clock
from reporting.admin.exception_queue import FILE_LINE_ORDER, match_state_pill, narrow_lines, read_line_filters
from reporting.admin.totals import ZERO_TOTAL, shorten_amount, sum_by_currency
from reporting.models import MatchState, Settlement, SettlementFile, SettlementRecord

PAYOUT_CHART_DAYS: Final = 31
PAYOUT_ORDER: Final = keyset.KeysetOrder(columns=(("date", date), ("id", UUID)), newest_first=True)
ACCEPTED_YEARS: Final = (2000, 2100)
MAX_CHARTED_CURRENCIES: Final = 6
"""Charts on one page; further currencies are in the table only."""


@admin.register(Settlement)
class SettlementAdmin(ReadOnlyPage):
    """The list of payouts with its charts, and the page of one payout."""

    lists_from_standby = True

    has_views = False
    channel_path = None

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        day, last = _parse_day(request.GET.get("day", "")), _parse_day(request.GET.get("to", ""))
        own = self.get_queryset(request)
        newest = own.order_by("-date").values_list("date", flat=True).first()
        last = last or newest or clock.real_now().date()
        first = last - timedelta(days=PAYOUT_CHART_DAYS - 1)
        within = own.filter(date__range=(first, last))
        figures = _sum_by_day(within)
        between = {"from": f"{first:%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}
        listed = own.filter(date=day) if day else within
        kept = [("day", f"{day:%Y-%m-%d}")] if day else []
        pages = keyset.read_keyset_page(
            listed.select_related("institute", "merchant"),
            PAYOUT_ORDER,
            request.GET,
            [*kept, ("to", f"{last:%Y-%m-%d}")],
        )
        context = {
            **self.admin_site.each_context(request),
            "title": _("Payouts"),
            "opts": self.opts,
            "day": day,
            "first": first,
            "last": last,
            "earlier": first - timedelta(days=1),
            "currencies": _chart_currencies(figures),
            "matching": _summarize_matching(figures, first),
            "lines": f"{reverse('admin:reporting_settlementrecord_changelist')}?{urlencode(between)}",
            "rows": _add_sums(pages.rows),
            "pages": pages,
            "settled": newest is not None,
            "later": last + timedelta(days=PAYOUT_CHART_DAYS) if newest and last < newest else None,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/payouts.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row: Settlement = self.find_viewed_row(request, object_id)
        records = list_completed_records().filter(settlement=row)
        kept = read_line_filters(request.GET)
        pages = keyset.read_keyset_page(
            narrow_lines(records, kept), FILE_LINE_ORDER, request.GET, list(kept.items()), at="#lines"
        )
        context = {
            **self.admin_site.each_context(request),
            "title": f"{_('Payout')} {row}",
            "opts": self.opts,
            "original": row,
            "row": row,
            "sums": sum_by_currency(records),
            "pages": pages,
            "narrowed": bool(kept),
            "lines": [
                {
                    "row": one,
                    "pill": match_state_pill(one),
                    "address": reverse("admin:reporting_settlementrecord_change", args=[one.pk]),
                }
                for one in pages.rows
            ],
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/payout.html", context)


def list_completed_records() -> QuerySet[SettlementRecord]:
    """Records of files that were read to their end: the same that reports and reconciliation files show."""
    return SettlementRecord.objects.filter(file__state=SettlementFile.State.DONE)


def _parse_day(text: str) -> date | None:
    """The date in ``text``, within ACCEPTED_YEARS; None for anything else."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if ACCEPTED_YEARS[0] <= day.year <= ACCEPTED_YEARS[1] else None


def _sum_by_day(payouts: QuerySet[Settlement]) -> list[dict[str, Any]]:
    """Sums of the records of ``payouts`` by day and currency. Amounts leave out records that failed to settle."""
    good = Q(settlement_status="SUCCESS")
    counted = {
        name: Count("id", filter=Q(state=state, without_payment=False))
        for name, state in (
            ("matched", MatchState.MATCHED),
            ("multiple", MatchState.MULTIPLE_MATCHES),
            ("unmatched", MatchState.NOT_MATCHED),
        )
    }
    rows = list_completed_records().filter(settlement__in=payouts).values("settlement__date", "settlement_currency")
    found = rows.annotate(
        pos=Sum("settlement_amount", filter=good & Q(cashflow="POS")),
        neg=Sum("settlement_amount", filter=good & Q(cashflow="NEG")),
        fees=Sum("settlement_fee", filter=good),
        **counted,
    ).order_by("settlement__date", "settlement_currency")
    return [
        {
            "day": row["settlement__date"],
            "currency": row["settlement_currency"],
            "paid": (row["pos"] or ZERO_TOTAL) - (row["neg"] or ZERO_TOTAL),
            "fees": shorten_amount(row["fees"] or ZERO_TOTAL),
            **{name: row[name] for name in counted},  # type: ignore[literal-required]  # the names that counted annotates
        }
        for row in found
    ]


def _day_link(day: date) -> str:
    return f"?day={day:%Y-%m-%d}&to={day:%Y-%m-%d}"


def _chart_currencies(figures: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sums of each currency, and a chart by day of payouts and fees; the currency with the most rows first."""
    of: dict[str, list[dict[str, Any]]] = {}
    for row in figures:
        of.setdefault(row["currency"], []).append(row)
    found = []
    for number, (currency, rows) in enumerate(sorted(of.items(), key=lambda each: -len(each[1]))):
        # A day on which the institute collected more than it paid is drawn below the axis in its own colour.
        parts: list[tuple[str, str, Callable[[dict[str, Any]], Decimal]]] = [
            ("good", _("paid out"), lambda row: max(row["paid"], ZERO_TOTAL)),
            ("note", _("fees"), lambda row: row["fees"]),
            ("bad", _("taken back"), lambda row: min(row["paid"], ZERO_TOTAL)),
        ]
        parts = parts if any(row["paid"] < 0 for row in rows) else parts[:2]
        kinds = [(kind, name) for kind, name, _of in parts]
        shown = [
            (f"{row['day']:%m-%d}", [of(row) for _kind, _name, of in parts], _day_link(row["day"])) for row in rows
        ]
        title = _("Paid out and fees by day in %s") % currency
        found.append(
            {
                "currency": currency,
                "paid": sum(row["paid"] for row in rows),
                "fees": shorten_amount(sum((row["fees"] for row in rows), ZERO_TOTAL)),
                "picture": charts.draw_stacked_bars(shown, kinds, title=title)
                if number < MAX_CHARTED_CURRENCIES
                else "",
            }
        )
    return found


def _summarize_matching(figures: Iterable[dict[str, Any]], _first: date) -> dict[str, Any]:
    """Records by matching status, in all and by day."""
    days: dict[date, Counter[str]] = {}
    for row in figures:
        days.setdefault(row["day"], Counter()).update(
            {name: row[name] for name in ("matched", "multiple", "unmatched")}
        )
    total = sum(days.values(), Counter[str]())
    shown = [
        (f"{day:%m-%d}", (one["matched"], one["multiple"], one["unmatched"]), _day_link(day))
        for day, one in sorted(days.items())
    ]
    kinds = (("good", _("matched")), ("note", _("several candidates")), ("bad", _("not matched")))
    picture: SafeString | str = charts.draw_stacked_bars(shown, kinds, title=_("Lines by day")) if shown else ""
    return {"total": {name: total[name] for name in ("matched", "multiple", "unmatched")}, "picture": picture}


def _add_sums(rows: list[Settlement]) -> list[dict[str, Any]]:
    """Payouts with the sums of their records, in one statement."""
    good = Q(settlement_status="SUCCESS")
    sums = {
        each["settlement"]: each
        for each in list_completed_records()
        .filter(settlement__in=rows)
        .values("settlement")
        .annotate(
            lines=Count("id"),
            pos=Sum("settlement_amount", filter=good & Q(cashflow="POS")),
            neg=Sum("settlement_amount", filter=good & Q(cashflow="NEG")),
            fees=Sum("settlement_fee", filter=good),
            open=Count("id", filter=Q(state__in=("NOT_MATCHED", "MULTIPLE_MATCHES"), without_payment=False)),
        )
    }
    found = []
    for row in rows:
        one: Mapping[str, Any] = sums.get(row.pk, {})
        paid = (one.get("pos") or ZERO_TOTAL) - (one.get("neg") or ZERO_TOTAL)
        found.append(
            {
                "row": row,
                "paid": paid,
                "fees": shorten_amount(one.get("fees") or ZERO_TOTAL),
                "lines": one.get("lines", 0),
                "open": one.get("open", 0),
                "address": reverse("admin:reporting_settlement_change", args=[row.pk]),
            }
        )
    return found
