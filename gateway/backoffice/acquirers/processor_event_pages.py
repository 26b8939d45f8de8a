"""Processor events, and those among them that need a person."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy, ngettext

from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.list_filters import build_period_filter
from gateway.models import ProcessorEvent
from gateway.processor_events import manual_actions


@admin.register(ProcessorEvent)
class ProcessorEventAdmin(ReadOnlyPage):
    """Processor events; flagged ones are applied again or settled."""

    merchant_path, channel_path = "account__channel__merchant", "account__channel"
    nothing = gettext_lazy(
        "What a processor tells by itself stands here, once an account has the address for it set up there."
    )
    list_display = ("created_at", "account", "kind", "object_id", "state", "why", "payment_link", "recorded_link")
    list_filter = (build_period_filter("created_at"), "state")
    list_select_related = ("account__channel__merchant",)
    ordering = ("-id",)
    search_fields = ("object_id", "event_id")
    search_help_text = gettext_lazy("The processor's id of an object or an event")
    fields = (
        "created_at",
        "account",
        "event_id",
        "kind",
        "object_id",
        "state",
        "why",
        "payment_link",
        "recorded_link",
        "attempts",
        "due_at",
        "done_at",
    )
    readonly_fields = ("payment_link", "recorded_link")
    actions = ("ask_again", "mark_settled")

    @admin.display(description=gettext_lazy("payment"))
    def payment_link(self, row: ProcessorEvent) -> str:
        return _link_payment_end(row.payment)

    @admin.display(description=gettext_lazy("recorded"))
    def recorded_link(self, row: ProcessorEvent) -> str:
        return _link_payment_end(row.recorded)

    def has_settle_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "change", obj)

    @admin.action(description=gettext_lazy("Ask the processor once more"), permissions=["settle"])
    def ask_again(self, request: HttpRequest, queryset: QuerySet[ProcessorEvent]) -> None:
        self._show_change_count(
            request, manual_actions.requeue_events(self.own(request, queryset, "change"), actor_from_request(request))
        )

    @admin.action(description=gettext_lazy("Settled in another way"), permissions=["settle"])
    def mark_settled(self, request: HttpRequest, queryset: QuerySet[ProcessorEvent]) -> None:
        self._show_change_count(
            request,
            manual_actions.mark_events_settled(self.own(request, queryset, "change"), actor_from_request(request)),
        )

    def _show_change_count(self, request: HttpRequest, moved: int) -> None:
        text = ngettext("%d flagged event was changed.", "%d flagged events were changed.", moved) % moved
        messages.success(request, text)


def _link_payment_end(payment: UUID | None) -> str:
    """A link to a payment; its text is the end of the id, which differs between neighbours."""
    if payment is None:
        return ""
    page = build_payment_page_url(payment)
    return format_html('<a href="{}" class="underline">…{}</a>', page, payment.hex[-8:])
