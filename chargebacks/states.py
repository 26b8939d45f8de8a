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
    """What can happen to a dispute. ``second``: a chargeback after a representment. ``decided``: the same, taking
    the money of a stage that was lost or accepted. ``return``: a direct debit came back for a reason that cannot be
    contested (chargebacks.stages). ``escalate``: the issuer opens the next stage without taking money.
    ``win``: a stage without money is decided for the merchant. ``reverse``: money was returned (a CR payment)."""

    OPEN = "open"
    SECOND = "second"
    DECIDED = "decided"
    RETURN = "return"
    ESCALATE = "escalate"
    WIN = "win"
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
        # The schemes' pre-arbitration and arbitration can be answered like the first chargeback.
        (BEFORE_DISPUTE, DisputeEvent.SECOND): DisputeState.OPEN,
        (BEFORE_DISPUTE, DisputeEvent.DECIDED): DisputeState.LOST,
        (BEFORE_DISPUTE, DisputeEvent.RETURN): DisputeState.RETURNED,
        (DisputeState.SUBMITTED, DisputeEvent.ESCALATE): DisputeState.OPEN,
        (DisputeState.WON, DisputeEvent.ESCALATE): DisputeState.OPEN,
        (DisputeState.LOST, DisputeEvent.ESCALATE): DisputeState.OPEN,
        (DisputeState.SUBMITTED, DisputeEvent.WIN): DisputeState.WON,
        (DisputeState.OPEN, DisputeEvent.WIN): DisputeState.WON,
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
        (DisputeState.RETURNED, DisputeEvent.REVERSE): DisputeState.WON,
        (DisputeState.WON, DisputeEvent.REVERSE): DisputeState.WON,
    }
)
CLOSED_DISPUTE_STATES = frozenset({DisputeState.WON, DisputeState.LOST, DisputeState.ACCEPTED, DisputeState.RETURNED})


class DisputeTransitionError(Exception):
    """The case is not in a state that allows this; the text says so and may be shown."""


def apply_dispute_event(state: DisputeState | None, event: DisputeEvent) -> DisputeState:
    """The state after ``event``. Raises DisputeTransitionError if the state does not allow it."""
    try:
        return DISPUTE_TRANSITIONS[state, event]
    except KeyError:
        known = DisputeState(state).label if state is not None else "not there"
        raise DisputeTransitionError(_("That is not possible: %s.") % _(known)) from None
