"""Failover: take a first payment to the next acquirer of its route when the one before certainly did not accept it.

The alternatives were chosen when the payment began and are stored in ``Payment.route``. A failover is written before
the next acquirer is called (gateway.payments.store.reroute_payment), so that recovery inquires at the right one after a
crash. Follow-ups have no route: they go to the acquirer of the payment they follow. Bounded by GATEWAY_FAILOVER_MOST
and GATEWAY_FAILOVER_WITHIN_S, which with the last acquirer's timeout is less than the web server's timeout.
Source: docs/routing.md; docs/decisions/0036.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings

from gateway import metrics
from gateway.connectors.circuit import describe_unreachable
from gateway.connectors.port import AcquirerReply, Connector
from gateway.connectors.routing import list_acquirers
from gateway.models import Payment, Status
from gateway.payments import store
from gateway.payments.risk_screening import ScreeningPlan

log = structlog.get_logger(__name__)


def next_route(
    payment: Payment, reply: AcquirerReply, plan: ScreeningPlan | None, *, since: float, at: datetime, duration_ms: int
) -> Connector | None:
    """Move ``payment`` to the next acquirer of its route and return that connector; None when there is none, a limit is
    reached (also that of its card's network), or recovery has the payment by now. The failed attempt is then in
    ``payment.route``, to be completed with.

    ``plan``: the schemes' retry rules count the attempt where its network does; ``since``: time.perf_counter() when the
    first acquirer was called; ``at``: the merchant's clock.
    """
    if not reply.retryable_elsewhere or payment.route is None or payment.referenced is not None:
        return None
    tried = [*payment.route.get("tried", ()), _render_attempt(payment, reply, at)]
    route = {**payment.route, "tried": tried}
    connectors = list_acquirers()
    alternatives = [row for row in route.pop("next", ()) if row[0] in connectors]
    payment.route = route | ({"next": alternatives} if alternatives else {})
    failed = sum(1 for one in tried if not one.get("declined"))
    if not alternatives or payment.status != Status.STARTED or failed > settings.GATEWAY_FAILOVER_MOST:
        return None
    if is_time_over(since) or (plan is not None and plan.forbids_failover(reply)):
        return None
    (name, account, title), later = alternatives[0], alternatives[1:]
    route |= {"name": title} | ({"next": later} if later else {})
    before = payment.connector
    if not store.reroute_payment(
        payment, reply, connector=name, account=account, route=route, at=at, duration_ms=duration_ms, plan=plan
    ):
        log.warning("failover_overtaken", payment=payment.id.hex)
        return None
    metrics.count_failover(before, name)
    return connectors[name]


def is_time_over(since: float) -> bool:
    """Whether no further acquirer is called: the client of the payment would not wait for its answer. ``since``:
    time.perf_counter() when the first one was called."""
    return time.perf_counter() - since >= settings.GATEWAY_FAILOVER_WITHIN_S


def _render_attempt(payment: Payment, reply: AcquirerReply, at: datetime) -> Mapping[str, Any]:
    """One failed attempt as ``Payment.route["tried"]`` stores it: acquirer, account, result code and reason."""
    assert payment.route is not None
    return {
        "name": payment.route.get("name", payment.acquirer_merchant_id),
        "connector": payment.connector,
        "account": payment.acquirer_merchant_id,
        "code": reply.code,
        "why": describe_unreachable(reply),
        "at": at.isoformat(timespec="seconds"),
        "sent": bool(reply.sent),
    }
