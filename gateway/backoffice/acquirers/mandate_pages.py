"""SEPA mandates: viewed, ended for the debtor's sake, and released after a bank's return blocked them.

Source: docs/connectors/sepa.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.backoffice.kit.base import ReadOnlyPage
from gateway.backoffice.kit.formatting import format_labelled
from gateway.connectors.sepa import mandates
from gateway.connectors.sepa.bank_reasons import find_bank_reason
from gateway.models import SepaMandate


@admin.register(SepaMandate)
class SepaMandateAdmin(ReadOnlyPage):
    """Mandates: read-only, but for their end and release."""

    channel_path = None
    sensitive = True
    nothing = lazy("A mandate stands here when its first direct debit comes, or an account is stored.")
    list_display = ("mandate", "merchant", "state", "reason_text", "signed_on", "used_on", "lapses_on")
    list_select_related = ("merchant",)
    list_filter = ("state",)
    search_fields = ("mandate",)
    search_help_text = lazy("A mandate's id, as it stands in the file")
    ordering = ("-id",)
    fields = (
        "mandate", "merchant", "creditor", "creditor_name", "instrument", "state", "reason_text", "state_at",
        "signed_on", "used_on", "lapses_on", "named_by_merchant", "recurring", "amendment_text", "debtor_address",
    )  # fmt: skip
    readonly_fields = fields
    actions = ("end_mandates", "release_mandates")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[SepaMandate], search_term: str
    ) -> tuple[QuerySet[SepaMandate], bool]:
        """Search by the exact id."""
        term = search_term.strip()
        return (queryset.filter(mandate=mandates.build_mandate_id(term)) if term else queryset), False

    def has_manage_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change", obj)

    @admin.action(description=lazy("End: the debtor has revoked it"), permissions=["manage"])
    def end_mandates(self, request: HttpRequest, queryset: QuerySet[SepaMandate]) -> None:
        """End mandates, with an audit entry each."""
        done = self._change(request, queryset, "end mandate", mandates.end_mandate)
        messages.success(request, _("Mandates ended: %d.") % done)

    @admin.action(description=lazy("Release: the debtor agrees to further collections"), permissions=["manage"])
    def release_mandates(self, request: HttpRequest, queryset: QuerySet[SepaMandate]) -> None:
        """Release blocked mandates, with an audit entry each."""
        done = self._change(request, queryset, "release mandate", mandates.release_mandate)
        messages.success(request, _("Mandates released: %d.") % done)

    def _change(
        self,
        request: HttpRequest,
        queryset: QuerySet[SepaMandate],
        action: str,
        change: Callable[[SepaMandate], bool],
    ) -> int:
        done = 0
        for row in self.own(request, queryset, "change").select_related("merchant").order_by("pk"):
            with transaction.atomic():
                if change(row):
                    before = {"state": row.state, "state_reason": row.state_reason}
                    self.record(request, action, row, before=before)
                    done += 1
        return done

    @admin.display(description=lazy("reason"))
    def reason_text(self, row: SepaMandate) -> str:
        if row.state_reason in SepaMandate.StateReason.values:
            return str(_(str(SepaMandate.StateReason(row.state_reason).label)))
        meaning = _(find_bank_reason(row.state_reason).meaning)
        return format_labelled(row.state_reason, meaning) if row.state_reason else ""

    @admin.display(description=lazy("lapses on"))
    def lapses_on(self, row: SepaMandate) -> str:
        day = mandates.mandate_lapses_on(row)
        return day.isoformat() if day is not None else ""

    @admin.display(description=lazy("changed since the last collection"))
    def amendment_text(self, row: SepaMandate) -> str:
        names = {
            "account": _("another account"),
            "mandate": _("another mandate id"),
            "creditor": _("another creditor identifier"),
        }
        return ", ".join(str(name) for key, name in names.items() if key in row.amendment)

    @admin.display(description=lazy("address"))
    def debtor_address(self, row: SepaMandate) -> str:
        return ", ".join(row.address.values())
