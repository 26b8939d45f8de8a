"""The dashboard's webhook panel: delivered, failed and waiting by hour, and endpoints that fail."""

from __future__ import annotations

from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.formatting import format_number
from gateway.backoffice.operations import dashboard
from gateway.backoffice.operations.dashboard import Figure, Panel
from gateway.backoffice.webhooks import webhook_figures
from gateway.models import WebhookEndpoint

MAX_FAILING_ENDPOINTS: Final = 5


def build_webhook_panel(scope: AccessScope) -> Panel | None:
    """The panel of webhooks; None without endpoints."""
    own = WebhookEndpoint.objects.filter(scope.where()).select_related("merchant").order_by("-id")
    rows = {row.pk: row for row in own[: webhook_figures.MAX_MEASURED_ENDPOINTS]}
    if not rows:
        return None
    waiting = sum(webhook_figures.count_waiting_deliveries(rows).values())
    failures = webhook_figures.load_failed_attempts(rows)
    failing = [row for key, row in rows.items() if key in failures]
    deliveries = reverse("admin:gateway_webhookdelivery_changelist")
    return Panel(
        title=_("Webhooks"),
        link=deliveries,
        link_words=_("All deliveries"),
        figures=[
            Figure(
                name=_("waiting"),
                value=format_number(waiting),
                link=f"{deliveries}?state=waiting",
                tone="warn" if waiting else "",
            ),
            Figure(
                name=_("endpoints that fail"),
                value=format_number(len(failing)),
                link=f"{reverse('admin:gateway_webhookendpoint_changelist')}?last=failed",
                tone="bad" if failing else "",
            ),
        ],
        chart=webhook_figures.chart_attempts_by_hour(list(rows)),
        facts=[
            (
                f"{row.merchant.name}: {row}",
                failures[row.pk].failure or _("answered %s") % failures[row.pk].status,
                reverse("admin:gateway_webhookendpoint_change", args=[row.pk]),
            )
            for row in failing[:MAX_FAILING_ENDPOINTS]
        ],
    )


dashboard.register_panel("webhooks", "gateway.view_webhookendpoint", build_webhook_panel)
