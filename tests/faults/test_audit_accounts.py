"""The comparison of two acquirers' accounts and of exemptions finds what is planted, and nothing where they agree.
Source: docs/decisions/0105, 0108; goals R1, R2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from gateway.connectors.simulator.cards import CARDS_BY_NUMBER
from gateway.threeds.exemption_rules import LOW_VALUE_LIMIT
from tests.faults import audit, audit_exemptions, books
from tests.faults.books import Aside, CardUse, Exempted, Payment
from tests.faults.finding import DOUBLED, EXEMPTION, LOST, OVER, TWICE
from tests.faults.load import CASCADED
from tests.faults.test_audit import A, B, asked, booked, move, ours

FIRST, SECOND = "M-1", "M-2"
CARD = "merchant card"
PASSED = ("done", "Y", "")


def kinds(payments: Sequence[Payment], log: list[dict[str, Any]], **beside: Any) -> set[str]:
    by_id = {one.id: one for one in payments}
    return {one.kind for one in audit.find_all(by_id, books.acquirer(log), [], [], [], Aside(**beside))}


# --- a second acquirer after a decline --------------------------------------------------------------------------------


def cascaded(status: str = "APPROVED", account: str = SECOND) -> Payment:
    """A payment that its first acquirer declined."""
    payment = ours(A, status, account=account)
    moves = (move("STARTED"), replace(move("STARTED"), event="cascade"), *payment.moves)
    exchanges = (asked("submit", {"outcome": "declined"}), asked("submit", {"outcome": status.lower()}))
    return replace(payment, moves=moves, exchanges=exchanges)


REFUSED = booked(A, outcome="declined", merchant=FIRST)
AGAIN = booked(f"{A}-2", merchant=SECOND)
AGAIN_REFUSED = booked(f"{A}-2", outcome="declined", merchant=SECOND)


def test_a_payment_that_a_second_acquirer_decided_is_no_finding() -> None:
    assert kinds([cascaded()], [REFUSED, AGAIN]) == set()
    assert kinds([cascaded("DECLINED")], [REFUSED, AGAIN_REFUSED]) == set()
    voided = {"kind": "void", "key": f"{A}-2", "outcome": "reversed"}
    assert kinds([cascaded("DECLINED")], [REFUSED, AGAIN, voided]) == set()


@pytest.mark.parametrize(
    "first", [booked(A, merchant=FIRST), booked(A, "9.00", merchant=FIRST)], ids=["the same amount", "another amount"]
)
@pytest.mark.parametrize("status", ["APPROVED", "DECLINED"])
@pytest.mark.parametrize("swapped", [False, True], ids=["in order", "the first came late"])
def test_a_payment_that_is_charged_at_both_acquirers_is_found(
    first: dict[str, Any], status: str, swapped: bool
) -> None:
    log = [AGAIN, first] if swapped else [first, AGAIN]
    payment = cascaded(status)
    assert {DOUBLED, TWICE} <= kinds([payment], log)
    found = audit.find_all({A: payment}, books.acquirer(log), [], [], [])
    both = [one.what for one in found if FIRST in one.what and SECOND in one.what]
    assert both, "no finding names both accounts"


def test_a_payment_that_was_charged_at_both_and_taken_back_at_one_is_found() -> None:
    for attempt in (A, f"{A}-2"):
        log = [booked(A, merchant=FIRST), AGAIN, {"kind": "void", "key": attempt, "outcome": "reversed"}]
        assert {DOUBLED, TWICE} <= kinds([cascaded()], log)


def test_one_attempt_that_two_accounts_get_is_found() -> None:
    """A further attempt without a key of its own: the acquirer answers as before, and books nothing."""
    assert TWICE in kinds([cascaded()], [booked(A, merchant=FIRST), booked(A, outcome="duplicate", merchant=SECOND)])


@pytest.mark.parametrize("log", [[AGAIN], [AGAIN, REFUSED]], ids=["never asked", "declined afterwards"])
def test_a_second_attempt_before_the_first_was_declined_is_found(log: list[dict[str, Any]]) -> None:
    assert TWICE in kinds([cascaded()], log)


def test_money_at_another_account_or_by_another_attempt_than_ours_is_found() -> None:
    assert kinds([cascaded(account=FIRST)], [REFUSED, AGAIN]) == {LOST}
    assert kinds([ours(A, account=SECOND)], [REFUSED, AGAIN]) == {LOST}
    assert kinds([cascaded()], [booked(A, merchant=FIRST)]) == {LOST}
    assert kinds([ours(A, account=FIRST)], [booked(A, merchant=SECOND)]) == {LOST}


def test_a_follow_up_at_another_account_than_its_payment_is_found() -> None:
    refund = ours(B, referenced=A, kind="RF", account=SECOND)
    log = [REFUSED, AGAIN, booked(B, merchant=SECOND)]
    assert kinds([cascaded(), refund], log) == set()
    astray = replace(refund, account=FIRST)
    assert kinds([cascaded(), astray], [REFUSED, AGAIN, booked(B, merchant=FIRST)]) == {LOST}


def test_the_cards_of_the_load_are_those_that_a_second_acquirer_decides() -> None:
    assert [CARDS_BY_NUMBER[number].second_acquirer for number, _ in CASCADED] == ["approves", "declines", "silence"]


# --- exemptions of low value ------------------------------------------------------------------------------------------


def idents(many: int) -> list[str]:
    return [f"{number + 1:032x}" for number in range(many)]


def exempted(ident: str, number: int, euros: str = "10.00", since: int = 0) -> Exempted:
    """The payment that is the ``number``th of its card since its authentication ``since``, all of ``euros``."""
    return Exempted(
        payment=ident, card=CARD, exemption="LOW_VALUE", euros=Decimal(euros), payments=number,
        amount=number * Decimal(euros), authentications=since,
    )  # fmt: skip


def charged(ident: str, euros: str = "10.00") -> dict[str, Any]:
    return booked(ident, euros, exemptionFlag="01", authenticationStatus="")


def low_value(many: int, euros: str = "10.00", *, since: int = 0) -> dict[str, Any]:
    """``many`` payments by the exemption, as all books have them."""
    each, names = Decimal(euros), idents(many)
    return {
        "payments": [ours(one, amount=each, approved=each, order=one) for one in names],
        "log": [charged(one, euros) for one in names],
        "exempted": [exempted(one, number + 1, euros, since) for number, one in enumerate(names)],
        "used": {CARD: CardUse(payments=many, amount=many * each, authentications=since)},
        "challenged": {CARD: since},
    }


def test_exemptions_that_all_books_count_alike_are_no_finding() -> None:
    assert kinds(**low_value(0)) == kinds(**low_value(5)) == kinds(**low_value(3, "30.00", since=2)) == set()
    assert LOW_VALUE_LIMIT.each == audit_exemptions.MAX_EACH
    assert LOW_VALUE_LIMIT.together == audit_exemptions.MAX_TOGETHER
    assert LOW_VALUE_LIMIT.payments == audit_exemptions.MAX_PAYMENTS


@pytest.mark.parametrize(("many", "euros"), [(6, "5.00"), (4, "30.00"), (1, "30.01")])
def test_more_than_article_16_allows_is_over_a_limit(many: int, euros: str) -> None:
    assert kinds(**low_value(many, euros)) == {OVER}


def test_more_than_the_article_allows_is_found_though_each_figure_was_recorded_within_it() -> None:
    books = low_value(6, "5.00")
    books["exempted"] = [replace(one, payments=1, amount=one.euros) for one in books["exempted"]]
    assert OVER in kinds(**books)


def test_limits_begin_anew_with_each_authentication_and_a_count_of_none_does_not() -> None:
    books = low_value(6, "5.00")
    books["exempted"][5] = exempted(idents(6)[5], 1, "5.00", since=1)
    books |= {"used": {CARD: CardUse(payments=1, amount=Decimal(5), authentications=1)}, "challenged": {CARD: 1}}
    assert kinds(**books) == set()
    assert kinds(**books | {"challenged": {}}) == {EXEMPTION}


@pytest.mark.parametrize("payments, amount", [(1, "20.00"), (3, "20.00"), (2, "10.00"), (2, "30.00")])
def test_a_count_that_lost_or_doubled_a_payment_is_found(payments: int, amount: str) -> None:
    use = CardUse(payments=payments, amount=Decimal(amount), authentications=0)
    assert kinds(**low_value(2) | {"used": {CARD: use}}) == {EXEMPTION}
    assert kinds(**low_value(2) | {"used": {}}) == {EXEMPTION}


@pytest.mark.parametrize("given_back", [True, False])
@pytest.mark.parametrize("way", ["declined", "authenticated instead", "declined softly"])
def test_a_payment_that_was_not_exempted_after_all_is_given_back(way: str, given_back: bool) -> None:
    books = low_value(1)
    [payment], ident = books["payments"], idents(1)[0]
    if way == "declined":
        books["payments"] = [replace(ours(ident, "DECLINED"), order=ident)]
        books["log"] = [booked(ident, outcome="declined", exemptionFlag="01", authenticationStatus="")]
    elif way == "authenticated instead":
        books |= {"log": [charged(ident) | {"authenticationStatus": "Y"}], "authentications": {ident: PASSED}}
    else:
        books["log"] = [booked(ident, outcome="declined", exemptionFlag="01", authenticationStatus="")]
        books["log"] += [booked(f"{ident}-2")]
        step_up = replace(move("STARTED"), event="step_up")
        twice = (asked("submit", {"outcome": "declined"}), asked("submit", {"outcome": "approved"}))
        books["payments"] = [replace(payment, moves=(step_up, *payment.moves), exchanges=twice)]
    if given_back:
        books["used"] = {CARD: CardUse(payments=0, amount=Decimal(0), authentications=0)}
    assert kinds(**books) == (set() if given_back else {EXEMPTION})


def test_an_exemption_that_one_side_alone_knows_is_found() -> None:
    books = low_value(1)
    assert kinds(**books | {"log": [booked(idents(1)[0])]}) == {EXEMPTION}
    assert kinds(**books | {"exempted": [], "used": {}}) == {EXEMPTION}
    uncounted = [replace(books["exempted"][0], payments=None, amount=None)]
    assert EXEMPTION in kinds(**books | {"exempted": uncounted})
    assert EXEMPTION in kinds(**books | {"exempted": [replace(books["exempted"][0], euros=Decimal(1))]})
