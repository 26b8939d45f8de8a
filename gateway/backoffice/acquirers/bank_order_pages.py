"""Bank orders, their files, and the banks' messages: read-only, but for recalls. Files are shown with accounts masked.

Source: docs/connectors/sepa.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from gateway.backoffice.kit.base import InstallationPage, ReadOnlyInline, ReadOnlyPage
from gateway.backoffice.kit.formatting import format_labelled, format_money
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.sign_in import session
from gateway.connectors.sepa import file_delivery, payment_files
from gateway.connectors.sepa.bank_reasons import find_bank_reason
from gateway.connectors.sepa.cancellations import REFUSED_CANCELLATIONS, REQUEST_KINDS
from gateway.connectors.sepa.connector import recall_transfer
from gateway.connectors.sepa.recalls import RECALL_REASONS, RecallRefusal, RecallRefusedError
from gateway.core import identifiers
from gateway.models import BankFile, BankMessage, BankOrder, BankOrderEvent

MAX_SHOWN_ORDER_EVENTS = 50


def _link_payment(payment: UUID) -> str:
    address = build_payment_page_url(payment)
    return format_html('<a href="{}" class="text-primary-600 break-all">{}</a>', address, payment.hex)


class BankOrderEventInline(ReadOnlyInline):
    """The events of an order."""

    model = BankOrderEvent
    fields = ("at", "state", "reason", "on", "charges", "message", "applied")
    readonly_fields = fields
    ordering = ("id",)
    max_num = MAX_SHOWN_ORDER_EVENTS
    verbose_name_plural = lazy("Events")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # checked by the order's page


_RECALL_TITLES: Final[Mapping[str, Promise]] = MappingProxyType(
    {
        "DUPL": lazy("sent twice (DUPL)"),
        "TECH": lazy("technical fault (TECH)"),
        "FRAD": lazy("fraud (FRAD)"),
        "AC03": lazy("wrong account (AC03)"),
        "AM09": lazy("wrong amount (AM09)"),
        "CUST": lazy("the merchant's wish (CUST)"),
    }
)
"""Reason of a recall → what users read."""


_RECALL_REFUSALS: Final[Mapping[RecallRefusal, Promise]] = MappingProxyType(
    {
        RecallRefusal.UNKNOWN_REASON: lazy("there is no such reason of a recall"),
        RecallRefusal.NO_TRANSFER: lazy("only a credit transfer is recalled"),
        RecallRefusal.NO_REQUESTS: lazy("the account says cancelBy=none: its bank takes no requests"),
        RecallRefusal.NOT_SENT: lazy("its file is not with the bank yet"),
        RecallRefusal.REJECTED: lazy("the bank has rejected it: nothing was paid"),
        RecallRefusal.RETURNED: lazy("its money came back already"),
        RecallRefusal.WITHDRAWN: lazy("it was taken back: nothing was paid"),
        RecallRefusal.TOO_LATE: lazy("the scheme's time for this reason has passed"),
        RecallRefusal.RECALLED_BEFORE: lazy("it was recalled before: the scheme has one recall of a transfer"),
        RecallRefusal.NO_ACCOUNT: lazy("the account cannot be used: its settings are wrong or its secrets do not open"),
    }
)
"""Why a transfer is not recalled → what users read."""


def _build_recall_action(reason: str) -> Callable[[BankOrderAdmin, HttpRequest, QuerySet[BankOrder]], Any]:
    """The list's action that recalls transfers for one reason."""

    @admin.action(
        description=format_lazy("{what}: {why}", what=lazy("Recall transfers"), why=_RECALL_TITLES[reason]),
        permissions=["recall"],
    )
    def recall(page: BankOrderAdmin, request: HttpRequest, queryset: QuerySet[BankOrder]) -> HttpResponse | None:
        if (ask := session.require_reauthentication(request)) is not None:
            return ask
        page.recall_transfers(request, queryset, reason)
        return None

    recall.__name__ = f"recall_{reason.lower()}"
    return recall


@admin.register(BankOrder)
class BankOrderAdmin(ReadOnlyPage):
    """Orders to banks, read-only, but for recalls of transfers."""

    sensitive = True
    nothing = lazy("A direct debit or transfer that is to be presented to a bank stands here.")
    list_display = ("created_at", "merchant", "kind_title", "money", "state", "reason", "due_on", "other_account")
    list_display_links = ("created_at",)
    list_select_related = ("merchant", "file")
    list_filter = ("state", "kind")
    search_fields = ("payment",)
    search_help_text = lazy("A payment's id, or a file's message id")
    ordering = ("-created_at", "payment")
    fields = (
        "payment_link", "merchant", "channel", "acquirer_merchant_id", "kind", "state", "reason_text", "money", "name",
        "other_account", "bic", "text", "mandate", "sequence", "due_on", "file_at", "final_at", "file", "batch",
        "gives_back", "recalled_for", "created_at",
    )  # fmt: skip
    readonly_fields = fields
    inlines = (BankOrderEventInline,)
    actions = tuple(_build_recall_action(reason) for reason in RECALL_REASONS)

    @admin.display(description=lazy("kind"))
    def kind_title(self, row: BankOrder) -> str:
        names = {
            BankFile.Kind.COLLECT: _("collection"),
            BankFile.Kind.REVERSE: _("reversal"),
            BankFile.Kind.CANCEL: _("cancellation request"),
            BankFile.Kind.RECALL: _("recall"),
        }
        return str(names.get(BankFile.Kind(row.kind), _("transfer")))

    @admin.display(description=lazy("amount"))
    def money(self, row: BankOrder) -> str:
        return format_money(row.amount, row.currency)

    @admin.display(description=lazy("account"))
    def other_account(self, row: BankOrder) -> str:
        return row.iban_shown

    @admin.display(description=lazy("reason"))
    def reason_text(self, row: BankOrder) -> str:
        if not row.reason:
            return ""
        if row.kind in REQUEST_KINDS and row.reason in REFUSED_CANCELLATIONS:
            return format_labelled(row.reason, _(REFUSED_CANCELLATIONS[row.reason]))
        return format_labelled(row.reason, _(find_bank_reason(row.reason).meaning))

    @admin.display(description=lazy("payment"))
    def payment_link(self, row: BankOrder) -> str:
        return _link_payment(row.payment) if row.kind != BankFile.Kind.RECALL else ""

    @admin.display(description=lazy("recalled because of"))
    def recalled_for(self, row: BankOrder) -> str:
        return str(_RECALL_TITLES.get(row.recall_reason, ""))

    def has_recall_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change", obj)

    def recall_transfers(self, request: HttpRequest, queryset: QuerySet[BankOrder], reason: str) -> None:
        """Recall each transfer that can be, with an audit entry, and say why not of the others."""
        done = 0
        for row in self.own(request, queryset, "change").order_by("pk"):
            try:
                with transaction.atomic():
                    recall = recall_transfer(row, reason)
                    self.record(request, "recall transfer", row, after={"recall": recall.pk.hex, "reason": reason})
            except RecallRefusedError as refusal:
                messages.error(
                    request, _("%(order)s: %(why)s.") % {"order": row.pk.hex, "why": _RECALL_REFUSALS[refusal.refusal]}
                )
            else:
                done += 1
        if done:
            messages.success(request, ngettext("%d transfer is recalled.", "%d transfers are recalled.", done) % done)

    @admin.display(description=lazy("gives back or cancels"))
    def gives_back(self, row: BankOrder) -> str:
        return _link_payment(row.original_payment) if row.original_payment is not None else ""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[BankOrder], search_term: str
    ) -> tuple[QuerySet[BankOrder], bool]:
        """Search by exact keys only: each of them has an index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        ident = identifiers.parse_id(term.replace("-", "").lower())
        named = Q(file__message_id=term)
        return queryset.filter(named | Q(pk=ident) if ident else named), False


@admin.register(BankFile)
class BankFileAdmin(ReadOnlyPage):
    """Files of bank orders: viewed, fetched and sent again."""

    nothing = lazy("Orders are gathered into files when their day comes; the first file comes with the first order.")
    list_display = (
        "stamped_at", "merchant", "kind", "message_id", "orders_count", "total_amount", "state", "bank_status",
        "delivered_at",
    )  # fmt: skip
    list_display_links = ("stamped_at", "message_id")
    list_select_related = ("merchant",)
    list_filter = ("state", "kind")
    search_fields = ("message_id",)
    search_help_text = lazy("A file's message id")
    ordering = ("-id",)
    fields = (
        "message_id", "merchant", "channel", "acquirer_merchant_id", "kind", "state", "failure", "tries",
        "orders_count", "total_amount", "size", "content_hash", "stamped_at", "delivered_at", "bank_status",
        "removed_at", "download",
    )  # fmt: skip
    readonly_fields = fields
    actions = ("send_again",)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.download_view)
        own = [path("<uuid:file>/download/", view, name="gateway_bankfile_download")]
        return own + super().get_urls()

    def has_send_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change", obj)

    @admin.action(description=lazy("Send files that were given up once more"), permissions=["send"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[BankFile]) -> HttpResponse | None:
        """Send files again, with an audit entry each."""
        if (ask := session.require_reauthentication(request)) is not None:
            return ask
        moved = 0
        for row in self.own(request, queryset, "change").filter(state=BankFile.State.FAILED):
            with transaction.atomic():
                if file_delivery.retry_bank_file(row):
                    self.record(request, "send again", row, before={"state": row.state, "failure": row.failure})
                    moved += 1
        messages.success(request, ngettext("%d file is tried again.", "%d files are tried again.", moved) % moved)
        return None

    @admin.display(description=lazy("total"), ordering="total")
    def total_amount(self, row: BankFile) -> str:
        return format_money(row.total, "EUR")

    @admin.display(description="SHA-256")
    def content_hash(self, row: BankFile) -> str:
        return format_html('<span class="break-all" style="overflow-wrap: anywhere">{}</span>', row.sha256)

    @admin.display(description=lazy("content"))
    def download(self, row: BankFile) -> str:
        address = reverse("admin:gateway_bankfile_download", args=[row.pk])
        return format_html('<a href="{}" class="text-primary-600">{}</a>', address, _("Download, with accounts masked"))

    def download_view(self, request: HttpRequest, file: Any) -> HttpResponse:
        row = self.get_object(request, str(file))
        if row is None or not self.may(request, "view", row):
            raise Http404
        orders = payment_files.list_file_orders(row)
        content = payment_files.render_payment_file(row, orders, lambda order: order.iban_shown)
        self.record(request, "export fetched", row, after={"file": row.name})
        answer = HttpResponse(content, content_type="application/xml")
        answer["Content-Disposition"] = f'attachment; filename="masked-{row.name}"'
        answer["Cache-Control"] = "no-store"
        return answer


@admin.register(BankMessage)
class BankMessageAdmin(InstallationPage):
    """Messages of banks; one may be about several merchants' orders."""

    changeable = False
    nothing = lazy("Statements and status reports stand here when a bank sends them, or one is read by command.")
    list_display = ("received_at", "kind", "message_id", "name", "source", "orders_changed", "finding_count")
    ordering = ("-received_at",)
    list_filter = ("kind",)
    fields = ("received_at", "kind", "message_id", "name", "source", "size", "sha256", "orders_changed", "findings")
    readonly_fields = fields
    actions = None

    @admin.display(description=lazy("findings"))
    def finding_count(self, row: BankMessage) -> int:
        return len(row.findings)
