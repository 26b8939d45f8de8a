"""Pages about shoppers' data: ask to erase it, decide such a request, export one person's data.

The verbs are in gateway.backoffice.personal_data.erasure_requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.access import audit_log, permissions
from gateway.access.permissions import RowOwner
from gateway.backoffice.follow_ups.second_person import (
    MAX_SHOWN_OF_A_KIND,
    WaitingRequest,
    register_request_source,
)
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.entity_names import (
    MAX_TYPED_NAME_CHARS,
    EntityNameError,
    build_suggestion_address,
    find_typed_entity,
    list_permitted_entities,
)
from gateway.backoffice.personal_data import erasure_requests
from gateway.backoffice.personal_data.erasure_requests import (
    ERASURE_APPROVAL_LIFETIME,
    MAX_ERASURE_REASON_CHARS,
    OPEN_ERASURE_STATES,
    ErasureClerk,
    ErasureRefusedError,
    ErasureState,
)
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.models import ErasureRequest, Merchant
from gateway.personal_data.export import dump_export
from gateway.personal_data.people import (
    MAX_PERSON_VALUE_CHARS,
    PersonKind,
    PersonNotFoundError,
    PersonSelector,
    mask_person_value,
    parse_person,
)
from gateway.personal_data.table import PERSONAL_DATA, Erasing, KeepReason

MAX_COUNTED_ERASURES: Final = 200
"""Waiting requests that the badge counts."""
ERASURE_ORDER: Final = keyset.KeysetOrder(columns=(("asked_at", datetime), ("id", UUID)), newest_first=True)
EXPORT_PERSON_PERMISSION: Final = "gateway.export_erasurerequest"
_PILLS: Final = {
    ErasureState.ASKED: "wait", ErasureState.DONE: "good", ErasureState.REJECTED: "bad",
    ErasureState.APPROVED: "wait", ErasureState.WITHDRAWN: "plain",
}  # fmt: skip
_ERASING_WORDS: Final[Mapping[str, str | Promise]] = {
    Erasing.ERASE.name: lazy("erased"),
    Erasing.FILTER.name: lazy("personal values erased"),
    Erasing.DELETE.name: lazy("deleted"),
    Erasing.KEEP.name: lazy("kept"),
    Erasing.EXPIRE.name: lazy("goes by itself"),
}
_TITLES: Final = {table.model: table.title for table in PERSONAL_DATA}


@admin.register(ErasureRequest)
class ErasureRequestAdmin(ReadOnlyPage):
    """The list of requests with the form for a new one, and the page that decides one."""

    channel_path = None
    has_views = False

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("ask/", wrap(self.ask_view), name="gateway_erasurerequest_ask"),
            path("<uuid:erasure>/decide/", wrap(self.decide_view), name="gateway_erasurerequest_decide"),
        ]
        return own + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.get_queryset(request).select_related("merchant").defer("report")
        pages = keyset.read_keyset_page(found, ERASURE_ORDER, request.GET)
        only = list_permitted_entities(request.user, "merchant", self.right("view"))[:2]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Shoppers' data"),
            "opts": self.opts,
            "rows": [(row, _PILLS[ErasureState(row.state)]) for row in pages.rows],
            "pages": pages,
            "merchant": only[0].name if len(only) == 1 else "",
            "names": build_suggestion_address("merchant"),
            "name_max": MAX_TYPED_NAME_CHARS,
            "kinds": PersonKind.choices,
            "value_max": MAX_PERSON_VALUE_CHARS,
            "reason_max": MAX_ERASURE_REASON_CHARS,
            "may_ask": self.may(request, "add"),
            "may_export": permissions.has_permission(request.user, EXPORT_PERSON_PERMISSION),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/erasures.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row: ErasureRequest = self.find_viewed_row(request, object_id)
        user = int(request.user.pk or 0)
        waiting, approved = row.state == ErasureState.ASKED, row.state == ErasureState.APPROVED
        may_withdraw = (waiting or approved) and row.asked_by_id == user
        may_decide = (waiting or approved) and self.may(request, "change", row) and row.asked_by_id != user
        context = {
            **self.admin_site.each_context(request),
            "title": _("Erasing a shopper's data"),
            "opts": self.opts,
            "original": row,
            "erasure": row,
            "pill": _PILLS[ErasureState(row.state)],
            "at_least": row.report.get("atLeast", False),
            "cut": [_TITLES.get(label, label) for label in row.report.get("cut", [])],
            "is_late": erasure_requests.is_erasure_late(row, clock.real_now()),
            "lapses_at": row.decided_at + ERASURE_APPROVAL_LIFETIME if approved and row.decided_at else None,
            "erased": _render_lines(row.report, kept=False),
            "kept": _render_lines(row.report, kept=True),
            "waiting": waiting or approved,
            "approved": approved,
            "command": f"python manage.py forget_shopper --request {row.pk.hex}",
            "person": row.value if may_decide or may_withdraw else row.shown,
            "may_decide": may_decide,
            "why_not": erasure_requests.explain_decision_refusal(row, user) if may_decide and waiting else "",
            "may_withdraw": may_withdraw,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/erasure.html", context)

    def ask_view(self, request: HttpRequest) -> HttpResponse:
        """Ask to erase, or export, what is stored of one person."""
        back = redirect(reverse("admin:gateway_erasurerequest_changelist"))
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return back
        exporting = request.POST.get("verb") == "export"
        right = EXPORT_PERSON_PERMISSION if exporting else self.right("add")
        if not permissions.has_permission(request.user, right):
            raise PermissionDenied
        try:
            merchant = _find_merchant(request, right)
        except EntityNameError as fault:
            messages.error(request, _("Merchant: %s.") % fault)
            return back
        if (ask := session.require_reauthentication(request, back.url)) is not None:
            return ask
        try:
            selector = _read_person(request, merchant)
            if exporting:
                return _export_person(request, selector)
            row = erasure_requests.request_erasure(selector, request.POST.get("reason", ""), by=_clerk(request))
        except (PersonNotFoundError, ErasureRefusedError) as fault:
            messages.error(request, str(fault))
            return back
        messages.success(request, _("Asked. A second person decides it."))
        if row.report.get("atLeast"):
            messages.info(request, _("To count all that would be erased takes longer than a page may."))
        return redirect(_page_of(row))

    def decide_view(self, request: HttpRequest, erasure: Any) -> HttpResponse:
        """Approve, reject or withdraw a request."""
        row = self._row(request, str(erasure))
        if not isinstance(row, ErasureRequest) or not self.has_view_permission(request, row):
            raise PermissionDenied
        back = redirect(_page_of(row))
        verb = request.POST.get("verb", "")
        if request.method != "POST" or verb not in _STEPS:
            return back
        if verb != "withdraw" and not self.may(request, "change", row):
            raise PermissionDenied
        if verb == "approve" and (ask := session.require_reauthentication(request, back.url)) is not None:
            return ask
        try:
            row = _STEPS[verb](row, by=_clerk(request))
            if row.state == ErasureState.APPROVED:
                messages.success(request, _("Approved. It takes longer than a page may: the command below erases."))
            else:
                messages.success(request, _("Erased.") if verb == "approve" else _("Done."))
        except ErasureRefusedError as fault:
            messages.error(request, str(fault))
        return back


_STEPS: Final[Mapping[str, Callable[..., ErasureRequest]]] = {
    "approve": erasure_requests.approve_erasure,
    "reject": erasure_requests.reject_erasure,
    "withdraw": erasure_requests.withdraw_erasure,
}


def list_erasure_requests(user: Any) -> list[WaitingRequest]:
    """Requests of others that ``user`` may decide, for the page of approvals; also those that were approved and wait
    for the command, which may still be rejected."""
    scope = permissions.find_access_scope(user, "gateway.change_erasurerequest")
    if not scope:
        return []
    rows = ErasureRequest.objects.filter(scope.where("merchant", None), state__in=OPEN_ERASURE_STATES)
    rows = rows.exclude(asked_by=user.pk).select_related("merchant").order_by("asked_at")[:MAX_SHOWN_OF_A_KIND]
    now = clock.real_now()
    return [
        WaitingRequest(
            kind=_("Erase a shopper's data (approved, waits for the command)")
            if row.state == ErasureState.APPROVED
            else _("Erase a shopper's data"),
            subject=f"{row.get_kind_display()} {row.shown}",
            merchant=row.merchant.name,
            asked_by=row.asked_by_name,
            asked_at=row.asked_at,
            address=_page_of(row),
            is_late=erasure_requests.is_erasure_late(row, now),
        )
        for row in rows
    ]


register_request_source("erasures", list_erasure_requests)


def count_waiting_erasures(user: Any) -> int:
    """Number of requests of others that ``user`` may decide, carried out or not, up to MAX_COUNTED_ERASURES."""
    scope = permissions.find_access_scope(user, "gateway.change_erasurerequest")
    if not scope:
        return 0
    rows = ErasureRequest.objects.filter(state__in=OPEN_ERASURE_STATES).exclude(asked_by=user.pk)
    if not scope.everything:
        rows = rows.filter(scope.where("merchant", None))
    return int(rows.order_by()[:MAX_COUNTED_ERASURES].count())


def _find_merchant(request: HttpRequest, right: str) -> Merchant:
    """The merchant that was typed. Raises EntityNameError for none of the user's, and PermissionDenied for one on which
    the user has no such right."""
    rows = list_permitted_entities(request.user, "merchant", right)
    merchant: Merchant = find_typed_entity(rows, request.POST.get("merchant", ""))
    if not permissions.has_permission(request.user, right, RowOwner(merchant=merchant.pk)):
        raise PermissionDenied
    return merchant


def _read_person(request: HttpRequest, merchant: Merchant) -> PersonSelector:
    kind = request.POST.get("kind", "")
    if kind not in PersonKind.values:
        raise PersonNotFoundError(_("Choose by what the person is found."))
    return parse_person(merchant, kind, request.POST.get("value", ""))


def _export_person(request: HttpRequest, selector: PersonSelector) -> HttpResponse:
    document = erasure_requests.export_within_page(selector)
    facts = {"kind": selector.kind, "shown": mask_person_value(selector.value)}
    audit_log.record_audit_entry(actor_from_request(request), "export shopper", selector.merchant, after=facts)
    answer = HttpResponse(dump_export(document), content_type="application/json; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="shopper.json"'
    answer["Cache-Control"] = "no-store"
    return answer


def _clerk(request: HttpRequest) -> ErasureClerk:
    return ErasureClerk(user=int(request.user.pk or 0), actor=actor_from_request(request))


def _page_of(row: ErasureRequest) -> str:
    return reverse("admin:gateway_erasurerequest_change", args=[row.pk])


def _render_lines(report: Mapping[str, Any], *, kept: bool) -> list[dict[str, Any]]:
    """The report's lines about what was erased, or about what stayed, with words in the user's language."""
    stays = {Erasing.KEEP.name, Erasing.EXPIRE.name}
    return [
        {
            "title": _TITLES.get(line["model"], line["model"]),
            "column": line["column"],
            "rows": line["rows"],
            "done": _ERASING_WORDS[line["done"]],
            "why": KeepReason[line["reason"]].value if "reason" in line else "",
        }
        for line in report.get("lines", [])
        if (line["done"] in stays) is kept
    ]
