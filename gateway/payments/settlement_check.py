"""What a reversal needs of settlement, which is a package above payments: which payments were settled.

reporting registers the function when it is loaded. Source: rulings, section 4 (RV before settlement).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured

SettlementCheck = Callable[[Collection[UUID]], set[UUID]]
"""A function that gives the payments that a settlement record is matched with."""

_registered: Final[list[SettlementCheck]] = []


def register_settlement_check(check: SettlementCheck) -> None:
    """Register the function of the package of settlement, in place of the one registered before."""
    _registered[:] = [check]


def find_settled_payments(payments: Collection[UUID]) -> set[UUID]:
    """The payments among ``payments`` that a settlement file reports as settled. Raises ImproperlyConfigured without a
    registered function."""
    if not _registered:
        raise ImproperlyConfigured("reporting is not among INSTALLED_APPS")
    return _registered[0](payments)
