"""Routing rules: which accounts may take a payment, in which order, and why the others are rejected. Pure.

The first matching rule decides. Its accounts that can take the payment are drawn by weight from the payment's id: the
same payment always takes the same route, and the next account drawn is the failover. If no rule matches, the channel's
accounts are used in their order. Source: docs/routing.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway.connectors.account_choice import (
    BY_WEIGHT,
    AccountChoice,
    AccountFigures,
    ChoiceFacts,
    ChoicePolicy,
    choose_account,
)
from gateway.connectors.capabilities import SentParameters, find_needed, find_unsendable
from gateway.connectors.port import Connector
from gateway.core.bin_table import Issuer
from gateway.core.brands import PAYMENT_BRANDS, find_issuer, resolve_listed_brand

ROUTING_BIN_DIGITS: Final = 11
MIN_BIN_DIGITS: Final = 6
MAX_AUDITED_REJECTIONS: Final = 20
"""Rejected accounts whose reasons are stored with a payment."""
CHOSEN_PAYMENT_TYPES: Final = ("PA", "DB")
"""Payment types whose account a rule may choose by cost or approval rate."""
_EXPLORING_STEP: Final = 255
"""A draw of its own: whether a payment explores does not hang on the weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingFacts:
    """What routing knows of a payment. None: not known yet, as on a checkout's form.

    ``currency``: '' for a request without money; ``means``: the kind of means, '' for none; ``digits``: the card's
    leading digits, '' for none; ``sent``: the parameters sent; ``prepared``: those of a checkout, to which the shopper
    adds others; ``card_brand``: of a wallet's card, where ``brand`` is the wallet's.
    """

    brand: str
    currency: str
    payment: UUID | None = None
    amount: Decimal | None = None
    country: str | None = None
    payment_type: str | None = None
    means: str | None = None
    digits: str | None = field(default=None, repr=False)
    sent: SentParameters | None = field(default=None, repr=False)
    prepared: SentParameters = field(default_factory=dict, repr=False)
    card_brand: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingCandidate:
    """An acquirer account, as routing sees it. ``brands`` and ``currencies``: empty means all; ``settings``: names of
    those that are set, None if they were not read."""

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
        """The account's name for people: its own, else connector and merchant id."""
        return self.name or self.key

    @property
    def key(self) -> str:
        """Connector and merchant id, as payments name their account."""
        return f"{self.connector} {self.merchant}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTarget:
    """An account of a rule. ``weight`` 0: used only when no other account can."""

    account: str
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRule:
    """Conditions and target accounts of one rule. ``bins``: (from, to) of leading digits, both included. An empty
    condition always matches. ``issuer_countries``, ``card_types``, ``card_levels``: by the table of BINs.
    ``max_cascades``: to how many further accounts a declined payment may go on. ``policy``: how its accounts are
    chosen."""

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
    issuer_countries: frozenset[str] = frozenset()
    card_types: frozenset[str] = frozenset()
    card_levels: frozenset[str] = frozenset()
    max_cascades: int = 0
    policy: ChoicePolicy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingTable:
    """A channel's accounts and rules, in their order."""

    accounts: tuple[RoutingCandidate, ...] = ()
    rules: tuple[RouteRule, ...] = ()

    def account(self, ident: str) -> RoutingCandidate | None:
        """The account with this id; None if there is none."""
        return next((one for one in self.accounts if one.id == ident), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteChoice:
    """The result of routing.

    - ``candidates``: accounts that can take the payment, best first.
    - ``rejected``: the others, as (account, reason).
    - ``draw``: the number from 0 to 1 drawn from the payment's id; None where nothing was drawn.
    - ``missing``: without candidates, the parameters with which the first otherwise suitable account could take the
      payment.
    - ``unsendable``: without candidates, the parameters that no otherwise suitable account can send.
    - ``max_cascades``: of the rule.
    - ``choice``: by cost or approval rate, where the rule wants one.
    """

    candidates: tuple[RoutingCandidate, ...]
    rule: str = ""
    draw: float | None = None
    weights: Mapping[str, int] = field(default_factory=dict)
    rejected: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    unsendable: tuple[str, ...] = ()
    max_cascades: int = 0
    choice: AccountChoice | None = None

    def build_audit(self) -> dict[str, Any]:
        """The audit stored with the payment. The first candidate stands in the payment's columns and is left out."""
        first, *later = self.candidates
        found: dict[str, Any] = {
            "rule": self.rule,
            "name": first.label,
            "draw": self.draw,
            "weights": dict(self.weights),
            "over": [list(one) for one in self.rejected[:MAX_AUDITED_REJECTIONS]],
            "next": [[one.connector, one.merchant, one.label] for one in later],
            "maxCascades": min(self.max_cascades, len(later)) or None,
            "choice": self.choice.build_audit() if self.choice is not None else None,
        }
        return {name: value for name, value in found.items() if value not in ("", None, {}, [])}


# --- conditions ---------------------------------------------------------------------------------------------------


def _matches_set(value: str | None, wanted: frozenset[str]) -> bool | None:
    if not wanted:
        return True
    return None if value is None else value in wanted


def _matches_bins(rule: RouteRule, facts: RoutingFacts) -> bool | None:
    if not rule.bins:
        return True
    if facts.digits is None:
        return None
    own = facts.digits[:ROUTING_BIN_DIGITS]
    if len(own) < MIN_BIN_DIGITS:
        return False
    # Unknown digits may be any: the rule matches if all of them are inside, fails if all are outside, else unknown.
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


def _matches_issuer(value: Callable[[Issuer], str], wanted: frozenset[str], facts: RoutingFacts) -> bool | None:
    """Whether a fact of the card's issuer is one of those wanted; where no table of BINs knows it, it is not."""
    if not wanted:
        return True
    if facts.digits is None:
        return None
    issuer = find_issuer(facts.digits)
    return issuer is not None and value(issuer) in wanted


def _matches_amount(rule: RouteRule, facts: RoutingFacts) -> bool | None:
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
    "brands": lambda rule, facts: _matches_set(facts.brand, rule.brands),
    "bins": _matches_bins,
    "currencies": lambda rule, facts: _matches_set(facts.currency, rule.currencies),
    "amount": _matches_amount,
    "countries": lambda rule, facts: _matches_set(facts.country, rule.countries),
    "paymentTypes": lambda rule, facts: _matches_set(facts.payment_type, rule.payment_types),
    "issuerCountries": lambda rule, facts: _matches_issuer(lambda one: one.country, rule.issuer_countries, facts),
    "cardTypes": lambda rule, facts: _matches_issuer(lambda one: one.type, rule.card_types, facts),
    "cardLevels": lambda rule, facts: _matches_issuer(lambda one: one.level, rule.card_levels, facts),
}
"""Condition name → whether it matches; None: not known yet."""


def name_for_rules(table: RoutingTable, facts: RoutingFacts) -> RoutingFacts:
    """The facts with the brand by which the table's rules know the card (:func:`resolve_listed_brand`)."""
    return replace(facts, brand=resolve_listed_brand(facts.brand, (rule.brands for rule in table.rules)))


def name_for_accounts(table: RoutingTable, facts: RoutingFacts) -> RoutingFacts:
    """The facts with the brand by which the table's accounts know the card (:func:`resolve_listed_brand`)."""
    lists = (account.brands for account in table.accounts if account.active)
    return replace(facts, brand=resolve_listed_brand(facts.brand, lists))


def match_rule(rule: RouteRule, facts: RoutingFacts) -> bool | None:
    """True if every condition matches; None if that is not known yet."""
    held = [condition(rule, facts) for condition in ROUTING_CONDITIONS.values()]
    if False in held:
        return False
    return None if None in held else True


# --- accounts -----------------------------------------------------------------------------------------------------


def explain_rejection(account: RoutingCandidate, facts: RoutingFacts, connectors: Mapping[str, Connector]) -> str:
    """Why an account cannot take a payment; '' if it can. Facts that are not known yet reject no account."""
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
    if not connector.redirects and _is_first_answer_pending(facts.brand):
        return f"{connector.name} cannot send a shopper elsewhere"
    if unsendable := _list_unsendable(connector, facts):
        return f"{connector.name} cannot send {', '.join(unsendable)}"
    if missing := _list_missing(connector, facts):
        return f"{connector.name} needs {', '.join(missing)}"
    return _missing_settings(account, connector)


def _list_unsendable(connector: Connector, facts: RoutingFacts) -> tuple[str, ...]:
    sent = facts.sent if facts.sent is not None else facts.prepared
    if facts.payment_type is None:
        return ()
    return find_unsendable(connector.sends, facts.card_brand or facts.brand, facts.payment_type, sent)


def _list_missing(connector: Connector, facts: RoutingFacts) -> list[str]:
    if facts.sent is None:
        return []
    needed = find_needed(connector.sends, facts.card_brand or facts.brand, facts.payment_type or "", facts.sent)
    return sorted((connector.required | needed) - facts.sent.keys())


def _explain_no_candidate(
    accounts: Iterable[RoutingCandidate], facts: RoutingFacts, connectors: Mapping[str, Connector]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What was sent too little and too much: the parameters that the first otherwise suitable account needs; without
    such an account, those that the suitable ones cannot send."""
    whatever = replace(facts, sent=None)
    unsendable: tuple[str, ...] = ()
    for account in accounts:
        if facts.sent is None or explain_rejection(account, whatever, connectors):
            continue
        connector = connectors[account.connector]
        found = _list_unsendable(connector, facts)
        if not found:
            return tuple(_list_missing(connector, facts)), ()
        unsendable = unsendable or found
    return (), unsendable


def _missing_settings(account: RoutingCandidate, connector: Connector) -> str:
    """Why an account's settings are incomplete; '' if they are not."""
    if account.settings is None:
        return ""
    missing = [
        one.name
        for one in connector.settings
        if one.required and not one.secret and not one.default and one.name not in account.settings
    ]
    return f"its settings lack {', '.join(missing)}" if missing else ""


def _is_first_answer_pending(brand: str) -> bool:
    """True for a brand whose first answer is pending: the shopper is redirected, or pays later."""
    known = PAYMENT_BRANDS.get(brand)
    return known is not None and (known.redirect or known.method == "PP")


# --- choosing -----------------------------------------------------------------------------------------------------


def rank_accounts(
    table: RoutingTable,
    facts: RoutingFacts,
    connectors: Mapping[str, Connector],
    read_figures: Callable[[], AccountFigures] = AccountFigures,
) -> RouteChoice:
    """Rank the accounts that can take a payment of which all facts are known. ``read_figures``: costs and outcomes,
    called for rules alone that choose by them."""
    by_rules, taken = name_for_rules(table, facts), name_for_accounts(table, facts)
    rule = next((one for one in table.rules if match_rule(one, by_rules)), None)
    if rule is None:
        usable, rejected = _split_by_rejection(table.accounts, taken, connectors)
        missing, unsendable = ((), ()) if usable else _explain_no_candidate(table.accounts, taken, connectors)
        return RouteChoice(candidates=tuple(usable), rejected=tuple(rejected), missing=missing, unsendable=unsendable)
    named = [(table.account(target.account), target.weight) for target in rule.targets]
    weights = {account.id: weight for account, weight in named if account is not None}
    meant = [account for account, _ in named if account is not None]
    usable, rejected = _split_by_rejection(meant, taken, connectors)
    missing, unsendable = ((), ()) if usable else _explain_no_candidate(meant, taken, connectors)
    candidates, draw = order_by_weight(facts.payment, [(account, weights[account.id]) for account in usable])
    choice = _choose_by_figures(rule, facts, candidates, weights, read_figures) if rule.policy is not None else None
    if choice is not None:
        last = len(choice.order)
        by_key = {account.key: account for account in candidates[:last]}
        candidates = [*(by_key[key] for key in choice.order), *candidates[last:]]
    shown_weights = {account.label: weights[account.id] for account in usable} if len(usable) > 1 else {}
    return RouteChoice(
        candidates=tuple(candidates),
        rule=rule.name,
        draw=draw,
        weights=shown_weights,
        rejected=tuple(rejected),
        missing=missing,
        unsendable=unsendable,
        max_cascades=rule.max_cascades,
        choice=choice,
    )


def _choose_by_figures(
    rule: RouteRule,
    facts: RoutingFacts,
    drawn: Sequence[RoutingCandidate],
    weights: Mapping[str, int],
    read_figures: Callable[[], AccountFigures],
) -> AccountChoice | None:
    """The choice among the accounts of a weight above 0; None where there is nothing to choose or nothing to pay."""
    keys = [account.key for account in drawn if weights[account.id] > 0]
    if (
        rule.policy is None
        or rule.policy.by == BY_WEIGHT
        or len(keys) < 2
        or facts.payment_type not in CHOSEN_PAYMENT_TYPES
        or not facts.amount
    ):
        return None
    known = ChoiceFacts(
        amount=facts.amount,
        currency=facts.currency,
        brand=facts.brand,
        card_brand=facts.card_brand,
        bin=facts.digits or "",
    )
    return choose_account(rule.policy, known, keys, read_figures(), draw=_draw(facts.payment, _EXPLORING_STEP))


def can_any_account_take(table: RoutingTable, facts: RoutingFacts, connectors: Mapping[str, Connector]) -> bool:
    """True if some account could take a payment of which not all facts are known yet.

    Considers the first rule that surely matches, and those before it that may match.
    """
    by_rules, taken = name_for_rules(table, facts), name_for_accounts(table, facts)
    for rule in table.rules:
        fitting = match_rule(rule, by_rules)
        if fitting is False:
            continue
        named = (table.account(target.account) for target in rule.targets)
        if any(account is not None and not explain_rejection(account, taken, connectors) for account in named):
            return True
        if fitting:
            return False
    return any(not explain_rejection(account, taken, connectors) for account in table.accounts)


def _split_by_rejection(
    accounts: Iterable[RoutingCandidate], facts: RoutingFacts, connectors: Mapping[str, Connector]
) -> tuple[list[RoutingCandidate], list[tuple[str, str]]]:
    """The accounts that can take the payment, and (account, reason) of the others."""
    usable, rejected = [], []
    for account in accounts:
        if why := explain_rejection(account, facts, connectors):
            rejected.append((account.label, why))
        else:
            usable.append(account)
    return usable, rejected


def order_by_weight(
    payment: UUID | None, accounts: Sequence[tuple[RoutingCandidate, int]]
) -> tuple[list[RoutingCandidate], float | None]:
    """Order accounts by weighted draws from the payment's id. Returns the order and the first draw.

    Accounts of weight 0 come last, in their order.
    """
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
        place = _index_by_weight(draw * sum(weight for _, weight in left), [weight for _, weight in left])
        found.append(left.pop(place)[0])
    return found + last, first


def _draw(payment: UUID | None, step: int) -> float:
    """A number from 0 to below 1: the same for the same payment on every machine."""
    key = (payment.bytes if payment is not None else b"") + bytes([min(step, 255)])
    return int.from_bytes(hashlib.sha256(key).digest()[:6]) / 2**48


def _index_by_weight(at: float, weights: Sequence[int]) -> int:
    """The index whose share of the sum of weights contains ``at``."""
    for place, weight in enumerate(weights):
        at -= weight
        if at < 0:
            return place
    return len(weights) - 1
