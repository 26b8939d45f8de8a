"""What the vault has sealed: how many rows each key holds, and sealing them anew under the primary key.

Source: design goals R8, R9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection, models
from django.utils import translation

from gateway.models import (
    AcquirerAccount,
    Authentication,
    BankOrder,
    BatchedCapture,
    FactorSecret,
    Payment,
    Registration,
    RiskListEntry,
    SepaMandate,
    Suspension,
    WalletKey,
    WebhookEndpoint,
)
from gateway.rows import execute
from gateway.vault import PREFIX_BYTES, Vault, VaultError, key_of, prefix_of

BATCH: Final = 500
_LOCK: Final = 0x7661756C74
"""PostgreSQL advisory lock of whoever seals anew: two at once would lock the same rows in different orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A column that holds sealed values, each bound to its row's ``key``, and the column of their fingerprints ('' for
    values that are never looked for)."""

    model: type[models.Model]
    sealed: str
    fingerprint: str = ""
    key: str = "id"


SEALED: Final = [
    Sealed(model=Payment, sealed="means_sealed", fingerprint="means_fingerprint"),
    Sealed(model=RiskListEntry, sealed="account_sealed", fingerprint="fingerprint"),
    Sealed(model=Registration, sealed="means_sealed"),
    Sealed(model=Suspension, sealed="secrets_sealed", key="payment_id"),
    Sealed(model=WalletKey, sealed="key_sealed"),
    Sealed(model=Authentication, sealed="number_sealed"),
    Sealed(model=Authentication, sealed="proof_sealed"),
    Sealed(model=WebhookEndpoint, sealed="secret_sealed"),
    Sealed(model=WebhookEndpoint, sealed="previous_sealed"),
    Sealed(model=FactorSecret, sealed="sealed"),
    Sealed(model=AcquirerAccount, sealed="secrets_sealed"),
    Sealed(model=BankOrder, sealed="iban_sealed", key="payment"),
    Sealed(model=BatchedCapture, sealed="message_sealed", key="payment"),
    Sealed(model=SepaMandate, sealed="iban_sealed", fingerprint="iban_fingerprint"),
]
"""Every such column; an app above this one adds its own when it is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """``resealed`` and ``unopened`` rows so far; ``unopened`` stay as they are."""

    resealed: int
    unopened: int


class ResealRunning(Exception):
    """Somebody else seals anew at this moment."""


def held() -> Counter[int | None]:
    """Key id → how many sealed values it holds; None counts what no vault has sealed."""
    return Counter({key: kinds.total() for key, kinds in held_by_kind().items()})


def held_by_kind() -> dict[int | None, Counter[str]]:
    """Key id → of what it holds how many sealed values: payments, wallet keys, second factors …"""
    found: dict[int | None, Counter[str]] = {}
    for column in SEALED:
        with translation.override(None):
            kind = str(column.model._meta.verbose_name_plural)
        rows = execute(
            f"SELECT substring({column.sealed} FROM 1 FOR {PREFIX_BYTES}), count(*) FROM {_table(column)}"
            f" WHERE {column.sealed} IS NOT NULL GROUP BY 1",
            {},
        )
        for prefix, number in rows:
            found.setdefault(key_of(prefix), Counter())[kind] += number
    return found


def reseal(vault: Vault, *, batch: int = BATCH) -> Iterator[Progress]:
    """Seal every value that another key holds under ``vault``'s primary key and renew its fingerprint.

    A batch is one statement that changes a row only if it still is as it was read; what is done stays done, so an
    interrupted run is simply run again. Yields after each batch. Raises ResealRunning.
    """
    resealed = unopened = 0
    with _alone():
        for column in SEALED:
            last = UUID(int=0)
            while rows := _next(column, vault, last, batch):
                last = rows[-1][0]
                renewed = []
                for row, sealed in rows:
                    try:
                        secret = vault.open(sealed, row)
                    except VaultError:
                        unopened += 1
                        continue
                    renewed.append((row, sealed, vault.seal(secret, row), vault.fingerprint(secret)))
                resealed += _replace(column, renewed) if renewed else 0
                yield Progress(resealed=resealed, unopened=unopened)


def _next(column: Sealed, vault: Vault, last: UUID, batch: int) -> list[tuple[Any, ...]]:
    return execute(
        f"SELECT {column.key}, {column.sealed} FROM {_table(column)}"
        f" WHERE {column.key} > %(last)s AND {column.sealed} IS NOT NULL"
        f" AND substring({column.sealed} FROM 1 FOR {PREFIX_BYTES}) <> %(prefix)s ORDER BY 1 LIMIT %(batch)s",
        {"last": last, "prefix": prefix_of(vault.primary), "batch": batch},
    )


def _replace(column: Sealed, renewed: list[tuple[UUID, bytes, bytes, bytes]]) -> int:
    rows, before, after, fingerprints = (list(part) for part in zip(*renewed, strict=True))
    renews = f", {column.fingerprint} = v.fingerprint" if column.fingerprint else ""
    done = execute(
        f"UPDATE {_table(column)} t SET {column.sealed} = v.after{renews}"
        " FROM unnest(%(rows)s::uuid[], %(before)s::bytea[], %(after)s::bytea[], %(fingerprints)s::bytea[])"
        f" AS v(key, before, after, fingerprint) WHERE t.{column.key} = v.key AND t.{column.sealed} = v.before"
        " RETURNING 1",
        {"rows": rows, "before": before, "after": after, "fingerprints": fingerprints},
    )
    return len(done)


@contextmanager
def _alone() -> Iterator[None]:
    if not execute("SELECT pg_try_advisory_lock(%(lock)s)", {"lock": _LOCK})[0][0]:
        raise ResealRunning
    try:
        yield
    finally:
        if connection.is_usable():
            execute("SELECT pg_advisory_unlock(%(lock)s)", {"lock": _LOCK})


def _table(column: Sealed) -> str:
    return f'"{column.model._meta.db_table}"'
