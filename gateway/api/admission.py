"""Who may come in: token, entity and, for a read, the payment itself, in one statement.

Unknown and foreign entities look the same, and so do unknown and foreign payments (D11).
Source: Part A, Authentication; Limits.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, models

from gateway import clock
from gateway.api.errors import BAD_CREDENTIALS, THROTTLED, Turned
from gateway.identifiers import row_id
from gateway.models import AccessToken, Channel, Merchant, Payment
from gateway.rows import execute
from gateway.tokens import digest

_BEARER: Final = re.compile(r"[Bb]earer ([A-Za-z0-9._~+/-]{1,512}=*)")
_ENTITY: Final = re.compile("[0-9a-f]{32}")
LAST_USE_EVERY: Final = timedelta(minutes=1)
"""How exact a token's last use is kept: one write a minute, not one a request."""
CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="Tollhouse"'}


def _columns(model: type[models.Model], alias: str) -> str:
    return ", ".join(f'{alias}."{field.column}"' for field in model._meta.concrete_fields)


def _names(model: type[models.Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]


_TOKEN_COLUMNS: Final = ("id", "scopes", "channel_id", "last_used_at")
_MERCHANT, _CHANNEL, _PAYMENT = _names(Merchant), _names(Channel), _names(Payment)
_JSON: Final = {
    model: frozenset(field.attname for field in model._meta.concrete_fields if isinstance(field, models.JSONField))
    for model in (Channel, Payment)
}
_FROM: Final = """
FROM gateway_accesstoken t
JOIN gateway_merchant m ON m.id = t.merchant_id AND m.active
LEFT JOIN gateway_channel c ON c.id = %(entity)s::uuid AND c.merchant_id = m.id AND c.active
"""
_WHERE: Final = """
WHERE t.digest = %(digest)s AND t.revoked_at IS NULL AND (t.ends_at IS NULL OR t.ends_at > %(now)s)
"""
_SELECT: Final = "SELECT {}, {}, {}".format(
    ", ".join(f"t.{name}" for name in _TOKEN_COLUMNS), _columns(Merchant, "m"), _columns(Channel, "c")
)
ADMIT: Final = _SELECT + _FROM + _WHERE
# The payment's scope is the entity that asks: a channel sees its own payments, a merchant all of them.
ADMIT_AND_READ: Final = (
    f"{_SELECT}, {_columns(Payment, 'p')}{_FROM}"
    "LEFT JOIN gateway_payment p ON p.id = %(payment)s::uuid AND p.merchant_id = m.id"
    " AND (p.channel_id = c.id OR m.id = %(entity)s::uuid)" + _WHERE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Who came in. ``channel`` is None when the merchant's own id was sent (dispatching) or no entity at all;
    ``entity`` is None only when none was sent. ``payment``: what a read asked for, if it is this entity's."""

    token: UUID
    merchant: Merchant
    channel: Channel | None
    entity: UUID | None
    payment: Payment | None


def bearer(header: str | None) -> str:
    """The token out of an Authorization header. Turns away with 401 what is missing or malformed."""
    if header is None:
        raise Turned(401, BAD_CREDENTIALS, "send Authorization: Bearer <access token>", headers=CHALLENGE)
    found = _BEARER.fullmatch(header)
    if not found:
        raise Turned(
            401, BAD_CREDENTIALS, "malformed; it must be: Bearer, one space, the access token",
            headers={"WWW-Authenticate": 'Bearer realm="Tollhouse", error="invalid_request"'},
        )  # fmt: skip
    return found[1]


def entity_of(text: str | None) -> UUID | None:
    """An entityId as it must look, or None; the catalogue says what is wrong with it."""
    return UUID(text) if text is not None and _ENTITY.fullmatch(text) else None


def admit(
    token: str, entity: UUID | None, scope: str, *, payment: UUID | None = None, reads: bool = False, ip: str | None
) -> Admission:
    """Let in who may come in, or turn away with 403. ``reads``: fetch ``payment`` in the same statement."""
    now = clock.real()
    rows = _ask(
        ADMIT_AND_READ if reads else ADMIT,
        {"digest": digest(token), "entity": entity, "now": now, **({"payment": payment} if reads else {})},
    )
    if not rows:
        raise Turned(403, BAD_CREDENTIALS, "this access token is unknown, has ended or was revoked")
    row = rows[0]
    token_id, scopes, bound_to, last_used = row[:4]
    at = len(_TOKEN_COLUMNS)
    merchant = Merchant.from_db("default", _MERCHANT, row[at : at + len(_MERCHANT)])
    at += len(_MERCHANT)
    channel = None
    if row[at] is not None:
        channel = _loaded(Channel, _CHANNEL, row[at : at + len(_CHANNEL)])
        channel.merchant = merchant
    if entity is not None:
        as_merchant = channel is None and merchant.dispatching and entity == merchant.id
        if (channel is None and not as_merchant) or (bound_to is not None and bound_to != entity):
            raise Turned(403, BAD_CREDENTIALS, "this access token does not speak for that entityId")
    if scope not in scopes:
        raise Turned(403, BAD_CREDENTIALS, f"this access token lacks the scope {scope}")
    if last_used is None or now - last_used > LAST_USE_EVERY:
        AccessToken.objects.filter(pk=token_id).update(last_used_at=now, last_used_ip=ip)
    found = None
    if reads:
        at += len(_CHANNEL)
        if row[at] is not None and entity is not None:
            found = _loaded(Payment, _PAYMENT, row[at:])
    return Admission(token=token_id, merchant=merchant, channel=channel, entity=entity, payment=found)


def _ask(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The first statement of a request: on a connection that died since the last one it is asked once more."""
    try:
        return execute(sql, values)
    except (OperationalError, InterfaceError):
        if connection.in_atomic_block:
            raise
        connection.close()
        return execute(sql, values)


def _loaded(model: Any, names: list[str], values: tuple[Any, ...]) -> Any:
    """A model out of its columns. Django leaves JSON as text on its connections, to decode it field by field."""
    decoded = [
        json.loads(value) if isinstance(value, str) and name in _JSON[model] else value
        for name, value in zip(names, values, strict=True)
    ]
    return model.from_db("default", names, decoded)


# --- throttling ---------------------------------------------------------------------------------------------------

# One statement, so that the count is exact under any number of threads and processes.
_COUNT: Final = """
INSERT INTO gateway_throttlewindow (entity_id, operation, window_s, "window", count)
VALUES (%(entity)s, %(operation)s, %(window_s)s, %(window)s, 1)
ON CONFLICT (entity_id, operation, window_s, "window") DO UPDATE SET count = gateway_throttlewindow.count + 1
RETURNING count
"""


def limit_of(channel: Channel | None, operation: str) -> tuple[int, int] | None:
    """(requests, window in seconds) for an operation of a channel, or None: unlimited."""
    limits = channel.limits if channel is not None else {}
    for key in (operation, "*"):
        if key in limits:
            limit = limits[key]
            return None if limit is None else (limit["limit"], limit["window_s"])
    if settings.GATEWAY_THROTTLE_LIMIT == 0:
        return None
    return settings.GATEWAY_THROTTLE_LIMIT, settings.GATEWAY_THROTTLE_WINDOW_S


def throttle(entity: UUID, channel: Channel | None, operation: str, now: datetime) -> dict[str, str]:
    """Count this request and return the rate headers. Turns away with 429 (or as the settings say) above the limit."""
    limit = limit_of(channel, operation)
    if limit is None:
        return {}
    most, window_s = limit
    seconds = now.timestamp()
    window = int(seconds // window_s)
    count: int = execute(_COUNT, {"entity": entity, "operation": operation, "window_s": window_s, "window": window})[0][
        0
    ]
    reset = max(1, math.ceil((window + 1) * window_s - seconds))
    headers = {
        "RateLimit-Limit": str(most),
        "RateLimit-Remaining": str(max(0, most - count)),
        "RateLimit-Reset": str(reset),
    }
    if count > most:
        raise Turned(
            settings.GATEWAY_THROTTLE_STATUS, THROTTLED, f"{most} per {window_s} s",
            headers={**headers, "Retry-After": str(reset)}, fields={"id": row_id().hex},
        )  # fmt: skip
    return headers
