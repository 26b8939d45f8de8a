"""Payments: found by one box, understood on one page. What is done to them by hand is in gateway.admin.follow_ups.

Source: design, J4; docs/back-office-payments.md.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway import brands, clock, identifiers, rights
from gateway.admin import exports, follow_ups, picture
from gateway.admin.kit import ReadOnly, actor
from gateway.admin.showing import curls_of, json_text, pill, tone_of
from gateway.desk import search
from gateway.desk.filters import NAMES, TEST_MODES, TYPES, Filters, filters_of
from gateway.desk.particulars import particulars_of
from gateway.desk.search import SHAPES, Asked, FullNumber, TooMuch, asked_for
from gateway.desk.story import TITLES, Moment, Story, story_of, title_of
from gateway.masking import mask_text
from gateway.models import Approval, Channel, Merchant, Payment, RequestLog, Status
from gateway.payments.answer import issuer_facts, payment_object
from gateway.payments.operations import OPERATIONS
from gateway.results import Family
from gateway.rights import Place
from gateway.scheduling.models import JobRun

CHOICES_AT_MOST = 100
"""Channels and merchants that a filter offers by name."""
QUICK = (
    (gettext_lazy("Declined"), {"status": Status.DECLINED}),
    (gettext_lazy("Waiting"), {"status": Status.PENDING}),
    (gettext_lazy("In doubt"), {"status": Status.IN_DOUBT}),
    (gettext_lazy("Refunds"), {"type": "RF"}),
    (gettext_lazy("To review"), {"family": Family.REVIEW.value}),
)


@admin.register(Payment)
class PaymentAdmin(ReadOnly):
    """The list and the page are our own; the kit says whose rows they may show."""

    def get_urls(self) -> list[URLPattern]:
        name = "gateway_payment_"
        own = [
            path("export/", self.admin_site.admin_view(self.export_view), name=f"{name}export"),
            path("<uuid:payment>/do/<str:code>/", self.admin_site.admin_view(self.follow_up_view), name=f"{name}do"),
        ]
        return own + super().get_urls()

    # --- the list ----------------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "GET":
            return redirect(reverse("admin:gateway_payment_changelist"))
        try:
            asked = asked_for(request.GET.get("q", ""))
        except FullNumber:
            # Nothing may repeat the number: not the page, and not its address.
            messages.warning(request, _(search.FULL_NUMBER))
            return redirect(reverse("admin:gateway_payment_changelist"))
        filters, wrong = filters_of(request.GET)
        page, too_much = search.Page(rows=[]), False
        if not wrong:
            try:
                page = search.page(self.scope(request), asked, filters, after=request.GET.get("after", ""))
            except TooMuch:
                too_much = True
        if page.sure and not request.GET.get("after"):
            return HttpResponseRedirect(address_of(page.rows[0]))
        context = {
            **self.admin_site.each_context(request), "title": _("Payments"), "opts": self.opts, "cl": None,
            "asked": asked, "q": request.GET.get("q", ""), "wrong": wrong, "too_much": too_much,
            "rows": [_listed(row) for row in page.rows], "next": _address(request, after=page.after),
            "paged": bool(request.GET.get("after")), "filters": self._filters(request, filters),
            "narrowed": [name for name in NAMES if request.GET.get(name)], "shapes": SHAPES,
            "quick": [(title, f"?{urlencode(values)}") for title, values in QUICK],
            "may_export": self.may(request, "gateway.export_payment"), "passed_on": _passed_on(request),
            "waiting": _waiting(request), "own_outcomes": _outcomes(request), **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/clerk/payments.html", context)

    def _filters(self, request: HttpRequest, filters: Filters) -> list[dict[str, Any]]:
        """The filters as the form draws them: name, label, kind, choices."""
        merchants = rights.merchants_of(request.user, "gateway.view_payment").order_by("name")[:CHOICES_AT_MOST]
        channels = rights.channels_of(request.user, "gateway.view_payment").select_related("merchant")
        chosen: dict[str, tuple[str, list[tuple[str, str]]]] = {
            "status": (_("Status"), [(value, pill(value)["text"]) for value in Status.values]),
            "type": (_("Type"), [(code, f"{code} {_type_title(code)}") for code in TYPES]),
            "family": (_("Result"), [(family.value, family.value.replace("-", " ")) for family in Family]),
            "brand": (_("Brand"), [(code, code) for code in sorted(brands.BRANDS)]),
            "method": (_("Method"), [(code, code) for code in sorted({b.method for b in brands.BRANDS.values()})]),
            "mode": (_("Test mode"), [(code, code) for code in TEST_MODES]),
            "merchant": (_("Merchant"), [(row.entity_id, row.name) for row in merchants]),
            "channel": (_("Channel"), [(row.entity_id, f"{row.merchant.name}: {row.name}")
                                       for row in channels.order_by("merchant__name", "name")[:CHOICES_AT_MOST]]),
        }  # fmt: skip
        typed = {"from": (_("From (UTC)"), "date"), "to": (_("To"), "date"), "currency": (_("Currency"), "text"),
                 "least": (_("Amount from"), "text"), "most": (_("Amount to"), "text"),
                 "code": (_("Result code"), "text")}  # fmt: skip
        found = []
        for name in ("from", "to", "status", "type", "least", "most", "currency", "brand", "method", "family", "code",
                     "channel", "merchant", "mode"):  # fmt: skip
            value = request.GET.get(name, "")
            if name in chosen:
                label, choices = chosen[name]
                if name in ("merchant", "channel") and len(choices) < 2:
                    continue
                found.append({"name": name, "label": label, "choices": choices, "value": value})
            else:
                label, kind = typed[name]
                kind = "datetime-local" if kind == "date" and "T" in value else kind
                found.append({"name": name, "label": label, "kind": kind, "value": value})
        return found

    # --- the page ----------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        payment = self._payment(request, unquote(object_id))
        if request.method != "GET":
            raise PermissionDenied
        self.record(request, "view", payment)
        story = story_of(payment)
        told = payment_object(payment)
        told.pop("redirect", None)
        context = {
            **self.admin_site.each_context(request), "title": _heading(payment), "opts": self.opts,
            "payment": payment, "original": payment, "story": story, "pill": pill(payment.status),
            "moments": [_moment(moment, story) for moment in story.moments], "picture": picture.of(story.nodes),
            "particulars": particulars_of(payment), "card": _card(payment), "told": json_text(told),
            "offers": story.offers if self.may(request, "gateway.operate_payment", payment) else [],
            "curls": curls_of(payment, story.offers), "ids": _ids(payment), "title_of": title_of(payment),
            "see_deliveries": self.scope(request).covers(Place(merchant=payment.merchant_id)),
            "approvals": story.approvals, "back": request.GET.get("back", ""), **(extra_context or {}),
        }  # fmt: skip
        return TemplateResponse(request, "admin/clerk/payment.html", context)

    def _payment(self, request: HttpRequest, ident: str, verb: str = "view") -> Payment:
        """A payment of the user's, with all that its page reads. Foreign ones look unknown: 404."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = self.get_object(request, ident)
        if found is None:
            raise Http404
        row = Payment.objects.select_related("merchant", "channel").get(pk=found.pk)
        if verb != "view" and not self.may(request, verb, row):
            raise PermissionDenied
        return row

    def follow_up_view(self, request: HttpRequest, payment: Any, code: str) -> HttpResponse:
        if code not in OPERATIONS:
            raise Http404
        row = self._payment(request, str(payment), "gateway.operate_payment")
        return follow_ups.view(self, request, row, code)

    def export_view(self, request: HttpRequest) -> HttpResponse:
        if not self.may(request, "gateway.export_payment"):
            raise PermissionDenied
        return exports.start(request, actor(request))


# --- what the pages are given -----------------------------------------------------------------------------------------


def address_of(payment: Payment) -> str:
    return reverse("admin:gateway_payment_change", args=[payment.pk])


def _address(request: HttpRequest, **changes: str) -> str:
    """This list's address with changes; '' where ``after`` is empty: there is no next page."""
    if "after" in changes and not changes["after"]:
        return ""
    kept = {name: value for name, value in request.GET.items() if name in (*NAMES, "q") and value}
    return f"?{urlencode({**kept, **changes})}"


def _passed_on(request: HttpRequest) -> list[tuple[str, str]]:
    return [(name, value) for name, value in request.GET.items() if name in (*NAMES, "q") and value]


def _listed(row: Payment) -> dict[str, Any]:
    card = row.answer.get("card", {})
    return {
        "row": row, "address": address_of(row), "title": title_of(row), "pill": pill(row.status),
        "last": card.get("last4Digits", ""), "is_first": row.chain == row.pk,
    }  # fmt: skip


def _type_title(code: str) -> str:
    operation = OPERATIONS.get(code)
    title = operation.title if operation is not None else TITLES.get(code, "")
    return _(title) if title else ""


def _heading(payment: Payment) -> str:
    amount = f" {payment.amount} {payment.currency}" if payment.amount else ""
    return f"{title_of(payment)}{amount}"


def _waiting(request: HttpRequest) -> int:
    """Requests that wait for this user's decision; counted up to a hundred."""
    scope = rights.scope(request.user, "gateway.approve_payment")
    if not scope:
        return 0
    open_ = Approval.objects.filter(state=Approval.State.ASKED, expires_at__gt=clock.real())
    rows = open_.exclude(asked_by=request.user.pk)
    return rows.filter(scope.where("merchant", "payment__channel"))[:100].count()


def _outcomes(request: HttpRequest) -> list[dict[str, Any]]:
    """What became of this user's own latest requests."""
    mine = Approval.objects.filter(asked_by=request.user.pk).exclude(state=Approval.State.WITHDRAWN)
    return [
        {"row": row, "what": _(OPERATIONS[row.payment_type].title), "pill": pill(row.state)}
        for row in mine.order_by("-asked_at")[:3]
    ]


def _moment(moment: Moment, story: Story) -> dict[str, Any]:
    """``sent`` and ``received`` as text; the structures that went on as they were requested are put back by name."""
    other = moment.payment is not None and moment.payment.id != story.payment.id
    return {
        "moment": moment, "other": moment.payment if other else None,
        "other_address": address_of(moment.payment) if other and moment.payment else "",
        "sent": json_text(moment.sent) if moment.sent else "",
        "received": json_text(moment.received) if moment.received else "", "tone": tone_of(moment.tone),
    }  # fmt: skip


def _card(payment: Payment) -> dict[str, Any]:
    """What is known of the means, and the way to everything else that was paid with it."""
    card = payment.answer.get("card", {})
    sent = payment.request.get("card", {})
    found: dict[str, Any] = {"facts": []}
    if last := card.get("last4Digits"):
        found["number"] = f"{card['bin']} •••• {last}"
        facts = issuer_facts(card["bin"])
        issuer = facts.get("issuer", {})
        month, year = (
            sent.get("expiryMonth") or card.get("expiryMonth"),
            sent.get("expiryYear") or card.get("expiryYear"),
        )
        named = (
            (_("Holder"), sent.get("holder") or card.get("holder")), (_("Expires"), f"{month}/{year}" if month else ""),
            (_("Bank"), issuer.get("bank")), (_("Bank's phone"), issuer.get("phone")), (_("Kind"), facts.get("type")),
            (_("Level"), facts.get("level")),
        )  # fmt: skip
        found["facts"] = [(name, mask_text(str(value))) for name, value in named if value]
        if payment.means_fingerprint:
            found["fingerprint"] = f"{last}:{bytes(payment.means_fingerprint).hex()}"
    account = payment.request.get("bankAccount", {})
    if isinstance(account, dict) and account:
        found["facts"] = [(name, mask_text(value)) for name, value in account.items() if isinstance(value, str)]
    return found


def _ids(payment: Payment) -> list[tuple[str, str, str]]:
    """(name, value, address of its page)."""
    request_log = reverse("admin:gateway_requestlog_change", args=[payment.request_id])
    schedule = _schedule_of(payment)
    logged = RequestLog.objects.filter(pk=payment.request_id).exists()
    named = [
        ("id", payment.id.hex, ""),
        ("shortId", identifiers.short_id(payment.number), ""),
        ("ndc", identifiers.ndc(payment.request_id, payment.channel_id.hex), request_log if logged else ""),
        ("entityId", payment.channel.entity_id, ""),
        (_("Merchant"), str(payment.merchant), ""),
        (_("Channel"), str(payment.channel), ""),
        ("referencedId", payment.referenced.hex if payment.referenced else "",
         reverse("admin:gateway_payment_change", args=[payment.referenced]) if payment.referenced else ""),
        (_("Schedule"), schedule.hex if schedule else "",
         reverse("admin:scheduling_job_change", args=[schedule]) if schedule else ""),
        ("registrationId", payment.registration.hex if payment.registration else "",
         reverse("admin:gateway_registration_change", args=[payment.registration]) if payment.registration else ""),
        (_("Connector"), payment.connector, ""),
        (_("Acquirer's reference"), payment.connector_tx_id, ""),
        (_("Acquirer account"), payment.account, ""),
        ("testMode", payment.test_mode, ""),
    ]  # fmt: skip
    return [each for each in named if each[1]]


def _schedule_of(payment: Payment) -> UUID | None:
    """The schedule that a payment is a run or a record of."""
    if payment.payment_type in ("SD", "RS", "DS"):
        return payment.chain
    return JobRun.objects.filter(payment=payment.pk).values_list("job", flat=True).first()


__all__ = ["Asked", "Channel", "Merchant", "PaymentAdmin"]
