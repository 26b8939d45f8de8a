"""The risk score of a checkout before it is paid, by the merchant's risk rules."""

from __future__ import annotations

from collections.abc import Mapping

from checkout.models import Checkout
from gateway.core import clock
from gateway.core.money import Money
from gateway.risk import risk_store
from gateway.risk.evaluation import evaluate_rules
from gateway.risk.fields import build_risk_subject


def score_checkout(row: Checkout, prepared: Mapping[str, str]) -> int | None:
    """0 to 100 by the rule set that will screen the payment; None without one, or without an amount."""
    key = prepared.get("risk.channelId") or row.channel.risk_set
    if not key or "amount" not in prepared:
        return None
    now = clock.merchant_now(row.merchant)
    subject = build_risk_subject(
        prepared,
        money=Money.parse(prepared["amount"], prepared["currency"]),
        brand=prepared.get("paymentBrand", ""),
        payment_type=prepared.get("paymentType", ""),
        now=now,
    )
    try:
        loaded = risk_store.load_rule_set(row.merchant_id, key, subject)
    except risk_store.UnknownRuleSetError:
        return None
    signals = risk_store.load_signals(loaded, subject, merchant=row.merchant, at=now, observed=False)
    return evaluate_rules(loaded.rules, subject, signals).score
