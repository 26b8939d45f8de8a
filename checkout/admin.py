"""Back-office pages of checkouts and offer rules: which brands were hidden from a checkout, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from checkout import offer_rules, page_style_pages, payment_link_pages, timeline  # noqa: F401 - pages of their own
from checkout.models import Checkout, OfferRule
from checkout.session import hash_checkout_id
from gateway.backoffice.kit import composite_field, config_backed_form
from gateway.backoffice.kit.base import MerchantPage, ReadOnlyPage
from gateway.backoffice.kit.composite_field import CompositeField, CompositeInput, GroupWidget, use_one_line_inputs
from gateway.backoffice.kit.list_filters import build_period_filter
from gateway.core.document import DocumentFault

OFFER_CONDITION_INPUTS: Final = (
    CompositeInput("scoreAtLeast", gettext_lazy("risk score at least"), kind="number", unit=gettext_lazy("points")),
    CompositeInput(
        "scoreBelow",
        gettext_lazy("risk score below"),
        kind="number",
        unit=gettext_lazy("points"),
        help=gettext_lazy("Holds, too, where nothing was scored."),
    ),
    CompositeInput("amountAtLeast", gettext_lazy("amount at least"), help=gettext_lazy("Such as 500 or 500.00.")),
    CompositeInput("amountBelow", gettext_lazy("amount below"), help=gettext_lazy("Such as 500 or 500.00.")),
    CompositeInput(
        "currencies",
        gettext_lazy("currency is one of"),
        kind="commas",
        help=gettext_lazy("Codes such as EUR,USD, with commas."),
    ),
    CompositeInput(
        "countries",
        gettext_lazy("country is one of"),
        kind="commas",
        help=gettext_lazy("Codes such as DE,AT, with commas; of the billing address, else of the shipping address."),
    ),
    CompositeInput("notCountries", gettext_lazy("country is known, and none of"), kind="commas"),
    CompositeInput(
        "customerStatus",
        gettext_lazy("customer is"),
        kind="flags",
        choices=[("NEW", gettext_lazy("new")), ("EXISTING", gettext_lazy("known"))],
    ),
    CompositeInput(
        "emails",
        gettext_lazy("e-mail is one of"),
        kind="lines",
        help=gettext_lazy("One a line; * stands for anything, as in *@mail.example."),
    ),
)
"""The conditions of checkout.offer_rules as form inputs."""


@admin.register(Checkout)
class CheckoutAdmin(ReadOnlyPage):
    """The list of checkouts. A checkout's id is a capability while it is valid: pages show its hash, as the request log
    does."""

    nothing = gettext_lazy(
        "A checkout is made by POST /v1/checkouts, before a shopper sees the form. The demo shop makes one, too."
    )
    list_display = ("created_at", "kind", "money", "merchant", "attempts", "not_offered", "fetched_at", "logged_as")
    list_select_related = ("merchant",)
    list_filter = (build_period_filter("created_at", by_id=False), "kind")
    ordering = ("-created_at",)
    fields = (
        "logged_as", "merchant", "channel", "kind", "attempts", "payment", "hidden_brands", "created_at", "expires_at",
        "fetched_at",
    )  # fmt: skip
    readonly_fields = ("logged_as",)

    @admin.display(description=gettext_lazy("amount"))
    def money(self, checkout: Checkout) -> str:
        return timeline.format_checkout_amount(checkout)

    @admin.display(description=gettext_lazy("not offered"))
    def not_offered(self, checkout: Checkout) -> str:
        """Brands that were requested and are not on the form; the checkout's page says why."""
        return ", ".join(sorted(checkout.hidden_brands)) or "–"

    @admin.display(description=gettext_lazy("in logs"))
    def logged_as(self, checkout: Checkout) -> str:
        return hash_checkout_id(checkout.public_id)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        found: Checkout = self.find_viewed_row(request, object_id)
        context = {**self.admin_site.each_context(request), "opts": self.opts, **timeline.build_checkout_page(found.pk)}
        return TemplateResponse(request, "admin/clerk/checkout.html", context | (extra_context or {}))


if TYPE_CHECKING:
    _RuleForm = forms.ModelForm[OfferRule]
else:
    _RuleForm = forms.ModelForm  # takes no parameter at run time


class OfferRuleForm(_RuleForm):
    """Form of an offer rule, validated like the configuration section "brands"."""

    conditions = CompositeField(
        GroupWidget(OFFER_CONDITION_INPUTS),
        label=gettext_lazy("conditions"),
        help_text=gettext_lazy("All that are filled in must hold; with none the rule holds always."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        use_one_line_inputs(self, "brands")

    class Meta:
        model = OfferRule
        fields = ("merchant", "channel", "name", "position", "action", "brands", "conditions", "reason", "active")
        help_texts = {
            "channel": gettext_lazy("Empty: for all channels of the merchant."),
            "brands": gettext_lazy("Codes such as WALLET1,VISA, with commas; empty: every brand."),
            "reason": gettext_lazy("What a clerk reads beside a checkout."),
            "position": gettext_lazy("The first rule that speaks of a brand decides; the lowest goes first."),
        }

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        channel, merchant = found.get("channel"), found.get("merchant") or getattr(self.instance, "merchant", None)
        if channel is not None and merchant is not None and channel.merchant_id != merchant.pk:
            self.add_error(
                "channel",
                _("%(channel)s is not a channel of %(merchant)s.") % {"channel": channel, "merchant": merchant},
            )
        if not self.errors:
            rule = {
                "name": found["name"],
                found["action"]: found["brands"],
                "when": found["conditions"],
                "reason": found["reason"],
                "active": found["active"],
            }
            of_conditions: list[DocumentFault] = []
            for fault in config_backed_form.validate_section(None, "brands", {"rules": [rule]}):
                first = fault.path.lstrip(".").removeprefix("rules[0].").partition(".")[0]
                named, _space, words = fault.message.partition(" ")
                if first == "when" and named in offer_rules.OFFER_CONDITIONS:
                    of_conditions.append(DocumentFault(path=named, message=words))
                else:
                    field = {"name": "name", "reason": "reason", "when": "conditions"}.get(first, "brands")
                    self.add_error(field, fault.message)
            composite_field.add_input_errors(self, "conditions", of_conditions)
        return found


@admin.register(OfferRule)
class OfferRuleAdmin(MerchantPage):
    """The list and form of offer rules."""

    form = OfferRuleForm
    autocomplete_fields = ("merchant", "channel")
    search_fields = ("name", "reason")
    deletable = True
    nothing = gettext_lazy(
        "Without a rule every brand of the channel is offered. A rule hides brands, or puts them first, "
        "by amount, country or risk."
    )
    list_display = (
        "name",
        "merchant",
        "channel",
        "position",
        "action",
        "brands",
        "conditions_text",
        "reason",
        "active",
    )
    list_filter = ("active", "action")
    list_select_related = ("merchant", "channel")

    @admin.display(description=gettext_lazy("conditions"))
    def conditions_text(self, rule: OfferRule) -> str:
        labels = {one.name: one.label for one in OFFER_CONDITION_INPUTS}
        return "; ".join(
            f"{labels.get(name, name)} {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for name, value in rule.conditions.items()
        ) or _("always")
