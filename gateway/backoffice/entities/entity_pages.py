"""PSPs, divisions and merchants. Channels are in channel_pages."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from gateway.access import permissions
from gateway.backoffice.kit.base import MerchantPage, PspPage, ReadOnlyInline
from gateway.core.time_zones import list_time_zones
from gateway.models import Channel, Division, Merchant, Psp


@admin.display(description="entityId", ordering="pk")
def format_entity_id(row: Psp | Division | Merchant | Channel) -> str:
    """The id without hyphens, as requests and configuration documents have it."""
    return row.entity_id


_ENTITY_ID: Final[Any] = format_entity_id
"""The function as a field: Django takes one, django-stubs only a name."""


@admin.register(Psp)
class PspAdmin(PspPage):
    psp_path = "pk"
    nothing = gettext_lazy("A PSP is the top of the tree: divisions, merchants and channels stand below it.")
    list_display = ("name", _ENTITY_ID, "active")
    fields = ("name", "active", _ENTITY_ID)
    readonly_fields = (_ENTITY_ID,)


@admin.register(Division)
class DivisionAdmin(PspPage):
    nothing = gettext_lazy("A division groups merchants of a PSP.")
    list_display = ("name", _ENTITY_ID, "psp", "active")
    list_select_related = ("psp",)
    fields = ("psp", "name", "active", _ENTITY_ID)
    readonly_fields = (_ENTITY_ID,)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        """A division cannot change its PSP."""
        return self.readonly_fields if obj is None else (*self.readonly_fields, "psp")


class ChannelInline(ReadOnlyInline):
    model = Channel
    fields = ("name", _ENTITY_ID, "position", "three_d_secure", "parameters", "active")
    readonly_fields = (_ENTITY_ID,)
    show_change_link = True


class MerchantForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    time_zone = forms.ChoiceField(
        label=gettext_lazy("time zone"),
        choices=[(name, name) for name in list_time_zones()],
        initial="UTC",
        widget=UnfoldAdminSelectWidget(),
        help_text=gettext_lazy("Reports and schedules of this merchant follow it."),
    )

    class Meta:
        model = Merchant
        fields = ("name", "division", "dispatching", "time_zone", "active")


@admin.register(Merchant)
class MerchantAdmin(MerchantPage):
    form = MerchantForm
    ordering = ("name",)
    merchant_path, channel_path = "pk", None
    nothing = gettext_lazy("A merchant has channels, tokens and payments; it stands in a division.")
    list_display = ("name", _ENTITY_ID, "division", "dispatching", "time_zone", "active")
    list_select_related = ("division",)
    search_fields = ("name",)
    fields = ("name", "division", "dispatching", "time_zone", "active", _ENTITY_ID)
    readonly_fields = (_ENTITY_ID,)
    inlines = (ChannelInline,)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        """A merchant cannot change its division: grants on the division would lose or gain it."""
        return self.readonly_fields if obj is None else (*self.readonly_fields, "division")

    def may(self, request: HttpRequest, verb: str, row: models.Model | None = None) -> bool:
        """A new merchant is checked by the PSP of its division."""
        if isinstance(row, Merchant) and row._state.adding:
            return (
                permissions.list_permitted_psps(request.user, self.right(verb))
                .filter(divisions=row.division_id)
                .exists()
            )
        return super().may(request, verb, row)

    def save_model(self, request: HttpRequest, obj: Merchant, form: forms.ModelForm[Merchant], change: bool) -> None:
        super().save_model(request, obj, form, change)
        permissions.clear_grant_cache(request.user)
