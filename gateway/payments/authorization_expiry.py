"""Ends authorizations whose time has passed: the merchant is told, and the rest is released at the acquirer.

An approved authorization or renewal has a row with its end by the merchant's clock. When it is due and nothing has
renewed the authorization, its expiry is recorded with a webhook and, where the acquirer holds the rest until it is
reversed, the row that releases it. On channels that renew at a late capture it is released after RENEWAL_GRACE.
The reversal of a capture that leaves its amount held has a row that is due at once: what it reopened may have been
closed, or have expired, before. Source: docs/decisions/0069, 0096.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import structlog

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AuthorizationExpiry, AuthorizationRelease, Channel, Merchant, Payment
from gateway.payments import store
from gateway.payments.chain_amounts import Chain, has_open_reversal
from gateway.payments.follow_ups import load_chain_members
from gateway.payments.operation_table import RELEASED_BY_REVERSAL
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest
from gateway.timers.registry import MerchantTimer

MAX_EXPIRIES_PER_TICK: Final = 200
EXPIRY_RETRY_DELAY: Final = timedelta(hours=1)
"""The time until an authorization is looked at again whose increment or renewal has no result yet, or of which captures
and reversals without a result would leave nothing. By time it has expired already: only its record waits."""
RENEWAL_GRACE: Final = timedelta(days=30)
"""How long after its end a late capture renews an authorization, where the channel says so. Then the rest is released:
every approved authorization is cleared or reversed, or the schemes charge for its misuse (docs/decisions/0093)."""

log = structlog.get_logger(__name__)

# Ends are in the merchant's clock; the first condition uses the index, with the clock that is furthest ahead.
_DUE: Final = f"""
SELECT e.id, e."authorization", m.clock_offset
FROM gateway_authorizationexpiry e JOIN gateway_merchant m ON m.id = e.merchant_id
WHERE {due_sql("e.due_at")} ORDER BY e.due_at LIMIT %(limit)s
"""  # noqa: S608 - a constant


def expire_authorizations(merchant: Merchant | None = None) -> int:
    """End what is due, of one merchant or all; returns how many rows were dealt with. Nothing is locked: each ends by
    compare-and-set, and a second worker finds it ended."""
    now = clock.real_now()
    ended = 0
    for row, authorization, offset in execute_sql(_DUE, bind_run(merchant, now=now, limit=MAX_EXPIRIES_PER_TICK)):
        try:
            ended += _expire_authorization(row, authorization, now + offset)
        except Exception:  # one authorization must not keep the others waiting
            log.exception("authorization_not_expired", payment=authorization.hex)
            _postpone(row, now + offset)
    return ended


def _expire_authorization(row: int, authorization: UUID, at: datetime) -> bool:
    """Record one expiry. False when it has to wait."""
    members = load_chain_members(authorization)
    if not members:
        # It was archived, with nothing held any more (docs/decisions/0130).
        AuthorizationExpiry.objects.filter(pk=row).delete()
        return True
    chain = Chain(members)
    held, end = chain.authorization, chain.authorization.expires_at
    if held.has_pending_increment:
        _postpone(row, at)
        return False
    renewed, used_up = end is None or end > at, held.is_closed or held.uncaptured <= 0
    if used_up and not renewed and (held.has_pending_capture or has_open_reversal(chain, chain.first)):
        # What is declined was not captured or reversed, and ends nothing: then it does expire.
        _postpone(row, at)
        return False
    held_there = chain.first.connector in RELEASED_BY_REVERSAL
    if held.is_closed and held.is_reopened and held.uncaptured > 0 and held_there:
        return store.insert_release(chain.first, AuthorizationRelease.Cause.FINAL, at=at, expiry=row)
    if end is None or renewed or used_up:
        # A renewal has a row of its own.
        AuthorizationExpiry.objects.filter(pk=row).delete()
        return True
    first = chain.first
    renews = held_there and _load_expired_captures(first) == Channel.ExpiredCaptures.RENEW
    given_up = end + RENEWAL_GRACE if renews else None
    if first.expired_at is None or first.expired_at < end:
        return store.expire_authorization(
            first, end, at=at, expiry=row, release=held_there and not renews, again_at=given_up
        )
    if given_up is not None and given_up > at:
        AuthorizationExpiry.objects.filter(pk=row).update(due_at=given_up)
        return False
    return store.insert_release(first, AuthorizationRelease.Cause.EXPIRY, at=at, expiry=row)


def _load_expired_captures(first: Payment) -> str:
    mode: str = Channel.objects.values_list("expired_captures", flat=True).get(pk=first.channel_id)
    return mode


def _postpone(row: int, at: datetime) -> None:
    AuthorizationExpiry.objects.filter(pk=row).update(due_at=at + EXPIRY_RETRY_DELAY)


def find_next_expiry(merchant: Merchant) -> datetime | None:
    """When the next authorization of this merchant ends, by its clock; None without any."""
    return find_earliest(AuthorizationExpiry.objects.filter(merchant=merchant), "due_at")


TIMER: Final = MerchantTimer(
    name="authorization expiry",
    run=expire_authorizations,
    next_at=find_next_expiry,
    every_s=5.0,
    earliest_due="SELECT min(due_at) FROM gateway_authorizationexpiry",
    about="End authorizations whose time has passed, and have their rest released.",
)
