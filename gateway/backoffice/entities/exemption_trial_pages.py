"""Pages that try exemption rules on past payments of a channel, before they count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.access import permissions
from gateway.backoffice.entities import exemption_trial
from gateway.backoffice.entities.exemption_fields import ExemptionsWidget
from gateway.backoffice.kit import composite_field, config_backed_form, work_start
from gateway.backoffice.kit.base import MerchantPage
from gateway.backoffice.operations.background_work_pages import may_fetch_file
from gateway.backoffice.payments.exemption_words import EXEMPTION_NAMES
from gateway.backoffice.routing.rule_pages import DEFAULT_DRY_RUN_DAYS, DryRunForm
from gateway.models import BackgroundWork, Channel
from gateway.threeds.exemption_rules import parse_exemption_rules

TRY_PAGE, TRIED_PAGE = "gateway_channel_exemptions_try", "gateway_channel_exemptions_tried"
RIGHT: Final = exemption_trial.VIEW_PAYMENTS_PERMISSION


class ExemptionTrialForm(DryRunForm):
    """The channel, the days, and the rules to try: those of the channel, or others."""

    drafts = None  # type: ignore[assignment]  # as Django documents: the field of the other form is left out
    exemptions = composite_field.CompositeField(ExemptionsWidget(), label=gettext_lazy("Exemptions"))

    def clean(self) -> dict[str, Any]:
        found = super().clean()
        document = found.get("exemptions") or {}
        faults = config_backed_form.validate_section(None, "exemptions", document)
        composite_field.add_input_errors(self, "exemptions", faults)
        if not faults and parse_exemption_rules(document) is None:
            self.add_error("exemptions", _("Choose one exemption at least."))
        return found

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"exemptions": self.cleaned_data["exemptions"]}


def build_trial_urls(page: MerchantPage) -> list[URLPattern]:
    """The addresses of the two pages, below those of channels."""
    view = page.admin_site.admin_view

    def try_rules(request: HttpRequest) -> HttpResponse:
        return _show_form(page, request)

    def tried_rules(request: HttpRequest, work: UUID) -> HttpResponse:
        return _show_result(page, request, work)

    return [
        path("exemptions/", view(try_rules), name=TRY_PAGE),
        path("exemptions/<uuid:work>/", view(tried_rules), name=TRIED_PAGE),
    ]


def _show_form(page: MerchantPage, request: HttpRequest) -> HttpResponse:
    if not permissions.find_access_scope(request.user, RIGHT):
        raise PermissionDenied
    channels = permissions.list_permitted_channels(request.user, RIGHT).select_related("merchant")
    today = datetime.now(UTC).date()
    asked = request.GET.get("channel", "")
    initial = {"since": today - timedelta(days=DEFAULT_DRY_RUN_DAYS), "until": today, "channel": asked}
    # Its rules are configuration: who sees payments alone types others.
    if (chosen := _find_channel(permissions.list_permitted_channels(request.user), asked)) is not None:
        initial["exemptions"] = chosen.exemptions
    form = ExemptionTrialForm(request.POST if request.method == "POST" else None, initial=initial)
    form.fields["channel"].queryset = channels.order_by("merchant__name", "name")  # type: ignore[attr-defined]
    if request.method == "POST" and form.is_valid() and (row := _enqueue(request, form)) is not None:
        return work_start.lead_to_work(row)
    context = {
        **page.admin_site.each_context(request),
        "title": _("Try exemptions on past payments"),
        "opts": page.opts,
        "form": form,
    }
    return TemplateResponse(request, "admin/office/exemptions_try.html", context)


def _find_channel(channels: Any, asked: str) -> Channel | None:
    try:
        ident = UUID(asked)
    except ValueError:
        return None
    found: Channel | None = channels.filter(pk=ident).first()
    return found


def _enqueue(request: HttpRequest, form: ExemptionTrialForm) -> BackgroundWork | None:
    """Start the trial; None, with a message, where the user has too much running."""
    title = _("Exemptions of past payments: %s") % form.cleaned_data["channel"]
    return work_start.enqueue_page_work(
        request, exemption_trial.EXEMPTION_TRIAL, title, form.parameters(), result_page=f"admin:{TRIED_PAGE}"
    )


def _show_result(page: MerchantPage, request: HttpRequest, work: UUID) -> HttpResponse:
    kind = exemption_trial.EXEMPTION_TRIAL.name
    row = BackgroundWork.objects.filter(pk=work, owner=request.user.pk, kind=kind).first()
    if row is None:
        raise Http404
    if not permissions.list_permitted_channels(request.user, RIGHT).filter(pk=row.parameters["channel"]).exists():
        raise PermissionDenied
    found = exemption_trial.summarize_exemptions(row.cursor)
    context = {
        **page.admin_site.each_context(request),
        "title": row.title,
        "opts": page.opts,
        "row": row,
        "cursor": row.cursor,
        "may_export": may_fetch_file(request, row),
        "challenges": sum(each["challenges"] for each in found),
        "sums": [each | {"name": EXEMPTION_NAMES[each["exemption"]]} for each in found],
        "most": exemption_trial.MAX_EXEMPTION_TRIAL_PAYMENTS,
    }
    return TemplateResponse(request, "admin/office/exemptions_tried.html", context)
