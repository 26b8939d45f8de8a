"""Merchants' accounts at processors, as connectors need them: settings, and secrets opened to ask with.

A connector without settings costs no statement. Others are read once per process and kept for a few seconds, so that a
changed key is used soon without a restart.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from gateway.connectors.port import Connector, ConnectorAccount
from gateway.core.secret import Secret
from gateway.models import AcquirerAccount, OpenPayment, Suspension
from gateway.vault.sealing import current_vault

ACCOUNT_CACHE_S: Final = 5.0
MAX_CACHED_ACCOUNTS: Final = 1_000

_Key = tuple[UUID, str, str]
_kept: dict[_Key, tuple[float, ConnectorAccount]] = {}
_lock = threading.Lock()


def _renew() -> None:
    """A lock that another thread held at the fork is never let go."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew)


def load_connector_account(connector: Connector, channel: UUID, merchant: str) -> ConnectorAccount:
    """The account ``merchant`` of a channel at a connector. One that was deleted since has no settings and no secrets.

    Raises VaultError when its secrets do not open.
    """
    if not connector.settings:
        return ConnectorAccount(merchant=merchant, channel=channel)
    key = (channel, connector.name, merchant)
    found = _kept.get(key)
    if found is None or found[0] < time.monotonic():
        found = (time.monotonic() + ACCOUNT_CACHE_S, _read(connector, channel, merchant))
        with _lock:
            if len(_kept) >= MAX_CACHED_ACCOUNTS:
                _kept.clear()
            _kept[key] = found
    return found[1]


def clear_account_cache() -> None:
    """Read every account anew from now on, in this process."""
    with _lock:
        _kept.clear()


def count_undecided_payments(row: AcquirerAccount) -> int:
    """How many payments of an account have no answer yet: asked about by recovery, or with their shopper elsewhere."""
    mine = {
        "payment__channel": row.channel_id,
        "payment__connector": row.connector,
        "payment__account": row.acquirer_merchant_id,
    }
    away = Suspension.objects.filter(stage=Suspension.Stage.ELSEWHERE, **mine)
    return OpenPayment.objects.filter(**mine).count() + away.count()


def seal_connector_secrets(secrets: Mapping[str, str], row: UUID) -> bytes:
    """The secrets of an account as its row ``row`` keeps them."""
    return current_vault().seal(Secret(json.dumps(dict(secrets))), row)


def open_connector_secrets(row: AcquirerAccount) -> dict[str, Secret]:
    """The secrets an account's row keeps, by their settings' names. Raises VaultError."""
    if row.secrets_sealed is None:
        return {}
    held: dict[str, str] = json.loads(current_vault().open(row.secrets_sealed, row.id).reveal())
    return {name: Secret(text) for name, text in held.items()}


def _read(connector: Connector, channel: UUID, merchant: str) -> ConnectorAccount:
    rows = AcquirerAccount.objects.filter(channel=channel, connector=connector.name, acquirer_merchant_id=merchant)
    row = rows.first()
    if row is None:
        return ConnectorAccount(merchant=merchant, channel=channel)
    return connector_account_from_row(connector, row)


def connector_account_from_row(connector: Connector, row: AcquirerAccount) -> ConnectorAccount:
    """The account that a row keeps. Raises VaultError when its secrets do not open."""
    settings = {one.name: one.default for one in connector.settings if one.default and not one.secret}
    return ConnectorAccount(
        merchant=row.acquirer_merchant_id,
        channel=row.channel_id,
        settings=settings | row.settings,
        secrets=open_connector_secrets(row),
    )
