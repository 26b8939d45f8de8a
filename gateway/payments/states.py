"""The state machine of a payment: one transition table, with gateway.payments.store as its only writer."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.models import Status


class LifecycleEvent(enum.StrEnum):
    """An event that moves a payment from one status to the next. LOSE: the acquirer's answer was lost (IN_DOUBT).
    EXPIRE: the time of an authorization has passed, which leaves it APPROVED."""

    BEGIN = "begin"
    REFUSE = "refuse"
    APPROVE = "approve"
    DECLINE = "decline"
    SUSPEND = "suspend"
    LOSE = "lose"
    RESUME = "resume"
    REROUTE = "reroute"
    EXPIRE = "expire"


FINAL_STATUSES: Final = (Status.APPROVED, Status.DECLINED)
NOT_CREATED = None
"""The state before a payment exists."""

PAYMENT_TRANSITIONS: Mapping[tuple[Status | None, LifecycleEvent], Status] = MappingProxyType(
    {
        # The payment begins, or is declined by our own checks before any acquirer is called.
        (NOT_CREATED, LifecycleEvent.BEGIN): Status.STARTED,
        (NOT_CREATED, LifecycleEvent.REFUSE): Status.DECLINED,
        # The acquirer's answer, or a lost one.
        (Status.STARTED, LifecycleEvent.APPROVE): Status.APPROVED,
        (Status.STARTED, LifecycleEvent.DECLINE): Status.DECLINED,
        (Status.STARTED, LifecycleEvent.SUSPEND): Status.PENDING,
        (Status.STARTED, LifecycleEvent.LOSE): Status.IN_DOUBT,
        # Failover: the acquirer certainly did not accept, and the next one is called.
        (Status.STARTED, LifecycleEvent.REROUTE): Status.STARTED,
        # The shopper returned, the bank answered, or the deadline passed and the void was confirmed.
        (Status.PENDING, LifecycleEvent.APPROVE): Status.APPROVED,
        (Status.PENDING, LifecycleEvent.DECLINE): Status.DECLINED,
        (Status.PENDING, LifecycleEvent.LOSE): Status.IN_DOUBT,
        # The shopper authenticated: from here on the acquirer may have been called.
        (Status.PENDING, LifecycleEvent.RESUME): Status.STARTED,
        # An inquiry found the outcome.
        (Status.IN_DOUBT, LifecycleEvent.APPROVE): Status.APPROVED,
        (Status.IN_DOUBT, LifecycleEvent.DECLINE): Status.DECLINED,
        (Status.IN_DOUBT, LifecycleEvent.SUSPEND): Status.PENDING,
        # An authorization may no longer be captured.
        (Status.APPROVED, LifecycleEvent.EXPIRE): Status.APPROVED,
    }
)


class PaymentTransitionError(Exception):
    """The status does not allow the event, because another worker moved the payment first."""


def resolve_next_status(status: Status | None, event: LifecycleEvent) -> Status:
    """The status that ``event`` leads to from ``status``. Raises PaymentTransitionError when there is none."""
    try:
        return PAYMENT_TRANSITIONS[status, event]
    except KeyError:
        raise PaymentTransitionError(f"{event} does not lead on from {status}") from None
