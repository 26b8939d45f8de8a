"""Webhook endpoints: created, changed, tested, paused, rotated and switched off by gateway.notifications.

A secret is shown on one page, once, after a recent authentication. Source: docs/back-office-webhooks.md,
docs/decisions/0029.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from gateway.backoffice.kit.base import MerchantPage, actor_from_request
from gateway.backoffice.kit.formatting import build_state_pill
from gateway.backoffice.kit.waiting_calls import tell_of_too_many_calls
from gateway.backoffice.sign_in import session
from gateway.backoffice.webhooks import inspector_views, webhook_figures
from gateway.backoffice.webhooks.delivery_pages import build_newest_deliveries
from gateway.backoffice.webhooks.webhook_forms import (
    EndpointForm,
    OfferedOwners,
    find_endpoints,
    list_endpoint_owners,
)
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import WebhookEndpoint
from gateway.models.webhooks import DEFAULT_WEBHOOK_KINDS, WEBHOOK_KINDS
from gateway.notifications import endpoints, signing
from gateway.notifications.endpoints import InvalidEndpointError
from gateway.timers import wakeup

ADD_ENDPOINT_PERMISSION: Final = "gateway.add_webhookendpoint"
CONFIRMED_ACTIONS: Final = frozenset({"rotate", "off"})
"""Actions for which the endpoint's name has to be typed."""


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(MerchantPage):
    """Webhook endpoints. The list and the pages are our own views; the base class gives the access scope."""

    has_views = False

    def get_urls(self) -> list[URLPattern]:
        name, wrap = "gateway_webhookendpoint_", self.admin_site.admin_view
        own = [
            path("inspector/", wrap(self.inspector_view), name=f"{name}inspector"),
            path("verify/", wrap(self.verify_view), name=f"{name}verify"),
            path("<uuid:endpoint>/edit/", wrap(self.edit_view), name=f"{name}edit"),
            path("<uuid:endpoint>/sample/", wrap(self.sample_view), name=f"{name}sample"),
            path("<uuid:endpoint>/inspect/", wrap(self.inspect_view), name=f"{name}inspect"),
            path("<uuid:endpoint>/inspect/new/", wrap(self.inspect_new_view), name=f"{name}inspect_new"),
            path("<uuid:endpoint>/do/<str:verb>/", wrap(self.do_view), name=f"{name}do"),
        ]
        return own + super().get_urls()

    # --- the list and the page -----------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        permitted, failing = self.get_queryset(request), request.GET.get("last") == "failed"
        if failing:  # of the endpoints that the first page counts, not of those that fit on this page
            newest = permitted.order_by("-id").values_list("pk", flat=True)[: webhook_figures.MAX_MEASURED_ENDPOINTS]
            permitted = permitted.filter(pk__in=list(webhook_figures.load_failed_attempts(newest)))
        found = find_endpoints(request, permitted)
        rows = found.rows
        keys = [row.pk for row in rows]
        last, waiting = webhook_figures.load_last_attempts(keys), webhook_figures.count_waiting_deliveries(keys)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Webhooks"),
            "opts": self.opts,
            "rows": [
                {
                    "row": row,
                    "pill": build_state_pill(pill_state_from_endpoint(row)),
                    "last": last.get(row.pk),
                    "waiting": waiting.get(row.pk, 0),
                    "name": format_endpoint_name(row),
                    "address": reverse("admin:gateway_webhookendpoint_change", args=[row.pk]),
                }
                for row in rows
            ],
            "may_add": self.has_add_permission(request),
            "test": not settings.IS_LIVE,
            "chart": webhook_figures.chart_attempts_by_hour(keys) if rows else "",
            "found": found,
            "failing": failing,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/office/endpoints.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row = self._find_endpoint(request, object_id)
        if request.method != "GET":
            raise PermissionDenied
        last = webhook_figures.load_last_attempts([row.pk]).get(row.pk)
        returns = row.mode == WebhookEndpoint.Mode.RETURN
        state = WebhookEndpoint.State
        context = {
            **self.admin_site.each_context(request),
            "title": format_endpoint_name(row),
            "opts": self.opts,
            "original": row,
            "endpoint": row,
            "pill": build_state_pill(pill_state_from_endpoint(row)),
            "last": last,
            "returns": returns,
            "waiting": webhook_figures.count_waiting_deliveries([row.pk])[row.pk],
            "kinds": WEBHOOK_KINDS if not settings.IS_LIVE else (),
            "chart": webhook_figures.chart_attempts_by_hour([row.pk], row),
            "deliveries": build_newest_deliveries(row),
            "may_change": not returns and self.may(request, "change", row),
            "overlap": row.previous_until if row.previous_until and row.previous_until > clock.real_now() else None,
            "working": row.state in (state.ACTIVE, state.PAUSED),
            "held": row.is_held,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/office/endpoint.html", context)

    # --- making and changing -------------------------------------------------------------------------------------

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """The form, and after it the one page that shows the secret."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if (ask := session.require_reauthentication(request)) is not None:
            return ask
        offered = list_endpoint_owners(request, ADD_ENDPOINT_PERMISSION)
        form = EndpointForm(request.POST or None, offered=offered.rows, initial={"kinds": list(DEFAULT_WEBHOOK_KINDS)})
        if request.method == "POST" and form.is_valid():
            chosen, owner = form.cleaned_data, form.owner
            try:
                row, secret = endpoints.create_endpoint(
                    owner.merchant,
                    chosen["url"],
                    by=actor_from_request(request),
                    channel=owner.channel,
                    mode=chosen["mode"],
                    wrapper=chosen["wrapper"],
                    kinds=chosen["kinds"],
                    secret=chosen["secret"],
                )
                shown: HttpResponse = self._render_secret_once(request, row, secret, own=chosen["secret"] is not None)
                return shown
            except InvalidEndpointError as fault:
                form.add_error(None, str(fault))
        return self._render_form(request, form, _("New webhook endpoint"), owners=offered)

    def edit_view(self, request: HttpRequest, endpoint: Any) -> HttpResponse:
        row = self._find_endpoint(request, endpoint, "change")
        if row.mode == WebhookEndpoint.Mode.RETURN or row.is_inspector:
            raise Http404
        if (ask := session.require_reauthentication(request)) is not None:
            return ask
        initial = {"url": row.url, "kinds": row.kinds, "mode": row.mode, "wrapper": row.wrapper}
        form = EndpointForm(request.POST or None, initial=initial)
        if request.method == "POST" and form.is_valid():
            chosen = {name: form.cleaned_data[name] for name in initial}
            if endpoints.update_endpoint(row, by=actor_from_request(request), **chosen):
                messages.success(request, _("Changed."))
                if row.is_held:
                    self._activate(request, row)
            return redirect(reverse("admin:gateway_webhookendpoint_change", args=[row.pk]))
        return self._render_form(request, form, _("Change this endpoint"), row)

    def _render_form(
        self,
        request: HttpRequest,
        form: EndpointForm,
        title: str,
        row: WebhookEndpoint | None = None,
        *,
        owners: OfferedOwners | None = None,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": title,
            "opts": self.opts,
            "form": form,
            "original": row,
            "endpoint": row,
            "owners": owners,
            "test": not settings.IS_LIVE,
        }
        return TemplateResponse(request, "admin/office/endpoint_form.html", context)

    def _render_secret_once(
        self, request: HttpRequest, row: WebhookEndpoint, secret: Secret, *, own: bool = False
    ) -> Any:
        context = {
            **self.admin_site.each_context(request),
            "title": _("Secret of the endpoint"),
            "opts": self.opts,
            "endpoint": row,
            "name": format_endpoint_name(row),
            "own": own,
            "secret": "" if own else secret.reveal(),
            "standard": "" if own else signing.format_standard_secret(secret).reveal(),
            "back": reverse("admin:gateway_webhookendpoint_change", args=[row.pk]),
        }
        answer = TemplateResponse(request, "admin/office/secret_once.html", context)
        answer["Cache-Control"] = "no-store"
        return answer

    # --- the buttons ---------------------------------------------------------------------------------------------

    def do_view(self, request: HttpRequest, endpoint: Any, verb: str) -> HttpResponse:
        row = self._find_endpoint(request, endpoint, "change")
        acts = {
            "activate": self._activate,
            "pause": self._pause,
            "resume": self._resume,
            "rotate": self._rotate,
            "off": self._off,
        }
        if verb not in acts or row.mode == WebhookEndpoint.Mode.RETURN:
            raise Http404
        back = reverse("admin:gateway_webhookendpoint_change", args=[row.pk])
        if verb == "rotate" and (ask := session.require_reauthentication(request)) is not None:
            return ask
        if verb in CONFIRMED_ACTIONS and request.POST.get("confirm", "").strip().lower() != verb:
            return self._render_confirmation(request, row, verb)
        if request.method != "POST":
            return redirect(back)
        return acts[verb](request, row) or redirect(back)

    def _render_confirmation(self, request: HttpRequest, row: WebhookEndpoint, verb: str) -> HttpResponse:
        titles = {"rotate": _("Rotate the secret"), "off": _("Switch the endpoint off")}
        context = {
            **self.admin_site.each_context(request),
            "title": titles[verb],
            "opts": self.opts,
            "original": row,
            "endpoint": row,
            "name": format_endpoint_name(row),
            "word": verb,
            "wrong": "confirm" in request.POST,
            "waiting": webhook_figures.count_waiting_deliveries([row.pk])[row.pk],
            "back": reverse("admin:gateway_webhookendpoint_change", args=[row.pk]),
        }
        return TemplateResponse(request, "admin/office/endpoint_confirm.html", context)

    def _activate(self, request: HttpRequest, row: WebhookEndpoint) -> None:
        with tell_of_too_many_calls(request):
            done = endpoints.activate_endpoint(row, by=actor_from_request(request))
            if done.active:
                wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
                messages.success(request, _("Active: it %s.") % done.words)
            else:
                messages.error(request, _("Not activated. The test message was not accepted: %s.") % done.words)

    def _pause(self, request: HttpRequest, row: WebhookEndpoint) -> None:
        if endpoints.pause_endpoint(row, by=actor_from_request(request)):
            messages.success(request, _("Paused. What happens now waits, thirty days at most."))
        else:
            messages.info(request, _("It was not working, or paused already."))

    def _resume(self, request: HttpRequest, row: WebhookEndpoint) -> None:
        if endpoints.resume_endpoint(row, by=actor_from_request(request)):
            wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
            messages.success(request, _("Resumed. What waited goes out now."))
        elif WebhookEndpoint.objects.get(pk=row.pk).untested:
            messages.error(request, _("Its address or form is new: activate it with a test message."))
        else:
            messages.info(request, _("It was not paused."))

    def _rotate(self, request: HttpRequest, row: WebhookEndpoint) -> HttpResponse:
        overlap = timedelta(0) if request.POST.get("at_once") else endpoints.SECRET_OVERLAP
        secret = endpoints.rotate_secret(row, by=actor_from_request(request), overlap=overlap)
        shown: HttpResponse = self._render_secret_once(request, row, secret)
        return shown

    def _off(self, request: HttpRequest, row: WebhookEndpoint) -> None:
        endpoints.deactivate_endpoint(row, by=actor_from_request(request))
        messages.success(request, _("Switched off. What waited is cancelled and can be replayed once it is active."))

    # --- the inspector -------------------------------------------------------------------------------------------

    def inspector_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        return inspector_views.open_inspector_view(
            self, request, list_endpoint_owners(request, ADD_ENDPOINT_PERMISSION)
        )

    def inspect_view(self, request: HttpRequest, endpoint: Any) -> HttpResponse:
        return inspector_views.show_inspector(self, request, self._find_endpoint(request, endpoint))

    def inspect_new_view(self, request: HttpRequest, endpoint: Any) -> HttpResponse:
        return inspector_views.show_newer_messages(request, self._find_endpoint(request, endpoint))

    def sample_view(self, request: HttpRequest, endpoint: Any) -> HttpResponse:
        return inspector_views.send_sample(request, self._find_endpoint(request, endpoint, "change"))

    def verify_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        permitted = self.get_queryset(request).exclude(mode=WebhookEndpoint.Mode.RETURN)
        return inspector_views.verify_webhook_body(self, request, permitted)

    def _find_endpoint(self, request: HttpRequest, ident: object, verb: str = "view") -> WebhookEndpoint:
        """An endpoint in the user's scope; 404 outside it."""
        row: WebhookEndpoint = self.find_row(request, ident, "merchant", "channel")
        if not self.may(request, verb, row):
            raise PermissionDenied
        return row


def pill_state_from_endpoint(row: WebhookEndpoint) -> str:
    """The endpoint's state for its pill; a pause by hand differs from one after failures."""
    return "held" if row.is_held else str(row.state)


def format_endpoint_name(row: WebhookEndpoint) -> str:
    """What an endpoint is called in lists."""
    if row.is_inspector:
        return _("Inspector (%s)") % _(row.mode)
    return row.url or _("notificationUrl of payments")


__all__ = ["WebhookEndpointAdmin", "format_endpoint_name", "pill_state_from_endpoint"]
