"""Transitions of bank orders: what each kind of statement entry does. Source: docs/connectors/sepa.md."""

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
        # A collection: rejected before it was booked; booked; returned and won back, any number of times.
        (_Kind.COLLECT, EntryType.REJECTED, _State.FILED): _State.REJECTED,
        (_Kind.COLLECT, EntryType.REJECTED, _State.BOOKED): _State.RETURNED,
        (_Kind.COLLECT, EntryType.IN, _State.FILED): _State.BOOKED,
        # The money decides: what was booked after a rejection is booked.
        (_Kind.COLLECT, EntryType.IN, _State.REJECTED): _State.BOOKED,
        (_Kind.COLLECT, EntryType.BACK_OUT, _State.FILED): _State.REJECTED,
        (_Kind.COLLECT, EntryType.BACK_OUT, _State.REJECTED): _State.REJECTED,
        (_Kind.COLLECT, EntryType.BACK_OUT, _State.BOOKED): _State.RETURNED,
        (_Kind.COLLECT, EntryType.BACK_IN, _State.RETURNED): _State.WON_BACK,
        (_Kind.COLLECT, EntryType.BACK_OUT, _State.WON_BACK): _State.RETURNED,
        (_Kind.COLLECT, EntryType.CANCELLED, _State.FILED): _State.WITHDRAWN,
        # A transfer: rejected; booked; returned.
        (_Kind.PAY, EntryType.REJECTED, _State.FILED): _State.REJECTED,
        (_Kind.PAY, EntryType.OUT, _State.FILED): _State.BOOKED,
        (_Kind.PAY, EntryType.OUT, _State.REJECTED): _State.BOOKED,
        (_Kind.PAY, EntryType.BACK_IN, _State.FILED): _State.REJECTED,
        (_Kind.PAY, EntryType.BACK_IN, _State.REJECTED): _State.REJECTED,
        (_Kind.PAY, EntryType.BACK_IN, _State.BOOKED): _State.RETURNED,
        # A recalled transfer: cancelled before it was booked. What is booked all the same is booked.
        (_Kind.PAY, EntryType.CANCELLED, _State.FILED): _State.WITHDRAWN,
        (_Kind.PAY, EntryType.OUT, _State.WITHDRAWN): _State.BOOKED,
        # Its money came back: where the same statement names the booking after it, that is undone already.
        (_Kind.PAY, EntryType.BACK_IN, _State.WITHDRAWN): _State.REJECTED,
        # A creditor's reversal: banks book it as money out, or as the return of the collection.
        (_Kind.REVERSE, EntryType.REJECTED, _State.FILED): _State.REJECTED,
        (_Kind.REVERSE, EntryType.OUT, _State.FILED): _State.BOOKED,
        (_Kind.REVERSE, EntryType.OUT, _State.REJECTED): _State.BOOKED,
        (_Kind.REVERSE, EntryType.BACK_OUT, _State.FILED): _State.BOOKED,
        (_Kind.REVERSE, EntryType.BACK_IN, _State.FILED): _State.REJECTED,
        (_Kind.REVERSE, EntryType.BACK_IN, _State.BOOKED): _State.RETURNED,
        # A request to cancel a collection or to recall a transfer: answered, or its file was rejected.
        (_Kind.CANCEL, EntryType.CANCELLED, _State.FILED): _State.CONFIRMED,
        (_Kind.CANCEL, EntryType.NOT_CANCELLED, _State.FILED): _State.REJECTED,
        (_Kind.CANCEL, EntryType.REJECTED, _State.FILED): _State.REJECTED,
        (_Kind.RECALL, EntryType.CANCELLED, _State.FILED): _State.CONFIRMED,
        (_Kind.RECALL, EntryType.NOT_CANCELLED, _State.FILED): _State.REJECTED,
        (_Kind.RECALL, EntryType.REJECTED, _State.FILED): _State.REJECTED,
    }
)
"""(order kind, entry type, present state) → new state. Anything else moves nothing; it is a finding unless it is a
repeat."""

ORDER_REPEATS: Final[Mapping[tuple[_Kind, EntryType], frozenset[_State]]] = MappingProxyType(
    {
        # What is not listed below repeats nothing.
        **{(kind, word): frozenset() for kind in _Kind for word in EntryType if word is not EntryType.ACCEPTED},
        (_Kind.COLLECT, EntryType.REJECTED): frozenset(
            {_State.REJECTED, _State.RETURNED, _State.WON_BACK, _State.WITHDRAWN}
        ),
        (_Kind.COLLECT, EntryType.CANCELLED): frozenset({_State.WITHDRAWN, _State.REJECTED}),
        (_Kind.COLLECT, EntryType.IN): frozenset({_State.BOOKED, _State.RETURNED, _State.WON_BACK}),
        (_Kind.COLLECT, EntryType.BACK_OUT): frozenset({_State.RETURNED}),
        (_Kind.COLLECT, EntryType.BACK_IN): frozenset({_State.WON_BACK}),
        (_Kind.PAY, EntryType.REJECTED): frozenset({_State.REJECTED, _State.RETURNED, _State.WITHDRAWN}),
        (_Kind.PAY, EntryType.OUT): frozenset({_State.BOOKED, _State.RETURNED}),
        (_Kind.PAY, EntryType.BACK_IN): frozenset({_State.RETURNED}),
        # Agreed to after it was booked: it is given back by a booking, which moves it.
        (_Kind.PAY, EntryType.CANCELLED): frozenset(
            {_State.BOOKED, _State.RETURNED, _State.REJECTED, _State.WITHDRAWN}
        ),
        (_Kind.REVERSE, EntryType.REJECTED): frozenset({_State.REJECTED, _State.RETURNED}),
        (_Kind.REVERSE, EntryType.OUT): frozenset({_State.BOOKED, _State.RETURNED}),
        (_Kind.REVERSE, EntryType.BACK_OUT): frozenset({_State.BOOKED, _State.RETURNED}),
        (_Kind.REVERSE, EntryType.BACK_IN): frozenset({_State.REJECTED, _State.RETURNED}),
        (_Kind.CANCEL, EntryType.REJECTED): frozenset({_State.REJECTED}),
        (_Kind.CANCEL, EntryType.CANCELLED): frozenset({_State.CONFIRMED}),
        (_Kind.CANCEL, EntryType.NOT_CANCELLED): frozenset({_State.REJECTED}),
        (_Kind.RECALL, EntryType.REJECTED): frozenset({_State.REJECTED}),
        (_Kind.RECALL, EntryType.CANCELLED): frozenset({_State.CONFIRMED}),
        (_Kind.RECALL, EntryType.NOT_CANCELLED): frozenset({_State.REJECTED}),
    }
)
"""States in which an entry is a repeat, or late: it is ignored."""
