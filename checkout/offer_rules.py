"""Active Payment Method Selection: evaluates offer rules, which hide brands by amount, country, risk score and so on.

Pure: rules and facts in, offered brands and reasons out. A rule's conditions are a JSON object; each name is one row of
OFFER_CONDITIONS. Source: Part A, What the service does, 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any, Final

MAX_RISK_SCORE: Final = 99_999
MAX_CONDITION_VALUES: Final = 1_000
"""Entries of one list in one condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferShopper:
    """Facts about the shopper when the form is drawn. ``score``: risk score, None if nothing was scored."""

    amount: Decimal | None
    currency: str
    country: str
    email: str
    status: str
    score: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandRule:
    """One rule. ``brands``: empty means every brand. ``hides``: hide them (else show them) if all ``conditions``
    hold."""

    name: str
    hides: bool
    brands: frozenset[str]
    conditions: Mapping[str, Any]
    reason: str = ""

    @property
    def why(self) -> str:
        return self.reason or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class BrandOffer:
    """Result: ``brands`` in the requested order; ``hidden``: code → why it is not offered."""

    brands: tuple[str, ...]
    hidden: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferCondition:
    """One kind of condition. ``check``: describes what is wrong with a value ('' for nothing); ``holds``: whether the
    condition holds."""

    words: str
    check: Callable[[Any], str]
    holds: Callable[[Any, OfferShopper], bool]


def apply_offer_rules(brands: Sequence[str], rules: Iterable[BrandRule], shopper: OfferShopper) -> BrandOffer:
    """``brands`` without those that a rule hides. The first rule that names a brand and holds decides."""
    holding = [rule for rule in rules if is_rule_met(rule.conditions, shopper)]
    hidden: dict[str, str] = {}
    for brand in brands:
        deciding = next((rule for rule in holding if not rule.brands or brand in rule.brands), None)
        if deciding is not None and deciding.hides:
            hidden[brand] = deciding.why
    return BrandOffer(brands=tuple(brand for brand in brands if brand not in hidden), hidden=hidden)


def is_rule_met(conditions: Mapping[str, Any], shopper: OfferShopper) -> bool:
    """True if every condition holds; without any, always."""
    return all(OFFER_CONDITIONS[name].holds(value, shopper) for name, value in conditions.items())


def check_offer_conditions(conditions: Any) -> list[str]:
    """The faults of a rule's conditions, as sentences; empty if there are none."""
    if not isinstance(conditions, dict):
        return ["conditions must be an object"]
    faults = []
    for name, value in conditions.items():
        if name not in OFFER_CONDITIONS:
            faults.append(f"{name} is not a condition; allowed are {', '.join(OFFER_CONDITIONS)}")
        elif fault := OFFER_CONDITIONS[name].check(value):
            faults.append(f"{name} {fault}")
    return faults


def _check_score(value: Any) -> str:
    fine = type(value) is int and abs(value) <= MAX_RISK_SCORE
    return "" if fine else f"must be a whole number from -{MAX_RISK_SCORE} to {MAX_RISK_SCORE}"


def _check_amount(value: Any) -> str:
    try:
        fine = isinstance(value, str) and Decimal(value).is_finite() and Decimal(value) >= 0
    except InvalidOperation:
        fine = False
    return "" if fine else "must be an amount as text, e.g. 92.00"


def _list_checker(value: Any) -> str:
    fine = (
        isinstance(value, list)
        and 0 < len(value) <= MAX_CONDITION_VALUES
        and all(isinstance(v, str) and v for v in value)
    )
    return "" if fine else f"must be a list of 1 to {MAX_CONDITION_VALUES:,} texts"


def _email_matches(patterns: list[str], shopper: OfferShopper) -> bool:
    email = shopper.email.lower()
    return bool(email) and any(fnmatchcase(email, pattern.lower()) for pattern in patterns)


OFFER_CONDITIONS: Final[Mapping[str, OfferCondition]] = {
    "scoreAtLeast": OfferCondition(
        words="the risk score is at least this", check=_check_score,
        holds=lambda value, shopper: shopper.score is not None and shopper.score >= value,
    ),
    "scoreBelow": OfferCondition(
        words="the risk score is lower than this, or nothing was scored", check=_check_score,
        holds=lambda value, shopper: shopper.score is None or shopper.score < value,
    ),
    "emails": OfferCondition(
        words="customer.email is one of these; * stands for anything, e.g. *@mail.example", check=_list_checker,
        holds=_email_matches,
    ),
    "countries": OfferCondition(
        words="billing.country, else shipping.country, is one of these", check=_list_checker,
        holds=lambda value, shopper: shopper.country in value,
    ),
    "notCountries": OfferCondition(
        words="the country is known and none of these", check=_list_checker,
        holds=lambda value, shopper: bool(shopper.country) and shopper.country not in value,
    ),
    "currencies": OfferCondition(
        words="the currency is one of these", check=_list_checker,
        holds=lambda value, shopper: shopper.currency in value,
    ),
    "amountAtLeast": OfferCondition(
        words="the amount is at least this", check=_check_amount,
        holds=lambda value, shopper: shopper.amount is not None and shopper.amount >= Decimal(value),
    ),
    "amountBelow": OfferCondition(
        words="the amount is lower than this", check=_check_amount,
        holds=lambda value, shopper: shopper.amount is not None and shopper.amount < Decimal(value),
    ),
    "customerStatus": OfferCondition(
        words="customer.status is one of these", check=_list_checker,
        holds=lambda value, shopper: shopper.status in value,
    ),
}  # fmt: skip
