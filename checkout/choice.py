"""Which brands a checkout offers its shopper, and why not the others.

What the page asks for, what the channel takes, what an acquirer is there for, and the merchant's offer rules.
Source: Part A, What the service does, 8 (Active Payment Method Selection).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from django.conf import settings
from django.db.models import Q

from checkout import score, session
from checkout.form import OVERRIDE
from checkout.models import Checkout, OfferRule
from checkout.offers import Offer, Rule, Shopper, offer
from checkout.providers import providers_of
from gateway import brands
from gateway.brands import Brand
from gateway.catalogue.parse import ParameterError
from gateway.connectors.routing import INTERNAL, could_take, table_of
from gateway.connectors.rules import Facts
from gateway.payments.endings import REGISTER
from gateway.payments.refusal import (
    BRAND_NOT_SET_UP,
    Refused,
    refuse_type,
    refuse_unknown_brand,
    refuse_what_begins_nothing,
)
from gateway.payments.request import PaymentRequest

KINDS: Final[Mapping[str | None, str]] = {
    "card": "card",
    "bankAccount": "bank",
    "virtualAccount": "virtual",
    "wallet1": "wallet1",
    "wallet2": "wallet2",
    "wallet3": "wallet3",
}
_MEANS: Final = {"wallet1": "card", "wallet2": "card", "wallet3": "card"}
"""What acquirers get of a wallet's brand."""
_BY_SCORE: Final = ("scoreAtLeast", "scoreBelow")
STORABLE: Final = frozenset({"card", "bank", "virtual"})
NOT_OF_CHANNEL: Final = "The channel does not take this brand."
NOT_HERE: Final = "The form cannot take this brand."
NO_ACCOUNT: Final = "No acquirer account takes this brand in this currency."
NOT_STORED: Final = "Accounts of this brand cannot be stored."
UNKNOWN: Final = "No such brand."
ONLY: Final = "The checkout was created for another brand."
NO_PROVIDER: Final = "No provider is configured for this wallet (walletProviders)."


def kind_of(brand: Brand) -> str:
    """How the form shows a brand: card, bank, virtual, redirect, wallet1 … wallet3; '' for one it cannot take."""
    if brand.redirect:
        return "redirect"
    return KINDS.get(brand.means, "")


def choose(row: Checkout, wanted: Sequence[str]) -> Offer:
    """What is offered of ``wanted`` (a page's data-brands, in order); a brand nobody knows is hidden, too."""
    prepared = session.plain_values_of(row)
    asked = list(dict.fromkeys(wanted))
    hidden = {code: why for code in asked if (why := _shut(row, prepared, code))}
    rest = [code for code in asked if code not in hidden]
    if rest and _needs_account(prepared):
        table = table_of(row.channel_id)
        for code in rest:
            if not could_take(table, _facts(row, prepared, code)):
                hidden[code] = NO_ACCOUNT
        rest = [code for code in rest if code not in hidden]
    if settings.IS_LIVE and any(kind_of(brands.BRANDS[code]).startswith("wallet") for code in rest):
        # Live has no sheet of ours to stand in.
        there = providers_of(row.channel)
        for code in rest:
            if (kind := kind_of(brands.BRANDS[code])).startswith("wallet") and kind not in there:
                hidden[code] = NO_PROVIDER
        rest = [code for code in rest if code not in hidden]
    rules = rules_of(row) if rest else []
    found = offer(rest, rules, shopper_of(row, prepared, rules))
    _remember(row, found.hidden)
    return Offer(brands=found.brands, hidden={**hidden, **found.hidden})


def _shut(row: Checkout, prepared: Mapping[str, str], code: str) -> str:
    """Why a brand cannot be paid with here, whoever the shopper is; '' when it can."""
    brand = brands.brand(code)
    if brand is None:
        return UNKNOWN
    if row.channel.brands and code not in row.channel.brands:
        return NOT_OF_CHANNEL
    kind = kind_of(brand)
    if not kind:
        return NOT_HERE
    if row.kind == Checkout.Kind.REGISTRATION and kind not in STORABLE:
        return NOT_STORED
    return ONLY if prepared.get("paymentBrand", code) != code else ""


def _needs_account(prepared: Mapping[str, str]) -> bool:
    return settings.IS_LIVE or prepared.get("testMode", INTERNAL) != INTERNAL


def _facts(row: Checkout, prepared: Mapping[str, str], code: str) -> Facts:
    """What routing can know before the shopper has typed anything: not the card, and not what is asked for later."""
    amount, brand = prepared.get("amount"), brands.BRANDS[code]
    payment_type = prepared.get(f"{OVERRIDE}{code}]") or prepared.get("paymentType")
    registers = row.kind == Checkout.Kind.REGISTRATION
    return Facts(
        brand=code, currency="" if registers else prepared.get("currency", ""),
        amount=Decimal(amount) if amount else None, country=prepared.get("billing.country"),
        means=_MEANS.get(brand.means or "", brand.means), payment_type=REGISTER if registers else payment_type,
    )  # fmt: skip


def rules_of(row: Checkout) -> list[Rule]:
    """The offer rules of the checkout's channel and merchant, in their order."""
    rows = OfferRule.objects.filter(Q(channel=row.channel_id) | Q(channel=None), merchant=row.merchant_id, active=True)
    return [
        Rule(
            name=one.name, hides=one.action == OfferRule.Action.HIDE, brands=frozenset(one.brands),
            conditions=one.conditions, reason=one.reason,
        )
        for one in rows.order_by("position", "id")
    ]  # fmt: skip


def _remember(row: Checkout, hidden: Mapping[str, str]) -> None:
    """Keep with the checkout what the rules hid and why, for the clerk who is asked."""
    if dict(hidden) != row.hidden:
        row.hidden = dict(hidden)
        Checkout.objects.filter(pk=row.pk).update(hidden=row.hidden)


def shopper_of(row: Checkout, prepared: Mapping[str, str], rules: Sequence[Rule]) -> Shopper:
    """What the merchant told of the shopper, and the risk score of the checkout if one of ``rules`` asks for it."""
    scored = any(name in _BY_SCORE for rule in rules for name in rule.conditions)
    amount = prepared.get("amount")
    return Shopper(
        amount=Decimal(amount) if amount else None,
        currency=prepared.get("currency", ""),
        country=prepared.get("billing.country") or prepared.get("shipping.country") or "",
        email=prepared.get("customer.email", ""),
        status=prepared.get("customer.status", ""),
        score=score.of(row, prepared) if scored else None,
    )


def refuse_what_is_not_offered(row: Checkout, request: PaymentRequest) -> None:
    """Raise Refused (600.200.201) for a brand that a rule hides from this shopper, whatever the page drew."""
    rules = rules_of(row)
    if not rules:
        return
    hidden = offer([request.brand], rules, shopper_of(row, session.plain_values_of(row), rules)).hidden
    if hidden:
        error = ParameterError(
            name="paymentBrand", value=request.brand, message="is not offered in this checkout", code=BRAND_NOT_SET_UP
        )
        raise Refused(BRAND_NOT_SET_UP, [error])


def refuse_what_nobody_can_pay(values: Mapping[str, str]) -> None:
    """Raise Refused for a brand or a type that no shopper could pay with: else the merchant would read of a slip of the
    pen when the form is drawn, or the shopper when the button is pressed."""
    asked = {"paymentType": values.get("paymentBrand", "")}
    if asked["paymentType"]:
        refuse_unknown_brand(asked["paymentType"])
    for name in values:
        if name.startswith(OVERRIDE):
            asked[name] = name.removeprefix(OVERRIDE).removesuffix("]")
            refuse_unknown_brand(asked[name], name)
    for name, brand in asked.items():
        if name in values:
            refuse_what_begins_nothing(values[name], stored=False, name=name)
            if brand and (name != "paymentType" or f"{OVERRIDE}{brand}]" not in values):
                refuse_type(values[name], brand, name)
