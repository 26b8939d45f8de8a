"""What a word of a bank does to an order: the table that intake.py goes by. Source: docs/connectors/sepa.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.connectors.sepa.statement_entries import EntryType
from gateway.models import BankFile, BankOrder

State = BankOrder.State
Kind = BankFile.Kind

ORDER_TRANSITIONS: Final[Mapping[tuple[Kind, EntryType, State], State]] = MappingProxyType(
    {
        # A collection: refused before it was booked; booked; given back afterwards, as often as banks quarrel.
        (Kind.COLLECT, EntryType.REJECTED, State.FILED): State.REJECTED,
        (Kind.COLLECT, EntryType.REJECTED, State.BOOKED): State.RETURNED,
        (Kind.COLLECT, EntryType.IN, State.FILED): State.BOOKED,
        (Kind.COLLECT, EntryType.BACK_OUT, State.FILED): State.REJECTED,
        (Kind.COLLECT, EntryType.BACK_OUT, State.BOOKED): State.RETURNED,
        (Kind.COLLECT, EntryType.BACK_IN, State.RETURNED): State.WON_BACK,
        (Kind.COLLECT, EntryType.BACK_OUT, State.WON_BACK): State.RETURNED,
        # A transfer: refused; booked; come back.
        (Kind.PAY, EntryType.REJECTED, State.FILED): State.REJECTED,
        (Kind.PAY, EntryType.OUT, State.FILED): State.BOOKED,
        (Kind.PAY, EntryType.BACK_IN, State.FILED): State.REJECTED,
        (Kind.PAY, EntryType.BACK_IN, State.BOOKED): State.RETURNED,
    }
)
"""What an order is (kind), what is said, the state it is in → the state it comes to. Anything else moves nothing;
what is no repeat either is a finding."""

ORDER_REPEATS: Final[Mapping[tuple[Kind, EntryType], frozenset[State]]] = MappingProxyType(
    {
        (Kind.COLLECT, EntryType.REJECTED): frozenset({State.REJECTED, State.RETURNED, State.WON_BACK}),
        (Kind.COLLECT, EntryType.IN): frozenset({State.BOOKED, State.RETURNED, State.WON_BACK}),
        (Kind.COLLECT, EntryType.OUT): frozenset(),
        (Kind.COLLECT, EntryType.BACK_OUT): frozenset({State.REJECTED, State.RETURNED}),
        (Kind.COLLECT, EntryType.BACK_IN): frozenset({State.WON_BACK}),
        (Kind.PAY, EntryType.REJECTED): frozenset({State.REJECTED, State.RETURNED}),
        (Kind.PAY, EntryType.IN): frozenset(),
        (Kind.PAY, EntryType.OUT): frozenset({State.BOOKED, State.RETURNED}),
        (Kind.PAY, EntryType.BACK_OUT): frozenset(),
        (Kind.PAY, EntryType.BACK_IN): frozenset({State.REJECTED, State.RETURNED}),
    }
)
"""The states that a word has led to before, or may come late for: it says nothing new."""
