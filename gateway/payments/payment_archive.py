"""Reads the archive of payments, and brings a chain back where something is to be done with it.

What moves chains there is gateway.personal_data.payment_archiving. Source: docs/decisions/0130.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import JSONField

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import ArchivedPayment, Merchant, Payment

MIN_PAYMENT_HOT_DAYS: Final = 1_095
"""No payment is archived sooner, whatever is set: account numbers have gone by then, and no window of disputes,
velocities or compelling evidence reaches back so far."""
ARCHIVE_LOOK_INTERVAL_S: Final = 60.0
"""How often a process that archives nothing looks whether something was archived before."""
MAX_LISTED_ARCHIVED: Final = 5_001
"""Archived payments that are read at once: one more than an answer lists."""

_OWN_COLUMNS: Final = frozenset(
    {
        "id", "chain", "number", "merchant_id", "channel_id", "payment_type", "method", "merchant_transaction_id",
        "merchant_invoice_id", "created_at",
    }
)  # fmt: skip
"""Columns of payments that the archive has as columns."""
_OF_ENTITY: Final = """
WHERE (%(merchant)s::uuid IS NULL OR a.merchant_id = %(merchant)s::uuid)
    AND (%(channel)s::uuid IS NULL OR a.channel_id = %(channel)s::uuid)
    AND {which}
ORDER BY a.id DESC LIMIT %(most)s
"""
_READ: Final = f"""
SELECT p.*, a.archived_at FROM gateway_archivedpayment a
CROSS JOIN LATERAL jsonb_populate_record(NULL::gateway_payment, a.row) p
{_OF_ENTITY}"""  # noqa: S608 - its own words
_LIST: Final = f"""
SELECT {", ".join(f'a."{name}"' for name in sorted(_OWN_COLUMNS))}, a.archived_at FROM gateway_archivedpayment a
{_OF_ENTITY}"""  # noqa: S608 - its own columns
_BY_ID: Final = _READ.format(which="a.id = %(id)s")
_BY_IDS: Final = _READ.format(which="a.id = ANY(%(ids)s::uuid[])")
_BY_CHAIN: Final = _READ.format(which="a.chain = %(chain)s")
_LIST_CHAINS: Final = _LIST.format(which="a.chain = ANY(%(chains)s::uuid[])")
_LIST_ORDER: Final = _LIST.format(which="a.merchant_transaction_id = %(order)s AND a.merchant_transaction_id <> ''")
_BY_NUMBER: Final = _READ.format(which="a.number = %(number)s")
# By the reference alone: an index is looked into once, and not once for each merchant.
_BY_REFERENCE: Final = """
SELECT p.*, a.archived_at FROM gateway_archivedpayment a
CROSS JOIN LATERAL jsonb_populate_record(NULL::gateway_payment, a.row) p
WHERE (a.merchant_transaction_id = %(reference)s OR a.merchant_invoice_id = %(reference)s)
    AND (a.merchant_id = ANY(%(merchants)s::uuid[])) IS TRUE
ORDER BY a.id DESC LIMIT %(most)s
"""

# Two that bring the same chain back at once: the second waits for the first one's rows and leaves them as they are.
_INSERT_PAYMENTS: Final = """
INSERT INTO gateway_payment
SELECT p.* FROM gateway_archivedpayment a CROSS JOIN LATERAL jsonb_populate_record(NULL::gateway_payment, a.row) p
WHERE a.chain = %(chain)s ORDER BY a.id
ON CONFLICT (id) DO NOTHING
"""
_INSERT_EVENTS: Final = """
INSERT INTO gateway_paymentevent
SELECT e.* FROM gateway_archivedpayment a
CROSS JOIN LATERAL jsonb_populate_recordset(NULL::gateway_paymentevent, a.events) e
WHERE a.chain = %(chain)s
ON CONFLICT (payment_id, sequence) DO NOTHING
"""
# The states of chains were derived anew as the payments were written (docs/decisions/0076), but for this.
_RESTORE_EXPIRY: Final = """
UPDATE gateway_chainstate SET expired = true
WHERE chain_id = %(chain)s AND EXISTS (
    SELECT 1 FROM gateway_archivedpayment a WHERE a.chain = %(chain)s AND a.chain_expired
)
"""
_LEAVE_ARCHIVE: Final = "DELETE FROM gateway_archivedpayment WHERE chain = %(chain)s"

_PAYMENT_TABLE: Final = re.compile(r"\bgateway_payment\b")
ERASED_COLUMNS: Final = frozenset({"means_sealed", "email_key", "name_keys", "duplicate_guard"})
"""Columns of payments that are empty in the archive: what compares them does not read it."""
_UNARCHIVED: Final = "(SELECT h.*, false AS archived, NULL::timestamptz AS archived_at FROM gateway_payment h)"

log = structlog.get_logger(__name__)


class EarlierArchive:
    """Whether payments were archived before GATEWAY_PAYMENT_HOT_DAYS was set to 0, as a process remembers it."""

    def __init__(self) -> None:
        self._holds_payments = False
        self._look_at = 0.0

    def holds_payments(self) -> bool:
        """Looked up once in ARCHIVE_LOOK_INTERVAL_S."""
        if time.monotonic() >= self._look_at:
            self._holds_payments = ArchivedPayment.objects.exists()
            self._look_at = time.monotonic() + ARCHIVE_LOOK_INTERVAL_S
        return self._holds_payments


_EARLIER: Final = EarlierArchive()


def has_archive() -> bool:
    """Whether a payment may be in the archive. Where none is kept, nothing is looked for there: it costs nothing."""
    return bool(settings.GATEWAY_PAYMENT_HOT_DAYS) or _EARLIER.holds_payments()


def compute_hot_since(merchant: Merchant) -> datetime | None:
    """The merchant's time since which no payment can be archived; None where no archive is kept."""
    return clock.merchant_now(merchant) - timedelta(days=MIN_PAYMENT_HOT_DAYS) if has_archive() else None


def include_archive(statement: str) -> str:
    """The SQL statement, changed to read the archive's payments, too, wherever it reads ``gateway_payment``. Each such
    table has two more columns, ``archived`` and ``archived_at``. All of a chain is in one of both: a statement that
    compares ``archived`` where it joins a chain's members reads one of both for them."""
    return _PAYMENT_TABLE.sub(_build_payment_tables() if has_archive() else _UNARCHIVED, statement)


def find_archived_payment(ident: UUID | None, merchant: UUID | None, channel: UUID | None = None) -> Payment | None:
    """The archived payment of this merchant (None: of any; and channel) with ``archived_at`` set, not to be saved; None
    if there is none."""
    if ident is None:
        return None
    return next(iter(_read(_BY_ID, merchant, channel, id=ident)), None)


def list_archived_payments(ids: Sequence[UUID]) -> list[Payment]:
    """The archived ones of these payments of any merchant, newest first, MAX_LISTED_ARCHIVED at most."""
    return _read(_BY_IDS, None, None, ids=list(ids)) if ids else []


def list_archived_chain(payment: Payment, channel: UUID | None = None) -> list[Payment]:
    """The archived payments of the chain of ``payment``, newest first, MAX_LISTED_ARCHIVED at most."""
    return _read(_BY_CHAIN, payment.merchant_id, channel, chain=payment.chain)


def list_archived_chains(merchant: UUID, channel: UUID | None, chains: Sequence[UUID]) -> list[Payment]:
    """The archived payments of these chains, newest first, MAX_LISTED_ARCHIVED at most. They have only the columns that
    the archive has."""
    return _read(_LIST_CHAINS, merchant, channel, chains=list(chains))


def list_archived_orders(merchant: UUID, channel: UUID | None, order: str) -> list[Payment]:
    """The archived payments with this merchantTransactionId, as :func:`list_archived_chains` lists them."""
    return _read(_LIST_ORDER, merchant, channel, order=order)


def find_archived_number(merchant: UUID | None, channel: UUID | None, number: int) -> Payment | None:
    """The archived payment with the number of a short id."""
    return next(iter(_read(_BY_NUMBER, merchant, channel, number=number)), None)


def list_archived_references(merchants: Sequence[UUID], reference: str) -> list[Payment]:
    """The archived payments of these merchants with this merchantTransactionId or merchantInvoiceId, newest first,
    MAX_LISTED_ARCHIVED at most."""
    if not reference:
        return []
    return _read(_BY_REFERENCE, None, None, merchants=list(merchants), reference=reference)


def bring_chain_back(ident: UUID, merchant: UUID | None, channel: UUID | None = None) -> bool:
    """Move the chain of an archived payment back among the others, so that it can be followed up; False if there is
    none. It stays without what it lost on its way into the archive."""
    found = find_archived_payment(ident, merchant, channel)
    if found is None:
        return False
    with transaction.atomic():
        for statement in (_INSERT_PAYMENTS, _INSERT_EVENTS, _RESTORE_EXPIRY, _LEAVE_ARCHIVE):
            execute_sql(statement, {"chain": found.chain})
    log.info("chain_brought_back", chain=found.chain.hex)
    return True


@cache
def _build_payment_tables() -> str:
    """SQL: a table of all payments. Each half reads one table only, so that conditions reach its indexes."""
    hot: list[str] = []
    kept: list[str] = []
    for field in Payment._meta.concrete_fields:
        column, kind = str(field.column), field.db_type(connection)
        name = connection.ops.quote_name(column)
        hot.append(f"h.{name}")
        if column in _OWN_COLUMNS:
            kept.append(f"a.{name}")
        elif column in ERASED_COLUMNS:
            kept.append(f"NULL::{kind} AS {name}")
        elif isinstance(field, JSONField):
            kept.append(f"nullif(a.row -> '{column}', 'null') AS {name}")
        else:
            kept.append(f"(a.row ->> '{column}')::{kind} AS {name}")
    return (
        f"(SELECT {', '.join(hot)}, false AS archived, NULL::timestamptz AS archived_at"  # noqa: S608 - its columns
        f" FROM gateway_payment h UNION ALL SELECT {', '.join(kept)}, true AS archived, a.archived_at"
        " FROM gateway_archivedpayment a)"
    )


def _read(statement: str, merchant: UUID | None, channel: UUID | None, **values: Any) -> list[Payment]:
    if not has_archive():
        return []
    asked = {"merchant": merchant, "channel": channel, "most": MAX_LISTED_ARCHIVED, **values}
    return list(Payment.objects.raw(statement, asked))
