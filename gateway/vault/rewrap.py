"""Rewrapping: counts sealed values per vault key, and seals them again under the primary key.

Source: goals R8, R9 (docs/spec/goals.md).
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

from gateway.db.sessions import keep_session
from gateway.db.statement import execute_sql
from gateway.models import (
    AcquirerAccount,
    Authentication,
    BankOrder,
    BatchedCapture,
    FactorSecret,
    NetworkToken,
    Payment,
    PaymentToken,
    Registration,
    RiskListEntry,
    SepaMandate,
    SigningKey,
    Suspension,
    ThreeDSecureConfiguration,
    WalletKey,
    WebhookEndpoint,
)
from gateway.vault.sealing import SEALED_PREFIX_BYTES, Vault, VaultError, build_sealed_prefix, parse_key_id

REWRAP_BATCH: Final = 500
_LOCK: Final = 0x7661756C74
"""PostgreSQL advisory lock of a rewrap run: two at once would lock the same rows in different orders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedColumn:
    """A column of sealed values, each bound to its row's ``key``, and the column of their fingerprints ('' for values
    that are never looked up)."""

    model: type[models.Model]
    sealed: str
    fingerprint: str = ""
    key: str = "id"


SEALED_COLUMNS: Final = [
    SealedColumn(model=Payment, sealed="means_sealed", fingerprint="means_fingerprint"),
    SealedColumn(model=RiskListEntry, sealed="account_sealed", fingerprint="fingerprint"),
    SealedColumn(model=Registration, sealed="means_sealed"),
    SealedColumn(model=NetworkToken, sealed="number_sealed"),
    SealedColumn(model=PaymentToken, sealed="number_sealed", key="payment_id"),
    SealedColumn(model=Suspension, sealed="secrets_sealed", key="payment_id"),
    SealedColumn(model=WalletKey, sealed="key_sealed"),
    SealedColumn(model=SigningKey, sealed="private_sealed"),
    SealedColumn(model=Authentication, sealed="number_sealed"),
    SealedColumn(model=Authentication, sealed="proof_sealed"),
    SealedColumn(model=ThreeDSecureConfiguration, sealed="server_secret_sealed", key="channel_id"),
    SealedColumn(model=WebhookEndpoint, sealed="secret_sealed"),
    SealedColumn(model=WebhookEndpoint, sealed="previous_sealed"),
    SealedColumn(model=FactorSecret, sealed="sealed"),
    SealedColumn(model=AcquirerAccount, sealed="secrets_sealed"),
    SealedColumn(model=BankOrder, sealed="iban_sealed", key="payment"),
    SealedColumn(model=BatchedCapture, sealed="message_sealed", key="payment"),
    SealedColumn(model=SepaMandate, sealed="iban_sealed", fingerprint="iban_fingerprint"),
]
"""Every such column; an app above this one adds its own when it is loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrapProgress:
    """Rows so far: ``resealed``, and ``unopened`` (could not be decrypted, left unchanged)."""

    resealed: int
    unopened: int


class RewrapRunningError(Exception):
    """Another rewrap is running."""


def count_sealed_by_key() -> Counter[int | None]:
    """Key id → number of values it sealed; None counts values that no vault sealed."""
    return Counter({key: kinds.total() for key, kinds in count_sealed_by_key_and_kind().items()})


def count_sealed_by_key_and_kind() -> dict[int | None, Counter[str]]:
    """Key id → number of sealed values per kind: payments, wallet keys, second factors and so on."""
    counts: dict[int | None, Counter[str]] = {}
    for column in SEALED_COLUMNS:
        with translation.override(None):
            kind = str(column.model._meta.verbose_name_plural)
        rows = execute_sql(
            f"SELECT substring({column.sealed} FROM 1 FOR {SEALED_PREFIX_BYTES}), count(*) FROM {_table_name(column)}"
            f" WHERE {column.sealed} IS NOT NULL GROUP BY 1",
            {},
        )
        for prefix, number in rows:
            counts.setdefault(parse_key_id(prefix), Counter())[kind] += number
    return counts


def rewrap_sealed_values(vault: Vault, *, batch: int = REWRAP_BATCH) -> Iterator[RewrapProgress]:
    """Seal every value of another key again under ``vault``'s primary key and renew its fingerprint.

    A batch is one statement that changes a row only if it still is as it was read. Finished batches stay, so an
    interrupted run is simply started again. Yields after each batch. Raises RewrapRunningError.
    """
    resealed = unopened = 0
    with _lock_rewrap():
        for column in SEALED_COLUMNS:
            last = UUID(int=0)
            while rows := _read_batch(column, vault, last, batch):
                last = rows[-1][0]
                renewed = []
                for row, sealed in rows:
                    try:
                        secret = vault.open(sealed, row)
                    except VaultError:
                        unopened += 1
                        continue
                    renewed.append((row, sealed, vault.seal(secret, row), vault.fingerprint(secret)))
                resealed += _replace_values(column, renewed) if renewed else 0
                yield RewrapProgress(resealed=resealed, unopened=unopened)


def _read_batch(column: SealedColumn, vault: Vault, last: UUID, batch: int) -> list[tuple[Any, ...]]:
    return execute_sql(
        f"SELECT {column.key}, {column.sealed} FROM {_table_name(column)}"
        f" WHERE {column.key} > %(last)s AND {column.sealed} IS NOT NULL"
        f" AND substring({column.sealed} FROM 1 FOR {SEALED_PREFIX_BYTES}) <> %(prefix)s ORDER BY 1 LIMIT %(batch)s",
        {"last": last, "prefix": build_sealed_prefix(vault.primary), "batch": batch},
    )


def _replace_values(column: SealedColumn, renewed: list[tuple[UUID, bytes, bytes, bytes]]) -> int:
    rows, before, after, fingerprints = (list(part) for part in zip(*renewed, strict=True))
    renews = f", {column.fingerprint} = v.fingerprint" if column.fingerprint else ""
    done = execute_sql(
        f"UPDATE {_table_name(column)} t SET {column.sealed} = v.after{renews}"
        " FROM unnest(%(rows)s::uuid[], %(before)s::bytea[], %(after)s::bytea[], %(fingerprints)s::bytea[])"
        f" AS v(key, before, after, fingerprint) WHERE t.{column.key} = v.key AND t.{column.sealed} = v.before"
        " RETURNING 1",
        {"rows": rows, "before": before, "after": after, "fingerprints": fingerprints},
    )
    return len(done)


@contextmanager
def _lock_rewrap() -> Iterator[None]:
    with keep_session():
        if not execute_sql("SELECT pg_try_advisory_lock(%(lock)s)", {"lock": _LOCK})[0][0]:
            raise RewrapRunningError
        try:
            yield
        finally:
            if connection.is_usable():
                execute_sql("SELECT pg_advisory_unlock(%(lock)s)", {"lock": _LOCK})


def _table_name(column: SealedColumn) -> str:
    return f'"{column.model._meta.db_table}"'
