"""The comparison itself: a loss, a doubling or a decline that is planted is found. Source: goals R1 to R3."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.faults import audit, books, timing
from tests.faults.books import Exchange, Move, Payment
from tests.faults.finding import TWICE

A, B, C = "a" * 32, "b" * 32, "c" * 32
APPROVED, DECLINED = "000.100.112", "800.100.155"
VOIDED: dict[str, Any] = {"outcome": "voided", "code": "900.100.301"}


def booked(key: str, amount: str = "10.00", outcome: str = "approved", **more: Any) -> dict[str, Any]:
    """A line of the acquirer's log."""
    answer = {"approvedAmount": amount} if outcome == "approved" else {}
    return {
        "kind": "submit",
        "key": key,
        "outcome": outcome,
        "at": "2030-01-01T00:00:00+00:00",
        "answer": answer,
        **more,
    }


def ours(ident: str, status: str = "APPROVED", **changes: Any) -> Payment:
    values: dict[str, Any] = {
        "id": ident,
        "order": f"order-{ident[0]}",
        "chain": ident,
        "referenced": "",
        "kind": "DB",
        "status": status,
        "amount": Decimal(10),
        "approved": Decimal(10) if status == "APPROVED" else None,
        "connector": "stub",
        "code": APPROVED if status == "APPROVED" else DECLINED,
        "created": 0.0,
        "completed": 1.0,
        "is_due": False,
        "exchanges": (asked("submit", {"outcome": status.lower()}),),
        "moves": (move(status),),
    }
    return Payment(**values | changes)


def asked(kind: str, received: dict[str, Any], at: float = 1.0) -> Exchange:
    return Exchange(kind=kind, received=received, asked=at, answered=at)


def move(status: str, at: float = 1.0) -> Move:
    event = {"APPROVED": "approve", "DECLINED": "decline", "IN_DOUBT": "lose"}.get(status, "begin")
    return Move(event=event, status=status, at=at)


def told(ident: str, code: str = APPROVED, key: str = "k", **more: Any) -> dict[str, Any]:
    """A line of a client's journal."""
    line = {"kind": "POST", "key": key, "status": 200, "code": code, "id": ident, "amount": "10.00", "replayed": False}
    return line | more


def found(payments: list[Payment], log: list[dict[str, Any]], **more: Any) -> list[str]:
    """The kinds of what the comparison finds."""
    by_id = {one.id: one for one in payments}
    rest: dict[str, Any] = {"journal": [], "keys": [], "replays": [], **more}
    return [one.kind for one in audit.find_all(by_id, books.acquirer(log), **rest)]


def test_books_that_agree_have_no_finding() -> None:
    log = [booked(A), booked(B, outcome="declined")]
    journal = [{"kind": "asks", "key": "k"}, told(A)]
    replays = [told(A, replayed=True)]
    assert found([ours(A), ours(B, "DECLINED")], log, journal=journal, keys=[("k", A)], replays=replays) == []


@pytest.mark.parametrize(
    "payments, log",
    [
        ([], [booked(A)]),
        ([ours(A, "DECLINED", exchanges=())], [booked(A)]),
        ([ours(A)], [booked(A, "9.00")]),
        ([ours(A)], []),
        ([ours(A)], [booked(A), {"kind": "void", "key": A, "outcome": "reversed"}]),
    ],
    ids=["unknown here", "declined here", "another amount", "never booked", "voided"],
)
def test_what_one_side_has_and_the_other_has_not_is_lost(payments: list[Payment], log: list[dict[str, Any]]) -> None:
    assert audit.LOST in found(payments, log)


@pytest.mark.parametrize("line", [told(C), told(A, DECLINED), told(A, amount="11.00")])
def test_what_a_client_was_told_and_is_no_longer_so_is_lost(line: dict[str, Any]) -> None:
    assert found([ours(A)], [booked(A)], journal=[line]) == [audit.LOST]


def test_two_payments_of_one_key_or_one_order_and_two_bookings_of_one_payment_are_doubled() -> None:
    log = [booked(A), booked(B)]
    twins = [ours(A), ours(B, order="order-a")]
    assert found(twins, log) == [audit.DOUBLED]
    assert found([ours(A), ours(B)], log, keys=[("k", A), ("k", B)]) == [audit.DOUBLED]
    assert found([ours(A)], [booked(A), booked(A)]) == [audit.DOUBLED, TWICE]


def test_follow_ups_of_more_than_there_is_are_over_a_limit() -> None:
    refunds = [
        ours(B, referenced=A, approved=Decimal(6), kind="RF"),
        ours(C, referenced=A, approved=Decimal(5), kind="RF"),
    ]
    log = [booked(A), booked(B, "6.00"), booked(C, "5.00")]
    assert found([ours(A), *refunds], log) == [audit.OVER]
    pools = [booked(A, moves=[["taken:A", "10.00"]]), booked(B, moves=[["taken:A", "-11.00"]])]
    assert found([ours(A), ours(B)], pools) == [audit.OVER]


@pytest.mark.parametrize(
    "exchanges",
    [
        (),
        (asked("submit", {"silence": "no answer in time"}),),
        (asked("inquire", {"outcome": "unknown"}), asked("void", VOIDED)),
        (asked("submit", {"outcome": "declined"}),),
    ],
    ids=["never asked", "silence only", "a void the acquirer never saw", "a decline the acquirer never gave"],
)
def test_a_decline_that_the_acquirers_log_does_not_bear_out_has_no_evidence(exchanges: tuple[Exchange, ...]) -> None:
    assert found([ours(A, "DECLINED", exchanges=exchanges)], []) == [audit.NO_EVIDENCE]


def test_a_decline_for_want_of_a_line_needs_an_acquirer_that_never_got_it() -> None:
    down = ours(A, "DECLINED", exchanges=(asked("submit", {"unreachable": "refused"}),))
    assert found([down], []) == []
    assert found([down], [booked(A, outcome="declined")]) == [audit.NO_EVIDENCE]


def test_a_void_that_the_acquirer_logged_is_evidence() -> None:
    voided = ours(A, "DECLINED", exchanges=(asked("inquire", {"outcome": "unknown"}), asked("void", VOIDED)))
    assert found([voided], [{"kind": "void", "key": A, "outcome": "tombstone"}]) == []
    declined = {"kind": "submit", "key": A, "outcome": "declined", "at": "2026-11-22T05:56:00+00:00"}
    assert found([voided], [declined, {"kind": "void", "key": A, "outcome": "nothing to reverse"}]) == []
    assert found([voided], [{"kind": "void", "key": A, "outcome": "nothing to reverse"}]) != []


def test_a_payment_without_an_end_is_open() -> None:
    assert found([ours(A, "IN_DOUBT", is_due=True)], []) == [audit.OPEN]
    assert found([ours(A, "STARTED")], []) == [audit.OPEN]


def test_a_replay_that_says_something_else_is_found_and_a_pending_one_may_go_on() -> None:
    journal = [told(A), told(B, "000.200.001", key="p")]
    both = [ours(A), ours(B)]
    log = [booked(A), booked(B)]
    good = [told(A, replayed=True), told(B, key="p", replayed=True)]
    assert found(both, log, journal=journal, replays=good) == []
    for bad in (told(A), told(C, replayed=True), told(A, DECLINED, replayed=True)):
        assert found(both, log, journal=journal, replays=[bad]) == [audit.REPLAY]


def test_a_key_that_never_had_an_answer_is_found() -> None:
    journal = [{"kind": "asks", "key": "k"}, {"kind": "POST", "key": "k", "fault": "reset"}]
    assert found([], [], journal=journal) == [audit.UNANSWERED]


def test_an_answer_of_500_is_found_even_when_the_next_try_is_answered() -> None:
    failed = {"kind": "POST", "key": "k", "status": 500, "code": "900.100.600", "at": 1.0}
    assert found([ours(A)], [booked(A)], journal=[failed, told(A)]) == [audit.SERVER_ERROR]
    assert found([ours(A)], [booked(A)], journal=[failed | {"status": 503}, told(A)]) == []


HELD = booked(A, operation="PA", moves=[["hold:STBA", "10.00"]])
RAISED = booked(C, "5.00", operation="PA", reference="STBA", moves=[["hold:STBA", "5.00"]])


@pytest.mark.parametrize(
    "amount, taken, kinds",
    [("4.00", "4.00", []), ("4.00", "3.00", ["lost", "lost"]), ("16.00", "16.00", ["over", "over"])],
)
def test_what_the_acquirer_holds_is_what_was_authorized_and_not_captured(
    amount: str, taken: str, kinds: list[str]
) -> None:
    more = ours(C, kind="PA", referenced=A, chain=A, approved=Decimal(5), practice="INCREMENTAL_AUTH")
    capture = ours(B, kind="CP", referenced=A, chain=A, approved=Decimal(amount))
    moves = [["hold:STBA", f"-{taken}"], ["taken:STBB", taken]]
    log = [HELD, RAISED, booked(B, taken, operation="CP", reference="STBA", moves=moves)]
    assert [one[:4] for one in found([ours(A, kind="PA"), more, capture], log)] == [kind[:4] for kind in kinds]
    renewed = [ours(A, kind="PA"), ours(C, kind="PA", referenced=A, chain=A, practice="REAUTHORIZATION")]
    assert found(renewed, [HELD, RAISED])[0] == "lost"


def test_a_late_first_inquiry_counts_unless_the_asking_part_was_down() -> None:
    """R3: at most 3 s from IN_DOUBT to the first inquiry."""
    late = {A: ours(A, moves=(move("IN_DOUBT", 10.0),), exchanges=(asked("inquire", {}, at=14.0),), completed=14.0)}
    assert timing.first_inquiries(late, []).over == 1
    assert timing.first_inquiries(late, [(12.0, 13.0)]).exempt == 1
    never = {A: ours(A, moves=(move("IN_DOUBT", 10.0),), exchanges=(), completed=None)}
    assert timing.first_inquiries(never, []).over == 1


def test_settling_counts_the_time_in_which_the_acquirer_could_be_asked() -> None:
    """R3: at most 60 s once the acquirer answers."""
    slow = {A: ours(A, moves=(move("IN_DOUBT", 10.0),), completed=100.0)}
    assert timing.settlements(slow, []).over == 1
    assert timing.settlements(slow, [(10.0, 50.0), (40.0, 60.0)]).most_s == 40.0


@pytest.mark.parametrize("log, kinds", [([], []), ([booked(A, outcome="declined")], [audit.NO_EVIDENCE])])
def test_a_card_that_was_declined_too_often_is_stopped_by_a_rule_of_ours(
    log: list[dict[str, Any]], kinds: list[str]
) -> None:
    stopped = ours(A, "DECLINED", code=audit.TOO_MANY_DECLINES, exchanges=())
    assert found([stopped], log) == kinds


@pytest.mark.parametrize("event", ["step_up", "cascade"])
@pytest.mark.parametrize("log, kinds", [([booked(A, outcome="declined")], []), ([booked(A)], [audit.NO_EVIDENCE])])
def test_a_second_attempt_that_did_not_arrive_leaves_the_decline(
    log: list[dict[str, Any]], kinds: list[str], event: str
) -> None:
    step_up = replace(move("DECLINED"), event=event, status="STARTED")
    away = ours(
        A, "DECLINED", code="900.100.600", moves=(step_up, move("DECLINED")),
        exchanges=(asked("submit", {"outcome": "declined"}), asked("submit", {"unreachable": "refused"})),
    )  # fmt: skip
    assert set(kinds) <= set(found([away], log))
    assert kinds or found([away], log) == []


@pytest.mark.parametrize("log, kinds", [([], []), ([booked(A, outcome="declined")], ["declined without evidence"])])
def test_what_a_breaker_did_not_send_has_no_exchange_and_must_not_be_at_the_acquirer(
    log: list[dict[str, Any]], kinds: list[str]
) -> None:
    assert found([ours(A, "DECLINED", code="900.100.600", exchanges=())], log) == kinds
