"""Routing rules as values: which account takes a payment, and why not the others. Source: docs/routing.md."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.connectors.capabilities import SENDS_EVERYTHING, SentParameter
from gateway.connectors.means import ANY_MEANS
from gateway.connectors.port import Connector, ConnectorSetting
from gateway.connectors.routing_rules import (
    RouteRule,
    RoutingCandidate,
    RoutingFacts,
    RoutingTable,
    RuleTarget,
    can_any_account_take,
    explain_rejection,
    match_rule,
    rank_accounts,
)
from gateway.connectors.stub.connector import STUB


def connector(name: str, **values: Any) -> Connector:
    given = {
        "operations": STUB.operations,
        "takes": ANY_MEANS,
        "required": frozenset(),
        "sends": SENDS_EVERYTHING,
        "redirects": False,
        "settings": (),
        "asks_with_means": False,
        **values,
    }
    return cast(Connector, SimpleNamespace(name=name, **given))


HOST = ConnectorSetting(name="host", about="", pattern=".+", allowed="a host", required=True)
KEY = ConnectorSetting(name="key", about="", pattern=".+", allowed="a key", required=True, secret=True)
PORT = ConnectorSetting(name="port", about="", pattern=".+", allowed="a port", required=True, default="443")
FUNDS_BY_VISA = SentParameter(
    name="transactionProcessingCode",
    place="DE3",
    values=frozenset({"FUNDING"}),
    brands=frozenset({"VISA"}),
    operations=frozenset({"DB"}),
    needs=("transactionBai",),
)
CONNECTORS = {
    each.name: each
    for each in (
        connector("stub"),
        connector("cards", takes=frozenset({"card"}), operations=frozenset({"PA", "CP"})),
        connector("address", required=frozenset({"billing.city"})),
        connector("host", settings=(HOST, KEY, PORT)),
        connector("away", redirects=True),
        connector("plain", sends=()),
        connector("visa", sends=(FUNDS_BY_VISA,)),
    )
}
FACTS = RoutingFacts(
    brand="VISA",
    currency="EUR",
    payment=uuid.UUID(int=7),
    amount=Decimal("92.00"),
    country="DE",
    payment_type="DB",
    means="card",
    digits="42000000000",
    sent={},
)


def account(name: str, **values: Any) -> RoutingCandidate:
    return RoutingCandidate(id=name, name=name, merchant=name, **{"connector": "stub", **values})


A, B, C = account("A"), account("B"), account("C")


def table(*rules: RouteRule, accounts: tuple[RoutingCandidate, ...] = (A, B, C)) -> RoutingTable:
    return RoutingTable(accounts=accounts, rules=rules)


def rule(*targets: str | tuple[str, int], **conditions: Any) -> RouteRule:
    found = tuple(
        RuleTarget(account=one) if isinstance(one, str) else RuleTarget(account=one[0], weight=one[1])
        for one in targets
    )
    return RouteRule(name="rule", targets=found, **conditions)


def names(found: Any) -> list[str]:
    return [each.name for each in found.candidates]


CONDITIONS = (
    # (condition, what fits, what does not)
    ({"brands": frozenset({"VISA"})}, {}, {"brand": "MASTER"}),
    ({"currencies": frozenset({"EUR"})}, {}, {"currency": "USD"}),
    ({"countries": frozenset({"DE"})}, {}, {"country": "FR"}),
    ({"countries": frozenset({"DE"})}, {}, {"country": ""}),
    ({"payment_types": frozenset({"DB"})}, {}, {"payment_type": "PA"}),
    ({"bins": (("420000", "420000"),)}, {}, {"digits": "42000100000"}),
    ({"bins": (("420000", "429999"),)}, {"digits": "42999999999"}, {"digits": "43000000000"}),
    ({"bins": (("42000000", "42000049"),)}, {"digits": "42000049999"}, {"digits": "42000050000"}),
    ({"bins": (("42000000001", "42000000002"),)}, {"digits": "42000000002"}, {"digits": "42000000000"}),
    ({"bins": (("420000", "420000"),)}, {}, {"digits": ""}),
    ({"issuer_countries": frozenset({"GB"})}, {}, {"digits": "42424200000"}),
    ({"issuer_countries": frozenset({"GB"})}, {}, {"digits": "49999900000"}),
    ({"issuer_countries": frozenset({"GB"})}, {}, {"digits": ""}),
    ({"card_types": frozenset({"PREPAID"})}, {"digits": "40000500000"}, {"digits": "42000000000"}),
    ({"card_types": frozenset({"CREDIT", "DEBIT"})}, {}, {"digits": "40000500000"}),
    ({"card_levels": frozenset({"GOLD"})}, {"digits": "41111100000"}, {"digits": "42000000000"}),
    ({"amount_from": Decimal(92), "amount_currency": "EUR"}, {}, {"amount": Decimal("91.99")}),
    ({"amount_to": Decimal(92), "amount_currency": "EUR"}, {}, {"amount": Decimal("92.01")}),
    ({"amount_from": Decimal(1), "amount_currency": "EUR"}, {}, {"currency": "USD"}),
)


@pytest.mark.parametrize("condition, fitting, failing", CONDITIONS)
def test_every_condition_holds_and_fails(condition: Any, fitting: Any, failing: Any) -> None:
    """By brand, BIN range, currency, amount, country, type, and the issuer's facts."""
    assert match_rule(rule("A", **condition), replace(FACTS, **fitting)) is True
    assert match_rule(rule("A", **condition), replace(FACTS, **failing)) is False


DEBIT_CARD = replace(FACTS, brand="MASTERDEBIT", digits="54545454000")


@pytest.mark.parametrize(
    ("listed", "taken"),
    [
        (("MASTER", "VISA"), "A"),
        (("MASTER", "MASTERDEBIT"), "B"),
        (("MASTER", ""), "A B"),
        (("VISA", "MASTERDEBIT"), "B"),
        (("VISA", "MAESTRO"), ""),
    ],
)
def test_an_account_for_a_scheme_takes_a_kind_of_its_cards_that_no_account_names(
    listed: tuple[str, str], taken: str
) -> None:
    """A contract for Mastercard is one for its debit cards, unless an account is for these."""
    one, two = (
        replace(each, brands=frozenset(filter(None, [brand]))) for each, brand in zip((A, B), listed, strict=True)
    )
    accounts = table(accounts=(one, two))
    assert names(rank_accounts(accounts, DEBIT_CARD, CONNECTORS)) == taken.split()
    assert can_any_account_take(accounts, DEBIT_CARD, CONNECTORS) is bool(taken)


def test_an_account_that_is_switched_off_names_no_kind_of_cards() -> None:
    one, two = replace(A, brands=frozenset({"MASTER"})), replace(B, brands=frozenset({"MASTERDEBIT"}), active=False)
    assert names(rank_accounts(table(accounts=(one, two)), DEBIT_CARD, CONNECTORS)) == ["A"]


def test_a_rule_for_a_scheme_is_one_for_a_kind_of_its_cards_that_no_rule_names() -> None:
    of_scheme = rule("B", brands=frozenset({"MASTER"}))
    assert names(rank_accounts(table(of_scheme), DEBIT_CARD, CONNECTORS)) == ["B"]
    assert can_any_account_take(table(of_scheme, accounts=(A,)), DEBIT_CARD, CONNECTORS) is False
    of_kind = rule("C", brands=frozenset({"MASTERDEBIT"}))
    assert names(rank_accounts(table(of_scheme, of_kind), DEBIT_CARD, CONNECTORS)) == ["C"]
    assert names(rank_accounts(table(of_scheme, of_kind), replace(DEBIT_CARD, brand="MASTER"), CONNECTORS)) == ["B"]


def test_what_is_not_known_yet_may_fit() -> None:
    """A checkout's form is drawn before the card is typed."""
    unknown = RoutingFacts(brand="VISA", currency="EUR")
    for condition in (
        {"countries": frozenset({"DE"})},
        {"payment_types": frozenset({"DB"})},
        {"bins": (("420000", "420000"),)},
        {"issuer_countries": frozenset({"GB"})},
        {"card_types": frozenset({"CREDIT"})},
        {"card_levels": frozenset({"GOLD"})},
        {"amount_from": Decimal(1), "amount_currency": "EUR"},
    ):
        assert match_rule(rule("A", **condition), unknown) is None
    assert match_rule(rule("A", bins=(("42000000", "42000049"),)), replace(FACTS, digits="420000")) is None
    assert match_rule(rule("A", bins=(("420000", "429999"),)), replace(FACTS, digits="420000")) is True
    several = rule("A", bins=(("42000000", "42000049"), ("510000", "519999")))
    assert match_rule(several, replace(FACTS, digits="420000")) is None, "one of the ranges may hold it"
    assert match_rule(several, replace(FACTS, digits="430000")) is False


def test_the_first_rule_that_fits_decides_also_where_none_of_its_accounts_can() -> None:
    """The choice and its reason."""
    dollars = account("D", currencies=frozenset({"USD"}))
    rules = (rule("A", brands=frozenset({"MASTER"})), rule("B"), rule("C"))
    assert names(rank_accounts(table(*rules), FACTS, CONNECTORS)) == ["B"]
    found = rank_accounts(table(rule("D"), rule("A"), accounts=(A, dollars)), FACTS, CONNECTORS)
    assert (names(found), found.rejected) == ([], (("D", "it does not take EUR"),))


def test_without_a_rule_that_fits_the_accounts_are_taken_in_their_order() -> None:
    """Part A, What the service does, 5."""
    accounts = (
        account("dollars", currencies=frozenset({"USD"})),
        account("master", brands=frozenset({"MASTER"})),
        account("gone", connector="gone"),
        account("right", brands=frozenset({"VISA"})),
        account("later"),
    )
    found = rank_accounts(table(rule("later", brands=frozenset({"AMEX"})), accounts=accounts), FACTS, CONNECTORS)
    assert names(found) == ["right", "later"]
    assert [name for name, _ in found.rejected] == ["dollars", "master", "gone"]


REASONS = (
    ({"active": False}, {}, "it is switched off"),
    ({"connector": "gone"}, {}, "there is no connector gone here"),
    ({"brands": frozenset({"MASTER"})}, {}, "it does not take VISA"),
    ({"currencies": frozenset({"USD"})}, {}, "it does not take EUR"),
    ({"connector": "cards"}, {}, "cards does no DB"),
    ({"connector": "cards"}, {"payment_type": "PA", "means": "bankAccount"}, "cards does not take bankAccount"),
    ({"connector": "stub"}, {"brand": "PREPAYMENT"}, "stub cannot send a shopper elsewhere"),
    ({"connector": "address"}, {}, "address needs billing.city"),
    ({"connector": "host", "settings": frozenset()}, {}, "its settings lack host"),
)


@pytest.mark.parametrize("values, facts, why", REASONS, ids=[why for _, _, why in REASONS])
def test_an_account_that_cannot_is_passed_over_with_the_reason(values: Any, facts: Any, why: str) -> None:
    """Capability sets, required parameters."""
    facts = replace(FACTS, **facts)
    assert explain_rejection(account("X", **values), facts, CONNECTORS) == why
    found = rank_accounts(
        table(rule("X", "B"), accounts=(account("X", **values), B)), replace(facts, brand="VISA"), CONNECTORS
    )
    assert names(found)[-1:] == ["B"]


def test_what_the_only_account_that_could_wants_is_told() -> None:
    """A13.11, A20.5: nobody guesses which parameter it was. An account that wants something else, too, says nothing."""
    wanting = account("X", connector="address")
    other = account("Y", connector="address", brands=frozenset({"MASTER"}))
    for each in (table(accounts=(other, wanting)), table(rule("Y", "X"), accounts=(other, wanting))):
        assert rank_accounts(each, FACTS, CONNECTORS).missing == ("billing.city",)
    assert rank_accounts(table(accounts=(wanting, B)), FACTS, CONNECTORS).missing == ()
    assert rank_accounts(table(accounts=(other,)), FACTS, CONNECTORS).missing == ()


def test_an_account_that_can_is_not_passed_over() -> None:
    """Capability sets, required parameters."""
    assert not explain_rejection(
        account("X", connector="address"), replace(FACTS, sent={"billing.city": "Munich"}), CONNECTORS
    )
    assert not explain_rejection(account("X", connector="host", settings=frozenset({"host"})), FACTS, CONNECTORS)
    assert not explain_rejection(account("X", connector="away"), replace(FACTS, brand="PREPAYMENT"), CONNECTORS)
    dollars = account("X", currencies=frozenset({"USD"}))
    assert not explain_rejection(dollars, replace(FACTS, currency="", payment_type="RG"), CONNECTORS), "no money in it"


FUNDING = {"transactionProcessingCode": "FUNDING", "transactionBai": "AA"}


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"sent": FUNDING}, "plain cannot send transactionProcessingCode"),
        ({"sent": {"merchant.payFacId": "1"}}, "plain cannot send merchant.payFacId"),
        ({"sent": {"transactionProcessingCode": "PURCHASE", "cart.items[0].name": "Mug"}}, ""),
        ({"sent": None, "prepared": FUNDING}, "plain cannot send transactionProcessingCode"),
        ({"sent": FUNDING, "payment_type": "RG"}, ""),
        ({"sent": None}, ""),
    ],
)
def test_an_account_that_cannot_say_what_the_payment_is_is_passed_over(changes: dict[str, Any], why: str) -> None:
    """docs/decisions/0070: what changes the payment decides the route, what describes it does not."""
    assert explain_rejection(account("X", connector="plain"), replace(FACTS, **changes), CONNECTORS) == why


def test_a_capability_may_be_of_one_network_and_payment_type_and_need_another_parameter() -> None:
    """docs/decisions/0070. A wallet's card decides, not the wallet."""
    facts = replace(FACTS, sent=FUNDING)
    visa = account("X", connector="visa")
    assert not explain_rejection(visa, facts, CONNECTORS)
    assert not explain_rejection(visa, replace(facts, brand="WALLET1", card_brand="VISA"), CONNECTORS)
    for changes in ({"brand": "MASTER"}, {"brand": "WALLET1", "card_brand": "MASTER"}, {"payment_type": "PA"}):
        assert "cannot send" in explain_rejection(visa, replace(facts, **changes), CONNECTORS)
    short = replace(facts, sent={"transactionProcessingCode": "FUNDING"})
    assert explain_rejection(visa, short, CONNECTORS) == "visa needs transactionBai"
    choice = rank_accounts(table(accounts=(account("P", connector="plain"), visa)), short, CONNECTORS)
    assert (choice.missing, choice.unsendable) == (("transactionBai",), ())


def test_the_account_that_can_send_it_is_chosen_and_without_one_it_is_said_what_cannot_be_sent() -> None:
    """docs/decisions/0070."""
    facts = replace(FACTS, sent=FUNDING)
    plain, visa = account("P", connector="plain"), account("V", connector="visa")
    for each in (table(accounts=(plain, visa)), table(rule(("P", 9), ("V", 1)), accounts=(plain, visa))):
        assert [one.id for one in rank_accounts(each, facts, CONNECTORS).candidates] == ["V"]
        refused = rank_accounts(each, replace(facts, brand="MASTER"), CONNECTORS)
        assert (refused.candidates, refused.unsendable) == ((), ("transactionProcessingCode",))


def test_of_two_accounts_that_cannot_send_it_the_firsts_reason_is_told() -> None:
    funding = {**FUNDING, "merchant.payFacId": "1"}
    visa, plain = account("V", connector="visa"), account("P", connector="plain")
    for accounts, told in (
        ((visa, plain), ("merchant.payFacId",)),
        ((plain, visa), ("merchant.payFacId", "transactionProcessingCode")),
    ):
        refused = rank_accounts(table(accounts=accounts), replace(FACTS, sent=funding), CONNECTORS)
        assert tuple(sorted(refused.unsendable)) == told


def test_a_declined_payment_goes_on_to_as_many_accounts_as_the_rule_says_and_there_are() -> None:
    for most, usable, kept in ((1, ("A", "B", "C"), 1), (2, ("A", "B", "C"), 2), (5, ("A", "B"), 1), (1, ("A",), None)):
        found = rank_accounts(table(rule(*usable, max_cascades=most)), FACTS, CONNECTORS)
        assert found.max_cascades == most
        assert found.build_audit().get("maxCascades") == kept, (most, usable)
    assert "maxCascades" not in rank_accounts(table(rule("A", "B")), FACTS, CONNECTORS).build_audit()


def test_weights_draw_by_the_payments_id_and_always_the_same() -> None:
    """Weights; reproducible."""
    rules = table(rule(("A", 6), ("B", 3), ("C", 1)))
    firsts = Counter[str]()
    orders = Counter[str]()
    for number in range(6_000):
        facts = replace(FACTS, payment=uuid.UUID(int=(0x0197 << 112) + number))
        found = rank_accounts(rules, facts, CONNECTORS)
        assert found == rank_accounts(rules, facts, CONNECTORS)
        assert sorted(names(found)) == ["A", "B", "C"]
        firsts[names(found)[0]] += 1
        orders["".join(names(found))] += 1
    assert abs(firsts["A"] / 6_000 - 0.6) < 0.03
    assert abs(firsts["B"] / 6_000 - 0.3) < 0.03
    assert abs(firsts["C"] / 6_000 - 0.1) < 0.02
    # What is drawn next follows the weights of those that are left.
    assert abs(orders["ABC"] / firsts["A"] - 0.75) < 0.04


def test_an_account_of_weight_0_comes_last_and_is_taken_when_it_is_the_only_one() -> None:
    """Failover order."""
    for number in range(50):
        facts = replace(FACTS, payment=uuid.UUID(int=number))
        assert names(rank_accounts(table(rule(("C", 0), "A", "B")), facts, CONNECTORS))[-1] == "C"
    assert names(rank_accounts(table(rule(("C", 0))), FACTS, CONNECTORS)) == ["C"]


def test_what_is_kept_of_a_choice_is_short_and_complete() -> None:
    """The choice and its reason kept on the payment."""
    accounts = (A, account("off", active=False), B)
    told = rank_accounts(table(rule(("A", 1), "off", ("B", 0)), accounts=accounts), FACTS, CONNECTORS).build_audit()
    assert told == {
        "rule": "rule",
        "name": "A",
        "weights": {"A": 1, "B": 0},
        "over": [["off", "it is switched off"]],
        "next": [["stub", "B", "B"]],
    }
    assert rank_accounts(table(), FACTS, CONNECTORS).build_audit()["next"] == [["stub", "B", "B"], ["stub", "C", "C"]]
    told = rank_accounts(table(rule("A", "B")), FACTS, CONNECTORS).build_audit()
    assert 0 <= told["draw"] < 1


def test_a_brand_can_be_offered_when_some_payment_of_it_could_go_somewhere() -> None:
    """Which brands a checkout offers follows the same rules."""
    unknown = RoutingFacts(brand="VISA", currency="EUR")
    dollars = account("D", currencies=frozenset({"USD"}))
    maybe = rule("A", bins=(("420000", "420000"),))
    both = (A, dollars)
    assert can_any_account_take(table(maybe, rule("D"), accounts=both), unknown, CONNECTORS)
    assert not can_any_account_take(table(rule("D"), accounts=both), unknown, CONNECTORS)
    assert not can_any_account_take(table(rule("D"), maybe, accounts=both), unknown, CONNECTORS)
    assert can_any_account_take(table(rule("D", brands=frozenset({"MASTER"})), accounts=both), unknown, CONNECTORS)
    assert not can_any_account_take(table(accounts=(dollars,)), unknown, CONNECTORS)
