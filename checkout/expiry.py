"""Timer: erases the sealed secrets of checkouts that have ended, and deletes checkouts without a payment attempt.

Source: decisions, section 7; ruling D3; docs/decisions/0083.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from checkout.models import Checkout
from gateway.db.statement import execute_in_batches
from gateway.models import Merchant
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest
from gateway.timers.registry import MerchantTimer, interval_sql

EXPIRY_BATCH_SIZE: Final = 1_000
"""Checkouts per statement."""
MAX_EXPIRY_BATCHES: Final = 10
"""Statements of each kind in one run, so that 167 checkouts a second are kept up with."""
_ERASE: Final = f"""
WITH ended AS MATERIALIZED (
    SELECT c.id FROM checkout_checkout c JOIN gateway_merchant m ON m.id = c.merchant_id
    WHERE c.request_sealed IS NOT NULL AND {due_sql("c.expires_at")}
    ORDER BY c.expires_at LIMIT %(most)s FOR UPDATE OF c SKIP LOCKED
)
UPDATE checkout_checkout c SET request_sealed = NULL FROM ended WHERE c.id = ended.id RETURNING 1"""  # noqa: S608 - a constant

UNUSED_CHECKOUT_RETENTION: Final = timedelta(days=1)
"""How long a checkout of a payment link is kept after its end when no payment was tried: whoever opens a link makes
one."""
ABANDONED_CHECKOUT_RETENTION: Final = timedelta(days=400)
"""How long any other checkout is kept after its end when no payment was tried: a year can be compared with the one
before."""
_DELETE_UNUSED: Final = """
WITH unused AS MATERIALIZED (
    SELECT c.id FROM checkout_checkout c JOIN gateway_merchant m ON m.id = c.merchant_id
    WHERE c.link_id IS {link} AND c.attempts = 0
      AND c.expires_at <= %(now)s + m.clock_offset - %(retention)s::interval
    AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid) ORDER BY c.expires_at LIMIT %(most)s
    FOR UPDATE OF c SKIP LOCKED
)
DELETE FROM checkout_checkout c USING unused WHERE c.id = unused.id RETURNING 1"""


def erase_expired_secrets(merchant: Merchant | None = None) -> int:
    """Erase sealed values of checkouts that have ended by their merchant's clock, and delete unused ones past their
    retention. Returns how many of both."""
    asked = bind_run(merchant)
    statements = [(_ERASE, asked)]
    for link, retention in (("NOT NULL", UNUSED_CHECKOUT_RETENTION), ("NULL", ABANDONED_CHECKOUT_RETENTION)):
        statements.append((_DELETE_UNUSED.format(link=link), asked | {"retention": retention}))
    return sum(
        execute_in_batches(sql, values, most=EXPIRY_BATCH_SIZE, rounds=MAX_EXPIRY_BATCHES) for sql, values in statements
    )


def next_checkout_expiry(merchant: Merchant) -> datetime | None:
    """When the next of the merchant's checkouts with sealed values ends."""
    return find_earliest(Checkout.objects.filter(merchant=merchant, request_sealed__isnull=False), "expires_at")


CHECKOUT_EXPIRY_TIMER: Final = MerchantTimer(
    name="checkout expiry",
    about="Erase the secrets of checkouts that have ended.",
    run=erase_expired_secrets,
    next_at=next_checkout_expiry,
    every_s=60.0,
    earliest_due=f"""
        SELECT least(
            (SELECT min(expires_at) FROM checkout_checkout WHERE request_sealed IS NOT NULL),
            (SELECT min(expires_at) + {interval_sql(UNUSED_CHECKOUT_RETENTION)} FROM checkout_checkout
                WHERE attempts = 0 AND link_id IS NOT NULL),
            (SELECT min(expires_at) + {interval_sql(ABANDONED_CHECKOUT_RETENTION)} FROM checkout_checkout
                WHERE attempts = 0 AND link_id IS NULL))""",  # noqa: S608 - a constant
)
