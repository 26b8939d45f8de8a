"""Checkouts and offer rules in the back office: which brands were not offered, and why."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from checkout import story
from checkout.models import Checkout, OfferRule
from checkout.session import hashed
from gateway.admin import agreeing
from gateway.admin.kit import OfMerchant, ReadOnly


@admin.register(Checkout)
class CheckoutAdmin(ReadOnly):
    """A checkout's id is a capability while it lasts: the list shows its hash, as the request log does."""

    list_display = ("created_at", "kind", "merchant", "attempts", "hidden", "fetched_at", "logged_as")
    list_select_related = ("merchant",)
    list_filter = ("kind",)
    ordering = ("-created_at",)
    fields = (
        "logged_as", "merchant", "channel", "kind", "attempts", "payment", "hidden", "created_at", "expires_at",
        "fetched_at",
    )  # fmt: skip
    readonly_fields = ("logged_as",)

    @admin.display(description="in logs")
    def logged_as(self, checkout: Checkout) -> str:
        return hashed(checkout.public_id)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request) or request.method != "GET":
            raise PermissionDenied
        found = self.get_object(request, unquote(object_id))
        if found is None:
            raise Http404
        context = {**self.admin_site.each_context(request), "opts": self.opts, **story.told(found.pk)}
        return TemplateResponse(request, "admin/clerk/checkout.html", context | (extra_context or {}))


class OfferRuleForm(forms.ModelForm):
    """Read by the same shapes as the section "brands" of a configuration document."""

    class Meta:
        model = OfferRule
        fields = ("merchant", "channel", "name", "position", "action", "brands", "conditions", "reason", "active")
        help_texts = {
            "channel": gettext_lazy("Empty: for all channels of the merchant."),
            "brands": gettext_lazy("Codes such as WALLET1,VISA, with commas; empty: every brand."),
            "conditions": gettext_lazy('All must hold, such as {"amountAtLeast": "500"}; {} holds always.'),
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
                "name": found["name"], found["action"]: found["brands"], "when": found["conditions"],
                "reason": found["reason"], "active": found["active"],
            }  # fmt: skip
            for fault in agreeing.faults_of(None, "brands", {"rules": [rule]}):
                path = fault.path.lstrip(".").removeprefix("rules[0].")
                field = {"name": "name", "reason": "reason", "when": "conditions"}.get(path.partition(".")[0], "brands")
                self.add_error(field, fault.message)
        return found


@admin.register(OfferRule)
class OfferRuleAdmin(OfMerchant):
    form = OfferRuleForm
    autocomplete_fields = ("merchant", "channel")
    search_fields = ("name", "reason")
    deletable = True
    list_display = ("name", "merchant", "channel", "position", "action", "brands", "conditions", "reason", "active")
    list_filter = ("active", "action")
    list_select_related = ("merchant", "channel")
