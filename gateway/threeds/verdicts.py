"""What an authentication's outcome means for the payment: one table by transStatus, one for reasons, one for policy.

Source: Part B, 3D Secure; decisions, section 3 (families 000.400.1xx, 100.390, 100.380).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

FRICTIONLESS: Final = "000.400.110"
SHARED: Final = "000.400.120"


class Then(enum.StrEnum):
    """What follows an outcome."""

    PROVED = "proved"
    ATTEMPTED = "attempted"
    INFORMED = "informed"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    CHALLENGE = "challenge"
    DECOUPLED = "decoupled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``payment``: the code of a payment that this declines. ``standalone``: the code of an authentication alone."""

    then: Then
    payment: str = ""
    standalone: str = ""


BY_STATUS: Final[Mapping[str, Verdict]] = MappingProxyType(
    {
        "Y": Verdict(then=Then.PROVED, standalone=FRICTIONLESS),
        "A": Verdict(then=Then.ATTEMPTED, payment="100.390.109", standalone=FRICTIONLESS),
        "I": Verdict(then=Then.INFORMED, standalone=SHARED),
        "U": Verdict(then=Then.UNAVAILABLE, payment="100.390.107", standalone="000.400.101"),
        "N": Verdict(then=Then.REFUSED, payment="100.380.401", standalone="100.380.401"),
        "R": Verdict(then=Then.REFUSED, payment="100.390.114", standalone="100.390.114"),
        "C": Verdict(then=Then.CHALLENGE),
        "D": Verdict(then=Then.DECOUPLED),
    }
)
"""transStatus → what follows."""

BY_REASON: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
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


class Lack(enum.StrEnum):
    """Why the directory answered with no authentication at all."""

    NOT_ENROLLED = "not enrolled"
    UNREACHABLE = "directory not reached"
    NOT_SET_UP = "not set up"


BY_LACK: Final[Mapping[Lack, tuple[str, str]]] = MappingProxyType(
    {
        Lack.NOT_ENROLLED: ("100.390.110", "000.400.102"),
        Lack.UNREACHABLE: ("100.390.111", "000.400.107"),
        Lack.NOT_SET_UP: ("100.390.106", "000.400.104"),
    }
)

CANCELLED: Final = "100.390.124"
TIMED_OUT: Final = "100.380.501"


class Policy(enum.StrEnum):
    """What a channel does without a full proof: go on without liability shift, or decline."""

    PROCEED = "proceed"
    DECLINE = "decline"


def verdict(trans_status: str, reason: str = "") -> Verdict:
    """The table's row, with the code that its reason gives. An unknown status counts as unavailable."""
    row = BY_STATUS.get(trans_status, BY_STATUS["U"])
    if row.then in (Then.REFUSED, Then.UNAVAILABLE) and reason in BY_REASON:
        payment, standalone = BY_REASON[reason]
        return Verdict(then=row.then, payment=payment, standalone=standalone)
    return row


def lacking(lack: Lack) -> Verdict:
    payment, standalone = BY_LACK[lack]
    return Verdict(then=Then.UNAVAILABLE, payment=payment, standalone=standalone)


def declines(then: Then, *, on_unavailable: Policy, on_attempt: Policy) -> bool:
    """Whether a payment ends here under a channel's policy."""
    if then is Then.ATTEMPTED:
        return on_attempt is Policy.DECLINE
    return then is Then.REFUSED or (then is Then.UNAVAILABLE and on_unavailable is Policy.DECLINE)
