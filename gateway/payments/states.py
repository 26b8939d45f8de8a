"""The state machine of a payment: one transition table, with gateway.payments.store as its only writer."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.models import Status


class LifecycleEvent(enum.StrEnum):
    """An event that moves a payment from one status to the next. LOSE: the acquirer's answer was lost (IN_DOUBT).
    STEP_UP: the issuer declined for want of authentication, and the payment is authorized again with a challenge.
    CASCADE: the issuer declined, and the payment is authorized again at the next account of its route.
    TOKEN_FALLBACK: the issuer declined the network token, and the payment is authorized again with the card number.
    EXPIRE: the time of an authorization has passed; RETURN: a bank returned a transfer to the shopper,
    or a processor's refund failed after it was approved. Both leave the payment APPROVED. BOOK: a bank booked what it
    had rejected."""

    BEGIN = "begin"
    REFUSE = "refuse"
    APPROVE = "approve"
    DECLINE = "decline"
    SUSPEND = "suspend"
    LOSE = "lose"
    RESUME = "resume"
    REROUTE = "reroute"
    STEP_UP = "step_up"
    CASCADE = "cascade"
    TOKEN_FALLBACK = "token_fallback"  # noqa: S105 - an event's name
    EXPIRE = "expire"
    RETURN = "return"
    BOOK = "book"


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
        # Step-up: the issuer certainly declined, and wants the shopper to authenticate.
        (Status.STARTED, LifecycleEvent.STEP_UP): Status.STARTED,
        # Cascade: the issuer certainly declined, and another acquirer may be approved.
        (Status.STARTED, LifecycleEvent.CASCADE): Status.STARTED,
        # Fallback: the issuer certainly declined the network token, and may approve the card number.
        (Status.STARTED, LifecycleEvent.TOKEN_FALLBACK): Status.STARTED,
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
        # A refund or payout came back from the shopper's bank, or did not reach it.
        (Status.APPROVED, LifecycleEvent.RETURN): Status.APPROVED,
        # A bank rejected the order, or a payout was said not to be made, and the money moved nevertheless: it decides.
        (Status.DECLINED, LifecycleEvent.BOOK): Status.APPROVED,
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
