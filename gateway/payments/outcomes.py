"""How a payment leaves its line: approved, declined, suspended, or with its outcome unknown.

Every phase that can end the line returns one of these four, and gateway.payments.store.complete_payment writes it:
there is no other way for a payment to move. Source: docs/decisions/0058.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings

from gateway.connectors.port import AcquirerReply, OutcomeUnknownError
from gateway.core import result_codes
from gateway.core.masking import mask_text
from gateway.core.result_codes import OUTCOME_UNKNOWN_CODE
from gateway.core.secret import Secret
from gateway.models import Suspension
from gateway.models.payments import UNDECIDED
from gateway.payments.states import LifecycleEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """``reply``: the acquirer's answer, or one that we decided without it. ``at``: when it was known, by the merchant's
    clock. ``duration_ms``: of the acquirer call, 0 without one."""

    event: ClassVar[LifecycleEvent]

    reply: AcquirerReply
    at: datetime
    duration_ms: int = 0


class Approved(_Outcome):
    """The money was moved or reserved: APPROVED."""

    __slots__ = ()
    event = LifecycleEvent.APPROVE


class Booked(Approved):
    """A bank, or a card network, moved the money of what was declined here: APPROVED, from DECLINED."""

    __slots__ = ()
    event = LifecycleEvent.BOOK


class Declined(_Outcome):
    """It certainly was not, and will not be: DECLINED."""

    __slots__ = ()
    event = LifecycleEvent.DECLINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended(_Outcome):
    """It waits for its shopper or a bank until ``deadline`` (the merchant's clock): PENDING.

    ``stage``: whether it waits for our authentication or elsewhere. ``secrets_sealed``: what the acquirer call after
    the authentication needs and the row does not keep.
    """

    event = LifecycleEvent.SUSPEND

    deadline: datetime
    stage: Suspension.Stage = Suspension.Stage.REDIRECT
    secrets_sealed: bytes | None = None


class OutcomeUnknown(_Outcome):
    """The acquirer may have accepted it and did not say so: IN_DOUBT, until an inquiry finds out."""

    __slots__ = ()
    event = LifecycleEvent.LOSE


PaymentOutcome = Approved | Declined | Suspended | OutcomeUnknown


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationProof:
    """The authenticate phase lets the payment go on. ``parameters``: ``threeDSecure.*`` by full name, empty where no
    proof is needed."""

    parameters: Mapping[str, str | Secret]


def resolve_event(reply: AcquirerReply) -> LifecycleEvent:
    """The lifecycle event of an acquirer's answer, by the family of its result code."""
    if result_codes.is_approved(reply.code) or (result_codes.is_chargeback(reply.code) and reply.approved is not None):
        return LifecycleEvent.APPROVE
    return LifecycleEvent.SUSPEND if result_codes.is_pending(reply.code) else LifecycleEvent.DECLINE


def outcome_from_reply(reply: AcquirerReply, *, at: datetime, duration_ms: int = 0) -> Approved | Declined | Suspended:
    """The outcome that an acquirer's answer is. A pending one waits for GATEWAY_SHOPPER_DEADLINE_S where the shopper is
    redirected, for GATEWAY_TRANSFER_DEADLINE_S where a bank is to act, or longer if the connector says so."""
    match resolve_event(reply):
        case LifecycleEvent.APPROVE:
            return Approved(reply=reply, at=at, duration_ms=duration_ms)
        case LifecycleEvent.DECLINE:
            return Declined(reply=reply, at=at, duration_ms=duration_ms)
    redirected = reply.redirect is not None
    wait = settings.GATEWAY_SHOPPER_DEADLINE_S if redirected else settings.GATEWAY_TRANSFER_DEADLINE_S
    deadline = max(at + timedelta(seconds=wait), reply.pending_until or at)
    return Suspended(reply=reply, at=at, duration_ms=duration_ms, deadline=deadline)


def outcome_without_answer(unknown: OutcomeUnknownError, *, at: datetime, duration_ms: int) -> OutcomeUnknown:
    """The outcome of an acquirer call without an answer."""
    reply = AcquirerReply(
        code=OUTCOME_UNKNOWN_CODE,
        sent=unknown.sent,
        received=describe_silence(unknown),
        connector_tx_id=unknown.connector_tx_id,
    )
    return OutcomeUnknown(reply=reply, at=at, duration_ms=duration_ms)


def describe_silence(unknown: OutcomeUnknownError) -> dict[str, Any]:
    """What an exchange stores as received: why there is no answer, or the answer and why it is inconclusive."""
    if unknown.received:
        return {UNDECIDED: mask_text(str(unknown)), **unknown.received}
    return {"silence": mask_text(str(unknown))}
