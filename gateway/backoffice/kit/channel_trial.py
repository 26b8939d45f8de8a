"""Trials of a channel's configuration on its past payments: a page with the form, and one that shows what was found."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Final
from uuid import UUID

from django import forms
from django.core.exceptions import PermissionDenied
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.access import permissions
from gateway.background.queue import WorkKind
from gateway.backoffice.kit import work_start
from gateway.backoffice.kit.base import BackofficePage
from gateway.backoffice.kit.entity_names import TypedChannelField
from gateway.core import clock
from gateway.models import BackgroundWork, Channel

MAX_CHANNEL_TRIAL_DAYS: Final = 366
DEFAULT_CHANNEL_TRIAL_DAYS: Final = 30


def _day_field(label: Any) -> forms.DateField:
    """A day of this century, in ISO 8601: a browser's date input takes nothing else, whatever the reader's language."""
    return forms.DateField(
        label=label,
        widget=forms.DateInput({"type": "date"}, "%Y-%m-%d"),
        validators=[MinValueValidator(date(2000, 1, 1)), MaxValueValidator(date(2099, 12, 31))],
    )


class ChannelTrialForm(forms.Form):
    """The channel, and the days whose payments are tried."""

    channel = TypedChannelField(Channel.objects.none(), label=gettext_lazy("Channel"))
    since = _day_field(gettext_lazy("From (UTC)"))
    until = _day_field(gettext_lazy("To, included"))
    all = forms.BooleanField(label=gettext_lazy("Payments of the simulator too (INTERNAL)"), required=False)

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        since, until = found.get("since"), found.get("until")
        if (
            since is not None
            and until is not None
            and not timedelta(0) <= until - since < timedelta(days=MAX_CHANNEL_TRIAL_DAYS)
        ):
            self.add_error("until", _("Give a day from the first on, at most %d days.") % MAX_CHANNEL_TRIAL_DAYS)
        return found

    def parameters(self) -> dict[str, Any]:
        """The parameters of the background work."""
        found = self.cleaned_data
        begins, ends = clock.bound_days(found["since"], found["until"], UTC)
        return {
            "channel": found["channel"].pk.hex,
            "from": begins.isoformat(),
            "to": ends.isoformat(),
            "all": found["all"],
        }


class ChannelTrial:
    """The two pages of a trial, below the addresses of ``page``. Who has the right of ``kind`` sees them.

    ``name``: of the templates, ``NAME_try.html`` and ``NAME_tried.html``. ``try_page`` and ``tried_page``: URL names.
    ``work_title``: the title of the background work, with the channel's name. ``days``: of the period that the form
    offers first.
    """

    kind: ClassVar[WorkKind]
    form: ClassVar[type[ChannelTrialForm]]
    name: ClassVar[str]
    try_page: ClassVar[str]
    tried_page: ClassVar[str]
    title: ClassVar[Promise]
    work_title: ClassVar[Promise]
    days: ClassVar[int] = DEFAULT_CHANNEL_TRIAL_DAYS

    def __init__(self, page: BackofficePage) -> None:
        self.page = page

    def list_initial_values(self, request: HttpRequest, channel: str) -> dict[str, Any]:
        """What the form has at first for a ``channel``, besides it and the days."""
        return {}

    def describe_result(self, request: HttpRequest, row: BackgroundWork) -> dict[str, Any]:
        """What the template of the result shows."""
        raise NotImplementedError

    def build_urls(self, try_path: str, tried_path: str) -> list[URLPattern]:
        view = self.page.admin_site.admin_view
        return [
            path(try_path, view(self.try_view), name=self.try_page),
            path(tried_path, view(self.tried_view), name=self.tried_page),
        ]

    def try_view(self, request: HttpRequest) -> HttpResponse:
        if not permissions.has_permission(request.user, self.kind.right):
            raise PermissionDenied
        today, channel = datetime.now(UTC).date(), request.GET.get("channel", "")
        initial = {"since": today - timedelta(days=self.days), "until": today, "channel": channel}
        form = self.form(
            request.POST if request.method == "POST" else None,
            initial=initial | self.list_initial_values(request, channel),
        )
        channels = permissions.list_permitted_channels(request.user, self.kind.right).select_related("merchant")
        form.fields["channel"].queryset = channels.order_by("merchant__name", "name")  # type: ignore[attr-defined]
        if request.method == "POST" and form.is_valid() and (row := self._enqueue(request, form)) is not None:
            return work_start.lead_to_work(row)
        return self._render(request, "try", {"title": self.title, "form": form})

    def tried_view(self, request: HttpRequest, work: UUID) -> HttpResponse:
        row = BackgroundWork.objects.filter(pk=work, owner=request.user.pk, kind=self.kind.name).first()
        if row is None:
            raise Http404
        channels = permissions.list_permitted_channels(request.user, self.kind.right)
        if not channels.filter(pk=row.parameters["channel"]).exists():
            raise PermissionDenied
        return self._render(request, "tried", {"title": row.title, "row": row, **self.describe_result(request, row)})

    def _enqueue(self, request: HttpRequest, form: ChannelTrialForm) -> BackgroundWork | None:
        """Start the trial; None, with a message, where the user has too much running."""
        title = str(self.work_title) % form.cleaned_data["channel"]
        return work_start.enqueue_page_work(
            request, self.kind, title, form.parameters(), result_page=f"admin:{self.tried_page}"
        )

    def _render(self, request: HttpRequest, step: str, fields: dict[str, Any]) -> HttpResponse:
        context = {**self.page.admin_site.each_context(request), "opts": self.page.opts, **fields}
        return TemplateResponse(request, f"admin/office/{self.name}_{step}.html", context)
