"""The simulated bank: each card's flow, steering, and the challenge's moves."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.connectors.simulator.acs import (
    ENROLLED_PARAMETER,
    FLOW_PARAMETER,
    MAX_CODE_ATTEMPTS,
    MAX_CODE_RESENDS,
    ONE_TIME_CODE,
    ChallengeState,
    answer_challenge,
    build_ares,
    build_decoupled_result,
    choose_scenario,
    find_card_range,
)
from gateway.connectors.simulator.cards import SIMULATED_CARDS, SimulatedCard
from gateway.threeds_protocol.messages import CHALLENGE_WINDOWS, resolve_challenge_window

STATUS = {
    "frictionless": "Y", "attempt": "A", "unavailable": "U", "challenge_pass": "C", "challenge_fail": "C",
    "method": "Y", "method_challenge": "C", "rejected": "R", "when_mandated": "U", "exempted": "C",
}  # fmt: skip
WITH_FLOW = [card for card in SIMULATED_CARDS if card.threeds is not None]


def answer(flow: str, **areq: str) -> dict[str, Any]:
    return build_ares(
        {"messageVersion": "2.2.0", "threeDSServerTransID": "x", "deviceChannel": "02", **areq}, flow, "visa"
    )


@pytest.mark.parametrize("card", WITH_FLOW, ids=lambda card: f"{card.threeds} {card.number}")
def test_every_card_of_the_table_goes_as_its_column_says(card: SimulatedCard) -> None:
    """Decisions, section 5."""
    flow = choose_scenario(card.number, {})
    assert flow == card.threeds
    found = find_card_range(flow)
    if flow == "not_enrolled":
        assert found is None
        return
    assert found is not None
    assert found.method is flow.startswith("method")
    said = answer(flow)
    assert said["transStatus"] == STATUS[flow]
    assert ("authenticationValue" in said) is (said["transStatus"] in "YA")
    assert len(said["dsTransID"]) == len(said["acsTransID"]) == 36


def test_a_card_that_authenticates_only_if_asked_is_challenged_when_asked() -> None:
    """The challenge after a soft decline is mandated (04)."""
    asked = [answer("when_mandated", threeDSRequestorChallengeInd=f"0{n}")["transStatus"] for n in range(1, 10)]
    assert asked == ["U", "U", "C", "C", "U", "I", "U", "U", "U"]
    assert answer("when_mandated", deviceChannel="03")["transStatus"] == "U"


def test_a_card_that_accepts_exemptions_is_challenged_only_without_one() -> None:
    asked = [answer("exempted", threeDSRequestorChallengeInd=f"0{n}") for n in range(1, 10)]
    assert [one["transStatus"] for one in asked] == ["C", "I", "C", "C", "I", "I", "I", "I", "C"]
    assert not any("authenticationValue" in one for one in asked), "an exemption is no proof"


def test_any_other_card_is_enrolled_and_authenticates_without_a_challenge() -> None:
    """Plain cards; A8.7."""
    assert choose_scenario("4200000000000000", {}) == choose_scenario("5555555555554444", {}) == "frictionless"


@pytest.mark.parametrize(
    ("number", "steering", "flow"),
    [
        ("4200000000000000", {ENROLLED_PARAMETER: "false"}, "not_enrolled"),
        ("4200000000000042", {ENROLLED_PARAMETER: "false"}, "not_enrolled"),
        ("4200000000000042", {ENROLLED_PARAMETER: "false", FLOW_PARAMETER: "challenge"}, "not_enrolled"),
        ("4012001037141112", {ENROLLED_PARAMETER: "true"}, "frictionless"),
        ("4012001037141112", {ENROLLED_PARAMETER: "true", FLOW_PARAMETER: "challenge"}, "challenge_pass"),
        ("4012001037141112", {FLOW_PARAMETER: "challenge"}, "not_enrolled"),
        ("4200000000000000", {FLOW_PARAMETER: "challenge"}, "challenge_pass"),
        ("4200000000000091", {FLOW_PARAMETER: "challenge"}, "challenge_pass"),
        ("4200000000000018", {FLOW_PARAMETER: "challenge"}, "challenge_fail"),
        ("4200000000000042", {FLOW_PARAMETER: "frictionless"}, "frictionless"),
        ("4200000000000018", {FLOW_PARAMETER: "frictionless"}, "frictionless"),
        ("4200000000000109", {FLOW_PARAMETER: "frictionless"}, "attempt"),
        ("4200000000000042", {FLOW_PARAMETER: "sideways"}, "challenge_pass"),
    ],
)
def test_custom_parameters_steer(number: str, steering: dict[str, str], flow: str) -> None:
    """Decisions, section 5: customParameters[3DS2_enrolled] and [3DS2_flow]."""
    assert choose_scenario(number, steering) == flow


def test_wishes_of_the_merchant_change_the_answer() -> None:
    """Part B, 3D Secure: challengeIndicator, decoupled, 3RI."""
    assert answer("frictionless", threeDSRequestorChallengeInd="04")["transStatus"] == "C"
    assert answer("frictionless", threeDSRequestorChallengeInd="02")["transStatus"] == "Y"
    assert answer("challenge_pass", threeDSRequestorChallengeInd="06")["transStatus"] == "I"
    assert answer("challenge_pass", threeDSRequestorDecReqInd="Y")["transStatus"] == "D"
    assert answer("frictionless", threeDSRequestorDecReqInd="Y")["transStatus"] == "Y"
    assert answer("challenge_pass", deviceChannel="03")["transStatus"] == "Y"
    refused = answer("challenge_fail", deviceChannel="03")
    assert (refused["transStatus"], refused["transStatusReason"]) == ("N", "21")


def challenge_state(flow: str = "challenge_pass") -> ChallengeState:
    return ChallengeState(scenario=flow, network="visa")


def test_the_right_code_passes_and_proves() -> None:
    """A8.6: enrolled card, challenge, success."""
    step = answer_challenge(challenge_state(), {"challengeDataEntry": f" {ONE_TIME_CODE[:3]} {ONE_TIME_CODE[3:]}"})
    assert step.rreq is not None
    assert (step.rreq["transStatus"], step.rreq["eci"]) == ("Y", "05")
    assert len(step.rreq["authenticationValue"]) == 28
    assert step.cres["challengeCompletionInd"] == "Y"


def test_three_wrong_codes_fail() -> None:
    """Limited tries."""
    state = challenge_state()
    for left in range(MAX_CODE_ATTEMPTS - 1, 0, -1):
        step = answer_challenge(state, {"challengeDataEntry": "000000"})
        assert step.rreq is None
        assert step.cres["challengeInfo"] == "wrong"
        state = step.challenge_state
        assert MAX_CODE_ATTEMPTS - state.attempts == left
    step = answer_challenge(state, {"challengeDataEntry": "000000"})
    assert step.rreq is not None
    assert (step.rreq["transStatus"], step.rreq.get("authenticationValue")) == ("N", None)


def test_an_empty_code_costs_no_try() -> None:
    """A slip of the finger."""
    step = answer_challenge(challenge_state(), {"challengeDataEntry": "  "})
    assert (step.rreq, step.challenge_state.attempts, step.cres["challengeInfo"]) == (None, 0, "empty")


def test_the_code_is_sent_again_a_few_times_only() -> None:
    """Resend, limited."""
    state = challenge_state()
    for _ in range(MAX_CODE_RESENDS):
        step = answer_challenge(state, {"resendChallenge": "Y"})
        assert step.cres["challengeInfo"] == "resent"
        state = step.challenge_state
    step = answer_challenge(state, {"resendChallenge": "Y"})
    assert (step.cres["challengeInfo"], step.challenge_state.resends) == ("resends", MAX_CODE_RESENDS)


def test_a_failing_card_fails_even_with_the_right_code() -> None:
    """Decisions, section 5: a challenge that fails."""
    step = answer_challenge(challenge_state("challenge_fail"), {"challengeDataEntry": ONE_TIME_CODE})
    assert step.rreq is not None
    assert step.rreq["transStatus"] == "N"


def test_cancelling_ends_it() -> None:
    """EMV 3DS, challengeCancel 01: by the cardholder."""
    step = answer_challenge(challenge_state(), {"challengeCancel": "01"})
    assert step.rreq is not None
    assert (step.rreq["transStatus"], step.rreq["challengeCancel"]) == ("N", "01")


@pytest.mark.parametrize("status", "YNU")
def test_the_test_panel_forces_an_outcome(status: str) -> None:
    """Look and feel: every outcome one click away."""
    step = answer_challenge(challenge_state("challenge_fail"), {"simulate": status})
    assert step.rreq is not None
    assert step.rreq["transStatus"] == status


def test_a_decoupled_result_goes_by_the_card() -> None:
    """Part B, decoupled."""
    assert build_decoupled_result(challenge_state())["transStatus"] == "Y"
    assert build_decoupled_result(challenge_state("challenge_fail"))["transStatus"] == "N"


def test_window_sizes_are_five_and_anything_else_is_full() -> None:
    """A20.10; decisions, section 5."""
    assert {code: resolve_challenge_window(code[1]) for code in CHALLENGE_WINDOWS} == {
        code: code for code in CHALLENGE_WINDOWS
    }
    assert resolve_challenge_window("") == resolve_challenge_window("9") == "05"
    assert CHALLENGE_WINDOWS == {
        "01": ("250", "400"),
        "02": ("390", "400"),
        "03": ("500", "600"),
        "04": ("600", "400"),
        "05": ("full", "full"),
    }
