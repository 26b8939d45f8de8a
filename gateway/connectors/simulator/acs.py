"""The simulated issuer of the test environment (directory server and ACS): authenticates by the test card's row.

Pure except for random ids and cryptograms. ``steering``: the values of customParameters[3DS2_enrolled] and [3DS2_flow],
used in the test mode INTERNAL only. Source: Part B, 3D Secure.
"""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from uuid import UUID

from gateway.connectors.simulator.cards import find_simulated_card
from gateway.core.secret import Secret, reveal_text
from gateway.threeds_protocol.messages import (
    CHALLENGE_REQUESTED,
    DATA_ONLY,
    REQUESTOR_CHANNEL,
    CardRange,
    ThreeDSMessage,
)
from gateway.threeds_protocol.networks import THREEDS_VERSION, find_network_eci

ONE_TIME_CODE: Final = "123456"
"""The code that passes a challenge. It is shown on the page and among the test data, since no messages are sent."""
MAX_CODE_ATTEMPTS: Final = 3
"""Codes that may be entered; the last wrong one fails the challenge."""
MAX_CODE_RESENDS: Final = 3
DECOUPLED_AFTER_S: Final = 30
"""Seconds, merchant's clock, until the simulated banking app confirms a decoupled authentication."""
ENROLLED_PARAMETER, FLOW_PARAMETER = "customParameters[3DS2_enrolled]", "customParameters[3DS2_flow]"
ACS_REFERENCE_NUMBER: Final = "TOLLHOUSE-SIMULATED-ACS"

SIMULATED_SERVER: Final[Mapping[str, str]] = MappingProxyType(
    {"threeDSServerRefNumber": "TOLLHOUSE-SIMULATED-3DSS", "threeDSServerURL": "https://threeds-server.example/results"}
)
"""How the simulated 3DS server names itself in an AReq."""

_CHALLENGES: Final = frozenset({"challenge_pass", "challenge_fail", "method_challenge", "exempted"})
_EXEMPTION_REQUESTED: Final = frozenset({"02", "05", "07", "08"})
"""The challengeIndicators that ask for no challenge: no reason, low risk, delegated, trusted merchant."""
_METHODS: Final = frozenset({"method", "method_challenge"})


def choose_scenario(number: str | Secret, steering: Mapping[str, str]) -> str:
    """The authentication scenario of a card; cards outside the table are authenticated frictionless."""
    card = find_simulated_card(reveal_text(number))
    flow = (card.threeds if card is not None else None) or "frictionless"
    enrolled, wanted = steering.get(ENROLLED_PARAMETER), steering.get(FLOW_PARAMETER)
    if enrolled == "false" or (flow == "not_enrolled" and enrolled != "true"):
        return "not_enrolled"
    if flow == "not_enrolled":
        flow = "frictionless"
    if wanted == "challenge" and flow not in _CHALLENGES:
        return "challenge_pass"
    if wanted == "frictionless" and flow in _CHALLENGES:
        return "frictionless"
    return str(flow)


def find_card_range(scenario: str) -> CardRange | None:
    """The card range of a scenario; None for a card that is in no issuer's range."""
    if scenario == "not_enrolled":
        return None
    return CardRange(version=THREEDS_VERSION, method=scenario in _METHODS, server=SIMULATED_SERVER)


def build_ares(areq: ThreeDSMessage, scenario: str, network: str) -> ThreeDSMessage:
    """The answer (ARes) to an authentication request."""
    status, reason = _decide_status(areq, scenario)
    answer: ThreeDSMessage = {
        "messageType": "ARes",
        "messageVersion": areq["messageVersion"],
        "threeDSServerTransID": areq["threeDSServerTransID"],
        "dsTransID": str(uuid.uuid4()),
        "acsTransID": str(uuid.uuid4()),
        "acsReferenceNumber": ACS_REFERENCE_NUMBER,
        "transStatus": status,
        "transStatusReason": reason,
        **_build_proof(status, network),
    }
    if status == "C":
        answer |= {"authenticationType": "02", "acsChallengeMandated": "Y"}
    if status == "D":
        answer |= {"authenticationType": "04", "acsDecConInd": "Y"}
    return {name: value for name, value in answer.items() if value}


def _decide_status(areq: ThreeDSMessage, scenario: str) -> tuple[str, str]:
    """transStatus and transStatusReason."""
    if scenario == "unavailable":
        return "U", "22"
    if scenario == "rejected":
        return "R", "11"
    if areq.get("threeDSRequestorChallengeInd") == DATA_ONLY:
        return "I", ""
    if scenario == "exempted" and areq.get("threeDSRequestorChallengeInd") in _EXEMPTION_REQUESTED:
        return "I", ""
    if scenario == "attempt":
        return "A", ""
    if scenario == "when_mandated" and areq.get("threeDSRequestorChallengeInd") not in CHALLENGE_REQUESTED:
        return "U", ""
    if scenario in _CHALLENGES and areq.get("threeDSRequestorDecReqInd") == "Y":
        return "D", ""
    if areq["deviceChannel"] == REQUESTOR_CHANNEL:
        return ("N", "21") if scenario == "challenge_fail" else ("Y", "")
    if scenario in _CHALLENGES or areq.get("threeDSRequestorChallengeInd") in CHALLENGE_REQUESTED:
        return "C", ""
    return "Y", ""


def _build_proof(status: str, network: str) -> ThreeDSMessage:
    """ECI and authenticationValue (a CAVV: 20 bytes, 28 characters of Base64), where the status has a proof."""
    value = base64.b64encode(secrets.token_bytes(20)).decode() if status in ("Y", "A") else ""
    return {"eci": find_network_eci(network, status), "authenticationValue": value}


class SimulatedDirectory:
    """The simulated directory server: answers from the table of test cards, in this process."""

    name = "simulator"
    url = ""

    def look_up(self, number: Secret, steering: Mapping[str, str], ident: UUID) -> tuple[str, CardRange | None]:
        scenario = choose_scenario(number, steering)
        return scenario, find_card_range(scenario)

    def authenticate(self, areq: ThreeDSMessage, scenario: str, network: str) -> ThreeDSMessage:
        return build_ares(areq, scenario, network)


SIMULATED_DIRECTORY: Final = SimulatedDirectory()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeState:
    """A challenge at the ACS: its scenario, and how many codes were entered and sent again."""

    scenario: str
    network: str
    attempts: int = 0
    resends: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeStep:
    """Result of one CReq: the ``cres`` for the shopper, and the ``rreq`` once the challenge has ended."""

    challenge_state: ChallengeState
    cres: ThreeDSMessage
    rreq: ThreeDSMessage | None = None


def answer_challenge(challenge_state: ChallengeState, creq: ThreeDSMessage) -> ChallengeStep:
    """Handle one CReq: a code, a request for another code, a cancellation. ``simulate``: a status, from the test
    panel."""
    if creq.get("challengeCancel"):
        return _end_challenge(challenge_state, creq, "N", cancel=creq["challengeCancel"])
    if forced := creq.get("simulate"):
        return _end_challenge(challenge_state, creq, forced, reason={"U": "22", "N": "01"}.get(forced, ""))
    if creq.get("resendChallenge") == "Y":
        if challenge_state.resends >= MAX_CODE_RESENDS:
            return _ask_again(challenge_state, creq, "resends")
        return _ask_again(_with_counts(challenge_state, resends=1), creq, "resent")
    entered = str(creq.get("challengeDataEntry", "")).replace(" ", "")
    if not entered:
        return _ask_again(challenge_state, creq, "empty")
    challenge_state = _with_counts(challenge_state, attempts=1)
    if challenge_state.scenario == "challenge_fail":
        return _end_challenge(challenge_state, creq, "N", reason="01")
    if secrets.compare_digest(entered.encode(), ONE_TIME_CODE.encode()):
        return _end_challenge(challenge_state, creq, "Y")
    if challenge_state.attempts >= MAX_CODE_ATTEMPTS:
        return _end_challenge(challenge_state, creq, "N", reason="01")
    return _ask_again(challenge_state, creq, "wrong")


def build_decoupled_result(challenge_state: ChallengeState) -> ThreeDSMessage:
    """The RReq of a decoupled authentication that the cardholder has confirmed in the banking app."""
    status = "N" if challenge_state.scenario == "challenge_fail" else "Y"
    return _build_rreq(challenge_state, {}, status, reason="01" if status == "N" else "")


def build_closed_cres(creq: ThreeDSMessage, status: str) -> ThreeDSMessage:
    """The CRes of a challenge that had ended before."""
    return _build_cres(creq) | {"challengeCompletionInd": "Y", "transStatus": status}


def _with_counts(challenge_state: ChallengeState, *, attempts: int = 0, resends: int = 0) -> ChallengeState:
    return ChallengeState(
        scenario=challenge_state.scenario,
        network=challenge_state.network,
        attempts=challenge_state.attempts + attempts,
        resends=challenge_state.resends + resends,
    )


def _ask_again(challenge_state: ChallengeState, creq: ThreeDSMessage, info: str) -> ChallengeStep:
    cres = _build_cres(creq) | {"challengeCompletionInd": "N", "challengeInfo": info}
    return ChallengeStep(challenge_state=challenge_state, cres=cres)


def _end_challenge(
    challenge_state: ChallengeState, creq: ThreeDSMessage, status: str, *, reason: str = "", cancel: str = ""
) -> ChallengeStep:
    return ChallengeStep(
        challenge_state=challenge_state,
        cres=build_closed_cres(creq, status),
        rreq=_build_rreq(challenge_state, creq, status, reason=reason, cancel=cancel),
    )


def _build_cres(creq: ThreeDSMessage) -> ThreeDSMessage:
    kept = ("messageVersion", "threeDSServerTransID", "acsTransID")
    return {"messageType": "CRes", **{name: creq[name] for name in kept if name in creq}}


def _build_rreq(
    challenge_state: ChallengeState, creq: ThreeDSMessage, status: str, *, reason: str, cancel: str = ""
) -> ThreeDSMessage:
    message: ThreeDSMessage = {
        "messageType": "RReq",
        "messageVersion": creq.get("messageVersion", THREEDS_VERSION),
        "transStatus": status,
        "transStatusReason": reason,
        "challengeCancel": cancel,
        "authenticationType": "02" if creq else "04",
        "interactionCounter": f"{challenge_state.attempts + challenge_state.resends:02d}",
        **_build_proof(status, challenge_state.network),
    }
    return {name: value for name, value in message.items() if value}
