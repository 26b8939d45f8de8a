"""What a word of a bank does to an order: the table that intake.py goes by. Source: docs/connectors/sepa.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.connectors.sepa.statements import Word
from gateway.models import BankFile, BankOrder

State = BankOrder.State
Kind = BankFile.Kind

MOVES: Final[Mapping[tuple[Kind, Word, State], State]] = MappingProxyType(
    {
        # A collection: refused before it was booked; booked; given back afterwards, as often as banks quarrel.
        (Kind.COLLECT, Word.REJECTED, State.FILED): State.REJECTED,
        (Kind.COLLECT, Word.REJECTED, State.BOOKED): State.RETURNED,
        (Kind.COLLECT, Word.IN, State.FILED): State.BOOKED,
        (Kind.COLLECT, Word.BACK_OUT, State.FILED): State.REJECTED,
        (Kind.COLLECT, Word.BACK_OUT, State.BOOKED): State.RETURNED,
        (Kind.COLLECT, Word.BACK_IN, State.RETURNED): State.WON_BACK,
        (Kind.COLLECT, Word.BACK_OUT, State.WON_BACK): State.RETURNED,
        # A transfer: refused; booked; come back.
        (Kind.PAY, Word.REJECTED, State.FILED): State.REJECTED,
        (Kind.PAY, Word.OUT, State.FILED): State.BOOKED,
        (Kind.PAY, Word.BACK_IN, State.FILED): State.REJECTED,
        (Kind.PAY, Word.BACK_IN, State.BOOKED): State.RETURNED,
    }
)
"""What an order is (kind), what is said, the state it is in → the state it comes to. Anything else moves nothing;
what is no repeat either is a finding."""

REPEATS: Final[Mapping[tuple[Kind, Word], frozenset[State]]] = MappingProxyType(
    {
        (Kind.COLLECT, Word.REJECTED): frozenset({State.REJECTED, State.RETURNED, State.WON_BACK}),
        (Kind.COLLECT, Word.IN): frozenset({State.BOOKED, State.RETURNED, State.WON_BACK}),
        (Kind.COLLECT, Word.OUT): frozenset(),
        (Kind.COLLECT, Word.BACK_OUT): frozenset({State.REJECTED, State.RETURNED}),
        (Kind.COLLECT, Word.BACK_IN): frozenset({State.WON_BACK}),
        (Kind.PAY, Word.REJECTED): frozenset({State.REJECTED, State.RETURNED}),
        (Kind.PAY, Word.IN): frozenset(),
        (Kind.PAY, Word.OUT): frozenset({State.BOOKED, State.RETURNED}),
        (Kind.PAY, Word.BACK_OUT): frozenset(),
        (Kind.PAY, Word.BACK_IN): frozenset({State.REJECTED, State.RETURNED}),
    }
)
"""The states that a word has led to before, or may come late for: it says nothing new."""
