"""Chains of payments that are not in the database, for tests of what may follow what."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gateway.core import identifiers
from gateway.models import Payment, Status
from gateway.payments.chain_amounts import Chain


def first(kind: str, amount: str = "100.00", **values: Any) -> Payment:
    """A first payment, approved unless ``status`` says otherwise."""
    ident = identifiers.row_id()
    return _payment(ident, kind, amount, chain=ident, referenced=None, **values)


def after(payment: Payment, kind: str, amount: str = "100.00", **values: Any) -> Payment:
    """A follow-up of ``payment``."""
    return _payment(identifiers.row_id(), kind, amount, chain=payment.chain, referenced=payment.id, **values)


def chain(*members: Payment) -> Chain:
    return Chain(list(members))


def _payment(ident: Any, kind: str, amount: str, **values: Any) -> Payment:
    status = values.pop("status", Status.APPROVED)
    approved = values.pop("approved", amount if status == Status.APPROVED else None)
    return Payment(
        id=ident,
        payment_type=kind,
        amount=Decimal(amount),
        approved_amount=Decimal(approved) if approved is not None else None,
        status=status,
        **{"currency": "EUR", "brand": "VISA", "method": "CC", **values},
    )
