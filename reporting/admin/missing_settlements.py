"""Back-office page of one institute's missing settlements: days without a file, and overdue payments."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.backoffice.kit.base import BackofficePage
from gateway.core import clock
from reporting.models import ClearingInstitute
from reporting.settlement import missing_settlements

MAX_PERIOD: Final = timedelta(days=31)
MAX_SHOWN_PAYMENTS: Final = 200


def list_page_days(institute: ClearingInstitute) -> list[date]:
    """The days of the two weeks before today, newest first; none before the institute was set up."""
    today = clock.real_now().astimezone(institute.zone).date()
    first = max(today - missing_settlements.MISSING_LOOKBACK, institute.created_at.astimezone(institute.zone).date())
    return (
        missing_settlements.list_days_without_file(institute, first, today - timedelta(days=1))[::-1]
        if first < today
        else []
    )


def list_institutes_with_gaps() -> list[dict[str, Any]]:
    """Every active institute with the days whose file is missing."""
    return [
        {
            "institute": one,
            "days": list_page_days(one),
            "address": reverse("admin:reporting_settlementfile_missing", args=[one.pk]),
        }
        for one in ClearingInstitute.objects.filter(active=True)
    ]


def missing_settlements_view(page: BackofficePage, request: HttpRequest, institute: ClearingInstitute) -> HttpResponse:
    """The page of one institute. The caller has checked the right to see files."""
    now = clock.real_now().astimezone(institute.zone).date()
    last = read_day(request.GET.get("to", "")) or now - timedelta(days=institute.settles_within_days + 1)
    first = read_day(request.GET.get("from", "")) or last - missing_settlements.MISSING_LOOKBACK
    first = max(first, last - MAX_PERIOD)
    found = missing_settlements.list_unsettled_amounts(institute, first, last) if first <= last else []
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for one in found:
        sums[one.currency] += one.amount
    shown = missing_settlements.load_payments([one.payment for one in found[:MAX_SHOWN_PAYMENTS]])
    context = {
        **page.admin_site.each_context(request),
        "title": _("What did not come"),
        "opts": page.opts,
        "institute": institute,
        "days": list_page_days(institute),
        "first": first,
        "last": last,
        "many": len(found),
        "sums": sorted(sums.items()),
        "most": missing_settlements.MAX_MISSING_PAYMENTS,
        "rows": [
            (payment, one.amount, reverse("admin:gateway_payment_change", args=[payment.pk]))
            for payment, one in zip(shown, found, strict=False)
        ],
        "cut": len(found) > MAX_SHOWN_PAYMENTS,
        "shown": MAX_SHOWN_PAYMENTS,
    }
    return TemplateResponse(request, "admin/books/missing.html", context)


def read_day(text: str) -> date | None:
    """The day of an address, as 2026-05-14; None for what is none, in another form or of another age."""
    try:
        day = date.fromisoformat(text) if len(text) == len("2026-05-14") else date.min
    except ValueError:
        return None
    return day if 2000 <= day.year < 2100 else None
