"""Back-office pages of alerts and inquiries: the list, one alert with its choice, and the form to enter one by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from chargebacks import alerts
from chargebacks.admin.manual_entry import SELECTABLE_REASONS
from chargebacks.alerts import AlertFacts, AlertNotPossibleError
from chargebacks.disputed_orders import find_order_numbers
from chargebacks.evidence_checklist import OTHER_CHARGEBACK_REASON, describe_reason
from chargebacks.models import Chargeback, DisputeAlert
from chargebacks.notes import translate_note
from gateway.access import permissions
from gateway.backoffice.follow_ups.follow_up_form import OPERATE_PAYMENT_PERMISSION, clerk_from_request
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.kit.formatting import format_money, format_typed_amount, read_typed_amount
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.core.masking import mask_note, mask_text
from gateway.core.money import parse_amount
from gateway.models import Payment

ALERT_ORDER: Final = keyset.KeysetOrder(columns=(("opened_at", datetime), ("id", UUID)), newest_first=True)
_OPEN: Final = (DisputeAlert.State.OPEN, DisputeAlert.State.REFUNDING)
ALERT_STATE_PILLS: Final[Mapping[str, tuple[str, str | Promise]]] = MappingProxyType(
    {
        DisputeAlert.State.OPEN: ("wait", lazy("To decide")),
        DisputeAlert.State.REFUNDING: ("wait", lazy("The refund is being sent")),
        DisputeAlert.State.REFUNDED: ("good", lazy("Refunded")),
        DisputeAlert.State.LET_GO: ("plain", lazy("Let go")),
        DisputeAlert.State.ANSWERED: ("plain", lazy("Documents were sent")),
        DisputeAlert.State.EXPIRED: ("bad", lazy("Not answered in time")),
        DisputeAlert.State.DISPUTED: ("bad", lazy("A chargeback came")),
    }
)


def list_alerts_view(page: ModelAdmin[Chargeback], request: HttpRequest) -> HttpResponse:
    """The alerts of the user's merchants, open ones first by their list."""
    if not page.has_view_permission(request):
        raise PermissionDenied
    merchants = permissions.list_permitted_merchants(request.user, "chargebacks.view_chargeback")
    rows = DisputeAlert.objects.filter(merchant__in=merchants).select_related("merchant")
    chosen = "all" if request.GET.get("list") == "all" else "open"
    if chosen == "open":
        rows = rows.filter(state__in=_OPEN)
    pages = keyset.read_keyset_page(rows, ALERT_ORDER, request.GET, [("list", chosen)])
    orders = find_order_numbers(pages.rows)
    context = {
        **page.admin_site.each_context(request),
        "title": _("Alerts before disputes"),
        "opts": page.opts,
        "lists": [
            (name, title, name == chosen) for name, title in (("open", _("To decide")), ("all", _("All alerts")))
        ],
        "rows": [{**_render_row(row), "order": mask_text(orders.get(row.pk, ""))} for row in pages.rows],
        "pages": pages,
    }
    return TemplateResponse(request, "admin/books/alerts.html", context)


def alert_view(page: ModelAdmin[Chargeback], request: HttpRequest, ident: UUID) -> HttpResponse:
    """One alert; a POST is the user's decision. A refund needs a recent authentication."""
    alert = DisputeAlert.objects.select_related("merchant", "channel").filter(pk=ident).first()
    if alert is None or not permissions.has_permission(request.user, "chargebacks.view_chargeback", alert):
        raise Http404
    disputed = Payment.objects.select_related("merchant", "channel").get(pk=alert.disputed)
    may = permissions.has_permission(request.user, "chargebacks.change_chargeback", alert)
    may_refund = may and permissions.has_permission(request.user, OPERATE_PAYMENT_PERMISSION, disputed)
    if request.method == "POST":
        if not may or (request.POST.get("verb") == "refund" and not may_refund):
            raise PermissionDenied
        if request.POST.get("verb") == "refund" and (ask := session.require_reauthentication(request)) is not None:
            return ask
        try:
            messages.success(request, _decide(request, alert, disputed))
        except AlertNotPossibleError as fault:
            messages.error(request, str(fault))
        return redirect(reverse("admin:chargebacks_chargeback_alert", args=[alert.pk]))
    context = {
        **page.admin_site.each_context(request),
        "title": _("Alert about %s") % format_money(alert.amount, alert.currency),
        "opts": page.opts,
        "each": _render_row(alert),
        "row": alert,
        "disputed": disputed,
        "open": alert.state == DisputeAlert.State.OPEN and clock.merchant_now(alert.merchant) < alert.due_at,
        "is_inquiry": alert.kind == DisputeAlert.Kind.INQUIRY,
        "may": may,
        "may_refund": may_refund,
    }
    return TemplateResponse(request, "admin/books/alert.html", context)


def _decide(request: HttpRequest, alert: DisputeAlert, disputed: Payment) -> str:
    """Carry the form's decision out. Raises AlertNotPossibleError."""
    verb = request.POST.get("verb", "")
    if request.POST.get("sure") != "yes":
        raise AlertNotPossibleError(_("Say that you are sure."))
    if verb == "refund":
        alerts.refund_alert(alert, clerk_from_request(request, disputed))
        return _("The refund was sent.")
    if verb == "let_go":
        alerts.let_alert_go(alert, actor_from_request(request), mask_note(request.POST.get("note", ""), 500))
        return _("Recorded. If a chargeback comes, it is a dispute of its own.")
    raise AlertNotPossibleError(_("The form is not whole. Open it again."))


def enter_alert_view(page: ModelAdmin[Chargeback], request: HttpRequest, payment: Payment) -> HttpResponse:
    """The form to enter an alert. The caller has checked the right. Not offered for a payment that can have none."""
    if why := alerts.explain_no_alert(payment):
        messages.error(request, why)
        return redirect(build_payment_page_url(payment.pk))
    fault = ""
    if request.method == "POST":
        try:
            alert, made = alerts.record_alert(payment, _read_form(request, payment), actor_from_request(request))
        except AlertNotPossibleError as refused:
            fault = str(refused)
        else:
            messages.success(request, _("Entered.") if made else _("This alert is there already."))
            return redirect(reverse("admin:chargebacks_chargeback_alert", args=[alert.pk]))
    sent = request.POST
    context = {
        **page.admin_site.each_context(request),
        "title": _("Enter an alert"),
        "opts": page.opts,
        "payment": payment,
        "fault": fault,
        "kinds": [(kind.value, _(kind.label)) for kind in DisputeAlert.Kind],
        "kind": sent.get("kind", DisputeAlert.Kind.ALERT),
        "reasons": [(code, _(describe_reason(code))) for code in SELECTABLE_REASONS],
        "reason": sent.get("reason", OTHER_CHARGEBACK_REASON),
        "amount": sent.get("amount", format_typed_amount(payment.approved_amount or payment.amount)),
        **{name: sent.get(name, "") for name in ("provider", "reference", "respond_by")},
    }
    return TemplateResponse(request, "admin/books/alert_entry.html", context, status=400 if fault else 200)


def _read_form(request: HttpRequest, payment: Payment) -> AlertFacts:
    """Raises AlertNotPossibleError."""
    sent = request.POST
    try:
        amount = parse_amount(read_typed_amount(sent.get("amount", "")))
    except ValueError:
        raise AlertNotPossibleError(_("Amount: a number above 0 with two places, such as 12.50.")) from None
    if (reason := sent.get("reason", "")) not in SELECTABLE_REASONS:
        raise AlertNotPossibleError(_("Reason: choose one of the list."))
    if (kind := sent.get("kind", "")) not in DisputeAlert.Kind.values:
        raise AlertNotPossibleError(_("The form is not whole. Open it again."))
    respond_by = None
    if given := sent.get("respond_by", ""):
        try:
            respond_by = datetime.fromisoformat(given).replace(tzinfo=ZoneInfo(payment.merchant.time_zone))
        except ValueError:
            raise AlertNotPossibleError(_("Answer by: a time, such as 2030-01-31 12:00, or empty.")) from None
        if respond_by <= clock.merchant_now(payment.merchant):
            raise AlertNotPossibleError(_("Answer by: a time that is still to come."))
    return AlertFacts(
        provider=mask_note(sent.get("provider", "").strip(), 32),
        reference=mask_note(sent.get("reference", "").strip(), 64),
        amount=amount,
        currency=payment.currency,
        kind=DisputeAlert.Kind(kind),
        reason=reason,
        respond_by=respond_by.astimezone(UTC) if respond_by is not None else None,
    )


def _render_row(alert: DisputeAlert) -> dict[str, Any]:
    tone, text = ALERT_STATE_PILLS[alert.state]
    zone = ZoneInfo(alert.merchant.time_zone)
    return {
        "row": alert,
        "pill": {"tone": tone, "text": str(text)},
        "kind": _(DisputeAlert.Kind(alert.kind).label),
        "words": _(describe_reason(alert.reason_code)),
        "note": translate_note(alert.note),
        "due": f"{alert.due_at.astimezone(zone):%Y-%m-%d %H:%M} ({alert.merchant.time_zone})",
        "address": reverse("admin:chargebacks_chargeback_alert", args=[alert.pk]),
    }
