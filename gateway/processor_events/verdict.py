"""What an event is to whoever acts on it, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from gateway.connectors.port import Account
from gateway.models import Merchant, ProcessorEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event, with the account it came to and that account's merchant."""

    row: ProcessorEvent
    account: Account
    merchant: Merchant


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``payment``: what it was about; ``made``: what was recorded."""

    state: str
    why: str = ""
    payment: UUID | None = None
    made: UUID | None = None


def done(why: str = "", *, payment: UUID | None = None, made: UUID | None = None) -> Verdict:
    return Verdict(state=ProcessorEvent.State.DONE, why=why, payment=payment, made=made)


def ignored(why: str) -> Verdict:
    return Verdict(state=ProcessorEvent.State.IGNORED, why=why)


def flagged(why: str, *, payment: UUID | None = None) -> Verdict:
    """A person has to look: the back office lists these."""
    return Verdict(state=ProcessorEvent.State.FLAGGED, why=why, payment=payment)
