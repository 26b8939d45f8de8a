"""Merchants, channels and their accounts at acquirers: "merchant and channel info"."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from gateway.admin.kit import OfInstallation, OfMerchant, Shown
from gateway.models import AcquirerAccount, Channel, Division, Merchant, Psp


@admin.register(Psp)
class PspAdmin(OfInstallation):
    list_display = ("name", "entity_id", "active")
    fields = ("name", "active", "entity_id")
    readonly_fields = ("entity_id",)


@admin.register(Division)
class DivisionAdmin(OfInstallation):
    list_display = ("name", "entity_id", "psp", "active")
    list_select_related = ("psp",)
    fields = ("psp", "name", "active", "entity_id")
    readonly_fields = ("entity_id",)


class ChannelInline(Shown):
    model = Channel
    fields = ("name", "entity_id", "position", "three_d_secure", "parameters", "active")
    readonly_fields = ("entity_id",)
    show_change_link = True


@admin.register(Merchant)
class MerchantAdmin(OfMerchant):
    merchant_path, channel_path = "pk", None
    list_display = ("name", "entity_id", "division", "dispatching", "time_zone", "active")
    list_select_related = ("division",)
    search_fields = ("name",)
    fields = ("name", "division", "dispatching", "time_zone", "active", "entity_id")
    readonly_fields = ("entity_id",)
    inlines = (ChannelInline,)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """A merchant stays in its division: whoever belongs to that division keeps seeing what they saw."""
        return self.readonly_fields if obj is None else (*self.readonly_fields, "division")


@admin.register(Channel)
class ChannelAdmin(OfMerchant):
    merchant_path, channel_path = "merchant", "pk"
    list_display = ("name", "entity_id", "merchant", "three_d_secure", "parameters", "active")
    list_filter = ("active", "three_d_secure", "parameters", "merchant")
    list_select_related = ("merchant",)
    search_fields = ("name", "merchant__name")
    readonly_fields = ("entity_id",)
    autocomplete_fields = ("merchant",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """A channel stays with its merchant: its payments are that merchant's."""
        return self.readonly_fields if obj is None else (*self.readonly_fields, "merchant")


@admin.register(AcquirerAccount)
class AcquirerAccountAdmin(OfMerchant):
    merchant_path, channel_path = "channel__merchant", "channel"
    list_display = ("__str__", "channel", "connector", "active")
    list_select_related = ("channel",)
    list_filter = ("connector", "active")
    autocomplete_fields = ("channel",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AcquirerAccount]:
        return super().get_queryset(request).select_related("channel")
