"""Exports asked for, and background work found again: progress, cancelling, fetching the file.

A file is for its owner alone, and only while they have the right it was made with. Source: issue "back office".
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

from gateway import audit, rights, work
from gateway.admin.kit import Page, actor
from gateway.admin.showing import pill
from gateway.desk import export
from gateway.desk.filters import NAMES, filters_of
from gateway.desk.search import FullNumber, asked_for
from gateway.models import BackgroundWork
from gateway.work_files import plain

SHOWN_AT_MOST = 100


def start(request: HttpRequest, by: audit.Actor) -> HttpResponse:
    """Put the export of a list on the worker's list. The right was asked for."""
    back = redirect(reverse("admin:gateway_payment_changelist"))
    as_ = request.POST.get("format", "")
    if request.method != "POST" or as_ not in export.FORMATS:
        return back
    values = {name: request.POST[name] for name in NAMES if request.POST.get(name)}
    _filters, wrong = filters_of(values)
    try:
        asked = asked_for(request.POST.get("q", ""))
    except FullNumber:
        return back
    if wrong:
        messages.error(request, "; ".join(f"{name} {fault}" for name, fault in wrong.items()))
        return back
    parameters = {"format": as_, "filters": values, "asked": {"shape": asked.shape, "value": asked.value}}
    narrowed = ", ".join(f"{name}: {value}" for name, value in values.items())
    title = _("Payments as %s") % as_.upper() + (f" ({narrowed})" if narrowed else "")
    try:
        row = work.ask(export.KIND, title, parameters, owner=int(request.user.pk or 0), by=by)
    except work.TooMuchOpen:
        messages.error(
            request, _("You have %d pieces of work running. Wait for one, or cancel one.") % work.OPEN_AT_MOST
        )
        return redirect(reverse("admin:gateway_backgroundwork_changelist"))
    return redirect(reverse("admin:gateway_backgroundwork_change", args=[row.pk]))


@admin.register(BackgroundWork)
class BackgroundWorkAdmin(Page):
    """Everybody sees their own work."""

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
        return any(rights.allowed(request.user, kind.right) for kind in work.KINDS.values())

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
        rows = self.get_queryset(request).order_by("-asked_at")[:SHOWN_AT_MOST]
        context = {
            **self.admin_site.each_context(request), "title": _("Exports and long work"), "opts": self.opts,
            "rows": [_told(row) for row in rows], **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/clerk/works.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        row = self._own(request, unquote(object_id))
        context = {
            **self.admin_site.each_context(request), "title": row.title, "opts": self.opts, "original": row,
            "work": _told(row), **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/clerk/work.html", context)

    def state_view(self, request: HttpRequest, work: Any) -> HttpResponse:
        told = _told(self._own(request, work))
        shown = {name: told[name] for name in ("share", "done", "total", "message", "ended", "file")}
        return JsonResponse(shown | {"state": str(told["pill"]["text"])})

    def file_view(self, request: HttpRequest, work: Any) -> HttpResponse | FileResponse:
        row = self._own(request, work)
        path = work_file(row)
        if path is None:
            raise Http404
        kind = _kind(row)
        if kind is None or not rights.allowed(request.user, kind.right):
            raise PermissionDenied
        if not all(rights.still_has(request.user, kind.right, kept) for kept in row.cursor.get("scopes", ())):
            # It holds rows of a merchant that is not theirs any more.
            raise PermissionDenied
        self.record(request, "export fetched", row, after={"file": row.file})
        answer = FileResponse(
            path.open("rb"), as_attachment=True, filename=f"{row.asked_at:%Y%m%d-%H%M}-{plain(row.file)}"
        )
        answer["Cache-Control"] = "no-store"
        return answer

    def cancel_view(self, request: HttpRequest, work: Any) -> HttpResponse:
        row = self._own(request, work)
        if request.method == "POST":
            self._cancel(request, row)
        return redirect(reverse("admin:gateway_backgroundwork_change", args=[row.pk]))

    def _cancel(self, request: HttpRequest, row: BackgroundWork) -> None:
        if work.cancel(row, by=actor(request)):
            messages.success(request, _("Cancelled. What was written is thrown away."))
        else:
            messages.info(request, _("It had ended already."))

    def _own(self, request: HttpRequest, ident: Any) -> BackgroundWork:
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, str(ident))
        if row is None:
            raise Http404
        return row


def work_file(row: BackgroundWork) -> Any:
    return work.file_of(row)


def _kind(row: BackgroundWork) -> work.Kind | None:
    return work.KINDS.get(row.kind)


def _told(row: BackgroundWork) -> dict[str, Any]:
    path = work.file_of(row)
    shown = pill(row.state) if row.state != BackgroundWork.State.DONE else {"tone": "good", "text": _("Done")}
    if row.state == BackgroundWork.State.FAILED:
        shown = {"tone": "bad", "text": _("Failed")}
    return {
        "row": row, "pill": shown, "share": work.share(row), "done": row.done, "total": row.total,
        "message": row.message, "ended": row.state not in work.TO_DO,
        "file": reverse("admin:gateway_backgroundwork_file", args=[row.pk]) if path is not None else "",
        "bytes": path.stat().st_size if path is not None else 0,
        "address": reverse("admin:gateway_backgroundwork_change", args=[row.pk]),
        "list": row.parameters.get("list", ""),
    }  # fmt: skip
