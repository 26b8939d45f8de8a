"""Whether a secret that replaces another is of the same account at the processor.

A key says who is asked as much as a host does: one of another account knows nothing of a payment in doubt, says so, and
is believed. So where an account has undecided payments, a connector that can tell (``sees``) is asked with the new
secrets about a payment that has its answer. It is asked before the transaction that saves them, which looks here for
what it said.
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
"""From asking to saving."""
MAX_CACHED_OWNERSHIPS: Final = 1_000


class AccountOwnership(enum.StrEnum):
    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


log = structlog.get_logger(__name__)
_Key = tuple[UUID, str]
_said: dict[_Key, tuple[float, AccountOwnership]] = {}
_lock = threading.Lock()


def needs_ownership_check(connector: Connector, given: Mapping[str, str]) -> bool:
    """Whether one of the new secrets ``given`` says who is asked, and the connector can tell who that is."""
    names = {one.name for one in connector.settings if one.secret and one.place}
    return bool(names & set(given)) and getattr(connector, "sees", None) is not None


def check_ownership(connector: Connector, row: AcquirerAccount, given: Mapping[str, str]) -> None:
    """Ask with the new secrets, where payments of the account are undecided. Talks to the processor: no transaction may
    be open that others wait for."""
    if not needs_ownership_check(connector, given) or not count_undecided_payments(row):
        return
    said = _asked(connector, row, given)
    with _lock:
        if len(_said) >= MAX_CACHED_OWNERSHIPS:
            _said.clear()
        _said[_key(row, given)] = (time.monotonic() + OWNERSHIP_CACHE_S, said)


def find_ownership(row: AcquirerAccount, given: Mapping[str, str]) -> AccountOwnership:
    """What asking found out."""
    until, said = _said.get(_key(row, given), (0.0, AccountOwnership.UNKNOWN))
    return said if until > time.monotonic() else AccountOwnership.UNKNOWN


def _asked(connector: Connector, row: AcquirerAccount, given: Mapping[str, str]) -> AccountOwnership:
    of_account = Payment.objects.filter(
        channel=row.channel_id, connector=row.connector, account=row.acquirer_merchant_id
    ).exclude(connector_tx_id="")
    known = of_account.order_by("-created_at").values_list("connector_tx_id", flat=True).first()
    if known is None:
        return AccountOwnership.UNKNOWN
    try:
        account = connector_account_from_row(connector, row)
    except VaultError as fault:
        # What new secrets leave as it was does not open: they cannot be used either.
        log.error("account_does_not_open", account=row.pk.hex, why=str(fault))
        return AccountOwnership.UNKNOWN
    secrets = {**account.secrets, **{name: Secret(text) for name, text in given.items()}}
    found = cast(AccountProbe, connector).sees(replace(account, secrets=secrets), known)
    return {True: AccountOwnership.SAME, False: AccountOwnership.OTHER, None: AccountOwnership.UNKNOWN}[found]


def _key(row: AcquirerAccount, given: Mapping[str, str]) -> _Key:
    """Without the secrets themselves."""
    return row.pk, hashlib.sha256(json.dumps(sorted(given.items())).encode()).hexdigest()
