"""Pages that try retries timed by outcomes on past charges of a channel, before they are switched on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.backoffice.kit import work_start
from gateway.backoffice.kit.base import MerchantPage, ReadOnlyPage
from gateway.backoffice.routing.rule_pages import MAX_DRY_RUN_DAYS, DryRunForm
from gateway.backoffice.schedules import retry_trial
from gateway.models import BackgroundWork

RETRY_TRY_PAGE, RETRY_TRIED_PAGE = "scheduling_job_retries_try", "scheduling_job_retries_tried"
_RIGHT: Final = retry_trial.RETRY_TRIAL_PERMISSION


class RetryTrialForm(DryRunForm):
    """The channel and the days whose retries are tried."""

    drafts = None  # type: ignore[assignment]  # as Django documents: the field of the other form is left out

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"merchant": self.cleaned_data["channel"].merchant_id.hex}


def build_retry_trial_urls(page: ReadOnlyPage | MerchantPage) -> list[URLPattern]:
    """The addresses of the two pages, below those of schedules."""
    view = page.admin_site.admin_view

    def try_retries(request: HttpRequest) -> HttpResponse:
        return _show_form(page, request)

    def tried_retries(request: HttpRequest, work: UUID) -> HttpResponse:
        return _show_result(page, request, work)

    return [
        path("retries/", view(try_retries), name=RETRY_TRY_PAGE),
        path("retries/<uuid:work>/", view(tried_retries), name=RETRY_TRIED_PAGE),
    ]


def _show_form(page: Any, request: HttpRequest) -> HttpResponse:
    if not permissions.find_access_scope(request.user, _RIGHT):
        raise PermissionDenied
    channels = permissions.list_permitted_channels(request.user, _RIGHT).select_related("merchant")
    today = datetime.now(UTC).date()
    initial = {
        "since": today - timedelta(days=MAX_DRY_RUN_DAYS - 1),
        "until": today,
        "channel": request.GET.get("channel", ""),
    }
    form = RetryTrialForm(request.POST if request.method == "POST" else None, initial=initial)
    form.fields["channel"].queryset = channels.order_by("merchant__name", "name")  # type: ignore[attr-defined]
    if request.method == "POST" and form.is_valid() and (row := _enqueue(request, form)) is not None:
        return work_start.lead_to_work(row)
    context = {
        **page.admin_site.each_context(request),
        "title": _("Try the timing of retries on past charges"),
        "opts": page.opts,
        "form": form,
    }
    return TemplateResponse(request, "admin/office/retries_try.html", context)


def _enqueue(request: HttpRequest, form: RetryTrialForm) -> BackgroundWork | None:
    """Start the trial; None, with a message, where the user has too much running."""
    title = _("Retries of past charges: %s") % form.cleaned_data["channel"]
    return work_start.enqueue_page_work(
        request, retry_trial.RETRY_TRIAL, title, form.parameters(), result_page=f"admin:{RETRY_TRIED_PAGE}"
    )


def _show_result(page: Any, request: HttpRequest, work: UUID) -> HttpResponse:
    kind = retry_trial.RETRY_TRIAL.name
    row = BackgroundWork.objects.filter(pk=work, owner=request.user.pk, kind=kind).first()
    if row is None:
        raise Http404
    if not permissions.list_permitted_channels(request.user, _RIGHT).filter(pk=row.parameters["channel"]).exists():
        raise PermissionDenied
    context = {
        **page.admin_site.each_context(request),
        "title": row.title,
        "opts": page.opts,
        "row": row,
        "found": row.cursor,
        "fewest": retry_trial.MIN_TRIED_RETRIES,
    }
    return TemplateResponse(request, "admin/office/retries_tried.html", context)
