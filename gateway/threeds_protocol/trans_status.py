"""Maps authentication outcomes to the payment: tables by transStatus, by reason, and by channel policy.

Source: Part B, 3D Secure (families 000.400.1xx, 100.390, 100.380).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

FRICTIONLESS_CODE: Final = "000.400.110"
DATA_SHARED_CODE: Final = "000.400.120"


class AuthenticationResult(enum.StrEnum):
    """The consequence of an outcome."""

    PROVED = "proved"
    ATTEMPTED = "attempted"
    INFORMED = "informed"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    CHALLENGE = "challenge"
    DECOUPLED = "decoupled"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationVerdict:
    """A result with its codes. ``payment``: for a payment that it declines; ``standalone``: for a standalone
    authentication."""

    then: AuthenticationResult
    payment: str = ""
    standalone: str = ""


VERDICT_BY_TRANS_STATUS: Final[Mapping[str, AuthenticationVerdict]] = MappingProxyType(
    {
        "Y": AuthenticationVerdict(then=AuthenticationResult.PROVED, standalone=FRICTIONLESS_CODE),
        "A": AuthenticationVerdict(
            then=AuthenticationResult.ATTEMPTED, payment="100.390.109", standalone=FRICTIONLESS_CODE
        ),
        "I": AuthenticationVerdict(then=AuthenticationResult.INFORMED, standalone=DATA_SHARED_CODE),
        "U": AuthenticationVerdict(
            then=AuthenticationResult.UNAVAILABLE, payment="100.390.107", standalone="000.400.101"
        ),
        "N": AuthenticationVerdict(then=AuthenticationResult.REFUSED, payment="100.380.401", standalone="100.380.401"),
        "R": AuthenticationVerdict(then=AuthenticationResult.REFUSED, payment="100.390.114", standalone="100.390.114"),
        "C": AuthenticationVerdict(then=AuthenticationResult.CHALLENGE),
        "D": AuthenticationVerdict(then=AuthenticationResult.DECOUPLED),
    }
)
"""transStatus → what follows."""

CODES_BY_TRANS_STATUS_REASON: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "02": ("100.390.113", "000.400.105"),  # unknown device
        "03": ("100.390.113", "000.400.105"),  # device not supported
        "04": ("100.390.119", "100.390.119"),  # authenticated too often
        "08": ("100.390.110", "000.400.108"),  # no card record
        "11": ("100.390.118", "100.390.118"),  # fraud suspected
        "13": ("100.390.110", "000.400.102"),  # cardholder not enrolled
        "14": ("100.380.501", "100.380.501"),  # timed out at the ACS
        "19": ("100.390.119", "100.390.119"),  # too many challenges
        "20": ("100.390.120", "100.390.120"),  # no non-payment authentication
        "21": ("100.390.121", "000.400.112"),  # no 3RI
        "22": ("100.390.112", "000.400.103"),  # technical fault of the ACS
        "24": ("100.390.122", "100.390.122"),  # decoupled: out of time
        "25": ("100.390.122", "100.390.122"),  # decoupled: not enough time
    }
)
"""transStatusReason of a refusal or of an unavailable authentication → its code of (payment, authentication alone)."""


class MissingAuthentication(enum.StrEnum):
    """Why the directory server gave no authentication."""

    NOT_ENROLLED = "not enrolled"
    UNREACHABLE = "directory not reached"
    NOT_SET_UP = "not set up"
    INCOMPLETE = "required fields missing"
    MALFORMED = "answer not in the protocol"
    VERSION = "not in the protocol version that the issuer speaks"


CODES_BY_MISSING_AUTHENTICATION: Final[Mapping[MissingAuthentication, tuple[str, str]]] = MappingProxyType(
    {
        MissingAuthentication.NOT_ENROLLED: ("100.390.110", "000.400.102"),
        MissingAuthentication.UNREACHABLE: ("100.390.111", "000.400.107"),
        MissingAuthentication.NOT_SET_UP: ("100.390.106", "000.400.104"),
        MissingAuthentication.INCOMPLETE: ("100.390.117", "000.400.104"),
        MissingAuthentication.MALFORMED: ("100.390.115", "000.400.103"),
        MissingAuthentication.VERSION: ("100.390.121", "000.400.113"),
    }
)

CHALLENGE_CANCELLED: Final = "100.390.124"
AUTHENTICATION_TIMED_OUT: Final = "100.380.501"
CANCELLED_BY_CARDHOLDER: Final = "01"
"""challengeCancel: the cardholder pressed Cancel."""
CODES_BY_CHALLENGE_CANCEL: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        CANCELLED_BY_CARDHOLDER: (CHALLENGE_CANCELLED, CHALLENGE_CANCELLED),
        "03": (AUTHENTICATION_TIMED_OUT, AUTHENTICATION_TIMED_OUT),  # decoupled: out of time
        "04": (AUTHENTICATION_TIMED_OUT, AUTHENTICATION_TIMED_OUT),  # timed out at the ACS
        "05": (AUTHENTICATION_TIMED_OUT, AUTHENTICATION_TIMED_OUT),  # no first CReq reached the ACS
        "06": ("100.390.112", "000.400.103"),  # transaction error
        "08": (AUTHENTICATION_TIMED_OUT, AUTHENTICATION_TIMED_OUT),  # timed out in the app's SDK
    }
)
"""challengeCancel → codes of (payment, authentication alone). 02 is reserved and 07 is "unknown": the status decides.
Source: EMV 3-D Secure v2.2.0, table A.1, Challenge Cancelation Indicator; not read in the original, quoted by
https://developer.cybersource.com/docs/cybs/en-us/api-fields/reference/all/so/api-fields/payer-auth-validate-reply-challenge-cancel-code.html."""
RESULT_STATUSES: Final = frozenset({"Y", "A", "N", "U", "R"})
"""transStatus that a result of a challenge (RReq) may have; C, D and I are answers to an AReq only."""


class UnprovenPolicy(enum.StrEnum):
    """A channel's policy without a full proof: continue without liability shift, or decline."""

    PROCEED = "proceed"
    DECLINE = "decline"


def find_verdict(
    trans_status: str, reason: str = "", *, informed: Mapping[str, str] = MappingProxyType({})
) -> AuthenticationVerdict:
    """The verdict for a transStatus and its reason. An unknown status counts as unavailable. ``informed``:
    transStatus → the reason with which the network means I (gateway.threeds_protocol.networks.ThreeDSNetwork)."""
    if reason and informed.get(trans_status) == reason:
        return VERDICT_BY_TRANS_STATUS["I"]
    row = VERDICT_BY_TRANS_STATUS.get(trans_status, VERDICT_BY_TRANS_STATUS["U"])
    if (
        row.then in (AuthenticationResult.REFUSED, AuthenticationResult.UNAVAILABLE)
        and reason in CODES_BY_TRANS_STATUS_REASON
    ):
        payment, standalone = CODES_BY_TRANS_STATUS_REASON[reason]
        return AuthenticationVerdict(then=row.then, payment=payment, standalone=standalone)
    return row


def find_missing_verdict(lack: MissingAuthentication) -> AuthenticationVerdict:
    """The verdict when there was no authentication. A channel without a 3DS server always declines: the merchant
    switched authentication on, and would believe that the issuer carries the risk (docs/decisions/0066)."""
    payment, standalone = CODES_BY_MISSING_AUTHENTICATION[lack]
    refused = lack in (MissingAuthentication.NOT_SET_UP, MissingAuthentication.INCOMPLETE)
    then = AuthenticationResult.REFUSED if refused else AuthenticationResult.UNAVAILABLE
    return AuthenticationVerdict(then=then, payment=payment, standalone=standalone)


def is_declined_by_policy(
    then: AuthenticationResult, *, on_unavailable: UnprovenPolicy, on_attempt: UnprovenPolicy
) -> bool:
    """True if the channel's policy declines the payment."""
    if then is AuthenticationResult.ATTEMPTED:
        return on_attempt is UnprovenPolicy.DECLINE
    return then is AuthenticationResult.REFUSED or (
        then is AuthenticationResult.UNAVAILABLE and on_unavailable is UnprovenPolicy.DECLINE
    )
