"""The simulated directory and access control server: what a bank would answer, decided by the test card's row.

Pure but for the random ids and proof of an answer. ``steering`` are the values of customParameters[3DS2_enrolled] and
[3DS2_flow], which count in the test mode INTERNAL only. Source: decisions, section 5; Part B, 3D Secure.
"""

from __future__ import annotations

import base64
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.connectors.simulator.cards import simulated
from gateway.secret import Secret
from gateway.threeds.messages import CHALLENGE_WANTED, DATA_ONLY, REQUESTOR, Message
from gateway.threeds.networks import VERSION, eci_of

ONE_TIME_CODE: Final = "123456"
"""The code that passes a challenge. It stands on the page and among the test data: this bank sends no messages."""
MAX_ATTEMPTS: Final = 3
"""Codes that may be entered; the last wrong one fails the challenge."""
MAX_RESENDS: Final = 3
DECOUPLED_AFTER_S: Final = 30
"""Seconds, merchant's clock, until the simulated banking app confirms a decoupled authentication by itself."""
ENROLLED, FLOW = "customParameters[3DS2_enrolled]", "customParameters[3DS2_flow]"
REFERENCE: Final = "TOLLHOUSE-SIMULATED-ACS"

WINDOWS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"01": ("250", "400"), "02": ("390", "400"), "03": ("500", "600"), "04": ("600", "400"), "05": ("full", "full")}
)
"""Challenge window sizes by code: width and height in CSS pixels."""
DEFAULT_WINDOW: Final = "05"

_CHALLENGES: Final = frozenset({"challenge_pass", "challenge_fail", "method_challenge"})
_METHODS: Final = frozenset({"method", "method_challenge"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRange:
    """What the directory knows of a card before it is asked: the version and whether the issuer has a method page."""

    version: str
    method: bool


def window_of(challenge_window: str) -> str:
    """The two-digit code of a sent customer.browser.challengeWindow (one digit); full size for none or another."""
    code = challenge_window.zfill(2)
    return code if code in WINDOWS else DEFAULT_WINDOW


def scenario(number: str | Secret, steering: Mapping[str, str]) -> str:
    """How an authentication of this card goes; cards outside the table authenticate without a challenge."""
    card = simulated(number.reveal() if isinstance(number, Secret) else number)
    flow = (card.threeds if card is not None else None) or "frictionless"
    enrolled, wanted = steering.get(ENROLLED), steering.get(FLOW)
    if enrolled == "false" or (flow == "not_enrolled" and enrolled != "true"):
        return "not_enrolled"
    if flow == "not_enrolled":
        flow = "frictionless"
    if wanted == "challenge" and flow not in _CHALLENGES:
        return "challenge_pass"
    if wanted == "frictionless" and flow in _CHALLENGES:
        return "frictionless"
    return str(flow)


def card_range(scenario: str) -> CardRange | None:
    """None for a card that is in no issuer's range."""
    if scenario == "not_enrolled":
        return None
    return CardRange(version=VERSION, method=scenario in _METHODS)


def ares(areq: Message, scenario: str, network: str) -> Message:
    """The answer to an authentication request."""
    status, reason = _decided(areq, scenario)
    answer: Message = {
        "messageType": "ARes",
        "messageVersion": areq["messageVersion"],
        "threeDSServerTransID": areq["threeDSServerTransID"],
        "dsTransID": str(uuid.uuid4()),
        "acsTransID": str(uuid.uuid4()),
        "acsReferenceNumber": REFERENCE,
        "transStatus": status,
        "transStatusReason": reason,
        **_proof(status, network),
    }
    if status == "C":
        answer |= {"authenticationType": "02", "acsChallengeMandated": "Y"}
    if status == "D":
        answer |= {"authenticationType": "04", "acsDecConInd": "Y"}
    return {name: value for name, value in answer.items() if value}


def _decided(areq: Message, scenario: str) -> tuple[str, str]:
    """transStatus and transStatusReason."""
    if scenario == "unavailable":
        return "U", "22"
    if scenario == "rejected":
        return "R", "11"
    if areq.get("threeDSRequestorChallengeInd") == DATA_ONLY:
        return "I", ""
    if scenario == "attempt":
        return "A", ""
    if scenario in _CHALLENGES and areq.get("threeDSRequestorDecReqInd") == "Y":
        return "D", ""
    if areq["deviceChannel"] == REQUESTOR:
        return ("N", "21") if scenario == "challenge_fail" else ("Y", "")
    if scenario in _CHALLENGES or areq.get("threeDSRequestorChallengeInd") in CHALLENGE_WANTED:
        return "C", ""
    return "Y", ""


def _proof(status: str, network: str) -> Message:
    """eci and authenticationValue (a CAVV: 20 bytes, 28 characters of Base64) where there is something to prove."""
    value = base64.b64encode(secrets.token_bytes(20)).decode() if status in ("Y", "A") else ""
    return {"eci": eci_of(network, status), "authenticationValue": value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A challenge as the bank has it: how it will go, how many codes were entered and sent again."""

    scenario: str
    network: str
    attempts: int = 0
    resends: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What came of one CReq. ``cres`` for the shopper; ``rreq`` the result, once there is one."""

    desk: Desk
    cres: Message
    rreq: Message | None = None


def challenge(desk: Desk, creq: Message) -> Step:
    """One move of the shopper: a code, another code wanted, cancelled. ``simulate`` is the test panel's: a status."""
    if creq.get("challengeCancel"):
        return _ended(desk, creq, "N", cancel=creq["challengeCancel"])
    if forced := creq.get("simulate"):
        return _ended(desk, creq, forced, reason={"U": "22", "N": "01"}.get(forced, ""))
    if creq.get("resendChallenge") == "Y":
        if desk.resends >= MAX_RESENDS:
            return _asked_again(desk, creq, "resends")
        return _asked_again(_counted(desk, resends=1), creq, "resent")
    entered = str(creq.get("challengeDataEntry", "")).replace(" ", "")
    if not entered:
        return _asked_again(desk, creq, "empty")
    desk = _counted(desk, attempts=1)
    if desk.scenario == "challenge_fail":
        return _ended(desk, creq, "N", reason="01")
    if secrets.compare_digest(entered.encode(), ONE_TIME_CODE.encode()):
        return _ended(desk, creq, "Y")
    if desk.attempts >= MAX_ATTEMPTS:
        return _ended(desk, creq, "N", reason="01")
    return _asked_again(desk, creq, "wrong")


def decoupled_result(desk: Desk) -> Message:
    """The RReq of a decoupled authentication whose cardholder has answered in the banking app."""
    status = "N" if desk.scenario == "challenge_fail" else "Y"
    return _rreq(desk, {}, status, reason="01" if status == "N" else "")


def closed(creq: Message, status: str) -> Message:
    """The CRes of a challenge that has ended before."""
    return _cres(creq) | {"challengeCompletionInd": "Y", "transStatus": status}


def _counted(desk: Desk, *, attempts: int = 0, resends: int = 0) -> Desk:
    return Desk(
        scenario=desk.scenario, network=desk.network, attempts=desk.attempts + attempts, resends=desk.resends + resends
    )


def _asked_again(desk: Desk, creq: Message, info: str) -> Step:
    cres = _cres(creq) | {"challengeCompletionInd": "N", "challengeInfo": info}
    return Step(desk=desk, cres=cres)


def _ended(desk: Desk, creq: Message, status: str, *, reason: str = "", cancel: str = "") -> Step:
    return Step(desk=desk, cres=closed(creq, status), rreq=_rreq(desk, creq, status, reason=reason, cancel=cancel))


def _cres(creq: Message) -> Message:
    kept = ("messageVersion", "threeDSServerTransID", "acsTransID")
    return {"messageType": "CRes", **{name: creq[name] for name in kept if name in creq}}


def _rreq(desk: Desk, creq: Message, status: str, *, reason: str = "", cancel: str = "") -> Message:
    message: Message = {
        "messageType": "RReq",
        "messageVersion": creq.get("messageVersion", VERSION),
        "transStatus": status,
        "transStatusReason": reason,
        "challengeCancel": cancel,
        "authenticationType": "02" if creq else "04",
        "interactionCounter": f"{desk.attempts + desk.resends:02d}",
        **_proof(status, desk.network),
    }
    return {name: value for name, value in message.items() if value}
