"""Settlement files: upload with a preview, reading in the background, and what came of it. Source: design, J5, 1 to 3.

A file speaks of many merchants, so its pages are for those who reach all of them; others find their own lines under
Exceptions and Payouts.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway import clock, rights, wake
from gateway.admin import paging
from gateway.admin.kit import Page, actor
from gateway.api.bodies import Uploads, takes_files, upload_address
from gateway.models import Merchant
from reporting import files, stash
from reporting.admin import figures, lacking, sources
from reporting.formats.port import NotReadable
from reporting.intake import OPEN
from reporting.layout import COLUMNS
from reporting.models import ClearingInstitute, SettlementFile, SettlementRecord

NEWEST_FIRST: Final = paging.Order(columns=(("received_at", datetime), ("id", UUID)), newest_first=True)
ERRORS: Final = paging.Order(columns=(("line", int), ("id", int)))
TIMER: Final = "settlement files"
State = SettlementFile.State
_STATES: Final = {
    State.RECEIVED: ("wait", lazy("Waits to be read")), State.READING: ("wait", lazy("Being read")),
    State.MATCHING: ("wait", lazy("Being matched")), State.BOOKING: ("wait", lazy("Entering chargebacks")),
    State.DONE: ("good", lazy("Done")), State.FAILED: ("bad", lazy("Cannot be read")),
}  # fmt: skip


def reaches_all(request: HttpRequest, right: str) -> bool:
    """Whether the user has ``right`` on every merchant there is."""
    scope = rights.scope(request.user, right)
    if scope.everything or not scope.merchants:
        return scope.everything
    return not Merchant.objects.exclude(pk__in=scope.merchants).exists()


@admin.register(SettlementFile)
class SettlementFileAdmin(Page):
    def get_urls(self) -> list[URLPattern]:
        name, wrap = "reporting_settlementfile_", self.admin_site.admin_view
        own = [
            path("upload/", wrap(self.upload_view), name=f"{name}upload"),
            path("upload/<uuid:upload>/", wrap(self.confirm_view), name=f"{name}confirm"),
            path("source/<uuid:institute>/", wrap(self.source_view), name=f"{name}source"),
            path("<uuid:file>/again/", wrap(self.again_view), name=f"{name}again"),
            path("missing/<uuid:institute>/", wrap(self.missing_view), name=f"{name}missing"),
            path("<uuid:file>/state/", wrap(self.state_view), name=f"{name}state"),
        ]
        return own + super().get_urls()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return reaches_all(request, "reporting.view_settlementfile")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[SettlementFile]:
        return super().get_queryset(request).select_related("institute")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        pages = paging.page(self.get_queryset(request), NEWEST_FIRST, request.GET)
        context = {
            **self.admin_site.each_context(request), "title": _("Settlement files"), "opts": self.opts,
            "rows": [{"row": row, "pill": _pill(row)} for row in pages.rows], "pages": pages,
            "may_upload": _may_upload(request),
            "lacking": lacking.listed(),
            "sources": sources.listed() if reaches_all(request, sources.VIEW) else [], **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/books/files.html", context)

    # --- uploading --------------------------------------------------------------------------------------------------

    @takes_files(
        Uploads(most=lambda: settings.GATEWAY_SETTLEMENT_MAX_BYTES, may=lambda request, _names: _may_upload(request))
    )
    def upload_view(self, request: HttpRequest) -> HttpResponse:
        if not _may_upload(request):
            raise PermissionDenied
        institutes = list(ClearingInstitute.objects.filter(active=True))
        fault = ""
        if request.method == "POST":
            try:
                kept = _kept(request, institutes)
                return redirect(reverse("admin:reporting_settlementfile_confirm", args=[kept.ident]))
            except NotReadable as refused:
                fault = str(refused)
        context = {
            **self.admin_site.each_context(request), "title": _("Upload a settlement file"), "opts": self.opts,
            "institutes": institutes, "chosen": request.POST.get("institute", ""), "fault": fault,
            "action": upload_address(request, request.path),
        }  # fmt: skip
        return TemplateResponse(request, "admin/books/upload.html", context, status=400 if fault else 200)

    def confirm_view(self, request: HttpRequest, upload: Any) -> HttpResponse:
        """The preview, and the yes."""
        if not _may_upload(request):
            raise PermissionDenied
        try:
            kept = stash.find(upload, int(request.user.pk or 0))
            institute = ClearingInstitute.objects.get(pk=kept.institute)
            if request.method == "POST":
                return self._taken_in(request, kept, institute)
            preview = files.preview(stash.opened(kept), institute, files.LOOKED_THROUGH)
        except (stash.Gone, ClearingInstitute.DoesNotExist):
            raise Http404 from None
        except NotReadable as refused:
            stash.drop(kept)
            messages.error(request, _("%(name)s is not taken: %(why)s.") % {"name": kept.name, "why": refused})
            return redirect(reverse("admin:reporting_settlementfile_upload"))
        # A column that no line of these has something in would only push the amounts out of sight.
        names = [column.name for column in COLUMNS if any(line.values.get(column.name) for line in preview.first)]
        context = {
            **self.admin_site.each_context(request), "title": _("Look before it is read"), "opts": self.opts,
            "upload": kept, "institute": institute, "preview": preview, "names": names,
            "lines": [(line, [line.values.get(name, "") for name in names]) for line in preview.first],
        }  # fmt: skip
        return TemplateResponse(request, "admin/books/preview.html", context)

    def _taken_in(self, request: HttpRequest, kept: stash.Upload, institute: ClearingInstitute) -> HttpResponse:
        if request.POST.get("verb") != "read":
            stash.drop(kept)
            messages.info(request, _("Thrown away. Nothing was read."))
            return redirect(reverse("admin:reporting_settlementfile_upload"))
        try:
            file = files.receive(
                stash.opened(kept), name=kept.name, institute=institute, by=actor(request),
                source=SettlementFile.Source.UPLOAD,
            )  # fmt: skip
            wake.wake(TIMER)
        except files.SeenBefore as seen:
            file = seen.file
            messages.warning(request, _("Nothing was read twice: %s.") % seen)
        stash.drop(kept)
        return redirect(reverse("admin:reporting_settlementfile_change", args=[file.pk]))

    def source_view(self, request: HttpRequest, institute: Any) -> HttpResponse:
        """Where one institute's files are fetched."""
        if not reaches_all(request, sources.VIEW):
            raise PermissionDenied
        return sources.view(self, request, _institute(institute), reaches_all(request, sources.CHANGE))

    def missing_view(self, request: HttpRequest, institute: Any) -> HttpResponse:
        """What one institute should have sent and did not."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return lacking.view(self, request, _institute(institute))

    # --- one file ---------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        file = self._file(request, unquote(object_id))
        records = SettlementRecord.objects.filter(file=file)
        errors = paging.page(file.errors.all(), ERRORS, request.GET, at="#errors")
        context = {
            **self.admin_site.each_context(request), "title": file.name, "opts": self.opts, "original": file,
            "file": file, "work": _told(file), "pill": _pill(file),
            "sums": [] if file.state in OPEN else figures.sums_by_currency(records),
            "findings": [] if file.state in OPEN else figures.findings_of(file),
            "errors": errors.rows, "pages": errors,
            "again": file.state == State.FAILED and _may_upload(request) and files.has_content(file),
            "said": file.totals.get("said"),
            **(figures.matching(file, records) if file.state not in OPEN else {"now": file}), **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/books/file.html", context)

    def state_view(self, request: HttpRequest, file: Any) -> HttpResponse:
        return JsonResponse(_told(self._file(request, str(file))))

    def again_view(self, request: HttpRequest, file: Any) -> HttpResponse:
        """A file that failed by a fault of ours is read on."""
        row = self._file(request, str(file))
        if not _may_upload(request):
            raise PermissionDenied
        if request.method == "POST":
            if files.read_again(row, actor(request)):
                wake.wake(TIMER)
                messages.success(request, _("It is read on where it was left."))
            else:
                messages.error(request, _("There is nothing to read on; send the file again."))
        return redirect(reverse("admin:reporting_settlementfile_change", args=[row.pk]))

    def _file(self, request: HttpRequest, ident: str) -> SettlementFile:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found: SettlementFile | None = self.get_object(request, ident)
        if found is None:
            raise Http404
        return found


def _institute(ident: Any) -> ClearingInstitute:
    found = ClearingInstitute.objects.filter(pk=ident).select_related("sftp_source").first()
    if found is None:
        raise Http404
    return found


def _may_upload(request: HttpRequest) -> bool:
    return reaches_all(request, "reporting.add_settlementfile")


def _kept(request: HttpRequest, institutes: list[ClearingInstitute]) -> stash.Upload:
    """Look into what was sent and keep it, sealed. Raises NotReadable."""
    sent = request.FILES.get("file")
    if sent is None:
        raise NotReadable(_("choose a file"))
    named = request.POST.get("institute", "")
    institute = next((one for one in institutes if one.key == named), None)
    if institute is None:
        raise NotReadable(_("choose the clearing institute that sent it"))
    stream: Any = sent
    # Its head alone: what is no settlement file is not kept at all.
    files.preview(stream, institute, files.PREVIEWED)
    return stash.keep(
        stream, name=files.plain(sent.name or ""), institute=institute.pk, owner=int(request.user.pk or 0)
    )


def _pill(file: SettlementFile) -> dict[str, Any]:
    tone, text = _STATES[State(file.state)]
    return {"tone": tone, "text": str(text)}


def _told(file: SettlementFile) -> dict[str, Any]:
    """How far it is, for the bar: lines, and by bytes how many there will be."""
    ended = file.state not in OPEN
    share, total, words = (100 if ended else None), None, ""
    if file.position and not ended:
        share = min(99, int(95 * file.position / max(1, file.size)))
        total = max(file.lines, round(file.lines * file.size / file.position))
        passed = (clock.real() - (file.started_at or file.received_at)).total_seconds()
        rate = file.lines / max(passed, 0.001)
        left = (total - file.lines) / max(rate, 1)
        words = _("%(rate)s lines a second, about %(left)s s left") % {"rate": f"{rate:,.0f}", "left": f"{left:.0f}"}
    return {
        "state": str(_STATES[State(file.state)][1]), "share": share, "done": file.lines,
        "total": file.lines if ended else total, "message": words, "ended": ended, "file": "",
    }  # fmt: skip
