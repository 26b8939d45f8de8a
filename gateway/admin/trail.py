"""The audit trail: who changed what or looked at it, searchable, and changed by nobody."""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from gateway.admin.kit import ReadOnly
from gateway.models import AuditEntry
from gateway.rights import Place


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    channel_path = None
    list_display = ("at", "actor", "ip", "what", "subject", "subject_id")
    list_filter = ("action", "subject")
    search_fields = ("actor", "subject_id")
    search_help_text = _("Who, from which address, or the id of what was changed")
    ordering = ("-id",)
    fields = ("at", "actor", "ip", "action", "subject", "subject_id", "changes")
    readonly_fields = fields

    @display(
        description=_("action"), ordering="action",
        label={"view": "info", "create": "success", "issue": "success", "change": "warning", "configure": "warning",
               "rotate": "warning", "delete": "danger", "revoke": "danger", "refused": "danger"},
    )  # fmt: skip
    def what(self, entry: AuditEntry) -> str:
        return entry.action

    @admin.display(description=_("before and after"))
    def changes(self, entry: AuditEntry) -> SafeString:
        before, after = entry.before or {}, entry.after or {}
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)] or list(after)
        rows = [(name, _text(before.get(name)), _text(after.get(name))) for name in names]
        return SafeString(render_to_string("admin/before_after.html", {"rows": rows}))

    def place(self, row: AuditEntry) -> Place:
        return Place(merchant=row.merchant)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """By whole values: ids are written with hyphens and without."""
        term = search_term.strip()
        if not term:
            return queryset, False
        plain = term.replace("-", "")
        dashed = (
            "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:])) if len(plain) == 32 else term
        )
        found = Q(actor__iexact=term) | Q(subject_id__in=(term, dashed))
        return queryset.filter(found | Q(ip=term) if _is_address(term) else found), False


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _is_address(term: str) -> bool:
    try:
        ip_address(term)
    except ValueError:
        return False
    return True
