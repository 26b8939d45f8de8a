"""Routing rules: which account takes which payment, and dry runs over past payments.

The section "routing" of the configuration document validates a form. Source: docs/routing.md.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.admin import TabularInline
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget

from gateway.access import permissions
from gateway.backoffice.kit import config_backed_form
from gateway.backoffice.kit.base import MerchantPage
from gateway.backoffice.kit.channel_trial import ChannelTrial, ChannelTrialForm
from gateway.backoffice.kit.composite_field import use_one_line_inputs
from gateway.backoffice.kit.entity_names import label_channel
from gateway.backoffice.kit.formatting import format_labelled
from gateway.backoffice.operations.background_work_pages import may_fetch_file
from gateway.backoffice.payments.payment_titles import name_payment_type
from gateway.backoffice.routing import dry_run
from gateway.configuration.routing import FIRST_PAYMENT_TYPES, MAX_ROUTING_TARGETS, MAX_TARGET_WEIGHT
from gateway.connectors.account_choice import BY_COST
from gateway.core.bin_table import CARD_TYPES
from gateway.models import AcquirerAccount, BackgroundWork, RoutingRule, RoutingTarget
from gateway.models.routing import MAX_RULE_CASCADES

_CONDITIONS: Final = {
    "brands": "brands", "bins": "bins", "currencies": "currencies", "amountFrom": "amount_from",
    "amountTo": "amount_to", "amountCurrency": "amount_currency", "countries": "countries",
    "paymentTypes": "payment_types", "issuerCountries": "issuer_countries", "cardTypes": "card_types",
    "cardLevels": "card_levels",
}  # fmt: skip
"""Condition in the document → form field."""
_LISTS: Final = ("brands", "currencies", "countries", "issuer_countries", "card_levels")
"""Fields that are typed with commas."""
_FIELDS: Final = {**_CONDITIONS, "maxRateLoss": "max_rate_loss", "exploredPercent": "explored_percent"}
_SOMEBODY: Final = [{"connector": "stub", "merchant": "-"}]
"""A placeholder account: conditions are validated without the rule's accounts, which the inline has."""


class RoutingRuleForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    bins = forms.CharField(
        label=gettext_lazy("BIN ranges"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy("Leading digits, 6 to 11, one range a line: 420000 or 420000-429999. Empty: all."),
    )
    payment_types = forms.MultipleChoiceField(
        label=gettext_lazy("payment types"),
        required=False,
        choices=[
            (code, format_lazy("{}: {}", code, gettext_lazy(name_payment_type(code)))) for code in FIRST_PAYMENT_TYPES
        ],
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("None chosen: all. Follow-ups go where the money is."),
    )
    card_types = forms.MultipleChoiceField(
        label=gettext_lazy("kinds of cards"),
        required=False,
        choices=[(code, code) for code in CARD_TYPES],
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("By the table of BINs. None chosen: all, and other means."),
    )
    max_cascades = forms.TypedChoiceField(
        label=gettext_lazy("further accounts after a decline"),
        required=False,
        coerce=int,
        empty_value=0,  # type: ignore[arg-type]  # any value, as Django documents; its stubs know text
        choices=[(number, str(number)) for number in range(MAX_RULE_CASCADES + 1)],
        help_text=gettext_lazy(
            "0: a decline stands. Else a payment that its issuer declined is sent to so many of the rule's other "
            "accounts, where the code says that another acquirer may be approved; never against the issuer's advice or "
            "the schemes' retry rules."
        ),
    )

    class Meta:
        model = RoutingRule
        fields = (
            "channel",
            "name",
            "position",
            "active",
            "brands",
            "bins",
            "currencies",
            "amount_from",
            "amount_to",
            "amount_currency",
            "countries",
            "payment_types",
            "issuer_countries",
            "card_types",
            "card_levels",
            "max_cascades",
            "choose_by",
            "max_rate_loss",
            "explored_percent",
        )
        help_texts = {
            "brands": gettext_lazy("Codes such as VISA,MASTER, with commas; empty: all."),
            "currencies": gettext_lazy("Codes such as EUR,USD, with commas; empty: all."),
            "countries": gettext_lazy("Of billing.country: codes such as DE,AT, with commas; empty: all."),
            "issuer_countries": gettext_lazy(
                "Of the card's issuer, by the table of BINs: codes such as DE,AT, with commas; empty: all."
            ),
            "card_levels": gettext_lazy("By the table of BINs: words such as GOLD,WORLD, with commas; empty: all."),
            "amount_from": gettext_lazy("Included."),
            "amount_to": gettext_lazy("Included."),
            "amount_currency": gettext_lazy("The amounts speak of payments in this currency alone."),
            "position": gettext_lazy("The first rule that fits decides; the lowest number goes first."),
            "choose_by": gettext_lazy(
                "By costs and rates only among accounts with a weight, and once enough is known of each."
            ),
            "max_rate_loss": gettext_lazy(
                "For the cheapest, 0.01 to 20: points its approval rate may be below the best one's (95 % certain)."
            ),
            "explored_percent": gettext_lazy(
                "So many of 100 payments go to another account, so that its rate stays known. 0: none."
            ),
            "active": gettext_lazy("A rule that is off can be tried on past payments before it counts."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("max_rate_loss", "explored_percent"):
            if name in self.fields:
                self.fields[name].required = False
        use_one_line_inputs(self, *_LISTS)
        if "bins" in self.fields:
            self.initial["bins"] = "\n".join(self.instance.bins)

    def clean_bins(self) -> list[str]:
        return [one for one in self.cleaned_data["bins"].replace(",", "\n").split() if one]

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if self.errors:
            return found
        for name in _LISTS:
            found[name] = [one.strip() for one in found.get(name) or ()]
        when = {name: found.get(field) for name, field in _CONDITIONS.items() if found.get(field)}
        for name in ("amountFrom", "amountTo"):
            if (amount := found.get(_CONDITIONS[name])) is not None:
                when[name] = f"{amount:.2f}"
        rule = {
            "name": found["name"],
            "when": when,
            "to": _SOMEBODY,
            "chooseBy": found.get("choose_by") or "weight",
            "maxRateLoss": f"{found.get('max_rate_loss') or 0:.2f}",
            "exploredPercent": found.get("explored_percent") or 0,
        }
        for fault in config_backed_form.validate_section(None, "routing", {"rules": [rule]}):
            own = fault.path.lstrip(".").removeprefix("rules[0].").removeprefix("when.")
            field = _FIELDS.get(own.partition("[")[0], own)
            if field == "max_rate_loss" and found.get("choose_by") == BY_COST and not found.get(field):
                message = _("The cheapest needs 0.01 to 20.00: with 0 the best rate would always be chosen.")
            else:
                message = fault.message
            self.add_error(field if field in self.fields else None, message)
        found["max_rate_loss"] = found.get("max_rate_loss") or Decimal(0)
        found["explored_percent"] = found.get("explored_percent") or 0
        if not self.errors:
            found["bins"] = [one if "-" in one else f"{one}-{one}" for one in found["bins"]]
        return found


class RoutingTargetFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # not generic at run time
    def clean(self) -> None:
        super().clean()
        if any(self.errors):
            return
        kept = [form for form in self.forms if form.cleaned_data and not form.cleaned_data.get("DELETE")]
        if not kept:
            raise ValidationError(_("Name one account at least."))
        for form in kept:
            account, weight = form.cleaned_data.get("account"), form.cleaned_data.get("weight") or 0
            if account is not None and account.channel_id != self.instance.channel_id:
                form.add_error("account", _("This is no account of the rule's channel."))
            if weight > MAX_TARGET_WEIGHT:
                form.add_error("weight", _("At most %d.") % MAX_TARGET_WEIGHT)


class RoutingTargetInline(TabularInline):
    """The accounts of a rule; who may change the rule may change them."""

    model = RoutingTarget
    formset = RoutingTargetFormSet
    fields = ("account", "weight", "position")
    ordering_field = "position"
    extra = 1
    max_num = MAX_ROUTING_TARGETS
    verbose_name = gettext_lazy("account")
    verbose_name_plural = gettext_lazy(
        "accounts: their weights say how many payments each gets; the others are next when one is out of reach"
    )

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the accounts of the rule's channel; all that the user may use while no channel is chosen."""
        scope = permissions.find_access_scope(request.user, "gateway.view_acquireraccount")
        rows = AcquirerAccount.objects.filter(scope.where("channel__merchant", "channel")).select_related(
            "channel__merchant"
        )
        match = request.resolver_match
        rule = match.kwargs.get("object_id") if match is not None else None
        if rule is not None:
            rows = rows.filter(channel__routing_rules=rule)
        kwargs["queryset"] = rows.order_by("channel__name", "id")
        field: Any = super().formfield_for_foreignkey(db_field, request, **kwargs)
        field.label_from_instance = _format_account  # the way that Django documents; its stubs know a method
        return field

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return permissions.has_permission(request.user, "gateway.view_routingrule", obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return permissions.has_permission(request.user, "gateway.change_routingrule", obj)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_change_permission(request, obj)


def _format_account(account: AcquirerAccount) -> str:
    return f"{account} · {label_channel(account.channel)}" + ("" if account.active else f" ({_('switched off')})")


class RoutingTrialForm(ChannelTrialForm):
    """The channel and the days whose payments are routed anew."""

    drafts = forms.BooleanField(label=gettext_lazy("As if rules that are off were on"), required=False)
    field_order = ("channel", "since", "until", "drafts")

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"drafts": self.cleaned_data["drafts"]}


class RoutingTrial(ChannelTrial):
    kind = dry_run.ROUTING_DRY_RUN
    form = RoutingTrialForm
    name = "routing"
    try_page, tried_page = "gateway_routingrule_try", "gateway_routingrule_tried"
    title = gettext_lazy("Try the rules on past payments")
    work_title = gettext_lazy("Routing of past payments: %s")

    def describe_result(self, request: HttpRequest, row: BackgroundWork) -> dict[str, Any]:
        moves = dry_run.summarize_route_changes(row.cursor)
        return {
            "changed": [move for move in moves if move["changed"]],
            "same": [move for move in moves if not move["changed"]],
            "values": dry_run.summarize_values(row.cursor),
            "cursor": row.cursor,
            "may_export": may_fetch_file(request, row),
        }


@admin.register(RoutingRule)
class RoutingRuleAdmin(MerchantPage):
    merchant_path, channel_path = "channel__merchant", "channel"
    form = RoutingRuleForm
    inlines = (RoutingTargetInline,)
    deletable = True
    ordering_field = "position"
    nothing = gettext_lazy(
        "Without a rule a payment goes to the first account of its channel that takes its brand and currency."
    )
    list_display = ("name", "channel", "condition_text", "target_text", "active", "position")
    list_select_related = ("channel",)
    list_filter = ("channel", "active")
    search_fields = ("name", "channel__name", "channel__merchant__name")
    ordering = ("channel", "position", "id")
    autocomplete_fields = ("channel",)
    list_before_template = "admin/office/routing_before.html"
    fieldsets = (
        (None, {"fields": ("channel", "name", "position", "active")}),
        (
            gettext_lazy("When: every condition must hold, an empty one always does"),
            {"fields": ("brands", "bins", "currencies", "countries", "amount_from", "amount_to", "amount_currency",
                        "payment_types", "issuer_countries", "card_types", "card_levels")},
        ),
        (
            gettext_lazy("Which of the accounts"),
            {"fields": ("choose_by", "max_rate_loss", "explored_percent")},
        ),
        (gettext_lazy("After a decline"), {"fields": ("max_cascades",)}),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("targets__account")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if obj is None else ("channel",)

    @display(description=gettext_lazy("when"))
    def condition_text(self, row: RoutingRule) -> str:
        lists = (
            (_("brands"), row.brands),
            ("BIN", row.bins),
            (_("currencies"), row.currencies),
            (_("countries"), row.countries),
            (_("types"), row.payment_types),
            (_("issuer countries"), row.issuer_countries),
            (_("kinds of cards"), row.card_types),
            (_("levels"), row.card_levels),
        )
        found = [f"{name} {', '.join(values)}" for name, values in lists if values]
        if row.amount_currency:
            low, high = row.amount_from, row.amount_to
            found.append(
                f"{low if low is not None else '…'} – {high if high is not None else '…'} {row.amount_currency}"
            )
        return "; ".join(found) or _("always")

    @display(description=gettext_lazy("goes to"))
    def target_text(self, row: RoutingRule) -> str:
        accounts = ", ".join(f"{one.account} ({one.weight})" for one in row.targets.all())
        if row.choose_by:
            accounts = format_labelled(row.get_choose_by_display(), accounts)
        if not row.max_cascades:
            return accounts
        further = ngettext("after a decline %d more", "after a decline %d more", row.max_cascades) % row.max_cascades
        return f"{accounts}; {further}"

    def get_urls(self) -> list[URLPattern]:
        return [*RoutingTrial(self).build_urls("try/", "tried/<uuid:work>/"), *super().get_urls()]
