"""Network tokens as rows: which stored cards have one, whether it can be paid with, what answers show of it.

Calls of the token service are in gateway.payments.network_tokens. Source: docs/decisions/0126.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from gateway.connectors.token_services import load_token_service
from gateway.core import brands, clock, identifiers
from gateway.core.card_number import is_card_expired
from gateway.models import Channel, NetworkToken, Registration

_DEVICE_NUMBER: Final = "DPAN"


def is_tokenizable(brand: str, card: Mapping[str, Any], *, wallet: bool) -> bool:
    """Whether a stored card may have a network token: not a wallet's, whose number is one already. ``card``: its public
    details."""
    return brands.is_card_brand(brand) and card.get("numberType") != _DEVICE_NUMBER and not wallet


def wants_network_tokens(channel: Channel) -> bool:
    """Whether stored cards of the channel get network tokens: it is set, and there is a token service."""
    return channel.network_tokens and load_token_service() is not None


def build_token_row(registration: UUID, at: datetime) -> dict[str, Any]:
    """The columns of a token that is asked for. ``at``: the merchant's clock."""
    return {
        "id": identifiers.row_id(),
        "registration_id": registration,
        "status": NetworkToken.Status.REQUESTED,
        "due_at": clock.real_now(),
        "changed_at": at,
    }


def is_token_usable(row: NetworkToken | None, now: datetime) -> bool:
    """Whether a payment can be sent with the token. ``now``: the merchant's clock."""
    return (
        row is not None
        and row.status == NetworkToken.Status.ACTIVE
        and row.number_sealed is not None
        and not is_card_expired(row.expiry_month, row.expiry_year, now)
    )


def has_usable_token(registration: Registration, now: datetime) -> bool:
    """Whether the registration's card can be charged by its network token, whatever the date on the card."""
    if not wants_network_tokens(registration.channel):
        return False
    return is_token_usable(get_network_token(registration), now)


def get_network_token(registration: Registration) -> NetworkToken | None:
    """The registration's network token, or None; without a query where it was read with the registration."""
    found: NetworkToken | None = getattr(registration, "network_token", None)
    return found


def render_network_token(row: NetworkToken) -> dict[str, str]:
    """A token as answers and webhooks show it: its state and last digits, never its number."""
    shown = {"last4Digits": row.last4, "expiryMonth": row.expiry_month, "expiryYear": row.expiry_year}
    return {"status": row.status, **{name: value for name, value in shown.items() if value}}


def render_stored_token(registration: Registration) -> dict[str, Any]:
    """``networkToken`` of a registration's answers; empty where it has none."""
    row = get_network_token(registration)
    return {"networkToken": render_network_token(row)} if row is not None else {}
