"""Background work of the user: progress, cancelling, fetching the file; and starting a payment export.

Only the owner gets a file, and only while they have the permission it was made with. Source: docs/background-work.md.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from gateway.access import audit_log, permissions
from gateway.background import queue
from gateway.background.files import public_file_name
from gateway.backoffice.kit.base import BackofficePage, actor_from_request
from gateway.backoffice.kit.formatting import build_state_pill
from gateway.backoffice.payments import payment_export
from gateway.backoffice.payments.payment_filters import (
    PAYMENT_FILTER_NAMES,
    fix_filter_times,
    parse_payment_filters,
)
from gateway.backoffice.payments.payment_search import FullCardNumberError, parse_search_term
from gateway.models import BackgroundWork

MAX_SHOWN_WORK = 100


def start_payment_export(request: HttpRequest, by: audit_log.Actor) -> HttpResponse:
    """Start the export of a list. The caller has checked the permission."""
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
    parameters = {
        "format": as_,
        "filters": fix_filter_times(values),
        "asked": {"shape": asked.shape, "value": asked.value},
    }
    narrowed = ", ".join(f"{name}: {value}" for name, value in values.items())
    title = _("Payments as %s") % as_.upper() + (f" ({narrowed})" if narrowed else "")
    try:
        row = queue.enqueue_work(
            payment_export.PAYMENT_EXPORT, title, parameters, owner=int(request.user.pk or 0), by=by
        )
    except queue.TooMuchOpenWorkError:
        messages.error(
            request,
            _("You have %d pieces of work running. Wait for one, or cancel one.") % queue.MAX_OPEN_WORK_PER_OWNER,
        )
        return redirect(reverse("admin:gateway_backgroundwork_changelist"))
    return redirect(reverse("admin:gateway_backgroundwork_change", args=[row.pk]))


@admin.register(BackgroundWork)
class BackgroundWorkAdmin(BackofficePage):
    """Background work; every user sees their own."""

    def get_urls(self) -> list[URLPattern]:
        name = "gateway_backgroundwork_"
        own = [
            path("<uuid:work>/state/", self.admin_site.admin_view(self.state_view), name=f"{name}state"),
            path("<uuid:work>/file/", self.admin_site.admin_view(self.file_view), name=f"{name}file"),
            path("<uuid:work>/cancel/", self.admin_site.admin_view(self.cancel_view), name=f"{name}cancel"),
        ]
        return own + super().get_urls()

    def get_queryset(self, request: HttpRequest) -> QuerySet[BackgroundWork]:
        return super().get_queryset(request).filter(owner=request.user.pk)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return any(permissions.has_permission(request.user, kind.right) for kind in queue.WORK_KINDS.values())

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = self.get_queryset(request).order_by("-asked_at")[:MAX_SHOWN_WORK]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Exports and long work"),
            "opts": self.opts,
            "rows": [_render_work(row) for row in rows],
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/works.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        row = self._find_own_work(request, unquote(object_id))
        context = {
            **self.admin_site.each_context(request),
            "title": row.title,
            "opts": self.opts,
            "original": row,
            "work": _render_work(row),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/work.html", context)

    def state_view(self, request: HttpRequest, work: Any) -> HttpResponse:
        state = _render_work(self._find_own_work(request, work))
        shown = {name: state[name] for name in ("share", "done", "total", "message", "ended", "file")}
        return JsonResponse(shown | {"state": str(state["pill"]["text"])})

    def file_view(self, request: HttpRequest, work: Any) -> HttpResponse | FileResponse:
        row = self._find_own_work(request, work)
        path = open_work_file(row)
        if path is None:
            raise Http404
        kind = _find_kind(row)
        if kind is None or not permissions.has_permission(request.user, kind.right):
            raise PermissionDenied
        if not all(
            permissions.still_has_permission(request.user, kind.right, kept) for kept in row.cursor.get("scopes", ())
        ):
            # The file has rows of a merchant that the user no longer reaches.
            raise PermissionDenied
        self.record(request, "export fetched", row, after={"file": row.file})
        answer = FileResponse(
            path.open("rb"), as_attachment=True, filename=f"{row.asked_at:%Y%m%d-%H%M}-{public_file_name(row.file)}"
        )
        answer["Cache-Control"] = "no-store"
        return answer

    def cancel_view(self, request: HttpRequest, work: Any) -> HttpResponse:
        row = self._find_own_work(request, work)
        if request.method == "POST":
            self._cancel_work(request, row)
        return redirect(reverse("admin:gateway_backgroundwork_change", args=[row.pk]))

    def _cancel_work(self, request: HttpRequest, row: BackgroundWork) -> None:
        if queue.cancel_work(row, by=actor_from_request(request)):
            messages.success(request, _("Cancelled. What was written is thrown away."))
        else:
            messages.info(request, _("It had ended already."))

    def _find_own_work(self, request: HttpRequest, ident: Any) -> BackgroundWork:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row: BackgroundWork | None = self.get_object(request, str(ident))
        if row is None:
            raise Http404
        return row


def open_work_file(row: BackgroundWork) -> Any:
    """Open the file of finished work for reading."""
    return queue.find_result_file(row)


def _find_kind(row: BackgroundWork) -> queue.WorkKind | None:
    return queue.WORK_KINDS.get(row.kind)


def _render_work(row: BackgroundWork) -> dict[str, Any]:
    path = queue.find_result_file(row)
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
    }
