"""A rig: a connector with a processor of its own to test against, which can inject faults and shows its bookings.

A new connector passes the kit by describing itself with a Rig, in a module of this folder, and adding it to
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
"""silent_*: no answer, before or after the request was booked. hangs_up_*: the same, with the connection closed.
garbled: an answer that cannot be read."""


class Processor(Protocol):
    """The processor that the connector talks to, in a process or thread of its own, with its own record of bookings."""

    account: ConnectorAccount

    def inject_fault(self, fault: str) -> None:
        """The next request gets ``fault`` (one of FAULTS); the one after it does not."""
        ...

    def booked_amount(self, payment: UUID) -> Decimal:
        """The amount booked for a payment: zero if it was never booked, was declined or was voided."""
        ...

    def booked_amounts(self) -> Mapping[str, Decimal]:
        """Every booked amount by the payment's id as it was sent (32 hex digits): also under ids that are not ours, and
        under '' what came without one."""
        ...

    def go_down(self) -> None:
        """Stop listening: further connections are refused."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A connector under test, and how the kit tests it.

    - ``start``: a processor for the length of one test.
    - ``means``, ``declined``: a means that is approved; one (or an amount of the same means) that is declined, with
      its result code.
    - ``secrets``: texts that must not be in any stored message.
    - ``faults``: those of FAULTS that can happen on the way to this processor.
    - ``answers_later``: its first answer is pending, because banks take days; it stores requests in the database, whose
      rows are committed for it.
    - ``parameters``: what every request carries besides.
    - ``insert_payment``: writes the payment of a request, for a connector that reads it.
    - ``present_capture``: sends a capture with its batch, for a connector whose captures wait for one.
    - ``variant``: which configuration of its connector this is, where there are several.
    """

    connector: Connector
    start: Callable[[], AbstractContextManager[Processor]]
    brand: str
    means: Means
    money: Money
    declined: tuple[Means | Money, str]
    secrets: tuple[str, ...]
    faults: tuple[str, ...] = FAULTS
    answers_later: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    insert_payment: Callable[[AcquirerRequest], None] | None = None
    present_capture: Callable[[AcquirerRequest], None] | None = None
    variant: str = ""
