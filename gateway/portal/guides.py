"""Pages of the docs that answer the reader: the check of an old client's request, the status page."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Min
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from gateway import metrics
from gateway.api import health
from gateway.core import clock
from gateway.models import TimerRun, WebhookDelivery
from gateway.portal import navigation, self_test
from gateway.portal.migration_check import check_request, hide_pasted_secrets, read_pasted_request
from gateway.portal.pasted_request import UnreadableRequestError
from gateway.portal.views import render_docs_page, render_document
from gateway.timers import registry

MIGRATION_DOCUMENT: Final = "migrating"
PASTED_EXAMPLE: Final = """curl https://old-gateway.example/v1/payments \\
  -d "authentication.userId=…" -d "authentication.password=…" \\
  -d "authentication.entityId=8a8294174b7ecb28014b9699220015ca" \\
  -d "amount=92.0" -d "currency=EUR" -d "paymentBrand=VISA" -d "paymentType=DB" \\
  -d "card.number=4200000000000000" -d "card.holder=Jane Jones" \\
  -d "card.expiryMonth=05" -d "card.expiryYear=2034" -d "card.cvv=123" \\
  -d "recurringType=INITIAL" -d "shopperId=4711\""""

STATUS_CACHE_S: Final = 10.0
"""How long a process shows one status: the page is public, and each look costs statements."""
MAX_TIMER_LAG_S: Final = 300.0
MAX_WEBHOOK_DELAY: Final = timedelta(minutes=5)


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def migration_guide_view(request: HttpRequest) -> HttpResponse:
    """/docs/migrating: the guide, and the check of a pasted request. The check changes nothing, so it needs no token
    against forged requests; in live only the guide is there."""
    if settings.IS_LIVE and request.method == "POST":
        raise Http404
    pasted = request.POST.get("request", "")
    strict, threeds = request.POST.get("strict") == "1", request.POST.get("threeds") == "1"
    report, fault = None, ""
    if pasted.strip():
        try:
            report = check_request(read_pasted_request(pasted), strict=strict, threeds=threeds)
        except UnreadableRequestError as error:
            fault = str(error)
    return render_document(
        request,
        MIGRATION_DOCUMENT,
        pasted=hide_pasted_secrets(pasted) if pasted.strip() else PASTED_EXAMPLE,
        report=report,
        fault=fault,
        strict=strict,
        threeds=threeds,
        answered=request.method == "POST",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPart:
    """One part of the installation. ``state``: ok, slow or down; ``words``: what that means for a merchant."""

    name: str
    title: str
    state: str
    words: str


_STATE_WORDS: Final = {"ok": "All is well", "slow": "Some things are late", "down": "Payments may fail"}
_cached_status: tuple[float, datetime, tuple[StatusPart, ...]] | None = None


def read_status() -> tuple[datetime, tuple[StatusPart, ...]]:
    """When the parts were looked at, and their states; at most STATUS_CACHE_S old."""
    global _cached_status
    if _cached_status is None or time.monotonic() - _cached_status[0] > STATUS_CACHE_S:
        _cached_status = (time.monotonic(), clock.real_now(), _check_status())
    return _cached_status[1:]


def _check_status() -> tuple[StatusPart, ...]:
    wrong = sorted(name for name, state in health.check_parts().items() if state != "ok")
    # /health/ready names the failing part, to callers with the metrics token.
    words = "It cannot take payments now." if wrong else "Payments and queries are answered."
    api = StatusPart(name="api", title="API and form", state="down" if wrong else "ok", words=words)
    if "database" in wrong:
        return (api,)
    return (api, _check_timers(), _check_webhooks(), *([] if settings.IS_LIVE else [_check_self_tests()]))


def _check_timers() -> StatusPart:
    now = clock.real_now()
    rows = list(TimerRun.objects.filter(name__in=list(registry.TIMERS)))
    late = [row.name for row in rows if metrics.measure_timer_lag(row, now) > MAX_TIMER_LAG_S]
    title = "Timed work"
    if not rows:
        return StatusPart(name="timers", title=title, state="slow", words="No worker has run yet.")
    if late:
        words = f"{len(late)} of {len(rows)} timers are late: subscriptions, captures and files may come later."
        return StatusPart(name="timers", title=title, state="slow", words=words)
    return StatusPart(name="timers", title=title, state="ok", words="Subscriptions, captures and files are in time.")


def _check_webhooks() -> StatusPart:
    """Whether first attempts are made in time; receivers that fail do not count."""
    waiting = WebhookDelivery.objects.filter(state="waiting", attempts=0)
    oldest = waiting.aggregate(since=Min("created_at"))["since"]
    late = oldest is not None and oldest < clock.real_now() - MAX_WEBHOOK_DELAY
    words = "Some wait longer than five minutes for their first attempt." if late else "Sent as they come."
    return StatusPart(name="webhooks", title="Webhooks", state="slow" if late else "ok", words=words)


def _check_self_tests() -> StatusPart:
    results = self_test.load_last_results().values()
    failed = sum(bool(row.fault) for row in results)
    words = f"{failed} of {len(results)} rows differ." if failed else f"{len(results)} rows were tried and are right."
    state = "slow" if failed else "ok"
    return StatusPart(name="testData", title="Test data", state=state, words=words if results else "Not tried yet.")


def _resolve_overall(parts: tuple[StatusPart, ...]) -> str:
    states = {part.state for part in parts}
    return next(state for state in ("down", "slow", "ok") if state in states)


@require_safe
def status_view(request: HttpRequest) -> HttpResponse:
    """GET /docs/status: whether this installation works now. Public: no figures of merchants."""
    at, parts = read_status()
    overall = _resolve_overall(parts)
    page = navigation.list_docs_pages()["status"]
    context: dict[str, Any] = {"at": at, "parts": parts, "overall": overall, "words": _STATE_WORDS[overall]}
    return render_docs_page(request, "docs/status.html", "status", page=page, **context)


@require_safe
def status_json_view(_request: HttpRequest) -> JsonResponse:
    """GET /docs/status.json: the status page as data."""
    at, parts = read_status()
    body = {
        "status": _resolve_overall(parts),
        "environment": settings.GATEWAY_ENVIRONMENT,
        "buildNumber": settings.GATEWAY_BUILD_NUMBER,
        "at": clock.format_timestamp(at),
        "parts": [{"name": one.name, "status": one.state, "words": one.words} for one in parts],
    }
    return JsonResponse(body, headers={"Cache-Control": "no-store"})
