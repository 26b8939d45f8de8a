"""The states of a dispute and the moves between them: one table, one writer (chargebacks.cases).

Source: docs/chargebacks.md; the specification states no states of a chargeback.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from django.utils.translation import gettext as _

from chargebacks.models import Chargeback

State = Chargeback.State


class Event(enum.StrEnum):
    """What can happen to a dispute. ``reverse``: money came back (a CR payment)."""

    OPEN = "open"
    SECOND = "second"
    SUBMIT = "submit"
    ACCEPT = "accept"
    EXPIRE = "expire"
    LOSE = "lose"
    REVERSE = "reverse"


START = None
"""The state before there is a case."""

TRANSITIONS: Mapping[tuple[State | None, Event], State] = MappingProxyType(
    {
        (START, Event.OPEN): State.OPEN,
        # A chargeback of what a representment won is final: there is nothing to answer.
        (START, Event.SECOND): State.LOST,
        (State.OPEN, Event.SUBMIT): State.SUBMITTED,
        (State.OPEN, Event.ACCEPT): State.ACCEPTED,
        (State.OPEN, Event.EXPIRE): State.LOST,
        (State.OPEN, Event.LOSE): State.LOST,
        (State.SUBMITTED, Event.LOSE): State.LOST,
        # The acquirer has the last word, and may give money back whatever we thought of the case; in parts, too.
        (State.OPEN, Event.REVERSE): State.WON,
        (State.SUBMITTED, Event.REVERSE): State.WON,
        (State.LOST, Event.REVERSE): State.WON,
        (State.ACCEPTED, Event.REVERSE): State.WON,
        (State.WON, Event.REVERSE): State.WON,
    }
)
CLOSED = frozenset({State.WON, State.LOST, State.ACCEPTED})


class ImpossibleMove(Exception):
    """The case is not in a state that allows this; the text says so and may be shown."""


def after(state: State | None, event: Event) -> State:
    """The state that ``event`` leads to. Raises ImpossibleMove when there is none."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        known = State(state).label if state is not None else "not there"
        raise ImpossibleMove(_("That is not possible: %s.") % _(known)) from None
