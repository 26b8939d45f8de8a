"""A rig: a connector with a processor of its own behind it, that can be told to misbehave and shows its books.

A new connector passes the kit by describing itself with a Rig, in a module of its own beside this one, and adding it to
RIGS in tests/connectors/conftest.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Protocol
from uuid import UUID

from gateway.connectors.means import Means
from gateway.connectors.port import AcquirerRequest, Connector, ConnectorAccount
from gateway.core.money import Money

FAULTS: Final = ("silent_before", "silent_after", "hangs_up_before", "hangs_up_after", "garbled")
"""silent_*: no answer, and the question never reached the books, or did. hangs_up_*: the same with the connection
closed. garbled: the answer is none."""


class Processor(Protocol):
    """What stands behind the connector, in a process or thread of its own, with books of its own."""

    account: ConnectorAccount

    def misbehave(self, fault: str) -> None:
        """The next question meets ``fault`` (one of FAULTS); the one after it does not."""
        ...

    def stands(self, payment: UUID) -> Decimal:
        """What stands booked for a payment: zero for one that was never booked, declined, or taken back."""
        ...

    def books(self) -> Mapping[str, Decimal]:
        """All that stands booked, by the payment's id as it was sent (32 hex digits), whoever's it is: what came under
        an id that is none of ours too, and under '' what came without one."""
        ...

    def vanish(self) -> None:
        """Nobody listens any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """``start``: a processor for the length of one test. ``means``: one that is approved, ``declined``: one (or an
    amount of the same means) that is not, and the result code it gets. ``secrets``: texts that may stand nowhere in
    what is kept of a message. ``faults``: those of FAULTS that can happen between the two. ``waits``: its first answer
    is pending, since banks take days; it keeps what it is asked for in the database, whose rows are committed for it.
    ``parameters``: what every question carries beside. ``begins``: writes the payment that asks, for one that looks.
    ``presents``: its captures wait too, and this sends one with its batch. ``variant``: which set-up of its connector
    this is, where there are several."""

    connector: Connector
    start: Callable[[], AbstractContextManager[Processor]]
    brand: str
    means: Means
    money: Money
    declined: tuple[Means | Money, str]
    secrets: tuple[str, ...]
    faults: tuple[str, ...] = FAULTS
    waits: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    begins: Callable[[AcquirerRequest], None] | None = None
    presents: Callable[[AcquirerRequest], None] | None = None
    variant: str = ""
