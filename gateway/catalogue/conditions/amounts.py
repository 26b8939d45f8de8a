"""Amounts against currencies, operations and marketplace splits.

Source: Part A, Basic payment; Part B, Marketplace, Cart items, Cart payments; rulings D26, D27.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule
from gateway.core import money

WHOLE_AMOUNT_MESSAGE = "must be a whole number in {currency}, e.g. 92 or 92.00"
_SELLER = "marketPlace.sellers["
_FACED = {"amount": "92.00", "currency": "EUR"}


def _finer_than_currency(sent: RuleInput) -> Iterator[RuleBreach]:
    amount, currency = sent.amount("amount"), sent.get("currency")
    if amount is None or currency is None or not money.is_known_currency(currency):
        return
    if not money.fits_currency(amount, currency):
        yield "amount", WHOLE_AMOUNT_MESSAGE.format(currency=currency)


def _zero(sent: RuleInput) -> Iterator[RuleBreach]:
    kind = sent.get("paymentType")
    if kind is None or kind == "RG" or sent.amount("amount") != 0:
        return
    if kind != "PA" or sent.get("createRegistration") != "true":
        yield "amount", "may be 0 only with RG, or with PA and createRegistration=true"


CURRENCY_FITS: tuple[ParameterRule, ...] = (
    build_rule(
        "amount is whole in a currency without decimals", ("amount", "currency"), _finer_than_currency,
        keeps={"amount": "92.00", "currency": "JPY"}, breaks={"amount": "92.50", "currency": "JPY"},
    ),
)  # fmt: skip
AMOUNT_ZERO: tuple[ParameterRule, ...] = (
    build_rule(
        "amount is 0 only with RG, or with PA and createRegistration=true", ("amount",), _zero,
        code="100.550.300",
        keeps={"amount": "0.00", "paymentType": "PA", "createRegistration": "true"},
        breaks={"amount": "0.00", "paymentType": "DB"},
    ),
)  # fmt: skip


def _sellers(sent: RuleInput, field: str) -> list[tuple[str, str]]:
    """(name, value) of one field of all sellers."""
    return [(name, sent[name]) for name in sent.under(_SELLER) if name.endswith(f"].{field}")]


def _split_exceeds(sent: RuleInput) -> Iterator[RuleBreach]:
    amount = sent.amount("amount")
    if amount is None:
        return
    parts = _sellers(sent, "amount")
    total = sum((Decimal(value) for _, value in parts), Decimal(0))
    if total > amount:
        yield parts[-1][0], f"the sellers' amounts come to {total}, more than the amount"


def _repeated_sellers(sent: RuleInput) -> Iterator[RuleBreach]:
    seen: set[str] = set()
    for name, value in _sellers(sent, "id"):
        if value in seen:
            yield name, "is the id of another seller too"
        seen.add(value)


def _strange_sellers(sent: RuleInput) -> Iterator[RuleBreach]:
    known = {value for _, value in _sellers(sent, "id")}
    if not known:
        return
    for name in sent.under("cart.items["):
        if name.endswith("].sellerId") and sent[name] not in known:
            yield name, "is not the id of a seller in marketPlace.sellers"


MARKETPLACE_SPLIT: tuple[ParameterRule, ...] = (
    build_rule(
        "The sellers' amounts come to the amount at most", ("marketPlace.sellers[n].amount",), _split_exceeds,
        when=("marketPlace",),
        keeps=_FACED | {f"{_SELLER}0].amount": "50.00", f"{_SELLER}1].amount": "42.00"},
        breaks=_FACED | {f"{_SELLER}0].amount": "50.00", f"{_SELLER}1].amount": "42.01"},
    ),
    build_rule(
        "A seller's id stands once", ("marketPlace.sellers[n].id",), _repeated_sellers,
        when=("marketPlace",),
        keeps={f"{_SELLER}0].id": "seller-1", f"{_SELLER}1].id": "seller-2"},
        breaks={f"{_SELLER}0].id": "seller-1", f"{_SELLER}1].id": "seller-1"},
    ),
    build_rule(
        "cart.items[n].sellerId is the id of a seller, where sellers are sent", ("cart.items[n].sellerId",),
        _strange_sellers, when=("marketPlace",),
        keeps={f"{_SELLER}0].id": "seller-1", "cart.items[0].sellerId": "seller-1"},
        breaks={f"{_SELLER}0].id": "seller-1", "cart.items[0].sellerId": "seller-2"},
    ),
)  # fmt: skip


def _primaries(sent: RuleInput) -> Iterator[RuleBreach]:
    primary = [n for n in sent.under("cart.payments[") if n.endswith("].primary") and sent[n] == "true"]
    for name in primary[1:]:
        yield name, f"only one cart payment may be primary; {primary[0]} is"


ONE_PRIMARY: tuple[ParameterRule, ...] = (
    build_rule(
        "One cart payment is primary at most", ("cart.payments[n].primary",), _primaries,
        when=("cart",),
        keeps={"cart.payments[0].primary": "true", "cart.payments[1].primary": "false"},
        breaks={"cart.payments[0].primary": "true", "cart.payments[1].primary": "true"},
    ),
)  # fmt: skip
