"""The states of one payment and the moves between them: one table, one writer (gateway.payments.store)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from gateway.models import Status


class LifecycleEvent(enum.StrEnum):
    """What can happen to a payment."""

    BEGIN = "begin"
    REFUSE = "refuse"
    APPROVE = "approve"
    DECLINE = "decline"
    SUSPEND = "suspend"
    LOSE = "lose"
    RESUME = "resume"
    REROUTE = "reroute"


NOT_CREATED = None
"""The state before a payment exists."""

PAYMENT_TRANSITIONS: Mapping[tuple[Status | None, LifecycleEvent], Status] = MappingProxyType(
    {
        # A request that may be tried, or is refused by our own rules before anyone is asked.
        (NOT_CREATED, LifecycleEvent.BEGIN): Status.STARTED,
        (NOT_CREATED, LifecycleEvent.REFUSE): Status.DECLINED,
        # The acquirer's answer, or its silence.
        (Status.STARTED, LifecycleEvent.APPROVE): Status.APPROVED,
        (Status.STARTED, LifecycleEvent.DECLINE): Status.DECLINED,
        (Status.STARTED, LifecycleEvent.SUSPEND): Status.PENDING,
        (Status.STARTED, LifecycleEvent.LOSE): Status.IN_DOUBT,
        # It certainly did not accept: another acquirer is asked.
        (Status.STARTED, LifecycleEvent.REROUTE): Status.STARTED,
        # The shopper came back, or the bank spoke, or the deadline passed with evidence.
        (Status.PENDING, LifecycleEvent.APPROVE): Status.APPROVED,
        (Status.PENDING, LifecycleEvent.DECLINE): Status.DECLINED,
        (Status.PENDING, LifecycleEvent.LOSE): Status.IN_DOUBT,
        # The shopper authenticated: from here on the acquirer may have been asked.
        (Status.PENDING, LifecycleEvent.RESUME): Status.STARTED,
        # The connector was asked again and knew.
        (Status.IN_DOUBT, LifecycleEvent.APPROVE): Status.APPROVED,
        (Status.IN_DOUBT, LifecycleEvent.DECLINE): Status.DECLINED,
        (Status.IN_DOUBT, LifecycleEvent.SUSPEND): Status.PENDING,
    }
)


class PaymentTransitionError(Exception):
    """An event that the state does not allow: a fault of ours, never of a request."""


def resolve_next_status(status: Status | None, event: LifecycleEvent) -> Status:
    """The state that ``event`` leads to from ``status``. Raises PaymentTransitionError when there is none."""
    try:
        return PAYMENT_TRANSITIONS[status, event]
    except KeyError:
        raise PaymentTransitionError(f"{event} does not lead on from {status}") from None
