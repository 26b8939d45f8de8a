"""Reads the archive of payments, and brings a chain back where something is to be done with it.

What moves chains there is gateway.personal_data.payment_archiving. Source: docs/decisions/0130.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction

from gateway.db.statement import execute_sql
from gateway.models import Payment

MAX_LISTED_ARCHIVED: Final = 5_001
"""Archived payments that are read at once: one more than an answer lists."""

_READ: Final = """
SELECT p.*, a.archived_at FROM gateway_archivedpayment a
CROSS JOIN LATERAL jsonb_populate_record(NULL::gateway_payment, a.row) p
WHERE (%(merchant)s::uuid IS NULL OR a.merchant_id = %(merchant)s::uuid)
    AND (%(channel)s::uuid IS NULL OR a.channel_id = %(channel)s::uuid)
    AND {which}
ORDER BY a.id DESC LIMIT %(most)s
"""
_BY_ID: Final = _READ.format(which="a.id = %(id)s")
_BY_CHAINS: Final = _READ.format(which="a.chain = ANY(%(chains)s::uuid[])")
_BY_ORDER: Final = _READ.format(which="a.merchant_transaction_id = %(order)s AND a.merchant_transaction_id <> ''")
_BY_NUMBER: Final = _READ.format(which="a.number = %(number)s")

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

log = structlog.get_logger(__name__)


def find_archived_payment(ident: UUID | None, merchant: UUID | None, channel: UUID | None = None) -> Payment | None:
    """The archived payment of this merchant (None: of any; and channel) with ``archived_at`` set, not to be saved; None
    if there is none."""
    if ident is None:
        return None
    return next(iter(_read(_BY_ID, merchant, channel, id=ident)), None)


def list_archived_chain(payment: Payment, channel: UUID | None = None) -> list[Payment]:
    """The archived payments of the chain of ``payment``, newest first."""
    return list_archived_chains(payment.merchant_id, channel, [payment.chain])


def list_archived_chains(merchant: UUID, channel: UUID | None, chains: Sequence[UUID]) -> list[Payment]:
    """The archived payments of these chains, newest first, MAX_LISTED_ARCHIVED at most."""
    return _read(_BY_CHAINS, merchant, channel, chains=list(chains))


def list_archived_orders(merchant: UUID, channel: UUID | None, order: str) -> list[Payment]:
    """The archived payments with this merchantTransactionId, newest first, MAX_LISTED_ARCHIVED at most."""
    return _read(_BY_ORDER, merchant, channel, order=order)


def find_archived_number(merchant: UUID | None, channel: UUID | None, number: int) -> Payment | None:
    """The archived payment with the number of a short id."""
    return next(iter(_read(_BY_NUMBER, merchant, channel, number=number)), None)


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


def _read(statement: str, merchant: UUID | None, channel: UUID | None, **values: Any) -> list[Payment]:
    asked = {"merchant": merchant, "channel": channel, "most": MAX_LISTED_ARCHIVED, **values}
    return list(Payment.objects.raw(statement, asked))
