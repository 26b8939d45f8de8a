"""What did not come: days without a file, and payments that no line has settled. Source: issue 8, the missing file."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway import clock
from gateway.admin.kit import Page
from reporting import missing
from reporting.models import ClearingInstitute

LOOKED_BACK: Final = timedelta(days=14)
LONGEST: Final = timedelta(days=31)
SHOWN_AT_MOST: Final = 200


def days_of(institute: ClearingInstitute) -> list[date]:
    """Of the last two weeks before today, the newest first; no day before the institute was set up."""
    today = clock.real().astimezone(institute.zone).date()
    first = max(today - LOOKED_BACK, institute.created_at.astimezone(institute.zone).date())
    return missing.files(institute, first, today - timedelta(days=1))[::-1] if first < today else []


def listed() -> list[dict[str, Any]]:
    """Every active institute with the days whose file is missed."""
    return [
        {"institute": one, "days": days_of(one),
         "address": reverse("admin:reporting_settlementfile_missing", args=[one.pk])}
        for one in ClearingInstitute.objects.filter(active=True)
    ]  # fmt: skip


def view(page: Page, request: HttpRequest, institute: ClearingInstitute) -> HttpResponse:
    """One institute's; the right to see files was asked for."""
    now = clock.real().astimezone(institute.zone).date()
    last = _day(request.GET.get("to", "")) or now - timedelta(days=institute.settles_within_days + 1)
    first = _day(request.GET.get("from", "")) or last - LOOKED_BACK
    first = max(first, last - LONGEST)
    found = missing.payments(institute, first, last) if first <= last else []
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for payment in found:
        sums[payment.currency] += payment.approved or payment.amount
    context = {
        **page.admin_site.each_context(request), "title": _("What did not come"), "opts": page.opts,
        "institute": institute, "days": days_of(institute), "first": first, "last": last, "many": len(found),
        "sums": sorted(sums.items()), "most": missing.MOST,
        "rows": [(one, reverse("admin:gateway_payment_change", args=[one.pk])) for one in found[:SHOWN_AT_MOST]],
        "cut": len(found) > SHOWN_AT_MOST, "shown": SHOWN_AT_MOST,
    }  # fmt: skip
    return TemplateResponse(request, "admin/books/missing.html", context)


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if 2000 <= day.year < 2100 else None
