"""What an event is to whoever acts on it, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from gateway.connectors.port import ConnectorAccount
from gateway.models import Merchant, ProcessorEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class EventContext:
    """An event, with the account it came to and that account's merchant."""

    row: ProcessorEvent
    account: ConnectorAccount
    merchant: Merchant


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOutcome:
    """``payment``: what it was about; ``made``: what was recorded."""

    state: str
    why: str = ""
    payment: UUID | None = None
    made: UUID | None = None


def build_done_outcome(why: str = "", *, payment: UUID | None = None, made: UUID | None = None) -> EventOutcome:
    return EventOutcome(state=ProcessorEvent.State.DONE, why=why, payment=payment, made=made)


def build_ignored_outcome(why: str) -> EventOutcome:
    return EventOutcome(state=ProcessorEvent.State.IGNORED, why=why)


def build_flagged_outcome(why: str, *, payment: UUID | None = None) -> EventOutcome:
    """A person has to look: the back office lists these."""
    return EventOutcome(state=ProcessorEvent.State.FLAGGED, why=why, payment=payment)
