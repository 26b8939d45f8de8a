"""Questions for the pure functions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerRequest
from gateway.core.money import Money
from gateway.core.secret import Secret

PAYMENT = UUID("0193f5c8-7a00-7000-8000-000000000001")
CARD = Card(
    number=Secret("4242424242424242"), expiry_month="05", expiry_year="2034", holder="Jane Jones", cvv=Secret("987")
)


def asked(operation: str = "DB", amount: str = "92.00", currency: str = "EUR", **changes: Any) -> AcquirerRequest:
    values: dict[str, Any] = {
        "payment": PAYMENT,
        "operation": operation,
        "money": Money.parse(amount, currency),
        "brand": "VISA",
        "at": datetime(2026, 11, 21, tzinfo=UTC),
        "means": CARD,
    }
    return AcquirerRequest(**values | changes)
