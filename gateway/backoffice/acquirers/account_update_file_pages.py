"""Files of the account updater, read-only: one may be of several merchants. Source: docs/decisions/0135."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.base import InstallationPage
from gateway.models import AccountUpdateFile


@admin.register(AccountUpdateFile)
class AccountUpdateFileAdmin(InstallationPage):
    """What became of each file, and why its answer was refused."""

    changeable = False
    nothing = gettext_lazy("The first file comes when a stored card of a channel with the account updater is due.")
    list_display = ("created_at", "name", "cards", "state", "fault", "answered_at")
    list_display_links = ("created_at", "name")
    list_filter = ("state",)
    ordering = ("-id",)
    fields = ("name", "state", "cards", "tries", "fault", "created_at", "due_at", "answered_at")
    readonly_fields = fields
    actions = None

    @admin.display(description=gettext_lazy("name"))
    def name(self, row: AccountUpdateFile) -> str:
        return row.id.hex
