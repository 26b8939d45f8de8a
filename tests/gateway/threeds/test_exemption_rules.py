"""The decision on an exemption: never past a limit of the law. EU 2018/389, articles 16 and 18; docs/decisions/0105."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.point_of_service import build_point_of_service
from gateway.core.money import Money
from gateway.core.strong_authentication import SCA_COUNTRIES
from gateway.threeds.exemption_rules import (
    EXEMPTION_PARAMETERS,
    MIN_STAGE_PAYMENTS,
    CardCount,
    Exemption,
    ExemptionFacts,
    ExemptionRules,
    ExemptionStage,
    StageOutcome,
    choose_stage,
    convert_to_euros,
    decide_exemption,
    find_fraud_rate_band,
    parse_exemption_rules,
)

ALL = ExemptionRules(
    low_value=True,
    fraud_rate=Decimal("0.05"),
    max_score=20,
    trusted=True,
    corporate_bins=("400013",),
    delegated_bins=("520011",),
    rates={"GBP": Decimal("1.17"), "JPY": Decimal("0.0061")},
)
LOW_VALUE = ExemptionRules(low_value=True)
amounts = st.decimals("0.01", "1000", places=2)
currencies = st.sampled_from(("EUR", "GBP", "JPY", "USD"))
scores = st.none() | st.integers(-100, 200)
cards = st.builds(
    CardCount,
    payments=st.integers(0, 6),
    amount=st.decimals("0", "150", places=2),
    authentications=st.integers(0, 3),
)
facts_of_payments = st.builds(
    ExemptionFacts,
    money=st.none() | st.builds(Money, amounts, currencies),
    digits=st.sampled_from(("40001300000", "52001100000", "42000000000")),
    stored=st.booleans(),
    score=scores,
    card=cards,
)


def euros(amount: str, **more: object) -> ExemptionFacts:
    return ExemptionFacts(money=Money(Decimal(amount), "EUR"), digits="42000000000", **more)  # type: ignore[arg-type]


# --- the limits -----------------------------------------------------------------------------------------------------


@given(facts_of_payments)
def test_no_payment_is_exempted_past_a_limit(facts: ExemptionFacts) -> None:
    decision = decide_exemption(ALL, facts)
    if decision is None:
        return
    if decision.exemption is Exemption.LOW_VALUE:
        assert decision.euros is not None
        assert decision.euros <= 30
        assert facts.card.payments + 1 <= 5
        assert facts.card.amount + decision.euros <= 100
    if decision.exemption is Exemption.LOW_RISK:
        assert decision.euros is not None
        assert decision.euros <= 250  # the band of 0.05 %
        assert facts.score is not None
        assert facts.score <= ALL.max_score
    if decision.exemption is Exemption.TRUSTED_MERCHANT:
        assert facts.card.authentications > 0
    if decision.exemption is Exemption.SECURE_CORPORATE:
        assert facts.digits.startswith("400013")
    if decision.exemption is Exemption.DELEGATED:
        assert facts.stored
        assert facts.digits.startswith("520011")


@given(st.lists(amounts, max_size=40))
def test_in_a_row_a_card_never_passes_five_payments_or_100_eur(row: list[Decimal]) -> None:
    count, exempted = CardCount(), []
    for amount in row:
        decision = decide_exemption(LOW_VALUE, euros(str(amount), card=count))
        if decision is not None and decision.euros is not None:
            exempted.append(decision.euros)
            count = CardCount(payments=count.payments + 1, amount=count.amount + decision.euros)
    assert len(exempted) <= 5
    assert sum(exempted, Decimal(0)) <= 100
    assert all(amount <= 30 for amount in exempted)


@pytest.mark.parametrize(
    ("amount", "payments", "spent", "asked"),
    [
        ("30.00", 0, "0", True),
        ("30.01", 0, "0", False),
        ("10.00", 4, "40.00", True),
        ("10.00", 5, "50.00", False),
        ("30.00", 3, "70.00", True),
        ("30.00", 3, "70.01", False),
    ],
)
def test_low_value_ends_where_article_16_ends_it(amount: str, payments: int, spent: str, asked: bool) -> None:
    card = CardCount(payments=payments, amount=Decimal(spent))
    assert (decide_exemption(LOW_VALUE, euros(amount, card=card)) is not None) is asked


@pytest.mark.parametrize(
    ("rate", "most"),
    [("0", 500), ("0.01", 500), ("0.0101", 250), ("0.06", 250), ("0.0601", 100), ("0.13", 100), ("0.1301", None)],
)
def test_the_acquirers_fraud_rate_gives_the_amount_of_low_risk(rate: str, most: int | None) -> None:
    band = find_fraud_rate_band(Decimal(rate))
    assert (band.amount if band is not None else None) == most
    rules = ExemptionRules(fraud_rate=Decimal(rate))
    if most is None:
        assert decide_exemption(rules, euros("0.01", score=0)) is None
        return
    assert decide_exemption(rules, euros(f"{most}.00", score=0)) is not None
    assert decide_exemption(rules, euros(f"{most}.01", score=0)) is None


def test_low_risk_wants_rules_that_accepted_the_payment() -> None:
    """Article 18: a risk analysis in real time. Unscreened, under review or above the score: none."""
    rules = ExemptionRules(fraud_rate=Decimal("0.05"), max_score=20)
    assert decide_exemption(rules, euros("50.00", score=None)) is None
    assert decide_exemption(rules, euros("50.00", score=21)) is None
    decision = decide_exemption(rules, euros("50.00", score=20))
    assert decision is not None
    assert (decision.exemption, decision.euros, decision.limit) == (Exemption.LOW_RISK, Decimal("50.00"), 250)


@given(amounts, currencies)
def test_an_amount_is_compared_in_eur_and_never_rounded_down(amount: Decimal, currency: str) -> None:
    found = convert_to_euros(Money(amount, currency), ALL.rates)
    if currency == "USD":
        assert found is None
        return
    assert found is not None
    rate = {"EUR": Decimal(1), **ALL.rates, "GBP": Decimal("1.2")}[currency]
    exact = amount * rate
    assert exact <= found < exact + Decimal("0.01")


def test_a_currency_without_a_rate_gets_no_exemption_that_has_a_limit() -> None:
    facts = ExemptionFacts(money=Money(Decimal(1), "USD"), digits="42000000000", score=0)
    assert decide_exemption(ALL, facts) is None
    corporate = ExemptionFacts(money=Money(Decimal(1), "USD"), digits="40001300000")
    decision = decide_exemption(ALL, corporate)
    assert decision is not None
    assert decision.exemption is Exemption.SECURE_CORPORATE


def test_what_uses_up_the_cards_limit_is_asked_for_last_but_the_list() -> None:
    """Low risk before low value, which the next payment may need; the issuer's list where nothing else fits."""
    known = CardCount(authentications=1)
    first, second = euros("20.00", score=0, card=known), euros("300.00", score=0, card=known)
    assert [one.exemption for one in (decide_exemption(ALL, first), decide_exemption(ALL, second)) if one] == [
        Exemption.LOW_RISK,
        Exemption.TRUSTED_MERCHANT,
    ]
    rest = decide_exemption(ALL, first, without=(Exemption.LOW_RISK,))
    assert rest is not None
    assert rest.exemption is Exemption.LOW_VALUE


@pytest.mark.parametrize("exemption", list(Exemption))
def test_acquirers_understand_what_is_asked_for(exemption: Exemption) -> None:
    asked = {f"threeDSecure.{name}": value for name, value in EXEMPTION_PARAMETERS[exemption].items()}
    assert build_point_of_service(asked).exemption == exemption


def test_settings_without_an_exemption_are_no_rules() -> None:
    assert parse_exemption_rules({}) is None
    assert parse_exemption_rules({"askedAt": "better", "rates": {"GBP": "1.17"}, "lowValue": False}) is None
    rules = parse_exemption_rules({"fraudRate": "0.05", "rates": {"GBP": "1.17"}})
    assert rules is not None
    assert (rules.fraud_rate, rules.rates) == (Decimal("0.05"), {"GBP": Decimal("1.17")})


# --- where it is asked ----------------------------------------------------------------------------------------------

BETTER = ExemptionRules(low_value=True, stage="better")
AUTHENTICATION, AUTHORIZATION = ExemptionStage.AUTHENTICATION, ExemptionStage.AUTHORIZATION


def stages(outcomes: dict[ExemptionStage, StageOutcome], *, steps_up: bool = True) -> list[ExemptionStage]:
    """The stages of ten payments with every last digit."""
    return [
        choose_stage(BETTER, Exemption.LOW_VALUE, UUID(int=number), outcomes, steps_up=steps_up).stage
        for number in range(100, 110)
    ]


def test_both_stages_are_measured_before_one_is_better() -> None:
    assert stages({}).count(AUTHORIZATION) == 5
    few = StageOutcome(asked=MIN_STAGE_PAYMENTS - 1, won=0)
    many = StageOutcome(asked=500, won=500)
    assert stages({AUTHENTICATION: many, AUTHORIZATION: few}).count(AUTHORIZATION) == 5


@pytest.mark.parametrize(
    ("authentication", "authorization", "expected"), [(40, 45, 9), (45, 40, 1), (45, 45, 1), (0, 50, 9)]
)
def test_the_stage_that_wins_more_gets_nine_of_ten(authentication: int, authorization: int, expected: int) -> None:
    outcomes = {
        AUTHENTICATION: StageOutcome(asked=MIN_STAGE_PAYMENTS, won=authentication),
        AUTHORIZATION: StageOutcome(asked=MIN_STAGE_PAYMENTS, won=authorization),
    }
    assert stages(outcomes).count(AUTHORIZATION) == expected


def test_without_a_challenge_after_a_soft_decline_the_issuer_is_asked_first() -> None:
    outcomes = {stage: StageOutcome(asked=100, won=100) for stage in ExemptionStage}
    assert set(stages(outcomes, steps_up=False)) == {AUTHENTICATION}


def test_the_issuers_list_is_asked_for_where_the_issuer_looks_it_up() -> None:
    rules = ExemptionRules(trusted=True, stage=AUTHORIZATION)
    choice = choose_stage(rules, Exemption.TRUSTED_MERCHANT, UUID(int=1), {}, steps_up=True)
    assert choice.stage is AUTHENTICATION
    assert choose_stage(rules, Exemption.LOW_VALUE, UUID(int=1), {}, steps_up=False).stage is AUTHORIZATION
    untold = choose_stage(rules, Exemption.LOW_VALUE, UUID(int=1), {}, steps_up=True, is_claimed=False)
    assert (untold.stage, untold.why) == (AUTHENTICATION, "no claim")


@pytest.mark.parametrize("rate", ["1.00", "1.15", "1.30"])
@pytest.mark.parametrize(("pounds", "least"), [("25.00", "30.00"), ("25.01", "30.02"), ("220.00", "264.00")])
def test_pounds_are_held_by_the_limits_of_their_own_law(pounds: str, least: str, rate: str) -> None:
    """25 pounds for 30 euros, whatever the rate of the day. docs/decisions/0156."""
    money = Money(Decimal(pounds), "GBP")
    found = convert_to_euros(money, {"GBP": Decimal(rate)})
    assert found == max(Decimal(least), (money.amount * Decimal(rate)).quantize(Decimal("0.01"), ROUND_UP))
    assert convert_to_euros(money, {}) is None


@pytest.mark.parametrize(
    ("brand", "sent", "exemption"),
    [
        ("VISA", {}, ""),
        ("AMEX", {}, ""),
        ("MASTER", {}, "LOW_RISK"),
        ("VISA", {"threeDSecure.authenticationStatus": "I"}, "LOW_RISK"),
        ("", {}, "LOW_RISK"),
    ],
)
def test_an_exemption_is_not_claimed_beside_an_attempt(brand: str, sent: dict[str, str], exemption: str) -> None:
    """ECI 06 is an attempt, which shifts the liability; at Mastercard it is an accepted exemption."""
    parameters = {"threeDSecure.eci": "06", "threeDSecure.exemptionFlag": "02", **sent}
    assert build_point_of_service(parameters, brand=brand).exemption == exemption


def test_parts_of_a_state_with_a_code_of_their_own_are_in_the_union() -> None:
    assert {"AX", "GF", "GP", "MF", "MQ", "RE", "YT"} <= SCA_COUNTRIES
