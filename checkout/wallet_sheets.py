"""Test cards in a wallet's simulated sheet, in the test environment only.

The simulated sheet is used if no provider is configured; it returns a real token of the channel's test key, so
everything after it is an ordinary wallet payment. Source: Part A, What the service does, 5 and 9.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from django.conf import settings

from checkout.models import Checkout
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.wallets import sandbox_tokens
from gateway.wallets.formats import WALLET_FORMATS
from gateway.wallets.token_factory import PaymentSheet

SHEET_CARDS: Final = (("approved", "4200000000000000"), ("declined", "4000015200000008"))
"""Outcome → card of the simulator."""


def build_simulated_sheet(row: Checkout, code: str, amount: str | None, currency: str) -> list[dict[str, Any]]:
    """The cards of brand ``code``'s sheet: outcome, network, last digits, token. None in live, or without an amount."""
    wallet = PAYMENT_BRANDS[code].means
    if settings.IS_LIVE or not amount or wallet is None or wallet not in WALLET_FORMATS:
        return []
    form = WALLET_FORMATS[wallet][0]
    money = Money(amount=Decimal(amount), currency=currency)
    sandbox_tokens.generate_channel_keys(row.channel, form)
    return [
        {
            "outcome": outcome,
            "network": "VISA",
            "last4": number[-4:],
            "token": sandbox_tokens.build_channel_token(
                row.channel, wallet, form, PaymentSheet(number=Secret(number), money=money)
            ),
        }
        for outcome, number in SHEET_CARDS
    ]
