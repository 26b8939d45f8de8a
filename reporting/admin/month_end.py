"""Back-office pages of month end: each merchant's month, the list behind each figure of it, and closing it.

The figures are those of reporting.month_end.statement, the steps those of reporting.month_end.closing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Max
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.access.permissions import RowOwner
from gateway.backoffice.follow_ups.second_person import (
    MAX_SHOWN_OF_A_KIND,
    WaitingRequest,
    register_request_source,
)
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.formatting import format_labelled
from gateway.backoffice.kit.work_start import start_page_work
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.sign_in import session
from gateway.core import clock, identifiers
from gateway.models import Merchant, Payment
from gateway.payments.payment_archive import list_archived_payments
from reporting.admin.exception_queue import match_state_pill
from reporting.admin.settlement_files import has_right_everywhere
from reporting.models import ClearingInstitute, MonthClosing, Settlement, SettlementRecord
from reporting.month_end import bulk_closing, closing, package
from reporting.month_end.closing import Closer, ClosingRefusedError
from reporting.month_end.models import MAX_CLOSING_NOTE_CHARS
from reporting.month_end.statement import (
    LINE_PARTS,
    MISSING_PART,
    MISSING_TITLE,
    CurrencyFigures,
    MonthScope,
    MonthStatement,
    build_merchant_statements,
    build_statement,
    digest_figures,
    last_of_month,
    list_part,
)
from reporting.settlement.missing_settlements import list_days_without_file

ALL_MERCHANTS: Final = "all"
"""In an address: every merchant that the user reaches."""
ACCEPTED_MONTH_YEARS: Final = (2000, 2100)
MAX_LISTED_MONTHS: Final = 500
"""Merchants on the list of one month."""
PART_PAGE_ROWS: Final = 100
CLOSING_PILLS: Final = {
    MonthClosing.State.PREPARED: "wait", MonthClosing.State.SIGNED: "good", MonthClosing.State.RETURNED: "bad",
    MonthClosing.State.WITHDRAWN: "plain", MonthClosing.State.REOPENED: "wait",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMonth:
    """The month that a page shows: of one merchant, or (``merchant`` None) of all that the user reaches."""

    scope: MonthScope
    merchant: Merchant | None

    @property
    def merchant_key(self) -> str:
        return self.merchant.pk.hex if self.merchant is not None else ALL_MERCHANTS

    def address(self, name: str = "month", month: date | None = None) -> str:
        """The address of one of this month's pages, or of another month's."""
        return reverse(
            f"admin:reporting_monthclosing_{name}", args=[self.merchant_key, f"{month or self.scope.month:%Y-%m}"]
        )


@admin.register(MonthClosing)
class MonthClosingAdmin(ReadOnlyPage):
    """The months of all merchants, the page of one month, and the lists behind its figures."""

    has_views = False
    channel_path = None

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "reporting_monthclosing_", self.admin_site.admin_view
        own = [
            path("month/<str:whose>/<str:month>/", wrap(self.month_view), name=f"{name}month"),
            path("month/<str:whose>/<str:month>/lines/", wrap(self.part_view), name=f"{name}lines"),
            path("month/<str:whose>/<str:month>/do/", wrap(self.do_view), name=f"{name}do"),
            path("month/<str:whose>/<str:month>/package/", wrap(self.package_view), name=f"{name}package"),
        ]
        inherited: list[URLPattern] = super().get_urls()
        return own + inherited

    # --- the list of merchants --------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        month = _parse_month(request.GET.get("month", "")) or self._latest_month(request)
        shown = ShownMonth(scope=self._whole_scope(request, month), merchant=None)
        statements = build_merchant_statements(shown.scope)
        closings = {row.merchant_id: row for row in self._closings(request, month, closing.ACTIVE_CLOSING_STATES)}
        merchants = self._merchants(request).filter(pk__in=[*filter(None, statements), *closings]).order_by("name")
        rows = [
            _render_merchant(one, statements.get(one.pk), closings.get(one.pk), month)
            for one in merchants[:MAX_LISTED_MONTHS]
        ]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Month end"),
            "opts": self.opts,
            "month": month,
            "earlier": month - timedelta(days=1),
            "later": last_of_month(month) + timedelta(days=1),
            "rows": rows,
            "stray": statements.get(None),
            "all": shown.address(),
            "most": MAX_LISTED_MONTHS if len(rows) == MAX_LISTED_MONTHS else 0,
            "left": sum(not row["closed"] for row in rows),
            "may_prepare": self.may(request, "add"),
            "may_sign": self.may(request, "change"),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/months.html", context)

    def _merchants(self, request: HttpRequest) -> Any:
        return permissions.list_permitted_merchants(request.user, self.right("view"))

    def _closings(self, request: HttpRequest, month: date, states: Any) -> Any:
        rows = self.get_queryset(request).filter(month=month, state__in=states)
        return rows.select_related("merchant")

    def _whole_scope(self, request: HttpRequest, month: date) -> MonthScope:
        scope = self.scope(request, "view")
        return MonthScope(month=month, merchants=None if scope.everything else scope.merchants)

    def _latest_month(self, request: HttpRequest) -> date:
        """The last month that is over, by the clock of the user's merchant that is furthest ahead."""
        ahead = self._merchants(request).aggregate(ahead=Max("clock_offset"))["ahead"] or timedelta()
        return _month_before((clock.real_now() + ahead).date())

    # --- one month --------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row: MonthClosing = self.find_viewed_row(request, object_id)
        return self.month_view(request, row.merchant_id.hex, f"{row.month:%Y-%m}")

    def month_view(self, request: HttpRequest, whose: str, month: str) -> HttpResponse:
        shown = self._find_month(request, whose, month)
        statement = build_statement(shown.scope)
        context = {
            **self.admin_site.each_context(request),
            "title": f"{_('Month end')} {shown.scope.month:%Y-%m}",
            "opts": self.opts,
            "month": shown.scope.month,
            "earlier": shown.address(month=_month_before(shown.scope.month)),
            "later": shown.address(month=last_of_month(shown.scope.month) + timedelta(days=1)),
            "merchant": shown.merchant,
            "shown": shown,
            "balances": [_render_figures(shown, one) for one in statement.balances],
            "payouts": [_render_figures(shown, one) for one in statement.payouts],
            "balanced": statement.is_balanced,
            "institutes": self._list_institutes(request, shown.scope),
            "may_export": permissions.has_permission(request.user, package.EXPORT_BOOKS_PERMISSION),
            "note_max": MAX_CLOSING_NOTE_CHARS,
            **self._render_steps(request, shown, statement),
        }
        return TemplateResponse(request, "admin/books/month.html", context)

    def _render_steps(self, request: HttpRequest, shown: ShownMonth, statement: MonthStatement) -> dict[str, Any]:
        """The state of one merchant's month, and the steps that the user may take."""
        if shown.merchant is None:
            return {}
        rows = list(MonthClosing.objects.filter(merchant=shown.merchant, month=shown.scope.month).order_by("-pk"))
        active = next((row for row in rows if row.state in closing.ACTIVE_CLOSING_STATES), None)
        why = closing.explain_not_closable(shown.merchant, shown.scope.month, statement) if active is None else ""
        place = RowOwner(merchant=shown.merchant.pk)
        may_change = permissions.has_permission(request.user, self.right("change"), place)
        prepared = active is not None and active.state == MonthClosing.State.PREPARED
        own = active is not None and active.prepared_by_id == request.user.pk
        user = int(request.user.pk or 0)
        return {
            "active": active,
            "active_pill": render_closing_pill(active),
            "history": [(row, render_closing_pill(row)) for row in rows],
            "why_not": why,
            "may_prepare": not why
            and active is None
            and permissions.has_permission(request.user, self.right("add"), place),
            "may_sign": prepared and may_change and not own,
            "may_withdraw": prepared and own,
            "why_not_sign": closing.explain_signature_refusal(active, user)
            if active is not None and prepared and may_change
            else "",
            "may_reopen": active is not None and not prepared and may_change,
            "changes": _list_changes(active, statement) if active is not None else [],
        }

    def _list_institutes(self, request: HttpRequest, scope: MonthScope) -> list[dict[str, Any]]:
        """The institutes that pay the scope's merchants: files with lines of the month, and days without a file."""
        settled = Settlement.objects.all()
        institutes = ClearingInstitute.objects.all()
        if scope.merchants is not None:
            settled = settled.filter(merchant__in=scope.merchants)
            institutes = institutes.filter(pk__in=settled.values("institute"))
        lines = settled.filter(date__range=(scope.month, last_of_month(scope.month)), records__file__state="DONE")
        files = dict(lines.order_by().values_list("institute").annotate(n=Count("records__file", distinct=True)))
        everywhere = has_right_everywhere(request, "reporting.view_settlementfile")
        return [
            {
                "institute": one,
                "files": files.get(one.pk, 0),
                "days": _list_missing_days(one, scope.month),
                "address": reverse("admin:reporting_settlementfile_missing", args=[one.pk]) if everywhere else "",
            }
            for one in institutes.order_by("name")
            if one.active or one.pk in files
        ]

    def do_view(self, request: HttpRequest, whose: str, month: str) -> HttpResponse:
        """Prepare, sign, return, withdraw or reopen one merchant's month; prepare or sign all of them."""
        shown = self._find_month(request, whose, month)
        back = redirect(shown.address())
        verb = request.POST.get("verb", "")
        if request.method != "POST":
            return back
        if shown.merchant is None:
            return self._do_all(request, shown.scope.month, verb)
        right = "add" if verb == "prepare" else "view" if verb == "withdraw" else "change"
        if not permissions.has_permission(request.user, self.right(right), RowOwner(merchant=shown.merchant.pk)):
            raise PermissionDenied
        if verb in ("sign", "reopen") and (ask := session.require_reauthentication(request, back.url)) is not None:
            return ask
        by = Closer(user=int(request.user.pk or 0), actor=actor_from_request(request))
        active = closing.find_active_closing(shown.merchant, shown.scope.month)
        try:
            if verb == "prepare":
                closing.prepare_month(shown.merchant, shown.scope.month, request.POST.get("note", ""), by=by)
                messages.success(request, _("Prepared. A second person signs it."))
            elif active is not None and verb in _STEPS:
                _STEPS[verb](active, request.POST.get("note", ""), by)
                messages.success(request, _("Done."))
        except ClosingRefusedError as fault:
            messages.error(request, str(fault))
        return back

    def _do_all(self, request: HttpRequest, month: date, verb: str) -> HttpResponse:
        """Start the work that prepares every month that is at 0.00, or signs every one that waits for this user."""
        back = redirect(f"{reverse('admin:reporting_monthclosing_changelist')}?month={month:%Y-%m}")
        right = {"prepare": "add", "sign": "change"}.get(verb, "")
        if not right:
            return back
        if not self.may(request, right):
            raise PermissionDenied
        if verb == "sign" and (ask := session.require_reauthentication(request, back.url)) is not None:
            return ask
        parameters = {
            "verb": verb,
            "month": month.isoformat(),
            "language": get_language() or "en",
            "ip": actor_from_request(request).ip,
            "list": back.url,
        }
        word = _("Prepare all that are at 0.00") if verb == "prepare" else _("Sign all that wait")
        title = format_labelled(f"{_('Month end')} {month:%Y-%m}", word)
        return start_page_work(request, bulk_closing.MONTHS_CLOSING, title, parameters, back=back.url)

    def package_view(self, request: HttpRequest, whose: str, month: str) -> HttpResponse:
        """Start the work that makes the month's files."""
        shown = self._find_month(request, whose, month)
        scope = permissions.find_access_scope(request.user, package.EXPORT_BOOKS_PERMISSION)
        wanted = shown.scope.merchants
        if request.method != "POST":
            return redirect(shown.address())
        if not scope.everything and (wanted is None or not wanted <= scope.merchants):
            raise PermissionDenied
        parameters = {
            "month": shown.scope.month.isoformat(),
            "merchants": None if wanted is None else sorted(one.hex for one in wanted),
            "language": get_language() or "en",
        }
        name = shown.merchant.name if shown.merchant is not None else _("all merchants")
        title = f"{_('Month end')} {shown.scope.month:%Y-%m}, {name}"
        return start_page_work(request, package.MONTH_PACKAGE, title, parameters, back=shown.address())

    # --- the list behind a figure -----------------------------------------------------------------------------------

    def part_view(self, request: HttpRequest, whose: str, month: str) -> HttpResponse:
        shown = self._find_month(request, whose, month)
        name, currency = request.GET.get("part", ""), request.GET.get("currency", "")
        if name != MISSING_PART and name not in LINE_PARTS:
            raise Http404
        after = identifiers.parse_id(request.GET.get("after", ""))
        found = list_part(shown.scope, name, currency[:3], after, PART_PAGE_ROWS + 1)
        page, more = found.ids[:PART_PAGE_ROWS], len(found.ids) > PART_PAGE_ROWS
        kept = {"part": name, "currency": currency[:3]}
        title = MISSING_TITLE if name == MISSING_PART else LINE_PARTS[name].title
        context = {
            **self.admin_site.each_context(request),
            "title": f"{title} {shown.scope.month:%Y-%m}",
            "opts": self.opts,
            "part": title,
            "merchant": shown.merchant,
            "month": shown.scope.month,
            "back": shown.address(),
            "currency": currency[:3],
            "total": found.total,
            "count": found.count,
            "payments": name == MISSING_PART,
            "rows": _render_missing(page) if name == MISSING_PART else _render_part_lines(page),
            "pages": {
                "first": f"?{urlencode(kept)}" if after else "",
                "next": f"?{urlencode({**kept, 'after': page[-1][0].hex})}" if more else "",
                "newest_first": False,
            },
        }
        return TemplateResponse(request, "admin/books/month_lines.html", context)

    def _find_month(self, request: HttpRequest, whose: str, month: str) -> ShownMonth:
        if not self.has_view_permission(request):
            raise PermissionDenied
        first = _parse_month(month)
        if first is None:
            raise Http404
        if whose == ALL_MERCHANTS:
            return ShownMonth(scope=self._whole_scope(request, first), merchant=None)
        ident = identifiers.parse_id(whose)
        merchant = self._merchants(request).filter(pk=ident).first() if ident else None
        if merchant is None:
            raise Http404
        return ShownMonth(scope=closing.scope_of_merchant(merchant, first), merchant=merchant)


_STEPS: Final[Mapping[str, Callable[[MonthClosing, str, Closer], MonthClosing]]] = {
    "sign": lambda row, _note, by: closing.sign_month(row, by=by),
    "return": lambda row, note, by: closing.return_month(row, note, by=by),
    "withdraw": lambda row, note, by: closing.withdraw_month(row, note, by=by),
    "reopen": lambda row, note, by: closing.reopen_month(row, note, by=by),
}


def render_closing_pill(row: MonthClosing | None) -> dict[str, str]:
    """The state of a month as a coloured pill."""
    if row is None:
        return {"tone": "plain", "text": _("open")}
    return {"tone": CLOSING_PILLS[MonthClosing.State(row.state)], "text": str(row.get_state_display())}


def list_month_requests(user: Any) -> list[WaitingRequest]:
    """Months that others prepared and the user may sign, for the page of approvals."""
    own = permissions.find_access_scope(user, "reporting.change_monthclosing")
    if not own:
        return []
    rows = MonthClosing.objects.filter(own.where("merchant", None), state=MonthClosing.State.PREPARED)
    rows = rows.exclude(prepared_by=user.pk).select_related("merchant").order_by("prepared_at")[:MAX_SHOWN_OF_A_KIND]
    return [
        WaitingRequest(
            kind=_("Close a month"),
            subject=f"{row.month:%Y-%m}",
            merchant=row.merchant.name,
            asked_by=row.prepared_by_name,
            asked_at=row.prepared_at,
            address=reverse("admin:reporting_monthclosing_month", args=[row.merchant.pk.hex, f"{row.month:%Y-%m}"]),
        )
        for row in rows
    ]


register_request_source("months", list_month_requests)


def count_waiting_months(user: Any) -> int:
    """Months that others prepared and the user may sign."""
    own = permissions.find_access_scope(user, "reporting.change_monthclosing")
    if not own:
        return 0
    rows = MonthClosing.objects.filter(own.where("merchant", None), state=MonthClosing.State.PREPARED)
    return int(rows.exclude(prepared_by=user.pk).count())


def _parse_month(text: str) -> date | None:
    """The first day of a month like 2026-11; None for anything else."""
    try:
        found = date.fromisoformat(f"{text}-01")
    except ValueError:
        return None
    return found if ACCEPTED_MONTH_YEARS[0] <= found.year <= ACCEPTED_MONTH_YEARS[1] else None


def _month_before(day: date) -> date:
    return (day.replace(day=1) - timedelta(days=1)).replace(day=1)


def _list_missing_days(institute: ClearingInstitute, month: date) -> list[date]:
    """Days of the month, up to yesterday, on which the institute's file was expected and did not come."""
    yesterday = clock.real_now().astimezone(institute.zone).date() - timedelta(days=1)
    first = max(month, institute.created_at.astimezone(institute.zone).date())
    last = min(last_of_month(month), yesterday)
    return list_days_without_file(institute, first, last) if first <= last and institute.expects_files_on else []


def _render_merchant(
    merchant: Merchant, statement: MonthStatement | None, row: MonthClosing | None, month: date
) -> dict[str, Any]:
    return {
        "merchant": merchant,
        "pill": render_closing_pill(row),
        "closing": reverse("admin:reporting_monthclosing_change", args=[row.pk]) if row is not None else "",
        "closed": row is not None and row.state == MonthClosing.State.SIGNED,
        "balances": statement.balances if statement is not None else [],
        "payouts": statement.payouts if statement is not None else [],
        "open": statement.open_count if statement is not None else 0,
        "address": reverse("admin:reporting_monthclosing_month", args=[merchant.pk.hex, f"{month:%Y-%m}"]),
    }


def _render_figures(shown: ShownMonth, figures: CurrencyFigures) -> dict[str, Any]:
    def linked(name: str) -> str:
        return f"{shown.address('lines')}?{urlencode({'part': name, 'currency': figures.currency})}"

    return {
        "currency": figures.currency,
        "total": figures.total,
        "paid": linked("paid"),
        "parts": [(part, linked(part.name)) for part in figures.parts],
        "open": [(part, linked(part.name)) for part in figures.open],
    }


def _list_changes(row: MonthClosing, statement: MonthStatement) -> list[tuple[str, str, Decimal, Decimal]]:
    """What has changed since the figures were prepared: currency, part, amount then, amount now."""
    now = statement.as_json()
    if digest_figures(now) == row.digest:
        return []
    before, after = _flatten_figures(row.figures), _flatten_figures(now)
    return [
        (currency, _name_part(part), before.get((currency, part), Decimal(0)), after.get((currency, part), Decimal(0)))
        for currency, part in sorted({*before, *after})
        if before.get((currency, part)) != after.get((currency, part))
    ]


def _flatten_figures(figures: Mapping[str, Any]) -> dict[tuple[str, str], Decimal]:
    return {
        (one["currency"], name): Decimal(amount)
        for table in figures.values()
        for one in table
        for name, (amount, _count) in one["parts"].items()
    }


def _name_part(name: str) -> str:
    return str(MISSING_TITLE if name == MISSING_PART else LINE_PARTS[name].title)


def _render_part_lines(page: list[tuple[UUID, Decimal]]) -> list[dict[str, Any]]:
    known = SettlementRecord.objects.select_related("institute", "merchant").in_bulk([ident for ident, _adds in page])
    return [
        {
            "row": known[ident],
            "adds": adds,
            "pill": match_state_pill(known[ident]),
            "address": reverse("admin:reporting_settlementrecord_change", args=[ident]),
        }
        for ident, adds in page
    ]


def _render_missing(page: list[tuple[UUID, Decimal]]) -> list[dict[str, Any]]:
    asked = [ident for ident, _adds in page]
    known = Payment.objects.select_related("merchant").defer("request").in_bulk(asked)
    known |= {one.pk: one for one in list_archived_payments([ident for ident in asked if ident not in known])}
    return [
        {
            "row": known[ident],
            "adds": adds,
            "named": format_payment_title(known[ident]),
            "address": reverse("admin:gateway_payment_change", args=[ident]),
        }
        for ident, adds in page
    ]
