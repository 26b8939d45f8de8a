"""The risk score of a checkout before anybody pays: what its shopper looks like by the merchant's rules."""

from __future__ import annotations

from collections.abc import Mapping

from checkout.models import Checkout
from gateway import clock
from gateway.money import Money
from gateway.risk import records
from gateway.risk.fields import subject_of
from gateway.risk.screening import screen


def of(row: Checkout, prepared: Mapping[str, str]) -> int | None:
    """0 to 100 by the rule set that will screen the payment; None without one, or without an amount."""
    key = prepared.get("risk.channelId") or row.channel.risk_set
    if not key or "amount" not in prepared:
        return None
    now = clock.now(row.merchant)
    subject = subject_of(
        prepared, money=Money.parse(prepared["amount"], prepared["currency"]), brand=prepared.get("paymentBrand", ""),
        payment_type=prepared.get("paymentType", ""), now=now,
    )  # fmt: skip
    try:
        loaded = records.load(row.merchant_id, key, subject)
    except records.UnknownSet:
        return None
    signals = records.signals(loaded, subject, merchant=row.merchant, at=now, observed=False)
    return screen(loaded.rules, subject, signals).score
