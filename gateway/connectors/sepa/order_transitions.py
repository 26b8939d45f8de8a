"""What a word of a bank does to an order: the table that intake.py goes by. Source: docs/connectors/sepa.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.connectors.sepa.statement_entries import EntryType
from gateway.models import BankFile, BankOrder

_State = BankOrder.State
_Kind = BankFile.Kind

ORDER_TRANSITIONS: Final[Mapping[tuple[_Kind, EntryType, _State], _State]] = MappingProxyType(
    {
        # A collection: refused before it was booked; booked; given back afterwards, as often as banks quarrel.
        (_Kind.COLLECT, EntryType.REJECTED, _State.FILED): _State.REJECTED,
        (_Kind.COLLECT, EntryType.REJECTED, _State.BOOKED): _State.RETURNED,
        (_Kind.COLLECT, EntryType.IN, _State.FILED): _State.BOOKED,
        (_Kind.COLLECT, EntryType.BACK_OUT, _State.FILED): _State.REJECTED,
        (_Kind.COLLECT, EntryType.BACK_OUT, _State.BOOKED): _State.RETURNED,
        (_Kind.COLLECT, EntryType.BACK_IN, _State.RETURNED): _State.WON_BACK,
        (_Kind.COLLECT, EntryType.BACK_OUT, _State.WON_BACK): _State.RETURNED,
        # A transfer: refused; booked; come back.
        (_Kind.PAY, EntryType.REJECTED, _State.FILED): _State.REJECTED,
        (_Kind.PAY, EntryType.OUT, _State.FILED): _State.BOOKED,
        (_Kind.PAY, EntryType.BACK_IN, _State.FILED): _State.REJECTED,
        (_Kind.PAY, EntryType.BACK_IN, _State.BOOKED): _State.RETURNED,
    }
)
"""What an order is (kind), what is said, the state it is in → the state it comes to. Anything else moves nothing;
what is no repeat either is a finding."""

ORDER_REPEATS: Final[Mapping[tuple[_Kind, EntryType], frozenset[_State]]] = MappingProxyType(
    {
        (_Kind.COLLECT, EntryType.REJECTED): frozenset({_State.REJECTED, _State.RETURNED, _State.WON_BACK}),
        (_Kind.COLLECT, EntryType.IN): frozenset({_State.BOOKED, _State.RETURNED, _State.WON_BACK}),
        (_Kind.COLLECT, EntryType.OUT): frozenset(),
        (_Kind.COLLECT, EntryType.BACK_OUT): frozenset({_State.REJECTED, _State.RETURNED}),
        (_Kind.COLLECT, EntryType.BACK_IN): frozenset({_State.WON_BACK}),
        (_Kind.PAY, EntryType.REJECTED): frozenset({_State.REJECTED, _State.RETURNED}),
        (_Kind.PAY, EntryType.IN): frozenset(),
        (_Kind.PAY, EntryType.OUT): frozenset({_State.BOOKED, _State.RETURNED}),
        (_Kind.PAY, EntryType.BACK_OUT): frozenset(),
        (_Kind.PAY, EntryType.BACK_IN): frozenset({_State.REJECTED, _State.RETURNED}),
    }
)
"""The states that a word has led to before, or may come late for: it says nothing new."""
