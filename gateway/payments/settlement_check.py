"""What a reversal needs of settlement, which is a package above payments: which payments were settled.

reporting registers the function when it is loaded. Source: rulings, section 4 (RV before settlement).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final
from uuid import UUID

from gateway.core.hook import Hook

SettlementCheck = Callable[[Collection[UUID]], set[UUID]]
"""A function that gives the payments that a settlement record is matched with."""

SETTLEMENT_CHECK: Final[Hook[SettlementCheck]] = Hook("reporting")


def find_settled_payments(payments: Collection[UUID]) -> set[UUID]:
    """The payments among ``payments`` that a settlement file reports as settled."""
    return SETTLEMENT_CHECK.get()(payments)
