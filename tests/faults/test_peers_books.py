"""The comparison with other processors' books finds each kind of disagreement, and nothing where they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.faults.books import RENEWS, Move, Payment
from tests.faults.finding import DOUBLED, LOST, NO_EVIDENCE, OVER, TWICE
from tests.faults.peers import bank_books, card_books, iso_books
from tests.faults.peers.bank_books import BankBooks
from tests.faults.peers.card_books import CardBooks

FIRST, SECOND = "1" * 32, "2" * 32


def payment(
    ident: str = FIRST,
    *,
    kind: str = "DB",
    status: str = "APPROVED",
    amount: str = "20.00",
    code: str = "000.100.112",
    of: str = "",
) -> Payment:
    event = {"APPROVED": "approve", "DECLINED": "decline"}.get(status, "lose")
    return Payment(
        id=ident,
        order=ident,
        chain=of or ident,
        referenced=of,
        kind=kind,
        status=status,
        amount=Decimal(amount),
        approved=Decimal(amount) if status == "APPROVED" else None,
        connector="iso8583",
        code=code,
        created=0.0,
        completed=1.0,
        is_due=False,
        moves=(Move(event=event, status=status, at=1.0),),
    )


def by_id(*payments: Payment) -> dict[str, Payment]:
    return {one.id: one for one in payments}


def line(what: str, t: str, ident: str = FIRST, *, units: int = 2_000, stan: str = "000001", **more: str) -> Any:
    return {"what": what, "t": t, "63": ident, "4": f"{units:012}", "11": stan, **more}


GRANTED = [line("handed", "0200"), line("answered", "0210", **{"39": "00"})]
REFUSED = [line("handed", "0200"), line("answered", "0210", **{"39": "05"})]
UNDONE = [
    line("handed", "0200"),
    line("answer lost", "0210", **{"39": "00"}),
    line("handed", "0420", stan="000009"),
    line("answered", "0430", stan="000009", **{"39": "00"}),
]
DECLINED = payment(status="DECLINED", code="800.100.152")


@pytest.mark.parametrize(
    "ours, lines",
    [
        (payment(), GRANTED),
        (DECLINED, REFUSED),
        (DECLINED, UNDONE),
        (DECLINED, []),
        (payment(), [line("withheld", "0200", ident=FIRST), *GRANTED]),
        (
            payment(kind="CP"),
            [line("handed", "0220"), line("handed", "0221"), line("answered", "0230", **{"39": "00"})],
        ),
    ],
)
def test_a_host_that_says_the_same_is_no_finding(ours: Payment, lines: Sequence[Mapping[str, Any]]) -> None:
    told = iso_books.stories(lines)
    found = [one for one in iso_books.compare(by_id(ours), told) if "does not have" not in one.what]
    assert found == []


@pytest.mark.parametrize(
    "ours, lines, kind",
    [
        (payment(), [], LOST),
        (payment(), UNDONE, LOST),
        (payment(), REFUSED, LOST),
        (DECLINED, GRANTED, LOST),
        (payment(amount="19.00"), GRANTED, LOST),
        (payment(SECOND), GRANTED, LOST),
        (DECLINED, [line("handed", "0200")], NO_EVIDENCE),
        (payment(), [*GRANTED, *GRANTED], TWICE),
        (payment(), [*GRANTED, line("handed", "0420", stan="000009")], LOST),
    ],
)
def test_a_host_that_says_otherwise_is_one(ours: Payment, lines: Sequence[Mapping[str, Any]], kind: str) -> None:
    assert kind in [one.kind for one in iso_books.compare(by_id(ours), iso_books.stories(lines))]


@pytest.mark.parametrize("units, kinds", [(2_000, []), (2_001, [OVER])])
def test_captures_of_more_than_the_host_held_are_found(units: int, kinds: list[str]) -> None:
    held = [line("handed", "0100"), line("answered", "0110", **{"39": "00"})]
    original = "0100" + "000001" + "0" * 32
    taken = [
        line("handed", "0220", SECOND, units=units, stan="000002", **{"90": original}),
        line("answered", "0230", SECOND, stan="000002", **{"39": "00"}),
    ]
    ours = by_id(payment(kind="PA"), payment(SECOND, kind="CP", amount=str(Decimal(units) / 100), of=FIRST))
    assert [one.kind for one in iso_books.compare(ours, iso_books.stories([*held, *taken]))] == kinds


@pytest.mark.parametrize("units, kinds", [(2_000, []), (2_001, [OVER])])
def test_a_capture_that_names_a_renewal_is_of_the_authorization(units: int, kinds: list[str]) -> None:
    """docs/decisions/0093: the renewal's own amount is no ceiling, the authorization's is."""
    renewal = "3" * 32
    lines = [
        line("handed", "0100"),
        line("answered", "0110", **{"39": "00"}),
        line("handed", "0100", renewal, units=500, stan="000003", **{"48.33": "3901"}),
        line("answered", "0110", renewal, stan="000003", **{"39": "00"}),
        line("handed", "0220", SECOND, units=units, stan="000002", **{"90": "0100" + "000003" + "0" * 32}),
        line("answered", "0230", SECOND, stan="000002", **{"39": "00"}),
    ]
    first = payment(kind="PA")
    again = replace(payment(renewal, kind="PA", amount="5.00", of=FIRST), practice=RENEWS)
    taken = payment(SECOND, kind="CP", amount=str(Decimal(units) / 100), of=FIRST)
    assert [one.kind for one in iso_books.compare(by_id(first, again, taken), iso_books.stories(lines))] == kinds


@pytest.mark.parametrize("back, kinds", [(1_500, []), (1_501, [OVER])])
def test_a_refund_takes_of_the_capture_that_it_names_and_not_of_the_authorization(back: int, kinds: list[str]) -> None:
    refund = "3" * 32
    lines = [
        line("handed", "0100"),
        line("answered", "0110", **{"39": "00"}),
        line("handed", "0220", SECOND, units=1_500, stan="000002", **{"90": "0100" + "000001" + "0" * 32}),
        line("answered", "0230", SECOND, stan="000002", **{"39": "00"}),
        line("handed", "0200", refund, units=back, stan="000003", **{"90": "0220" + "000002" + "0" * 32}),
        line("answered", "0210", refund, stan="000003", **{"39": "00"}),
    ]
    taken = payment(SECOND, kind="CP", amount="15.00", of=FIRST)
    given = replace(payment(refund, kind="RF", amount=str(Decimal(back) / 100), of=SECOND), chain=FIRST)
    told = iso_books.stories(lines)
    assert [one.kind for one in iso_books.compare(by_id(payment(kind="PA"), taken, given), told)] == kinds


THIRD = "3" * 32
GIVEN = [
    *(line("handed", "0100", **{"37": "R1"}), line("answered", "0110", **{"39": "00"})),
    *(
        line("handed", "0100", SECOND, units=500, stan="000002", **{"37": "R1", "48.33": "3900"}),
        line("answer lost", "0110", SECOND, stan="000002", **{"39": "00"}),
    ),
]
BOTH = (payment(kind="PA"), payment(SECOND, kind="PA", amount="5.00", of=FIRST))


def follows(kind: str, units: int, **more: str) -> list[Any]:
    """A further message about the first authorization, approved."""
    answer = f"{kind[:2]}{int(kind[2]) + 1}0"
    return [
        line("handed", kind, THIRD, units=units, stan="000003", **{"90": "0100000001"}, **more),
        line("answered", answer, THIRD, stan="000003", **{"39": "00"}),
    ]


@pytest.mark.parametrize(
    "more, lines, held",
    [
        ((), [], 2_500),
        ((payment(THIRD, kind="CP", amount="7.00", of=FIRST),), follows("0220", 700), 1_800),
        ((payment(THIRD, kind="RV", amount="25.00", of=FIRST),), follows("0400", 2_500), 0),
        (
            (payment(THIRD, kind="RV", amount="6.00", of=FIRST),),
            follows("0400", 2_500, **{"95": "000000001900" + "0" * 30}),
            1_900,
        ),
        ((payment(THIRD, kind="RV", status="DECLINED", of=FIRST),), follows("0420", 2_500), 500),
    ],
)
def test_what_a_host_holds_is_what_is_neither_captured_nor_reversed(
    more: tuple[Payment, ...], lines: list[Any], held: int
) -> None:
    there = iso_books.holds([*GIVEN, *lines])
    assert there == {FIRST: held}
    here = iso_books.compare_holds(by_id(*BOTH, *more), there)
    assert [one.kind for one in here] == ([LOST] if held == 500 else [])
    other = iso_books.compare_holds(by_id(*BOTH, *more), {FIRST: held + 1})
    assert [one.kind for one in other] == [LOST]


def test_holds_of_payments_that_share_their_trace_number_are_their_own() -> None:
    fourth = "4" * 32
    other = [
        line("handed", "0100", fourth, units=900, **{"7": "1122010203", "37": "R2"}),
        line("answered", "0110", fourth, **{"39": "00"}),
    ]
    assert iso_books.holds([*GIVEN, *other]) == {FIRST: 2_500, fourth: 900}


def intent(ident: str = FIRST, *, status: str = "succeeded", units: int = 2_000, **more: Any) -> dict[str, Any]:
    return {
        "id": f"pi_{ident}",
        "status": status,
        "amount": units,
        "metadata": {"tollhouse_payment": ident},
        "latest_charge": {"id": f"ch_{ident}", "amount": units},
        **more,
    }


def refund(of: str = FIRST, *, units: int = 500, **metadata: str) -> dict[str, Any]:
    return {
        "status": "succeeded",
        "charge": f"ch_{of}",
        "payment_intent": f"pi_{of}",
        "amount": units,
        "metadata": metadata,
    }


BACK = payment(SECOND, kind="RF", amount="5.00", of=FIRST)
OURS = refund(tollhouse_payment=SECOND)
FAILED = intent(status="requires_payment_method", last_payment_error={"code": "card_declined"})


@pytest.mark.parametrize(
    "ours, intents, refunds",
    [
        ([payment()], [intent()], []),
        ([payment(), BACK], [intent()], [OURS]),
        ([payment(kind="PA")], [intent(status="requires_capture", amount_capturable=2_000, amount_received=0)], []),
        (
            [payment(kind="PA"), payment(SECOND, kind="CP", amount="5.00", of=FIRST)],
            [intent(amount_capturable=0, amount_received=500)],
            [],
        ),
        ([DECLINED], [FAILED], []),
        ([payment(status="DECLINED", code="900.100.301")], [], []),
        ([payment(status="DECLINED", code="900.100.301")], [intent()], [refund(units=2_000, tollhouse_void=FIRST)]),
    ],
)
def test_a_card_api_that_says_the_same_is_no_finding(
    ours: list[Payment], intents: list[dict[str, Any]], refunds: list[dict[str, Any]]
) -> None:
    assert card_books.compare(by_id(*ours), CardBooks(intents=intents, refunds=refunds)) == []


@pytest.mark.parametrize(
    "ours, intents, refunds, kind",
    [
        ([payment()], [], [], LOST),
        ([payment()], [intent(units=1_999)], [], LOST),
        ([payment()], [intent(), intent()], [], DOUBLED),
        ([], [intent()], [], LOST),
        ([payment(status="DECLINED", code="900.100.301")], [intent()], [], LOST),
        ([DECLINED], [], [], NO_EVIDENCE),
        ([payment(), BACK], [intent()], [], LOST),
        ([payment(), BACK], [intent()], [OURS, OURS], DOUBLED),
        ([payment(), payment(SECOND, kind="RF", status="DECLINED", of=FIRST)], [intent()], [OURS], LOST),
        (
            [payment(kind="PA"), payment(SECOND, kind="CP", amount="5.00", of=FIRST)],
            [intent(status="requires_capture", amount_capturable=1_400, amount_received=500)],
            [],
            LOST,
        ),
    ],
)
def test_a_card_api_that_says_otherwise_is_one(
    ours: list[Payment], intents: list[dict[str, Any]], refunds: list[dict[str, Any]], kind: str
) -> None:
    found = card_books.compare(by_id(*ours), CardBooks(intents=intents, refunds=refunds))
    assert kind in [one.kind for one in found]


def row(ident: str = FIRST, *, units: int = 2_000, booked: str = "2026-11-24", **more: Any) -> dict[str, Any]:
    return {"end_to_end_id": ident, "amount": units, "booked_at": booked, "status": "accepted", "reason": None, **more}


REJECTED = row(booked="", status="rejected", reason="AM04")
UNPAID = payment(status="DECLINED", code="800.100.203")


@pytest.mark.parametrize(
    "ours, order, rows, moved",
    [
        (payment(), "BOOKED", [row()], 2_000),
        (UNPAID, "REJECTED", [REJECTED], 0),
        (UNPAID, "WITHDRAWN", [], 0),
        (payment(), "BOOKED", [row(), row(booked="", status="rejected", reason="DUPL")], 2_000),
    ],
)
def test_a_bank_that_says_the_same_is_no_finding(
    ours: Payment, order: str, rows: list[dict[str, Any]], moved: int
) -> None:
    books = BankBooks(collections=rows, payouts=[], moved=moved)
    assert bank_books.compare(by_id(ours), {ours.id: order}, books) == []


@pytest.mark.parametrize(
    "ours, order, rows, moved, kind",
    [
        (payment(), "BOOKED", [], 0, LOST),
        (payment(), "BOOKED", [row(units=1_999)], 1_999, LOST),
        (payment(), "BOOKED", [row(), row()], 4_000, DOUBLED),
        (payment(), "BOOKED", [row()], 4_000, LOST),
        (UNPAID, "REJECTED", [row()], 2_000, LOST),
        (UNPAID, "WITHDRAWN", [REJECTED], 0, LOST),
        (UNPAID, "REJECTED", [], 0, NO_EVIDENCE),
        (payment(SECOND), "BOOKED", [row()], 2_000, LOST),
    ],
)
def test_a_bank_that_says_otherwise_is_one(
    ours: Payment, order: str, rows: list[dict[str, Any]], moved: int, kind: str
) -> None:
    books = BankBooks(collections=rows, payouts=[], moved=moved)
    assert kind in [one.kind for one in bank_books.compare(by_id(ours), {ours.id: order}, books)]
