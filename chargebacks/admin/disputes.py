"""Disputes: how long is left, what proves what, evidence, one submission, the outcome. Source: design, J6.

Verbs: chargebacks.cases, evidence, ledger. What is entered by hand from a payment is chargebacks.admin.by_hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count, DateTimeField, ExpressionWrapper, F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from chargebacks import cases, evidence, ledger, packets, pictures
from chargebacks.admin import by_hand, shown
from chargebacks.checklist import ITEMS, wanted, words
from chargebacks.evidence import NotEvidence
from chargebacks.facts import facts_of
from chargebacks.models import Chargeback, Evidence
from chargebacks.states import CLOSED, ImpossibleMove, State
from gateway import clock, identifiers, rights, work
from gateway.admin import paging, plots
from gateway.admin.kit import ReadOnly, actor
from gateway.api.bodies import Uploads, takes_files, upload_address
from gateway.masking import kept_note
from gateway.models import Payment
from gateway.payments.refusal import Refused

MOST_URGENT_FIRST: Final = paging.Order(columns=(("due_at", datetime), ("id", UUID)))
NEWEST_FIRST: Final = paging.Order(columns=(("opened_at", datetime), ("id", UUID)), newest_first=True)
PICTURED: Final = timedelta(days=90)
MERCHANTS_AT_MOST: Final = 50
MOST_COUNTED: Final = 99
LISTS: Final[Mapping[str, tuple[str | Promise, tuple[State, ...]]]] = MappingProxyType(
    {
        "open": (lazy("To answer"), (State.OPEN,)), "submitted": (lazy("Submitted"), (State.SUBMITTED,)),
        "closed": (lazy("Closed"), tuple(CLOSED)), "all": (lazy("All"), tuple(State)),
    }
)  # fmt: skip


def _may_add_evidence(request: HttpRequest, names: Mapping[str, Any]) -> bool:
    row = Chargeback.objects.filter(pk=names["case"]).first()
    return row is not None and rights.allowed(request.user, "chargebacks.change_chargeback", row)


@admin.register(Chargeback)
class ChargebackAdmin(ReadOnly):
    sensitive = True

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "chargebacks_chargeback_", self.admin_site.admin_view
        own = [
            path("<uuid:case>/do/", wrap(self.do_view), name=f"{name}do"),
            path("<uuid:case>/evidence/<uuid:evidence>/", wrap(self.evidence_view), name=f"{name}evidence"),
            path("<uuid:case>/evidence/<uuid:evidence>/small/", wrap(self.small_view), name=f"{name}small"),
            path("<uuid:case>/packet/", wrap(self.packet_view), name=f"{name}packet"),
            path("by-hand/<uuid:payment>/", wrap(self.by_hand_view), name=f"{name}by_hand"),
            path("contacts/<uuid:merchant>/", wrap(self.contacts_view), name=f"{name}contacts"),
        ]
        return own + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        own, reason = self.get_queryset(request), request.GET.get("reason", "").replace("\0", "")
        chosen = request.GET.get("list", "all" if reason else "open")
        chosen = chosen if chosen in LISTS else "open"
        rows = own.select_related("merchant").filter(state__in=LISTS[chosen][1])
        rows = rows.filter(reason_code=reason) if reason else rows
        # What has to be answered stands in the order of deadlines, the rest newest first.
        order = MOST_URGENT_FIRST if chosen == "open" else NEWEST_FIRST
        kept = [("list", chosen), *([("reason", reason)] if reason else [])]
        pages = paging.page(rows, order, request.GET, kept)
        merchants = rights.merchants_of(request.user, "chargebacks.view_chargeback").order_by("name")
        context = {
            **self.admin_site.each_context(request), "title": _("Disputes"), "opts": self.opts, "chosen": chosen,
            "lists": [(name, title, name == chosen) for name, (title, _states) in LISTS.items()], "reason": reason,
            "rows": [shown.listed(row) for row in pages.rows], "pages": pages, "picture": _picture(own),
            "contacts": [(one, list(one.dispute_contacts.order_by("email")),
                          rights.allowed(request.user, "chargebacks.change_contact", rights.Place(merchant=one.pk)))
                         for one in merchants.prefetch_related("dispute_contacts")[:MERCHANTS_AT_MOST]],
            **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/books/disputes.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        case = self._case(request, unquote(object_id))
        self.record(request, "view", case)
        disputed = Payment.objects.select_related("merchant", "channel").get(pk=case.disputed)
        open_ = case.state == State.OPEN and clock.now(case.merchant) < case.due_at
        files = list(case.evidence.order_by("added_at"))
        asked = {item.key for item in wanted(case.reason_code)}
        more = [item for key, item in ITEMS.items() if key not in asked]
        context = {
            **self.admin_site.each_context(request), "title": _("Dispute of %s") % f"{case.amount} {case.currency}",
            "opts": self.opts, "original": case, "case": shown.listed(case), "row": case, "disputed": disputed,
            "proofs": facts_of(disputed), "events": shown.happened(case), "limits": evidence.limits(),
            "checklist": [(item, [file for file in files if file.item == item.key])
                          for item in wanted(case.reason_code)],
            "others": [file for file in files if file.item not in asked], "items": [*wanted(case.reason_code), *more],
            "first": (*evidence.missing_of(case), *wanted(case.reason_code))[0].key,
            "files": files, "missing": evidence.missing_of(case), "open": open_, "reminders": shown.reminders(case),
            "may_change": self.may(request, "change", case),
            "decidable": not settings.IS_LIVE and case.test_mode == "INTERNAL" and case.state == State.SUBMITTED,
            "upload": upload_address(request, reverse("admin:chargebacks_chargeback_do", args=[case.pk])),
            "next": list(case.next.all()[:1]), **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/books/dispute.html", context)

    # --- what is done -----------------------------------------------------------------------------------------------

    @takes_files(Uploads(most=lambda: evidence.MOST_BYTES, may=_may_add_evidence))
    def do_view(self, request: HttpRequest, case: Any) -> HttpResponse:
        row = self._case(request, str(case))
        if not self.may(request, "change", row):
            raise PermissionDenied
        if request.method == "POST":
            try:
                if said := self._did(request, row):
                    messages.success(request, said)
            except (ImpossibleMove, NotEvidence, Refused) as fault:
                messages.error(request, str(fault))
        return redirect(reverse("admin:chargebacks_chargeback_change", args=[row.pk]))

    def _did(self, request: HttpRequest, case: Chargeback) -> str:
        """Do what the form says, and say it. Raises ImpossibleMove, NotEvidence and Refused."""
        verb, by, note = request.POST.get("verb", ""), actor(request), kept_note(request.POST.get("note", ""), 500)
        if verb == "add":
            sent = request.FILES.get("file")
            if sent is None:
                raise NotEvidence(_("choose a file"))
            stream: Any = sent
            evidence.add(case, request.POST.get("item", ""), sent.name or "", stream, by)
            return _("The file was added.")
        if verb == "remove":
            file = case.evidence.filter(pk=identifiers.parse_id(request.POST.get("evidence", ""))).first()
            if file is None:
                raise NotEvidence(_("the file is not there any more"))
            evidence.remove(file, by)
            return _("The file was taken back.")
        if verb == "submit":
            if request.POST.get("sure") != "yes":
                raise ImpossibleMove(_("say that you are sure: it is submitted once and for good"))
            cases.submit(case, by, note)
            return _("Submitted. The bank decides now.")
        if verb == "accept":
            if request.POST.get("sure") != "yes":
                raise ImpossibleMove(_("say that you are sure: the money stays with the shopper"))
            cases.accept(case, by, note or _("Accepted."))
            return _("Accepted. The money stays with the shopper.")
        if verb in ("win", "lose"):
            ledger.simulate_outcome(case, by, won=verb == "win")
            return _("The simulated bank has decided.")
        return ""

    def evidence_view(self, request: HttpRequest, case: Any, evidence: Any) -> HttpResponse | StreamingHttpResponse:
        """A file of evidence, to be kept and not shown as a page."""
        row = self._case(request, str(case))
        file = row.evidence.filter(pk=evidence).first()
        if file is None:
            raise Http404
        self.record(request, "evidence fetched", row, after={"name": file.name})
        return _file(file)

    def small_view(self, request: HttpRequest, case: Any, evidence: Any) -> HttpResponse:
        """A small picture of a file of evidence, made anew; who looks at the case sees it, too."""
        file = self._case(request, str(case)).evidence.filter(pk=evidence).first()
        octets = pictures.small(file) if file is not None else None
        if octets is None:
            raise Http404
        answer = HttpResponse(octets, content_type="image/jpeg")
        answer["X-Content-Type-Options"], answer["Cache-Control"] = "nosniff", "no-store"
        return answer

    def packet_view(self, request: HttpRequest, case: Any) -> HttpResponse:
        """Ask for everything that speaks for the merchant, as one PDF; a page tells when it is ready."""
        row = self._case(request, str(case))
        if request.method != "POST":
            return redirect(reverse("admin:chargebacks_chargeback_change", args=[row.pk]))
        title, asked = _("Packet as PDF") + f" · {row.amount} {row.currency}", {"case": row.pk.hex}
        try:
            made = work.ask(packets.KIND, title, asked, owner=int(request.user.pk or 0), by=actor(request))
        except work.TooMuchOpen:
            messages.error(
                request, _("You have %d pieces of work running. Wait for one, or cancel one.") % work.OPEN_AT_MOST
            )
            return redirect(reverse("admin:gateway_backgroundwork_changelist"))
        self.record(request, "packet asked", row)
        return redirect(reverse("admin:gateway_backgroundwork_change", args=[made.pk]))

    def by_hand_view(self, request: HttpRequest, payment: Any) -> HttpResponse:
        row = Payment.objects.select_related("merchant", "channel").filter(pk=payment).first()
        if row is None or not rights.allowed(request.user, "gateway.view_payment", row):
            raise Http404
        if not rights.allowed(request.user, "chargebacks.add_chargeback", row):
            raise PermissionDenied
        return by_hand.view(self, request, row)

    def contacts_view(self, request: HttpRequest, merchant: Any) -> HttpResponse:
        row = rights.merchants_of(request.user, "chargebacks.change_contact").filter(pk=merchant).first()
        if row is None:
            raise Http404
        if request.method == "POST":
            by_hand.contact(request, row)
        return redirect(reverse("admin:chargebacks_chargeback_changelist"))

    def _case(self, request: HttpRequest, ident: str) -> Chargeback:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.get_object(request, ident)
        if found is None:
            raise Http404
        return Chargeback.objects.select_related("merchant", "channel", "previous").get(pk=found.pk)


def _file(file: Evidence) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(evidence.content(file), content_type=file.content_type)
    answer["Content-Length"] = str(file.size)
    answer["Content-Disposition"] = f'attachment; filename="{file.pk.hex}{evidence.KINDS[file.content_type][0]}"'
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cache-Control"] = "no-store"
    return answer


def _picture(own: QuerySet[Chargeback]) -> Any:
    """The last 90 days by reason and outcome; each column leads to its disputes."""
    since: datetime = clock.real() - PICTURED
    counted: dict[str, list[int]] = {}
    rows = own.filter(opened_at__gte=since).values("reason_code", "state").annotate(n=Count("id"))
    place = {State.WON: 0, State.OPEN: 1, State.SUBMITTED: 1, State.LOST: 2, State.ACCEPTED: 2}
    for row in rows.order_by("reason_code"):
        counted.setdefault(row["reason_code"], [0, 0, 0])[place[row["state"]]] += row["n"]
    if not counted:
        return ""
    kinds = (("good", _("won")), ("note", _("not decided")), ("bad", _("lost or accepted")))
    columns = [(f"{code[-3:]} {_(words(code))[:28]}", figures, f"?reason={code}") for code, figures in counted.items()]
    return plots.stacked(columns, kinds, title=_("Disputes by reason and outcome, 90 days"))


def pressing(user: Any) -> int:
    """Disputes of the user's merchants that press, by the days that are left, up to MOST_COUNTED."""
    own = rights.scope(user, "chargebacks.view_chargeback").where("merchant", "channel")
    # Their merchants' clocks may be ahead of real time: in the test environment they are moved.
    left = ExpressionWrapper(F("due_at") - F("merchant__clock_offset"), output_field=DateTimeField())
    found = Chargeback.objects.filter(own, state=State.OPEN).annotate(real=left).order_by("real")
    now = clock.real()
    # A day of the calendar may be 25 hours long; those that are not red yet are left out below.
    rows = found.filter(real__lte=now + timedelta(days=shown.PRESSING_DAYS + 1, hours=1)).values_list(
        "due_at", "merchant__clock_offset", "merchant__time_zone"
    )
    days = (cases.days_between(now + ahead, due, zone) for due, ahead, zone in rows[:MOST_COUNTED])
    return sum(left <= shown.PRESSING_DAYS for left in days)
