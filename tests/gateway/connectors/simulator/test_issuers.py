"""Simulated issuers: published rates, soft declines, funds before a payday; the same question has the same answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.connectors.simulator.cards import SIMULATED_CARDS
from gateway.connectors.simulator.issuers import (
    ISSUERS_BY_BIN,
    SHORT_OF_FUNDS,
    SIMULATED_ISSUERS,
    IssuerQuestion,
    SimulatedIssuer,
    build_issuer_card,
    find_simulated_issuer,
    is_short_of_funds,
    simulate_issuer_answer,
)
from gateway.core.brands import detect_brand, find_issuer
from gateway.core.luhn import is_luhn_valid
from gateway.core.result_codes import RESULT_CODES, is_approved
from tests.support.fixtures import Shop

NOON = datetime(2030, 3, 10, 12, tzinfo=UTC)
EACH = pytest.mark.parametrize("issuer", SIMULATED_ISSUERS, ids=lambda one: one.bin)


def ask(issuer: SimulatedIssuer, place: int, **values: object) -> IssuerQuestion:
    asked = IssuerQuestion(number=build_issuer_card(issuer, place), amount=Decimal("20.00"), at=NOON)
    return replace(asked, **values)  # type: ignore[arg-type]


def rate_of(issuer: SimulatedIssuer, **values: object) -> float:
    answers = [simulate_issuer_answer(issuer, ask(issuer, place, **values)) for place in range(3_000)]
    return 100 * sum(is_approved(answer.code) for answer in answers) / len(answers)


def test_no_published_test_card_belongs_to_an_issuer() -> None:
    """Ruling D52: a published test card always gives its published code."""
    assert [card.number for card in SIMULATED_CARDS if find_simulated_issuer(card.number) is not None] == []


@EACH
def test_an_issuer_stands_in_the_table_of_bins_under_the_same_name_and_country(issuer: SimulatedIssuer) -> None:
    found = find_issuer(issuer.bin)
    assert found is not None
    assert (found.bank, found.country) == (issuer.name, issuer.country)
    number = build_issuer_card(issuer, 4711)
    assert is_luhn_valid(number)
    assert detect_brand(number) == issuer.brand
    assert find_simulated_issuer(number) is issuer
    assert find_simulated_issuer(number[:-1] + str((int(number[-1]) + 1) % 10)) is None
    assert len(issuer.hours) == 24
    assert all(0 <= rate <= 100 for rate in issuer.hours)


@EACH
def test_the_same_question_has_the_same_answer_and_another_seed_another_market(issuer: SimulatedIssuer) -> None:
    asked = [ask(issuer, place, amount=Decimal(80)) for place in range(300)]
    first = [simulate_issuer_answer(issuer, one) for one in asked]
    assert first == [simulate_issuer_answer(issuer, one) for one in asked]
    assert first != [simulate_issuer_answer(issuer, one, seed=23) for one in asked]
    assert {answer.code for answer in first} <= set(RESULT_CODES)


@EACH
def test_an_hours_rate_is_the_published_one(issuer: SimulatedIssuer) -> None:
    """Of the merchant's own charges on a payday, only dead cards and the hour's rate take some."""
    at = NOON.replace(day=issuer.payday)
    for hour in (0, 2, 12):
        expected = issuer.hours[hour] * (100 - issuer.closed) * (100 - issuer.expired) / 10_000
        found = rate_of(issuer, at=at.replace(hour=hour), merchant_initiated=True)
        assert found == pytest.approx(expected, abs=3.5)


def test_an_issuer_that_is_away_says_so_at_that_hour_only() -> None:
    alpine = ISSUERS_BY_BIN["400012"]
    codes = {
        hour: {
            simulate_issuer_answer(alpine, ask(alpine, place, at=NOON.replace(hour=hour))).code for place in range(500)
        }
        for hour in (2, 12)
    }
    assert "800.100.176" in codes[2]
    assert "800.100.152" in codes[12]
    assert "800.100.176" not in codes[12]


def count_soft(issuer: SimulatedIssuer, **values: object) -> int:
    answers = (simulate_issuer_answer(issuer, ask(issuer, place, **values)) for place in range(1_000))
    return sum(answer.code == SOFT_DECLINE for answer in answers)


def test_a_challenge_is_wanted_above_the_amount_unless_proven_exempted_or_merchant_initiated() -> None:
    alpine, big = ISSUERS_BY_BIN["400012"], Decimal("80.00")
    bare = count_soft(alpine, amount=big)
    assert 500 < bare < 750
    assert count_soft(alpine, amount=Decimal("30.00")) == 0
    assert count_soft(alpine, amount=big, authenticated=True) == 0
    assert count_soft(alpine, amount=big, merchant_initiated=True) == 0
    assert count_soft(alpine, amount=big, exemption="LOW_RISK") < 0.65 * bare
    assert count_soft(alpine, amount=big, exemption="TRUSTED_MERCHANT") < 0.3 * bare
    assert count_soft(ISSUERS_BY_BIN["400014"], amount=big) == 0


@EACH
def test_a_card_short_of_funds_pays_again_from_payday_on(issuer: SimulatedIssuer) -> None:
    """A retry's chance: no money comes back before the payday, and all of it on that day."""
    payday = NOON.replace(day=issuer.payday, month=5)
    days = [payday - timedelta(days=back) for back in range(12, -1, -1)]
    seen = 0
    for place in range(1_500):
        card = build_issuer_card(issuer, place)
        short = [is_short_of_funds(issuer, card, day) for day in days]
        assert not short[-1]
        assert sorted(short[:-1]) == short[:-1], "once short, short until payday"
        seen += any(short)
    assert 100 * seen / 1_500 == pytest.approx(issuer.short, abs=3)


def test_a_dead_card_is_refused_at_every_hour_and_says_so_when_it_is_checked() -> None:
    prepaid = ISSUERS_BY_BIN["520013"]
    dead = [
        place
        for place in range(400)
        if not is_approved(simulate_issuer_answer(prepaid, ask(prepaid, place, amount=Decimal(0))).code)
    ]
    assert 10 < len(dead) < 50
    for place in dead:
        answers = {
            simulate_issuer_answer(prepaid, ask(prepaid, place, at=NOON + timedelta(hours=hour))).advice
            for hour in range(0, 200, 7)
        }
        assert answers in ({"01"}, {"03"})


def test_a_card_beyond_the_issuers_numbers_is_an_error() -> None:
    with pytest.raises(ValueError, match="has cards 0 to 999999999"):
        build_issuer_card(ISSUERS_BY_BIN["400011"], 10**9)


def test_a_payment_by_api_gets_its_issuers_answer_with_the_advice(shop: Shop) -> None:
    """The connector asks the issuer: by the merchant's clock, the amount and the exemption."""
    alpine = ISSUERS_BY_BIN["400012"]
    card = {"card.number": "", "paymentBrand": "VISA", "amount": "80.00"}
    answers = []
    for place in range(12):
        card["card.number"] = build_issuer_card(alpine, place)
        answers.append(shop.api.pay(**card))
    codes = [answer.code for answer in answers]
    assert SOFT_DECLINE in codes
    assert any(is_approved(code) for code in codes) or SHORT_OF_FUNDS[0] in codes
    again = shop.api.pay(**(card | {"card.number": build_issuer_card(alpine, codes.index(SOFT_DECLINE))}))
    assert again.code == SOFT_DECLINE
    assert answers[0].body["card"]["issuer"]["bank"] == "Alpine Test Savings"
