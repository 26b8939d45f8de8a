"""Erases stored accounts whose retention period has ended, in the same way as a deletion does.

Such a registration can no longer be used or extended (100.150.206); its row stays without an account, so that its
payments and agreements can be read. The clock is the merchant's. Source: Part B, Tokenization and registration.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from gateway.core import clock
from gateway.db.statement import execute_in_batches
from gateway.models import NetworkToken
from gateway.timers.registry import Timer

ERASURE_DELAY: Final = timedelta(days=1)
"""Erase so long after the end of the period: an extension in its last moment has certainly been written by then."""
ERASURE_BATCH_SIZE: Final = 1_000
MAX_ERASURE_ROUNDS: Final = 10

# The first condition uses the index, with the merchant clock that is furthest ahead.
_ERASE: Final = """
WITH ended AS MATERIALIZED (
    SELECT r.id FROM gateway_registration r JOIN gateway_merchant m ON m.id = r.merchant_id
    WHERE r.retain_until <= %(limit)s + (SELECT greatest(max(clock_offset), interval '0') FROM gateway_merchant)
        AND r.retain_until <= %(limit)s + m.clock_offset AND r.means_sealed IS NOT NULL
    ORDER BY r.retain_until LIMIT %(most)s FOR UPDATE OF r SKIP LOCKED
)
UPDATE gateway_registration r SET means_sealed = NULL FROM ended WHERE r.id = ended.id
RETURNING r.id
"""


def erase_expired_registrations() -> int:
    """Erase accounts whose retention has ended; returns how many."""
    values = {"limit": clock.real_now() - ERASURE_DELAY}
    erased = execute_in_batches(_ERASE, values, most=ERASURE_BATCH_SIZE, rounds=MAX_ERASURE_ROUNDS)
    withdraw_unowned_tokens()
    return erased


def withdraw_unowned_tokens() -> int:
    """Have network tokens deleted whose card is no longer stored, for its retention or for its holder; returns how
    many."""
    unowned = NetworkToken.objects.filter(registration__means_sealed=None).exclude(status=NetworkToken.Status.DELETED)
    return unowned.update(status=NetworkToken.Status.DELETED, number_sealed=None, due_at=clock.real_now())


TIMER: Final = Timer(
    name="retention",
    run=erase_expired_registrations,
    every_s=3600.0,
    about="Erase stored accounts a day after their retention ended.",
)
