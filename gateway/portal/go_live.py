"""The checklist of /docs/go-live that checks itself: what a channel has tried here, for who may see its requests.

Each step looks at the newest rows of the channel, a few indexed statements together. In live the steps are others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from gateway.access import permissions
from gateway.core import clock, identifiers
from gateway.models import (
    AccessToken,
    AcquirerAccount,
    Authentication,
    Channel,
    IdempotencyKey,
    Payment,
    RequestLog,
    Status,
    WebhookDelivery,
    WebhookEndpoint,
)
from gateway.models.webhooks import INSPECTOR_URL_PREFIX
from gateway.portal.sample_runs import MAX_READER_CHANNELS

CHECKLIST_PERMISSION: Final = "gateway.view_requestlog"
MAX_LOOKED_AT: Final = 1_000
"""Newest payments and requests of the channel that the steps look at."""
FAULTLESS_PERIOD: Final = timedelta(days=1)
TOKEN_WARNING: Final = timedelta(days=14)


@dataclass(slots=True)
class ChannelPast:
    """What a channel has done lately. ``payments``: (paymentType, status) of the newest payments."""

    channel: Channel
    payments: set[tuple[str, str]] = field(default_factory=set)
    form_paid: bool = False
    faults: int = 0

    @classmethod
    def read(cls, channel: Channel) -> ChannelPast:
        newest = Payment.objects.filter(channel=channel).order_by("-created_at")[:MAX_LOOKED_AT]
        since = clock.real_now() - FAULTLESS_PERIOD
        requests = RequestLog.objects.filter(entity_id=channel.pk)
        wrong = requests.filter(pk__gte=identifiers.first_id_at(since), result_code="200.300.404")[:MAX_LOOKED_AT]
        paths = requests.order_by("-pk").values_list("path", "status")[:MAX_LOOKED_AT]
        return cls(
            channel=channel,
            payments=set(newest.values_list("payment_type", "status")),
            form_paid=any(path.startswith("/v1/checkouts/") and status == 200 for path, status in paths),
            faults=wrong.count(),
        )

    def has(self, status: str, *types: str) -> bool:
        return any((one, status) in self.payments for one in types)

    def endpoints(self) -> list[WebhookEndpoint]:
        """The merchant's own active endpoints that take this channel's events."""
        mine = Q(channel=self.channel) | Q(channel=None)
        rows = WebhookEndpoint.objects.filter(mine, merchant=self.channel.merchant_id, state="active")
        return list(rows.exclude(url__startswith=INSPECTOR_URL_PREFIX)[:50])

    def tokens(self) -> list[AccessToken]:
        """Tokens that may pay with this channel now."""
        now = clock.real_now()
        rows = AccessToken.objects.filter(
            Q(channel=self.channel) | Q(channel=None), merchant=self.channel.merchant_id, scopes__contains=["payments"]
        )
        usable = rows.filter(approved_at__isnull=False, revoked_at__isnull=True)
        return list(usable.filter(Q(ends_at=None) | Q(ends_at__gt=now))[:50])


@dataclass(frozen=True, slots=True, kw_only=True)
class GoLiveStep:
    """One step: its title, where it is explained, and the question whether it is done. ``missing``: what to do."""

    title: str
    missing: str
    address: str
    is_done: Callable[[ChannelPast], bool]
    live: bool | None = None
    """Only in live, only in the test environment; None: in both."""


def _has_delivered(past: ChannelPast) -> bool:
    ids = [one.pk for one in past.endpoints()]
    delivered = WebhookDelivery.objects.filter(endpoint__in=ids, state="delivered", notification__isnull=False)
    return delivered.order_by().exists()


def _has_challenge(past: ChannelPast) -> bool:
    if not past.channel.three_d_secure:
        return True
    rows = Authentication.objects.filter(merchant=past.channel.merchant_id, channel=past.channel)
    return rows.filter(flow__startswith="challenge", completed_at__isnull=False).exists()


def _has_keys(past: ChannelPast) -> bool:
    tokens = [one.pk for one in past.tokens()]
    return IdempotencyKey.objects.filter(token__in=tokens).exists()


def _have_tokens_time(past: ChannelPast) -> bool:
    soon = clock.real_now() + TOKEN_WARNING
    found = past.tokens()
    return bool(found) and all(one.ends_at is None or one.ends_at > soon for one in found)


GO_LIVE_STEPS: Final = (
    GoLiveStep(
        title="An access token that may pay",
        missing="Issue one in the back office. It is shown once: keep it where your server reads its secrets.",
        address="/docs/authentication",
        is_done=lambda past: bool(past.tokens()),
    ),
    GoLiveStep(
        title="No token ends within 14 days",
        missing="Rotate the one that ends soon: both work for seven days.",
        address="/docs/authentication",
        is_done=_have_tokens_time,
    ),
    GoLiveStep(
        title="An approved payment",
        missing="Make one.",
        address="/docs/quick-start#pay",
        is_done=lambda past: past.has(Status.APPROVED, "DB", "PA", "CD"),
    ),
    GoLiveStep(
        title="A declined payment",
        missing="Pay with a card that is declined, and look at what your shopper sees.",
        address="/docs/quick-start#decline",
        is_done=lambda past: past.has(Status.DECLINED, "DB", "PA", "CD"),
        live=False,
    ),
    GoLiveStep(
        title="A refund or a reversal",
        missing="Give some of it back: your staff will have to.",
        address="/docs/follow-ups",
        is_done=lambda past: past.has(Status.APPROVED, "RF", "RV"),
    ),
    GoLiveStep(
        title="A payment by the form",
        missing="Create a checkout and pay in the form, unless your shop sends card data itself.",
        address="/docs/widget",
        is_done=lambda past: past.form_paid,
    ),
    GoLiveStep(
        title="A challenge of 3-D Secure to its end",
        missing="This channel authenticates shoppers: pay with a card that is challenged.",
        address="/docs/three-d-secure",
        is_done=_has_challenge,
        live=False,
    ),
    GoLiveStep(
        title="An active webhook endpoint of your own",
        missing="The built-in inspector is no server: make an endpoint and activate it.",
        address="/docs/webhooks#endpoint",
        is_done=lambda past: bool(past.endpoints()),
    ),
    GoLiveStep(
        title="A webhook that your server took with 2xx",
        missing="Make a payment, and see its delivery in the back office.",
        address="/docs/webhooks#verify",
        is_done=_has_delivered,
    ),
    GoLiveStep(
        title="Endpoints over https",
        missing="An endpoint has an http address: in live it has to be https.",
        address="/docs/webhooks#endpoint",
        is_done=lambda past: all(one.url.startswith("https://") for one in past.endpoints()),
    ),
    GoLiveStep(
        title="Payments are sent with an Idempotency-Key",
        missing="Within the last 24 hours none had one: a repeated request would pay twice. The packages send it.",
        address="/docs/idempotency",
        is_done=_has_keys,
    ),
    GoLiveStep(
        title="No request with a fault within 24 hours",
        missing="Requests were refused with 200.300.404: the request log names the parameters.",
        address="/docs/errors",
        is_done=lambda past: past.faults == 0,
    ),
    GoLiveStep(
        title="An acquirer account",
        missing="Without one payments are refused with 600.200.700: ask who runs this gateway.",
        address="/docs/routing",
        is_done=lambda past: AcquirerAccount.objects.filter(channel=past.channel, active=True).exists(),
        live=True,
    ),
)


@require_safe
@never_cache
def go_live_view(request: HttpRequest) -> HttpResponse:
    """GET /admin/docs/go-live?entityId=: the checklist of a channel as a fragment, for the page of the docs."""
    if not admin.site.has_permission(request):
        return redirect_to_login(request.path, "/admin/login/")
    allowed = permissions.list_permitted_channels(request.user, CHECKLIST_PERMISSION)
    rows = allowed.filter(active=True).select_related("merchant").order_by("created_at", "id")
    reached = list(rows[:MAX_READER_CHANNELS])
    wanted = identifiers.parse_id(request.GET.get("entityId", ""))
    channel = next((one for one in reached if one.pk == wanted), reached[0] if reached else None)
    steps = []
    if channel is not None:
        past = ChannelPast.read(channel)
        steps = [(one, one.is_done(past)) for one in GO_LIVE_STEPS if one.live in (None, settings.IS_LIVE)]
    context = {
        "channels": reached,
        "channel": channel,
        "steps": steps,
        "done": sum(done for _, done in steps),
        "live": settings.IS_LIVE,
    }
    return render(request, "docs/checklist.html", context)
