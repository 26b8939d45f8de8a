"""The comparison of checkouts in parts finds what must not be, and nothing else. Source: docs/faults.md."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest

from tests.faults.finding import LOST, OVER
from tests.faults.held_parts import Facts, PaidCheckout, Part, find_all, read_moves


def facts_of(
    statuses: Sequence[str], moves: Sequence[tuple[str, int]], *, amount: int = 92, last: str = "rest"
) -> Facts:
    """A checkout of a part and a rest, 46 each."""
    parts = [
        Part(id=name, checkout="c", status=status, approved=Decimal(46) if status == "APPROVED" else None)
        for name, status in zip(("part", "rest"), statuses, strict=True)
    ]
    return Facts(
        checkouts=[PaidCheckout(id="c", amount=Decimal(amount), last=last)],
        parts=parts,
        moves=[(name, Decimal(cents)) for name, cents in moves],
    )


BOTH, NEITHER = ("APPROVED", "APPROVED"), ("DECLINED", "DECLINED")


@pytest.mark.parametrize(
    ("facts", "kinds"),
    [
        (facts_of(BOTH, [("part", 46), ("rest", 46)]), []),
        (facts_of(NEITHER, [("part", 46), ("part", -46)]), []),
        (facts_of(BOTH, [("part", 46), ("rest", 46), ("part", -46)]), [LOST]),
        (facts_of(("DECLINED", "APPROVED"), [("part", 46), ("part", -46), ("rest", 46)]), [LOST]),
        (facts_of(NEITHER, [("part", 46)]), [LOST]),
        (facts_of(BOTH, [("part", 46), ("rest", 46)], last=""), [LOST]),
        (facts_of(NEITHER, [("part", 46), ("rest", 92), ("rest", -92), ("part", -46)]), [OVER]),
    ],
)
def test_all_or_nothing_and_never_more(facts: Facts, kinds: list[str]) -> None:
    assert [one.kind for one in find_all(facts)] == kinds


def test_what_the_acquirer_did_is_read_out_of_its_log_by_payment() -> None:
    log = [
        {"kind": "submit", "outcome": "approved", "key": "a", "answer": {"approvedAmount": "46.00"}},
        {"kind": "submit", "outcome": "declined", "key": "b"},
        {"kind": "submit", "outcome": "approved", "key": "b-2", "answer": {"approvedAmount": "10.00"}},
        {"kind": "submit", "outcome": "approved", "key": "other", "answer": {"approvedAmount": "1.00"}},
        {"kind": "void", "outcome": "reversed", "key": "a"},
        {"kind": "void", "outcome": "tombstone", "key": "b"},
    ]
    assert read_moves(log, {"a", "b"}) == [("a", Decimal(46)), ("b", Decimal(10)), ("a", Decimal(-46))]
