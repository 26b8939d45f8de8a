"""Choice of an acquirer account by what it costs and how much of it is approved. Pure.

Rates are compared in the narrowest segment in which every account has enough attempts: brand and issuer's country,
brand, all. The same payment with the same figures always gets the same account. Source: docs/routing.md, "By cost and
approval rate"; docs/decisions/0116.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from gateway.core.brands import SCHEME_BY_VARIANT, find_issuer
from gateway.core.intervals import ShareInterval, compute_difference, compute_share

BY_WEIGHT: Final = ""
BY_COST: Final = "cheapest"
BY_RATE: Final = "rate"
MIN_RATE_ATTEMPTS: Final = 50
"""Attempts that every account needs in a segment before rates are compared there."""
EEA: Final = "EEA"
OUTSIDE_EEA: Final = "NON-EEA"
EEA_COUNTRIES: Final = frozenset(
    {
        "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE", "IS", "IT", "LI",
        "LT", "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK",
    }
)  # fmt: skip
_PERCENT: Final = Decimal(100)

Outcomes = tuple[int, int]
"""Approved and asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPrice:
    """What one payment costs at an account. ``percent``: of the amount; ``fixed``: in ``currency``. Empty conditions
    always match; ``region``: an issuer's country, EEA or NON-EEA; ``level``: an issuer's type or level."""

    account: str
    percent: Decimal
    fixed: Decimal = Decimal(0)
    brand: str = ""
    region: str = ""
    level: str = ""
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFigures:
    """Today's prices of a channel's accounts, and outcomes by (account, brand, issuer's country). An account is named
    by connector and merchant."""

    prices: tuple[AccountPrice, ...] = ()
    outcomes: Mapping[tuple[str, str, str], Outcomes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicePolicy:
    """How a rule chooses. ``max_rate_loss``: points that the cheapest account's rate may be below the best one's;
    ``explored_percent``: share of the payments that go to another account, so that its rate stays known."""

    by: str = BY_WEIGHT
    max_rate_loss: Decimal = Decimal(0)
    explored_percent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceFacts:
    """What the choice knows of a payment. ``brand``: as routing has it; ``card_brand``: of a wallet's card, by which it
    is priced; ``bin``: leading digits, '' for none."""

    amount: Decimal
    currency: str
    brand: str
    card_brand: str = ""
    bin: str = ""

    @property
    def country(self) -> str:
        """The issuer's country; '' if the table of BINs does not know it."""
        issuer = find_issuer(self.bin) if self.bin else None
        return issuer.country if issuer is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountChoice:
    """Accounts in the order in which they are asked, and why. ``why``: cheapest, best, explored, or, where the draw by
    weight stands, measured (too few attempts) or unpriced. ``segment``: in which rates were compared, '' for all."""

    order: tuple[str, ...]
    why: str
    policy: ChoicePolicy
    currency: str = ""
    segment: str = ""
    costs: Mapping[str, Decimal | None] = field(default_factory=dict)
    outcomes: Mapping[str, Outcomes] = field(default_factory=dict)

    def build_audit(self) -> dict[str, Any]:
        """The figures that decided, as the payment's route keeps them: account → cost, approved, asked."""
        return {
            "by": self.policy.by,
            "why": self.why,
            "maxRateLoss": str(self.policy.max_rate_loss),
            "exploredPercent": self.policy.explored_percent,
            "segment": self.segment,
            "currency": self.currency,
            "accounts": {
                name: [format(cost, "f") if cost is not None else None, *self.outcomes.get(name, (0, 0))]
                for name, cost in self.costs.items()
            },
        }


def compute_cost(figures: AccountFigures, account: str, facts: ChoiceFacts) -> Decimal | None:
    """What a payment costs at an account, in its own currency and to the fourth digit; None without a price. Of the
    prices that match the narrowest counts: by brand (a kind of a scheme's cards before the scheme), then region (a
    country before EEA), level and currency."""
    brand = facts.card_brand or facts.brand
    brands = {"": 0, SCHEME_BY_VARIANT.get(brand, brand): 1, brand: 2}
    issuer = find_issuer(facts.bin) if facts.bin else None
    country = issuer.country if issuer is not None else ""
    regions = {"": 0, EEA if country in EEA_COUNTRIES else OUTSIDE_EEA: 1, country: 2} if country else {"": 0}
    levels = {"", issuer.type, issuer.level} if issuer is not None else {""}
    found = [
        price
        for price in figures.prices
        if price.account == account
        and price.brand in brands
        and price.region in regions
        and price.level in levels
        and price.currency in ("", facts.currency)
    ]
    if not found:
        return None
    price = max(
        found,
        key=lambda one: (
            brands[one.brand],
            regions[one.region],
            (one.level != "") * (2 if issuer is not None and one.level == issuer.level else 1),
            one.currency != "",
        ),
    )
    return (facts.amount * price.percent / _PERCENT + price.fixed).quantize(Decimal("0.0001"))


def find_rates(
    figures: AccountFigures, accounts: Sequence[str], facts: ChoiceFacts
) -> tuple[str, dict[str, Outcomes]] | None:
    """The narrowest segment in which every account has MIN_RATE_ATTEMPTS, and the accounts' outcomes there; None where
    there is none."""
    country = facts.country
    segments = [(f"{facts.brand} {country}", facts.brand, country)] if country else []
    for name, brand, wanted in (*segments, (facts.brand, facts.brand, ""), ("", "", "")):
        found = {account: _add_outcomes(figures, account, brand, wanted) for account in accounts}
        if all(asked >= MIN_RATE_ATTEMPTS for _, asked in found.values()):
            return name, found
    return None


def _add_outcomes(figures: AccountFigures, account: str, brand: str, country: str) -> Outcomes:
    rows = [
        outcome
        for (own, of_brand, of_country), outcome in figures.outcomes.items()
        if own == account and brand in ("", of_brand) and country in ("", of_country)
    ]
    return sum(approved for approved, _ in rows), sum(asked for _, asked in rows)


def compare_rates(better: Outcomes, worse: Outcomes) -> ShareInterval:
    """How many points the first rate is above the second, with its interval of 95 %."""
    difference = compute_difference(better, worse)
    assert difference is not None  # both were asked
    return difference


def choose_account(
    policy: ChoicePolicy, facts: ChoiceFacts, drawn: Sequence[str], figures: AccountFigures, *, draw: float
) -> AccountChoice:
    """Order the accounts of a rule. ``drawn``: them in the order that their weights drew, which decides where figures
    do not; ``draw``: a number from 0 to below 1 of the payment, by which it explores or not."""
    costs = {account: compute_cost(figures, account, facts) for account in drawn}
    rates = find_rates(figures, drawn, facts)
    segment, outcomes = rates if rates is not None else ("", {a: _add_outcomes(figures, a, "", "") for a in drawn})

    def decide(order: Sequence[str], why: str) -> AccountChoice:
        return AccountChoice(
            order=tuple(order),
            why=why,
            policy=policy,
            currency=facts.currency,
            segment=segment,
            costs=costs,
            outcomes=outcomes,
        )

    prices = {account: cost for account, cost in costs.items() if cost is not None}
    if policy.by == BY_COST and len(prices) < len(drawn):
        return decide(drawn, "unpriced")
    if rates is None:
        return decide(drawn, "measured")
    shares = {account: Fraction(approved, asked) for account, (approved, asked) in outcomes.items()}
    by_rate = sorted(drawn, key=lambda one: (-shares[one], prices.get(one, Decimal("Infinity"))))
    first, why = by_rate[0], "best"
    if policy.by == BY_COST:
        good = [
            one
            for one in by_rate
            if one == by_rate[0]
            or compare_rates(outcomes[by_rate[0]], outcomes[one]).high <= float(policy.max_rate_loss)
        ]
        first, why = min(good, key=lambda one: prices[one]), "cheapest"
    order = [first, *(one for one in by_rate if one != first)]
    if draw * 100 < policy.explored_percent:
        tried = next(one for one in drawn if one != first)
        order, why = [tried, *(one for one in order if one != tried)], "explored"
    return decide(order, why)


def compute_approval_interval(outcomes: Outcomes) -> ShareInterval | None:
    """The approval rate with Wilson's interval of 95 %; None where nothing was asked."""
    return compute_share(*outcomes)
