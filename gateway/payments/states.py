"""The states of one payment and the moves between them: one table, one writer (gateway.payments.store)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from gateway.models import Status


class Event(enum.StrEnum):
    """What can happen to a payment."""

    BEGIN = "begin"
    REFUSE = "refuse"
    APPROVE = "approve"
    DECLINE = "decline"
    SUSPEND = "suspend"
    LOSE = "lose"
    RESUME = "resume"
    REROUTE = "reroute"


START = None
"""The state before a payment exists."""

TRANSITIONS: Mapping[tuple[Status | None, Event], Status] = MappingProxyType(
    {
        # A request that may be tried, or is refused by our own rules before anyone is asked.
        (START, Event.BEGIN): Status.STARTED,
        (START, Event.REFUSE): Status.DECLINED,
        # The acquirer's answer, or its silence.
        (Status.STARTED, Event.APPROVE): Status.APPROVED,
        (Status.STARTED, Event.DECLINE): Status.DECLINED,
        (Status.STARTED, Event.SUSPEND): Status.PENDING,
        (Status.STARTED, Event.LOSE): Status.IN_DOUBT,
        # It certainly did not accept: another acquirer is asked.
        (Status.STARTED, Event.REROUTE): Status.STARTED,
        # The shopper came back, or the bank spoke, or the deadline passed with evidence.
        (Status.PENDING, Event.APPROVE): Status.APPROVED,
        (Status.PENDING, Event.DECLINE): Status.DECLINED,
        (Status.PENDING, Event.LOSE): Status.IN_DOUBT,
        # The shopper authenticated: from here on the acquirer may have been asked.
        (Status.PENDING, Event.RESUME): Status.STARTED,
        # The connector was asked again and knew.
        (Status.IN_DOUBT, Event.APPROVE): Status.APPROVED,
        (Status.IN_DOUBT, Event.DECLINE): Status.DECLINED,
        (Status.IN_DOUBT, Event.SUSPEND): Status.PENDING,
    }
)


class ImpossibleMove(Exception):
    """An event that the state does not allow: a fault of ours, never of a request."""


def after(status: Status | None, event: Event) -> Status:
    """The state that ``event`` leads to from ``status``. Raises ImpossibleMove when there is none."""
    try:
        return TRANSITIONS[status, event]
    except KeyError:
        raise ImpossibleMove(f"{event} does not lead on from {status}") from None
