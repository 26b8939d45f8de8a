"""Trials of changed rules or lists over past payments, started from their form without saving it.

Source: docs/decisions/0039.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, cast

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from gateway.access import permissions
from gateway.background import queue
from gateway.backoffice.kit.base import MerchantPage, actor_from_request
from gateway.backoffice.kit.work_start import report_too_much_work
from gateway.backoffice.risk import rule_trials
from gateway.backoffice.risk.rule_trials import MAX_TRIAL_DAYS, TrialRequest, TrialTooLongError
from gateway.core import clock
from gateway.models import Merchant

TRY_BUTTON: Final = "_try"
"""Name of the button that starts a trial instead of saving."""
TRIAL_PERIOD_FIELDS: Final = ("trial_from", "trial_to", "trial_of")
TRIAL_SCREENED_ONLY, TRIAL_WHOLE_MERCHANT = "own", "whole"
DEFAULT_TRIAL_DAYS: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialInput:
    """The unsaved rule set or lists of a form."""

    merchant: Merchant
    document: Mapping[str, Any]
    lists: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class RiskTrialForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Chooses the payments of a trial. The rest of the form is the input of the trial."""

    trial_from = forms.DateField(
        label=gettext_lazy("from (UTC)"), required=False, widget=UnfoldAdminTextInputWidget(attrs={"type": "date"})
    )
    trial_to = forms.DateField(
        label=gettext_lazy("to, that day included (UTC)"),
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"type": "date"}),
        help_text=gettext_lazy("At most 92 days."),
    )
    trial_of = forms.ChoiceField(
        label=gettext_lazy("payments"),
        required=False,
        widget=UnfoldAdminSelectWidget(),
        choices=[
            (TRIAL_SCREENED_ONLY, gettext_lazy("those that the set screens today")),
            (TRIAL_WHOLE_MERCHANT, gettext_lazy("all of the merchant")),
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "trial_from" in self.fields:
            today = clock.real_now().date()
            self.fields["trial_from"].initial = (today - timedelta(days=DEFAULT_TRIAL_DAYS - 1)).isoformat()
            self.fields["trial_to"].initial = today.isoformat()

    @property
    def is_trial(self) -> bool:
        """Whether the form was sent to start a trial."""
        return TRY_BUTTON in self.data

    def check_period(self, found: Mapping[str, Any]) -> None:
        """Add an error if the period is invalid."""
        if not self.is_trial:
            return
        since, until = found.get("trial_from"), found.get("trial_to")
        for name, value in (("trial_from", since), ("trial_to", until)):
            if value is None and name not in self.errors:
                self.add_error(name, _("Give a day, such as 2026-05-14."))
        if since is not None and until is not None:
            if until < since:
                self.add_error("trial_to", _("This day is before the first one."))
            elif (until - since).days >= MAX_TRIAL_DAYS:
                self.add_error("trial_to", _("A trial goes over at most %d days.") % MAX_TRIAL_DAYS)

    def period(self) -> tuple[datetime, datetime]:
        since, until = self.cleaned_data["trial_from"], self.cleaned_data["trial_to"]
        return _to_midnight(since), _to_midnight(until + timedelta(days=1))

    def build_trial_input(self) -> TrialInput:
        """The input of the trial; the form must be valid."""
        raise NotImplementedError


def _to_midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


class RiskTrialFormPage(MerchantPage):
    """A page whose form is a RiskTrialForm."""

    change_form_after_template = "admin/clerk/try_rules.html"

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method == "POST" and TRY_BUTTON in request.POST:
            answer = self._start_trial(request, object_id)
            if answer is not None:
                return answer
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _start_trial(self, request: HttpRequest, object_id: str | None) -> HttpResponse | None:
        """Start the trial and redirect to its page; None if the form has errors: it is shown with them, and nothing is
        saved."""
        row = self.get_object(request, unquote(object_id)) if object_id is not None else None
        if object_id is not None and row is None:
            raise Http404
        if not (self.has_change_permission(request, row) if row is not None else self.has_add_permission(request)):
            raise PermissionDenied
        form = cast(RiskTrialForm, self.get_form(request, row, change=row is not None)(request.POST, instance=row))
        if not form.is_valid():
            return None
        tried = form.build_trial_input()
        self.require_trial_permission(request, tried.merchant)
        since, until = form.period()
        wanted = TrialRequest(
            merchant=tried.merchant,
            document=tried.document,
            lists=tried.lists,
            since=since,
            until=until,
            whole=form.cleaned_data["trial_of"] == TRIAL_WHOLE_MERCHANT,
        )
        here = redirect(request.path)
        try:
            title = _("Trial of %s") % tried.document["key"]
            trial = rule_trials.start_risk_trial(
                wanted, title, owner=int(request.user.pk or 0), by=actor_from_request(request)
            )
        except TrialTooLongError:
            messages.error(
                request,
                _("The period, and what velocities look back on, holds more than %d payments. Choose a shorter one.")
                % rule_trials.MAX_TRIAL_PAYMENTS,
            )
            return here
        except queue.TooMuchOpenWorkError:
            report_too_much_work(request)
            return redirect(reverse("admin:gateway_backgroundwork_changelist"))
        return redirect(reverse("admin:gateway_risktrial_change", args=[trial.pk]))

    def require_trial_permission(self, request: HttpRequest, merchant: Merchant) -> None:
        """Raise PermissionDenied unless the user may view trials of the merchant, which show more than the form."""
        if not permissions.has_permission(request.user, rule_trials.VIEW_RISK_TRIAL_PERMISSION, merchant):
            raise PermissionDenied
