"""The comparison of what shoppers decided: each thing that must not be is found where it is planted. Source: goals R1,
R2, R8; decisions, section 5."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.faults import audit, audit_shoppers, books
from tests.faults.books import Aside, Move, Payment
from tests.faults.finding import DECIDED, NO_EVIDENCE, REGISTRATION, SECRET, TWICE
from tests.faults.test_audit import A, asked, booked, move, ours

TIMED_OUT = "100.380.501"
PASSED, FAILED = ("done", "Y", ""), ("done", "N", TIMED_OUT)
TEN = Decimal(10)


def bank(status: str = "APPROVED", **changes: Any) -> Payment:
    """A payment that its shopper decided about at the simulated bank."""
    told = {"order": "approved" if status == "APPROVED" else "declined"}
    return replace(
        ours(A, status), connector="simulator", brand="ONLINETRANSFER", exchanges=(asked("inquire", told),), **changes
    )


def kinds(
    payment: Payment,
    log: list[dict[str, Any]],
    journal: list[dict[str, Any]] | None = None,
    keys: list[tuple[str, str]] | None = None,
    **beside: Any,
) -> set[str]:
    found = audit.find_all({A: payment}, books.acquirer(log), journal or [], keys or [], [], Aside(**beside))
    return {one.kind for one in found} - {"never answered"}


def did(what: str) -> list[dict[str, Any]]:
    return [{"kind": "shopper", "what": what, "id": A, "landed": True}]


def test_what_agrees_has_no_finding() -> None:
    assert kinds(ours(A), [booked(A)], did("challenge: passed"), authentications={A: PASSED}) == set()
    refused = replace(ours(A, "DECLINED"), code=TIMED_OUT, exchanges=())
    assert kinds(refused, [], did("challenge: left"), authentications={A: FAILED}) == set()
    assert kinds(bank(), [], orders={A: ("APPROVED", TEN)}) == set()
    assert kinds(bank("DECLINED"), [], orders={A: ("EXPIRED", TEN)}) == set()


@pytest.mark.parametrize(
    ("payment", "order"),
    [
        (bank("DECLINED"), ("APPROVED", TEN)),
        (bank(), ("DECLINED", TEN)),
        (bank(), ("APPROVED", Decimal(11))),
        (bank("DECLINED"), ("OPEN", TEN)),
    ],
)
def test_an_order_that_the_bank_tells_otherwise_is_found(payment: Payment, order: tuple[str, Decimal]) -> None:
    assert DECIDED in kinds(payment, [], orders={A: order})


def test_money_without_an_order_at_the_bank_is_found() -> None:
    assert kinds(bank(), []) == {DECIDED}


def stepped_up(status: str, *, submits: int, times: int = 1) -> Payment:
    """A payment that its bank declined for want of an authentication."""
    again = tuple(Move(event="step_up", status="STARTED", at=1.0) for _ in range(times))
    exchanges = tuple(asked("submit", {"outcome": "declined"}) for _ in range(submits))
    payment = ours(A, status)
    return replace(payment, moves=(move("STARTED"), *again, *payment.moves), exchanges=exchanges)


def test_a_second_attempt_after_a_soft_decline_is_no_finding_and_a_third_is() -> None:
    second = {**booked(A), "key": f"{A}-2"}
    first = {**booked(A), "outcome": "declined", "answer": {}}
    paid = stepped_up("APPROVED", submits=2)
    passed = did("challenge after a soft decline: passed")
    assert kinds(paid, [first, second], passed, authentications={A: PASSED}) == set()
    left = replace(stepped_up("DECLINED", submits=1), code=TIMED_OUT)
    assert kinds(left, [first], did("challenge: left"), authentications={A: FAILED}) == set()
    assert DECIDED in kinds(paid, [first, second], authentications={A: FAILED})
    assert TWICE in kinds(stepped_up("APPROVED", submits=3), [first, second], authentications={A: PASSED})
    assert TWICE in kinds(stepped_up("APPROVED", submits=2, times=2), [first, second], authentications={A: PASSED})
    assert "doubled" in kinds(paid, [booked(A), second], authentications={A: PASSED})


def test_attempts_at_further_acquirers_are_no_finding_and_one_without_its_event_is() -> None:
    def cascaded(status: str, *, submits: int, times: int) -> Payment:
        payment = stepped_up(status, submits=submits, times=times)
        moves = tuple(replace(one, event="cascade") if one.event == "step_up" else one for one in payment.moves)
        return replace(payment, moves=moves)

    declined = {**booked(A), "outcome": "declined", "answer": {}}
    second, third = ({**booked(A), "key": f"{A}-{number}"} for number in (2, 3))
    assert kinds(cascaded("APPROVED", submits=2, times=1), [declined, second]) == set()
    assert kinds(cascaded("APPROVED", submits=3, times=2), [declined, {**declined, "key": f"{A}-2"}, third]) == set()
    assert TWICE in kinds(cascaded("APPROVED", submits=3, times=1), [declined, second])
    assert TWICE in kinds(cascaded("APPROVED", submits=4, times=3), [declined, second])
    assert "doubled" in kinds(cascaded("APPROVED", submits=2, times=1), [booked(A), second])


def test_an_acquirer_that_was_asked_without_a_proof_is_found() -> None:
    assert DECIDED in kinds(ours(A), [booked(A)], authentications={A: FAILED})
    assert DECIDED in kinds(ours(A), [booked(A)], authentications={A: ("challenge", "", "")})
    assert DECIDED in kinds(ours(A), [booked(A)], did("challenge: failed"), authentications={A: PASSED})


def test_a_shopper_who_authenticated_and_was_turned_away_is_found() -> None:
    turned = replace(ours(A, "DECLINED"), code=TIMED_OUT, exchanges=())
    assert kinds(turned, [], did("challenge: passed"), authentications={A: PASSED}) == {DECIDED, NO_EVIDENCE}


def test_an_authenticated_payment_that_a_breaker_did_not_send_must_not_be_at_the_acquirer() -> None:
    unsent = replace(ours(A, "DECLINED"), code=audit_shoppers.UNREACHABLE, exchanges=())
    passed = did("challenge: passed")
    assert kinds(unsent, [], passed, authentications={A: PASSED}) == set()
    assert NO_EVIDENCE in kinds(unsent, [booked(A, outcome="declined")], passed, authentications={A: PASSED})
    assert kinds(unsent, [], authentications={A: FAILED}) == {NO_EVIDENCE}


def test_a_payment_that_is_submitted_or_ends_twice_is_found() -> None:
    again = booked(A, outcome="duplicate")
    assert kinds(ours(A), [booked(A), again]) == {TWICE}
    assert kinds(ours(A), [booked(A), {"kind": "submit", "key": A, "outcome": "lost"}]) == {TWICE}
    doubled = {"fault": "duplicate"}
    assert kinds(ours(A), [booked(A, **doubled), again | doubled]) == set()
    assert kinds(replace(ours(A), moves=(move("APPROVED"), move("DECLINED"))), [booked(A)]) == {TWICE}


@pytest.mark.parametrize(("status", "made"), [("APPROVED", 0), ("APPROVED", 2), ("DECLINED", 1)])
def test_a_registration_too_many_or_too_few_is_found(status: str, made: int) -> None:
    journal = [{"kind": "asks", "key": "k", "fields": {"createRegistration": "true"}}]
    log = [booked(A, outcome=status.lower())]
    registrations = {A: ["r"] * made} if made else {}
    assert kinds(ours(A, status), log, journal, [("k", A)], registrations=registrations) == {REGISTRATION}


def test_a_registration_that_nobody_asked_for_is_found() -> None:
    assert kinds(ours(A), [booked(A)], registrations={A: ["r"]}) == {REGISTRATION}


def test_a_secret_that_outlives_its_payment_is_found() -> None:
    assert kinds(ours(A), [booked(A)], waiting={A}, secrets={A}) == {SECRET}
    assert kinds(ours(A), [booked(A)], authentications={A: PASSED}, numbers={A}) == {SECRET}
    kept = replace(ours(A), kind="RG", keeps_number=True)
    assert kinds(kept, [booked(A)]) == {SECRET}
