"""Webhook deliveries: filtered, viewed with every attempt, replayed singly or in bulk.

A bulk replay counts first, then runs as background work. Source: docs/decisions/0029.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from gateway.access import audit_log, permissions
from gateway.backoffice.kit.base import ReadOnlyPage, actor_from_request
from gateway.backoffice.kit.formatting import build_state_pill, name_zone
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.list_columns import read_list_look, render_list_table
from gateway.backoffice.kit.periods import PERIODS, render_filter_end
from gateway.backoffice.kit.time_limit import SearchTooBroadError, limit_search_time
from gateway.backoffice.kit.work_start import start_page_work
from gateway.backoffice.webhooks.delivery_columns import (
    DELIVERY_COLUMNS,
    ENDPOINT_DELIVERY_COLUMNS,
    USUAL_DELIVERY_COLUMNS,
)
from gateway.backoffice.webhooks.delivery_filters import (
    DELIVERY_FILTER_NAMES,
    DeliveryFilters,
    fix_delivery_times,
    parse_delivery_filters,
)
from gateway.backoffice.webhooks.inspector_views import format_webhook_body
from gateway.core import clock, identifiers
from gateway.core.masking import mask_text
from gateway.models import WebhookAttempt, WebhookDelivery, WebhookEndpoint
from gateway.models.webhooks import WEBHOOK_KINDS
from gateway.notifications import bulk_replay, replay
from gateway.notifications.payload_format import TEST_TYPE
from gateway.notifications.replay import ReplaySelection
from gateway.timers import wakeup

DELIVERY_PAGE_ROWS: Final = 50
MAX_NEWEST_DELIVERIES: Final = 10
MAX_LISTED_ENDPOINTS: Final = 500
"""Endpoints whose deliveries one list shows."""


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyPage):
    lists_from_standby = True
    channel_path = "endpoint__channel"
    columns = DELIVERY_COLUMNS
    usual_columns = USUAL_DELIVERY_COLUMNS

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "gateway_webhookdelivery_", self.admin_site.admin_view
        own = [
            path("replay/", wrap(self.replay_many_view), name=f"{name}replay_many"),
            path("<uuid:delivery>/replay/", wrap(self.replay_view), name=f"{name}replay"),
        ]
        return own + super().get_urls()

    # --- the list ------------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        asked, mine = parse_delivery_filters(request.GET), self._find_endpoints(request, "view")
        rows: list[WebhookDelivery] = []
        after, too_much = identifiers.parse_id(request.GET.get("after", "")), False
        if not asked.wrong and mine:
            found = WebhookDelivery.objects.filter(endpoint__in=mine).filter(**asked.conditions())
            found = found.filter(pk__lt=after) if after is not None else found
            try:
                with limit_search_time():
                    rows = list(found.order_by("-pk")[: DELIVERY_PAGE_ROWS + 1])
            except SearchTooBroadError:
                too_much = True
        kept = [(name, request.GET[name]) for name in DELIVERY_FILTER_NAMES if request.GET.get(name)]
        shown = read_list_look(request.GET)
        last = rows[DELIVERY_PAGE_ROWS - 1].pk.hex if len(rows) > DELIVERY_PAGE_ROWS else ""
        more = urlencode([*kept, *shown, ("after", last)]) if last else ""
        context = {
            **self.admin_site.each_context(request),
            "title": _("Webhook deliveries"),
            "opts": self.opts,
            "rows": rows,
            "next": f"?{more}" if more else "",
            "paged": after is not None,
            "kept": kept,
            "shown": shown,
            "first": f"?{urlencode([*kept, *shown])}",
            "wrong": asked.wrong,
            "too_much": too_much,
            "filters": self._render_filters(request, mine, asked),
            "may_replay": bool(permissions.find_access_scope(request.user, bulk_replay.REPLAY_PERMISSION)),
            **self.build_own_list(request, render_deliveries(rows[:DELIVERY_PAGE_ROWS], mine)),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/office/deliveries.html", context)

    def _find_endpoints(self, request: HttpRequest, verb: str) -> dict[UUID, WebhookEndpoint]:
        """Endpoints whose deliveries the user may ``verb``."""
        where = self.scope(request, verb).where("merchant", "channel")
        found = WebhookEndpoint.objects.filter(where).select_related("merchant").order_by("merchant__name", "url")
        return {row.pk: row for row in found[:MAX_LISTED_ENDPOINTS]} if self.scope(request, verb) else {}

    def _render_filters(
        self, request: HttpRequest, mine: dict[UUID, WebhookEndpoint], asked: DeliveryFilters
    ) -> list[dict[str, Any]]:
        endpoints = [(key.hex, f"{row.merchant.name}: {describe_delivery_target(row)}") for key, row in mine.items()]
        states = [(value, str(build_state_pill(value)["text"])) for value in WebhookDelivery.State.values]
        sent = request.GET
        found: tuple[tuple[str, str, str | list[tuple[str, str]], str], ...] = (
            ("period", _("Period"), [(value, _(words)) for value, words in PERIODS.items()], sent.get("period", "")),
            ("from", _("From (%s)") % name_zone(), "datetime-local", render_filter_end("from", sent.get("from", ""))),
            ("to", _("To"), "datetime-local", render_filter_end("to", sent.get("to", ""))),
            ("state", _("State"), states, sent.get("state", "")),
            ("kind", _("Event"), [(kind, kind) for kind in (*WEBHOOK_KINDS, TEST_TYPE)], sent.get("kind", "")),
            ("endpoint", _("Endpoint"), endpoints, sent.get("endpoint", "").replace("-", "")),
            ("payment", _("Payment id"), "text", sent.get("payment", "")),
        )
        return [
            {
                "name": name,
                "label": label,
                "kind": kind if isinstance(kind, str) else "",
                "choices": None if isinstance(kind, str) else kind,
                "value": value,
                "wrong": asked.wrong.get(name, ""),
            }
            for name, label, kind, value in found
        ]

    # --- the page ------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row: WebhookDelivery = self.find_row(request, object_id, "endpoint", "merchant")
        if request.method != "GET":
            raise PermissionDenied
        self.record(request, "view", row)
        attempts = list(WebhookAttempt.objects.filter(delivery=row.pk).order_by("id")[:DELIVERY_PAGE_ROWS])
        context = {
            **self.admin_site.each_context(request),
            "title": f"{row.kind} {row.action}",
            "opts": self.opts,
            "original": row,
            "delivery": row,
            "pill": build_state_pill(row.state),
            "target": mask_text(row.url) if row.url else describe_delivery_target(row.endpoint),
            "endpoint": row.endpoint,
            "attempts": attempts,
            "text": format_webhook_body(row.body),
            "waits": row.state == WebhookDelivery.State.WAITING,
            "held": row.endpoint.is_held,
            "endpoint_address": reverse("admin:gateway_webhookendpoint_change", args=[row.endpoint_id])
            if permissions.has_permission(request.user, "gateway.view_webhookendpoint", row.endpoint)
            else "",
            "payment_address": build_payment_page_url(row.payment) if row.payment else "",
            "may_replay": row.kind != TEST_TYPE and self.may(request, "change", row),
            "takes": row.endpoint.state in (WebhookEndpoint.State.ACTIVE, WebhookEndpoint.State.PAUSED),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/office/delivery.html", context)

    def replay_view(self, request: HttpRequest, delivery: Any) -> HttpResponse:
        row: WebhookDelivery = self.find_row(request, delivery, "endpoint", "merchant")
        if row.kind == TEST_TYPE or not self.may(request, "change", row):
            raise PermissionDenied
        back = redirect(reverse("admin:gateway_webhookdelivery_change", args=[row.pk]))
        if request.method != "POST":
            return back
        selection = ReplaySelection(merchant=row.merchant, delivery=row.pk, states=WebhookDelivery.State.values)
        with transaction.atomic():
            done, _after = replay.replay_next_batch(selection)
            if done:
                audit_log.record_audit_entry(
                    actor_from_request(request), "replay", row, before={"state": row.state, "attempts": row.attempts}
                )
        if done:
            wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
            messages.success(request, _("It is due again and goes out within a second; this page tells how it went."))
        else:
            messages.info(request, _("Nothing was done: it is on its way already, or its endpoint is off."))
        return back

    # --- many ----------------------------------------------------------------------------------------------------

    def replay_many_view(self, request: HttpRequest) -> HttpResponse:
        """Show what a bulk replay would send; with ``confirm`` it is started."""
        if not permissions.find_access_scope(request.user, bulk_replay.REPLAY_PERMISSION):
            raise PermissionDenied
        back = redirect(reverse("admin:gateway_webhookdelivery_changelist"))
        if request.method != "POST":
            return back
        asked = parse_delivery_filters(request.POST)
        selection = None if asked.wrong else self._build_selection(request, asked)
        if selection is None:
            messages.error(request, _("Choose one endpoint, or one merchant's events: a replay is one merchant's."))
            return back
        told = replay.preview_replay(selection)
        # What is shown is counted until now: what arrives meanwhile is not sent with it.
        counted = selection.until or clock.merchant_now(selection.merchant)
        until = asked.until or counted.replace(microsecond=0) + timedelta(seconds=1)
        sent = fix_delivery_times(request.POST, replace(asked, until=until))
        kept = [(name, text) for name, text in sent if name != "state"]
        if request.POST.get("confirm") and told.events:
            words = ngettext(
                "Replay of %(events)d webhook of %(merchant)s",
                "Replay of %(events)d webhooks of %(merchant)s",
                told.events,
            )
            title = words % {
                "events": told.events,
                "merchant": selection.merchant.name,
            }
            where = f"{reverse('admin:gateway_webhookdelivery_changelist')}?{urlencode(kept)}"
            parameters = {"selection": bulk_replay.serialize_selection(selection), "list": where}
            return start_page_work(request, bulk_replay.REPLAY_JOB_KIND, title, parameters)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Send webhooks once more"),
            "opts": self.opts,
            "told": told,
            "merchant": selection.merchant,
            "states": [build_state_pill(one)["text"] for one in selection.states],
            "kept": sent,
            "back": f"{reverse('admin:gateway_webhookdelivery_changelist')}?{urlencode(kept)}",
        }
        return TemplateResponse(request, "admin/office/replay.html", context)

    def _build_selection(self, request: HttpRequest, asked: DeliveryFilters) -> ReplaySelection | None:
        """The one merchant's deliveries that the filters select; None if they name no merchant or several."""
        where = permissions.find_access_scope(request.user, bulk_replay.REPLAY_PERMISSION).where("merchant", "channel")
        mine = {row.pk: row for row in WebhookEndpoint.objects.filter(where).select_related("merchant")}
        chosen = mine.get(asked.endpoint) if asked.endpoint is not None else None
        merchants = {row.merchant_id: row.merchant for row in mine.values()}
        if (asked.endpoint is not None and chosen is None) or asked.kind == TEST_TYPE:
            return None
        if chosen is None and asked.payment is not None:
            # A payment belongs to one merchant, so it selects one.
            found = WebhookDelivery.objects.filter(payment=asked.payment, endpoint__in=mine).values_list("merchant")
            merchants = {key: merchants[key] for (key,) in found}
        merchant = chosen.merchant if chosen is not None else next(iter(merchants.values()), None)
        if merchant is None or (chosen is None and len(merchants) > 1):
            return None
        among = [key for key, row in mine.items() if row.merchant_id == merchant.pk]
        return ReplaySelection(
            merchant=merchant,
            endpoint=chosen,
            among=among,
            payment=asked.payment,
            kinds=[asked.kind] if asked.kind else [],
            since=asked.since,
            states=[asked.state] if asked.state else replay.ENDED_DELIVERY_STATES,
            until=asked.until - timedelta(microseconds=1) if asked.until else clock.merchant_now(merchant),
        )


# --- what lists are given -----------------------------------------------------------------------------------------


def render_deliveries(rows: Sequence[WebhookDelivery], endpoints: dict[UUID, WebhookEndpoint]) -> list[dict[str, Any]]:
    """Deliveries for the template, each with its last attempt."""
    last: dict[UUID, WebhookAttempt] = {}
    for attempt in WebhookAttempt.objects.filter(delivery__in=[row.pk for row in rows]).order_by("id"):
        last[attempt.delivery_id] = attempt
    return [
        {
            "row": row,
            "pill": build_state_pill(row.state),
            "last": last.get(row.pk),
            "good": (one := last.get(row.pk)) is not None and one.status is not None and 200 <= one.status < 300,
            "waits": row.state == WebhookDelivery.State.WAITING,
            "endpoint": endpoints.get(row.endpoint_id),
            "target": mask_text(row.url) if row.url else describe_delivery_target(endpoints.get(row.endpoint_id)),
            "address": reverse("admin:gateway_webhookdelivery_change", args=[row.pk]),
            "payment": build_payment_page_url(row.payment) if row.payment else "",
        }
        for row in rows
    ]


def build_newest_deliveries(endpoint: WebhookEndpoint) -> dict[str, Any] | None:
    """The table of the newest deliveries of one endpoint; None if there are none, or the query times out."""
    try:
        with limit_search_time():
            rows = list(WebhookDelivery.objects.filter(endpoint=endpoint).order_by("-pk")[:MAX_NEWEST_DELIVERIES])
    except SearchTooBroadError:
        return None
    rendered, names = render_deliveries(rows, {endpoint.pk: endpoint}), ENDPOINT_DELIVERY_COLUMNS
    return render_list_table(rendered, DELIVERY_COLUMNS, names, names) if rows else None


def describe_delivery_target(endpoint: WebhookEndpoint | None) -> str:
    """The target of a delivery, for a list."""
    if endpoint is None:
        return "–"
    return _("Inspector") if endpoint.is_inspector else str(endpoint)
