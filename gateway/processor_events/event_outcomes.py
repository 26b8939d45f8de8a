"""The input and the outcome of an event handler."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from gateway.connectors.port import ConnectorAccount
from gateway.models import Merchant, ProcessorEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class EventContext:
    """An event with its processor account, secrets opened, and the account's merchant."""

    row: ProcessorEvent
    account: ConnectorAccount
    merchant: Merchant


class ChainStillOpenError(Exception):
    """A payment of the event's chain has no final result yet: the event is processed again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOutcome:
    """The outcome of handling an event. ``state``: a ProcessorEvent.State; ``why``: the reason, for the back office;
    ``payment``: the payment it is about; ``recorded``: the follow-up recorded for it."""

    state: str
    why: str = ""
    payment: UUID | None = None
    recorded: UUID | None = None


def build_done_outcome(why: str = "", *, payment: UUID | None = None, recorded: UUID | None = None) -> EventOutcome:
    """The event is processed; nothing more to do."""
    return EventOutcome(state=ProcessorEvent.State.DONE, why=why, payment=payment, recorded=recorded)


def build_ignored_outcome(why: str) -> EventOutcome:
    """The event concerns no payment of this gateway, or moved no money."""
    return EventOutcome(state=ProcessorEvent.State.IGNORED, why=why)


def build_flagged_outcome(why: str, *, payment: UUID | None = None) -> EventOutcome:
    """The event needs a person: the back office lists flagged events."""
    return EventOutcome(state=ProcessorEvent.State.FLAGGED, why=why, payment=payment)
