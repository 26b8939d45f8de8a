"""Checks that a replacement API secret belongs to the same processor account as the one it replaces.

A secret of another account would truthfully answer "unknown" about payments in doubt, and the gateway would void them.
So where an account has undecided payments, a connector with ``owns_transaction`` is first asked, with the new secrets,
about a payment that is already decided. The check runs before the transaction that saves the secrets; that transaction
reads the cached result here.
"""

from __future__ import annotations

import enum
import hashlib
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast
from uuid import UUID

import structlog

from gateway.connectors.accounts import connector_account_from_row, count_undecided_payments
from gateway.connectors.port import AccountProbe, Connector
from gateway.core.secret import Secret
from gateway.models import AcquirerAccount, Payment
from gateway.vault.sealing import VaultError

OWNERSHIP_CACHE_S: Final = 60.0
"""Seconds that a result is kept between the check and the saving."""
MAX_CACHED_OWNERSHIPS: Final = 1_000


class AccountOwnership(enum.StrEnum):
    """Result of a check: the same processor account, another one, or not known."""

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


log = structlog.get_logger(__name__)
_Key = tuple[UUID, str]
_results: dict[_Key, tuple[float, AccountOwnership]] = {}
_lock = threading.Lock()


def needs_ownership_check(connector: Connector, given: Mapping[str, str]) -> bool:
    """True if one of the new secrets ``given`` identifies the account and the connector can check it."""
    names = {one.name for one in connector.settings if one.secret and one.place}
    return bool(names & set(given)) and getattr(connector, "owns_transaction", None) is not None


def check_ownership(connector: Connector, row: AcquirerAccount, given: Mapping[str, str]) -> None:
    """Run the check with the new secrets and cache its result, if the account has undecided payments.

    Calls the processor, so no transaction with locks may be open.
    """
    if not needs_ownership_check(connector, given) or not count_undecided_payments(row):
        return
    said = _probe_account(connector, row, given)
    with _lock:
        if len(_results) >= MAX_CACHED_OWNERSHIPS:
            _results.clear()
        _results[_cache_key(row, given)] = (time.monotonic() + OWNERSHIP_CACHE_S, said)


def find_ownership(row: AcquirerAccount, given: Mapping[str, str]) -> AccountOwnership:
    """The cached result of the last check of these secrets; UNKNOWN when there is none."""
    until, said = _results.get(_cache_key(row, given), (0.0, AccountOwnership.UNKNOWN))
    return said if until > time.monotonic() else AccountOwnership.UNKNOWN


def _probe_account(connector: Connector, row: AcquirerAccount, given: Mapping[str, str]) -> AccountOwnership:
    of_account = Payment.objects.filter(
        channel=row.channel_id, connector=row.connector, acquirer_merchant_id=row.acquirer_merchant_id
    ).exclude(connector_tx_id="")
    known = of_account.order_by("-created_at").values_list("connector_tx_id", flat=True).first()
    if known is None:
        return AccountOwnership.UNKNOWN
    try:
        account = connector_account_from_row(connector, row)
    except VaultError as fault:
        # A secret that is not replaced cannot be decrypted, so the new ones cannot be used either.
        log.error("acquirer_secrets_unreadable", account=row.pk.hex, why=str(fault))
        return AccountOwnership.UNKNOWN
    secrets = {**account.secrets, **{name: Secret(text) for name, text in given.items()}}
    found = cast(AccountProbe, connector).owns_transaction(replace(account, secrets=secrets), known)
    return {True: AccountOwnership.SAME, False: AccountOwnership.OTHER, None: AccountOwnership.UNKNOWN}[found]


def _cache_key(row: AcquirerAccount, given: Mapping[str, str]) -> _Key:
    """Cache key: the secrets enter it only as a hash."""
    return row.pk, hashlib.sha256(json.dumps(sorted(given.items())).encode()).hexdigest()
