"""Capture batches and their captures: viewed, and sent before their scheduled time.

Source: docs/connectors/iso8583.md, captures by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Min, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.base import ReadOnlyPage
from gateway.backoffice.kit.formatting import format_labelled, format_money
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.sign_in import session
from gateway.connectors.iso8583 import batch_close, batch_planning, batch_run, batch_totals
from gateway.core import identifiers
from gateway.models import AcquirerAccount, BatchedCapture, CaptureBatch

MAX_SHOWN_CAPTURES: Final = 200
"""Captures on a batch's page, and accounts with waiting captures on the list."""
CHANNEL_NAMES: Final = ("channel__merchant__name", "channel__name")
"""A channel is named with its merchant: twenty merchants have a channel "main"."""
BatchState = CaptureBatch.State
_TONES: Final[Mapping[str, str]] = {BatchState.BALANCED: "good", BatchState.DIFFERS: "bad"}


VIEW_CAPTURE_BATCH_PERMISSION: Final = "gateway.view_capturebatch"
MAX_BATCHES_PER_ACCOUNT: Final = 3
"""Batches per account on the health page."""
MAX_BATCHES_READ: Final = 300


def list_latest_batches(channels: Iterable[UUID], scope: AccessScope) -> dict[tuple[UUID, str], list[dict[str, Any]]]:
    """(channel, merchant id at the acquirer) → its newest batches in ``scope``, for the health page."""
    if not scope:
        return {}
    found: dict[tuple[UUID, str], list[dict[str, Any]]] = {}
    rows = CaptureBatch.objects.filter(scope.where("merchant", "channel"), channel__in=set(channels))
    for row in rows.order_by("-id")[:MAX_BATCHES_READ]:
        mine = found.setdefault((row.channel_id, row.acquirer_merchant_id), [])
        if len(mine) < MAX_BATCHES_PER_ACCOUNT:
            mine.append(
                {
                    "row": row,
                    "tone": {BatchState.BALANCED: "good", BatchState.DIFFERS: "bad"}.get(BatchState(row.state), "warn"),
                    "state": row.get_state_display(),
                    "money": format_money(row.total, row.currency),
                    "why": row.failure,
                    "address": reverse("admin:gateway_capturebatch_change", args=[row.pk]),
                }
            )
    return found


@admin.register(CaptureBatch)
class CaptureBatchAdmin(ReadOnlyPage):
    """Capture batches: viewed, and sent before their scheduled time."""

    nothing = lazy(
        "Only accounts that present captures by batch have them; a batch opens with the first capture there."
    )
    list_display = (
        "opened_at",
        "merchant",
        "acquirer_merchant_id",
        "number",
        "captures_in_it",
        "money",
        "state_text",
        "last_answer",
    )
    list_display_links = ("opened_at", "number")
    list_select_related = ("merchant",)
    list_filter = ("state",)
    ordering = ("-id",)
    list_before_template = "admin/office/batches_before.html"
    actions = None

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "gateway_capturebatch_", self.admin_site.admin_view
        own = [
            path("send/", wrap(self.send_account_view), name=f"{name}send_account"),
            path("<uuid:batch>/send/", wrap(self.send_view), name=f"{name}send"),
        ]
        return own + super().get_urls()

    # --- the list -----------------------------------------------------------------------------------------------------

    @admin.display(description=lazy("captures"))
    def captures_in_it(self, row: CaptureBatch) -> int:
        return row.count

    @admin.display(description=lazy("amount"))
    def money(self, row: CaptureBatch) -> str:
        return format_money(row.total, row.currency)

    @admin.display(description=lazy("state"), ordering="state")
    def state_text(self, row: CaptureBatch) -> str:
        stopped = (
            _(", stopped") if row.due_at is None and row.state not in (BatchState.BALANCED, BatchState.DIFFERS) else ""
        )
        return f"{row.get_state_display()}{stopped}"

    @admin.display(description=lazy("answer"))
    def last_answer(self, row: CaptureBatch) -> str:
        return row.failure or (f"DE39 {row.answer['39']}" if "39" in row.answer else "")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        waiting = self._list_waiting_accounts(request) if self.has_view_permission(request) else []
        return super().changelist_view(request, {"waiting": waiting, **(extra_context or {})})

    def _list_waiting_accounts(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Accounts with captures that are in no batch yet."""
        rows = self.own(request, BatchedCapture.objects.filter(state=BatchedCapture.State.WAITING))
        found = rows.values("channel", *CHANNEL_NAMES, "acquirer_merchant_id", "currency").annotate(
            count=Count("payment"), total=Sum("amount"), first=Min("present_at")
        )
        accounts = self._find_sendable_accounts(request)
        return [
            {
                "account": one["acquirer_merchant_id"],
                "channel": ": ".join(one[name] for name in CHANNEL_NAMES),
                "count": one["count"],
                "money": format_money(one["total"], one["currency"]),
                "first": one["first"],
                "send": accounts.get((one["channel"], one["acquirer_merchant_id"])),
            }
            for one in found.order_by(*CHANNEL_NAMES, "acquirer_merchant_id", "currency")[:MAX_SHOWN_CAPTURES]
        ]

    def _find_sendable_accounts(self, request: HttpRequest) -> dict[tuple[UUID, str], UUID]:
        """(channel, merchant id at the acquirer) → the accounts whose captures this user may send."""
        rows = AcquirerAccount.objects.filter(connector="iso8583", channel__in=self._select_sendable_captures(request))
        return {(row.channel_id, row.acquirer_merchant_id): row.pk for row in rows}

    def _select_sendable_captures(self, request: HttpRequest) -> QuerySet[Any]:
        rows = self.own(request, BatchedCapture.objects.filter(state=BatchedCapture.State.WAITING), "change")
        return rows.values("channel")

    # --- the page -----------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row = self._find_batch(request, unquote(object_id))
        if request.method != "GET":
            raise PermissionDenied
        captures = BatchedCapture.objects.filter(batch=row).order_by("payment")[:MAX_SHOWN_CAPTURES]
        context = {
            **self.admin_site.each_context(request),
            "title": _("Batch %(number)s of %(account)s")
            % {
                "number": row.number,
                "account": row.acquirer_merchant_id,
            },
            "opts": self.opts,
            "batch": row,
            "tone": _TONES.get(row.state, "wait"),
            "state": self.state_text(row),
            "sums": _render_totals(row),
            "granted": _sum_accepted_captures(row),
            "on_line": batch_totals.format_batch_number(row.number),
            "captures": _render_captures(captures),
            "shown": MAX_SHOWN_CAPTURES,
            "all": f"{reverse('admin:gateway_batchedcapture_changelist')}?batch__id__exact={row.pk}",
            "may_send": row.state != BatchState.BALANCED and self.may(request, "change", row),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/office/batch.html", context)

    def send_view(self, request: HttpRequest, batch: Any) -> HttpResponse:
        row = self._find_batch(request, str(batch))
        if not self.may(request, "change", row):
            raise PermissionDenied
        back = redirect(reverse("admin:gateway_capturebatch_change", args=[row.pk]))
        if request.method != "POST":
            return back
        if (ask := session.require_reauthentication(request, back.url)) is not None:
            return ask
        with transaction.atomic():
            done = batch_run.retry_batch(row)
            if done:
                self.record(request, "send now", row, before={"state": row.state, "failure": row.failure})
        if done:
            messages.success(request, _("It goes on with the next tick; this page tells how it went."))
        else:
            messages.info(request, _("Nothing was done: it has ended, or is being sent at this moment."))
        return back

    def send_account_view(self, request: HttpRequest) -> HttpResponse:
        back = redirect(reverse("admin:gateway_capturebatch_changelist"))
        if not self.may(request, "change"):
            raise PermissionDenied
        if request.method != "POST":
            return back
        if (ask := session.require_reauthentication(request, back.url)) is not None:
            return ask
        ident = identifiers.parse_id(request.POST.get("account", "").replace("-", ""))
        rows = AcquirerAccount.objects.select_related("channel__merchant")
        reached = self.scope(request, "change").where("channel__merchant", "channel")
        account = rows.filter(reached, pk=ident).first() if ident is not None else None
        if account is None:
            raise Http404
        with transaction.atomic():
            moved = batch_planning.release_captures_now(account.channel, account.acquirer_merchant_id)
            if moved:
                self.record_of_account(request, account, moved)
        messages.success(request, _("Captures that go with the next tick: %d") % moved)
        return back

    def record_of_account(self, request: HttpRequest, account: AcquirerAccount, moved: int) -> None:
        """Write the audit entry of captures sent before there is a batch; its subject is the account."""
        page: Any = self.admin_site._registry[AcquirerAccount]
        page.record(request, "send captures now", account, after={"captures": moved})

    def _find_batch(self, request: HttpRequest, ident: str) -> CaptureBatch:
        row = self.get_object(request, ident)
        if not isinstance(row, CaptureBatch) or not self.may(request, "view", row):
            raise Http404
        return row


def _sum_accepted_captures(row: CaptureBatch) -> tuple[int, str]:
    """Number and sum of the captures that the host accepted."""
    if row.state == BatchState.BALANCED:
        return row.count, format_money(row.total, row.currency)
    sums = batch_close.sum_granted_captures(row)
    return sums.count, format_money(sums.total.amount, row.currency)


def _render_totals(row: CaptureBatch) -> list[dict[str, str]]:
    """The host's latest answer about totals."""
    names = {
        "39": _("response code"),
        "66": _("settlement code"),
        "76": _("captures"),
        "88": _("their sum, minor units"),
        "97": _("net sum, minor units"),
    }
    return [
        {"number": name, "words": words, "value": str(row.answer[name])}
        for name, words in names.items()
        if name in row.answer
    ]


def _render_captures(rows: Sequence[BatchedCapture] | QuerySet[BatchedCapture]) -> list[dict[str, Any]]:
    tones = {"TAKEN": "good", "REFUSED": "bad"}
    return [
        {
            "row": row,
            "address": build_payment_page_url(row.payment),
            "tone": tones.get(row.state, "wait"),
            "money": format_money(row.amount, row.currency),
            "words": row.get_state_display(),
        }
        for row in rows
    ]


@admin.register(BatchedCapture)
class BatchedCaptureAdmin(ReadOnlyPage):
    """Captures that are sent in batches, read-only."""

    sensitive = True
    nothing = lazy("A capture stands here when its account presents by batch; all others are sent at once.")
    list_display = ("created_at", "merchant", "acquirer_merchant_id", "money", "state", "code", "present_at", "batch")
    list_display_links = ("created_at",)
    list_select_related = ("merchant", "batch")
    list_filter = ("state",)
    linked_lookups = ("batch__id",)
    search_fields = ("payment",)
    search_help_text = lazy("A payment's id")
    ordering = ("-created_at", "payment")
    fields = (
        "payment_link", "merchant", "channel", "acquirer_merchant_id", "money", "state", "code", "batch_link", "sends",
        "uploaded", "reference", "host_fields", "present_at", "created_at", "applied",
    )  # fmt: skip
    readonly_fields = fields
    actions = None

    @admin.display(description=lazy("answer"))
    def host_fields(self, row: BatchedCapture) -> str:
        return "\n".join(format_labelled(name, str(value)) for name, value in row.answer.items())

    @admin.display(description=lazy("amount"))
    def money(self, row: BatchedCapture) -> str:
        return format_money(row.amount, row.currency)

    @admin.display(description=lazy("payment"))
    def payment_link(self, row: BatchedCapture) -> str:
        address = build_payment_page_url(row.payment)
        return format_html('<a href="{}" class="text-primary-600 break-all">{}</a>', address, row.payment.hex)

    @admin.display(description=lazy("batch"))
    def batch_link(self, row: BatchedCapture) -> str:
        if row.batch_id is None:
            return "–"
        address = reverse("admin:gateway_capturebatch_change", args=[row.batch_id])
        return format_html('<a href="{}" class="text-primary-600">{}</a>', address, row.batch)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[BatchedCapture], search_term: str
    ) -> tuple[QuerySet[BatchedCapture], bool]:
        """Search by the payment, which is the capture's key."""
        term = search_term.strip()
        if not term:
            return queryset, False
        ident = identifiers.parse_id(term.replace("-", "").lower())
        return (queryset.filter(pk=ident) if ident else queryset.none()), False
