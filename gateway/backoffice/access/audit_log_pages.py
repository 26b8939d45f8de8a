"""The audit log: who changed or viewed what. It can be searched, not changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from ipaddress import ip_address
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import connections
from django.db.models import DateTimeField, Field, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from gateway.access import audit_log
from gateway.access.permissions import RowOwner
from gateway.background import queue
from gateway.backoffice.access import audit_work
from gateway.backoffice.access.audit_sentences import LOOK_ACTIONS, describe_entries, name_kind, name_operation
from gateway.backoffice.follow_ups.reasons import name_reason
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.entity_names import label_entity
from gateway.backoffice.kit.formatting import build_state_pill, format_local, format_money, name_zone
from gateway.backoffice.kit.list_filters import PeriodFilter
from gateway.backoffice.kit.work_start import start_page_work
from gateway.backoffice.payments.chain_sums import CHAIN_SUM_KEYS
from gateway.core import identifiers
from gateway.models import Approval, AuditEntry, AuditSeal, Channel, Merchant

HYPHENATED_UUID_CHARS: Final = 36
"""Length of an id with hyphens, as Django writes it; pages, API and logs write it without."""

_TONES: Final = {
    "view": "note", "create": "good", "issue": "good", "change": "warn", "configure": "warn", "rotate": "warn",
    "delete": "bad", "disable": "bad", "revoke": "bad", "refused": "bad",
}  # fmt: skip
"""Action → class of its pill; other actions have none."""


_VALUE_TITLES: Final[Mapping[str, Any]] = {
    "operation": _("What"), "amount": _("Amount"), "currency": _("Currency"), "reason": _("Reason"),
    "note": _("Note"), "payment": _("Payment"), "status": _("Status"), "code": _("Result"),
    "alone": _("Without a second person"), "name": _("Name"), "merchant": _("Merchant"), "state": _("State"),
    "account": _("Account"), "institute": _("Institute"), "file": _("File"), "lines": _("Lines"),
    "paid": _("Reached the card"), "asked by": _("Asked by"), "decided by": _("Decided by"),
    "follow-up": _("Carried out as"), "why": _("Why"),
}  # fmt: skip
"""Value of an entry → its name for a reader, in the order in which they are shown."""


class LooksFilter(admin.SimpleListFilter):
    """List filter that hides entries of views unless asked for: they change nothing, and are half of all entries."""

    title = _("looks")
    parameter_name = "looks"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The choices besides hiding views."""
        return [("all", _("Show looks, too")), ("only", _("Looks alone"))]

    def choices(self, changelist: Any) -> Any:
        """All choices; the first one, without a value, hides views."""
        for number, choice in enumerate(super().choices(changelist)):
            yield choice if number else {**choice, "display": gettext("Hidden")}

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """The entries, without views unless they, or an action, are asked for."""
        if self.value() == "only":
            return queryset.filter(action__in=LOOK_ACTIONS)
        if self.value() == "all" or "action__exact" in request.GET or "action" in request.GET:
            return queryset
        return queryset.exclude(action__in=LOOK_ACTIONS)


_FIRST_ENTRY: Final = """
    WITH RECURSIVE halved(low, high) AS (
        SELECT 1::bigint, coalesce(max(id), 0) + 1 FROM gateway_auditentry
        UNION ALL
        SELECT CASE WHEN first.at < %(at)s THEN middle + 1 ELSE low END,
               CASE WHEN first.at < %(at)s THEN high ELSE middle END
        FROM halved
        CROSS JOIN LATERAL (SELECT (low + high) / 2 AS middle) AS half
        LEFT JOIN LATERAL (SELECT at FROM gateway_auditentry WHERE id >= middle ORDER BY id LIMIT 1) AS first ON true
        WHERE low < high
    )
    SELECT low FROM halved WHERE low = high
"""


def find_first_entry_id(at: datetime) -> int:
    """The id from which on entries are of ``at`` or later, give or take those that were written at once: times have no
    index, and follow the ids, which are halved in one statement."""
    with connections[AuditEntry.objects.db].cursor() as cursor:
        cursor.execute(_FIRST_ENTRY, {"at": at})
        return int(cursor.fetchone()[0])


class EntryPeriodFilter(PeriodFilter):
    """The filter by a period, along ids that are numbers."""

    column = "at"
    real = True

    @staticmethod
    def find_first_id(at: datetime) -> int:
        return find_first_entry_id(at)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyPage):
    """The audit trail in sentences, the state of its hash chain, checking it and the signed export."""

    channel_path = None
    nothing = _("Every change, and every look at a sensitive page, leaves an entry.")
    list_before_template = "admin/office/audit_before.html"
    list_display = ("at", "sentence", "action_pill", "subject_link", "ip")
    list_filter = (LooksFilter, EntryPeriodFilter, "action", "subject")
    search_fields = ("actor", "subject_id")
    search_help_text = _("Who, from which address, or the id of what was changed")
    ordering = ("-id",)
    fields = ("at", "sentence", "actor", "ip", "action_pill", "subject_link", "seal", "changes")
    readonly_fields = fields

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("check/", wrap(self.check_view), name="gateway_auditentry_check"),
            path("export/", wrap(self.export_view), name="gateway_auditentry_export"),
        ]
        inherited: list[URLPattern] = super().get_urls()
        return own + inherited

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The list, with the sentence of each row of its page."""
        changelist = super().get_changelist_instance(request)
        sentences = describe_entries(changelist.result_list)
        for entry in changelist.result_list:
            entry.sentence = sentences[entry.pk]
        return changelist

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        everything = self.scope(request, "view").everything
        last = AuditSeal.objects.order_by("-number").first() if everything else None
        answer = super().changelist_view(
            request, {"last_seal": last, "everything": everything, **(extra_context or {})}
        )
        if answer.status_code == 200:
            _record_log_view(request, "")
        return answer

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        # An entry is never changed: it has no history.
        context = {"show_history": False, **(extra_context or {})}
        answer = super().change_view(request, object_id, form_url, context)
        if answer.status_code == 200:
            _record_log_view(request, object_id)
        return answer

    def check_view(self, request: HttpRequest) -> HttpResponse:
        """Start the work that checks the hash chain, which is the installation's as a whole."""
        if not self.scope(request, "view").everything:
            raise PermissionDenied
        return self._start_work(request, audit_work.AUDIT_CHECK, gettext("Check of the audit trail"))

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Start the work that makes the signed export of what the user may see."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return self._start_work(request, audit_work.AUDIT_EXPORT, gettext("Audit trail, signed"))

    def _start_work(self, request: HttpRequest, kind: queue.WorkKind, title: str) -> HttpResponse:
        back = reverse("admin:gateway_auditentry_changelist")
        if request.method != "POST":
            return redirect(back)
        return start_page_work(request, kind, title, {"language": get_language() or "en"}, back=back)

    @admin.display(description=_("sentence"))
    def sentence(self, entry: AuditEntry) -> str:
        known: str | None = getattr(entry, "sentence", None)
        return known if known is not None else describe_entries([entry])[entry.pk]

    @admin.display(description=_("seal"))
    def seal(self, entry: AuditEntry) -> str:
        found = AuditSeal.objects.filter(entry=entry.pk).first()
        return found.digest if found is not None else gettext("not sealed yet")

    @admin.display(description=_("action"), ordering="action")
    def action_pill(self, entry: AuditEntry) -> str:
        verb = entry.action.rpartition(" ")[2]
        is_work = entry.subject == "backgroundwork" and verb in ("asked", "cancelled")
        action = f"work {verb}" if is_work else entry.action  # the kind of work stands in the sentence
        return format_html('<span class="th-pill {}">{}</span>', _TONES.get(entry.action, ""), gettext(action))

    @admin.display(description=_("subject"))
    def subject_link(self, entry: AuditEntry) -> str:
        """The entry's subject, named and linked as on its own page."""
        ident = entry.subject_id
        shown = ident.replace("-", "") if len(ident) == HYPHENATED_UUID_CHARS else ident
        page = next((one for one in self.admin_site._registry if one._meta.model_name == entry.subject), None)
        if page is None or not ident:
            return f"{name_kind(entry.subject)} {shown}".strip()
        address = reverse(f"admin:{page._meta.app_label}_{page._meta.model_name}_change", args=(ident,))
        return format_html('<a class="th-link" href="{}">{} {}</a>', address, page._meta.verbose_name, shown)

    @admin.display(description=_("before and after"))
    def changes(self, entry: AuditEntry) -> SafeString:
        before, after = entry.before or {}, entry.after or {}
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)] or list(after)
        values, known = {**before, **after}, list(_VALUE_TITLES)
        entities = _load_entities(entry.subject, before, after)
        names = sorted(changed, key=lambda name: known.index(name) if name in known else len(known))
        rows = [
            (
                _title_value(entry.subject, name),
                _format_value(entry.subject, name, before.get(name), values, entities),
                _format_value(entry.subject, name, after.get(name), values, entities),
            )
            for name in names
        ]
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


def _title_value(subject: str, name: str) -> str:
    """The name of a value: of a payment's sums and of what is kept of acts in words, of a row's columns as forms name
    them."""
    if name in CHAIN_SUM_KEYS:
        return gettext(name)
    if name in _VALUE_TITLES:
        return str(_VALUE_TITLES[name])
    field = _find_column(subject, name)
    return capfirst(str(field.verbose_name)) if field is not None else name


def _find_column(subject: str, name: str) -> Field[Any, Any] | None:
    model = next((each for each in apps.get_models() if each._meta.model_name == subject), None)
    return next((each for each in model._meta.fields if each.name == name), None) if model is not None else None


def _load_entities(subject: str, *kept: Mapping[str, Any]) -> dict[UUID, str]:
    """Id → name of the merchants and channels that columns of an entry name, each kind read in one statement."""
    asked: dict[type[Merchant | Channel], set[UUID]] = {}
    for name, value in (pair for values in kept for pair in values.items()):
        field = _find_column(subject, name)
        model = field.related_model if field is not None else None
        if model in (Merchant, Channel) and (ident := _read_entity_id(value)) is not None:
            asked.setdefault(model, set()).add(ident)
    found: dict[UUID, str] = {}
    for model, idents in asked.items():
        rows: QuerySet[Any] = model._default_manager.all()
        rows = rows.select_related("merchant") if model is Channel else rows
        found |= {ident: label_entity(row) for ident, row in rows.in_bulk(idents).items()}
    return found


def _read_entity_id(value: Any) -> UUID | None:
    return identifiers.parse_id(value.replace("-", "")) if isinstance(value, str) else None


def _format_value(subject: str, name: str, value: Any, values: Mapping[str, Any], entities: Mapping[UUID, str]) -> str:
    """A value for a reader. ``values``: all of its entry; those of a follow-up have an operation; ``entities``: names
    of merchants and channels."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return gettext("Yes") if value else gettext("No")
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, indent=1)
    if "operation" not in values:
        return _format_column(_find_column(subject, name), value, entities)
    if name == "amount" or name in CHAIN_SUM_KEYS:
        return _format_kept_money(value, str(values.get("currency", "")))
    if name == "operation":
        return name_operation(subject, value)
    if name == "reason":
        return name_reason(value) or value
    if name == "over" and value in Approval.Over:
        return str(Approval.Over(value).label)
    if name == "status" or (name == "state" and subject == "approval"):
        return str(build_state_pill(value)["text"])
    return value


def _format_column(field: Field[Any, Any] | None, text: str, entities: Mapping[UUID, str]) -> str:
    """A column's value as other pages write it: a choice in words, a time in the reader's zone, an entity by its name
    with its id."""
    if field is None:
        return text
    if text in (choices := dict(field.flatchoices)):
        return str(choices[text])
    if isinstance(field, DateTimeField):
        at = parse_datetime(text)
        return f"{format_local(at)} {name_zone(at)}" if at is not None else text
    if field.related_model in (Merchant, Channel) and (ident := _read_entity_id(text)) is not None:
        return "\n".join(filter(None, (entities.get(ident), ident.hex)))
    return text


def _format_kept_money(text: str, currency: str) -> str:
    try:
        return format_money(Decimal(text), currency)
    except InvalidOperation:
        return text


def _is_address(term: str) -> bool:
    try:
        ip_address(term)
    except ValueError:
        return False
    return True
