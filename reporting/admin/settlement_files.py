"""Back-office pages of settlement files: upload with a preview, progress of reading, and the results.

A file concerns many merchants, so its pages need the right on every merchant; other users find their records under
Exceptions and Payouts.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.access import permissions
from gateway.access.permissions import AccessScope
from gateway.api.body_limits import UploadPolicy, allow_uploads, build_upload_url
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import OwnedPage, actor_from_request
from gateway.backoffice.kit.formatting import format_number
from gateway.core import clock
from gateway.models import Merchant
from gateway.timers import wakeup
from reporting.admin import missing_settlements, sftp_sources, totals
from reporting.models import ClearingInstitute, SettlementFile, SettlementRecord
from reporting.settlement import files, pending_uploads
from reporting.settlement.formats.port import UnreadableFileError
from reporting.settlement.intake import UNFINISHED_STATES
from reporting.settlement.layout import SETTLEMENT_COLUMNS
from reporting.settlement.watched_folder import INTAKE_TIMER

FILE_ORDER: Final = keyset.KeysetOrder(columns=(("received_at", datetime), ("id", UUID)), newest_first=True)
LINE_ERROR_ORDER: Final = keyset.KeysetOrder(columns=(("line", int), ("id", int)))
DisplayedFileState = SettlementFile.State
_STATES: Final = {
    DisplayedFileState.RECEIVED: ("wait", lazy("Waits to be read")),
    DisplayedFileState.READING: ("wait", lazy("Being read")),
    DisplayedFileState.MATCHING: ("wait", lazy("Being matched")),
    DisplayedFileState.BOOKING: ("wait", lazy("Entering chargebacks")),
    DisplayedFileState.DONE: ("good", lazy("Done")),
    DisplayedFileState.FAILED: ("bad", lazy("Cannot be read")),
}


def has_right_everywhere(request: HttpRequest, right: str) -> bool:
    """True if the user has ``right`` on every merchant of the installation."""
    return reaches_every_merchant(permissions.find_access_scope(request.user, right))


def reaches_every_merchant(scope: AccessScope) -> bool:
    """Whether every merchant of the installation is in ``scope``. Settlement files are of all of them."""
    if scope.everything or not scope.merchants:
        return scope.everything
    return not Merchant.objects.exclude(pk__in=scope.merchants).exists()


@admin.register(SettlementFile)
class SettlementFileAdmin(OwnedPage):
    """The list of settlement files, the upload in two steps, and the page of one file."""

    changeable = False
    has_views = False

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
        inherited: list[URLPattern] = super().get_urls()
        return own + inherited

    def own(self, request: HttpRequest, rows: QuerySet[Any], verb: str = "view") -> QuerySet[Any]:
        return rows.select_related("institute")

    def may(self, request: HttpRequest, verb: str, row: Model | None = None) -> bool:
        return has_right_everywhere(request, self.right(verb))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows, day = self.get_queryset(request), missing_settlements.read_day(request.GET.get("day", ""))
        if day is not None:
            rows = rows.filter(build_day_condition(day))
        kept = [("day", f"{day:%Y-%m-%d}")] if day is not None else []
        pages = keyset.read_keyset_page(rows, FILE_ORDER, request.GET, kept)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Settlement files"),
            "day": day,
            "opts": self.opts,
            "rows": [{"row": row, "pill": _render_pill(row)} for row in pages.rows],
            "pages": pages,
            "may_upload": _may_upload(request),
            "lacking": missing_settlements.list_institutes_with_gaps(),
            "sources": sftp_sources.list_institutes_with_sources()
            if has_right_everywhere(request, sftp_sources.VIEW_SOURCE_PERMISSION)
            else [],
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/files.html", context)

    # --- upload -----------------------------------------------------------------------------------------------------

    @allow_uploads(
        UploadPolicy(
            most=lambda: settings.GATEWAY_SETTLEMENT_MAX_BYTES, may=lambda request, _names: _may_upload(request)
        )
    )
    def upload_view(self, request: HttpRequest) -> HttpResponse:
        if not _may_upload(request):
            raise PermissionDenied
        institutes = list(ClearingInstitute.objects.filter(active=True))
        fault = ""
        if request.method == "POST":
            try:
                kept = _store_upload(request, institutes)
                return redirect(reverse("admin:reporting_settlementfile_confirm", args=[kept.ident]))
            except UnreadableFileError as refused:
                fault = str(refused)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Upload a settlement file"),
            "opts": self.opts,
            "institutes": institutes,
            "chosen": request.POST.get("institute", ""),
            "fault": fault,
            "action": build_upload_url(request, request.path),
        }
        return TemplateResponse(request, "admin/books/upload.html", context, status=400 if fault else 200)

    def confirm_view(self, request: HttpRequest, upload: Any) -> HttpResponse:
        """The preview of an upload (GET), and its confirmation (POST)."""
        if not _may_upload(request):
            raise PermissionDenied
        try:
            kept = pending_uploads.find_upload(upload, int(request.user.pk or 0))
            institute = ClearingInstitute.objects.get(pk=kept.institute)
            if request.method == "POST":
                return self._take_in_upload(request, kept, institute)
            preview = files.preview_file(pending_uploads.open_upload(kept), institute, files.MAX_PREVIEW_SCAN_LINES)
        except (pending_uploads.UploadExpiredError, ClearingInstitute.DoesNotExist):
            raise Http404 from None
        except UnreadableFileError as refused:
            pending_uploads.delete_upload(kept)
            messages.error(request, _("%(name)s is not taken: %(why)s.") % {"name": kept.name, "why": refused})
            return redirect(reverse("admin:reporting_settlementfile_upload"))
        # Columns that are empty in every line shown are left out: they would push the amounts out of sight.
        names = [
            column.name for column in SETTLEMENT_COLUMNS if any(line.values.get(column.name) for line in preview.first)
        ]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Look before it is read"),
            "opts": self.opts,
            "upload": kept,
            "institute": institute,
            "preview": preview,
            "sums": [preview.sums[currency] for currency in sorted(preview.sums)],
            "names": names,
            "lines": [(line, [line.values.get(name, "") for name in names]) for line in preview.first],
        }
        return TemplateResponse(request, "admin/books/preview.html", context)

    def _take_in_upload(
        self, request: HttpRequest, kept: pending_uploads.PendingUpload, institute: ClearingInstitute
    ) -> HttpResponse:
        if request.POST.get("verb") != "read":
            pending_uploads.delete_upload(kept)
            messages.info(request, _("Thrown away. Nothing was read."))
            return redirect(reverse("admin:reporting_settlementfile_upload"))
        try:
            file = files.receive_file(
                pending_uploads.open_upload(kept),
                name=kept.name,
                institute=institute,
                by=actor_from_request(request),
                source=SettlementFile.Source.UPLOAD,
            )
            wakeup.notify_timer(INTAKE_TIMER)
        except files.DuplicateFileError as seen:
            file = seen.file
            messages.warning(request, _("Nothing was read twice: %s.") % seen)
        pending_uploads.delete_upload(kept)
        return redirect(reverse("admin:reporting_settlementfile_change", args=[file.pk]))

    def source_view(self, request: HttpRequest, institute: Any) -> HttpResponse:
        """The SFTP source of one institute."""
        if not has_right_everywhere(request, sftp_sources.VIEW_SOURCE_PERMISSION):
            raise PermissionDenied
        return sftp_sources.sftp_source_view(
            self, request, _institute(institute), has_right_everywhere(request, sftp_sources.CHANGE_SOURCE_PERMISSION)
        )

    def missing_view(self, request: HttpRequest, institute: Any) -> HttpResponse:
        """Missing files and overdue payments of one institute."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return missing_settlements.missing_settlements_view(self, request, _institute(institute))

    # --- one file ---------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        file: SettlementFile = self.find_row(request, object_id)
        records = SettlementRecord.objects.filter(file=file)
        errors = keyset.read_keyset_page(file.errors.all(), LINE_ERROR_ORDER, request.GET, at="#errors")
        context = {
            **self.admin_site.each_context(request),
            "title": file.name,
            "opts": self.opts,
            "original": file,
            "file": file,
            "work": _render_progress(file),
            "pill": _render_pill(file),
            "sums": [] if file.state in UNFINISHED_STATES else totals.sum_by_currency(records),
            "findings": [] if file.state in UNFINISHED_STATES else totals.count_findings(file),
            "errors": errors.rows,
            "pages": errors,
            "again": file.state == DisplayedFileState.FAILED
            and _may_upload(request)
            and files.has_stored_content(file),
            "said": file.totals.get("said"),
            **(totals.summarize_matching(file, records) if file.state not in UNFINISHED_STATES else {"now": file}),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/file.html", context)

    def state_view(self, request: HttpRequest, file: Any) -> HttpResponse:
        return JsonResponse(_render_progress(self.find_row(request, file)))

    def again_view(self, request: HttpRequest, file: Any) -> HttpResponse:
        """Resume a file that failed through an error of ours."""
        row = self.find_row(request, file)
        if not _may_upload(request):
            raise PermissionDenied
        if request.method == "POST":
            if files.retry_failed_file(row, actor_from_request(request)):
                wakeup.notify_timer(INTAKE_TIMER)
                messages.success(request, _("It is read on where it was left."))
            else:
                messages.error(request, _("There is nothing to read on; send the file again."))
        return redirect(reverse("admin:reporting_settlementfile_change", args=[row.pk]))


def _institute(ident: Any) -> ClearingInstitute:
    found = ClearingInstitute.objects.filter(pk=ident).select_related("sftp_source").first()
    if found is None:
        raise Http404
    return found


def _may_upload(request: HttpRequest) -> bool:
    return has_right_everywhere(request, "reporting.add_settlementfile")


def _store_upload(request: HttpRequest, institutes: list[ClearingInstitute]) -> pending_uploads.PendingUpload:
    """Check the start of the upload and store it sealed. Raises UnreadableFileError."""
    sent = request.FILES.get("file")
    if sent is None:
        raise UnreadableFileError(_("choose a file"))
    named = request.POST.get("institute", "")
    institute = next((one for one in institutes if one.key == named), None)
    if institute is None:
        raise UnreadableFileError(_("choose the clearing institute that sent it"))
    stream: Any = sent
    # Only the head is read: anything that is not a settlement file is not stored at all.
    files.preview_file(stream, institute, files.PREVIEW_LINES)
    return pending_uploads.store_upload(
        stream, name=files.sanitize_file_name(sent.name or ""), institute=institute.pk, owner=int(request.user.pk or 0)
    )


def build_day_condition(day: date) -> Q:
    """The condition on files that came on a day of their institute's time zone, as the first page counts them: without
    those that could not be read, and those of institutes that are switched off."""
    found = Q(pk__in=[])
    zones = ClearingInstitute.objects.filter(active=True).order_by().values_list("time_zone", flat=True).distinct()
    for zone in zones:
        begins, ends = clock.bound_days(day, day, ZoneInfo(zone))
        found |= Q(institute__time_zone=zone, received_at__gte=begins, received_at__lt=ends)
    return found & Q(institute__active=True) & ~Q(state=SettlementFile.State.FAILED)


def _render_pill(file: SettlementFile) -> dict[str, Any]:
    tone, text = _STATES[DisplayedFileState(file.state)]
    return {"tone": tone, "text": str(text)}


def _render_progress(file: SettlementFile) -> dict[str, Any]:
    """Progress of reading for the bar: lines read, and the expected total by the share of bytes read."""
    ended = file.state not in UNFINISHED_STATES
    share, total, words = (100 if ended else None), None, ""
    if file.position and not ended:
        share = min(99, int(95 * file.position / max(1, file.size)))
        total = max(file.lines, round(file.lines * file.size / file.position))
        passed = (clock.real_now() - (file.started_at or file.received_at)).total_seconds()
        rate = file.lines / max(passed, 0.001)
        left = (total - file.lines) / max(rate, 1)
        words = _("%(rate)s lines a second, about %(left)s s left") % {
            "rate": format_number(round(rate)),
            "left": format_number(round(left)),
        }
    return {
        "state": str(_STATES[DisplayedFileState(file.state)][1]),
        "share": share,
        "done": file.lines,
        "total": file.lines if ended else total,
        "message": words,
        "ended": ended,
        "file": "",
    }
