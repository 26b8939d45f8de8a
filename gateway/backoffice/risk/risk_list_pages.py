"""Risk lists, saved by the same section of the configuration as ``manage.py configure``.

Rule sets are in gateway.backoffice.risk.rule_set_pages.
"""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from gateway.backoffice.kit import config_backed_form
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.risk.trial_form import TRIAL_PERIOD_FIELDS, RiskTrialForm, RiskTrialFormPage, TrialInput
from gateway.configuration.apply import apply_configuration
from gateway.configuration.section import ConfigurationTarget
from gateway.core import document as d
from gateway.models import RiskList, RiskSet

MAX_SHOWN_ENTRIES: Final = 1_000


class ConfiguredRiskPage(RiskTrialFormPage):
    """A page whose rows are saved through the section "risk" of the configuration, which writes the audit entry."""

    channel_path = None

    def build_section_value(self, row: Any, form: forms.ModelForm[Any]) -> dict[str, Any]:
        """The row as the section's value."""
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm[Any], change: bool) -> None:
        if not self.may(request, "change" if change else "add", obj):
            raise PermissionDenied
        target = ConfigurationTarget(merchant=obj.merchant, channel=None)
        try:
            apply_configuration(target, {"risk": self.build_section_value(obj, form)}, by=actor_from_request(request))
        except d.InvalidDocumentError as fault:  # somebody else changed a list or a set meanwhile
            raise PermissionDenied(str(fault)) from None
        found = self.load_saved_row(obj, form)
        obj.pk, obj._state.adding = found.pk, False
        obj.refresh_from_db()

    def load_saved_row(self, obj: Any, form: forms.ModelForm[Any]) -> Any:
        """The row as it was saved."""
        raise NotImplementedError

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return tuple(self.readonly_fields) if obj is None else (*self.readonly_fields, "merchant")


class RiskListForm(RiskTrialForm):
    lines = forms.CharField(
        label=gettext_lazy("entries"),
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 16, "spellcheck": "false"}),
        help_text=gettext_lazy("One a line; the list becomes what stands here. An account: the id of its payment."),
    )

    class Meta:
        model = RiskList
        fields = ("merchant", "name", "field")
        help_texts = {"field": gettext_lazy("Such as customer.email, customer.ip, account.")}

    trial_set = forms.ChoiceField(
        label=gettext_lazy("with the rule set"),
        required=False,
        widget=UnfoldAdminSelectWidget(),
        help_text=gettext_lazy("Sets whose rules name this list."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "trial_set" in self.fields:
            self._sets = [] if self.instance._state.adding else list_rule_sets_with(self.instance)
            sets_field = self.fields["trial_set"]
            assert isinstance(sets_field, forms.ChoiceField)
            sets_field.choices = [(row.key, str(row)) for row in self._sets]
        if "lines" in self.fields and not self.instance._state.adding:
            self.fields["lines"].initial = "\n".join(entry.value for entry in self.instance.entries.all())

    def document(self) -> dict[str, Any]:
        found = self.cleaned_data
        lines = [line.strip() for line in found.get("lines", "").splitlines()]
        name = found.get("name") or self.instance.name
        return {"name": name, "field": found.get("field"), "entries": [line for line in lines if line]}

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        self.check_period(found)
        if self.is_trial and not found.get("trial_set"):
            self.add_error("trial_set", _("No rule names this list: it decides nothing yet."))
        if self.errors:
            return found
        merchant = found.get("merchant") or self.instance.merchant
        faults = config_backed_form.validate_section(
            ConfigurationTarget(merchant=merchant, channel=None), "risk", {"lists": [self.document()]}
        )
        for fault in faults:
            path = fault.path.lstrip(".").removeprefix("lists[0].")
            name = {"name": "name", "field": "field"}.get(path, "lines")
            self.add_error(name if name in self.fields else None, f"{path}: {fault.message}")
        if self.instance._state.adding and RiskList.objects.filter(merchant=merchant, name=found.get("name")).exists():
            self.add_error("name", _("There is such a list already; change that one."))
        return found

    def build_trial_input(self) -> TrialInput:
        chosen = next(row for row in self._sets if row.key == self.cleaned_data["trial_set"])
        document = self.document()
        return TrialInput(
            merchant=self.instance.merchant,
            document=chosen.document,
            lists={document["name"]: {"field": document["field"], "entries": document["entries"]}},
        )


def list_rule_sets_with(row: RiskList) -> list[RiskSet]:
    """The merchant's rule sets that have a rule about this list."""

    def named(rules: Any) -> bool:
        conditions = [
            one for rule in rules for one in (rule["when"] if isinstance(rule["when"], list) else [rule["when"]])
        ]
        return any(one.get("list") == row.name for one in conditions)

    return [one for one in RiskSet.objects.filter(merchant=row.merchant) if named(one.document.get("rules", ()))]


@admin.register(RiskList)
class RiskListAdmin(ConfiguredRiskPage):
    form = RiskListForm
    nothing = gettext_lazy(
        "A list holds e-mail addresses, networks, accounts or customers that rules name: to let through, or to stop."
    )
    list_display = ("name", "field", "merchant", "entry_count")
    list_select_related = ("merchant",)
    list_filter = ("merchant",)
    search_fields = ("name", "field")
    autocomplete_fields = ("merchant",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[RiskList]:
        rows: QuerySet[RiskList] = super().get_queryset(request)
        return rows.annotate(counted=Count("entries"))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None and not self.has_change_permission(request, obj):
            return ((None, {"fields": ("merchant", "name", "field", "values")}),)
        own = (None, {"fields": ("merchant", "name", "field", "lines")})
        tried = (gettext_lazy("Try over past payments"), {"fields": ("trial_set", *TRIAL_PERIOD_FIELDS)})
        return (own,) if obj is None else (own, tried)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("values",) if obj is None else ("merchant", "name", "values")

    def build_section_value(self, row: RiskList, form: forms.ModelForm[Any]) -> dict[str, Any]:
        return {"lists": [form.document()]}  # type: ignore[attr-defined]

    def load_saved_row(self, obj: RiskList, form: forms.ModelForm[Any]) -> RiskList:
        return RiskList.objects.get(merchant=obj.merchant, name=form.document()["name"])  # type: ignore[attr-defined]

    @display(description=gettext_lazy("entries"), ordering="counted")
    def entry_count(self, row: RiskList) -> int:
        return int(row.counted)  # type: ignore[attr-defined]

    @display(description=gettext_lazy("entries"))
    def values(self, row: RiskList) -> SafeString:
        return format_html_join(
            "", "<div>{}</div>", ((entry.value,) for entry in row.entries.all()[:MAX_SHOWN_ENTRIES])
        )
