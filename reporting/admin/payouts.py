"""What was paid out: settled and fees by day, how far lines are matched, and each payout with its lines.

Every picture is a sum of rows that the page leads to. Source: issue 8; design, J5, steps 3 and 10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from gateway import clock
from gateway.admin import paging, plots
from gateway.admin.kit import ReadOnly
from reporting.admin.exceptions import state_pill
from reporting.admin.figures import shortest, sums_by_currency
from reporting.models import Matching, Settlement, SettlementFile, SettlementRecord

DAYS: Final = 31
NEWEST_FIRST: Final = paging.Order(columns=(("date", date), ("id", UUID)), newest_first=True)
AS_IN_THE_FILE: Final = paging.Order(columns=(("line", int), ("id", UUID)))
YEARS: Final = (2000, 2100)
ZERO: Final = Decimal("0.00")
CURRENCIES_AT_MOST: Final = 6
"""Pictures of one page; further currencies stand in the table."""


@admin.register(Settlement)
class SettlementAdmin(ReadOnly):
    channel_path = None

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        day, last = _day(request.GET.get("day", "")), _day(request.GET.get("to", ""))
        own = self.get_queryset(request)
        newest = own.order_by("-date").values_list("date", flat=True).first()
        last = last or newest or clock.real().date()
        first = last - timedelta(days=DAYS - 1)
        within = own.filter(date__range=(first, last))
        figures = _figures(within)
        listed = own.filter(date=day) if day else within
        kept = [("day", f"{day:%Y-%m-%d}")] if day else []
        pages = paging.page(
            listed.select_related("institute", "merchant"), NEWEST_FIRST, request.GET,
            [*kept, ("to", f"{last:%Y-%m-%d}")],
        )  # fmt: skip
        context = {
            **self.admin_site.each_context(request), "title": _("Payouts"), "opts": self.opts, "day": day,
            "first": first, "last": last, "earlier": first - timedelta(days=1), "currencies": _by_currency(figures),
            "matching": _matching(figures, first), "rows": _with_sums(pages.rows), "pages": pages,
            "settled": newest is not None,
            "later": last + timedelta(days=DAYS) if newest and last < newest else None,
            **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/books/payouts.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        records = whole().filter(settlement=row)
        pages = paging.page(records, AS_IN_THE_FILE, request.GET)
        context = {
            **self.admin_site.each_context(request), "title": f"{_('Payout')} {row}", "opts": self.opts,
            "original": row, "row": row, "sums": sums_by_currency(records), "pages": pages,
            "lines": [
                {"row": one, "pill": state_pill(one),
                 "address": reverse("admin:reporting_settlementrecord_change", args=[one.pk])}
                for one in pages.rows
            ], **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/books/payout.html", context)


def whole() -> QuerySet[SettlementRecord]:
    """Lines of files that were read to their end: what reports and reconciliation files tell of."""
    return SettlementRecord.objects.filter(file__state=SettlementFile.State.DONE)


def _day(text: str) -> date | None:
    """A day of this century, of which there are days before and after; None for anything else."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if YEARS[0] <= day.year <= YEARS[1] else None


def _figures(payouts: QuerySet[Settlement]) -> list[dict[str, Any]]:
    """Sums of the lines of ``payouts`` by day and currency; what could not be settled is not among the amounts."""
    good = Q(settlement_status="SUCCESS")
    counted = {name: Count("id", filter=Q(state=state)) for name, state in (
        ("matched", Matching.MATCHED), ("multiple", Matching.MULTIPLE_MATCHES), ("unmatched", Matching.NOT_MATCHED),
    )}  # fmt: skip
    rows = whole().filter(settlement__in=payouts).values("settlement__date", "settlement_currency")
    found = rows.annotate(
        pos=Sum("settlement_amount", filter=good & Q(cashflow="POS")),
        neg=Sum("settlement_amount", filter=good & Q(cashflow="NEG")),
        fees=Sum("settlement_fee", filter=good), **counted,
    ).order_by("settlement__date", "settlement_currency")  # fmt: skip
    return [
        {"day": row["settlement__date"], "currency": row["settlement_currency"],
         "paid": (row["pos"] or ZERO) - (row["neg"] or ZERO), "fees": shortest(row["fees"] or ZERO),
         **{name: row[name] for name in counted}}
        for row in found
    ]  # fmt: skip


def _link(day: date) -> str:
    return f"?day={day:%Y-%m-%d}&to={day:%Y-%m-%d}"


def _by_currency(figures: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each currency its sums and a picture of every day, paid out and fees; the most lines first."""
    of: dict[str, list[dict[str, Any]]] = {}
    for row in figures:
        of.setdefault(row["currency"], []).append(row)
    found = []
    for number, (currency, rows) in enumerate(sorted(of.items(), key=lambda each: -len(each[1]))):
        # What the institute takes back has its own colour below the line, and its own column in the table.
        parts = [("good", _("paid out"), lambda row: max(row["paid"], ZERO)),
                 ("note", _("fees"), lambda row: row["fees"]),
                 ("bad", _("taken back"), lambda row: min(row["paid"], ZERO))]  # fmt: skip
        parts = parts if any(row["paid"] < 0 for row in rows) else parts[:2]
        kinds = [(kind, name) for kind, name, _of in parts]
        shown = [(f"{row['day']:%d.%m.}", [of(row) for _kind, _name, of in parts], _link(row["day"])) for row in rows]
        title = _("Paid out and fees by day in %s") % currency
        found.append({
            "currency": currency, "paid": sum(row["paid"] for row in rows),
            "fees": shortest(sum((row["fees"] for row in rows), ZERO)),
            "picture": plots.stacked(shown, kinds, title=title) if number < CURRENCIES_AT_MOST else "",
        })  # fmt: skip
    return found


def _matching(figures: Iterable[dict[str, Any]], first: date) -> dict[str, Any]:
    """How many lines have their payment, in all and by day."""
    days: dict[date, Counter[str]] = {}
    for row in figures:
        days.setdefault(row["day"], Counter()).update(
            {name: row[name] for name in ("matched", "multiple", "unmatched")}
        )
    total = sum(days.values(), Counter[str]())
    shown = [(f"{day:%d.%m.}", (one["matched"], one["multiple"], one["unmatched"]), _link(day))
             for day, one in sorted(days.items())]  # fmt: skip
    kinds = (("good", _("matched")), ("note", _("several candidates")), ("bad", _("not matched")))
    picture: SafeString | str = plots.stacked(shown, kinds, title=_("Lines by day")) if shown else ""
    return {"total": {name: total[name] for name in ("matched", "multiple", "unmatched")}, "picture": picture}


def _with_sums(rows: list[Settlement]) -> list[dict[str, Any]]:
    """Payouts with the sums of their lines, of one statement."""
    good = Q(settlement_status="SUCCESS")
    sums = {
        each["settlement"]: each
        for each in whole().filter(settlement__in=rows).values("settlement").annotate(
            lines=Count("id"), pos=Sum("settlement_amount", filter=good & Q(cashflow="POS")),
            neg=Sum("settlement_amount", filter=good & Q(cashflow="NEG")), fees=Sum("settlement_fee", filter=good),
            open=Count("id", filter=Q(state__in=("NOT_MATCHED", "MULTIPLE_MATCHES"), marked=False)),
        )
    }  # fmt: skip
    found = []
    for row in rows:
        one = sums.get(row.pk, {})
        paid = (one.get("pos") or ZERO) - (one.get("neg") or ZERO)
        found.append({"row": row, "paid": paid, "fees": shortest(one.get("fees") or ZERO), "lines": one.get("lines", 0),
                      "open": one.get("open", 0),
                      "address": reverse("admin:reporting_settlement_change", args=[row.pk])})  # fmt: skip
    return found
