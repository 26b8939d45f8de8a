"""The states of a dispute and the transitions between them as one table, applied only by chargebacks.cases.

Source: docs/chargebacks.md; the specification has no states of a chargeback.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from django.utils.translation import gettext as _

from chargebacks.models import Chargeback

DisputeState = Chargeback.State


class DisputeEvent(enum.StrEnum):
    """What can happen to a dispute. ``reverse``: money was returned (a CR payment)."""

    OPEN = "open"
    SECOND = "second"
    SUBMIT = "submit"
    ACCEPT = "accept"
    EXPIRE = "expire"
    LOSE = "lose"
    REVERSE = "reverse"


BEFORE_DISPUTE = None
"""The state before there is a case."""

DISPUTE_TRANSITIONS: Mapping[tuple[DisputeState | None, DisputeEvent], DisputeState] = MappingProxyType(
    {
        (BEFORE_DISPUTE, DisputeEvent.OPEN): DisputeState.OPEN,
        # A chargeback after a won representment is final: there is no second answer.
        (BEFORE_DISPUTE, DisputeEvent.SECOND): DisputeState.LOST,
        (DisputeState.OPEN, DisputeEvent.SUBMIT): DisputeState.SUBMITTED,
        (DisputeState.OPEN, DisputeEvent.ACCEPT): DisputeState.ACCEPTED,
        (DisputeState.OPEN, DisputeEvent.EXPIRE): DisputeState.LOST,
        (DisputeState.OPEN, DisputeEvent.LOSE): DisputeState.LOST,
        (DisputeState.SUBMITTED, DisputeEvent.LOSE): DisputeState.LOST,
        # The acquirer decides, and may return money whatever the state of the case; in parts, too.
        (DisputeState.OPEN, DisputeEvent.REVERSE): DisputeState.WON,
        (DisputeState.SUBMITTED, DisputeEvent.REVERSE): DisputeState.WON,
        (DisputeState.LOST, DisputeEvent.REVERSE): DisputeState.WON,
        (DisputeState.ACCEPTED, DisputeEvent.REVERSE): DisputeState.WON,
        (DisputeState.WON, DisputeEvent.REVERSE): DisputeState.WON,
    }
)
CLOSED_DISPUTE_STATES = frozenset({DisputeState.WON, DisputeState.LOST, DisputeState.ACCEPTED})


class DisputeTransitionError(Exception):
    """The case is not in a state that allows this; the text says so and may be shown."""


def apply_dispute_event(state: DisputeState | None, event: DisputeEvent) -> DisputeState:
    """The state after ``event``. Raises DisputeTransitionError if the state does not allow it."""
    try:
        return DISPUTE_TRANSITIONS[state, event]
    except KeyError:
        known = DisputeState(state).label if state is not None else "not there"
        raise DisputeTransitionError(_("That is not possible: %s.") % _(known)) from None
