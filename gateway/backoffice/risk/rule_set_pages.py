"""Rule sets as forms, saved like ``manage.py configure`` does, with trials over past payments before that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from gateway.backoffice.kit import composite_field, config_backed_form
from gateway.backoffice.kit.composite_field import CompositeField, GroupWidget
from gateway.backoffice.risk.drafted_rules import find_draft
from gateway.backoffice.risk.risk_list_pages import ConfiguredRiskPage
from gateway.backoffice.risk.rule_fields import AVS_INPUTS, CVV_INPUTS, SCORE_INPUTS, RiskRulesWidget
from gateway.backoffice.risk.rule_sentences import describe_rule
from gateway.backoffice.risk.trial_form import TRIAL_PERIOD_FIELDS, RiskTrialForm, TrialInput
from gateway.configuration.section import ConfigurationTarget
from gateway.core import document as d
from gateway.models import RiskSet

_SCORES: Final = tuple(one.name for one in SCORE_INPUTS)
_DEFAULTS: Final[Mapping[str, Any]] = {"title": "", "active": True, "rules": [], "avs": {}, "cvv": {}}
"""Value of a document's member that is absent."""


class RiskSetForm(RiskTrialForm):
    key = forms.CharField(
        label=gettext_lazy("key"),
        max_length=255,
        widget=UnfoldAdminTextInputWidget(),
        help_text=gettext_lazy("What a channel or risk.channelId names it by; it stays."),
    )
    title = forms.CharField(
        label=gettext_lazy("title"), max_length=100, required=False, widget=UnfoldAdminTextInputWidget()
    )
    active = forms.BooleanField(
        label=gettext_lazy("active"), required=False, initial=True, widget=UnfoldBooleanSwitchWidget()
    )
    scores = CompositeField(GroupWidget(SCORE_INPUTS), label=gettext_lazy("score"))
    rules = CompositeField(RiskRulesWidget(), label=gettext_lazy("rules"))
    avs = CompositeField(
        GroupWidget(AVS_INPUTS),
        label=gettext_lazy("address check"),
        help_text=gettext_lazy("What the acquirer's answer leads to once it has approved."),
    )
    cvv = CompositeField(GroupWidget(CVV_INPUTS), label=gettext_lazy("security code check"))

    drafted: ClassVar[Mapping[str, Any] | None] = None
    """A rule that stands at the end of the saved ones, unsaved."""

    class Meta:
        model = RiskSet
        fields = ("merchant",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "rules" not in self.fields:
            return
        kept = {} if self.instance._state.adding else dict(self.instance.document)
        for name in ("key", "title", "rules", "avs", "cvv"):
            self.fields[name].initial = kept.get(name)
        if self.drafted is not None:
            self.fields["rules"].initial = [*kept.get("rules", ()), self.drafted]
        self.fields["active"].initial = kept.get("active", True)
        self.fields["scores"].initial = {name: kept.get(name) for name in _SCORES}
        if not self.instance._state.adding:
            self.fields["key"].disabled = True

    def document(self) -> dict[str, Any]:
        """The rule set as in the configuration document. Members without an input are left as they were."""
        found, kept = self.cleaned_data, {} if self.instance._state.adding else dict(self.instance.document)
        sent = {name: found.get(name) for name in ("key", "title", "active", "rules")}
        sent |= {name: (found.get("scores") or {}).get(name) for name in _SCORES}
        for name, known in (("avs", AVS_INPUTS), ("cvv", CVV_INPUTS)):
            sent[name] = {
                # Outcomes that have no input, and an explicit "accept", are left as they are.
                **{
                    answer: follows
                    for answer, follows in (kept.get(name) or {}).items()
                    if follows == "accept" or answer not in {one.name for one in known}
                },
                **(found.get(name) or {}),
            }
        for name, value in sent.items():
            if value is None or (name in _DEFAULTS and value == _DEFAULTS[name] and name not in kept):
                kept.pop(name, None)
            else:
                kept[name] = value
        return kept

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        self.check_period(found)
        if {"merchant", "key"} & set(self.errors):
            return found
        merchant, own = found.get("merchant") or self.instance.merchant, self.instance
        document = self.document()
        faults = config_backed_form.validate_section(
            ConfigurationTarget(merchant=merchant, channel=None), "risk", {"sets": [document]}
        )
        self._add_document_errors(faults)
        if own._state.adding and RiskSet.objects.filter(merchant=merchant, key=document["key"]).exists():
            self.add_error("key", _("There is such a set already; change that one."))
        return found

    def _add_document_errors(self, faults: d.DocumentFaults) -> None:
        parts: dict[str, d.DocumentFaults] = {}
        for fault in faults:
            path = fault.path.lstrip(".").removeprefix("sets[0]").lstrip(".")
            first = path.partition(".")[0].partition("[")[0]
            name = "scores" if first in _SCORES else first
            if name in ("rules", "avs", "cvv", "scores"):
                parts.setdefault(name, d.DocumentFaults()).add(path, fault.message)
            else:
                words = fault.message if path == first else f"{path}: {fault.message}"
                self.add_error(name if name in self.fields else None, words)
        for name, several in parts.items():
            composite_field.add_input_errors(self, name, several, "" if name == "scores" else name)

    def build_trial_input(self) -> TrialInput:
        return TrialInput(
            merchant=self.cleaned_data.get("merchant") or self.instance.merchant, document=self.document()
        )


@admin.register(RiskSet)
class RiskSetAdmin(ConfiguredRiskPage):
    form = RiskSetForm
    nothing = gettext_lazy("Without a set nothing but the guard against card testing looks at a payment.")
    list_display = ("key", "title", "merchant", "rule_count", "version", "active", "changed_at")
    list_select_related = ("merchant",)
    list_filter = ("active", "merchant")
    search_fields = ("key",)
    autocomplete_fields = ("merchant",)
    readonly_fields = ("in_words", "as_json", "version", "changed_at")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is not None and not self.has_change_permission(request, obj):
            looked = ("merchant", "key", "shown_title", "active", "in_words", "as_json", "version", "changed_at")
            return ((None, {"fields": looked}),)
        saved_fields = () if obj is None else ("version", "changed_at")
        return (
            (None, {"fields": ("merchant", "key", "title", "active", *saved_fields)}),
            (gettext_lazy("Score"), {"fields": ("scores",)}),
            (gettext_lazy("Rules"), {"fields": ("rules",)}),
            (gettext_lazy("After the acquirer has approved"), {"fields": ("avs", "cvv")}),
            (gettext_lazy("Try over past payments"), {"fields": TRIAL_PERIOD_FIELDS}),
            *(() if obj is None else ((gettext_lazy("For manage.py configure"), {"fields": ("as_json",)}),)),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        looks = obj is not None and not self.has_change_permission(request, obj)
        return (*super().get_readonly_fields(request, obj), *(("key", "shown_title", "active") if looks else ()))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form, with the drafted rule that the address names."""
        form = super().get_form(request, obj, change=change, **kwargs)
        drafted = self._find_draft(request)
        return type(form.__name__, (form,), {"drafted": drafted}) if drafted is not None else form

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if self._find_draft(request) is not None:
            messages.info(request, _("A drafted rule stands at the end of the rules. Try it, then save the set."))
        return super().changeform_view(request, *args, **kwargs)

    def _find_draft(self, request: HttpRequest) -> Mapping[str, Any] | None:
        name = request.GET.get("draft") if request.method == "GET" else None
        return find_draft(request.session, name) if name else None

    def build_section_value(self, row: RiskSet, form: forms.ModelForm[Any]) -> dict[str, Any]:
        return {"sets": [form.document()]}  # type: ignore[attr-defined]

    def load_saved_row(self, obj: RiskSet, form: forms.ModelForm[Any]) -> RiskSet:
        return RiskSet.objects.get(merchant=obj.merchant, key=form.document()["key"])  # type: ignore[attr-defined]

    @display(description=gettext_lazy("title"))
    def title(self, row: RiskSet) -> str:
        return str(row.document.get("title", ""))

    @display(description=gettext_lazy("title"))
    def shown_title(self, row: RiskSet) -> str:
        return self.title(row) or "–"

    @display(description=gettext_lazy("rules"))
    def rule_count(self, row: RiskSet) -> int:
        return len(row.document.get("rules", ()))

    @display(description=gettext_lazy("in words"))
    def in_words(self, row: RiskSet) -> SafeString:
        rows = [(rule.get("name", ""), describe_rule(rule)) for rule in row.document.get("rules", ())]
        return format_html_join("", "<div><strong>{}</strong>: {}</div>", rows) or SafeString("–")

    @display(description="JSON")
    def as_json(self, row: RiskSet) -> SafeString:
        text = json.dumps(row.document, indent=2, ensure_ascii=False)
        return format_html('<details><summary>{}</summary><pre class="th-code">{}</pre></details>', _("Show"), text)
