"""The simulator's table: every card of the decisions, every decline, AVS, CVV, partial approval."""

from decimal import Decimal

import pytest

from gateway.connectors.simulator.cards import (
    ADVICE_MEANING,
    AVS_BY_POSTCODE,
    AVS_MEANING,
    CVV_ANSWERS,
    CVV_MEANING,
    INVALID_NUMBER,
    SIMULATED_CARDS,
    SIMULATED_SUCCESS,
    SimulatedCard,
    find_simulated_card,
    simulate_card_answer,
)
from gateway.core.advice import get_developer_advice
from gateway.core.brands import detect_brand, find_issuer, prefix_fits_brand
from gateway.core.luhn import is_luhn_valid
from gateway.core.money import Money
from gateway.core.result_codes import RESULT_CODES, ResultFamily, find_result_family, is_approved, is_review

EUR = Money.parse("92.00", "EUR")

each_card = pytest.mark.parametrize("card", SIMULATED_CARDS, ids=lambda card: card.number)

PLAIN = (
    "4200000000000000 4242424242424242 4111111111111111 5454545454545454 5105105105105100"
    " 377777777777770 30082246403846"
)
THREEDS = {
    "frictionless": "4200000000000091 5200000000000007",
    "attempt": "4200000000000109",
    "unavailable": "4012001037461114",
    "not_enrolled": "4012001037141112",
    "challenge_pass": "4200000000000042 5200000000000015",
    "challenge_fail": "4200000000000018 5200000000000064",
    "method": "4200000000000026",
    "method_challenge": "4200000000000034",
    "rejected": "4200000000000059",
}
WELL_KNOWN = "4000000000000002 4000000000009995 4000000000000069 4000000000000127 4012888888881881 5555555555554444"


@each_card
def test_every_card_passes_luhn_but_the_one_that_fails(card: SimulatedCard) -> None:
    """Decisions, section 5."""
    assert is_luhn_valid(card.number) is (card.number != "4444444444444444")


@each_card
def test_every_card_is_of_its_brand_and_has_an_issuer(card: SimulatedCard) -> None:
    """Decisions, section 5; Part B, card.issuer."""
    assert detect_brand(card.number) == card.brand
    assert prefix_fits_brand(card.brand, card.number, len(card.number))
    assert find_issuer(card.number) is not None


@each_card
def test_every_card_answers_a_code_of_the_table(card: SimulatedCard) -> None:
    """One table for the simulator, the test-data page and the tests."""
    assert card.code in RESULT_CODES
    assert get_developer_advice(card.code)
    assert card.spaced.replace(" ", "") == card.number
    assert card.merchant_advice_code is None or card.merchant_advice_code in ADVICE_MEANING
    assert not (is_approved(card.code) and card.merchant_advice_code)
    assert simulate_card_answer(card.number).code == card.code
    assert find_simulated_card(card.number) is card


def test_no_number_is_there_twice_or_known_elsewhere_as_another_answer() -> None:
    """Invented numbers do not collide with well-known test cards."""
    numbers = [card.number for card in SIMULATED_CARDS]
    assert len(set(numbers)) == len(numbers)
    assert not set(WELL_KNOWN.split()) & set(numbers)


@pytest.mark.parametrize("number", PLAIN.split())
def test_plain_cards_are_approved(number: str) -> None:
    """Decisions, section 5."""
    card = find_simulated_card(number)
    assert card is not None
    assert card.threeds is None
    answer = simulate_card_answer(number, amount=EUR)
    assert (answer.code, answer.acquirer_response, answer.approved) == (SIMULATED_SUCCESS, "00", EUR)


@pytest.mark.parametrize(("flow", "number"), [(flow, n) for flow, ns in THREEDS.items() for n in ns.split()])
def test_cards_with_a_flow_are_approved_without_it(flow: str, number: str) -> None:
    """Decisions, section 5."""
    card = find_simulated_card(number)
    assert card is not None
    assert card.threeds == flow
    assert simulate_card_answer(number).code == SIMULATED_SUCCESS


def test_any_other_number_that_passes_luhn_is_approved() -> None:
    """Decisions, section 5; a number that fails Luhn is not."""
    assert simulate_card_answer("5555555555554444", amount=EUR).approved == EUR
    assert simulate_card_answer("5555555555554444").card is None
    assert simulate_card_answer("5555555555554445").code == INVALID_NUMBER
    assert simulate_card_answer("4444444444444444", amount=EUR).approved is None


@pytest.mark.parametrize("end", range(150, 180))
def test_every_decline_has_a_card_whose_number_tells_it(end: int) -> None:
    """Decisions, section 3: default declines are 800.100.150 to 800.100.179."""
    (visa,) = (card for card in SIMULATED_CARDS if card.code == f"800.100.{end}" and card.brand == "VISA")
    assert visa.number.startswith(f"40000{end}00000")
    answer = simulate_card_answer(visa.number, amount=EUR, cvv="123")
    assert answer.approved is None
    assert answer.acquirer_response not in ("", "00")
    assert answer.cvv == "M"


def test_the_table_has_soft_declines_blocks_silence_and_review() -> None:
    """The simulator as data."""
    codes = {card.code for card in SIMULATED_CARDS}
    assert {"300.100.100", "700.600.002", "700.601.001", "700.601.003", "900.100.300"} <= codes
    assert any(is_review(code) for code in codes)
    for card in SIMULATED_CARDS:
        speechless = find_result_family(card.code) is ResultFamily.REJECTED_COMMUNICATION
        assert (card.behaviour != "answer") is speechless
    assert simulate_card_answer("4000090003000000").behaviour == "silence"
    assert simulate_card_answer("4000060103000002").merchant_advice_code == "03"


def test_a_soft_decline_passes_once_the_shopper_has_authenticated() -> None:
    """Result code 300.100.100: the customer must authenticate."""
    assert simulate_card_answer("4000030001000008", amount=EUR).code == "300.100.100"
    assert simulate_card_answer("4000030001000008", amount=EUR, authenticated=True).approved == EUR


@pytest.mark.parametrize(
    ("amount", "currency", "approved"),
    [
        ("92.00", "EUR", "46.00"),
        ("0.03", "EUR", "0.01"),
        ("0.01", "EUR", "0.01"),
        ("93", "JPY", "46.00"),
        ("1", "JPY", "1.00"),
    ],
)
def test_a_partial_approval_tells_the_approved_amount(amount: str, currency: str, approved: str) -> None:
    """B18.5; Part B, Payment response: amount is the amount approved."""
    answer = simulate_card_answer("4000050000000007", amount=Money.parse(amount, currency))
    assert answer.code == SIMULATED_SUCCESS
    assert answer.approved == Money.parse(approved, currency)
    assert find_simulated_card("4000050000000007").approved_share == Decimal("0.5")  # type: ignore[union-attr]


def test_five_postcodes_give_the_five_answers_of_the_address_check() -> None:
    """B18.6, A22.6; Part B, result.avsResponse: A, Z, N, U, F."""
    assert set(AVS_BY_POSTCODE.values()) == set("AZNUF") == set(AVS_MEANING)
    for postcode, letter in AVS_BY_POSTCODE.items():
        assert simulate_card_answer("4200000000000000", postcode=postcode).avs == letter
    assert simulate_card_answer("4200000000000000").avs is None
    assert simulate_card_answer("4200000000000000", postcode="80331").avs is None


def test_a_security_code_gives_its_answer_and_none_gives_none() -> None:
    """B18.7; Part B, result.cvvResponse: one upper-case letter."""
    assert set(CVV_ANSWERS.values()) == set(CVV_MEANING)
    for cvv, letter in CVV_ANSWERS.items():
        assert simulate_card_answer("4200000000000000", cvv=cvv).cvv == letter
    assert simulate_card_answer("4200000000000000", cvv="737").cvv == "M"
    assert simulate_card_answer("4200000000000000").cvv is None
    assert simulate_card_answer("4200000000000000", cvv="999").code == SIMULATED_SUCCESS
