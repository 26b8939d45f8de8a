"""Webhook health on the first page: what was delivered, failed and waits by hour, and which endpoints fail."""

from __future__ import annotations

from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.admin import home, webhook_figures
from gateway.admin.home import Figure, Panel, Source
from gateway.models import WebhookEndpoint
from gateway.rights import Scope

ENDPOINTS_AT_MOST: Final = 500
FAILING_AT_MOST: Final = 5


def draw(scope: Scope) -> Panel | None:
    panel: Panel | None = home.kept("webhooks", scope, lambda: _drawn(scope))
    return panel


def _drawn(scope: Scope) -> Panel | None:
    own = WebhookEndpoint.objects.filter(scope.where()).select_related("merchant").order_by("-id")
    rows = {row.pk: row for row in own[:ENDPOINTS_AT_MOST]}
    if not rows:
        return None
    last, waiting = webhook_figures.last_attempts(rows), sum(webhook_figures.waiting(rows).values())
    failing = [row for key, row in rows.items() if (one := last.get(key)) is not None and not one.is_good]
    deliveries = reverse("admin:gateway_webhookdelivery_changelist")
    return Panel(
        title=_("Webhooks"), link=deliveries, link_words=_("All deliveries"),
        figures=[
            Figure(name=_("waiting"), value=f"{waiting:,}", link=f"{deliveries}?state=waiting",
                   tone="warn" if waiting else ""),
            Figure(name=_("endpoints that fail"), value=str(len(failing)),
                   link=reverse("admin:gateway_webhookendpoint_changelist"), tone="bad" if failing else ""),
        ],
        chart=webhook_figures.by_hour(list(rows)),
        facts=[
            (f"{row.merchant.name}: {row}", last[row.pk].failure or _("answered %s") % last[row.pk].status,
             reverse("admin:gateway_webhookendpoint_change", args=[row.pk]))
            for row in failing[:FAILING_AT_MOST]
        ],
    )  # fmt: skip


SOURCE: Final = home.add(Source(name="webhooks", right="gateway.view_webhookendpoint", draw=draw))
