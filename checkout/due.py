"""What of a checkout falls due by itself: the secrets that were sealed in it go when it has ended.

Source: decisions, section 7; D3.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db.models import Min

from checkout.models import Checkout
from gateway import clock
from gateway.due import Timer
from gateway.models import Merchant
from gateway.rows import execute

BATCH: Final = 1_000
"""Checkouts of one statement, and of one run."""
_ERASE: Final = """
UPDATE checkout_checkout SET request_sealed = NULL WHERE id IN (
    SELECT c.id FROM checkout_checkout c JOIN gateway_merchant m ON m.id = c.merchant_id
    WHERE c.request_sealed IS NOT NULL AND c.expires_at <= %(now)s + m.clock_offset
    AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid) ORDER BY c.expires_at LIMIT %(most)s
    FOR UPDATE OF c SKIP LOCKED
) RETURNING 1"""


def erase_sealed(merchant: Merchant | None = None) -> int:
    """Erase what is sealed in checkouts that have ended by their merchant's clock; how many."""
    asked = {"now": clock.real(), "merchant": merchant.pk if merchant is not None else None, "most": BATCH}
    return len(execute(_ERASE, asked))


def next_ending(merchant: Merchant) -> datetime | None:
    """When the next of the merchant's checkouts with something sealed ends."""
    sealed = Checkout.objects.filter(merchant=merchant, request_sealed__isnull=False)
    found: datetime | None = sealed.aggregate(next=Min("expires_at"))["next"]
    return found


SECRETS: Final = Timer(
    name="checkout expiry", about="Erase the secrets of checkouts that have ended.", run=erase_sealed,
    next_at=next_ending, every_s=60.0,
)  # fmt: skip
