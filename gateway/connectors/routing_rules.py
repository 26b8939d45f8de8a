"""Routing rules as values: which accounts may take a payment, in which order, and why not the others. Pure.

The first rule that fits decides. Among its accounts that can take the payment, the weights draw by the payment's id:
the same payment is always sent the same way, and what is drawn next is where it goes when the first is out of reach.
Where no rule fits, the channel's accounts are taken in their order. Source: issue "real processors"; docs/routing.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway.connectors.port import Connector
from gateway.core.brands import PAYMENT_BRANDS

ROUTING_BIN_DIGITS: Final = 11
MIN_BIN_DIGITS: Final = 6
MAX_AUDITED_REJECTIONS: Final = 20
"""Accounts whose reasons are kept with a payment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingFacts:
    """What routing knows of a payment. None: not known yet, as on a checkout's form. ``currency``: '' for a request
    without money; ``means``: the kind, '' for none; ``digits``: the leading digits of its card, '' for none;
    ``sent``: names of its parameters."""

    brand: str
    currency: str
    payment: UUID | None = None
    amount: Decimal | None = None
    country: str | None = None
    payment_type: str | None = None
    means: str | None = None
    digits: str | None = field(default=None, repr=False)
    sent: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingCandidate:
    """A merchant's account at an acquirer, as routing sees it. ``brands`` and ``currencies``: empty means all;
    ``settings``: names of those it has, None where nobody looked."""

    connector: str
    merchant: str = ""
    brands: frozenset[str] = frozenset()
    currencies: frozenset[str] = frozenset()
    id: str = ""
    name: str = ""
    settings: frozenset[str] | None = None
    active: bool = True

    @property
    def label(self) -> str:
        return self.name or f"{self.connector} {self.merchant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTarget:
    """An account of a rule. ``weight`` 0: only when no other can."""

    account: str
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRule:
    """``bins``: (from, to) of leading digits, both included. Empty conditions hold always."""

    name: str
    targets: tuple[RuleTarget, ...] = ()
    brands: frozenset[str] = frozenset()
    bins: tuple[tuple[str, str], ...] = ()
    currencies: frozenset[str] = frozenset()
    amount_from: Decimal | None = None
    amount_to: Decimal | None = None
    amount_currency: str = ""
    countries: frozenset[str] = frozenset()
    payment_types: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingTable:
    """A channel's accounts in their order, and its rules in theirs."""

    accounts: tuple[RoutingCandidate, ...] = ()
    rules: tuple[RouteRule, ...] = ()

    def account(self, ident: str) -> RoutingCandidate | None:
        return next((one for one in self.accounts if one.id == ident), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteChoice:
    """``ways``: who may take the payment, the chosen one first. ``over``: (account, why not). ``draw``: where in the
    sum of the weights the payment's id fell, from 0 to 1; None where nothing was drawn. ``lacking``: without ``ways``,
    the parameters with which the first account that wants nothing else would take it."""

    candidates: tuple[RoutingCandidate, ...]
    rule: str = ""
    draw: float | None = None
    weights: Mapping[str, int] = field(default_factory=dict)
    over: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()

    def told(self) -> dict[str, Any]:
        """What is kept of it with the payment; of ``ways`` all but the first, which its columns name."""
        first, *later = self.candidates
        found: dict[str, Any] = {
            "rule": self.rule,
            "name": first.label,
            "draw": self.draw,
            "weights": dict(self.weights),
            "over": [list(one) for one in self.over[:MAX_AUDITED_REJECTIONS]],
            "next": [[one.connector, one.merchant, one.label] for one in later],
        }
        return {name: value for name, value in found.items() if value not in ("", None, {}, [])}


# --- conditions ---------------------------------------------------------------------------------------------------


def _in(value: str | None, wanted: frozenset[str]) -> bool | None:
    if not wanted:
        return True
    return None if value is None else value in wanted


def _bin(rule: RouteRule, facts: RoutingFacts) -> bool | None:
    if not rule.bins:
        return True
    if facts.digits is None:
        return None
    own = facts.digits[:ROUTING_BIN_DIGITS]
    if len(own) < MIN_BIN_DIGITS:
        return False
    # Digits that are not known could be any: inside by all of them, outside by all of them, or not to be said.
    least, most = own.ljust(ROUTING_BIN_DIGITS, "0"), own.ljust(ROUTING_BIN_DIGITS, "9")
    sides = [
        (
            low.ljust(ROUTING_BIN_DIGITS, "0") <= least and most <= high.ljust(ROUTING_BIN_DIGITS, "9"),
            most < low.ljust(ROUTING_BIN_DIGITS, "0") or least > high.ljust(ROUTING_BIN_DIGITS, "9"),
        )
        for low, high in rule.bins
    ]
    if any(inside for inside, _ in sides):
        return True
    return False if all(outside for _, outside in sides) else None


def _amount(rule: RouteRule, facts: RoutingFacts) -> bool | None:
    if rule.amount_from is None and rule.amount_to is None:
        return True
    if facts.amount is None:
        return None
    return (
        facts.currency == rule.amount_currency
        and (rule.amount_from is None or facts.amount >= rule.amount_from)
        and (rule.amount_to is None or facts.amount <= rule.amount_to)
    )


ROUTING_CONDITIONS: Final[Mapping[str, Callable[[RouteRule, RoutingFacts], bool | None]]] = {
    "brands": lambda rule, facts: _in(facts.brand, rule.brands),
    "bins": _bin,
    "currencies": lambda rule, facts: _in(facts.currency, rule.currencies),
    "amount": _amount,
    "countries": lambda rule, facts: _in(facts.country, rule.countries),
    "paymentTypes": lambda rule, facts: _in(facts.payment_type, rule.payment_types),
}
"""Name → whether it holds; None: that cannot be said yet."""


def match_rule(rule: RouteRule, facts: RoutingFacts) -> bool | None:
    """Whether every condition holds; None: it may."""
    held = [condition(rule, facts) for condition in ROUTING_CONDITIONS.values()]
    if False in held:
        return False
    return None if None in held else True


# --- accounts -----------------------------------------------------------------------------------------------------


def explain_rejection(account: RoutingCandidate, facts: RoutingFacts, connectors: Mapping[str, Connector]) -> str:
    """Why an account cannot take a payment; '' when it can. What is not known yet speaks against nobody."""
    connector = connectors.get(account.connector)
    if not account.active:
        return "it is switched off"
    if connector is None:
        return f"there is no connector {account.connector} here"
    if account.brands and facts.brand not in account.brands:
        return f"it does not take {facts.brand}"
    if facts.currency and account.currencies and facts.currency not in account.currencies:
        return f"it does not take {facts.currency}"
    if facts.payment_type is not None and facts.payment_type not in connector.operations:
        return f"{connector.name} does no {facts.payment_type}"
    if facts.means is not None and facts.means not in connector.takes:
        return f"{connector.name} does not take {facts.means or 'payments without means'}"
    if not connector.redirects and _waits(facts.brand):
        return f"{connector.name} cannot send a shopper elsewhere"
    if facts.sent is not None and (missing := sorted(connector.required - facts.sent)):
        return f"{connector.name} needs {', '.join(missing)}"
    return _unset(account, connector)


def _lacking(
    accounts: Iterable[RoutingCandidate], facts: RoutingFacts, connectors: Mapping[str, Connector]
) -> tuple[str, ...]:
    """The parameters that the first account wants which would take the payment with them."""
    whatever = replace(facts, sent=None)
    for account in accounts:
        if facts.sent is not None and not explain_rejection(account, whatever, connectors):
            return tuple(sorted(connectors[account.connector].required - facts.sent))
    return ()


def _unset(account: RoutingCandidate, connector: Connector) -> str:
    if account.settings is None:
        return ""
    missing = [
        one.name
        for one in connector.settings
        if one.required and not one.secret and not one.default and one.name not in account.settings
    ]
    return f"its settings lack {', '.join(missing)}" if missing else ""


def _waits(brand: str) -> bool:
    """Whether the first answer of a brand is pending: a shopper decides elsewhere, or money is waited for."""
    known = PAYMENT_BRANDS.get(brand)
    return known is not None and (known.redirect or known.method == "PP")


# --- choosing -----------------------------------------------------------------------------------------------------


def rank_accounts(table: RoutingTable, facts: RoutingFacts, connectors: Mapping[str, Connector]) -> RouteChoice:
    """Who takes a payment of which all is known. Without ``ways`` nobody does, and ``over`` says why."""
    rule = next((one for one in table.rules if match_rule(one, facts)), None)
    if rule is None:
        usable, over = _sorted_out(table.accounts, facts, connectors)
        missing = () if usable else _lacking(table.accounts, facts, connectors)
        return RouteChoice(candidates=tuple(usable), over=tuple(over), missing=missing)
    named = [(table.account(target.account), target.weight) for target in rule.targets]
    weights = {account.id: weight for account, weight in named if account is not None}
    meant = [account for account, _ in named if account is not None]
    usable, over = _sorted_out(meant, facts, connectors)
    missing = () if usable else _lacking(meant, facts, connectors)
    candidates, draw = order_by_weight(facts.payment, [(account, weights[account.id]) for account in usable])
    told = {account.label: weights[account.id] for account in usable} if len(usable) > 1 else {}
    return RouteChoice(
        candidates=tuple(candidates), rule=rule.name, draw=draw, weights=told, over=tuple(over), missing=missing
    )


def can_any_account_take(table: RoutingTable, facts: RoutingFacts, connectors: Mapping[str, Connector]) -> bool:
    """Whether a payment could go anywhere, of which not all is known yet: by the first rule that fits for sure, or by
    one before it that may fit."""
    for rule in table.rules:
        fitting = match_rule(rule, facts)
        if fitting is False:
            continue
        named = (table.account(target.account) for target in rule.targets)
        if any(account is not None and not explain_rejection(account, facts, connectors) for account in named):
            return True
        if fitting:
            return False
    return any(not explain_rejection(account, facts, connectors) for account in table.accounts)


def _sorted_out(
    accounts: Iterable[RoutingCandidate], facts: RoutingFacts, connectors: Mapping[str, Connector]
) -> tuple[list[RoutingCandidate], list[tuple[str, str]]]:
    usable, over = [], []
    for account in accounts:
        if why := explain_rejection(account, facts, connectors):
            over.append((account.label, why))
        else:
            usable.append(account)
    return usable, over


def order_by_weight(
    payment: UUID | None, accounts: Sequence[tuple[RoutingCandidate, int]]
) -> tuple[list[RoutingCandidate], float | None]:
    """The accounts in the order that their weights draw by the payment's id, and where the first draw fell. Those of
    weight 0 come last, in their order."""
    last = [account for account, weight in accounts if weight == 0]
    left = [(account, weight) for account, weight in accounts if weight > 0]
    first: float | None = None
    found: list[RoutingCandidate] = []
    while left:
        if len(left) > 1:
            draw = _draw(payment, len(found))
            first = round(draw, 6) if first is None and not found else first
        else:
            draw = 0.0
        place = _place(draw * sum(weight for _, weight in left), [weight for _, weight in left])
        found.append(left.pop(place)[0])
    return found + last, first


def _draw(payment: UUID | None, step: int) -> float:
    """From 0 to below 1, the same for the same payment on every machine."""
    key = (payment.bytes if payment is not None else b"") + bytes([min(step, 255)])
    return int.from_bytes(hashlib.sha256(key).digest()[:6]) / 2**48


def _place(at: float, weights: Sequence[int]) -> int:
    """The place whose share of the sum ``at`` falls into."""
    for place, weight in enumerate(weights):
        at -= weight
        if at < 0:
            return place
    return len(weights) - 1
