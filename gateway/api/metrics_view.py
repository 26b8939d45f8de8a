"""GET /metrics: Prometheus metrics, for requests from this machine or with the metrics token."""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST

from gateway import metrics


def serve_metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, or 403. A request through a proxy does not count as from this machine."""
    if not may_read_figures(request):
        return HttpResponse(b"", status=403)
    return HttpResponse(
        metrics.render_metrics(), content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"}
    )


def may_read_figures(request: HttpRequest) -> bool:
    """Whether the request has the metrics token; without a token in the settings, whether it is from this machine."""
    token = settings.GATEWAY_METRICS_TOKEN
    sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token:
        return hmac.compare_digest(sent.encode(), token.encode())
    forwarded = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    return not forwarded and ip_address(request.META.get("REMOTE_ADDR") or "0.0.0.0").is_loopback  # noqa: S104
