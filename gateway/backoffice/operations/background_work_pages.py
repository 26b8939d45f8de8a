"""Background work of the user: progress, cancelling, fetching the file; and starting a payment export.

Only the owner gets a file, and only while they have the permission it was made with. Source: docs/background-work.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.background import queue
from gateway.background.files import public_file_name
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import OwnedPage, actor_from_request
from gateway.backoffice.kit.formatting import build_state_pill, format_number
from gateway.backoffice.kit.work_start import start_page_work
from gateway.backoffice.payments import payment_export
from gateway.backoffice.payments.payment_filters import (
    PAYMENT_FILTER_NAMES,
    fix_filter_times,
    parse_payment_filters,
)
from gateway.backoffice.payments.search_terms import FullCardNumberError, parse_search_term
from gateway.core import clock
from gateway.models import BackgroundWork

WORK_ORDER: Final = keyset.KeysetOrder(columns=(("asked_at", datetime), ("id", UUID)), newest_first=True)
MAX_PICKED_EXPORT = 2_000
"""Payments that are picked one by one."""
MIN_RATED_S = 3.0
"""Work that began less than so long ago has no rate yet."""


def start_payment_export(request: HttpRequest, *, ids: Sequence[UUID], columns: Sequence[str]) -> HttpResponse:
    """Start the export of a list, or of the payments ``ids``, with some of the list's ``columns`` or, without any, all
    that an export has. The caller has checked the permission."""
    back = redirect(reverse("admin:gateway_payment_changelist"))
    as_ = request.POST.get("format", "")
    if request.method != "POST" or as_ not in payment_export.EXPORT_FORMATS:
        return back
    values = {name: request.POST[name] for name in PAYMENT_FILTER_NAMES if request.POST.get(name)}
    _filters, wrong = parse_payment_filters(values)
    try:
        asked = parse_search_term(request.POST.get("q", ""))
    except FullCardNumberError:
        return back
    if wrong:
        messages.error(request, "; ".join(f"{name} {fault}" for name, fault in wrong.items()))
        return back
    if asked.wrong:
        messages.error(request, _("A filter cannot be read; nothing was looked at."))
        return back
    parameters = {
        "format": as_,
        "filters": fix_filter_times(values),
        "asked": {"shape": asked.shape, "value": asked.value},
        "columns": list(columns),
        "ids": [ident.hex for ident in ids[:MAX_PICKED_EXPORT]],
    }
    narrowed = ", ".join(f"{name}: {value}" for name, value in values.items())
    title = _("Payments as %s") % as_.upper() + (f" ({narrowed})" if narrowed else "")
    return start_page_work(request, payment_export.PAYMENT_EXPORT, title, parameters)


@admin.register(BackgroundWork)
class BackgroundWorkAdmin(OwnedPage):
    """Background work; every user sees their own."""

    changeable = False
    has_views = False
    is_named_in_trail = True

    def name_row(self, row: BackgroundWork) -> str:
        return f"“{row.title}”"

    def get_urls(self) -> list[URLPattern]:
        name = "gateway_backgroundwork_"
        own = [
            path("<uuid:work>/state/", self.admin_site.admin_view(self.state_view), name=f"{name}state"),
            path("<uuid:work>/file/", self.admin_site.admin_view(self.file_view), name=f"{name}file"),
            path("<uuid:work>/cancel/", self.admin_site.admin_view(self.cancel_view), name=f"{name}cancel"),
        ]
        return own + super().get_urls()

    def own(self, request: HttpRequest, rows: QuerySet[Any], verb: str = "view") -> QuerySet[Any]:
        return rows.filter(owner=request.user.pk)

    def may(self, request: HttpRequest, verb: str, row: Model | None = None) -> bool:
        return any(permissions.has_permission(request.user, kind.right) for kind in queue.WORK_KINDS.values())

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        pages = keyset.read_keyset_page(self.get_queryset(request), WORK_ORDER, request.GET)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Exports and long work"),
            "opts": self.opts,
            "rows": [_render_work(row, request) for row in pages.rows],
            "pages": pages,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/works.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        row = self.find_row(request, object_id)
        context = {
            **self.admin_site.each_context(request),
            "title": row.title,
            "opts": self.opts,
            "original": row,
            "work": _render_work(row, request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/work.html", context)

    def state_view(self, request: HttpRequest, work: Any) -> HttpResponse:
        state = _render_work(self.find_row(request, work), request)
        shown = {name: state[name] for name in ("share", "done", "total", "message", "ended", "file", "rate")}
        return JsonResponse(shown | {"state": str(state["pill"]["text"])})

    def file_view(self, request: HttpRequest, work: Any) -> HttpResponse | FileResponse:
        row = self.find_row(request, work)
        path = queue.find_result_file(row)
        if path is None:
            raise Http404
        if not may_fetch_file(request, row):
            raise PermissionDenied
        self.record(request, "export fetched", row, after={"file": row.file})
        answer = FileResponse(
            path.open("rb"), as_attachment=True, filename=f"{row.asked_at:%Y%m%d-%H%M}-{public_file_name(row.file)}"
        )
        answer["Cache-Control"] = "no-store"
        return answer

    def cancel_view(self, request: HttpRequest, work: Any) -> HttpResponse:
        row = self.find_row(request, work)
        if request.method == "POST":
            self._cancel_work(request, row)
        return redirect(reverse("admin:gateway_backgroundwork_change", args=[row.pk]))

    def _cancel_work(self, request: HttpRequest, row: BackgroundWork) -> None:
        if queue.cancel_work(row, by=actor_from_request(request)):
            messages.success(request, _("Cancelled. What was written is thrown away."))
        else:
            messages.info(request, _("It had ended already."))


def may_fetch_file(request: HttpRequest, row: BackgroundWork) -> bool:
    """Whether the user has the permission for the file of finished work, on all merchants and channels in it."""
    if (kind := queue.WORK_KINDS.get(row.kind)) is None:
        return False
    right = kind.file_right or kind.right
    return permissions.has_permission(request.user, right) and all(
        permissions.still_has_permission(request.user, right, kept) for kept in row.cursor.get("scopes", ())
    )


def _render_work(row: BackgroundWork, request: HttpRequest) -> dict[str, Any]:
    path = queue.find_result_file(row) if may_fetch_file(request, row) else None
    shown = (
        build_state_pill(row.state) if row.state != BackgroundWork.State.DONE else {"tone": "good", "text": _("Done")}
    )
    if row.state == BackgroundWork.State.FAILED:
        shown = {"tone": "bad", "text": _("Failed")}
    return {
        "row": row,
        "pill": shown,
        "share": queue.compute_percent_done(row),
        "done": row.done,
        "total": row.total,
        "message": row.message,
        "ended": row.state not in queue.OPEN_WORK_STATES,
        "file": reverse("admin:gateway_backgroundwork_file", args=[row.pk]) if path is not None else "",
        "bytes": path.stat().st_size if path is not None else 0,
        "address": reverse("admin:gateway_backgroundwork_change", args=[row.pk]),
        "list": row.parameters.get("list", ""),
        "rate": describe_rate(row),
    }


def describe_rate(row: BackgroundWork) -> str:
    """How fast running work goes and how long it will take, in words; '' where that is not known. Its time began when
    it was asked for, so that waiting counts too."""
    seconds = (clock.real_now() - row.asked_at).total_seconds()
    if row.state != BackgroundWork.State.RUNNING or seconds < MIN_RATED_S or not row.done:
        return ""
    rate = row.done / seconds
    speed = _("%s a second") % format_number(Decimal(rate), 0 if rate >= 10 else 1)
    if not row.total or row.total <= row.done:
        return speed
    left = math.ceil((row.total - row.done) / rate)
    minutes = math.ceil(left / 60)
    about = _("about %d s left") % left if left < 90 else _("about %d min left") % minutes
    return f"{speed}, {about}"
