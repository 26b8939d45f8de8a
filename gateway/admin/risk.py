"""Rule sets and lists, saved as ``manage.py configure`` saves them: by the same section of the configuration."""

from __future__ import annotations

import json
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
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway import document as d
from gateway.admin import agreeing
from gateway.admin.kit import OfMerchant, actor
from gateway.configuration.apply import configure
from gateway.configuration.section import Target
from gateway.models import RiskList, RiskSet

MOST_SHOWN: Final = 1_000
EXAMPLE: Final[dict[str, Any]] = {
    "key": "EVERYDAY", "title": "Everyday", "reviewFrom": 50, "declineFrom": 100,
    "rules": [{"name": "throw-away address", "when": {"kind": "disposable-email"}, "then": {"score": 40}}],
}  # fmt: skip


class RiskSetForm(forms.ModelForm):
    document = forms.JSONField(
        label=gettext_lazy("rules"), widget=UnfoldAdminTextareaWidget(attrs={"rows": 28, "spellcheck": "false"}),
        help_text=gettext_lazy("As docs/risk.md describes it; every fault is told at once, and nothing is saved then."),
    )  # fmt: skip

    class Meta:
        model = RiskSet
        fields = ("merchant", "document")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "document" in self.fields:
            self.fields["document"].encoder = Indented
            if self.instance._state.adding:
                self.fields["document"].initial = EXAMPLE

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if self.errors:
            return found
        merchant = found.get("merchant") or self.instance.merchant
        document, own = found["document"], self.instance
        if not own._state.adding and isinstance(document, dict) and document.get("key") != own.key:
            self.add_error("document", _("key: must stay %s; a set with another key is another set.") % own.key)
            return found
        value = {"sets": [document]}
        agreeing.tell(self, agreeing.faults_of(Target(merchant=merchant, channel=None), "risk", value), {}, "document")
        key = str(document.get("key")) if isinstance(document, dict) else ""
        if own._state.adding and RiskSet.objects.filter(merchant=merchant, key=key).exists():
            self.add_error("document", _("key: there is such a set already; change that one."))
        return found


class Indented(json.JSONEncoder):
    """JSON that people read."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "indent": 2, "ensure_ascii": False})


class Configured(OfMerchant):
    """Rows of a merchant that are saved through the section "risk" of the configuration; its audit entry is theirs."""

    channel_path = None

    def value(self, row: Any, form: forms.ModelForm) -> dict[str, Any]:
        """What the section is given."""
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm, change: bool) -> None:
        if not self.may(request, "change" if change else "add", obj):
            raise PermissionDenied
        target = Target(merchant=obj.merchant, channel=None)
        try:
            configure(target, {"risk": self.value(obj, form)}, by=actor(request))
        except d.Unreadable as fault:  # somebody else changed a list or a set meanwhile
            raise PermissionDenied(str(fault)) from None
        found = self.kept(obj, form)
        obj.pk, obj._state.adding = found.pk, False
        obj.refresh_from_db()

    def kept(self, obj: Any, form: forms.ModelForm) -> Any:
        """The row as it was saved."""
        raise NotImplementedError

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return tuple(self.readonly_fields) if obj is None else (*self.readonly_fields, "merchant")


@admin.register(RiskSet)
class RiskSetAdmin(Configured):
    form = RiskSetForm
    list_display = ("key", "title", "merchant", "rule_count", "version", "active", "changed_at")
    list_select_related = ("merchant",)
    list_filter = ("active", "merchant")
    search_fields = ("key",)
    autocomplete_fields = ("merchant",)
    fields = ("merchant", "in_words", "document", "version", "changed_at")
    readonly_fields = ("in_words", "version", "changed_at")

    def value(self, row: RiskSet, form: forms.ModelForm) -> dict[str, Any]:
        return {"sets": [form.cleaned_data["document"]]}

    def kept(self, obj: RiskSet, form: forms.ModelForm) -> RiskSet:
        return RiskSet.objects.get(merchant=obj.merchant, key=form.cleaned_data["document"]["key"])

    @display(description=gettext_lazy("title"))
    def title(self, row: RiskSet) -> str:
        return str(row.document.get("title", ""))

    @display(description=gettext_lazy("rules"))
    def rule_count(self, row: RiskSet) -> int:
        return len(row.document.get("rules", ()))

    @display(description=gettext_lazy("in words"))
    def in_words(self, row: RiskSet) -> SafeString:
        rows = [(rule.get("name", ""), _told(rule.get("when")), _told(rule.get("then")))
                for rule in row.document.get("rules", ())]  # fmt: skip
        return format_html_join("", "<div><strong>{}</strong>: {} → {}</div>", rows) or SafeString("–")


def _told(value: Any) -> str:
    """A part of a rule on one line."""
    if isinstance(value, list):
        return f" {_('and')} ".join(_told(each) for each in value)
    if not isinstance(value, dict):
        return str(value)
    return ", ".join(
        f"{name} {', '.join(map(str, one)) if isinstance(one, list) else one}" for name, one in value.items()
    )


class RiskListForm(forms.ModelForm):
    lines = forms.CharField(
        label=gettext_lazy("entries"), required=False, strip=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 16, "spellcheck": "false"}),
        help_text=gettext_lazy("One a line; the list becomes what stands here. An account: the id of its payment."),
    )  # fmt: skip

    class Meta:
        model = RiskList
        fields = ("merchant", "name", "field")
        help_texts = {"field": gettext_lazy("Such as customer.email, customer.ip, account.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "lines" in self.fields and not self.instance._state.adding:
            self.fields["lines"].initial = "\n".join(entry.value for entry in self.instance.entries.all())

    def document(self) -> dict[str, Any]:
        found = self.cleaned_data
        lines = [line.strip() for line in found.get("lines", "").splitlines()]
        name = found.get("name") or self.instance.name
        return {"name": name, "field": found.get("field"), "entries": [line for line in lines if line]}

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if self.errors:
            return found
        merchant = found.get("merchant") or self.instance.merchant
        faults = agreeing.faults_of(Target(merchant=merchant, channel=None), "risk", {"lists": [self.document()]})
        for fault in faults:
            path = fault.path.lstrip(".").removeprefix("lists[0].")
            name = {"name": "name", "field": "field"}.get(path, "lines")
            self.add_error(name if name in self.fields else None, f"{path}: {fault.message}")
        if self.instance._state.adding and RiskList.objects.filter(merchant=merchant, name=found.get("name")).exists():
            self.add_error("name", _("There is such a list already; change that one."))
        return found


@admin.register(RiskList)
class RiskListAdmin(Configured):
    form = RiskListForm
    list_display = ("name", "field", "merchant", "entry_count")
    list_select_related = ("merchant",)
    list_filter = ("merchant",)
    search_fields = ("name", "field")
    autocomplete_fields = ("merchant",)
    fields = ("merchant", "name", "field", "lines")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RiskList]:
        return super().get_queryset(request).annotate(counted=Count("entries"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        looks = obj is not None and not self.has_change_permission(request, obj)
        return ("merchant", "name", "field", "values") if looks else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("values",) if obj is None else ("merchant", "name", "values")

    def value(self, row: RiskList, form: forms.ModelForm) -> dict[str, Any]:
        return {"lists": [form.document()]}  # type: ignore[attr-defined]

    def kept(self, obj: RiskList, form: forms.ModelForm) -> RiskList:
        return RiskList.objects.get(merchant=obj.merchant, name=form.document()["name"])  # type: ignore[attr-defined]

    @display(description=gettext_lazy("entries"), ordering="counted")
    def entry_count(self, row: RiskList) -> int:
        return int(row.counted)  # type: ignore[attr-defined]

    @display(description=gettext_lazy("entries"))
    def values(self, row: RiskList) -> SafeString:
        return format_html_join("", "<div>{}</div>", ((entry.value,) for entry in row.entries.all()[:MOST_SHOWN]))
