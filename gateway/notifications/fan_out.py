"""Fan-out: turns each outbox notification into one delivery for each subscribed endpoint.

Payments write their notifications and nothing more: no mark to reset, no second row. The position in the outbox is one
row (FanOutPosition), moved by the holder of its lock. Sequence numbers are assigned before transactions end, so a
missing number may become visible a moment later: it is remembered as a gap and looked up until every
transaction that was open at the time has ended. docs/decisions/0021-webhooks.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import DataError, transaction
from psycopg.types.json import Jsonb

from gateway.core import clock, identifiers
from gateway.db.statement import execute_sql
from gateway.models import Merchant, Notification, WebhookEndpoint
from gateway.notifications import payload_format, retry_schedule

log = structlog.get_logger(__name__)

FAN_OUT_BATCH_SIZE: Final = 500
GAP_RETENTION: Final = timedelta(seconds=2)
"""Minimum age of a gap before it is permanent: a number may be reserved just before its transaction gets its id."""
_SUBSCRIBED_STATES: Final = (WebhookEndpoint.State.ACTIVE, WebhookEndpoint.State.PAUSED)

_PENDING: Final = """
SELECT EXISTS (SELECT 1 FROM gateway_notification n WHERE n.id > f.position) OR f.gaps <> '[]'
FROM gateway_fanoutposition f
"""
_HOLD: Final = "SELECT position, gaps FROM gateway_fanoutposition FOR UPDATE SKIP LOCKED"
# The bounds of a snapshot: transactions below xmin have ended, those from xmax on have not begun.
_HORIZON: Final = """
SELECT pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint, clock_timestamp()
FROM pg_current_snapshot() s
"""
_IN_GAPS: Final = """
SELECT n.id FROM unnest(%(first)s::bigint[], %(last)s::bigint[]) AS g(first, last)
JOIN gateway_notification n ON n.id BETWEEN g.first AND g.last
"""
_WAITING: Final = """
SELECT EXISTS (SELECT 1 FROM gateway_notification n
        WHERE n.id > coalesce((SELECT position FROM gateway_fanoutposition), 0) AND n.merchant_id = %(merchant)s::uuid)
    OR EXISTS (SELECT 1 FROM gateway_fanoutposition f, jsonb_to_recordset(f.gaps) AS g(first bigint, last bigint)
        JOIN gateway_notification n ON n.id BETWEEN g.first AND g.last WHERE n.merchant_id = %(merchant)s::uuid)
"""
_MOVE: Final = "UPDATE gateway_fanoutposition SET position = %(position)s::bigint, gaps = %(gaps)s::jsonb"
_BEGIN: Final = """
INSERT INTO gateway_fanoutposition (id, position, gaps)
SELECT 1, coalesce(min(id) - 1, 0), '[]' FROM gateway_notification ON CONFLICT DO NOTHING
"""
# An endpoint that was switched off since it was read gets nothing; one that is being switched off waits for the commit,
# and cancels these with the others.
_INSERT: Final = """
INSERT INTO gateway_webhookdelivery (id, endpoint_id, merchant_id, notification, kind, action, payment, sequence, body,
    url, state, attempts, due_at, give_up_at, created_at)
SELECT t.id, endpoint, merchant, notification, kind, action, payment, sequence, body, url, 'waiting', 0, due, give_up,
    created
FROM json_to_recordset(%(rows)s::json) AS t(id uuid, endpoint uuid, merchant uuid, notification bigint, kind text,
    action text, payment uuid, sequence smallint, body text, url text, due timestamptz, give_up timestamptz,
    created timestamptz)
JOIN (
    SELECT id FROM gateway_webhookendpoint WHERE id = ANY(%(endpoints)s::uuid[]) AND state = ANY(%(states)s::text[])
    ORDER BY id FOR SHARE
) e ON e.id = t.endpoint
ON CONFLICT (endpoint_id, notification) DO NOTHING RETURNING 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceGap:
    """Numbers ``first`` to ``last`` that were missing ``at`` a time when no transaction from ``xid`` on had begun."""

    first: int
    last: int
    xid: int
    at: str

    def is_permanent(self, xmin: int, now: datetime) -> bool:
        """True if the transactions that reserved these sequence numbers have ended, so gaps below are permanent."""
        return xmin >= self.xid and now - datetime.fromisoformat(self.at) >= GAP_RETENTION


def fan_out_notifications(build_payloads: payload_format.PayloadBuilder, *, limit: int = FAN_OUT_BATCH_SIZE) -> int:
    """Fan at most ``limit`` notifications out. Returns how many; 0 also if another worker does it."""
    found = execute_sql(_PENDING, {})
    if not found:
        execute_sql(_BEGIN, {})
        found = execute_sql(_PENDING, {})
    if not found or not found[0][0]:
        return 0
    with transaction.atomic():
        held = execute_sql(_HOLD, {})
        if not held:
            return 0
        position, gaps = held[0][0], [SequenceGap(**gap) for gap in json.loads(held[0][1])]
        # What had ended before the gaps were looked up, and what had begun when the fresh numbers were read: a
        # transaction that begins in between may hold a missing number.
        xmin, _, now = execute_sql(_HORIZON, {})[0]
        late = _load_late_notifications(gaps)
        fresh = list(Notification.objects.filter(pk__gt=position).order_by("pk")[:limit])
        _, xmax, _ = execute_sql(_HORIZON, {})[0]
        create_deliveries(build_payloads, [*late, *fresh])
        left = _drop_filled_gaps(gaps, [one.pk for one in late], xmin, now)
        left += _find_gaps(position, [one.pk for one in fresh], xmax, now)
        execute_sql(
            _MOVE,
            {"position": fresh[-1].pk if fresh else position, "gaps": Jsonb([asdict(gap) for gap in left])},
        )
    return len(late) + len(fresh)


def _load_late_notifications(gaps: Sequence[SequenceGap]) -> list[Notification]:
    """Notifications that have become visible in the gaps."""
    if not gaps:
        return []
    found = execute_sql(_IN_GAPS, {"first": [gap.first for gap in gaps], "last": [gap.last for gap in gaps]})
    return list(Notification.objects.filter(pk__in=[row[0] for row in found]).order_by("pk")) if found else []


def _drop_filled_gaps(gaps: Sequence[SequenceGap], late: Sequence[int], xmin: int, now: datetime) -> list[SequenceGap]:
    """The gaps without the numbers that arrived, and without permanent ones."""
    left: list[SequenceGap] = []
    for gap in gaps:
        if gap.is_permanent(xmin, now):
            continue
        first = gap.first
        for number in (*(one for one in late if gap.first <= one <= gap.last), gap.last + 1):
            if first < number:
                left.append(SequenceGap(first=first, last=number - 1, xid=gap.xid, at=gap.at))
            first = number + 1
    return left


def _find_gaps(position: int, numbers: Iterable[int], xmax: int, now: datetime) -> list[SequenceGap]:
    """The gaps between ``position`` and ``numbers``, which are sorted."""
    found: list[SequenceGap] = []
    for number in numbers:
        if number > position + 1:
            found.append(SequenceGap(first=position + 1, last=number - 1, xid=xmax, at=now.isoformat()))
        position = number
    return found


def create_deliveries(build_payloads: payload_format.PayloadBuilder, notifications: Sequence[Notification]) -> int:
    """Create the missing deliveries of ``notifications``. Returns how many."""
    if not notifications:
        return 0
    endpoints = _load_endpoints({one.merchant_id for one in notifications})
    chosen = {one.pk: [e for e in endpoints.get(one.merchant_id, ()) if is_subscribed(e, one)] for one in notifications}
    payloads = build_payloads(notifications, {number for number, mine in chosen.items() if mine})
    rows: list[dict[str, Any]] = []
    returns: dict[UUID, WebhookEndpoint] = {}
    for one in notifications:
        payload = payloads.get(one.pk)
        if payload is None:
            continue
        rows += [build_delivery_row(one, endpoint, body=payload.text) for endpoint in chosen[one.pk]]
        if payload.return_url:
            if one.merchant_id not in returns:
                returns[one.merchant_id] = _build_return_endpoint(one.merchant_id)
            rows.append(build_delivery_row(one, returns[one.merchant_id], url=payload.return_url))
    return insert_deliveries(rows)


def insert_deliveries(rows: Sequence[dict[str, Any]]) -> int:
    """Insert deliveries in one statement; existing ones are left unchanged. Passed as JSON, which both sides read and
    write faster than arrays of long texts."""
    if not rows:
        return 0
    try:
        with transaction.atomic():
            values = {
                "rows": json.dumps(rows, ensure_ascii=False, default=str),
                "endpoints": sorted({row["endpoint"] for row in rows}),
                "states": list(_SUBSCRIBED_STATES),
            }
            return len(execute_sql(_INSERT, values))
    except DataError:
        if len(rows) == 1:
            log.exception(
                "webhook_delivery_not_created", notification=rows[0]["notification"], endpoint=rows[0]["endpoint"].hex
            )
            return 0
    # One that cannot be stored must not block all that follow, of every merchant.
    return sum(insert_deliveries([row]) for row in rows)


def is_subscribed(endpoint: WebhookEndpoint, notification: Notification) -> bool:
    """True if the endpoint is subscribed to the notification."""
    return notification.kind in endpoint.kinds and endpoint.channel_id in (None, notification.channel_id)


def _load_endpoints(merchants: set[UUID]) -> dict[UUID, list[WebhookEndpoint]]:
    found: dict[UUID, list[WebhookEndpoint]] = {}
    subscribed = WebhookEndpoint.objects.filter(merchant__in=merchants, state__in=_SUBSCRIBED_STATES).exclude(
        mode=WebhookEndpoint.Mode.RETURN
    )
    for endpoint in subscribed.select_related("merchant"):
        found.setdefault(endpoint.merchant_id, []).append(endpoint)
    return found


def _build_return_endpoint(merchant: UUID) -> WebhookEndpoint:
    """The stand-in endpoint for addresses that the merchant's payments bring themselves (notificationUrl)."""
    mode, state = WebhookEndpoint.Mode.RETURN, WebhookEndpoint.State.ACTIVE
    WebhookEndpoint.objects.bulk_create(
        [WebhookEndpoint(merchant_id=merchant, mode=mode, state=state)], ignore_conflicts=True
    )
    return WebhookEndpoint.objects.select_related("merchant").get(merchant=merchant, mode=mode)


def build_delivery_row(
    notification: Notification, endpoint: WebhookEndpoint, *, body: str = "", url: str = ""
) -> dict[str, Any]:
    """The columns of one delivery, due at once."""
    now = clock.merchant_now(endpoint.merchant)
    return {
        "id": identifiers.row_id(),
        "endpoint": endpoint.pk,
        "merchant": notification.merchant_id,
        "notification": notification.pk,
        "kind": notification.kind,
        "action": notification.action,
        "payment": notification.payment_id,
        "sequence": notification.sequence,
        "body": body,
        "url": url,
        "due": now,
        "give_up": now + retry_schedule.WEBHOOK_GIVE_UP_AFTER,
        "created": notification.created_at,
    }


def has_pending_notifications(merchant: Merchant) -> bool:
    """True if the outbox has notifications of the merchant that were not fanned out yet."""
    found = execute_sql(_WAITING, {"merchant": merchant.pk})
    return bool(found and found[0][0])
