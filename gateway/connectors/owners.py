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

from gateway.connectors.accounts import account_of, undecided_at
from gateway.connectors.port import Connector, Sees
from gateway.models import AcquirerAccount, Payment
from gateway.secret import Secret
from gateway.vault import VaultError

KEPT_S: Final = 60.0
"""From asking to saving."""
MOST_KEPT: Final = 1_000


class Owner(enum.StrEnum):
    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


log = structlog.get_logger(__name__)
_Key = tuple[UUID, str]
_said: dict[_Key, tuple[float, Owner]] = {}
_lock = threading.Lock()


def is_asked(connector: Connector, given: Mapping[str, str]) -> bool:
    """Whether one of the new secrets ``given`` says who is asked, and the connector can tell who that is."""
    names = {one.name for one in connector.settings if one.secret and one.place}
    return bool(names & set(given)) and getattr(connector, "sees", None) is not None


def ask(connector: Connector, row: AcquirerAccount, given: Mapping[str, str]) -> None:
    """Ask with the new secrets, where payments of the account are undecided. Talks to the processor: no transaction may
    be open that others wait for."""
    if not is_asked(connector, given) or not undecided_at(row):
        return
    said = _asked(connector, row, given)
    with _lock:
        if len(_said) >= MOST_KEPT:
            _said.clear()
        _said[_key(row, given)] = (time.monotonic() + KEPT_S, said)


def owner_of(row: AcquirerAccount, given: Mapping[str, str]) -> Owner:
    """What asking found out."""
    until, said = _said.get(_key(row, given), (0.0, Owner.UNKNOWN))
    return said if until > time.monotonic() else Owner.UNKNOWN


def _asked(connector: Connector, row: AcquirerAccount, given: Mapping[str, str]) -> Owner:
    of_account = Payment.objects.filter(
        channel=row.channel_id, connector=row.connector, account=row.acquirer_merchant_id
    ).exclude(connector_tx_id="")
    known = of_account.order_by("-created_at").values_list("connector_tx_id", flat=True).first()
    if known is None:
        return Owner.UNKNOWN
    try:
        account = account_of(connector, row)
    except VaultError as fault:
        # What new secrets leave as it was does not open: they cannot be used either.
        log.error("account_does_not_open", account=row.pk.hex, why=str(fault))
        return Owner.UNKNOWN
    secrets = {**account.secrets, **{name: Secret(text) for name, text in given.items()}}
    found = cast(Sees, connector).sees(replace(account, secrets=secrets), known)
    return {True: Owner.SAME, False: Owner.OTHER, None: Owner.UNKNOWN}[found]


def _key(row: AcquirerAccount, given: Mapping[str, str]) -> _Key:
    """Without the secrets themselves."""
    return row.pk, hashlib.sha256(json.dumps(sorted(given.items())).encode()).hexdigest()
