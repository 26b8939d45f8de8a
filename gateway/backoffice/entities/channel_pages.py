"""Channels with their settings: accepted brands and currencies, 3-D Secure, wallet keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, URLPattern, reverse
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminSelectWidget

from gateway.backoffice.entities.exemption_fields import ExemptionsWidget
from gateway.backoffice.entities.exemption_trial_pages import ExemptionTrial
from gateway.backoffice.entities.limit_fields import AuthorizationDaysField, CardTestingWidget, RequestLimitsWidget
from gateway.backoffice.entities.requestor_fields import RequestorsWidget
from gateway.backoffice.kit import composite_field, config_backed_form
from gateway.backoffice.kit.base import MerchantPage
from gateway.backoffice.kit.composite_field import CompositeField, use_one_line_inputs
from gateway.core import document as d
from gateway.models import Channel, RiskSet, ThreeDSecureConfiguration, WalletKey, WebhookEndpoint
from gateway.payments.exempting import loses_soft_declines
from gateway.threeds.server_setup import (
    find_server_secret_fault,
    find_server_url_fault,
    is_threeds_server_missing,
    set_server_secret,
)

MAX_SHOWN_CODES: Final = 6
_CHANNEL: Final = {
    "name": "name", "active": "active", "position": "position", "brands": "brands",
    "brandOrder": "brand_order", "currencies": "currencies",
    "parameters": "parameters", "cvvRequired": "cvv_required", "refuseDuplicates": "refuse_duplicates",
    "descriptor": "descriptor",
    "maskCardData": "mask_card_data", "authorizationKind": "authorization_kind",
    "authorizationDays": "authorization_days", "expiredCaptures": "expired_captures",
    "partialApprovals": "partial_approvals", "retryTiming": "retry_timing", "reversalHours": "reversal_hours",
    "networkTokens": "network_tokens", "accountUpdater": "account_updater",
}  # fmt: skip
_THREEDS: Final = {
    "networks": "networks", "requestors": "requestors", "onUnavailable": "on_unavailable", "onAttempt": "on_attempt",
    "challengeIndicator": "challenge_indicator", "challengeMinutes": "challenge_minutes", "method": "method",
    "website": "requestor_url", "merchantCategoryCode": "merchant_category_code",
    "merchantCountry": "merchant_country", "onSoftDecline": "on_soft_decline",
}  # fmt: skip
"""Member of the document → form field."""


OPERATE_THREEDS_SERVER_PERMISSION: Final = "gateway.operate_threedsserver"
NO_SERVER_TEXT: Final = gettext_lazy(
    "In the live environment a channel authenticates only with a 3DS server: give its address and secret on the page "
    "3-D Secure first."
)
NO_SERVER_NOTICE: Final = gettext_lazy(
    "3-D Secure is on and no 3DS server stands behind this channel: every payment that it would authenticate is "
    "declined with 100.390.106. Give the server's address and secret on the page 3-D Secure."
)
LOST_SOFT_DECLINES_NOTICE: Final = gettext_lazy(
    "Exemptions are asked for at the authorization, and no challenge follows a soft decline: such payments are lost. "
    "Switch the challenge on, on the page 3-D Secure."
)


class ChannelForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    time_zone = forms.ChoiceField(
        label=gettext_lazy("time zone"),
        required=False,
        widget=UnfoldAdminSelectWidget(),
        choices=[("", gettext_lazy("the merchant's")), *((name, name) for name in sorted(available_timezones()))],
        help_text=gettext_lazy("Subscription jobs follow it."),
    )
    authorization_days = AuthorizationDaysField(
        label=gettext_lazy("days that an authorization is valid"),
        required=False,
        help_text=gettext_lazy(
            "Where they differ from the schemes' own: VISA=7, MASTER=30, *=10 for every other brand, none for no end."
        ),
    )
    limits = CompositeField(RequestLimitsWidget(), label=gettext_lazy("requests"))
    card_testing = CompositeField(CardTestingWidget(), label=gettext_lazy("guard against card testing"))
    exemptions = CompositeField(
        ExemptionsWidget(),
        label=gettext_lazy("exemptions"),
        help_text=gettext_lazy("Of payments with 3-D Secure. What a request itself asks for goes first."),
    )

    class Meta:
        model = Channel
        fields = (
            "merchant",
            "name",
            "active",
            "position",
            "time_zone",
            "brands",
            "brand_order",
            "currencies",
            "parameters",
            "three_d_secure",
            "cvv_required",
            "refuse_duplicates",
            "mask_card_data",
            "descriptor",
            "authorization_kind",
            "authorization_days",
            "expired_captures",
            "partial_approvals",
            "retry_timing",
            "reversal_hours",
            "agreement_ids",
            "external_references",
            "registration_days",
            "network_tokens",
            "account_updater",
            "risk_set",
            "card_testing",
            "exemptions",
            "limits",
        )
        help_texts = {
            "brands": gettext_lazy("Codes such as VISA,MASTER, with commas; empty: all."),
            "brand_order": gettext_lazy(
                "CARTEBANCAIRE,VISA: which brand of a card with two is chosen until the shopper chooses. "
                "Empty: the scheme."
            ),
            "currencies": gettext_lazy("Codes such as EUR,USD, with commas; empty: all."),
            "reversal_hours": gettext_lazy("Later a debit or capture is refunded. 0: until it is settled."),
            "network_tokens": gettext_lazy(
                "Stored cards get one, and payments with them are sent with it where the acquirer takes one."
            ),
            "account_updater": gettext_lazy(
                "The card networks are asked for new numbers and dates of stored cards, and which are closed."
            ),
        }
        labels = {
            "brand_order": gettext_lazy("brand order of co-badged cards"),
            "authorization_kind": gettext_lazy("what a PA says of its amount"),
            "expired_captures": gettext_lazy("a capture after expiry"),
            "partial_approvals": gettext_lazy("an approval for less than was asked for"),
            "retry_timing": gettext_lazy("when a declined subscription charge is tried again"),
            "reversal_hours": gettext_lazy("hours that a debit may be reversed"),
            "network_tokens": gettext_lazy("network tokens"),
            "account_updater": gettext_lazy("account updater"),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        use_one_line_inputs(self, "brands", "brand_order", "currencies")

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if self.errors:
            return found
        document = {name: found[field] for name, field in _CHANNEL.items() if field in found}
        config_backed_form.add_section_errors(
            self, config_backed_form.validate_section(None, "channel", document), _CHANNEL
        )
        composite_field.add_input_errors(
            self, "limits", config_backed_form.validate_section(None, "limits", found.get("limits") or {})
        )
        composite_field.add_input_errors(
            self,
            "card_testing",
            config_backed_form.validate_section(None, "cardTesting", found.get("card_testing") or {}),
        )
        composite_field.add_input_errors(
            self,
            "exemptions",
            config_backed_form.validate_section(None, "exemptions", found.get("exemptions") or {}),
        )
        merchant = found.get("merchant") or getattr(self.instance, "merchant", None)
        key = found.get("risk_set")
        if key and not RiskSet.objects.filter(merchant=merchant, key=key, active=True).exists():
            known = RiskSet.objects.filter(merchant=merchant, active=True).values_list("key", flat=True)
            there = _("there are %s") % ", ".join(known) if known else _("there is none")
            self.add_error("risk_set", _("This is no active rule set of the merchant; %s.") % there)
        if found.get("three_d_secure"):
            self._check_threeds_server()
        return found

    def _check_threeds_server(self) -> None:
        """In live, 3-D Secure is switched on only with a 3DS server behind it."""
        if is_threeds_server_missing(Channel(pk=self.instance.pk, three_d_secure=True)):
            self.add_error("three_d_secure", NO_SERVER_TEXT)


@admin.register(Channel)
class ChannelAdmin(MerchantPage):
    merchant_path, channel_path = "merchant", "pk"
    form = ChannelForm
    nothing = gettext_lazy("A channel is what a request names as entityId.")
    list_display = (
        "name",
        "entity",
        "merchant",
        "accepted_payments",
        "three_d_secure",
        "unknown_name_policy",
        "active",
    )
    list_filter = ("active", "three_d_secure", "parameters", "merchant")
    list_select_related = ("merchant",)
    search_fields = ("name", "merchant__name")
    search_help_text = gettext_lazy("Name of the channel or of its merchant")
    ordering = ("merchant", "position", "created_at")
    readonly_fields = ("entity", "notified_endpoints", "files_go_to", "exemption_trial", "retry_trial")
    autocomplete_fields = ("merchant",)
    fieldsets = (
        (None, {"fields": ("name", "merchant", "entity", "active", "position", "time_zone")}),
        (gettext_lazy("Where its events and files go"), {"fields": ("notified_endpoints", "files_go_to")}),
        (
            gettext_lazy("What it takes"),
            {"fields": ("brands", "brand_order", "currencies", "three_d_secure", "cvv_required", "partial_approvals")},
        ),
        (gettext_lazy("What statements say"), {"fields": ("descriptor",)}),
        (
            gettext_lazy("How long authorizations and reversals last"),
            {"fields": ("authorization_kind", "authorization_days", "expired_captures", "reversal_hours")},
        ),
        (gettext_lazy("How strictly it reads"), {"fields": ("parameters", "refuse_duplicates", "mask_card_data")}),
        (
            gettext_lazy("Card on file"),
            {
                "fields": (
                    "agreement_ids",
                    "external_references",
                    "registration_days",
                    "network_tokens",
                    "account_updater",
                )
            },
        ),
        (gettext_lazy("Subscriptions"), {"fields": ("retry_timing", "retry_trial")}),
        (gettext_lazy("Risk"), {"fields": ("risk_set", "card_testing")}),
        (gettext_lazy("Exemptions from strong authentication"), {"fields": ("exemptions", "exemption_trial")}),
        (gettext_lazy("Limits"), {"fields": ("limits",)}),
    )

    @display(description="entityId")
    def entity(self, channel: Channel) -> SafeString:
        return format_html('<code class="th-key">{}</code>', channel.entity_id)

    @display(description=gettext_lazy("takes"))
    def accepted_payments(self, channel: Channel) -> str:
        brands = ", ".join(channel.brands[:MAX_SHOWN_CODES]) + ("…" if len(channel.brands) > MAX_SHOWN_CODES else "")
        currencies = ", ".join(channel.currencies[:MAX_SHOWN_CODES]) + (
            "…" if len(channel.currencies) > MAX_SHOWN_CODES else ""
        )
        return f"{brands or _('all brands')} · {currencies or _('all currencies')}"

    @display(description=gettext_lazy("unknown names"), ordering="parameters")
    def unknown_name_policy(self, channel: Channel) -> str:
        return channel.parameters

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leave the entityId out for a new channel, which has none yet."""
        shown = super().get_fieldsets(request, obj)
        if obj is not None:
            return shown
        return [
            (title, {**options, "fields": own})
            for title, options in shown
            if (own := tuple(name for name in options["fields"] if name not in self.readonly_fields))
        ]

    @display(description=gettext_lazy("webhook endpoints"))
    def notified_endpoints(self, channel: Channel) -> SafeString:
        """The webhook endpoints of this channel, and those of its merchant for all channels."""
        found = WebhookEndpoint.objects.filter(Q(channel=channel) | Q(channel=None), merchant=channel.merchant_id)
        rows = [
            (reverse("admin:gateway_webhookendpoint_change", args=[row.pk]), str(row), row.get_state_display())
            for row in found.exclude(mode=WebhookEndpoint.Mode.RETURN).order_by("-id")[:MAX_SHOWN_CODES]
        ]
        every = reverse("admin:gateway_webhookendpoint_changelist")
        listed = format_html_join("", '<div><a class="th-link" href="{}">{}</a> ({})</div>', rows)
        return format_html('{}<div><a class="th-link" href="{}">{}</a></div>', listed, every, _("All webhooks"))

    @display(description=gettext_lazy("SFTP target"))
    def files_go_to(self, channel: Channel) -> SafeString:
        """The SFTP target of reconciliation files, which is the merchant's."""
        try:
            target = reverse("admin:reporting_reconciliationfile_target", args=[channel.merchant_id])
        except NoReverseMatch:
            return format_html("–")
        return format_html('<a class="th-link" href="{}">{}</a>', target, _("Where the merchant's files are sent"))

    @display(description=gettext_lazy("before you save"))
    def exemption_trial(self, channel: Channel) -> SafeString:
        """Where exemption rules are tried on the channel's past payments."""
        address = reverse(f"admin:{ExemptionTrial.try_page}", query={"channel": channel.pk.hex})
        return format_html('<a class="th-link" href="{}">{}</a>', address, _("Try exemptions on past payments"))

    @display(description=gettext_lazy("before you save"))
    def retry_trial(self, channel: Channel) -> SafeString:
        """Where the timing of retries is tried on the channel's past charges."""
        address = reverse("admin:scheduling_job_retries_try", query={"channel": channel.pk.hex})
        return format_html(
            '<a class="th-link" href="{}">{}</a>', address, _("Try the timing of retries on past charges")
        )

    def get_urls(self) -> list[URLPattern]:
        return [*ExemptionTrial(self).build_urls("exemptions/", "exemptions/<uuid:work>/"), *super().get_urls()]

    def render_change_form(
        self,
        request: HttpRequest,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Notices above the form: payments are declined for lack of a 3DS server, exemptions end in soft declines."""
        if request.method == "GET" and obj is not None and is_threeds_server_missing(obj):
            messages.error(request, NO_SERVER_NOTICE)
        if request.method == "GET" and obj is not None and loses_soft_declines(obj):
            messages.warning(request, LOST_SOFT_DECLINES_NOTICE)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """A channel cannot change its merchant: its payments belong to that merchant."""
        return self.readonly_fields if obj is None else (*self.readonly_fields, "merchant")


class ThreeDSecureForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A channel's 3-D Secure settings, validated by the section of the configuration document."""

    requestors = CompositeField(
        RequestorsWidget(),
        label=gettext_lazy("requestors"),
        help_text=gettext_lazy("What each network assigned to this shop; what a request itself names goes first."),
    )

    server_secret = forms.CharField(
        label=gettext_lazy("secret of the 3DS server"),
        required=False,
        strip=True,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )

    class Meta:
        model = ThreeDSecureConfiguration
        fields = ("channel", "server_url", *_THREEDS.values())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        use_one_line_inputs(self, "networks")
        if "server_secret" not in self.fields:
            return
        at = self.instance.server_secret_set_at
        self.fields["server_secret"].help_text = (
            _("Set on %s. Empty keeps it.") % date_format(at, "DATE_FORMAT")
            if at is not None
            else _("32 to 256 characters, the same as at the server.")
        )

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if not self.errors:
            document = {name: found[field] for name, field in _THREEDS.items() if field in found}
            document["requestors"] = document.get("requestors") or {}
            beside, rest = d.DocumentFaults(), d.DocumentFaults()
            for fault in config_backed_form.validate_section(None, "threeDSecure", document):
                (beside if fault.path.lstrip(".").startswith("requestors") else rest).add(fault.path, fault.message)
            config_backed_form.add_section_errors(self, rest, _THREEDS)
            composite_field.add_input_errors(self, "requestors", beside, "requestors")
            self._check_server(found)
        return found

    def _check_server(self, found: Mapping[str, Any]) -> None:
        if "server_url" not in self.fields:  # the user may not change it
            return
        url, secret = found.get("server_url") or "", found.get("server_secret") or ""
        if url and (why := find_server_url_fault(url)):
            self.add_error("server_url", why)
        if secret and (why := find_server_secret_fault(secret)):
            self.add_error("server_secret", why)
        channel = found.get("channel") or self.instance.channel
        complete = bool(url) and bool(secret or self.instance.server_secret_sealed is not None)
        if settings.IS_LIVE and channel.three_d_secure and not complete:
            self.add_error("server_url", NO_SERVER_TEXT)


@admin.register(ThreeDSecureConfiguration)
class ThreeDSecureConfigurationAdmin(MerchantPage):
    merchant_path, channel_path = "channel__merchant", "channel"
    form = ThreeDSecureForm
    nothing = gettext_lazy(
        "A channel with 3-D Secure on works without a row here, by the defaults. A row says what this "
        "shop wants otherwise."
    )
    list_display = (
        "channel", "is_on", "server_url", "networks", "on_unavailable", "on_attempt", "on_soft_decline",
        "challenge_minutes", "method",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("channel",)}),
        (gettext_lazy("External 3DS server"), {"fields": ("server_url", "server_secret")}),
        (
            gettext_lazy("What messages to the directory say of the shop"),
            {"fields": ("requestors", "requestor_url", "merchant_category_code", "merchant_country")},
        ),
        (
            gettext_lazy("How it authenticates"),
            {
                "fields": (
                    "networks", "on_unavailable", "on_attempt", "on_soft_decline", "challenge_indicator",
                    "challenge_minutes", "method",
                )
            },
        ),
    )  # fmt: skip
    list_select_related = ("channel",)
    search_fields = ("channel__name", "channel__merchant__name")
    autocomplete_fields = ("channel",)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A form's own fields are in it whatever the page shows: that of the secret is taken out."""
        form = super().get_form(request, obj, change, **kwargs)
        if not self.may(request, OPERATE_THREEDS_SERVER_PERMISSION, self._row(request, obj)):
            form.base_fields.pop("server_secret", None)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Without the right to set the server there is no field for its secret."""
        shown = super().get_fieldsets(request, obj)
        if self.may(request, OPERATE_THREEDS_SERVER_PERMISSION, self._row(request, obj)):
            return shown
        return [
            (title, {**options, "fields": tuple(name for name in options["fields"] if name != "server_secret")})
            for title, options in shown
        ]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Seal a new secret with the row; the audit entry says that it was set, never what it is."""
        obj.server_url = obj.server_url.rstrip("/")
        secret = form.cleaned_data.get("server_secret")
        # The right may be one on another PSP than that of the channel that was chosen.
        names_server = secret or "server_url" in form.changed_data
        if names_server and not self.may(request, OPERATE_THREEDS_SERVER_PERMISSION, obj):
            raise PermissionDenied
        if secret:
            set_server_secret(obj, secret)
        super().save_model(request, obj, form, change)
        if secret:
            self.record(request, "set secrets", obj, after={"secrets": ["server"]})

    @display(description=gettext_lazy("authenticates"), boolean=True)
    def is_on(self, row: ThreeDSecureConfiguration) -> bool:
        return row.channel.three_d_secure

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The server is shown to all, and set by those who set up acquirers: it is sent whole card numbers."""
        sets_server = self.may(request, OPERATE_THREEDS_SERVER_PERMISSION, self._row(request, obj))
        return (*(() if obj is None else ("channel",)), *(() if sets_server else ("server_url",)))


@admin.register(WalletKey)
class WalletKeyAdmin(MerchantPage):
    """Wallet keys: named and switched off here, never shown. ``manage.py wallet_key`` and ``configure`` add them, from
    a file with the private key."""

    merchant_path, channel_path = "channel__merchant", "channel"
    sensitive = requires_reauthentication = True
    nothing = gettext_lazy(
        "Keys that open wallet tokens are added by manage.py wallet_key, where the private key is a file."
    )
    list_display = ("__str__", "channel", "wallet", "key_hash", "kind", "created_at", "active")
    list_select_related = ("channel",)
    list_filter = ("wallet", "active")
    search_fields = ("name", "key_hash", "channel__name", "channel__merchant__name")
    fields = ("name", "active", "channel", "wallet", "key_hash", "kind", "created_at", "public_facts")
    readonly_fields = ("channel", "wallet", "key_hash", "kind", "created_at", "public_facts")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    @display(description=gettext_lazy("kind"))
    def kind(self, key: WalletKey) -> str:
        return str(_("made for tests; live ignores it")) if key.is_test_key else str(_("of the wallet's provider"))

    @display(description=gettext_lazy("public facts"))
    def public_facts(self, key: WalletKey) -> SafeString:
        rows = [(name, str(value)[:200]) for name, value in key.facts.items()]
        return format_html_join("", "<div><strong>{}</strong>: {}</div>", rows) or format_html("–")
