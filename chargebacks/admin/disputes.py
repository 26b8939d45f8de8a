"""Back-office pages of disputes: deadline, evidence checklist, files, the one submission, and the outcome.

Actions are in chargebacks.cases, evidence and ledger; chargebacks entered by hand in chargebacks.admin.manual_entry.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, DateTimeField, ExpressionWrapper, F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseGone, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from chargebacks import cases, deadlines, evidence, evidence_images, ledger, packet_job
from chargebacks.admin import alert_views, contact_pages, dispute_filters, formatting, manual_entry, rule_draft
from chargebacks.admin.dispute_columns import DISPUTE_COLUMNS, USUAL_DISPUTE_COLUMNS
from chargebacks.compelling_evidence import find_earlier_payments
from chargebacks.dispute_strength import PROOFS, gather_counted, measure_strength
from chargebacks.disputed_orders import choose_order_number, find_order_numbers, match_disputes
from chargebacks.evidence import EvidenceRejectedError
from chargebacks.evidence_checklist import CHECKLIST_ITEMS, RECORDED_ITEM, describe_reason
from chargebacks.models import Chargeback, Evidence
from chargebacks.packet_facts import (
    PACKET_LANGUAGE,
    gather_packet_proofs,
    list_checklist_rows,
    list_packet_sections,
)
from chargebacks.payment_details import describe_disputed_payment
from chargebacks.stages import DisputeStage
from chargebacks.states import CLOSED_DISPUTE_STATES, DisputeState, DisputeTransitionError
from gateway.access import audit_log, permissions
from gateway.api.body_limits import UploadPolicy, allow_uploads, build_upload_url
from gateway.backoffice.kit import charts, keyset, work_start
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.kit.list_columns import PickedRow, choose_list_order, read_list_look
from gateway.backoffice.kit.list_sums import sum_listed_amounts
from gateway.backoffice.payments import search_terms
from gateway.backoffice.sign_in import session
from gateway.core import clock, identifiers
from gateway.core.masking import contains_card_number, mask_note, mask_text
from gateway.models import Payment
from gateway.payments.refusal import RequestRefusedError

URGENCY_ORDER: Final = keyset.KeysetOrder(columns=(("due_at", datetime), ("id", UUID)))
DISPUTE_ORDER: Final = keyset.KeysetOrder(columns=(("opened_at", datetime), ("id", UUID)), newest_first=True)
DISPUTE_CHART_PERIOD: Final = timedelta(days=90)
MAX_COUNTED_DISPUTES: Final = 99
DECIDING_VERBS: Final = ("accept", "submit", "escalate", "decided_won", "decided_lost")
"""Actions that decide whose the disputed money is, or cannot be taken back: the user says who they are first."""
DISPUTE_LISTS: Final[Mapping[str, tuple[str | Promise, tuple[DisputeState, ...]]]] = MappingProxyType(
    {
        "open": (lazy("To answer"), (DisputeState.OPEN,)), "submitted": (lazy("Submitted"), (DisputeState.SUBMITTED,)),
        "closed": (lazy("Closed"), tuple(sorted(CLOSED_DISPUTE_STATES))),
        "all": (lazy("All disputes"), tuple(DisputeState)),
    }
)  # fmt: skip


def _name_picked(each: Mapping[str, Any]) -> PickedRow:
    case = each["row"]
    return PickedRow(value=case.pk.hex, name=f"{format_money(case.amount, case.currency)} {each['order']}".rstrip())


def _may_add_evidence(request: HttpRequest, names: Mapping[str, Any]) -> bool:
    row = Chargeback.objects.filter(pk=names["case"]).first()
    return row is not None and permissions.has_permission(request.user, "chargebacks.change_chargeback", row)


@admin.register(Chargeback)
class ChargebackAdmin(ReadOnlyPage):
    """The list of disputes, the page of one case, and its actions."""

    lists_from_standby = True
    sensitive = True
    is_named_in_trail = True
    columns = DISPUTE_COLUMNS
    usual_columns = USUAL_DISPUTE_COLUMNS

    def name_row(self, row: Chargeback) -> str:
        return format_money(row.amount, row.currency)

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "chargebacks_chargeback_", self.admin_site.admin_view
        own = [
            path("<uuid:case>/do/", wrap(self.do_view), name=f"{name}do"),
            path("<uuid:case>/evidence/<uuid:evidence>/", wrap(self.evidence_view), name=f"{name}evidence"),
            path("<uuid:case>/evidence/<uuid:evidence>/small/", wrap(self.small_view), name=f"{name}small"),
            path("<uuid:case>/packet/", wrap(self.packet_view), name=f"{name}packet"),
            path("alerts/", wrap(self.alerts_view), name=f"{name}alerts"),
            path("alerts/<uuid:alert>/", wrap(self.alert_view), name=f"{name}alert"),
            path("alert-entry/<uuid:payment>/", wrap(self.alert_entry_view), name=f"{name}alert_entry"),
            path("by-hand/<uuid:payment>/", wrap(self.by_hand_view), name=f"{name}by_hand"),
            path("draft-rule/", wrap(self.draft_rule_view), name=f"{name}draft_rule"),
            path("strength/", wrap(self.strength_view), name=f"{name}strength"),
            path("contacts/", wrap(self.contacts_list_view), name=f"{name}contacts_list"),
            path("contacts/<uuid:merchant>/", wrap(self.contacts_view), name=f"{name}contacts"),
        ]
        inherited: list[URLPattern] = super().get_urls()
        return own + inherited

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        own, reason = self.get_queryset(request), request.GET.get("reason", "").replace("\0", "")
        text = request.GET.get("q", "").strip()[: search_terms.MAX_SEARCH_CHARS].replace("\0", "")
        if contains_card_number(text):
            # Neither the page nor its address may repeat the number.
            messages.warning(request, _(search_terms.FULL_CARD_NUMBER_TEXT))
            return redirect(reverse("admin:chargebacks_chargeback_changelist"))
        chosen = request.GET.get("list", "all" if reason or text else "open")
        chosen = chosen if chosen in DISPUTE_LISTS else "open"
        period = dispute_filters.read_period(request.GET)
        rows = own.select_related("merchant", "channel").filter(state__in=DISPUTE_LISTS[chosen][1])
        rows = rows.filter(reason_code=reason) if reason else rows
        rows = rows.filter(match_disputes(text)) if text else rows
        rows = period.narrow(rows)
        # Open disputes are ordered by deadline, all others newest first.
        usual = URGENCY_ORDER if chosen == "open" else DISPUTE_ORDER
        order = choose_list_order(request.GET, self.columns, usual)
        narrowed = [(name, value) for name, value in (("reason", reason), ("q", text), *period.parameters) if value]
        narrowed += read_list_look(request.GET)
        pages = keyset.read_keyset_page(rows, order, request.GET, [("list", chosen), *narrowed])
        orders = find_order_numbers(pages.rows)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Disputes"),
            "opts": self.opts,
            "chosen": chosen,
            "lists": [
                (f"?{urlencode([('list', name), *narrowed])}", title, name == chosen)
                for name, (title, _states) in DISPUTE_LISTS.items()
            ],
            "reason": reason,
            "chips": [
                (words, f"?{urlencode([('list', chosen), *(each for each in narrowed if each[0] not in names)])}")
                for words, names in ((reason, ("reason",)), (period.describe(), ("left", "opened")))
                if words
            ],
            "totals": sum_listed_amounts(rows),
            "q": text,
            "shown": read_list_look(request.GET),
            "rows": pages.rows,
            "pages": pages,
            "picture": _draw_chart(own),
            **self.build_own_list(
                request,
                [{**formatting.render_case_row(row), "order": mask_text(orders.get(row.pk, ""))} for row in pages.rows],
                pick=_name_picked,
                is_ordered=True,
            ),
            "may_draft": permissions.has_permission(request.user, "gateway.view_riskset"),
            "unreminded": contact_pages.list_unreminded_merchants(request),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/disputes.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        case = self._get_case(request, object_id)
        self.record(request, "view", case)
        disputed = Payment.objects.select_related("merchant", "channel").get(pk=case.disputed)
        first = disputed if disputed.chain == disputed.pk else Payment.objects.get(pk=disputed.chain)
        open_ = case.state == DisputeState.OPEN and clock.merchant_now(case.merchant) < case.due_at
        files = list(case.evidence.order_by("added_at"))
        earlier = find_earlier_payments(case)
        listed, findings = evidence.list_case_items(case), gather_counted(case, earlier)
        english = translation.get_language() == PACKET_LANGUAGE
        proofs = findings if english else gather_packet_proofs(case, earlier)
        wanted = {item.key for item in listed}
        recorded = {PROOFS[one.proof][0] for one in findings if one.supports}
        missing = [item for item in evidence.list_missing_evidence(case) if item.key not in recorded]
        more = [item for key, item in CHECKLIST_ITEMS.items() if key not in wanted]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Dispute of %s") % format_money(case.amount, case.currency),
            "opts": self.opts,
            "original": case,
            "case": formatting.render_case_row(case),
            "row": case,
            "disputed": disputed,
            "order": mask_text(choose_order_number(disputed, first)),
            "proofs": describe_disputed_payment(disputed),
            "events": formatting.render_case_events(case),
            "limits": evidence.describe_evidence_limits(),
            "checklist": formatting.render_checklist(listed, files, findings),
            "strength": formatting.render_strength(
                measure_strength(case, possible_items=wanted, findings=findings), open_=open_
            ),
            "packet": list_packet_sections(case, disputed, earlier=earlier, proofs=proofs),
            "packet_checklist": list_checklist_rows(case, proofs),
            "findings": findings,
            "others": [file for file in files if file.item not in wanted],
            "items": [*listed, *more],
            "first": (*missing, *listed)[0].key,
            "files": files,
            "missing": missing,
            "open": open_,
            "reminders": formatting.render_reminders(case),
            "reminds_nobody": open_ and not case.merchant.dispute_contacts.exists(),
            "may_change": self.may(request, "change", case),
            "decidable": not settings.IS_LIVE and case.test_mode == "INTERNAL" and case.state == DisputeState.SUBMITTED,
            "upload": build_upload_url(request, reverse("admin:chargebacks_chargeback_do", args=[case.pk])),
            "earlier": [
                (
                    reverse("admin:gateway_payment_change", args=[one.payment.pk]),
                    one.payment,
                    [_(n) for n in one.shared],
                )
                for one in earlier
            ],
            "scheme_rows": formatting.render_scheme_rows(case),
            "later_stages": formatting.list_later_stages(case) if case.state != DisputeState.OPEN else [],
            "undecided": case.state in (DisputeState.OPEN, DisputeState.SUBMITTED),
            "money_is_back": case.recovered == case.amount,
            "next": list(case.next.all()[:1]),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/books/dispute.html", context)

    # --- actions -----------------------------------------------------------------------------------------------------

    @allow_uploads(UploadPolicy(most=lambda: evidence.MAX_EVIDENCE_FILE_BYTES, may=_may_add_evidence))
    def do_view(self, request: HttpRequest, case: Any) -> HttpResponse:
        row = self._get_case(request, case)
        if not self.may(request, "change", row):
            raise PermissionDenied
        back = reverse("admin:chargebacks_chargeback_change", args=[row.pk])
        if request.method != "POST":
            return redirect(back)
        decides = request.POST.get("verb") in DECIDING_VERBS
        if decides and (ask := session.require_reauthentication(request, back)) is not None:
            return ask
        try:
            if said := self._perform_action(request, row):
                messages.success(request, said)
        except (DisputeTransitionError, EvidenceRejectedError, RequestRefusedError) as fault:
            messages.error(request, str(fault))
        return redirect(back)

    def _perform_action(self, request: HttpRequest, case: Chargeback) -> str:
        """Run the form's action and return its success message. Raises DisputeTransitionError, EvidenceRejectedError
        and RequestRefusedError."""
        verb, by, note = (
            request.POST.get("verb", ""),
            actor_from_request(request),
            mask_note(request.POST.get("note", ""), 500),
        )
        if verb in ("add", "remove", "keep_recorded"):
            return _change_evidence(request, case, verb, by)
        if verb == "submit":
            if request.POST.get("sure") != "yes":
                raise DisputeTransitionError(_("say that you are sure: it is submitted once and for good"))
            cases.submit_evidence(case, by, note)
            return _("Submitted. The bank decides now.")
        if verb == "accept":
            if request.POST.get("sure") != "yes":
                raise DisputeTransitionError(_("say that you are sure: the money stays with the shopper"))
            cases.accept_dispute(case, by, note or _("Accepted."))
            return _("Accepted. The money stays with the shopper.")
        if verb == "escalate":
            return _escalate(request, case, by)
        if verb in ("decided_won", "decided_lost"):
            decide = cases.win_dispute if verb == "decided_won" else cases.lose_dispute
            decide(case, by, note or _("The acquirer's decision."))
            return _("The decision was recorded.")
        if verb in ("win", "lose"):
            ledger.simulate_dispute_outcome(case, by, won=verb == "win")
            return _("The simulated bank has decided.")
        return ""

    def evidence_view(self, request: HttpRequest, case: Any, evidence: Any) -> HttpResponse | StreamingHttpResponse:
        """Download a file of evidence: as an attachment, never shown as a page. 410 for an erased one."""
        row = self._get_case(request, case)
        file = row.evidence.filter(pk=evidence).first()
        if file is None:
            raise Http404
        if file.is_erased:
            return _answer_erased()
        self.record(request, "evidence fetched", row, after={"name": file.name})
        return _stream_file(file)

    def small_view(self, request: HttpRequest, case: Any, evidence: Any) -> HttpResponse:
        """The re-encoded thumbnail of a file of evidence, for everybody who may see the case. 410 for an erased one."""
        file = self._get_case(request, case).evidence.filter(pk=evidence).first()
        if file is not None and file.is_erased:
            return _answer_erased()
        octets = evidence_images.render_thumbnail(file) if file is not None else None
        if octets is None:
            raise Http404
        answer = HttpResponse(octets, content_type="image/jpeg")
        answer["X-Content-Type-Options"], answer["Cache-Control"] = "nosniff", "no-store"
        return answer

    def packet_view(self, request: HttpRequest, case: Any) -> HttpResponse:
        """Start building the packet (one PDF with facts and evidence); a page tells when it is ready."""
        row = self._get_case(request, case)
        if request.method != "POST":
            return redirect(reverse("admin:chargebacks_chargeback_change", args=[row.pk]))
        title, arguments = _("Packet as PDF") + f" · {format_money(row.amount, row.currency)}", {"case": row.pk.hex}
        made = work_start.enqueue_page_work(request, packet_job.PACKET_JOB_KIND, title, arguments)
        if made is None:
            return redirect(reverse("admin:gateway_backgroundwork_changelist"))
        self.record(request, "packet asked", row)
        return work_start.lead_to_work(made)

    def by_hand_view(self, request: HttpRequest, payment: Any) -> HttpResponse:
        return manual_entry.manual_entry_view(self, request, _get_payment_to_dispute(request, payment))

    def alerts_view(self, request: HttpRequest) -> HttpResponse:
        return alert_views.list_alerts_view(self, request)

    def alert_view(self, request: HttpRequest, alert: Any) -> HttpResponse:
        return alert_views.alert_view(self, request, alert)

    def alert_entry_view(self, request: HttpRequest, payment: Any) -> HttpResponse:
        return alert_views.enter_alert_view(self, request, _get_payment_to_dispute(request, payment))

    def draft_rule_view(self, request: HttpRequest) -> HttpResponse:
        """What the chosen chargebacks share, as rules to be tried. Nothing is changed."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        keys = [key for text in request.GET.getlist("case") if (key := identifiers.parse_id(text.replace("-", "")))]
        cases = list(self.get_queryset(request).filter(pk__in=keys[: rule_draft.MAX_DRAFT_CASES]))
        try:
            draft = rule_draft.build_draft_context(request.user, request.session, cases)
        except rule_draft.DraftError as fault:
            messages.error(request, str(fault))
            return redirect(f"{reverse('admin:chargebacks_chargeback_changelist')}?list=all")
        context = {
            **self.admin_site.each_context(request),
            "title": ngettext("A rule from %d chargeback", "A rule from %d chargebacks", len(cases)) % len(cases),
            "opts": self.opts,
            **draft,
        }
        return TemplateResponse(request, "admin/books/draft_rule.html", context)

    def strength_view(self, request: HttpRequest) -> HttpResponse:
        """What counts for which reason, with sources."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": _("What counts for which reason"),
            "opts": self.opts,
            "kinds": formatting.render_strength_table(),
        }
        return TemplateResponse(request, "admin/books/strength.html", context)

    def contacts_list_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            contact_pages.add_contact(request)
            return redirect(reverse("admin:chargebacks_chargeback_contacts_list"))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Who is reminded"),
            "opts": self.opts,
            **contact_pages.build_contacts_context(request),
        }
        return TemplateResponse(request, "admin/books/contacts.html", context)

    def contacts_view(self, request: HttpRequest, merchant: Any) -> HttpResponse:
        row = (
            permissions.list_permitted_merchants(request.user, "chargebacks.change_contact").filter(pk=merchant).first()
        )
        if row is None:
            raise Http404
        if request.method == "POST":
            manual_entry.change_contact(request, row)
        return redirect(reverse("admin:chargebacks_chargeback_contacts_list"))

    def _get_case(self, request: HttpRequest, ident: object) -> Chargeback:
        row: Chargeback = self.find_row(request, ident, "merchant", "channel", "previous")
        return row


def _get_payment_to_dispute(request: HttpRequest, ident: Any) -> Payment:
    """A payment about which the user may enter chargebacks and alerts."""
    row = Payment.objects.select_related("merchant", "channel").filter(pk=ident).first()
    if row is None or not permissions.has_permission(request.user, "gateway.view_payment", row):
        raise Http404
    if not permissions.has_permission(request.user, "chargebacks.add_chargeback", row):
        raise PermissionDenied
    return row


def _escalate(request: HttpRequest, case: Chargeback, by: audit_log.Actor) -> str:
    """Open the next stage of the form. Raises DisputeTransitionError."""
    stage, given = request.POST.get("stage", ""), request.POST.get("respond_by", "")
    if stage not in DisputeStage.values:
        raise DisputeTransitionError(_("Stage: choose one of the list."))
    try:
        respond_by = date.fromisoformat(given) if given else None
    except ValueError:
        raise DisputeTransitionError(_("Answer by: a day, such as 2030-01-31, or empty.")) from None
    scheme_case = mask_note(request.POST.get("scheme_case", ""), 64)
    cases.escalate_dispute(case, by, stage=DisputeStage(stage), respond_by=respond_by, scheme_case=scheme_case)
    return _("The stage was opened. The dispute can be answered until its deadline.")


def _change_evidence(request: HttpRequest, case: Chargeback, verb: str, by: audit_log.Actor) -> str:
    """Add or remove the form's file. Raises EvidenceRejectedError and DisputeTransitionError."""
    if verb == "keep_recorded":
        return _keep_recorded(case, by)
    if verb == "add":
        sent = request.FILES.get("file")
        if sent is None:
            raise EvidenceRejectedError(_("choose a file"))
        stream: Any = sent
        evidence.add_evidence(case, request.POST.get("item", ""), sent.name or "", stream, by)
        return _("The file was added.")
    evidence_id = identifiers.parse_id(request.POST.get("evidence", ""))
    file = case.evidence.filter(pk=evidence_id).first() if evidence_id is not None else None
    if file is None:
        raise EvidenceRejectedError(_("the file is not there any more"))
    evidence.remove_evidence(file, by)
    return _("The file was taken back.")


def _keep_recorded(case: Chargeback, by: audit_log.Actor) -> str:
    """Add what the gateway recorded as a file. Raises EvidenceRejectedError and DisputeTransitionError."""
    from chargebacks import packet_pdf  # a hundred modules that nothing else needs

    if not any(one.supports for one in gather_counted(case)):
        raise EvidenceRejectedError(_("The gateway has recorded nothing that counts for this reason."))
    name = f"recorded-{clock.merchant_now(case.merchant):%Y%m%d-%H%M%S}.pdf"
    evidence.add_evidence(case, RECORDED_ITEM, name, io.BytesIO(packet_pdf.build_gathered_pdf(case)), by)
    return _("What the gateway recorded was added as a file.")


def _answer_erased() -> HttpResponse:
    words = _("This file was erased with the shopper's data.")
    return HttpResponseGone(words, content_type="text/plain; charset=utf-8", headers={"Cache-Control": "no-store"})


def _stream_file(file: Evidence) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(evidence.stream_evidence(file), content_type=file.content_type)
    answer["Content-Length"] = str(file.size)
    answer["Content-Disposition"] = (
        f'attachment; filename="{file.pk.hex}{evidence.EXTENSIONS_BY_CONTENT_TYPE[file.content_type][0]}"'
    )
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cache-Control"] = "no-store"
    return answer


def _draw_chart(own: QuerySet[Chargeback]) -> Any:
    """Chart of the last 90 days by reason and outcome; each column links to its disputes."""
    since: datetime = clock.real_now() - DISPUTE_CHART_PERIOD
    counted: dict[str, list[int]] = {}
    rows = own.filter(opened_at__gte=since).values("reason_code", "state").annotate(n=Count("id"))
    place: dict[str, int] = {
        DisputeState.WON: 0,
        DisputeState.OPEN: 1,
        DisputeState.SUBMITTED: 1,
        DisputeState.LOST: 2,
        DisputeState.ACCEPTED: 2,
        DisputeState.RETURNED: 2,
    }
    for row in rows.order_by("reason_code"):
        counted.setdefault(row["reason_code"], [0, 0, 0])[place[row["state"]]] += row["n"]
    if not counted:
        return ""
    kinds = (("good", _("won")), ("note", _("not decided")), ("bad", _("lost, accepted or returned")))
    columns = [
        (
            f"{code[-3:]} {_(describe_reason(code))[:28]}",
            figures,
            f"?{urlencode({'list': 'all', 'reason': code, 'opened': DISPUTE_CHART_PERIOD.days})}",
        )
        for code, figures in counted.items()
    ]
    return charts.draw_stacked_bars(columns, kinds, title=_("Disputes by reason and outcome, 90 days"))


def count_urgent_disputes(user: Any) -> int:
    """Count of the user's open disputes due within URGENT_DAYS_LEFT days, up to MAX_COUNTED_DISPUTES."""
    own = permissions.find_access_scope(user, "chargebacks.view_chargeback").where("merchant", "channel")
    # Merchants' clocks may be ahead of real time: in the test environment they are moved.
    left = ExpressionWrapper(F("due_at") - F("merchant__clock_offset"), output_field=DateTimeField())
    found = Chargeback.objects.filter(own, state=DisputeState.OPEN).annotate(real=left).order_by("real")
    now = clock.real_now()
    # A calendar day may have 25 hours; disputes that are not urgent yet are left out below.
    rows = found.filter(real__lte=now + timedelta(days=formatting.URGENT_DAYS_LEFT + 1, hours=1)).values_list(
        "due_at", "merchant__clock_offset", "merchant__time_zone"
    )
    days = (deadlines.count_days_between(now + ahead, due, zone) for due, ahead, zone in rows[:MAX_COUNTED_DISPUTES])
    return sum(left <= formatting.URGENT_DAYS_LEFT for left in days)
