"""A chain's sums: what can still be captured, refunded and reversed.

Source: decisions, section 4; Part A, States and transitions.
"""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gateway.models import Status
from gateway.payments.chain_amounts import (
    compute_capturable_amount,
    compute_disputable_amount,
    compute_refundable_amount,
    compute_reversible_amount,
    resolve_payment_amount,
)
from gateway.payments.operation_table import OPERATIONS, evaluate_operation
from tests.support.chains import after, chain, first

D = Decimal


@pytest.mark.parametrize(
    "status, approved, expected",
    [
        (Status.APPROVED, "50.00", "50.00"),
        (Status.APPROVED, "100.00", "100.00"),
        (Status.STARTED, None, "100.00"),
        (Status.PENDING, None, "100.00"),
        (Status.IN_DOUBT, None, "100.00"),
    ],
)
def test_a_payment_is_worth_what_was_granted_or_may_still_be(
    status: Status, approved: str | None, expected: str
) -> None:
    """Part B, partial approval: the granted part counts."""
    assert resolve_payment_amount(first("DB", status=status, approved=approved)) == D(expected)


def test_an_authorization_gives_what_was_granted_less_captured_less_reversed() -> None:
    """Decisions, section 4."""
    authorization = first("PA", "100.00", approved="80.00")
    members = [authorization, after(authorization, "CP", "30.00"), after(authorization, "RV", "20.00")]
    assert compute_capturable_amount(chain(*members), authorization) == D("30.00")
    assert compute_reversible_amount(chain(*members), authorization) == D("30.00")


def test_a_final_capture_releases_the_rest() -> None:
    """A13.15."""
    authorization = first("PA")
    members = [authorization, after(authorization, "CP", "30.00", final=True)]
    assert compute_capturable_amount(chain(*members), authorization) == D(0)


def test_a_second_chargeback_takes_what_was_won_back_and_is_left_of_the_payment() -> None:
    """Of a chargeback reversal; refunded meanwhile was 70 of the 100."""
    debit = first("DB", "100.00")
    dispute = after(debit, "CB", "50.00")
    won = after(dispute, "CR", "50.00")
    assert compute_disputable_amount(chain(debit, dispute, won), won) == D("50.00")
    again = after(won, "CB", "20.00")
    assert compute_disputable_amount(chain(debit, dispute, won, again), won) == D("30.00")
    refund = after(debit, "RF", "70.00")
    assert compute_disputable_amount(chain(debit, dispute, won, refund), won) == D("30.00")


def test_a_capture_is_refunded_on_its_own_account() -> None:
    """Decisions, section 4: sum ≤ captured, of each capture."""
    authorization = first("PA")
    one, two = after(authorization, "CP", "30.00"), after(authorization, "CP", "50.00")
    refund = after(one, "RF", "10.00")
    whole = chain(authorization, one, two, refund)
    assert compute_refundable_amount(whole, one) == D("20.00")
    assert compute_refundable_amount(whole, two) == D("50.00")
    assert compute_capturable_amount(whole, authorization) == D("20.00")


def test_a_reversed_capture_does_not_open_the_authorization_again() -> None:
    """Decisions, section 4: captured stays captured."""
    authorization = first("PA")
    capture = after(authorization, "CP", "100.00")
    whole = chain(authorization, capture, after(capture, "RV", "100.00"))
    assert compute_refundable_amount(whole, capture) == D(0)
    assert compute_capturable_amount(whole, authorization) == D(0)


def test_a_chargeback_takes_what_could_be_refunded_and_its_reversal_gives_it_back() -> None:
    """Decisions, section 4: CB, CR."""
    debit = first("DB")
    dispute = after(debit, "CB", "40.00")
    assert compute_refundable_amount(chain(debit, dispute), debit) == D("60.00")
    won = after(dispute, "CR", "40.00")
    assert compute_refundable_amount(chain(debit, dispute, won), debit) == D("100.00")


def test_captures_are_counted_only_where_their_number_was_sent() -> None:
    """A13.16."""
    authorization = first("PA")
    assert chain(authorization).authorization.remaining_captures is None
    bounded = first("PA", max_captures=3)
    assert chain(bounded, after(bounded, "CP", "1.00")).authorization.remaining_captures == 2


STEPS = some.lists(
    some.tuples(
        some.sampled_from(["CP", "RF", "RV"]),
        some.integers(0, 12),
        some.one_of(some.none(), some.integers(0, 12_000)),
        some.sampled_from([Status.APPROVED, Status.APPROVED, Status.DECLINED, Status.IN_DOUBT, Status.STARTED]),
        some.booleans(),
    ),
    max_size=25,
)


@given(kind=some.sampled_from(["PA", "DB", "CD"]), steps=STEPS)
def test_no_order_of_follow_ups_gives_back_more_than_came_in(
    kind: str, steps: list[tuple[str, int, int | None, Status, bool]]
) -> None:
    """Decisions, section 4: the ceilings hold whatever is tried, with answers still open."""
    members = [first(kind, "100.00")]
    for operation, at, cents, status, final in steps:
        target = members[at % len(members)]
        amount = None if cents is None else D(cents) / 100
        if amount is None and operation != "RV":
            continue
        decision = evaluate_operation(OPERATIONS[operation], chain(*members), target, amount, None)
        if not decision.code:
            assert decision.amount > 0
            members.append(after(target, operation, str(decision.amount), status=status, final=final))
    may_count = [member for member in members[1:] if member.status != Status.DECLINED]
    for target in members:
        taken = [member for member in may_count if member.referenced == target.id]
        assert sum((resolve_payment_amount(member) for member in taken), D(0)) <= resolve_payment_amount(target)
    assert all(
        member.status == Status.APPROVED for member in members if any(m.referenced == member.id for m in members)
    )
