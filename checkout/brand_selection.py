"""Selects the brands that a checkout offers its shopper, and explains the others.

Depends on the page's data-brands, the channel's brands, the acquirers behind them, and the merchant's offer rules.
Source: Part A, What the service does, 8 (Active Payment Method Selection).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from django.conf import settings
from django.db.models import Q

from checkout import risk_score, session
from checkout.form_parameters import OVERRIDE_TYPE_PREFIX
from checkout.models import Checkout, OfferRule
from checkout.offer_rules import BrandOffer, BrandRule, OfferShopper, apply_offer_rules
from checkout.wallet_providers import map_wallet_providers
from gateway.connectors.routing import INTERNAL, can_route_payment, load_routing_table
from gateway.connectors.routing_rules import RoutingFacts
from gateway.core import brands
from gateway.core.brands import Brand
from gateway.payments.payment_request import PaymentRequest
from gateway.payments.refusal import (
    BRAND_NOT_CONFIGURED_CODE,
    build_parameter_refusal,
    check_brand_known,
    check_brand_takes_type,
    check_first_payment_type,
)
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE

FORM_KIND_BY_MEANS: Final[Mapping[str | None, str]] = {
    "card": "card",
    "bankAccount": "bank",
    "virtualAccount": "virtual",
    "wallet1": "wallet1",
    "wallet2": "wallet2",
    "wallet3": "wallet3",
}
_MEANS: Final = {"wallet1": "card", "wallet2": "card", "wallet3": "card"}
"""The brand under which acquirers process a wallet."""
_BY_SCORE: Final = ("scoreAtLeast", "scoreBelow")
STORABLE_FORM_KINDS: Final = frozenset({"card", "bank", "virtual"})
REASON_NOT_OF_CHANNEL: Final = "The channel does not take this brand."
REASON_NOT_SUPPORTED: Final = "The form cannot take this brand."
REASON_NO_ACCOUNT: Final = "No acquirer account takes this brand in this currency."
REASON_NOT_STORABLE: Final = "Accounts of this brand cannot be stored."
REASON_UNKNOWN_BRAND: Final = "No such brand."
REASON_OTHER_BRAND: Final = "The checkout was created for another brand."
REASON_NO_WALLET_PROVIDER: Final = "No provider is configured for this wallet (walletProviders)."


def resolve_form_kind(brand: Brand) -> str:
    """How the form shows a brand: card, bank, virtual, redirect, wallet1 … wallet3; '' for one it cannot show."""
    if brand.redirect:
        return "redirect"
    return FORM_KIND_BY_MEANS.get(brand.means, "")


def select_brands(row: Checkout, wanted: Sequence[str]) -> BrandOffer:
    """The offered ones of ``wanted`` (a page's data-brands, in order); unknown brands are hidden, too."""
    prepared = session.load_plain_values(row)
    requested = list(dict.fromkeys(wanted))
    hidden = {code: why for code in requested if (why := _explain_not_payable(row, prepared, code))}
    rest = [code for code in requested if code not in hidden]
    if rest and _needs_account(prepared):
        table = load_routing_table(row.channel_id)
        for code in rest:
            if not can_route_payment(table, _build_routing_facts(row, prepared, code)):
                hidden[code] = REASON_NO_ACCOUNT
        rest = [code for code in rest if code not in hidden]
    if settings.IS_LIVE and any(resolve_form_kind(brands.PAYMENT_BRANDS[code]).startswith("wallet") for code in rest):
        # In live there is no simulated sheet as a fallback.
        there = map_wallet_providers(row.channel)
        for code in rest:
            if (kind := resolve_form_kind(brands.PAYMENT_BRANDS[code])).startswith("wallet") and kind not in there:
                hidden[code] = REASON_NO_WALLET_PROVIDER
        rest = [code for code in rest if code not in hidden]
    rules = list_offer_rules(row) if rest else []
    found = apply_offer_rules(rest, rules, build_offer_shopper(row, prepared, rules))
    _store_hidden_brands(row, found.hidden)
    return BrandOffer(brands=found.brands, hidden={**hidden, **found.hidden})


def _explain_not_payable(row: Checkout, prepared: Mapping[str, str], code: str) -> str:
    """Why a brand cannot be paid with here, for any shopper; '' if it can."""
    brand = brands.find_brand(code)
    if brand is None:
        return REASON_UNKNOWN_BRAND
    if row.channel.brands and code not in row.channel.brands:
        return REASON_NOT_OF_CHANNEL
    kind = resolve_form_kind(brand)
    if not kind:
        return REASON_NOT_SUPPORTED
    if row.kind == Checkout.Kind.REGISTRATION and kind not in STORABLE_FORM_KINDS:
        return REASON_NOT_STORABLE
    return REASON_OTHER_BRAND if prepared.get("paymentBrand", code) != code else ""


def _needs_account(prepared: Mapping[str, str]) -> bool:
    return settings.IS_LIVE or prepared.get("testMode", INTERNAL) != INTERNAL


def _build_routing_facts(row: Checkout, prepared: Mapping[str, str], code: str) -> RoutingFacts:
    """Facts for routing before the shopper has entered anything: no card data yet."""
    amount, brand = prepared.get("amount"), brands.PAYMENT_BRANDS[code]
    payment_type = prepared.get(f"{OVERRIDE_TYPE_PREFIX}{code}]") or prepared.get("paymentType")
    registers = row.kind == Checkout.Kind.REGISTRATION
    return RoutingFacts(
        brand=code,
        currency="" if registers else prepared.get("currency", ""),
        amount=Decimal(amount) if amount else None,
        country=prepared.get("billing.country"),
        means=_MEANS.get(brand.means or "", brand.means),
        payment_type=REGISTRATION_PAYMENT_TYPE if registers else payment_type,
        prepared=prepared,
    )


def list_offer_rules(row: Checkout) -> list[BrandRule]:
    """Offer rules of the checkout's channel and merchant, in their order."""
    rows = OfferRule.objects.filter(Q(channel=row.channel_id) | Q(channel=None), merchant=row.merchant_id, active=True)
    return [
        BrandRule(
            name=one.name,
            hides=one.action == OfferRule.Action.HIDE,
            brands=frozenset(one.brands),
            conditions=one.conditions,
            reason=one.reason,
        )
        for one in rows.order_by("position", "id")
    ]


def _store_hidden_brands(row: Checkout, hidden: Mapping[str, str]) -> None:
    """Store which brands the rules hid and why with the checkout, for the back office."""
    if dict(hidden) != row.hidden_brands:
        row.hidden_brands = dict(hidden)
        Checkout.objects.filter(pk=row.pk).update(hidden_brands=row.hidden_brands)


def build_offer_shopper(row: Checkout, prepared: Mapping[str, str], rules: Sequence[BrandRule]) -> OfferShopper:
    """Facts about the shopper from the merchant's parameters, and the checkout's risk score if one of ``rules`` uses
    it."""
    scored = any(name in _BY_SCORE for rule in rules for name in rule.conditions)
    amount = prepared.get("amount")
    return OfferShopper(
        amount=Decimal(amount) if amount else None,
        currency=prepared.get("currency", ""),
        country=prepared.get("billing.country") or prepared.get("shipping.country") or "",
        email=prepared.get("customer.email", ""),
        status=prepared.get("customer.status", ""),
        score=risk_score.score_checkout(row, prepared) if scored else None,
    )


def check_brand_offered(row: Checkout, request: PaymentRequest) -> None:
    """Raise RequestRefusedError (600.200.201) for a brand that a rule hides from this shopper, whatever the page
    showed."""
    rules = list_offer_rules(row)
    if not rules:
        return
    hidden = apply_offer_rules(
        [request.brand], rules, build_offer_shopper(row, session.load_plain_values(row), rules)
    ).hidden
    if hidden:
        raise build_parameter_refusal(
            BRAND_NOT_CONFIGURED_CODE, "paymentBrand", "is not offered in this checkout", value=request.brand
        )


def check_brand_payable(values: Mapping[str, str]) -> None:
    """Raise RequestRefusedError for a brand or a type that no shopper could pay with. Checked early: otherwise the
    merchant would notice a typing error only on the form, and the shopper only on paying."""
    brands = {"paymentType": values.get("paymentBrand", "")}
    if brands["paymentType"]:
        check_brand_known(brands["paymentType"])
    for name in values:
        if name.startswith(OVERRIDE_TYPE_PREFIX):
            brands[name] = name.removeprefix(OVERRIDE_TYPE_PREFIX).removesuffix("]")
            check_brand_known(brands[name], name)
    for name, brand in brands.items():
        if name in values:
            check_first_payment_type(values[name], stored=False, name=name)
            if brand and (name != "paymentType" or f"{OVERRIDE_TYPE_PREFIX}{brand}]" not in values):
                check_brand_takes_type(values[name], brand, name)
