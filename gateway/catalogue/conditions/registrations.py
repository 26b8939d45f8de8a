"""Registrations: what can be stored, and what a direct registration needs.

Source: Part B, Tokenization and registration, Recurring migration; ruling D29.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.catalogue.conditions.means import REQUIRED_BY_MEANS, find_missing_of_means
from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule
from gateway.core import brands

STORABLE_PARAMETERS = ("card.number", "bankAccount.iban", "bankAccount.number", "virtualAccount.accountId")
_STORED = ("card", "bankAccount", "virtualAccount")
_HALF = ("card.expiryMonth", "card.expiryYear", "bankAccount.bankCode", "bankAccount.bic", "bankAccount.country")
"""If one of these is sent, its own structure requires the number."""
_GIFT_CARD = "giftCard.number"
_NOT_STORABLE = ("tokenAccount.number", _GIFT_CARD)
_CARD = {"card.number": "4200000000000000"}


def _nothing_to_store(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.any(*STORABLE_PARAMETERS, *_HALF):
        return
    code = sent.get("paymentBrand")
    brand = brands.find_brand(code or "")
    if brand is None and code is not None:
        return  # an unknown brand is reported as such, and what it would need is not known
    why = "a registration stores a card, a bank account or a virtual account"
    if brand is not None and brand.means in _STORED:
        yield from find_missing_of_means(sent, brand.means, f"with paymentBrand {brand.code}: {why}")
    else:
        yield "card.number", f"is required: {why}"


def _only_registers(sent: RuleInput) -> Iterator[RuleBreach]:
    kind = sent.get("paymentType")
    if kind not in (None, "RG"):
        yield "paymentType", "must be RG or left out here; pay at POST /v1/payments with createRegistration=true"


def _not_storable(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("createRegistration") == "true" or sent.get("paymentType") == "RG":
        for name in _NOT_STORABLE:
            if name in sent and (name != _GIFT_CARD or _pays_by_gift_card(sent)):
                yield name, "cannot be registered: cards, bank accounts and virtual accounts can"


def _pays_by_gift_card(sent: RuleInput) -> bool:
    """True if a gift card pays: next to another brand it is what is bought."""
    brand = brands.find_brand(sent.get("paymentBrand") or "")
    return brand is not None and brand.means == "giftCard"


TO_STORE: tuple[ParameterRule, ...] = (
    build_rule(
        "A registration stores a card, a bank account or a virtual account",
        tuple(name for means in _STORED for group in REQUIRED_BY_MEANS[means] for name in group), _nothing_to_store,
        keeps=_CARD, breaks={"paymentBrand": "VISA"},
    ),
    build_rule(
        "paymentType of a registration is RG, or left out", ("paymentType",), _only_registers,
        keeps={"paymentType": "RG"}, breaks={"paymentType": "DB"},
    ),
)  # fmt: skip
NOT_STORABLE: tuple[ParameterRule, ...] = (
    build_rule(
        "Token accounts and gift cards cannot be registered", ("createRegistration", *_NOT_STORABLE), _not_storable,
        when=_NOT_STORABLE,
        keeps={"createRegistration": "true"} | _CARD,
        breaks={"createRegistration": "true", "tokenAccount.number": "4200000000000000"},
    ),
)  # fmt: skip
