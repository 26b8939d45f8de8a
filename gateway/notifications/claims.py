"""Leases due deliveries to one sender at a time, and records their results and the endpoint's health.

A lease is the database's time and names the sender's turn. A sender that dies loses it, and the delivery is sent again:
at least once. Many deliveries are claimed, and many recorded, in one statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

import structlog

from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.core.secret import SecretBytes
from gateway.db.statement import execute_sql
from gateway.models import Merchant, WebhookDelivery, WebhookEndpoint
from gateway.notifications import inspector, payload_format, retry_schedule
from gateway.notifications.inspector import InspectedMessage
from gateway.notifications.signing import SigningKeys
from gateway.outbound import CallOutcome
from gateway.vault.sealing import VaultError, current_vault

WEBHOOK_LEASE: Final = timedelta(seconds=90)
"""Longer than an attempt and the wait for its turn together."""
MAX_ANSWER_CHARS: Final = 256
"""Characters stored of an answer."""
MAX_HEALTHY_FAILURES: Final = 3
"""After so many failures in a row an endpoint gets one delivery at a time."""

SealedBytes = bytes | memoryview

log = structlog.get_logger(__name__)

# Endpoints with waiting deliveries are found by a loose index scan; each yields what is due, at most its room. Of its
# merchant's share each that has something due gets one, of the rest the first one half, the next one a quarter, and so
# on: in another order each time, so that all have their turn where the share is less than one for each.
_CLAIM: Final = """
WITH RECURSIVE waiting(id) AS (
    (SELECT endpoint_id FROM gateway_webhookdelivery WHERE state = 'waiting' ORDER BY endpoint_id LIMIT 1)
    UNION ALL
    SELECT (SELECT d.endpoint_id FROM gateway_webhookdelivery d
            WHERE d.state = 'waiting' AND d.endpoint_id > w.id ORDER BY d.endpoint_id LIMIT 1)
    FROM waiting w WHERE w.id IS NOT NULL
), ready AS MATERIALIZED (
    SELECT e.id, m.clock_offset, least(f.room, CASE WHEN row_number() OVER turn <= f.share THEN
        1 + (greatest(f.share - count(*) OVER (PARTITION BY m.id), 0) >> least(row_number() OVER turn, 31)::int)
        ELSE 0 END) AS room
    FROM waiting w JOIN gateway_webhookendpoint e ON e.id = w.id JOIN gateway_merchant m ON m.id = e.merchant_id
    LEFT JOIN unnest(%(busy)s::uuid[], %(numbers)s::int[]) AS b(id, number) ON b.id = e.id
    LEFT JOIN unnest(%(merchants)s::uuid[], %(shares)s::int[]) AS s(id, number) ON s.id = m.id
    CROSS JOIN LATERAL (SELECT coalesce(s.number, %(share)s) AS share, least(%(room)s, CASE
        WHEN e.state = 'paused' OR (e.failures >= %(unhealthy)s AND e.mode <> 'return') THEN 1
        ELSE %(room)s END - coalesce(b.number, 0)) AS room) f
    CROSS JOIN LATERAL (SELECT FROM gateway_webhookdelivery d
        WHERE d.endpoint_id = w.id AND d.state = 'waiting' AND d.due_at <= %(now)s::timestamptz + m.clock_offset
            AND (d.lease_until IS NULL OR d.lease_until <= statement_timestamp())
        ORDER BY d.due_at LIMIT 1) due
    WHERE (e.state = 'active' OR (e.state = 'paused' AND e.probe_at <= %(now)s::timestamptz + m.clock_offset))
        AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid) AND f.room > 0
    WINDOW turn AS (PARTITION BY m.id ORDER BY random())
    ORDER BY random()
), due AS MATERIALIZED (
    SELECT d.id, r.clock_offset FROM ready r CROSS JOIN LATERAL (
        SELECT d.id FROM gateway_webhookdelivery d
        WHERE d.endpoint_id = r.id AND d.state = 'waiting' AND d.due_at <= %(now)s::timestamptz + r.clock_offset
            AND (d.lease_until IS NULL OR d.lease_until <= statement_timestamp())
        ORDER BY d.due_at LIMIT r.room FOR UPDATE SKIP LOCKED
    ) d LIMIT %(limit)s
)
UPDATE gateway_webhookdelivery d SET lease_until = clock_timestamp() + %(period)s::interval, lease = %(lease)s::uuid
FROM due, gateway_webhookendpoint e WHERE d.id = due.id AND e.id = d.endpoint_id
RETURNING d.id, d.endpoint_id, d.merchant_id, d.kind, d.attempts, d.body, d.give_up_at, due.clock_offset,
    CASE WHEN d.url = '' THEN e.url ELSE d.url END, e.mode, e.wrapper, e.secret_sealed,
    CASE WHEN e.previous_until > %(now)s::timestamptz THEN e.previous_sealed END, e.failures
"""

# A notification that no delivery was made of is due at once. Endpoints that a user paused are not asked.
EARLIEST_DUE_WEBHOOK: Final = """
SELECT CASE
    WHEN EXISTS (SELECT FROM gateway_notification
            WHERE id > coalesce((SELECT position FROM gateway_fanoutposition), 0))
        OR EXISTS (SELECT FROM gateway_fanoutposition WHERE gaps <> '[]')
    THEN statement_timestamp()
    ELSE (
        WITH RECURSIVE waiting(id) AS (
            (SELECT endpoint_id FROM gateway_webhookdelivery WHERE state = 'waiting' ORDER BY endpoint_id LIMIT 1)
            UNION ALL
            SELECT (SELECT d.endpoint_id FROM gateway_webhookdelivery d
                    WHERE d.state = 'waiting' AND d.endpoint_id > w.id ORDER BY d.endpoint_id LIMIT 1)
            FROM waiting w WHERE w.id IS NOT NULL
        )
        SELECT min(greatest(first.due_at, e.probe_at)) FROM waiting w
        JOIN gateway_webhookendpoint e ON e.id = w.id
            AND (e.state = 'active' OR (e.state = 'paused' AND e.probe_at IS NOT NULL))
        CROSS JOIN LATERAL (
            SELECT d.due_at FROM gateway_webhookdelivery d
            WHERE d.endpoint_id = w.id AND d.state = 'waiting' ORDER BY d.due_at LIMIT 1
        ) first
    )
END
"""

# The attempt is recorded whoever holds the lease by now; the delivery changes only if the lease is still ours.
_SETTLE: Final = """
WITH done AS (
    SELECT * FROM unnest(%(id)s::uuid[], %(lease)s::uuid[], %(number)s::smallint[], %(tried)s::bool[],
        %(state)s::text[], %(due)s::timestamptz[], %(at)s::timestamptz[], %(status)s::smallint[], %(failure)s::text[],
        %(answer)s::text[], %(took)s::int[])
        AS t(id, lease, number, tried, state, due, at, status, failure, answer, took)
), moved AS (
    UPDATE gateway_webhookdelivery d SET state = done.state, due_at = coalesce(done.due, d.due_at),
        attempts = done.number, lease_until = NULL, lease = NULL,
        ended_at = CASE WHEN done.state = 'waiting' THEN NULL ELSE done.at END
    FROM done WHERE d.id = done.id AND d.lease = done.lease AND d.state = 'waiting' RETURNING 1
), kept AS (
    INSERT INTO gateway_webhookattempt (delivery_id, number, at, status, failure, answer, duration_ms)
    SELECT id, number, at, status, failure, answer, took FROM done WHERE tried
)
SELECT count(*) FROM moved
"""

# Only a pause after failures has a probe_at; one made by a user is ended by a user.
_WELL: Final = """
UPDATE gateway_webhookendpoint SET failures = 0, failing_since = NULL, probes = 0, probe_at = NULL,
    state = CASE WHEN probe_at IS NOT NULL THEN 'active' ELSE state END,
    reason = CASE WHEN probe_at IS NOT NULL THEN '' ELSE reason END
WHERE id = %(id)s::uuid AND (failures > 0 OR state = 'paused') RETURNING (
    SELECT probe_at IS NOT NULL FROM gateway_webhookendpoint before WHERE before.id = %(id)s::uuid)
"""
_ALL_DUE: Final = """
UPDATE gateway_webhookdelivery SET due_at = %(at)s::timestamptz
WHERE endpoint_id = %(id)s::uuid AND state = 'waiting' AND due_at > %(at)s::timestamptz
"""
_FAILED: Final = """
UPDATE gateway_webhookendpoint SET failures = failures + %(number)s::int,
    failing_since = coalesce(failing_since, %(at)s::timestamptz)
WHERE id = %(id)s::uuid RETURNING failures, failing_since, state, probes
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueWebhook:
    """A leased delivery, to be sent now. ``attempt``: its number, from 1; ``offset``: how far the merchant's clock is
    ahead; ``lease_ends``: by this machine's clocks, not after the row's. ``keys``: None if the vault cannot open
    them."""

    id: UUID
    endpoint: UUID
    merchant: UUID
    kind: str
    attempt: int
    body: str
    give_up_at: datetime
    offset: timedelta
    url: str
    mode: str
    wrapper: str
    keys: SigningKeys | None
    lease: UUID
    lease_ends: clock.Deadline
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAttemptResult:
    """The result of an attempt ``at`` a real time; without an ``outcome`` it was not tried and goes back unchanged.
    ``inspected``: headers and body for the inspector to show."""

    due: DueWebhook
    at: datetime
    outcome: CallOutcome | None
    inspected: tuple[Mapping[str, str], bytes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MerchantShares:
    """How many deliveries may be leased for one merchant: ``known`` says it of some, ``other`` of all others."""

    other: int = 2**31 - 1
    known: Mapping[UUID, int] = field(default_factory=dict)


def claim_due_webhooks(
    busy: Mapping[UUID, int],
    *,
    room: int,
    limit: int,
    merchant: Merchant | None = None,
    shares: MerchantShares = MerchantShares(),
) -> list[DueWebhook]:
    """Lease due deliveries, at most ``limit`` in all, ``room`` of one endpoint, including those it is ``busy`` with,
    and of one merchant its share."""
    if limit <= 0:
        return []
    # Begun before the row's own lease, which counts from when the statement runs.
    now, lease, ends = clock.real_now(), uuid4(), clock.Deadline.after(WEBHOOK_LEASE.total_seconds())
    rows = execute_sql(
        _CLAIM,
        {
            "now": now,
            "period": WEBHOOK_LEASE,
            "lease": lease,
            "room": room,
            "limit": limit,
            "unhealthy": MAX_HEALTHY_FAILURES,
            "busy": list(busy),
            "numbers": list(busy.values()),
            "share": shares.other,
            "merchants": list(shares.known),
            "shares": list(shares.known.values()),
            "merchant": merchant.pk if merchant else None,
        },
    )
    opened: dict[tuple[UUID, SealedBytes | None, SealedBytes | None], SigningKeys | None] = {}
    for row in rows:
        if (which := (row[1], row[11], row[12])) not in opened:
            opened[which] = unseal_signing_keys(*which)
    return [
        DueWebhook(
            id=row[0],
            endpoint=row[1],
            merchant=row[2],
            kind=row[3],
            attempt=row[4] + 1,
            body=row[5],
            give_up_at=row[6],
            offset=row[7],
            url=row[8],
            mode=row[9],
            wrapper=row[10],
            keys=opened[row[1], row[11], row[12]],
            lease=lease,
            lease_ends=ends,
            failures=row[13],
        )
        for row in rows
    ]


def unseal_signing_keys(
    endpoint: UUID, current: SealedBytes | None, previous: SealedBytes | None
) -> SigningKeys | None:
    """An endpoint's opened secrets; None if it has none, or the vault cannot open them."""
    if current is None:
        return None
    try:
        opened = [current_vault().open(one, endpoint) for one in (current, previous) if one is not None]
    except VaultError as fault:
        log.error("webhook_secret_unreadable", endpoint=endpoint.hex, why=str(fault))
        return None
    octets = [SecretBytes(bytes.fromhex(secret.reveal())) for secret in opened]
    return SigningKeys(current=octets[0], previous=octets[1] if len(octets) > 1 else None)


def record_webhook_attempts(attempted: Sequence[WebhookAttemptResult]) -> int:
    """Record results and the time of the next attempt. Returns how many deliveries changed."""
    if not attempted:
        return 0
    rows = [_build_result_row(one) for one in attempted]
    settled = execute_sql(_SETTLE, {name: [row[name] for row in rows] for name in rows[0]})
    inspector.store_inspected_messages(
        [
            InspectedMessage(
                endpoint=one.due.endpoint,
                delivery=one.due.id,
                attempt=one.due.attempt,
                at=one.at,
                headers=one.inspected[0],
                body=one.inspected[1],
            )
            for one in attempted
            if one.inspected is not None
        ]
    )
    mine: dict[UUID, list[WebhookAttemptResult]] = {}
    for one in attempted:
        if (
            one.outcome is not None
            and one.due.kind != payload_format.TEST_TYPE
            and one.due.mode != WebhookEndpoint.Mode.RETURN
        ):
            mine.setdefault(one.due.endpoint, []).append(one)
    for endpoint, several in mine.items():
        _update_endpoint_health(endpoint, sorted(several, key=lambda one: one.at))
    return int(settled[0][0])


def _build_result_row(one: WebhookAttemptResult) -> dict[str, object]:
    """The columns of one recorded result."""
    due, outcome = one.due, one.outcome
    at = one.at + due.offset
    waiting, delivered = WebhookDelivery.State.WAITING, WebhookDelivery.State.DELIVERED
    state, again = waiting, None
    number = due.attempt if outcome is not None else due.attempt - 1
    if outcome is not None:
        again = retry_schedule.next_attempt_at(due.attempt, at, due.give_up_at)
        if outcome.is_success:
            state = delivered
        elif outcome.status == HTTP_GONE or due.kind == payload_format.TEST_TYPE:
            state = WebhookDelivery.State.CANCELLED
        elif again is None:
            state = WebhookDelivery.State.GIVEN_UP
    return {
        "id": due.id,
        "lease": due.lease,
        "number": number,
        "tried": outcome is not None,
        "state": str(state),
        "due": again if state == waiting else None,
        "at": at,
        "status": outcome.status if outcome else None,
        "failure": str(outcome.failure or "") if outcome else "",
        "answer": _excerpt_answer(outcome) if outcome else "",
        "took": outcome.duration_ms if outcome else 0,
    }


HTTP_GONE: Final = 410


def _excerpt_answer(outcome: CallOutcome) -> str:
    """The first bytes of an answer, or why there is none; card numbers are masked."""
    text = outcome.reason if outcome.failure is not None else outcome.body.decode("utf-8", "replace")
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * MAX_ANSWER_CHARS])
    return mask_text(printable)[:MAX_ANSWER_CHARS]


def _update_endpoint_health(endpoint: UUID, several: Sequence[WebhookAttemptResult]) -> None:
    """Update an endpoint's health from its attempts, in their order."""
    failed = 0
    first: datetime | None = None
    well = False
    for one in several:
        assert one.outcome is not None
        if one.outcome.status == HTTP_GONE:
            disable_endpoint(endpoint, "the receiver answered 410 Gone", one.at + one.due.offset)
            return
        if one.outcome.is_success:
            failed, first, well = 0, None, True
        else:
            failed, first = failed + 1, first or one.at + one.due.offset
    last = several[-1]
    at = last.at + last.due.offset
    if (well and any(one.due.failures for one in several)) or (well and failed):
        _record_endpoint_success(endpoint, at)
    if failed:
        _record_endpoint_failure(endpoint, failed, first or at, at)


def _record_endpoint_success(endpoint: UUID, at: datetime) -> None:
    before = execute_sql(_WELL, {"id": endpoint})
    if before and before[0][0]:
        make_waiting_webhooks_due(endpoint, at)
        log.info("webhook_endpoint_resumed", endpoint=endpoint.hex)


def make_waiting_webhooks_due(endpoint: UUID, at: datetime) -> None:
    """Make everything that waits for this endpoint due now."""
    execute_sql(_ALL_DUE, {"id": endpoint, "at": at})


def _record_endpoint_failure(endpoint: UUID, number: int, first: datetime, at: datetime) -> None:
    row = execute_sql(_FAILED, {"id": endpoint, "number": number, "at": first})
    if not row:
        return
    failures, since, state, probes = row[0]
    if state == WebhookEndpoint.State.PAUSED:
        # Without probe_at a user paused it: an attempt that was under way changes nothing.
        WebhookEndpoint.objects.filter(pk=endpoint, state=state, probe_at__isnull=False).update(
            probes=probes + 1, probe_at=retry_schedule.next_probe_at(probes + 1, at)
        )
    elif (
        state == WebhookEndpoint.State.ACTIVE
        and failures >= retry_schedule.PAUSE_AFTER_FAILURES
        and at - since >= retry_schedule.PAUSE_AFTER
    ):
        reason = f"{failures} attempts in a row have failed since {clock.format_timestamp(since)}"
        WebhookEndpoint.objects.filter(pk=endpoint, state=state).update(
            state=WebhookEndpoint.State.PAUSED, reason=reason, probes=0, probe_at=retry_schedule.next_probe_at(0, at)
        )
        log.warning("webhook_endpoint_paused", endpoint=endpoint.hex, why=reason)


def disable_endpoint(endpoint: UUID, reason: str, at: datetime) -> None:
    """Disable an endpoint: nothing more is sent; waiting deliveries are cancelled and can be replayed."""
    WebhookEndpoint.objects.filter(pk=endpoint).update(
        state=WebhookEndpoint.State.OFF, reason=reason, failures=0, failing_since=None, probes=0, probe_at=None
    )
    WebhookDelivery.objects.filter(endpoint=endpoint, state=WebhookDelivery.State.WAITING).update(
        state=WebhookDelivery.State.CANCELLED, lease=None, lease_until=None, ended_at=at
    )
    log.warning("webhook_endpoint_off", endpoint=endpoint.hex, why=reason)
