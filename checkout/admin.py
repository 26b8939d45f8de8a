"""Checkouts and offer rules in the back office: which brands were not offered, and why."""

from __future__ import annotations

from django.contrib import admin

from checkout.models import Checkout, OfferRule
from checkout.session import hashed
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


@admin.register(OfferRule)
class OfferRuleAdmin(OfMerchant):
    deletable = True
    list_display = ("name", "merchant", "channel", "position", "action", "brands", "conditions", "reason", "active")
    list_filter = ("active", "action")
    list_select_related = ("merchant", "channel")
