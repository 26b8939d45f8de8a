"""Replay: makes ended deliveries due again, and delivers events that an endpoint missed.

The number is previewed first. A replayed delivery has the same text, id and sequence, so a receiver can recognize it.
Every batch is one commit, and what was replayed is not selected again: an interrupted replay is simply repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Max, Min, Q, QuerySet

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import Merchant, Notification, WebhookDelivery, WebhookEndpoint
from gateway.notifications import fan_out, retry_schedule
from gateway.notifications.payload_format import TEST_TYPE, PayloadBuilder

REPLAY_BATCH_SIZE: Final = 500
MAX_PAYMENT_AGE: Final = timedelta(days=400)
"""How much older than its event a payment may be: captures, refunds and chargebacks come late."""
ENDED_DELIVERY_STATES: Final = (
    WebhookDelivery.State.DELIVERED,
    WebhookDelivery.State.GIVEN_UP,
    WebhookDelivery.State.CANCELLED,
)

# Payments have an index by time, notifications have none: those of no payment (dispute alerts) are looked for one by
# one, for an endpoint that asked for them.
_MISSED: Final = """
SELECT n.id FROM (
    SELECT n.* FROM gateway_payment p JOIN gateway_notification n ON n.payment_id = p.id
    WHERE p.merchant_id = %(merchant)s::uuid AND p.created_at >= %(oldest)s::timestamptz
        AND p.created_at <= %(until)s::timestamptz
    UNION ALL
    SELECT n.* FROM gateway_notification n
    WHERE 'ALERT' = ANY(%(kinds)s::text[]) AND n.payment_id IS NULL AND n.merchant_id = %(merchant)s::uuid
) n
WHERE n.created_at >= %(since)s::timestamptz
    AND n.created_at <= %(until)s::timestamptz AND n.kind = ANY(%(kinds)s::text[])
    AND (%(channel)s::uuid IS NULL OR n.channel_id = %(channel)s::uuid)
    AND NOT EXISTS (SELECT 1 FROM gateway_webhookdelivery d
        WHERE d.endpoint_id = %(endpoint)s::uuid AND d.notification = n.id)
ORDER BY n.id LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySelection:
    """Which of a merchant's deliveries to replay; None or empty selects all. Times are the merchant's clock and those
    of the event, both ends included. ``among``: the endpoints that the user may use."""

    merchant: Merchant
    endpoint: WebhookEndpoint | None = None
    among: Collection[UUID] | None = None
    delivery: UUID | None = None
    payment: UUID | None = None
    kinds: Sequence[str] = ()
    states: Sequence[str] = ENDED_DELIVERY_STATES
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPreview:
    """What a replay would send. ``off``: also selected, but their endpoint receives nothing at present."""

    events: int
    payments: int
    oldest: datetime | None
    newest: datetime | None
    off: int


def preview_replay(selection: ReplaySelection) -> ReplayPreview:
    """Count without sending."""
    chosen = _select_deliveries(selection)
    open_ones = _filter_receiving_endpoints(chosen)
    counted = open_ones.aggregate(
        events=Count("pk"), payments=Count("payment", distinct=True), oldest=Min("created_at"), newest=Max("created_at")
    )
    return ReplayPreview(**counted, off=chosen.count() - counted["events"])


def replay_deliveries(selection: ReplaySelection, *, batch: int = REPLAY_BATCH_SIZE) -> Iterator[int]:
    """Make them due now; yields the number after each batch. They are sent with the next run."""
    after: ReplayPosition | None = None
    while True:
        done, after = replay_next_batch(selection, after, batch=batch)
        if after is None:
            return
        yield done


ReplayPosition = tuple[datetime, UUID]
"""Position of a replay: creation time and id of the last delivery that was made due."""


def replay_next_batch(
    selection: ReplaySelection, after: ReplayPosition | None = None, *, batch: int = REPLAY_BATCH_SIZE
) -> tuple[int, ReplayPosition | None]:
    """Make the next batch due. Returns how many, and the position of the next batch (None: none left). Ordered by
    creation time, so that what is delivered meanwhile is not selected again."""
    now = clock.merchant_now(selection.merchant)
    chosen = _filter_receiving_endpoints(_select_deliveries(selection))
    if WebhookDelivery.State.WAITING in selection.states:
        chosen = chosen.filter(Q(due_at__gt=now) | ~Q(state=WebhookDelivery.State.WAITING))
    if after is not None:
        chosen = chosen.filter(Q(created_at__gt=after[0]) | Q(created_at=after[0], pk__gt=after[1]))
    found = list(chosen.order_by("created_at", "pk").values_list("created_at", "pk")[:batch])
    if not found:
        return 0, None
    done = WebhookDelivery.objects.filter(pk__in=[key for _, key in found], state__in=selection.states).update(
        state=WebhookDelivery.State.WAITING,
        due_at=now,
        give_up_at=now + retry_schedule.WEBHOOK_GIVE_UP_AFTER,
        ended_at=None,
        lease=None,
        lease_until=None,
    )
    return done, found[-1]


def count_missed_events(endpoint: WebhookEndpoint, since: datetime, until: datetime) -> int:
    """Number of events of this time that the endpoint never got, since it was created later or switched off; counted up
    to a million."""
    return len(_list_missed_ids(endpoint, since, until, 1_000_000))


def deliver_missed_events(
    endpoint: WebhookEndpoint,
    since: datetime,
    until: datetime,
    build_payloads: PayloadBuilder,
    *,
    batch: int = REPLAY_BATCH_SIZE,
) -> Iterator[int]:
    """Create deliveries of missed events; yields the number after each batch. The text is the event as of its own
    time."""
    while numbers := _list_missed_ids(endpoint, since, until, batch):
        notifications = list(Notification.objects.filter(pk__in=numbers).order_by("pk"))
        payloads = build_payloads(notifications, set(numbers))
        rows = [
            fan_out.build_delivery_row(one, endpoint, body=payloads[one.pk].text)
            for one in notifications
            if one.pk in payloads and payloads[one.pk].text
        ]
        made = fan_out.insert_deliveries(rows)
        yield made
        if not made:
            return


def _list_missed_ids(endpoint: WebhookEndpoint, since: datetime, until: datetime, limit: int) -> list[int]:
    values: dict[str, Any] = {
        "merchant": endpoint.merchant_id,
        "oldest": since - MAX_PAYMENT_AGE,
        "since": since,
        "until": until,
        "kinds": endpoint.kinds,
        "channel": endpoint.channel_id,
        "endpoint": endpoint.pk,
        "limit": limit,
    }
    return [row[0] for row in execute_sql(_MISSED, values)]


def _select_deliveries(selection: ReplaySelection) -> QuerySet[WebhookDelivery]:
    """The selected deliveries of the merchant, without test messages."""
    chosen = WebhookDelivery.objects.filter(
        endpoint__in=WebhookEndpoint.objects.filter(merchant=selection.merchant), state__in=selection.states
    ).exclude(kind=TEST_TYPE)
    conditions: dict[str, Any] = {
        "endpoint": selection.endpoint,
        "pk": selection.delivery,
        "payment": selection.payment,
        "kind__in": list(selection.kinds) or None,
        "created_at__gte": selection.since,
        "created_at__lte": selection.until,
    }
    if selection.among is not None:
        chosen = chosen.filter(endpoint__in=selection.among)
    return chosen.filter(**{name: value for name, value in conditions.items() if value is not None})


def _filter_receiving_endpoints(chosen: QuerySet[WebhookDelivery]) -> QuerySet[WebhookDelivery]:
    """The deliveries whose endpoint receives any at present."""
    state = WebhookEndpoint.State
    return chosen.filter(endpoint__state__in=(state.ACTIVE, state.PAUSED))
