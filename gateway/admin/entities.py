"""Merchants, channels and their accounts at acquirers: "merchant and channel info"."""

from __future__ import annotations

from django.contrib import admin

from gateway.admin.kit import Audited
from gateway.models import AcquirerAccount, Channel, Division, Merchant, Psp


@admin.register(Psp)
class PspAdmin(Audited):
    list_display = ("name", "entity_id", "active")


@admin.register(Division)
class DivisionAdmin(Audited):
    list_display = ("name", "entity_id", "psp", "active")


class ChannelInline(admin.TabularInline):
    model = Channel
    fields = ("name", "entity_id", "position", "three_d_secure", "parameters", "active")
    readonly_fields = ("entity_id",)
    extra = 0
    show_change_link = True
    can_delete = False


@admin.register(Merchant)
class MerchantAdmin(Audited):
    list_display = ("name", "entity_id", "division", "dispatching", "active")
    search_fields = ("name",)
    readonly_fields = ("entity_id",)
    inlines = (ChannelInline,)


@admin.register(Channel)
class ChannelAdmin(Audited):
    list_display = ("name", "entity_id", "merchant", "three_d_secure", "parameters", "active")
    list_filter = ("active", "three_d_secure", "parameters")
    search_fields = ("name", "merchant__name")
    readonly_fields = ("entity_id",)
    autocomplete_fields = ("merchant",)


@admin.register(AcquirerAccount)
class AcquirerAccountAdmin(Audited):
    list_display = ("__str__", "channel", "connector", "active")
    autocomplete_fields = ("channel",)
