"""The audit log: who changed or viewed what. It can be searched, not changed."""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import Any, Final

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gateway.access import audit_log
from gateway.access.permissions import RowOwner
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.models import AuditEntry

HYPHENATED_UUID_CHARS: Final = 36
"""Length of an id with hyphens, as Django writes it; pages, API and logs write it without."""

_TONES: Final = {
    "view": "note", "create": "good", "issue": "good", "change": "warn", "configure": "warn", "rotate": "warn",
    "delete": "bad", "disable": "bad", "revoke": "bad", "refused": "bad",
}  # fmt: skip
"""Action → class of its pill; other actions have none."""


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyPage):
    channel_path = None
    nothing = _("Every change, and every look at a sensitive page, leaves an entry.")
    list_display = ("at", "actor", "ip", "what", "about")
    list_filter = ("action", "subject")
    search_fields = ("actor", "subject_id")
    search_help_text = _("Who, from which address, or the id of what was changed")
    ordering = ("-id",)
    fields = ("at", "actor", "ip", "what", "about", "changes")
    readonly_fields = fields

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        answer = super().changelist_view(request, extra_context)
        if answer.status_code == 200:
            _record_log_view(request, "")
        return answer

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        answer = super().change_view(request, object_id, form_url, extra_context)
        if answer.status_code == 200:
            _record_log_view(request, object_id)
        return answer

    @admin.display(description=_("action"), ordering="action")
    def what(self, entry: AuditEntry) -> str:
        return format_html('<span class="th-pill {}">{}</span>', _TONES.get(entry.action, ""), gettext(entry.action))

    @admin.display(description=_("subject"))
    def about(self, entry: AuditEntry) -> str:
        """The entry's subject, named and linked as on its own page."""
        ident = entry.subject_id
        shown = ident.replace("-", "") if len(ident) == HYPHENATED_UUID_CHARS else ident
        page = next((one for one in self.admin_site._registry if one._meta.model_name == entry.subject), None)
        if page is None or not ident:
            return f"{entry.subject} {shown}".strip()
        address = reverse(f"admin:{page._meta.app_label}_{page._meta.model_name}_change", args=(ident,))
        return format_html('<a class="th-link" href="{}">{} {}</a>', address, page._meta.verbose_name, shown)

    @admin.display(description=_("before and after"))
    def changes(self, entry: AuditEntry) -> SafeString:
        before, after = entry.before or {}, entry.after or {}
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)] or list(after)
        rows = [(name, _format_value(before.get(name)), _format_value(after.get(name))) for name in names]
        return SafeString(render_to_string("admin/before_after.html", {"rows": rows}))

    def place(self, row: AuditEntry) -> RowOwner:
        return RowOwner(merchant=row.merchant)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Search by whole values; ids match with hyphens and without."""
        term = search_term.strip()
        if not term:
            return queryset, False
        plain = term.replace("-", "")
        dashed = (
            "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:])) if len(plain) == 32 else term
        )
        found = Q(actor__iexact=term) | Q(subject_id__in=(term, dashed))
        return queryset.filter(found | Q(ip=term) if _is_address(term) else found), False


def _record_log_view(request: HttpRequest, entry: str) -> None:
    """Write an audit entry about reading the audit log (PCI DSS 10.2.1.3)."""
    audit_log.record_audit_entry_for(actor_from_request(request), "view", "auditentry", entry)


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _is_address(term: str) -> bool:
    try:
        ip_address(term)
    except ValueError:
        return False
    return True
