"""An agreement's days are the merchant's: its last day, and the days between two authorizations, to the midnight.

Source: Part B, Card on file (expiry, frequency); docs/decisions/0015.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from gateway.models import Merchant
from gateway.payments.agreements import AgreementUse, find_agreement_violation

MIDNIGHT = {"UTC": 0, "Asia/Tokyo": 15, "America/Los_Angeles": 7}
"""Zone → the hour, in UTC, at which the 15th of May begins there: in Tokyo on the 14th."""


def refused(zone: str, expiry: date, now: datetime) -> bool:
    agreement_use = AgreementUse(agreement=None, counts_towards_limits=False, expiry=expiry, scheme_references={})
    return find_agreement_violation(agreement_use, Merchant(time_zone=zone), now) is not None


@pytest.mark.parametrize("zone", MIDNIGHT)
def test_the_last_day_ends_at_the_merchants_midnight(zone: str) -> None:
    midnight = datetime(2026, 5, 14 if zone == "Asia/Tokyo" else 15, MIDNIGHT[zone], tzinfo=UTC)
    before = midnight.replace(hour=(midnight.hour - 1) % 24, minute=59, second=59)
    if midnight.hour == 0:
        before = before.replace(day=midnight.day - 1)
    assert not refused(zone, date(2026, 5, 14), before)
    assert refused(zone, date(2026, 5, 14), midnight)
    assert not refused(zone, date(2026, 5, 15), midnight)
