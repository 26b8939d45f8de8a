"""The card network's brand of stored payments: what the networks' rules go by where a wallet's brand names none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from gateway.connectors.means import Card
from gateway.core.brands import detect_brand, is_card_brand
from gateway.models import Payment


def resolve_network_brand(brand: str, answer: Mapping[str, Any]) -> str:
    """The brand of the network of a first payment, from its ``answer``: of a wallet's, that of the card in it."""
    digits = "" if is_card_brand(brand) else answer.get("card", {}).get("bin", "")
    return (detect_brand(digits) if digits else None) or brand


def find_network_brand(payment: Payment) -> str:
    """The brand of the network of any payment. That of a wallet's follow-up costs a read: the card is its chain's."""
    if payment.means != Card.kind:
        return payment.brand
    if is_card_brand(payment.brand) or payment.referenced is None:
        return resolve_network_brand(payment.brand, payment.answer)
    firsts: QuerySet[Payment, Mapping[str, Any]] = Payment.objects.filter(pk=payment.chain).values_list(
        "answer", flat=True
    )
    return resolve_network_brand(payment.brand, firsts.first() or {})
