"""The states of one payment: every move that is possible, and every one that is not.

Source: Part A, States and transitions; house, States and operations.
"""

from __future__ import annotations

import itertools

import pytest

from gateway.models import Status
from gateway.payments.states import (
    NOT_CREATED,
    PAYMENT_TRANSITIONS,
    LifecycleEvent,
    PaymentTransitionError,
    resolve_next_status,
)

MOVES = {
    # state        event      → state
    ("", "begin"): "STARTED",
    ("", "refuse"): "DECLINED",
    ("STARTED", "approve"): "APPROVED",
    ("STARTED", "decline"): "DECLINED",
    ("STARTED", "suspend"): "PENDING",
    ("STARTED", "lose"): "IN_DOUBT",
    ("STARTED", "reroute"): "STARTED",
    ("STARTED", "step_up"): "STARTED",
    ("STARTED", "cascade"): "STARTED",
    ("STARTED", "token_fallback"): "STARTED",
    ("PENDING", "approve"): "APPROVED",
    ("PENDING", "decline"): "DECLINED",
    ("PENDING", "lose"): "IN_DOUBT",
    ("PENDING", "resume"): "STARTED",
    ("IN_DOUBT", "approve"): "APPROVED",
    ("IN_DOUBT", "decline"): "DECLINED",
    ("IN_DOUBT", "suspend"): "PENDING",
    ("APPROVED", "expire"): "APPROVED",
    ("APPROVED", "return"): "APPROVED",
    ("DECLINED", "book"): "APPROVED",
}
"""Everything that is not here is impossible."""

STATES = [NOT_CREATED, *Status]
ALL = list(itertools.product(STATES, LifecycleEvent))


@pytest.mark.parametrize("status, event", ALL, ids=[f"{status or 'nothing'}-{event}" for status, event in ALL])
def test_each_state_and_event_lead_where_the_table_says_or_nowhere(
    status: Status | None, event: LifecycleEvent
) -> None:
    """House: one transition table with a completeness test."""
    expected = MOVES.get((status or "", event.value))
    if expected is None:
        with pytest.raises(PaymentTransitionError):
            resolve_next_status(status, event)
    else:
        assert resolve_next_status(status, event) == expected


def test_a_final_state_is_final() -> None:
    """House, States and operations. Only money that a bank booked after its rejection says otherwise
    (docs/decisions/0097)."""
    for status in (Status.APPROVED, Status.DECLINED):
        ends = {end for (state, event), end in PAYMENT_TRANSITIONS.items() if state == status and event != "book"}
        assert ends <= {status}


def test_every_state_can_be_reached_and_left_unless_it_is_final() -> None:
    """House: a lost answer is a state; nothing is stuck."""
    assert set(PAYMENT_TRANSITIONS.values()) == set(Status)
    left = {state for (state, event), end in PAYMENT_TRANSITIONS.items() if state != end and event != "book"}
    assert left == {NOT_CREATED, Status.STARTED, Status.PENDING, Status.IN_DOUBT}


def test_the_table_cannot_be_changed() -> None:
    """House: tables are data."""
    with pytest.raises(TypeError):
        PAYMENT_TRANSITIONS[NOT_CREATED, LifecycleEvent.APPROVE] = Status.APPROVED  # type: ignore[index]
