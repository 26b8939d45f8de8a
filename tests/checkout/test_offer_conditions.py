"""Each condition of an offer rule at its borders, and for a shopper of whom something is not known. Pure."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from checkout.offer_rules import (
    MAX_CONDITION_VALUES,
    BrandRule,
    OfferShopper,
    apply_offer_rules,
    check_offer_conditions,
    is_rule_met,
)

JANE = OfferShopper(
    amount=Decimal("92.00"), currency="EUR", country="DE", email="Jane@Mail.example", status="NEW", score=70
)
UNKNOWN = OfferShopper(amount=None, currency="", country="", email="", status="", score=None)


@pytest.mark.parametrize(
    ("conditions", "met"),
    [
        ({"scoreAtLeast": 0}, False),
        ({"scoreAtLeast": -99_999}, False),
        ({"scoreBelow": -99_999}, True),
        ({"emails": ["*"]}, False),
        ({"countries": ["DE"]}, False),
        ({"notCountries": ["DE"]}, False),
        ({"currencies": ["EUR"]}, False),
        ({"amountAtLeast": "0"}, False),
        ({"amountBelow": "100000"}, False),
        ({"customerStatus": ["NEW"]}, False),
        ({}, True),
    ],
    ids=str,
)
def test_what_is_not_known_meets_no_condition_but_a_score_below(conditions: dict[str, Any], met: bool) -> None:
    """Nothing scored is not risky; an unknown country is none of those that are excepted."""
    assert is_rule_met(conditions, UNKNOWN) is met


@pytest.mark.parametrize(
    ("conditions", "met"),
    [
        ({"scoreAtLeast": 70}, True),
        ({"scoreAtLeast": 71}, False),
        ({"scoreBelow": 70}, False),
        ({"scoreBelow": 71}, True),
        ({"amountAtLeast": "92"}, True),
        ({"amountAtLeast": "92.01"}, False),
        ({"amountBelow": "92.00"}, False),
        ({"amountBelow": "92.01"}, True),
        ({"emails": ["*@MAIL.example"]}, True),
        ({"emails": ["*@mail.EXAMPLE"]}, True),
        ({"emails": ["jane"]}, False),
        ({"emails": ["j?ne@mail.example"]}, True),
        ({"emails": ["x@shop.example", "jane@mail.example"]}, True),
        ({"countries": ["DE"], "currencies": ["EUR"]}, True),
        ({"countries": ["FR"], "currencies": ["EUR"]}, False),
        ({"countries": ["DE"], "currencies": ["USD"]}, False),
    ],
    ids=str,
)
def test_all_conditions_of_a_rule_hold_at_their_borders(conditions: dict[str, Any], met: bool) -> None:
    assert is_rule_met(conditions, JANE) is met


def test_a_negative_score_is_compared_like_any_other() -> None:
    trusted = replace(JANE, score=-40)
    assert is_rule_met({"scoreBelow": -39}, trusted)
    assert not is_rule_met({"scoreBelow": -40}, trusted)
    assert is_rule_met({"scoreAtLeast": -40}, trusted)


LONGEST = ["x"] * MAX_CONDITION_VALUES


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("scoreAtLeast", -99_999, True),
        ("scoreAtLeast", 99_999, True),
        ("scoreAtLeast", -100_000, False),
        ("scoreBelow", 100_000, False),
        ("scoreBelow", True, False),
        ("scoreBelow", 1.0, False),
        ("amountAtLeast", "0", True),
        ("amountAtLeast", "0.00", True),
        ("amountAtLeast", "-0.01", False),
        ("amountBelow", "Infinity", False),
        ("amountBelow", "NaN", False),
        ("amountBelow", "", False),
        ("amountBelow", None, False),
        ("countries", LONGEST, True),
        ("countries", [*LONGEST, "x"], False),
        ("countries", [], False),
        ("countries", [""], False),
        ("countries", ["DE", ""], False),
        ("emails", ("a", "b"), False),
        ("customerStatus", {"NEW": 1}, False),
    ],
)
def test_a_conditions_value_is_checked_at_its_borders(name: str, value: Any, allowed: bool) -> None:
    faults = check_offer_conditions({name: value})
    assert (faults == []) is allowed
    assert all(fault.startswith(f"{name} must be ") for fault in faults)


def test_every_fault_of_a_rule_is_named() -> None:
    faults = check_offer_conditions({"scoreBelow": "1", "weather": "rain", "emails": []})
    assert [fault.partition(" ")[0] for fault in faults] == ["scoreBelow", "weather", "emails"]


@pytest.mark.parametrize(
    ("rules", "brands", "hidden"),
    [
        ([], ("VISA", "MASTER"), {}),
        ([("hide", {"VISA"}, {}, "why")], ("MASTER",), {"VISA": "why"}),
        ([("hide", {"VISA"}, {}, "")], ("MASTER",), {"VISA": "rule 0"}),
        ([("hide", set(), {}, "all")], (), {"VISA": "all", "MASTER": "all"}),
        ([("hide", {"AMEX"}, {}, "why")], ("VISA", "MASTER"), {}),
        ([("hide", {"VISA"}, {"countries": ["FR"]}, "why")], ("VISA", "MASTER"), {}),
        ([("hide", {"VISA"}, {}, "first"), ("show", {"VISA"}, {}, "")], ("MASTER",), {"VISA": "first"}),
        ([("show", {"VISA"}, {}, ""), ("hide", set(), {}, "rest")], ("VISA",), {"MASTER": "rest"}),
        (
            [("show", {"VISA"}, {"countries": ["FR"]}, ""), ("hide", {"VISA"}, {}, "second")],
            ("MASTER",),
            {"VISA": "second"},
        ),
    ],
)
def test_the_first_rule_that_holds_and_names_a_brand_decides(
    rules: list[tuple[str, set[str], dict[str, Any], str]], brands: tuple[str, ...], hidden: dict[str, str]
) -> None:
    made = [
        BrandRule(name=f"rule {place}", hides=how == "hide", brands=frozenset(of), conditions=when, reason=reason)
        for place, (how, of, when, reason) in enumerate(rules)
    ]
    found = apply_offer_rules(["VISA", "MASTER"], made, JANE)
    assert (found.brands, found.hidden) == (brands, hidden)
