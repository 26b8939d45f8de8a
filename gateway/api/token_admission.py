"""API authentication and throttling: checks token, entity and, for a read, loads the payment, in one statement.

Unknown and foreign entities get the same response, and so do unknown and foreign payments (ruling D11).
Source: Part A, Authentication; Limits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from gateway.access.rate_limits import SHOPPER_OPERATION, resolve_rate_limit
from gateway.access.tokens import TokenLimits, hash_token
from gateway.api.errors import BAD_CREDENTIALS_CODE, THROTTLED_CODE, ApiError
from gateway.core import clock
from gateway.core.identifiers import row_id
from gateway.db.availability import is_database_away
from gateway.db.statement import execute_sql, list_column_names, model_from_row, name_columns, split_row
from gateway.models import AccessToken, Channel, Merchant, Payment
from gateway.payments.idempotency import JOIN_IDEMPOTENCY_KEY, SELECT_IDEMPOTENCY_KEY, IdempotencyRow
from gateway.payments.payment_archive import find_archived_payment
from gateway.risk.card_testing import resolve_shopper_network

_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9._~+/-]{1,512}=*)")
"""The scheme is case-insensitive (RFC 9110, section 11.1)."""
_ENTITY: Final = re.compile("[0-9a-f]{32}")
_TOKEN_COLUMNS: Final = 7
LAST_USE_RESOLUTION: Final = timedelta(minutes=1)
"""Precision of a token's last use: at most one write per minute instead of one per request."""
BEARER_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="Tollhouse"'}


_UNUSED_COLUMNS: Final = frozenset({"active", "created_at", "position", "division_id"})
"""Columns of merchants and channels that no request needs; Django loads them on access."""


_MERCHANT, _CHANNEL, _PAYMENT = (
    list_column_names(Merchant, without=_UNUSED_COLUMNS),
    list_column_names(Channel, without=_UNUSED_COLUMNS | {"name"}),
    list_column_names(Payment),
)


_FROM: Final = """
FROM gateway_accesstoken t
JOIN gateway_merchant m ON m.id = t.merchant_id AND m.active
JOIN gateway_division d ON d.id = m.division_id AND d.active
JOIN gateway_psp s ON s.id = d.psp_id AND s.active
LEFT JOIN gateway_channel c ON c.id = %(entity)s::uuid AND c.merchant_id = m.id AND c.active
"""
_WHERE: Final = """
WHERE t.digest = %(digest)s AND t.approved_at IS NOT NULL AND t.revoked_at IS NULL
  AND (t.ends_at IS NULL OR t.ends_at > %(now)s)
"""
_SELECT: Final = (
    "SELECT t.id, t.scopes, t.channel_id, t.last_used_at IS NULL OR t.last_used_at < %(seldom)s,"
    " t.max_amount, t.max_day_amount, t.operations,"
    f" {name_columns(_MERCHANT, 'm')}, {name_columns(_CHANNEL, 'c')}"
)
ADMIT_SQL: Final = _SELECT + _FROM + _WHERE
# A payment is visible to the entity of the request: to its channel, or to its merchant.
ADMIT_WITH_PAYMENT_SQL: Final = (
    f"{_SELECT}, {name_columns(_PAYMENT, 'p')}{_FROM}"
    "LEFT JOIN gateway_payment p ON p.id = %(payment)s::uuid AND p.merchant_id = m.id"
    " AND (p.channel_id = c.id OR m.id = %(entity)s::uuid)" + _WHERE
)
ADMIT_WITH_KEY_SQL: Final = f"{_SELECT}, {SELECT_IDEMPOTENCY_KEY}{_FROM}{JOIN_IDEMPOTENCY_KEY}{_WHERE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """An authenticated request. ``channel``: None when the merchant's id (channel dispatching) or no entity was sent;
    ``entity``: None only when none was sent. ``payment``: loaded for a read if it belongs to the entity.
    ``idempotency_row``: the stored row of the request's idempotency key. ``limits``: the token's own
    limits, None without any."""

    token: UUID
    merchant: Merchant
    channel: Channel | None
    entity: UUID | None
    payment: Payment | None
    idempotency_row: IdempotencyRow | None
    limits: TokenLimits | None = None


def parse_bearer_token(header: str | None) -> str:
    """The token of an Authorization header. Raises ApiError (401) for a missing or malformed one."""
    if header is None:
        raise ApiError(401, BAD_CREDENTIALS_CODE, "send Authorization: Bearer <access token>", headers=BEARER_CHALLENGE)
    found = _BEARER.fullmatch(header)
    if not found:
        raise ApiError(
            401,
            BAD_CREDENTIALS_CODE,
            "malformed; it must be: Bearer, one space, the access token",
            headers={"WWW-Authenticate": 'Bearer realm="Tollhouse", error="invalid_request"'},
        )
    return found[1]


def parse_entity_id(text: str | None) -> UUID | None:
    """A well-formed entityId, else None: the catalogue reports the error later."""
    return UUID(text) if text is not None and _ENTITY.fullmatch(text) else None


def admit_token(
    token: str,
    entity: UUID | None,
    scope: str,
    *,
    payment: UUID | None = None,
    reads: bool = False,
    key: Mapping[str, str] | None = None,
    ip: str | None,
) -> Admission:
    """Check token, entity and scope. Raises ApiError (403). ``reads``: load ``payment`` in the same statement; ``key``:
    look up an idempotency key in it."""
    now = clock.real_now()
    values = {"digest": hash_token(token), "entity": entity, "now": now, "seldom": now - LAST_USE_RESOLUTION}
    if reads:
        rows = _execute_with_reconnect(ADMIT_WITH_PAYMENT_SQL, {**values, "payment": payment})
    elif key is not None:
        rows = _execute_with_reconnect(ADMIT_WITH_KEY_SQL, {**values, **key})
    else:
        rows = _execute_with_reconnect(ADMIT_SQL, values)
    if not rows:
        raise ApiError(
            403, BAD_CREDENTIALS_CODE, "this access token is unknown, not approved yet, has ended or was revoked"
        )
    (token_id, scopes, bound_to, seldom_used, *limits), merchant_row, channel_row, more = split_row(
        rows[0], _TOKEN_COLUMNS, len(_MERCHANT), len(_CHANNEL)
    )
    merchant = model_from_row(Merchant, _MERCHANT, merchant_row)
    channel = None
    if channel_row[0] is not None:
        channel = model_from_row(Channel, _CHANNEL, channel_row)
        channel.merchant = merchant
    if entity is not None:
        is_own = channel is not None or (merchant.dispatching and entity == merchant.id)
        if not is_own or (bound_to is not None and bound_to != entity):
            raise ApiError(403, BAD_CREDENTIALS_CODE, "this access token does not speak for that entityId")
    if scope not in scopes:
        raise ApiError(403, BAD_CREDENTIALS_CODE, f"this access token lacks the scope {scope}")
    if seldom_used:
        AccessToken.objects.filter(pk=token_id).update(last_used_at=now, last_used_ip=ip)
    has_joined_row = bool(more) and more[0] is not None
    read = model_from_row(Payment, _PAYMENT, more) if has_joined_row and reads else None
    if reads and read is None and payment is not None:
        read = find_archived_payment(payment, merchant.id, channel.id if channel is not None else None)
    return Admission(
        token=token_id,
        merchant=merchant,
        channel=channel,
        entity=entity,
        payment=read,
        idempotency_row=more if has_joined_row and not reads else None,
        limits=_build_limits(*limits),
    )


def _build_limits(amount: Decimal | None, day_amount: Decimal | None, operations: list[str]) -> TokenLimits | None:
    if amount is None and day_amount is None and not operations:
        return None
    return TokenLimits(amount=amount, day_amount=day_amount, operations=operations)


def _execute_with_reconnect(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Run the first statement of a request, once more on a new connection if the old one had died, or its server
    takes no writes any more."""
    try:
        return execute_sql(sql, values)
    except (DatabaseError, InterfaceError) as fault:
        if connection.in_atomic_block or not is_database_away(fault):
            raise
        connection.close()
        return execute_sql(sql, values)


# --- throttling ---------------------------------------------------------------------------------------------------

# One statement, so that the count is exact under any number of threads and processes.
_COUNT: Final = """
INSERT INTO gateway_throttlewindow (entity_id, operation, window_s, "window", count)
VALUES (%(entity)s, %(operation)s, %(window_s)s, %(window)s, 1)
ON CONFLICT (entity_id, operation, window_s, "window") DO UPDATE SET count = gateway_throttlewindow.count + 1
RETURNING count
"""


WIDGET_OPERATION: Final = "widget"
"""What a browser reads of a checkout, as an operation of ``Channel.limits``."""


MAX_SAMPLE_RUNS: Final = (30, 60)
"""Runs of the docs' samples by one user, in so many seconds."""
MAX_LINK_OPENINGS: Final = (120, 60)
"""Checkouts of one payment link for one client network, in so many seconds: each is a row, and links are public. Mobile
networks have many shoppers behind one address."""
MAX_CARD_BRAND_QUESTIONS: Final = (60, 60)
"""Questions of forms which brands a card carries, of one checkout or payment link and client network, in so many
seconds: a card takes one, and whoever has an id or opens a link again is not to read the operator's table of BINs
out."""


def throttle_request(entity: UUID, channel: Channel | None, operation: str, now: datetime) -> dict[str, str]:
    """Count a request and return the rate headers. Raises ApiError above the limit (429, or as the settings say)."""
    limit = resolve_rate_limit(channel, operation)
    return {} if limit is None else _count_request(entity, operation, limit, now)


def throttle_shopper_request(
    checkout: UUID, channel: Channel, ip: str | None, operation: str, now: datetime
) -> dict[str, str]:
    """As :func:`throttle_request` for a request without a token. It has the channel's limit, but is counted per
    checkout and client network, so that a shopper cannot use up the limit of the merchant's own requests."""
    limit = resolve_rate_limit(channel, operation)
    if limit is None:
        return {}
    key = uuid5(NAMESPACE_OID, f"{operation} {checkout.hex} {resolve_shopper_network(ip or '')}")
    return _count_request(key, SHOPPER_OPERATION, limit, now)


def throttle_link_opening(link: UUID, ip: str | None, now: datetime) -> None:
    """Count a checkout that a payment link opens for a client network. Raises ApiError above the limit."""
    key = uuid5(NAMESPACE_OID, f"link opening {link.hex} {resolve_shopper_network(ip or '')}")
    _count_request(key, "linkOpening", MAX_LINK_OPENINGS, now)


def throttle_card_brand_question(source: UUID, ip: str | None, now: datetime) -> None:
    """Count a question of a form which brands a card carries. ``source``: its payment link, or its checkout if it has
    none. Raises ApiError above the limit."""
    key = uuid5(NAMESPACE_OID, f"card brands {source.hex} {resolve_shopper_network(ip or '')}")
    _count_request(key, "cardBrands", MAX_CARD_BRAND_QUESTIONS, now)


def throttle_sample_run(user: int, now: datetime) -> None:
    """Count a user's run of a sample of the docs. Raises ApiError above the limit."""
    _count_request(uuid5(NAMESPACE_OID, f"sample run {user}"), "sampleRun", MAX_SAMPLE_RUNS, now)


def _count_request(key: UUID, operation: str, limit: tuple[int, int], now: datetime) -> dict[str, str]:
    most, window_s = limit
    seconds = now.timestamp()
    window = int(seconds // window_s)
    values = {"entity": key, "operation": operation, "window_s": window_s, "window": window}
    count: int = execute_sql(_COUNT, values)[0][0]
    reset = max(1, math.ceil((window + 1) * window_s - seconds))
    headers = {
        "RateLimit-Limit": str(most),
        "RateLimit-Remaining": str(max(0, most - count)),
        "RateLimit-Reset": str(reset),
    }
    if count > most:
        raise ApiError(
            settings.GATEWAY_THROTTLE_STATUS,
            THROTTLED_CODE,
            f"{most} per {window_s} s",
            headers={**headers, "Retry-After": str(reset)},
            fields={"id": row_id().hex},
        )
    return headers
