"""Registrations, the request log, notifications and risk observations. All read-only, but registrations can be deleted.

Source: docs/registrations.md; Part B, Tokenization and registration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.access.permissions import AccessScope, RowOwner, find_row_owner
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.formatting import build_state_pill, format_money, mask_registered_account
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.list_filters import build_period_filter
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.payments import search_terms
from gateway.backoffice.payments.curl_commands import build_request_curl
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.connectors.means import Card
from gateway.core import clock, identifiers
from gateway.core.masking import mask_text
from gateway.models import (
    AccountUpdate,
    Channel,
    NetworkToken,
    Notification,
    Payment,
    Registration,
    RequestLog,
    RiskObservation,
)
from gateway.payments import account_updates, registrations, search_keys
from gateway.payments.refusal import RequestRefusedError

MAX_REGISTRATION_PAYMENTS = 50
MAX_SHOWN_ACCOUNT_UPDATES = 20
NDC_SUFFIX_CHARS = 12
"""Characters of an ndc that a list shows."""
_DETAIL_TITLES: Final[Mapping[str, Any]] = {
    "holder": gettext_lazy("Holder"), "bin": gettext_lazy("BIN"), "last4Digits": gettext_lazy("Last four digits"),
    "expiryMonth": gettext_lazy("Expiry month"), "expiryYear": gettext_lazy("Expiry year"), "iban": "IBAN",
    "bic": "BIC", "bankName": gettext_lazy("Bank"), "country": gettext_lazy("Country"),
}  # fmt: skip
"""Field of a stored account → its name for a reader; others stand by their API name."""


@admin.register(Registration)
class RegistrationAdmin(ReadOnlyPage):
    """Registrations: viewed and deleted; their cards are kept out of the account updater."""

    lists_from_standby = True
    deletable = True
    nothing = gettext_lazy(
        "A registration is a stored means of payment: POST /v1/registrations, or createRegistration=true "
        "with a payment."
    )
    list_display = ("created_at", "brand", "account", "holder", "state", "merchant", "channel", "id_hex")
    list_display_links = ("created_at", "id_hex")
    list_select_related = ("merchant", "channel")
    list_filter = (build_period_filter("created_at"), "status", "brand")
    search_fields = ("id",)
    search_help_text = gettext_lazy("The registration's id, or that of a payment made with it")
    ordering = ("-id",)
    actions = None
    more_columns = ("method", "sequence")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.updates_view)
        own = [path("<uuid:registration>/updates/", view, name="gateway_registration_updates")]
        return [*own, *super().get_urls()]

    @admin.display(description=gettext_lazy("account"))
    def account(self, row: Registration) -> str:
        return mask_registered_account(row)

    @admin.display(description=gettext_lazy("holder"))
    def holder(self, row: Registration) -> str:
        return mask_text(str(row.details.get(row.means, {}).get("holder", "")))

    @admin.display(description=gettext_lazy("status"))
    def state(self, row: Registration) -> str:
        return str(build_state_pill(row.status)["text"])

    @admin.display(description="id")
    def id_hex(self, row: Registration) -> str:
        return row.id.hex

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Registration], search_term: str
    ) -> tuple[QuerySet[Registration], bool]:
        """Search by exact keys only: each of them has an index."""
        term = search_term.strip().replace("-", "").lower()
        if not term:
            return queryset, False
        ident = identifiers.parse_id(term)
        if ident is None:
            return queryset.none(), False
        used = Payment.objects.filter(pk=ident).values_list("registration", flat=True).first()
        return queryset.filter(Q(pk=ident) | Q(pk=used) if used else Q(pk=ident)), False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        row = self._find_registration(request, object_id)
        self.record(request, "view", row)
        shown = row.details.get(row.means, {}).items()
        payments = _render_registration_payments(row)
        token = NetworkToken.objects.filter(registration=row).first()
        details = {name: mask_text(value) for name, value in shown if isinstance(value, str)}
        context = {
            **self.admin_site.each_context(request),
            "title": f"{row.brand} {mask_registered_account(row)}",
            "opts": self.opts,
            "original": row,
            "registration": row,
            "pill": build_state_pill(row.status),
            "account": mask_registered_account(row),
            "details": [(_DETAIL_TITLES.get(name, name), value) for name, value in sorted(details.items())],
            "payments": payments[:MAX_REGISTRATION_PAYMENTS],
            "most": MAX_REGISTRATION_PAYMENTS if len(payments) > MAX_REGISTRATION_PAYMENTS else 0,
            "token": token,
            "token_history": _render_token_history(token),
            "updates": AccountUpdate.objects.filter(registration=row).order_by("-id")[:MAX_SHOWN_ACCOUNT_UPDATES],
            "account_update": _render_account_update(row),
            "updated_by_networks": row.channel.account_updater and row.means == Card.kind,
            "opted_out": account_updates.is_opted_out(row),
            "change_updates": reverse("admin:gateway_registration_updates", args=[row.pk]),
            "past": row.retain_until is not None and row.retain_until < clock.merchant_now(row.merchant),
            "may_delete": row.status == Registration.Status.ACTIVE and self.has_delete_permission(request, row),
            "delete": reverse("admin:gateway_registration_delete", args=[row.pk]),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/registration.html", context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Delete as the API does: the account is erased, and a payment of type DR records it."""
        row = self._find_registration(request, object_id)
        if not self.has_delete_permission(request, row):
            raise PermissionDenied
        back = redirect(reverse("admin:gateway_registration_change", args=[row.pk]))
        if request.method == "POST":
            try:
                self._delete_registration(request, row)
                messages.success(request, _("Deleted. The account it held is erased for good."))
            except RequestRefusedError as fault:
                messages.error(request, describe_result(fault.code))
            return back
        context = {
            **self.admin_site.each_context(request),
            "title": _("Delete this registration?"),
            "opts": self.opts,
            "original": row,
            "registration": row,
            "account": mask_registered_account(row),
            "payments": len(_render_registration_payments(row)),
            "back": reverse("admin:gateway_registration_change", args=[row.pk]),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/registration_delete.html", context)

    def updates_view(self, request: HttpRequest, registration: UUID) -> HttpResponse:
        """Keep a card out of the account updater, or let it in again, as the API's accountUpdater does."""
        row = self._find_registration(request, registration)
        if request.method != "POST" or not self.has_delete_permission(request, row):
            raise PermissionDenied
        wanted, by = request.POST.get("wanted") == "true", actor_from_request(request)
        try:
            made = registrations.set_account_updates_by_hand(
                row, wanted=wanted, path=f"/admin/registration/{row.pk.hex}", ip=by.ip
            )
        except RequestRefusedError as fault:
            messages.error(request, describe_result(fault.code))
        else:
            before = {"accountUpdater": row.request.get("accountUpdater", "true")}
            after = {"accountUpdater": "true" if wanted else "false", "payment": made.id.hex}
            self.record(request, "change", row, before=before, after=after)
            messages.success(
                request,
                _("The card networks are asked about this card again.")
                if wanted
                else _("The card networks are not asked about this card any more."),
            )
        return redirect(reverse("admin:gateway_registration_change", args=[row.pk]))

    def _delete_registration(self, request: HttpRequest, row: Registration) -> None:
        by = actor_from_request(request)
        made = registrations.delete_registration_by_hand(row, path=f"/admin/registration/{row.pk.hex}", ip=by.ip)
        self.record(
            request,
            "delete",
            row,
            before={"status": "ACTIVE", "account": mask_registered_account(row)},
            after={"status": "DELETED", "payment": made.id.hex},
        )

    def _find_registration(self, request: HttpRequest, object_id: object) -> Registration:
        row: Registration = self.find_row(request, object_id, "merchant", "channel")
        return row


def _render_account_update(row: Registration) -> dict[str, Any] | None:
    """What the account updater last changed of a card; ``code``: by which merchant-initiated payments are declined."""
    if not row.account_update:
        return None
    code, _message = registrations.ACCOUNT_BLOCKS.get(row.account_update, ("", ""))
    return {"text": AccountUpdate.Status(row.account_update).label, "at": row.account_updated_at, "code": code}


def _render_token_history(token: NetworkToken | None) -> list[dict[str, Any]]:
    """The history of a network token: provisioned, suspended, resumed, renewed, deleted; newest first."""
    return [
        {
            "at": datetime.fromisoformat(one["at"]),
            "status": NetworkToken.Status(one["status"]).label,
            "expiry": one["expiry"],
        }
        for one in reversed(token.history if token is not None else [])
    ]


def _render_registration_payments(row: Registration) -> list[dict[str, Any]]:
    """Payments by this registration, newest first and one more than is shown, found by the last four digits of its
    account; at least the one that made it."""
    made = Q(pk=row.payment)
    if last := row.details.get("card", {}).get("last4Digits"):
        made |= Q(last4_key=search_keys.build_last4_key(row.merchant_id, last), registration=row.pk)
    rows = Payment.objects.filter(made).defer("request", "answer").order_by("-id")[: MAX_REGISTRATION_PAYMENTS + 1]
    return [
        {
            "row": payment,
            "title": format_payment_title(payment),
            "pill": build_state_pill(payment.status),
            "address": build_payment_page_url(payment.pk),
        }
        for payment in rows
    ]


class KnownValuesFilter(admin.AllValuesFieldListFilter):
    """A filter with a fixed list of values: selecting distinct ones would read a log of millions of rows."""

    known: Final[Mapping[str, Sequence[Any]]] = MappingProxyType(
        {
            "status": (200, 202, 204, 301, 302, 307, 400, 401, 403, 404, 405, 409, 411, 413, 415, 422, 429, 500, 503),
            "method": ("DELETE", "GET", "POST", "PUT"),
        }
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lookup_choices = self.known[self.field_path]  # type: ignore[assignment]  # Django only iterates over it


@admin.register(RequestLog)
class RequestLogAdmin(ReadOnlyPage):
    """API requests with what was sent, masked."""

    lists_from_standby = True
    nothing = gettext_lazy("Every call of the API stands here as it is made, with what was sent masked.")
    list_display = ("at", "method", "path", "status", "result_code", "duration", "short_ndc")
    list_display_links = ("at", "short_ndc")
    list_filter = (build_period_filter("at", real=True), ("status", KnownValuesFilter), ("method", KnownValuesFilter))
    search_fields = ("id",)
    search_help_text = gettext_lazy("The ndc of an answer; of the newest requests also its end")
    ordering = ("-id",)
    actions = None

    @admin.display(description="ndc")
    def short_ndc(self, row: RequestLog) -> SafeString:
        """The end of the ndc, which differs between requests; the whole would be too wide at 1280 pixels."""
        return format_html('<code title="{}">…{}</code>', row.ndc, row.ndc[-NDC_SUFFIX_CHARS:])

    @admin.display(description=gettext_lazy("took (ms)"), ordering="duration_ms")
    def duration(self, row: RequestLog) -> int:
        return row.duration_ms

    def reached(self, rows: QuerySet[RequestLog], scope: AccessScope) -> QuerySet[RequestLog]:
        """A request only has the entity that it named: a merchant or a channel."""
        if scope.everything:
            return rows
        channels = Channel.objects.filter(scope.where("merchant", "pk")).values_list("pk", flat=True)
        return rows.filter(entity_id__in=[*scope.merchants, *channels])

    def place(self, row: RequestLog) -> RowOwner:
        found = Channel.objects.filter(pk=row.entity_id).first() if row.entity_id else None
        return find_row_owner(found) if found is not None else RowOwner(merchant=row.entity_id)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[RequestLog], search_term: str
    ) -> tuple[QuerySet[RequestLog], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        ndc = identifiers.parse_ndc(term)
        if ndc is None and (end := search_terms.parse_ndc_end(term)) is not None:
            return search_terms.filter_by_ndc_end(queryset, end), False
        return (queryset.filter(pk=ndc) if ndc is not None else queryset.none()), False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row: RequestLog = self.find_viewed_row(request, object_id)
        self.record(request, "view", row)
        payment = Payment.objects.filter(pk=row.payment).first() if row.payment else None
        sent = [(str(name), str(value)) for name, value in row.parameters or []]
        context = {
            **self.admin_site.each_context(request),
            "title": f"{row.method} {row.path}",
            "opts": self.opts,
            "original": row,
            "log": row,
            "sent": sent,
            "payment": payment,
            "payment_address": build_payment_page_url(payment.pk) if payment else "",
            "result": describe_result(row.result_code),
            "good": row.status < 400,
            "curl": build_request_curl(row, sent)
            if row.path.startswith("/v") and (sent or row.method == "GET")
            else "",
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/request.html", context)


@admin.register(Notification)
class NotificationAdmin(ReadOnlyPage):
    """Notifications in the outbox, read-only."""

    lists_from_standby = True
    nothing = gettext_lazy("What merchants are told stands here first: with the first payment.")
    list_display = ("created_at", "kind", "action", "payment_hex", "sequence", "merchant")
    list_select_related = ("merchant",)
    list_filter = ("kind",)
    ordering = ("-id",)
    fields = (
        "merchant",
        "channel",
        "kind",
        "action",
        "payment_link",
        "registration",
        "subject",
        "sequence",
        "created_at",
    )
    readonly_fields = ("payment_link",)
    actions = None

    @admin.display(description=gettext_lazy("payment"))
    def payment_hex(self, row: Notification) -> str:
        """The id as the API writes it, so that ids from a merchant's logs are found."""
        return row.payment_id.hex if row.payment_id else "–"

    @admin.display(description=gettext_lazy("payment"))
    def payment_link(self, row: Notification) -> str:
        """The payment in words, with a link to its page."""
        if row.payment is None:
            return "–"
        words = f"{format_payment_title(row.payment)} {format_money(row.payment.amount, row.payment.currency)}"
        return format_html('<a class="th-link" href="{}">{}</a>', build_payment_page_url(row.payment.pk), words)


@admin.register(RiskObservation)
class RiskObservationAdmin(ReadOnlyPage):
    """Observations that velocities count. The key is a keyed fingerprint and reveals no e-mail or address."""

    lists_from_standby = True
    channel_path = None
    nothing = gettext_lazy(
        "What rules of the kind velocity count stands here, with the first payment that such a rule looks at."
    )
    list_display = ("at", "merchant", "payment", "amount", "currency", "fingerprint")
    list_select_related = ("merchant",)
    ordering = ("-id",)
    search_fields = ("payment",)
    search_help_text = gettext_lazy("A payment's id")
    fields = ("at", "merchant", "payment", "amount", "currency", "fingerprint")
    readonly_fields = ("fingerprint",)
    actions = None

    @admin.display(description=gettext_lazy("counted by (fingerprint)"))
    def fingerprint(self, row: RiskObservation) -> str:
        return bytes(row.key).hex()[:16]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[RiskObservation], search_term: str
    ) -> tuple[QuerySet[RiskObservation], bool]:
        ident = identifiers.parse_id(search_term.strip().replace("-", "").lower())
        if not search_term.strip():
            return queryset, False
        payment = Payment.objects.filter(pk=ident).only("merchant", "created_at").first() if ident else None
        if payment is None:
            return queryset.none(), False
        return queryset.filter(merchant=payment.merchant_id, payment=payment.pk), False
