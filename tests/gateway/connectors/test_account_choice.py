"""Choice of an account by cost and approval rate, as values. Source: docs/routing.md, "By cost and approval rate"."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gateway.connectors.account_choice import (
    AccountChoice,
    AccountFigures,
    AccountPrice,
    ChoiceFacts,
    ChoicePolicy,
    choose_account,
    compute_cost,
    find_rates,
)
from gateway.connectors.account_figures import pack_figures, unpack_figures
from gateway.connectors.routing_rules import RouteChoice, RouteRule, RoutingTable, RuleTarget, rank_accounts
from tests.gateway.connectors.test_routing_rules import CONNECTORS, FACTS, A, B, C
from tests.support.bin_files import write_bin_file

VISA_DE = ChoiceFacts(amount=Decimal("100.00"), currency="EUR", brand="VISA", bin="")
GB_CREDIT = ChoiceFacts(amount=Decimal("100.00"), currency="EUR", brand="VISA", bin="420000")


def price(account: str, percent: str, fixed: str = "0", **conditions: str) -> AccountPrice:
    return AccountPrice(account=account, percent=Decimal(percent), fixed=Decimal(fixed), **conditions)


def figures(prices: tuple[AccountPrice, ...] = (), **outcomes: tuple[int, int]) -> AccountFigures:
    return AccountFigures(prices=prices, outcomes={(name, "VISA", "GB"): one for name, one in outcomes.items()})


def decide(by: str, known: AccountFigures, *, loss: str = "0", share: int = 0, draw: float = 0.5) -> AccountChoice:
    policy = ChoicePolicy(by=by, max_rate_loss=Decimal(loss), explored_percent=share)
    return choose_account(policy, GB_CREDIT, ("a", "b"), known, draw=draw)


def test_a_cost_is_percent_and_fixed_part_to_the_fourth_digit() -> None:
    known = figures((price("a", "1.2345", "0.0850", currency="EUR"),))
    assert compute_cost(known, "a", GB_CREDIT) == Decimal("1.3195")
    assert compute_cost(known, "b", GB_CREDIT) is None


@pytest.mark.parametrize(
    "narrower",
    [
        {"brand": "VISA"},
        {"region": "GB"},
        {"region": "NON-EEA"},
        {"level": "CREDIT"},
        {"level": "CLASSIC"},
        {"currency": "EUR"},
        {"brand": "VISA", "region": "GB", "level": "CLASSIC", "currency": "EUR"},
    ],
)
def test_the_narrowest_price_that_fits_counts(narrower: dict[str, str]) -> None:
    known = figures((price("a", "1"), price("a", "2", **narrower)))
    assert compute_cost(known, "a", GB_CREDIT) == Decimal("2.0000")


@pytest.mark.parametrize(
    "foreign", [{"brand": "MASTER"}, {"region": "DE"}, {"region": "EEA"}, {"level": "DEBIT"}, {"currency": "USD"}]
)
def test_a_price_for_other_payments_does_not_count(foreign: dict[str, str]) -> None:
    assert compute_cost(figures((price("a", "2", **foreign),)), "a", GB_CREDIT) is None


def test_a_schemes_price_counts_for_a_kind_of_its_cards_without_one() -> None:
    debit = replace(GB_CREDIT, brand="VISADEBIT")
    known = figures((price("a", "1"), price("a", "2", brand="VISA")))
    assert compute_cost(known, "a", debit) == Decimal("2.0000")
    assert compute_cost(figures((*known.prices, price("a", "3", brand="VISADEBIT"))), "a", debit) == Decimal("3.0000")
    assert compute_cost(figures((price("a", "3", brand="VISADEBIT"),)), "a", GB_CREDIT) is None


def test_of_a_brands_and_a_regions_price_the_brands_counts_and_a_country_goes_before_its_area() -> None:
    known = figures((price("a", "1", brand="VISA"), price("a", "2", region="GB")))
    assert compute_cost(known, "a", GB_CREDIT) == Decimal("1.0000")
    known = figures((price("a", "1", region="NON-EEA"), price("a", "2", region="GB")))
    assert compute_cost(known, "a", GB_CREDIT) == Decimal("2.0000")


def test_of_a_types_and_a_levels_price_the_levels_counts_in_either_order() -> None:
    both = (price("a", "1", level="CREDIT"), price("a", "2", level="CLASSIC"))
    for known in (both, both[::-1]):
        assert compute_cost(figures(known), "a", GB_CREDIT) == Decimal("2.0000")


def test_a_types_price_counts_where_the_table_of_bins_knows_no_level(tmp_path: Path) -> None:
    both = (price("a", "1"), price("a", "2", level="DEBIT"))
    with write_bin_file(tmp_path, "499996\t\t\t\tDEBIT\t\t\t"):
        for known in (both, both[::-1]):
            assert compute_cost(figures(known), "a", replace(GB_CREDIT, bin="499996")) == Decimal("2.0000")


def test_an_unknown_issuer_has_the_price_without_a_region() -> None:
    known = figures((price("a", "1"), price("a", "2", region="NON-EEA"), price("a", "3", level="CREDIT")))
    assert compute_cost(known, "a", VISA_DE) == Decimal("1.0000")


def test_a_wallets_card_is_priced_by_the_cards_brand() -> None:
    facts = ChoiceFacts(amount=Decimal(10), currency="EUR", brand="APPLEPAY", card_brand="VISA")
    assert compute_cost(figures((price("a", "1", brand="VISA"),)), "a", facts) == Decimal("0.1000")


def test_the_best_rate_is_chosen_and_the_cheaper_of_two_that_are_alike() -> None:
    found = decide("rate", figures(a=(90, 100), b=(91, 100)))
    assert (found.order, found.why, found.segment) == (("b", "a"), "best", "VISA GB")
    both = (price("a", "2"), price("b", "1"))
    assert decide("rate", figures(both, a=(90, 100), b=(180, 200))).order == ("b", "a")
    assert decide("rate", figures(a=(90, 100), b=(180, 200))).order == ("a", "b"), "as their weights drew"


def test_rates_are_compared_in_the_narrowest_segment_that_all_accounts_have() -> None:
    known = AccountFigures(
        outcomes={
            ("a", "VISA", "GB"): (10, 60),
            ("b", "VISA", "GB"): (49, 49),
            ("b", "VISA", "DE"): (0, 1),
            ("a", "MASTER", "DE"): (500, 500),
        }
    )
    assert find_rates(known, ("a", "b"), GB_CREDIT) == ("VISA", {"a": (10, 60), "b": (49, 50)})
    other = ChoiceFacts(amount=Decimal(1), currency="EUR", brand="JCB")
    assert find_rates(known, ("a", "b"), other) == ("", {"a": (510, 560), "b": (49, 50)})


def test_an_account_that_is_hardly_known_leaves_the_choice_to_the_weights() -> None:
    found = decide("rate", figures(a=(10, 100), b=(49, 49)))
    assert (found.order, found.why) == (("a", "b"), "measured")


def test_the_cheapest_has_to_be_within_the_loss_with_certainty() -> None:
    both = (price("a", "2"), price("b", "1"))
    few, many = figures(both, a=(91, 100), b=(90, 100)), figures(both, a=(91_000, 100_000), b=(90_000, 100_000))
    assert decide("cheapest", few, loss="2").order == ("a", "b"), "1 point worse, and may be 9"
    assert decide("cheapest", many, loss="2").order == ("b", "a")
    assert decide("cheapest", many, loss="1").order == ("a", "b")
    assert decide("cheapest", few, loss="20").order == ("b", "a")


def test_the_best_account_stays_where_it_is_the_cheapest_too() -> None:
    both = (price("a", "1"), price("b", "2"))
    assert decide("cheapest", figures(both, a=(91, 100), b=(90, 100)), loss="20").order == ("a", "b")


def test_without_the_price_of_each_account_none_is_the_cheapest() -> None:
    known = figures((price("a", "2"),), a=(90, 100), b=(91, 100))
    found = decide("cheapest", known, loss="20")
    assert (found.order, found.why) == (("a", "b"), "unpriced")


@pytest.mark.parametrize("draw, order, why", [(0.0499, ("a", "b"), "explored"), (0.05, ("b", "a"), "best")])
def test_so_many_of_a_hundred_go_to_another_account(draw: float, order: tuple[str, ...], why: str) -> None:
    found = decide("rate", figures(a=(90, 100), b=(91, 100)), share=5, draw=draw)
    assert (found.order, found.why) == (order, why)


def test_of_several_other_accounts_the_weights_draw_the_one_that_is_explored() -> None:
    known = figures(a=(70, 100), b=(99, 100), c=(80, 100))
    for drawn, order in ((("a", "b", "c"), ("a", "b", "c")), (("c", "a", "b"), ("c", "b", "a"))):
        found = choose_account(ChoicePolicy(by="rate", explored_percent=5), GB_CREDIT, drawn, known, draw=0.0)
        assert (found.order, found.why) == (order, "explored")


def test_exploring_is_off_by_default() -> None:
    assert decide("rate", figures(a=(90, 100), b=(91, 100)), draw=0.0).why == "best"
    assert ChoicePolicy().explored_percent == 0


def test_what_decided_is_kept_as_text() -> None:
    both = (price("a", "2"), price("b", "1", "0.1", currency="EUR"))
    audit = decide("cheapest", figures(both, a=(90, 100), b=(91, 100)), loss="1.50").build_audit()
    assert json.loads(json.dumps(audit)) == {
        "by": "cheapest",
        "why": "cheapest",
        "maxRateLoss": "1.50",
        "exploredPercent": 0,
        "segment": "VISA GB",
        "currency": "EUR",
        "accounts": {"a": ["2.0000", 90, 100], "b": ["1.1000", 91, 100]},
    }


def test_packed_figures_are_the_same_again() -> None:
    known = figures((price("a", "2.25", "0.1", brand="VISA", currency="EUR"),), a=(90, 100))
    assert unpack_figures(json.loads(json.dumps(pack_figures(known)))) == known


# --- in a rule ----------------------------------------------------------------------------------------------------

KEYED = {name: (f"stub {name}", "VISA", "GB") for name in "ABC"}


def ranked(policy: ChoicePolicy | None, *weights: int, payment: int = 7, **facts: Any) -> tuple[RouteChoice, int]:
    """The result and how often figures were read."""
    targets = tuple(RuleTarget(account=name, weight=weight) for name, weight in zip("ABC", weights, strict=True))
    table = RoutingTable(accounts=(A, B, C), rules=(RouteRule(name="rule", targets=targets, policy=policy),))
    read: list[AccountFigures] = []

    def read_figures() -> AccountFigures:
        found = AccountFigures(outcomes={KEYED["A"]: (50, 100), KEYED["B"]: (90, 100), KEYED["C"]: (99, 100)})
        read.append(found)
        return found

    known = replace(FACTS, payment=uuid.UUID(int=payment), **facts)
    return rank_accounts(table, known, CONNECTORS, read_figures), len(read)


BEST = ChoicePolicy(by="rate")


def test_a_rule_without_a_choice_reads_no_figures() -> None:
    found, read = ranked(None, 1, 1, 1)
    assert (read, found.choice, "choice" in found.build_audit()) == (0, None, False)


def test_an_account_of_weight_0_stays_the_last_resort() -> None:
    found, read = ranked(BEST, 1, 1, 0)
    assert ([one.name for one in found.candidates], read) == (["B", "A", "C"], 1)
    assert found.build_audit()["choice"]["why"] == "best"


@pytest.mark.parametrize("payment_type, amount", [("RG", "1.00"), ("CD", "1.00"), ("DB", "0.00")])
def test_what_takes_no_money_is_drawn_by_weight(payment_type: str, amount: str) -> None:
    found, read = ranked(BEST, 1, 1, 1, payment_type=payment_type, amount=Decimal(amount), currency="")
    assert (read, found.choice) == (0, None)


def test_one_account_is_no_choice() -> None:
    assert ranked(BEST, 1, 0, 0)[1] == 0


def test_the_same_payments_explore_every_time_and_about_as_many_as_wanted() -> None:
    policy = ChoicePolicy(by="rate", explored_percent=10)
    runs = [[ranked(policy, 1, 1, 1, payment=one)[0].candidates[0].name for one in range(1000)] for _ in range(2)]
    assert runs[0] == runs[1]
    explored = [name for name in runs[0] if name != "C"]
    assert 70 <= len(explored) <= 130
    assert set(explored) == {"A", "B"}, "whether one explores does not hang on what its weights draw"


def test_a_rule_prices_a_wallets_payment_by_its_card() -> None:
    """The wallet is the brand that routes it; what it costs is the card's."""
    targets = (RuleTarget(account="A"), RuleTarget(account="B"))
    rule = RouteRule(name="rule", targets=targets, policy=ChoicePolicy(by="cheapest", max_rate_loss=Decimal(20)))
    known = AccountFigures(
        prices=(price("stub A", "1", brand="VISA"), price("stub B", "2", brand="VISA"), price("stub B", "0.5")),
        outcomes={(f"stub {name}", "APPLEPAY", "GB"): (90, 100) for name in "AB"},
    )
    facts = replace(FACTS, brand="APPLEPAY", card_brand="VISA")
    found = rank_accounts(RoutingTable(accounts=(A, B), rules=(rule,)), facts, CONNECTORS, lambda: known)
    assert found.choice is not None
    assert found.choice.costs == {"stub A": Decimal("0.9200"), "stub B": Decimal("1.8400")}
    assert [one.name for one in found.candidates] == ["A", "B"]
