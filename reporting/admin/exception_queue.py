"""Back-office page of the exception queue: records without exactly one payment, open findings, and a clerk's actions.

The actions themselves are in reporting.settlement.exception_queue.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.access import audit_log, permissions
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.formatting import build_state_pill, format_money
from gateway.backoffice.payments import payment_search
from gateway.backoffice.payments.payment_filters import parse_payment_filters
from gateway.backoffice.payments.payment_search import FullCardNumberError, SearchTooBroadError, parse_search_term
from gateway.core import identifiers
from gateway.core.masking import mask_text
from gateway.models import Payment
from gateway.payments.refusal import RequestRefusedError
from reporting.models import IS_ACTIVE_MATCH, ClearingInstitute, Finding, Match, MatchState, SettlementRecord
from reporting.reconciliation import file_columns
from reporting.settlement import exception_queue, missing_settlements
from reporting.settlement.exception_queue import ExceptionActionError
from reporting.settlement.findings import FINDING_KIND_BY_NAME
from reporting.settlement.layout import CHARGEBACK_TYPE_VALUES
from reporting.templatetags.books import describe_line_kind

MAX_COUNTED_EXCEPTIONS: Final = 99
MAX_SHOWN_EXCEPTIONS: Final = 100
MAX_SHOWN_CANDIDATES: Final = 20
MAX_MERCHANT_CHOICES: Final = 50
MAX_SHOWN_DIFFERENCES: Final = 5
_STAMP_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_STAMP_DIGITS: Final = 17
_DIFFERENCE_TEXT: Final = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,3})?")
EXCEPTION_LISTS: Final = {
    "open": lazy("All to do"), "multiple": lazy("Several candidates"), "unmatched": lazy("Not matched"),
    "findings": lazy("Findings"), "missing": lazy("Missing payments"), "marked": lazy("Marked"),
    "lines": lazy("All lines"),
}  # fmt: skip
RECORD_ORDER: Final = keyset.KeysetOrder(columns=(("id", UUID),))
FINDING_ORDER: Final = keyset.KeysetOrder(columns=(("id", int),))
FILE_LINE_ORDER: Final = keyset.KeysetOrder(columns=(("line", int), ("id", UUID)))
MATCH_STATE_PILLS: Final = {
    MatchState.MATCHED: ("good", lazy("✓ Matched")),
    MatchState.MULTIPLE_MATCHES: ("wait", lazy("≟ Several candidates")),
    MatchState.NOT_MATCHED: ("bad", lazy("? Not matched")),
    "": ("plain", lazy("Fee")),
}


@admin.register(SettlementRecord)
class SettlementRecordAdmin(ReadOnlyPage):
    """The exception queue and the page of one settlement record."""

    channel_path = None

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "reporting_settlementrecord_", self.admin_site.admin_view
        own = [
            path("accept/", wrap(self.accept_view), name=f"{name}accept"),
            path("<uuid:record>/do/", wrap(self.do_view), name=f"{name}do"),
            path("<uuid:record>/finding/<int:finding>/", wrap(self.finding_view), name=f"{name}finding"),
        ]
        inherited: list[URLPattern] = super().get_urls()
        return own + inherited

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        file, kind = identifiers.parse_id(request.GET.get("file", "").replace("-", "")), request.GET.get("kind", "")
        kind = kind if kind in FINDING_KIND_BY_NAME else ""
        # Without a file the list of all records is refused: it would not be a list of things to do.
        lists = {name: title for name, title in EXCEPTION_LISTS.items() if file is not None or name != "lines"}
        chosen = request.GET.get("list", "open")
        chosen = chosen if chosen in lists else "open"
        matched = "yes" if chosen == "lines" and request.GET.get("matched") else ""
        own = (("file", file.hex if file else ""), ("kind", kind), ("matched", matched))
        kept = {name: value for name, value in own if value}
        missed = self._list_missing_payments(request) if chosen == "missing" else None
        rows, pages = self._read_list_page(request, chosen, file, kind, kept) if missed is None else ([], None)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Exceptions"),
            "opts": self.opts,
            "chosen": chosen,
            "lists": [
                (f"?{urlencode({'list': name, **kept})}", title, name == chosen) for name, title in lists.items()
            ],
            "missing": missed,
            "rows": rows,
            "pages": pages,
            "most": MAX_SHOWN_EXCEPTIONS,
            "narrowed": bool(kept),
            "last": self._find_last_resolved(request),
            **(self._render_differences(request, file) if chosen == "findings" else {}),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/exceptions.html", context)

    def _read_list_page(
        self, request: HttpRequest, chosen: str, file: UUID | None, kind: str, kept: dict[str, str]
    ) -> tuple[list[dict[str, Any]], keyset.KeysetPage[Any]]:
        """One page of the chosen list, of one file or of all: its rows and the keyset page."""
        own = [("list", chosen), *kept.items()]
        rows = self.get_queryset(request).select_related("institute", "merchant")
        if file is not None:
            rows = rows.filter(file=file)
        if chosen == "findings":
            found = Finding.objects.filter(closed_at=None, record__in=rows).select_related(
                "record__institute", "record__merchant"
            )
            findings = keyset.read_keyset_page(
                found.filter(kind=kind) if kind else found, FINDING_ORDER, request.GET, own
            )
            return [{**_render_line(one.record), "finding": one} for one in findings.rows], findings
        states: Sequence[str] = exception_queue.UNMATCHED_STATES
        if chosen in ("multiple", "unmatched"):
            states = (MatchState.MULTIPLE_MATCHES if chosen == "multiple" else MatchState.NOT_MATCHED,)
        if chosen != "lines":
            rows = rows.filter(state__in=states, marked=chosen == "marked")
        elif "matched" in kept:
            rows = rows.filter(state=MatchState.MATCHED, marked=False)
        page = keyset.read_keyset_page(rows, FILE_LINE_ORDER if chosen == "lines" else RECORD_ORDER, request.GET, own)
        return [_render_line(row) for row in page.rows], page

    def _list_missing_payments(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Payments of the user's merchants that their institute should have settled by now."""
        merchants = permissions.list_permitted_merchants(request.user, "reporting.view_settlementrecord").order_by(
            "name"
        )
        institutes = list(ClearingInstitute.objects.filter(active=True))
        found: list[dict[str, Any]] = []
        for merchant in merchants[:MAX_MERCHANT_CHOICES]:
            for institute in institutes:
                left = MAX_SHOWN_EXCEPTIONS - len(found)
                found += [
                    {**_render_payment_facts(one), "institute": institute, "merchant": merchant}
                    for one in missing_settlements.list_overdue_payments(institute, merchant)[:left]
                ]
        return found

    def _changeable_records(self, request: HttpRequest, file: UUID | None) -> QuerySet[SettlementRecord]:
        """The records, of one file or all, whose findings the user may close."""
        records = self.own(request, SettlementRecord.objects.all(), "change")
        return records if file is None else records.filter(file=file)

    def _render_differences(self, request: HttpRequest, file: UUID | None) -> dict[str, Any]:
        """Differences that can be accepted together, and what the user accepted last."""
        if not self.may(request, "change"):
            return {}
        records, at = self._changeable_records(request, file), _parse_stamp(request.GET.get("accepted", ""))
        by = actor_from_request(request).name
        undone = exception_queue.list_accepted_differences(records, at, by).count() if at is not None else 0
        return {
            "file": file.hex if file is not None else "",
            "differences": exception_queue.list_equal_differences(records, MAX_SHOWN_DIFFERENCES),
            "accepted": request.GET.get("accepted", "") if undone else "",
            "accepted_count": undone,
            "note_max": exception_queue.MAX_NOTE_CHARS,
        }

    def accept_view(self, request: HttpRequest) -> HttpResponse:
        """Accept all findings of one difference, or undo the last acceptance."""
        if not self.may(request, "change"):
            raise PermissionDenied
        file = identifiers.parse_id(request.POST.get("file", ""))
        kept = {"list": "findings", **({"file": file.hex} if file is not None else {})}
        if request.method == "POST":
            records, by = self._changeable_records(request, file), actor_from_request(request)
            stamp = _parse_stamp(request.POST.get("accepted", ""))
            if stamp is not None:
                count = exception_queue.reopen_accepted_differences(records, stamp, by)
                messages.success(request, _("%d findings are open again.") % count)
            else:
                kept |= self._accept_differences(request, records, by)
        return redirect(f"{reverse('admin:reporting_settlementrecord_changelist')}?{urlencode(kept)}")

    def _accept_differences(
        self, request: HttpRequest, records: QuerySet[SettlementRecord], by: audit_log.Actor
    ) -> dict[str, str]:
        amount = request.POST.get("difference", "")
        if not _DIFFERENCE_TEXT.fullmatch(amount):
            messages.error(request, _("difference: must be an amount, e.g. 1.00"))
            return {}
        currency, note = request.POST.get("currency", "")[:3], request.POST.get("note", "")
        try:
            at, count = exception_queue.accept_equal_differences(records, currency, Decimal(amount), by, note)
        except ExceptionActionError as fault:
            messages.error(request, str(fault))
        else:
            messages.success(request, _("%d findings are closed with your note.") % count)
            return {"accepted": _write_stamp(at)}
        return {}

    def _find_last_resolved(self, request: HttpRequest) -> SettlementRecord | None:
        """The record this user resolved last, as long as that can be undone."""
        ident = identifiers.parse_id(request.GET.get("last", "").replace("-", ""))
        row = self.get_queryset(request).filter(pk=ident).first() if ident else None
        return row if row is not None and self.may(request, "change", row) and _find_undoable(row) else None

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        record = self._record(request, unquote(object_id))
        found, message = self._search_payments(request, record)
        open_ = record.state in exception_queue.UNMATCHED_STATES
        matched = Match.objects.filter(IS_ACTIVE_MATCH, record=record, chosen=True).first()
        context = {
            **self.admin_site.each_context(request),
            "title": f"{describe_line_kind(record)} {format_money(record.amount, record.currency)}",
            "opts": self.opts,
            "original": record,
            "record": record,
            "pill": match_state_pill(record),
            "open": open_ and not record.marked,
            "facts": _render_record_facts(record),
            "q": request.GET.get("q", ""),
            "searched": message,
            "found": found,
            "columns": self._build_candidate_columns(request, record) if open_ else [],
            "matched": matched,
            "payment": Payment.objects.filter(pk=matched.payment).first() if matched else None,
            "may_change": self.may(request, "change", record),
            "undoable": _find_undoable(record),
            "findings": [(one, _(FINDING_KIND_BY_NAME[one.kind].about)) for one in record.findings.order_by("id")],
            "bookable": record.record_type in CHARGEBACK_TYPE_VALUES and bool(matched) and record.chargeback is None,
            "note_max": exception_queue.MAX_NOTE_CHARS,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/exception.html", context)

    def _build_candidate_columns(self, request: HttpRequest, record: SettlementRecord) -> list[dict[str, Any]]:
        """The candidate payments that the user may see, side by side, with what speaks for each."""
        scope = permissions.find_access_scope(request.user, "gateway.view_payment")
        return [
            {"candidate": one, **_render_payment_facts(one.payment)}
            for one in exception_queue.list_candidate_payments(record)
            if scope.covers(permissions.find_row_owner(one.payment))
        ]

    def _search_payments(self, request: HttpRequest, record: SettlementRecord) -> tuple[list[dict[str, Any]], str]:
        """The payments that the search box found, and a message about them."""
        if not (text := request.GET.get("q", "")):
            return [], ""
        scope = permissions.find_access_scope(request.user, "gateway.view_payment")
        try:
            rows = payment_search.find_payments_page(scope, parse_search_term(text), parse_payment_filters({})[0]).rows
        except FullCardNumberError:
            return [], _(payment_search.FULL_CARD_NUMBER_TEXT)
        except SearchTooBroadError:
            return [], _("That takes too long; look for an order number or an id.")
        rows = [row for row in rows if record.merchant_id in (None, row.merchant_id)][:MAX_SHOWN_CANDIDATES]
        return [_render_payment_facts(row) for row in rows], "" if rows else _("No payment of this merchant was found.")

    # --- actions -----------------------------------------------------------------------------------------------------

    def do_view(self, request: HttpRequest, record: Any) -> HttpResponse:
        row = self._record(request, str(record))
        if not self.may(request, "change", row):
            raise PermissionDenied
        page = reverse("admin:reporting_settlementrecord_change", args=[row.pk])
        if request.method != "POST":
            return redirect(page)
        by, verb, note = actor_from_request(request), request.POST.get("verb", ""), request.POST.get("note", "")
        try:
            if verb == "link":
                exception_queue.link_payment(row, self._payment(request), by, note)
                said = _("Linked.")
            elif verb == "mark":
                exception_queue.mark_without_payment(row, by, note)
                said = _("Marked: no payment is looked for.")
            elif verb == "book":
                exception_queue.book_linked_record(row, by)
                said = _("Entered into the ledger.")
            elif verb == "undo":
                exception_queue.undo_resolution(row, by)
                said = _("Taken back. The line waits again.")
            else:
                return redirect(page)
        except (ExceptionActionError, RequestRefusedError) as fault:
            messages.error(request, str(fault))
            return redirect(page)
        messages.success(request, said)
        if verb in ("undo", "book"):
            return redirect(page)
        return redirect(f"{reverse('admin:reporting_settlementrecord_changelist')}?last={row.pk.hex}")

    def _payment(self, request: HttpRequest) -> Payment:
        """The chosen payment, if the user may see it. Raises ExceptionActionError."""
        ident = identifiers.parse_id(request.POST.get("payment", "").replace("-", ""))
        found = Payment.objects.select_related("merchant", "channel").filter(pk=ident).first() if ident else None
        if found is None or not permissions.has_permission(request.user, "gateway.view_payment", found):
            raise ExceptionActionError(_("there is no such payment"))
        return found

    def finding_view(self, request: HttpRequest, record: Any, finding: int) -> HttpResponse:
        row = self._record(request, str(record))
        if not self.may(request, "change", row):
            raise PermissionDenied
        if request.method == "POST":
            one = row.findings.filter(pk=finding).first()
            if one is None:
                raise Http404
            try:
                exception_queue.close_finding(one, actor_from_request(request), request.POST.get("note", ""))
                messages.success(request, _("The finding is closed."))
            except ExceptionActionError as fault:
                messages.error(request, str(fault))
        return redirect(reverse("admin:reporting_settlementrecord_change", args=[row.pk]))

    def _record(self, request: HttpRequest, ident: str) -> SettlementRecord:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.get_object(request, ident)
        if found is None:
            raise Http404
        rows: QuerySet[SettlementRecord] = SettlementRecord.objects.select_related(
            "file__institute", "institute", "merchant", "settlement"
        )
        return rows.get(pk=found.pk)


def _write_stamp(at: datetime) -> str:
    """A moment to the microsecond, for an address."""
    return str((at - _STAMP_EPOCH) // timedelta(microseconds=1))


def _parse_stamp(text: str) -> datetime | None:
    if not text.isascii() or not text.isdigit() or len(text) > MAX_STAMP_DIGITS:
        return None
    return _STAMP_EPOCH + timedelta(microseconds=int(text))


def match_state_pill(record: SettlementRecord) -> dict[str, str]:
    """A record's matching status as a coloured pill: its tone and text."""
    tone, text = MATCH_STATE_PILLS[record.state]
    return {"tone": "plain", "text": _("Marked")} if record.marked else {"tone": tone, "text": str(text)}


def count_open_exceptions(user: Any) -> int:
    """Count of unmatched records and open findings of the user's merchants, up to MAX_COUNTED_EXCEPTIONS."""
    own = permissions.find_access_scope(user, "reporting.view_settlementrecord").where("merchant", None)
    lines = exception_queue.list_unmatched_records().filter(own).order_by()[:MAX_COUNTED_EXCEPTIONS].count()
    found = exception_queue.list_open_findings().filter(own).order_by()[:MAX_COUNTED_EXCEPTIONS].count()
    return min(MAX_COUNTED_EXCEPTIONS, lines + found)


def _find_undoable(record: SettlementRecord) -> str:
    """What can be undone: "hand", what a clerk did; "match", what matching did; or ''."""
    if record.marked:
        return "hand"
    linked = Match.objects.filter(IS_ACTIVE_MATCH, record=record, chosen=True).first()
    if linked is None or record.chargeback is not None:
        return ""
    return "hand" if linked.rule == "clerk" else "match"


def _render_line(record: SettlementRecord) -> dict[str, Any]:
    return {
        "row": record,
        "pill": match_state_pill(record),
        "address": reverse("admin:reporting_settlementrecord_change", args=[record.pk]),
    }


def _render_payment_facts(payment: Payment) -> dict[str, Any]:
    return {
        "payment": payment,
        "pill": build_state_pill(payment.status),
        "last4": payment.answer.get("card", {}).get("last4Digits", ""),
        "account": payment.acquirer_merchant_id or payment.channel_id.hex,
        "address": reverse("admin:gateway_payment_change", args=[payment.pk]),
    }


def _render_record_facts(record: SettlementRecord) -> list[tuple[str, str]]:
    named = (
        (_("What"), f"{describe_line_kind(record)} ({record.record_type} {record.transaction_type} {record.cashflow})"),
        (_("Institute"), str(record.institute)),
        (_("Account"), record.institute_merchant_id),
        (_("Merchant"), str(record.merchant or "")),
        (_("Their ids"), ", ".join(filter(None, (record.tx_id1, record.tx_id2, record.tx_id3)))),
        (_("Our id, as they say"), record.our_id.hex if record.our_id else ""),
        (_("Order"), mask_text(record.merchant_transaction_id)),
        (_("Invoice"), mask_text(record.merchant_invoice_id)),
        (_("Made"), f"{record.presented_at:%Y-%m-%d %H:%M} UTC" if record.presented else ""),
        (_("Settled"), f"{record.settlement_date:%Y-%m-%d}, {record.settlement_status}"),
        (_("Paid out"), format_money(record.settlement_amount, record.settlement_currency)),
        (
            _("Fee"),
            f"{file_columns.format_decimal(record.settlement_fee)} {record.settlement_currency}"
            if record.settlement_fee
            else "",
        ),
        (_("Card"), f"{record.brand} {'•••• ' + record.last4 if record.last4 else ''}".strip()),
        (_("Reason"), f"{record.reason_code} {record.reason_text}".strip()),
        (_("File"), f"{record.file.name}, {_('line')} {record.line}"),
    )
    return [(name, value) for name, value in named if value]
