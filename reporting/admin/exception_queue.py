"""Back-office page of the exception queue: records without exactly one payment, open findings, and a clerk's actions.

The actions themselves are in reporting.settlement.exception_queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from gateway.access import audit_log, permissions
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.formatting import build_state_pill, format_moment, format_money
from gateway.backoffice.kit.list_columns import PickedRow, choose_list_order, read_list_look
from gateway.backoffice.kit.time_limit import SearchTooBroadError, limit_search_time
from gateway.backoffice.payments import payment_search, search_terms
from gateway.backoffice.payments.payment_filters import parse_payment_filters
from gateway.backoffice.payments.search_terms import FullCardNumberError, parse_search_term
from gateway.core import clock, identifiers
from gateway.core.masking import mask_text
from gateway.models import Payment
from gateway.payments.refusal import RequestRefusedError
from reporting.admin import totals
from reporting.admin.line_columns import LINE_COLUMNS, USUAL_LINE_COLUMNS
from reporting.models import IS_ACTIVE_MATCH, ClearingInstitute, Finding, Match, MatchState, SettlementRecord
from reporting.reconciliation import file_columns
from reporting.settlement import exception_queue, missing_settlements
from reporting.settlement.exception_queue import ExceptionActionError
from reporting.settlement.findings import FINDING_KIND_BY_NAME
from reporting.settlement.layout import CHARGEBACK_TYPE_VALUES
from reporting.templatetags.books import describe_line_kind

_Read = TypeVar("_Read")
MAX_COUNTED_EXCEPTIONS: Final = 99
MAX_SHOWN_EXCEPTIONS: Final = 100
MAX_SHOWN_CANDIDATES: Final = 20
MAX_SHOWN_DIFFERENCES: Final = 5
_STAMP_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_STAMP_DIGITS: Final = 17
_DIFFERENCE_TEXT: Final = re.compile(r"-?[0-9]{1,14}(?:\.[0-9]{1,3})?")
MAX_LISTED_DAYS: Final = 31
"""Days of settlement between which all lines are listed."""
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
    is_named_in_trail = True
    columns = LINE_COLUMNS
    usual_columns = USUAL_LINE_COLUMNS

    def name_row(self, row: SettlementRecord) -> str:
        return f"{describe_line_kind(row)} {format_money(row.amount, row.currency)}"

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "reporting_settlementrecord_", self.admin_site.admin_view
        own = [
            path("accept/", wrap(self.accept_view), name=f"{name}accept"),
            path("many/", wrap(self.many_view), name=f"{name}many"),
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
        days = _parse_days(request.GET.get("from", ""), request.GET.get("to", ""))
        # Without a file or days the list of all records is refused: it would not be a list of things to do.
        bounded = file is not None or days is not None
        lists = {name: title for name, title in EXCEPTION_LISTS.items() if bounded or name != "lines"}
        chosen = request.GET.get("list", "open")
        chosen = chosen if chosen in lists else "open"
        matched = request.GET.get("matched", "") if chosen == "lines" else ""
        matched = matched if matched in ("", "none") else "yes"
        own = (("file", file.hex if file else ""), ("kind", kind), ("matched", matched))
        kept = {name: value for name, value in own if value}
        kept |= read_line_filters(request.GET, days, flows=chosen == "lines")
        shown = read_list_look(request.GET)
        missed = self._list_missing_payments(request) if chosen == "missing" else None
        rows: list[dict[str, Any]] = []
        page = None
        if missed is None:
            page = _ask_limited(lambda: self._read_list_page(request, chosen, file, kind, kept))
            rows = page[0] if page is not None else []
        lines = self._select_lines(request, file, kept)
        sums = _ask_limited(lambda: totals.sum_by_currency(lines)) if chosen == "lines" else []
        alike = _ask_limited(lambda: self._render_differences(request, file, kept)) if chosen == "findings" else {}
        late = (missed is None and page is None) or sums is None or alike is None
        context = {
            **self.admin_site.each_context(request),
            "title": _("Exceptions"),
            "opts": self.opts,
            "chosen": chosen,
            "lists": [
                (f"?{urlencode([('list', name), *kept.items(), *shown])}", title, name == chosen)
                for name, title in lists.items()
            ],
            "missing": missed,
            "rows": rows,
            "pages": page[1] if page is not None else None,
            "too_much": late,
            "most": MAX_SHOWN_EXCEPTIONS,
            "narrowed": bool(kept),
            "days": days,
            "sums": sums or [],
            "file_hex": file.hex if file else "",
            "many": bool(rows) and chosen != "lines" and self.may(request, "change"),
            **self.build_own_list(request, rows, pick=_name_picked, is_ordered=chosen != "findings"),
            "note_max": exception_queue.MAX_NOTE_CHARS,
            "last": self._find_last_resolved(request),
            **(alike or {}),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/exceptions.html", context)

    def _read_list_page(
        self, request: HttpRequest, chosen: str, file: UUID | None, kind: str, kept: dict[str, str]
    ) -> tuple[list[dict[str, Any]], keyset.KeysetPage[Any]]:
        """One page of the chosen list, of one file or of all: its rows and the keyset page."""
        own = [("list", chosen), *kept.items(), *read_list_look(request.GET)]
        rows = self._select_lines(request, file, kept).select_related("institute", "merchant")
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
            rows = rows.filter(state__in=states, without_payment=chosen == "marked")
        usual = FILE_LINE_ORDER if chosen == "lines" and file is not None else RECORD_ORDER
        order = choose_list_order(request.GET, self.columns, usual)
        page = keyset.read_keyset_page(rows, order, request.GET, own)
        return [_render_line(row) for row in page.rows], page

    def _select_lines(self, request: HttpRequest, file: UUID | None, kept: Mapping[str, str]) -> QuerySet[Any]:
        """The user's lines of one file or of all, narrowed by what an address keeps."""
        rows = self.get_queryset(request)
        return narrow_lines(rows if file is None else rows.filter(file=file), kept)

    def _list_missing_payments(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Payments of the user's merchants that their institute should have settled by now."""
        permitted = permissions.list_permitted_merchants(request.user, "reporting.view_settlementrecord")
        merchants, now = list(permitted.values_list("pk", flat=True)), clock.real_now()
        found = [
            (one, institute)
            for institute in ClearingInstitute.objects.filter(active=True)
            for one in missing_settlements.list_oldest_overdue_payments(institute, merchants, now, MAX_SHOWN_EXCEPTIONS)
        ]
        found.sort(key=lambda pair: (pair[0].created_at, pair[0].pk))
        return [
            {**_render_payment_facts(one), "institute": institute, "merchant": one.merchant}
            for one, institute in found[:MAX_SHOWN_EXCEPTIONS]
        ]

    def _changeable_records(
        self, request: HttpRequest, file: UUID | None, kept: Mapping[str, str]
    ) -> QuerySet[SettlementRecord]:
        """The records, of one file or all and narrowed by what an address keeps, whose findings the user may close."""
        records = self.own(request, SettlementRecord.objects.all(), "change")
        return narrow_lines(records if file is None else records.filter(file=file), kept)

    def _render_differences(self, request: HttpRequest, file: UUID | None, kept: Mapping[str, str]) -> dict[str, Any]:
        """Differences that can be accepted together, and what the user accepted last."""
        if not self.may(request, "change"):
            return {}
        records, at = self._changeable_records(request, file, kept), _parse_stamp(request.GET.get("accepted", ""))
        by = actor_from_request(request).name
        undone = exception_queue.list_accepted_differences(records, at, by).count() if at is not None else 0
        return {
            "differences": exception_queue.list_equal_differences(records, MAX_SHOWN_DIFFERENCES),
            "accepted": request.GET.get("accepted", "") if undone else "",
            "accepted_count": undone,
            "note_max": exception_queue.MAX_NOTE_CHARS,
        }

    def accept_view(self, request: HttpRequest) -> HttpResponse:
        """Accept all findings of one difference, or undo the last acceptance."""
        if not self.may(request, "change"):
            raise PermissionDenied
        try:
            file, kept = _read_posted_place(request.POST)
        except ExceptionActionError as fault:
            messages.error(request, str(fault))
            return redirect(f"{reverse('admin:reporting_settlementrecord_changelist')}?list=findings")
        kept = {"list": "findings", **kept}
        if request.method == "POST":
            records, by = self._changeable_records(request, file, kept), actor_from_request(request)
            stamp = _parse_stamp(request.POST.get("accepted", ""))
            if stamp is not None:
                count = exception_queue.reopen_accepted_differences(records, stamp, by)
                messages.success(
                    request, ngettext("%d finding is open again.", "%d findings are open again.", count) % count
                )
            else:
                kept |= self._accept_differences(request, records, by)
        return redirect(f"{reverse('admin:reporting_settlementrecord_changelist')}?{urlencode(kept)}")

    def many_view(self, request: HttpRequest) -> HttpResponse:
        """Accept, mark or open again the picked rows of a list."""
        if not self.may(request, "change"):
            raise PermissionDenied
        chosen = request.POST.get("list", "")
        kept = {"list": chosen if chosen in EXCEPTION_LISTS else "open"}
        if request.method == "POST":
            try:
                file, place = _read_posted_place(request.POST)
                kept |= place
                kept |= self._do_many(request, self._changeable_records(request, file, place), kept["list"])
            except ExceptionActionError as fault:
                messages.error(request, str(fault))
        return redirect(f"{reverse('admin:reporting_settlementrecord_changelist')}?{urlencode(kept)}")

    def _do_many(self, request: HttpRequest, records: QuerySet[SettlementRecord], chosen: str) -> dict[str, str]:
        """Do with the picked rows what their list offers; returns what the list's address gets. Raises
        ExceptionActionError."""
        by, note, picked = actor_from_request(request), request.POST.get("note", ""), request.POST.getlist("pick")
        if chosen == "findings":
            keys = [int(text) for text in picked if re.fullmatch("[0-9]{1,18}", text)]
            found = Finding.objects.filter(pk__in=keys, record__in=records)
            at, count = exception_queue.accept_findings(found, by, note) if keys else (None, 0)
            if at is not None:
                messages.success(
                    request,
                    ngettext("%d finding is closed with your note.", "%d findings are closed with your note.", count)
                    % count,
                )
                return {"accepted": _write_stamp(at)}
        idents = [ident for text in picked if (ident := identifiers.parse_id(text)) is not None]
        if not idents:
            raise ExceptionActionError(_("Select lines first."))
        rows = records.filter(pk__in=idents)
        if chosen == "marked":
            done, left = exception_queue.unmark_many(rows, by)
            messages.success(request, ngettext("%d line waits again.", "%d lines wait again.", done) % done)
        else:
            done, left = exception_queue.mark_many_without_payment(rows, by, note)
            messages.success(
                request,
                ngettext(
                    "%d line is marked: no payment is looked for.",
                    "%d lines are marked: no payment is looked for.",
                    done,
                )
                % done,
            )
        if left:
            words = ngettext(
                "%d line was left as it is: changed meanwhile, or its month is closed.",
                "%d lines were left as they are: changed meanwhile, or their month is closed.",
                left,
            )
            messages.warning(request, words % left)
        return {}

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
            messages.success(
                request,
                ngettext("%d finding is closed with your note.", "%d findings are closed with your note.", count)
                % count,
            )
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
        record = self._record(request, object_id)
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
            "open": open_ and not record.without_payment,
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
            return [], _(search_terms.FULL_CARD_NUMBER_TEXT)
        except SearchTooBroadError:
            return [], _("That takes too long; look for an order number or an id.")
        rows = [row for row in rows if record.merchant_id in (None, row.merchant_id)][:MAX_SHOWN_CANDIDATES]
        return [_render_payment_facts(row) for row in rows], "" if rows else _("No payment of this merchant was found.")

    # --- actions -----------------------------------------------------------------------------------------------------

    def do_view(self, request: HttpRequest, record: Any) -> HttpResponse:
        row = self._record(request, record)
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
        row = self._record(request, record)
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

    def _record(self, request: HttpRequest, ident: object) -> SettlementRecord:
        row: SettlementRecord = self.find_row(request, ident, "file__institute", "institute", "merchant", "settlement")
        return row


def _write_stamp(at: datetime) -> str:
    """A moment to the microsecond, for an address."""
    return str((at - _STAMP_EPOCH) // timedelta(microseconds=1))


def _read_posted_place(values: Mapping[str, str]) -> tuple[UUID | None, dict[str, str]]:
    """The file and the days of the list from which a form was sent, and both for its address. Raises
    ExceptionActionError for unknown ones: without them, the form would be about every line."""
    typed = values.get("file", "")
    file, days = identifiers.parse_id(typed), _parse_days(values.get("from", ""), values.get("to", ""))
    if typed and file is None:
        raise ExceptionActionError(_("file: there is no such file"))
    if days is None and (values.get("from") or values.get("to")):
        raise ExceptionActionError(_("from, to: two days such as 2030-01-31, at most a month"))
    return file, ({"file": file.hex} if file is not None else {}) | read_line_filters({}, days)


def _ask_limited(ask: Callable[[], _Read]) -> _Read | None:
    """What ``ask`` reads; None if that takes too long."""
    try:
        with limit_search_time():
            return ask()
    except SearchTooBroadError:
        return None


def _parse_days(first: str, last: str) -> tuple[date, date] | None:
    """The days between which lines are listed, at most MAX_LISTED_DAYS; None for anything else."""
    try:
        days = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        return None
    return days if timedelta() <= days[1] - days[0] < timedelta(days=MAX_LISTED_DAYS) else None


def read_line_filters(
    values: Mapping[str, str], days: tuple[date, date] | None = None, *, flows: bool = True
) -> dict[str, str]:
    """What an address narrows a list of lines by: days of settlement, and with ``flows`` settlement currency, cash flow
    and whether the institute failed to settle them."""
    found = {"from": days[0].isoformat(), "to": days[1].isoformat()} if days is not None else {}
    if flows:
        allowed = (("flow", ("POS", "NEG")), ("failed", ("yes", "no")))
        found |= {name: values[name] for name, known in allowed if values.get(name) in known}
        if re.fullmatch("[A-Z]{3}", values.get("currency", "")):
            found["currency"] = values["currency"]
    return found


def narrow_lines(rows: QuerySet[SettlementRecord], kept: Mapping[str, str]) -> QuerySet[SettlementRecord]:
    """The lines among ``rows`` that the filters of an address leave (:func:`read_line_filters`, and ``matched``)."""
    if "from" in kept:
        # Of files that were read to their end, as the page of payouts counts them.
        rows = rows.filter(settlement__date__range=(kept["from"], kept["to"]), file__state="DONE")
    if "currency" in kept:
        rows = rows.filter(settlement_currency=kept["currency"])
    if "flow" in kept:
        rows = rows.filter(cashflow=kept["flow"])
    if "failed" in kept:
        rows = rows.filter(settlement_status="FAILED" if kept["failed"] == "yes" else "SUCCESS")
    if kept.get("matched") == "none":
        unmatched = ~Q(state__in=[MatchState.MATCHED, *exception_queue.UNMATCHED_STATES])
        return rows.filter(Q(without_payment=True) | unmatched)
    return rows.filter(state=MatchState.MATCHED, without_payment=False) if "matched" in kept else rows


def _parse_stamp(text: str) -> datetime | None:
    if not text.isascii() or not text.isdigit() or len(text) > MAX_STAMP_DIGITS:
        return None
    return _STAMP_EPOCH + timedelta(microseconds=int(text))


def match_state_pill(record: SettlementRecord) -> dict[str, str]:
    """A record's matching status as a coloured pill: its tone and text."""
    tone, text = MATCH_STATE_PILLS[record.state]
    return {"tone": "plain", "text": _("Marked")} if record.without_payment else {"tone": tone, "text": str(text)}


def count_open_exceptions(user: Any) -> int:
    """Count of unmatched records and open findings of the user's merchants, up to MAX_COUNTED_EXCEPTIONS."""
    own = permissions.find_access_scope(user, "reporting.view_settlementrecord").where("merchant", None)
    lines = exception_queue.list_unmatched_records().filter(own).order_by()[:MAX_COUNTED_EXCEPTIONS].count()
    found = exception_queue.list_open_findings().filter(own).order_by()[:MAX_COUNTED_EXCEPTIONS].count()
    return min(MAX_COUNTED_EXCEPTIONS, lines + found)


def _find_undoable(record: SettlementRecord) -> str:
    """What can be undone: "hand", what a clerk did; "match", what matching did; or ''."""
    if record.without_payment:
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


def _name_picked(each: Mapping[str, Any]) -> PickedRow:
    """A finding where the list is one of findings, else the line."""
    record, finding = each["row"], each.get("finding")
    name = f"{format_money(record.amount, record.currency)} {mask_text(record.merchant_transaction_id)}"
    return PickedRow(value=str(finding.pk) if finding is not None else record.pk.hex, name=name.rstrip())


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
        (_("Made"), format_moment(record.presented_at, "minutes") if record.presented_at_known else ""),
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
