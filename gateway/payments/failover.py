"""Taking a payment to the next acquirer of its route, when the one before certainly did not accept it.

The next ways were chosen when the payment began and stand in its route. A move is written before the next acquirer is
asked (gateway.payments.store.reroute_payment), so that whoever finds the payment without an answer asks the right one.
Follow- ups have no route: they go where the money is. Bounded by GATEWAY_FAILOVER_MOST and GATEWAY_FAILOVER_WITHIN_S;
with the last acquirer's own timeout that is less than the web server's. Source: issue "real processors";
docs/routing.md.
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

log = structlog.get_logger(__name__)


def next_route(
    payment: Payment, reply: AcquirerReply, *, since: float, at: datetime, duration_ms: int
) -> Connector | None:
    """The connector that is asked next; ``payment`` has been moved to it. None: there is none, or somebody else has
    the payment by now; what was tried then stands in its route, for whoever writes the end.

    ``since``: when the first acquirer was asked, of time.perf_counter; ``at``: the merchant's clock.
    """
    if not reply.retryable_elsewhere or payment.route is None or payment.referenced is not None:
        return None
    tried = [*payment.route.get("tried", ()), _render_attempt(payment, reply, at)]
    route = {**payment.route, "tried": tried}
    found = list_acquirers()
    ways = [way for way in route.pop("next", ()) if way[0] in found]
    payment.route = route | ({"next": ways} if ways else {})
    if not ways or payment.status != Status.STARTED or len(tried) > settings.GATEWAY_FAILOVER_MOST:
        return None
    if time.perf_counter() - since >= settings.GATEWAY_FAILOVER_WITHIN_S:
        return None
    (name, account, words), later = ways[0], ways[1:]
    route |= {"name": words} | ({"next": later} if later else {})
    before = payment.connector
    if not store.reroute_payment(
        payment, reply, connector=name, account=account, route=route, at=at, duration_ms=duration_ms
    ):
        log.warning("failover_overtaken", payment=payment.id.hex)
        return None
    metrics.count_failover(before, name)
    return found[name]


def _render_attempt(payment: Payment, reply: AcquirerReply, at: datetime) -> Mapping[str, Any]:
    """Where it went and why it went on, as the payment keeps it."""
    assert payment.route is not None
    return {
        "name": payment.route.get("name", payment.account),
        "connector": payment.connector,
        "account": payment.account,
        "code": reply.code,
        "why": describe_unreachable(reply),
        "at": at.isoformat(timespec="seconds"),
        "sent": bool(reply.sent),
    }
