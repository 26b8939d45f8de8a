"""Loads acquirer accounts for connectors: their settings, and their secrets decrypted.

A connector without settings costs no statement. Other accounts are cached per process for a few seconds, so a changed
key takes effect soon without a restart.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Final, cast
from uuid import UUID

from gateway.connectors.port import (
    CaptureBatching,
    Connector,
    ConnectorAccount,
    DayCounting,
    ExemptionClaims,
    MessageNumbering,
    RenewalHolds,
    ReversedCaptureHolds,
)
from gateway.core.secret import Secret
from gateway.models import AcquirerAccount, OpenPayment, Suspension
from gateway.vault.sealing import VaultError, current_vault

ACCOUNT_CACHE_S: Final = 5.0
MAX_CACHED_ACCOUNTS: Final = 1_000

_Key = tuple[UUID, str, str]
_cache: dict[_Key, tuple[float, ConnectorAccount]] = {}
_lock = threading.Lock()


def _renew_lock() -> None:
    """Replace the lock after a fork: one that another thread held at that moment is never released."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def load_connector_account(connector: Connector, channel: UUID, merchant: str) -> ConnectorAccount:
    """The account ``merchant`` of a channel at a connector. A deleted account has no settings and no secrets.

    Raises VaultError when its secrets cannot be decrypted.
    """
    if not connector.settings:
        return ConnectorAccount(merchant=merchant, channel=channel)
    key = (channel, connector.name, merchant)
    found = _cache.get(key)
    if found is None or found[0] < time.monotonic():
        found = (time.monotonic() + ACCOUNT_CACHE_S, _read_account(connector, channel, merchant))
        with _lock:
            if len(_cache) >= MAX_CACHED_ACCOUNTS:
                _cache.clear()
            _cache[key] = found
    return found[1]


def assign_trace_number(connector: Connector | None, channel: UUID, merchant: str) -> int:
    """The number of a payment's message (:class:`MessageNumbering`); 0 for connectors whose messages have none, and
    where the account's secrets do not open: such a payment is declined when it is submitted."""
    if connector is None or getattr(connector, "take_trace_number", None) is None:
        return 0
    try:
        account = load_connector_account(connector, channel, merchant)
    except VaultError:
        return 0
    return cast(MessageNumbering, connector).take_trace_number(account)


def holds_renewals_apart(connector: Connector | None, channel: UUID, merchant: str) -> bool:
    """Whether an account's acquirer holds a renewal beside what it renews (:class:`RenewalHolds`). Raises
    VaultError."""
    if connector is None or getattr(connector, "holds_renewals_apart", None) is None:
        return False
    return cast(RenewalHolds, connector).holds_renewals_apart(load_connector_account(connector, channel, merchant))


def holds_reversed_captures(connector: Connector | None, channel: UUID, merchant: str) -> bool:
    """Whether an account's acquirer goes on holding what a reversed capture had taken (:class:`ReversedCaptureHolds`);
    False where the account's secrets do not open."""
    if connector is None or getattr(connector, "holds_reversed_captures", None) is None:
        return False
    try:
        account = load_connector_account(connector, channel, merchant)
    except VaultError:
        return False
    return cast(ReversedCaptureHolds, connector).holds_reversed_captures(account)


def find_capture_arrival(connector: Connector | None, channel: UUID, merchant: str, at: datetime) -> datetime:
    """When a capture that is made at ``at`` reaches its acquirer (:class:`CaptureBatching`); ``at`` where captures do
    not wait, and where the account's secrets do not open: such a capture is refused before it is sent."""
    if connector is None or getattr(connector, "find_capture_arrival", None) is None:
        return at
    try:
        account = load_connector_account(connector, channel, merchant)
    except VaultError:
        return at
    return cast(CaptureBatching, connector).find_capture_arrival(account, at)


def find_day_zone(connector: Connector | None, channel: UUID, merchant: str) -> str:
    """The time zone in which an account's acquirer counts an authorization's days (:class:`DayCounting`); '' where it
    counts hours, and where the account's secrets do not open."""
    if connector is None or getattr(connector, "find_day_zone", None) is None:
        return ""
    try:
        return cast(DayCounting, connector).find_day_zone(load_connector_account(connector, channel, merchant))
    except VaultError:  # the authorization is approved, whatever its account's secrets; hours end earlier
        return ""


def claims_exemption(connector: Connector | None, exemption: str, brand: str) -> bool:
    """Whether a connector can claim an exemption without a proof (:class:`ExemptionClaims`); one that says nothing
    can."""
    if connector is None or getattr(connector, "claims_exemption", None) is None:
        return True
    return cast(ExemptionClaims, connector).claims_exemption(exemption, brand)


def clear_account_cache() -> None:
    """Empty this process's cache: every account is read from the database again."""
    with _lock:
        _cache.clear()


def count_undecided_payments(row: AcquirerAccount) -> int:
    """Number of an account's payments without a final answer: in recovery, or with the shopper at a redirect."""
    mine = {
        "payment__channel": row.channel_id,
        "payment__connector": row.connector,
        "payment__acquirer_merchant_id": row.acquirer_merchant_id,
    }
    away = Suspension.objects.filter(stage=Suspension.Stage.REDIRECT, **mine)
    return OpenPayment.objects.filter(**mine).count() + away.count()


def seal_connector_secrets(secrets: Mapping[str, str], row: UUID) -> bytes:
    """Encrypt an account's secrets for storage in its row ``row``."""
    return current_vault().seal(Secret(json.dumps(dict(secrets))), row)


def open_connector_secrets(row: AcquirerAccount) -> dict[str, Secret]:
    """Decrypt an account's secrets: setting name → secret. Raises VaultError."""
    if row.secrets_sealed is None:
        return {}
    held: dict[str, str] = json.loads(current_vault().open(row.secrets_sealed, row.id).reveal())
    return {name: Secret(text) for name, text in held.items()}


def _read_account(connector: Connector, channel: UUID, merchant: str) -> ConnectorAccount:
    rows = AcquirerAccount.objects.filter(channel=channel, connector=connector.name, acquirer_merchant_id=merchant)
    row = rows.first()
    if row is None:
        return ConnectorAccount(merchant=merchant, channel=channel)
    return connector_account_from_row(connector, row)


def connector_account_from_row(connector: Connector, row: AcquirerAccount) -> ConnectorAccount:
    """Build the connector's view of an account row. Raises VaultError when its secrets cannot be decrypted."""
    settings = {one.name: one.default for one in connector.settings if one.default and not one.secret}
    return ConnectorAccount(
        merchant=row.acquirer_merchant_id,
        channel=row.channel_id,
        settings=settings | row.settings,
        secrets=open_connector_secrets(row),
    )
