"""Each sum of a chain by itself: what counts towards it, what of other payments and states does not. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from gateway.models import Payment, Status
from gateway.payments import chain_amounts as sums
from gateway.payments.chain_amounts import INCREMENTAL_AUTHORIZATION, REAUTHORIZATION, Hold
from tests.support.chains import after, chain, first

D = Decimal
NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
OPEN = (Status.STARTED, Status.PENDING, Status.IN_DOUBT)


@pytest.mark.parametrize("status", list(Status))
def test_a_follow_up_counts_while_it_may_move_money_and_an_increment_once_it_is_approved(status: Status) -> None:
    held = first("PA")
    capture = after(held, "CP", "10.00", status=status)
    raised = after(held, "PA", "7.00", status=status, practice=INCREMENTAL_AUTHORIZATION)
    whole = chain(held, capture, raised).authorization
    counts, approved = status != Status.DECLINED, status == Status.APPROVED
    assert (whole.captured, whole.raised) == (D("10.00") * counts, D("7.00") * approved)
    assert whole.authorized == D("100.00") + D("7.00") * approved
    assert whole.uncaptured == whole.authorized - whole.captured
    assert whole.has_pending_capture is whole.has_pending_increment is (status in OPEN)
    assert whole.has_pending_renewal is False
    assert whole.kind == ("INCREMENTAL" if approved else "")


@pytest.mark.parametrize("status", list(Status))
def test_a_renewal_that_is_on_its_way_is_a_pending_increment_and_adds_nothing(status: Status) -> None:
    held = first("PA", number=1, authorization_kind="FINAL")
    renewal = after(held, "PA", "40.00", status=status, practice=REAUTHORIZATION, number=2)
    whole = chain(held, renewal).authorization
    assert whole.has_pending_renewal is whole.has_pending_increment is (status in OPEN)
    assert (whole.renewals, whole.authorized) == (int(status == Status.APPROVED), D("100.00"))
    assert whole.find_current() == (renewal if status == Status.APPROVED else held)
    assert whole.kind == "FINAL"


def test_a_first_authorization_without_a_result_is_no_pending_increment() -> None:
    whole = chain(first("PA", status=Status.PENDING)).authorization
    assert (whole.has_pending_increment, whole.has_pending_renewal, whole.has_pending_capture) == (False, False, False)


@pytest.mark.parametrize("kind", ["CP", "RC", "RV", "RF"])
def test_what_follows_any_member_of_an_authorization_draws_from_the_same_amount(kind: str) -> None:
    held = first("PA")
    raised = after(held, "PA", "20.00", practice=INCREMENTAL_AUTHORIZATION)
    taken = [after(one, kind, "15.00") for one in (held, raised)]
    whole = chain(held, raised, *taken).authorization
    assert whole.captured == (D("30.00") if kind in ("CP", "RC") else 0)
    assert whole.released == (D("30.00") if kind == "RV" else 0)
    assert whole.uncaptured == whole.capturable == (D("120.00") if kind == "RF" else D("90.00"))


@pytest.mark.parametrize(
    ("kind", "reopens", "status", "left"),
    [
        ("RV", True, Status.APPROVED, "70.00"),
        ("RV", False, Status.APPROVED, "40.00"),
        ("RV", True, Status.DECLINED, "40.00"),
        ("RF", True, Status.APPROVED, "40.00"),
    ],
)
def test_a_reversed_capture_is_held_again_where_the_acquirer_says_so(
    kind: str, reopens: bool, status: Status, left: str
) -> None:
    held = first("PA")
    capture = after(held, "CP", "60.00", number=2)
    back = after(capture, kind, "30.00", reopens_authorization=reopens, status=status, number=3)
    whole = chain(held, capture, back).authorization
    assert whole.uncaptured == D(left)
    assert whole.is_reopened is (left == "70.00")
    held.number = 1
    assert whole.compute_hold(held).captured == D("100.00") - D(left)


@pytest.mark.parametrize("kind", ["CP", "RV", "RF", "RC"])
@pytest.mark.parametrize("final", [True, False])
def test_what_is_final_closes_its_authorization_and_leaves_nothing_to_capture(kind: str, final: bool) -> None:
    held = first("PA")
    raised = after(held, "PA", "20.00", practice=INCREMENTAL_AUTHORIZATION)
    whole = chain(held, raised, after(raised, kind, "10.00", final=final))
    closed = final and kind != "RC"
    assert whole.authorization.is_closed is sums.is_closed(whole, held) is closed
    assert (whole.authorization.capturable == 0) is closed
    assert whole.authorization.uncaptured > 0


def test_a_receipt_is_closed_with_the_debit_that_it_records_and_no_other() -> None:
    debit, other = first("DB"), first("DB")
    receipt = after(debit, "RC", "50.00")
    members = [debit, receipt, other]
    assert sums.is_closed(chain(*members, after(debit, "RF", "1.00", final=True)), receipt)
    assert sums.is_closed(chain(*members, after(receipt, "RF", "1.00", final=True)), receipt)
    assert not sums.is_closed(chain(*members, after(receipt, "RF", "1.00", final=True)), debit)
    assert not sums.is_closed(chain(*members, after(other, "RF", "1.00", final=True)), receipt)


@pytest.mark.parametrize(
    ("at", "found", "expired"),
    [
        (NOW - timedelta(microseconds=1), None, False),
        (NOW, None, True),
        (NOW - timedelta(days=5), NOW, True),
        (NOW - timedelta(days=5), NOW - timedelta(microseconds=1), False),
    ],
)
def test_an_authorization_is_over_from_its_end_on_or_once_it_was_found_to_be(
    at: datetime, found: datetime | None, expired: bool
) -> None:
    """A test clock may be put back; an end that was found before a renewal is not that of the renewal."""
    held = first("PA", expires_at=NOW, expired_at=found)
    assert chain(held).authorization.is_expired(at) is expired


def test_an_authorization_ends_with_the_latest_of_it_and_its_approved_renewals() -> None:
    held = first("PA", expires_at=NOW)
    later = after(held, "PA", practice=REAUTHORIZATION, expires_at=NOW + timedelta(days=2))
    between = after(held, "PA", practice=REAUTHORIZATION, expires_at=NOW + timedelta(days=1))
    refused = after(held, "PA", practice=REAUTHORIZATION, expires_at=NOW + timedelta(days=9), status=Status.DECLINED)
    endless = after(held, "PA", practice=INCREMENTAL_AUTHORIZATION)
    whole = chain(held, later, between, refused, endless).authorization
    assert whole.expires_at == NOW + timedelta(days=2)
    assert chain(first("PA")).authorization.expires_at is None
    assert not chain(first("PA", expired_at=NOW)).authorization.is_expired(NOW + timedelta(days=999))


@pytest.mark.parametrize(
    ("most", "captures", "left", "exhausted"),
    [(None, 2, None, False), (3, 2, 1, False), (2, 2, 0, True), (1, 2, -1, True)],
)
def test_captures_are_counted_against_their_number(
    most: int | None, captures: int, left: int | None, exhausted: bool
) -> None:
    held = first("PA", max_captures=most)
    taken = [after(held, "CP", "10.00") for _ in range(captures)]
    taken.append(after(held, "CP", "10.00", status=Status.DECLINED))
    taken.append(after(held, "RC", "10.00"))
    whole = chain(held, *taken).authorization
    assert (whole.remaining_captures, whole.is_exhausted) == (left, exhausted)


@pytest.mark.parametrize(
    ("amount", "taken", "exhausted"),
    [
        ("100.00", [("CP", "100.00")], True),
        ("100.00", [("CP", "99.99")], False),
        ("100.00", [("RV", "40.00"), ("RC", "60.00")], True),
        ("0.00", [], False),
        ("0.00", [("RF", "1.00")], False),
    ],
)
def test_an_authorization_is_used_up_when_nothing_is_left_of_what_there_was(
    amount: str, taken: list[tuple[str, str]], exhausted: bool
) -> None:
    held = first("PA", amount)
    whole = chain(held, *[after(held, kind, each) for kind, each in taken])
    assert whole.authorization.is_exhausted is exhausted


def numbered() -> tuple[list[Payment], Payment, Payment, Payment]:
    """An authorization with two renewals, and something of each kind before, between and after them."""
    held = first("PA", number=10)
    one = after(held, "PA", "80.00", practice=REAUTHORIZATION, number=20)
    two = after(held, "PA", "60.00", practice=REAUTHORIZATION, number=30)
    more = []
    for number, amount in ((15, "1.00"), (25, "2.00"), (35, "4.00")):
        more += [
            after(held, "PA", amount, practice=INCREMENTAL_AUTHORIZATION, number=number),
            after(held, "CP", f"1{amount}", number=number + 1),
            after(held, "RV", f"2{amount}", number=number + 2),
            after(held, "CP", "50.00", number=number + 3, status=Status.DECLINED),
            after(held, "RC", f"3{amount}", number=number + 4),
        ]
    return [held, one, two, *more], held, one, two


def test_what_an_acquirer_has_of_one_authorization_message_is_what_came_between_it_and_the_next() -> None:
    members, held, one, two = numbered()
    whole = chain(*members).authorization
    assert whole.compute_hold(held, until=one) == Hold(authorized=D("101.00"), captured=D("42.00"), reversed=D("21.00"))
    assert whole.compute_hold(one, until=two) == Hold(authorized=D("82.00"), captured=D("44.00"), reversed=D("22.00"))
    assert whole.compute_hold(two) == Hold(authorized=D("64.00"), captured=D("48.00"), reversed=D("24.00"))
    assert whole.compute_hold(one) == Hold(authorized=D("86.00"), captured=D("92.00"), reversed=D("46.00"))
    assert [whole.find_current(before) for before in (None, held, one, two)] == [two, held, held, one]


def test_a_capture_has_the_number_of_those_before_it_that_were_sent() -> None:
    """One that its acquirer declined has used its number up; one that we declined has not."""
    held = first("PA", max_captures=4)
    raised = after(held, "PA", "20.00", practice=INCREMENTAL_AUTHORIZATION)
    one = after(held, "CP", "1.00", sequence=2)
    there = after(raised, "CP", "1.00", status=Status.DECLINED, sequence=2)
    here = after(held, "CP", "1.00", status=Status.DECLINED, sequence=1)
    other = first("PA")
    elsewhere, receipt = after(other, "CP", "1.00", sequence=2), after(held, "RC", "1.00")
    last = after(held, "CP", "1.00", sequence=1)
    members = [held, raised, one, there, here, elsewhere, receipt, last]
    whole = chain(*members).authorization
    assert [whole.number_capture(each.id) for each in (one, there, last)] == [(1, 4), (2, 4), (3, 4)]
    more = [after(held, "CP", "1.00", sequence=2) for _ in range(3)]
    assert chain(*members, *more).authorization.number_capture(more[-1].id) == (4, 4)
    assert chain(first("PA")).authorization.number_capture(last.id) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "changes", "left"),
    [
        ("RF", {}, "70.00"), ("RV", {}, "70.00"), ("CB", {}, "70.00"), ("RC", {}, "100.00"),
        ("RF", {"status": Status.DECLINED}, "100.00"), ("RF", {"returned_at": NOW}, "100.00"),
        ("RF", {"status": Status.IN_DOUBT}, "70.00"), ("CB", {"approved": "20.00"}, "80.00"),
    ],
)  # fmt: skip
def test_what_can_be_returned_is_what_was_not_and_a_return_that_failed_gives_it_back(
    kind: str, changes: dict[str, object], left: str
) -> None:
    debit = first("DB")
    made = after(debit, kind, "30.00", **changes)
    assert sums.compute_refundable_amount(chain(debit, made), debit) == D(left)


def test_of_a_transfer_that_came_back_nothing_is_returned() -> None:
    paid = first("CD", returned_at=NOW)
    assert sums.compute_refundable_amount(chain(paid), paid) == sums.compute_reversible_amount(chain(paid), paid) == 0


def test_the_money_of_a_receipt_is_that_of_the_payment_that_it_records() -> None:
    debit = first("DB")
    receipt = after(debit, "RC", "50.00")
    back = after(debit, "RF", "70.00")
    assert sums.compute_refundable_amount(chain(debit, receipt, back), receipt) == D("30.00")
    assert sums.compute_refundable_amount(chain(debit, receipt, after(receipt, "RF", "45.00")), receipt) == D("5.00")
    held = first("PA")
    of_hold = after(held, "RC", "50.00")
    assert sums.compute_refundable_amount(chain(held, of_hold), of_hold) == D("50.00")
    whole = chain(debit, receipt, back, after(receipt, "RF", "5.00"), after(debit, "CB", "3.00"))
    assert sums.compute_refunded_amount(whole, debit) == D("75.00")
    assert sums.compute_returned_amount(whole, debit) == D("73.00")
    assert sums.compute_receivable_amount(chain(debit, receipt), debit) == D("50.00")
    assert sums.compute_receivable_amount(chain(held, of_hold), held) == D("50.00")


def test_what_was_returned_above_what_was_paid_is_overdrawn() -> None:
    debit, other, held = first("DB"), first("RB", "40.00"), first("PA")
    members = [
        debit,
        other,
        held,
        after(debit, "RF", "80.00"),
        after(debit, "CB", "30.00"),
        after(held, "CB", "500.00"),
    ]
    assert sums.compute_overdrawn_amount(chain(*members)) == D("10.00")
    assert sums.compute_overdrawn_amount(chain(*members, after(other, "CB", "45.00"))) == D("15.00")
    declined = first("DB", "10.00", status=Status.DECLINED)
    assert sums.compute_overdrawn_amount(chain(declined, after(declined, "CB", "11.00"))) == 0
    assert sums.compute_overdrawn_amount(chain(debit)) == 0


def test_a_chargeback_takes_what_its_reversals_did_not_win_back_and_second_ones_took_again() -> None:
    debit = first("DB")
    dispute = after(debit, "CB", "60.00")
    won = after(dispute, "CR", "50.00")
    again = after(won, "CB", "20.00")
    whole = chain(debit, dispute, won, again)
    assert sums.compute_disputed_amount(whole, dispute) == sums.compute_standing_amount(whole, debit) == D("30.00")
    assert sums.compute_refundable_amount(whole, debit) == D("70.00")
    assert sums.compute_representable_amount(whole, dispute) == D("10.00")
    assert [sums.find_charged_back_payment(whole, one) for one in whole.members] == [debit] * 4
    lost = chain(dispute)
    assert sums.find_charged_back_payment(lost, dispute) == dispute
    receipt = after(debit, "RC", "100.00")
    assert sums.compute_standing_amount(chain(debit, receipt, dispute), receipt) == D("60.00")


@pytest.mark.parametrize(
    ("kind", "amount", "possible"),
    [
        ("CB", "99.99", True),
        ("CB", "100.00", False),
        ("CB", "100.01", False),
        ("RF", "100.00", True),
        ("RV", "100.00", True),
    ],
)
def test_a_payment_is_charged_back_until_chargebacks_take_all_of_it_whatever_was_refunded(
    kind: str, amount: str, possible: bool
) -> None:
    debit = first("DB")
    taken = after(debit, kind, amount)
    receipt = after(debit, "RC", "100.00")
    assert sums.can_be_charged_back(chain(debit, taken), debit) is possible
    assert sums.can_be_charged_back(chain(debit, receipt, taken), receipt) is possible
    if kind == "CB":
        won = after(taken, "CR", "30.00")
        assert sums.can_be_charged_back(chain(debit, taken, won), debit)
        assert sums.can_be_charged_back(chain(debit, taken, won), won), "what was won back is taken by nothing yet"
        again = after(won, "CB", "30.00")
        assert sums.can_be_charged_back(chain(debit, taken, won, again), debit) is possible
        assert not sums.can_be_charged_back(chain(debit, taken, won, again), won)


@pytest.mark.parametrize(("taken", "possible"), [("49.99", True), ("50.00", False)])
def test_what_was_won_back_is_charged_back_in_full_once(taken: str, possible: bool) -> None:
    debit = first("DB")
    dispute = after(debit, "CB", "100.00")
    won = after(dispute, "CR", "50.00")
    whole = chain(debit, dispute, won, after(won, "CB", taken))
    assert sums.can_be_charged_back(whole, won) is possible


@pytest.mark.parametrize("status", list(Status))
def test_a_reversal_without_a_result_is_open_for_the_whole_authorization_or_for_its_debit(status: Status) -> None:
    held, debit = first("PA"), first("DB")
    raised = after(held, "PA", "20.00", practice=INCREMENTAL_AUTHORIZATION)
    is_open = status in OPEN
    assert sums.has_open_reversal(chain(held, raised, after(raised, "RV", "1.00", status=status)), held) is is_open
    assert sums.has_open_reversal(chain(debit, after(debit, "RV", "1.00", status=status)), debit) is is_open
    assert not sums.has_open_reversal(chain(debit, after(debit, "RF", "1.00", status=status)), debit)


def test_reversals_of_an_authorization_are_those_of_all_its_members_and_of_a_debit_its_own() -> None:
    held, debit = first("PA"), first("DB")
    raised = after(held, "PA", "20.00", practice=INCREMENTAL_AUTHORIZATION)
    capture = after(held, "CP", "30.00")
    members = [
        held,
        raised,
        capture,
        after(held, "RV", "1.00"),
        after(raised, "RV", "2.00"),
        after(capture, "RV", "4.00"),
    ]
    assert sums.compute_reversed_amount(chain(*members), held) == D("3.00")
    assert sums.compute_reversed_amount(chain(*members), capture) == D("4.00")
    assert sums.compute_reversed_amount(chain(debit, after(debit, "RF", "5.00")), debit) == 0


def test_a_chain_knows_its_first_payment_and_its_members_wherever_they_stand() -> None:
    debit, other = first("DB"), first("DB")
    refund = after(debit, "RF", "1.00")
    whole = chain(refund, debit)
    assert whole.first is debit
    assert [whole.find(one.id) for one in (debit, refund, other)] == [debit, refund, None]


@pytest.mark.parametrize(
    ("status", "approved", "worth"),
    [(Status.APPROVED, "60.00", "60.00"), (Status.APPROVED, None, "100.00"), (Status.PENDING, "60.00", "100.00")],
)
def test_only_what_was_approved_is_worth_what_was_granted(status: Status, approved: str | None, worth: str) -> None:
    assert sums.resolve_payment_amount(first("DB", status=status, approved=approved)) == D(worth)


@pytest.mark.parametrize("kind", ["CP", "RC", "RV"])
@pytest.mark.parametrize("status", list(Status))
def test_what_takes_of_an_authorization_is_pending_until_it_has_a_result_but_for_its_reversal(
    kind: str, status: Status
) -> None:
    held = first("PA")
    raised = after(held, "PA", "20.00", practice=INCREMENTAL_AUTHORIZATION)
    whole = chain(held, raised, after(raised, kind, "10.00", status=status)).authorization
    assert whole.has_pending_capture is (status in OPEN and kind != "RV")


def test_refunds_of_a_receipt_are_refunds_of_what_it_records() -> None:
    debit = first("DB")
    receipt, other = after(debit, "RC", "50.00"), after(debit, "RC", "20.00")
    members = [debit, receipt, other, after(receipt, "RF", "45.00"), after(other, "CB", "4.00")]
    assert sums.compute_refundable_amount(chain(*members), debit) == D("51.00")
    assert sums.compute_refundable_amount(chain(*members), receipt) == D("5.00")
    assert sums.compute_refundable_amount(chain(*members), other) == D("16.00")
    alone = first("RC", "50.00")
    assert sums.compute_refundable_amount(chain(alone, after(alone, "RF", "7.00")), alone) == D("43.00")
    lost = after(debit, "RC", "50.00")
    assert sums.compute_refundable_amount(chain(lost, after(lost, "RF", "7.00")), lost) == D("43.00")


def test_refunds_and_reversals_are_refunded_and_chargebacks_are_not() -> None:
    debit = first("DB")
    receipt = after(debit, "RC", "50.00")
    members = [
        debit, receipt, after(debit, "RF", "1.00"), after(debit, "RV", "2.00"), after(debit, "CB", "4.00"),
        after(receipt, "RF", "8.00"), after(receipt, "CB", "16.00"),
        after(debit, "RF", "32.00", status=Status.PENDING), after(debit, "RF", "64.00", status=Status.DECLINED),
    ]  # fmt: skip
    assert sums.compute_refunded_amount(chain(*members), debit) == D("43.00")
    assert sums.compute_refunded_amount(chain(*members), receipt) == D("8.00")


@pytest.mark.parametrize(
    ("received", "refunded", "left"), [("50.00", "10.00", "50.00"), ("50.00", "70.00", "30.00"), (None, None, "100.00")]
)
def test_a_receipt_records_what_was_neither_received_nor_returned(
    received: str | None, refunded: str | None, left: str
) -> None:
    debit = first("DB")
    more = [after(debit, kind, amount) for kind, amount in (("RC", received), ("RF", refunded)) if amount]
    assert sums.compute_receivable_amount(chain(debit, *more), debit) == D(left)


@pytest.mark.parametrize("status", list(Status))
def test_a_chargebacks_reversal_counts_once_it_is_approved(status: Status) -> None:
    """A second chargeback of one that is not approved takes nothing again."""
    debit = first("DB")
    dispute = after(debit, "CB", "60.00")
    won = after(dispute, "CR", "50.00", status=status)
    whole = chain(debit, dispute, won, after(won, "CB", "20.00"))
    expected = D("30.00") if status == Status.APPROVED else D("60.00")
    assert sums.compute_disputed_amount(whole, dispute) == expected
    left = D("60.00") if status == Status.DECLINED else D("10.00")
    assert sums.compute_representable_amount(whole, dispute) == left


def test_a_receipt_of_an_authorization_stands_for_itself() -> None:
    held = first("PA")
    receipt = after(held, "RC", "50.00")
    final = after(held, "CP", "1.00", final=True)
    dispute = after(receipt, "CB", "7.00")
    whole = chain(held, receipt, final, dispute)
    assert not sums.is_closed(whole, receipt)
    assert sums.is_closed(whole, held)
    assert (sums.compute_standing_amount(whole, receipt), sums.compute_standing_amount(whole, held)) == (D("7.00"), 0)


@pytest.mark.parametrize("kind", ["RB", "RF", "CB"])
def test_what_follows_a_debit_and_records_no_money_of_it_stands_for_itself(kind: str) -> None:
    debit = first("DB")
    one = after(debit, kind, "50.00")
    whole = chain(debit, one, after(debit, "CB", "7.00"), after(debit, "RF", "1.00", final=True))
    assert sums.compute_standing_amount(whole, one) == 0
    assert sums.is_closed(whole, debit)
    assert not sums.is_closed(whole, one)


@pytest.mark.parametrize(
    ("kind", "expected"), [("PA", "70.00"), ("DB", "60.00"), ("CP", "60.00"), ("RB", "60.00"), ("CD", "60.00")]
)
def test_what_can_be_reversed_is_what_is_held_or_what_was_not_returned(kind: str, expected: str) -> None:
    one = first(kind)
    whole = chain(one, after(one, "CP", "30.00"), after(one, "RF", "40.00"))
    assert sums.compute_reversible_amount(whole, one) == D(expected)


@pytest.mark.parametrize("kind", ["DB", "CP", "RB", "PA", "CD", "RF"])
def test_only_what_took_money_can_be_overdrawn(kind: str) -> None:
    one = first(kind)
    whole = chain(one, after(one, "RF", "130.00"))
    assert sums.compute_overdrawn_amount(whole) == (D("30.00") if kind in ("DB", "CP", "RB") else 0)


def test_the_money_of_a_dispute_is_the_payments_behind_it_and_not_the_captures_authorization() -> None:
    held = first("PA")
    capture = after(held, "CP", "50.00")
    dispute = after(capture, "CB", "50.00")
    won = after(dispute, "CR", "50.00")
    whole = chain(held, capture, dispute, won)
    assert [sums.find_charged_back_payment(whole, one) for one in (won, dispute, capture, held)] == [
        capture, capture, capture, held,
    ]  # fmt: skip
    alone = first("CB")
    assert sums.find_charged_back_payment(chain(alone), alone) is alone
