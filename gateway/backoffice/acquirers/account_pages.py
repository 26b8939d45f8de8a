"""Acquirer accounts: forms with the settings of each connector, and secrets that are never shown again.

The section "acquirers" of the configuration document validates a form. Changing an account needs a recent
authentication. Source: docs/routing.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from gateway.backoffice.acquirers import acquirer_health
from gateway.backoffice.kit import config_backed_form
from gateway.backoffice.kit.base import MerchantPage
from gateway.backoffice.kit.composite_field import use_one_line_inputs
from gateway.backoffice.sign_in import session
from gateway.configuration.acquirers import (
    check_account_secrets,
    clear_account_cache_after_commit,
    fits_setting,
    refuse_foreign_secrets,
    refuse_moved_account,
    seal_account_secrets,
)
from gateway.connectors import account_ownership
from gateway.connectors.port import Connector, ConnectorSetting
from gateway.connectors.routing import list_acquirers
from gateway.core import document as d
from gateway.models import AcquirerAccount, Merchant

SETTING_PREFIX, SECRET_PREFIX = "setting_", "secret_"
_WORDS: Final = re.compile(r"[A-Za-z0-9_-]+(\|[A-Za-z0-9_-]+)+")
"""A setting's pattern that lists the allowed words."""
_DOCUMENT: Final = {
    "connector": "connector", "merchant": "acquirer_merchant_id", "name": "name", "brands": "brands",
    "currencies": "currencies", "active": "active",
}  # fmt: skip
"""Member of the document → form field."""


class AcquirerAccountForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """The fields that accounts of every connector have; :func:`build_acquirer_form` adds the connector's own."""

    at: Connector | None = None

    class Meta:
        model = AcquirerAccount
        fields = ("channel", "connector", "name", "acquirer_merchant_id", "brands", "currencies", "active")
        labels = {"acquirer_merchant_id": gettext_lazy("merchant's id there")}
        help_texts = {
            "brands": gettext_lazy("Codes such as VISA,MASTER, with commas; empty: all."),
            "currencies": gettext_lazy("Codes such as EUR,USD, with commas; empty: all."),
            "acquirer_merchant_id": gettext_lazy("Payments keep it: another id is another account."),
            "name": gettext_lazy("What people here call it."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        use_one_line_inputs(self, "brands", "currencies")
        kept = self.instance.settings or {}
        for one in self.at.settings if self.at is not None else ():
            field = self.fields.get(field_name_from_setting(one))
            if field is not None and not one.secret:
                field.initial = kept.get(one.name, one.default)
            elif field is not None:
                field.help_text = f"{one.about} {_describe_stored_secret(self.instance.secrets_set, one.name)}"

    def given(self, *, secret: bool) -> dict[str, str]:
        """Values typed into the connector's own fields, by setting name."""
        own = [one for one in (self.at.settings if self.at is not None else ()) if one.secret == secret]
        typed = {
            one.name: (self.cleaned_data.get(field_name_from_setting(one)) or "").replace("\r\n", "\n") for one in own
        }
        return {name: text for name, text in typed.items() if text}

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if self.errors or self.at is None:
            return found
        own = self.instance
        document = {name: found.get(field, getattr(own, field)) for name, field in _DOCUMENT.items()}
        document |= {"connector": self.at.name, "settings": self.given(secret=False)}
        faults = config_backed_form.validate_section(None, "acquirers", {"accounts": [document]})
        check_account_secrets(self.at, self.given(secret=True), own.secrets_set, "secrets", faults)
        if not own._state.adding:
            refuse_moved_account(self.at, own, document["settings"], "settings", faults)
            if not faults:
                refuse_foreign_secrets(self.at, own, self.given(secret=True), "secrets", faults)
        self._add_document_errors(faults)
        channel, merchant = found.get("channel"), found.get("acquirer_merchant_id")
        if own._state.adding and channel is not None:
            # Serialises with another account of this merchant added at the same moment, here or by a document.
            Merchant.objects.select_for_update(no_key=True).only("id").get(pk=channel.merchant_id)
        there = AcquirerAccount.objects.filter(channel=channel, connector=self.at.name, acquirer_merchant_id=merchant)
        if own._state.adding and channel is not None and there.exists():
            self.add_error("acquirer_merchant_id", _("There is such an account already; change that one."))
        return found

    def _add_document_errors(self, faults: d.DocumentFaults) -> None:
        """Show each error beside its field."""
        for fault in faults:
            first, _dot, name = fault.path.lstrip(".").removeprefix("accounts[0].").partition(".")
            prefix = {"settings": SETTING_PREFIX, "secrets": SECRET_PREFIX}.get(first)
            field = f"{prefix}{name}" if prefix else _DOCUMENT.get(first.partition("[")[0])
            self.add_error(field if field in self.fields else None, fault.message)


class WriteOnlyTextarea(UnfoldAdminTextareaWidget):
    """A text area whose value is never shown, not even after an error."""

    def format_value(self, value: Any) -> str:
        return ""


def field_name_from_setting(setting: ConnectorSetting) -> str:
    """Name of the form field of a connector's setting."""
    return f"{SECRET_PREFIX if setting.secret else SETTING_PREFIX}{setting.name}"


def build_acquirer_form(connector: Connector | None) -> type[AcquirerAccountForm]:
    """The form class for accounts of one connector."""
    fields: dict[str, Any] = {"at": connector}
    for one in connector.settings if connector is not None else ():
        fields[field_name_from_setting(one)] = _build_setting_field(one)
    return type("AcquirerFormOfConnector", (AcquirerAccountForm,), fields)


def _build_setting_field(setting: ConnectorSetting) -> forms.Field:
    """The form field of a setting: choices if its pattern lists words, a text area for PEM."""
    label = setting.name + (" *" if setting.required and not setting.default else "")
    says = f"{setting.about} {_('Allowed: %s.') % setting.allowed}" if setting.allowed else setting.about
    if setting.secret:
        widget: Any = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
        if "PEM" in setting.allowed:  # a password input is one line
            widget = WriteOnlyTextarea(attrs={"rows": 4, "spellcheck": "false", "autocomplete": "off"})
        return forms.CharField(label=label, required=False, widget=widget, help_text=says, strip=False)
    if _WORDS.fullmatch(setting.pattern):
        words = [word.replace("\\", "") for word in setting.pattern.split("|")]
        nothing = [] if setting.default else [("", _("not set"))]
        return forms.ChoiceField(
            label=label,
            required=False,
            choices=[*nothing, *((word, word) for word in words)],
            widget=UnfoldAdminSelectWidget(),
            help_text=setting.about,
        )
    widget = UnfoldAdminTextInputWidget()
    if "PEM" in setting.allowed:
        widget = UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"})
    return forms.CharField(label=label, required=False, widget=widget, help_text=says)


def _describe_stored_secret(secrets: Mapping[str, str], name: str) -> str:
    if name not in secrets:
        return str(_("Not set yet."))
    at = datetime.fromisoformat(secrets[name])
    return _("Set on %s UTC; leave empty to keep it.") % f"{at:%Y-%m-%d %H:%M}"


@admin.register(AcquirerAccount)
class AcquirerAccountAdmin(MerchantPage):
    merchant_path, channel_path = "channel__merchant", "channel"
    form = AcquirerAccountForm
    nothing = gettext_lazy(
        "An account at an acquirer or bank takes the payments of a channel. Test mode INTERNAL needs none."
    )
    list_display = ("__str__", "channel", "connector", "acquirer_merchant_id", "accepted_payments", "active")
    list_select_related = ("channel",)
    list_filter = ("connector", "active")
    search_fields = ("name", "acquirer_merchant_id", "channel__name", "channel__merchant__name")
    autocomplete_fields = ("channel",)
    readonly_fields = ("settings_in_words", "secrets_in_words")
    list_before_template = "admin/office/acquirers_before.html"

    # --- the form of its connector ----------------------------------------------------------------------------------

    def connector(self, request: HttpRequest, row: AcquirerAccount | None) -> Connector | None:
        name = row.connector if row is not None else request.POST.get("connector") or request.GET.get("connector")
        return list_acquirers().get(name or "")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if self._may_write(request, obj):
            kwargs["form"] = build_acquirer_form(self.connector(request, obj))
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        account = ("channel", "connector", "name", "acquirer_merchant_id", "active")
        sets: list[Any] = [(None, {"fields": account}), (_("What it takes"), {"fields": ("brands", "currencies")})]
        if not self._may_write(request, obj):
            words = ("settings_in_words", "secrets_in_words")
            return [*sets, (_("At the processor"), {"fields": words})] if obj is not None else sets
        own = self.connector(request, obj)
        for title, secret in ((_("At the processor"), False), (_("Secrets"), True)):
            names = tuple(
                field_name_from_setting(one)
                for one in (own.settings if own is not None else ())
                if one.secret == secret
            )
            if names:
                sets.append((title, {"fields": names}))
        return sets

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Channel, connector and acquirer id cannot change: payments name their account by them."""
        fixed = () if obj is None else ("channel", "connector", "acquirer_merchant_id")
        return (*self.readonly_fields, *fixed)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "connector" and field is not None:
            chosen = self.connector(request, None)
            field.widget = forms.HiddenInput()
            field.initial = chosen.name if chosen is not None else ""
        return field

    def _may_write(self, request: HttpRequest, obj: Any) -> bool:
        return self.has_add_permission(request) if obj is None else self.has_change_permission(request, obj)

    # --- pages ------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.health_view)
        return [path("health/", view, name="gateway_acquireraccount_health"), *super().get_urls()]

    def health_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": _("Health of the acquirers"),
            "opts": self.opts,
            **acquirer_health.build_health_context(request),
        }
        return TemplateResponse(request, "admin/office/health.html", context)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        adds = object_id is None
        if adds and self.has_add_permission(request) and self.connector(request, None) is None:
            return self._render_connector_choice(request)
        row = None if object_id is None else self.get_object(request, object_id)
        may = self.has_add_permission(request) if adds else row is not None and self._may_write(request, row)
        if may and (ask := session.require_reauthentication(request)) is not None:
            return ask
        if row is not None and may and request.method == "POST":
            self._check_secret_owner(request, row)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _check_secret_owner(self, request: HttpRequest, row: AcquirerAccount) -> None:
        """Ask the processor whose account new secrets belong to, before the transaction that saves them."""
        own = self.connector(request, row)
        if own is None:
            return
        typed = {one.name: request.POST.get(field_name_from_setting(one), "") for one in own.settings if one.secret}
        given = {name: text.replace("\r\n", "\n") for name, text in typed.items() if text}
        secrets = {one.name: one for one in own.settings}
        if all(fits_setting(secrets[name], text) for name, text in given.items()):
            account_ownership.check_ownership(own, row, given)

    def _render_connector_choice(self, request: HttpRequest) -> HttpResponse:
        """The page that chooses the connector, whose settings the form then has."""
        found = [
            {
                "name": one.name,
                "operations": ", ".join(sorted(one.operations)),
                "settings": len(one.settings),
                "means": ", ".join(sorted(kind for kind in one.takes if kind)),
            }
            for one in list_acquirers().values()
        ]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Add an acquirer account"),
            "opts": self.opts,
            "connectors": found,
            "popup": "_popup" in request.GET,
        }
        return TemplateResponse(request, "admin/office/acquirer_new.html", context)

    def save_model(self, request: HttpRequest, obj: AcquirerAccount, form: Any, change: bool) -> None:
        given: dict[str, str] = {}
        if form.at is not None:
            obj.settings, given = form.given(secret=False), form.given(secret=True)
            seal_account_secrets(obj, given)
        super().save_model(request, obj, form, change)
        if given:
            self.record(request, "set secrets", obj, after={"secrets": sorted(given)})
        clear_account_cache_after_commit()

    # --- what is shown ----------------------------------------------------------------------------------------------

    @display(description=gettext_lazy("takes"))
    def accepted_payments(self, row: AcquirerAccount) -> str:
        return f"{', '.join(row.brands) or _('all brands')} · {', '.join(row.currencies) or _('all currencies')}"

    @display(description=gettext_lazy("settings"))
    def settings_in_words(self, row: AcquirerAccount) -> SafeString:
        rows = sorted(row.settings.items())
        return format_html_join("", "<div><strong>{}</strong>: {}</div>", rows) or SafeString("–")

    @display(description=gettext_lazy("secrets"))
    def secrets_in_words(self, row: AcquirerAccount) -> SafeString:
        rows = [(name, _describe_stored_secret(row.secrets_set, name)) for name in sorted(row.secrets_set)]
        return format_html_join("", "<div><strong>{}</strong>: {}</div>", rows) or SafeString("–")
