"""Erases the sealed account numbers of payments that are older than GATEWAY_PAYMENT_ACCOUNT_DAYS (PCI DSS 3.2.1).

Their fingerprints stay, so risk, velocities, disputes and "the same card" still work. What needs the number itself is
refused afterwards with 700.500.004: a rebill, and any follow-up at an acquirer that has to be sent the number again.
Payments' ids rise with time, so one position tells how far this has come and no index is needed.
Source: docs/decisions/0102.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings

from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.db.statement import execute_sql
from gateway.models import AccountErasurePosition
from gateway.timers.registry import Timer

ACCOUNT_ERASURE_BATCH: Final = 2_000
MAX_ACCOUNT_ERASURE_ROUNDS: Final = 50
"""Batches of one run: 100,000 payments; the next run continues."""

# The position moves with the rows that were looked at, whether or not they held a number. Of two runs at once one does
# what the other did, which changes nothing.
_ERASE: Final = """
WITH here AS MATERIALIZED (
    SELECT position FROM gateway_accounterasureposition WHERE id = 1
), old AS MATERIALIZED (
    SELECT p.id FROM gateway_payment p WHERE p.id > (SELECT position FROM here) AND p.id < %(limit)s
    ORDER BY p.id LIMIT %(most)s
), erased AS (
    UPDATE gateway_payment p SET means_sealed = NULL FROM old WHERE p.id = old.id AND p.means_sealed IS NOT NULL
    RETURNING 1
), forgotten AS (
    DELETE FROM gateway_paymenttoken t USING old WHERE t.payment_id = old.id
), moved AS (
    UPDATE gateway_accounterasureposition SET position = last.id
    FROM (SELECT id FROM old ORDER BY id DESC LIMIT 1) last WHERE gateway_accounterasureposition.id = 1 RETURNING 1
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM erased)
"""


def erase_old_accounts() -> int:
    """Erase the account numbers of payments past their days; returns how many."""
    limit = first_id_at(clock.real_now() - timedelta(days=settings.GATEWAY_PAYMENT_ACCOUNT_DAYS))
    AccountErasurePosition.objects.get_or_create(pk=1, defaults={"position": UUID(int=0)})
    erased = 0
    for _ in range(MAX_ACCOUNT_ERASURE_ROUNDS):
        seen, done = execute_sql(_ERASE, {"limit": limit, "most": ACCOUNT_ERASURE_BATCH})[0]
        erased += done
        if seen < ACCOUNT_ERASURE_BATCH:
            break
    return erased


TIMER: Final = Timer(
    name="payment accounts",
    run=erase_old_accounts,
    every_s=3600.0,
    about="Erase sealed account numbers of payments after GATEWAY_PAYMENT_ACCOUNT_DAYS.",
)
